//! Every operation on tables against every kind of credentials: who may, may, and nobody else. Signatures for a part of
//! a table, stored policies and roles, alone and in batches.

#![expect(clippy::panic, reason = "a test that cannot go on fails loudly")]

use std::collections::BTreeMap;
use std::time::Duration;

use lazuli_api::auth::accounts::Accounts;
use lazuli_api::auth::bearer::Issuer;
use lazuli_api::auth::bearer::roles::{Assignment, Role};
use lazuli_api::route::{Marker, Route, Selector, Verb};
use lazuli_api::table::ROUTES;
use lazuli_api::target::{Level, Service};
use lazuli_api::wire::date;
use lazuli_engine::clock::Clock as _;
use lazuli_tests::client::{ACCOUNT, Credentials, KEY};
use lazuli_tests::harness::Lazuli;
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::{Answer, Request};
use lazuli_tests::tables::{Table, column, part};
use lazuli_tests::token::{TENANT, token};

/// All letters that a signature may have.
const LETTERS: &str = "racwdxyltfmeopiu";

/// Of each operation: the resource type that an account SAS must name; sets of letters, any of which suffices, but
/// whole; and whether a service SAS can have them. An operation without types is closed to every SAS.
const ALLOWED: &str = "
Service_GetProperties s r account
Service_SetProperties s w account
Service_GetStatistics s r account
Service_GetUserDelegationKey - - -
Table_Query c l account
Table_Get c l account
Table_Create c c,w account
Table_Delete c d account
Table_GetAccessPolicy - - -
Table_SetAccessPolicy - - -
Table_QueryEntities o r both
Table_QueryEntityWithPartitionAndRowKey o r both
Table_InsertEntity o a both
Table_UpdateEntity o u both
Table_InsertOrReplaceEntity o au both
Table_MergeEntity o u both
Table_InsertOrMergeEntity o au both
Table_DeleteEntity o d both
Table_Batch sco * both
";

fn allowed() -> BTreeMap<&'static str, [&'static str; 3]> {
    let line = |line: &'static str| {
        let words: Vec<_> = line.split(' ').collect();
        let [name, types, letters, kinds] = words[..] else { panic!("{line}") };
        (name, [types, letters, kinds])
    };
    ALLOWED.trim().lines().map(line).collect()
}

/// A request that fits the route, on a table and an entity that are there.
fn request(lazuli: &Lazuli, route: &Route) -> Request {
    let method = match route.verbs.first().copied().unwrap_or(Verb::Get) {
        Verb::Get => "GET",
        Verb::Head => "HEAD",
        Verb::Put => "PUT",
        Verb::Post => "POST",
        Verb::Delete => "DELETE",
        Verb::Options => "OPTIONS",
        Verb::Patch => "PATCH",
        Verb::Merge => "MERGE",
    };
    let path = match route.level {
        Level::Service => "/",
        Level::Tables => "/Tables",
        Level::TableEntry => "/Tables('People')",
        Level::Table => "/People",
        Level::Entity => "/People(PartitionKey='p',RowKey='r')",
        Level::Batch => "/$batch",
        other => panic!("the Table service has no {other:?}"),
    };
    let selected = [("restype", route.restype), ("comp", route.comp)];
    let query = selected.iter().filter_map(|(name, selector)| match selector {
        Selector::Is(value) => Some(format!("{name}={value}")),
        Selector::Absent | Selector::Any => None,
    });
    let query = query.collect::<Vec<_>>().join("&");
    let request = lazuli.tables().request(method, &format!("{path}?{query}"));
    let request = if matches!(method, "PATCH" | "MERGE") { request.body("{}") } else { request };
    route.markers.iter().fold(request, |request, marker| match *marker {
        Marker::Header(name) => request.header(name, "*"),
        Marker::NoHeader(_) => request,
        other => panic!("the Table service has no {other:?}"),
    })
}

async fn people(lazuli: &Lazuli) -> Table {
    let table = lazuli.tables().table("People").await;
    table.entity("p", "r").put("{}").await.expect(204);
    table
}

/// Whether the request came through, whatever became of it then.
#[track_caller]
fn came_through(answer: &Answer, what: &str) {
    let refusals = ["AuthenticationFailed", "NoAuthenticationInformation", "InsufficientAccountPermissions"];
    let refused = answer.code().starts_with("Authorization") || refusals.contains(&answer.code());
    assert!(!refused, "{what}: {answer:?}");
}

#[tokio::test]
async fn every_operation_is_open_to_those_who_may_and_to_nobody_else() {
    let allowed = allowed();
    for route in ROUTES.iter().flat_map(|table| table.iter()) {
        let name = route.operation.name;
        let lazuli = Lazuli::start().await;
        people(&lazuli).await;
        let ask = || request(&lazuli, route);
        let sent = async |sas: Sas| ask().with_sas(&sas.query()).await;
        if name == "Preflight" {
            came_through(&ask().unsigned().await, name);
            continue;
        }
        let [types, letters, kinds] =
            allowed.get(name).copied().unwrap_or_else(|| panic!("{name} is not in the table"));

        ask().unsigned().await.refused(401, "NoAuthenticationInformation");
        let stranger = Credentials::new(ACCOUNT, "AAAA").unwrap().for_tables();
        ask().signed_by(stranger.clone()).await.refused(403, "AuthenticationFailed");
        let all = || Sas::account(LETTERS, "t", "sco");
        ask().with_sas(&all().signed_by(&stranger)).await.refused(403, "AuthenticationFailed");
        sent(all().with("se", "2020-01-02")).await.refused(403, "AuthenticationFailed");
        sent(Sas::table("Other", LETTERS).with("se", "2020-01-02")).await.refused(403, "AuthenticationFailed");
        if types == "-" {
            sent(all()).await.refused(403, "AuthorizationFailure");
            sent(Sas::table("People", LETTERS)).await.refused(403, "AuthorizationFailure");
            continue;
        }
        came_through(&ask().await, name);

        sent(Sas::account(LETTERS, "bqf", "sco")).await.refused(403, "AuthorizationServiceMismatch");
        let other_types: String = "sco".chars().filter(|one| !types.contains(*one)).collect();
        if !other_types.is_empty() {
            sent(Sas::account(LETTERS, "t", &other_types)).await.refused(403, "AuthorizationResourceTypeMismatch");
        }
        if letters == "*" {
            came_through(&sent(Sas::account("r", "t", "o")).await, name);
            came_through(&sent(Sas::table("People", "r")).await, name);
            continue;
        }
        let lacking = |letters: &str| LETTERS.chars().filter(|one| !letters.contains(*one)).collect::<String>();
        let parts = letters
            .split(',')
            .filter(|set| set.len() > 1)
            .flat_map(str::chars)
            .map(|letter| lacking(&letter.to_string()));
        let insufficient: Vec<_> = parts.chain([lacking(letters)]).collect();
        for set in letters.split(',') {
            came_through(&sent(Sas::account(set, "t", types)).await, name);
        }
        for set in &insufficient {
            sent(Sas::account(set, "t", "sco")).await.refused(403, "AuthorizationPermissionMismatch");
        }
        if kinds == "account" {
            sent(Sas::table("People", LETTERS)).await.refused(403, "AuthorizationFailure");
            continue;
        }
        came_through(&sent(Sas::table("pEOPLE", letters)).await, name);
        sent(Sas::table("Other", LETTERS)).await.refused(403, "AuthenticationFailed");
        for set in &insufficient {
            sent(Sas::table("People", set)).await.refused(403, "AuthorizationPermissionMismatch");
        }
    }
}

fn document(partition: &str, row: &str) -> String {
    format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"}}")
}

#[tokio::test]
async fn a_signature_for_a_part_of_a_table_covers_that_part_alone() {
    let lazuli = Lazuli::start().await;
    let table = lazuli.tables().table("People").await;
    for partition in ["a", "b", "c"] {
        for row in ["1", "2", "3"] {
            table.insert(&document(partition, row)).await.expect(201);
        }
    }
    let found = async |first: [&str; 2], last: [&str; 2], query: &str| {
        let sas = Sas::table("People", "r").with("spk", first[0]).with("srk", first[1]);
        let sas = sas.with("epk", last[0]).with("erk", last[1]).query();
        let page = table.query(query).with_sas(&sas).await.expect(200);
        let (partitions, rows) = (column(&page, "PartitionKey"), column(&page, "RowKey"));
        partitions.into_iter().zip(rows).map(|(partition, row)| partition + &row).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found(["b", ""], ["b", ""], "").await, "b1 b2 b3");
    assert_eq!(found(["a", "3"], ["b", "1"], "").await, "a3 b1");
    assert_eq!(found(["b", "2"], ["", ""], "").await, "b2 b3 c1 c2 c3");
    assert_eq!(found(["", ""], ["a", "2"], "").await, "a1 a2");
    assert_eq!(found(["b", ""], ["b", ""], "?$filter=PartitionKey%20eq%20'a'").await, "");
    assert_eq!(found(["b", ""], ["b", ""], "?$filter=RowKey%20eq%20'2'").await, "b2");
    assert_eq!(found(["b", ""], ["b", ""], "?NextPartitionKey=1!2!YQ").await, "b1 b2 b3");

    let sas = Sas::table("People", "raud").with("spk", "b").with("srk", "2").with("epk", "b").query();
    let (inside, outside) =
        (table.entity("b", "2"), [table.entity("a", "9"), table.entity("b", "1"), table.entity("c", "")]);
    inside.get().with_sas(&sas).await.expect(200);
    inside.put("{}").with_sas(&sas).await.expect(204);
    table.insert(&document("b", "9")).with_sas(&sas).await.expect(201);
    for entity in &outside {
        for request in [entity.get(), entity.put("{}"), entity.merge("{}"), entity.delete()] {
            request.with_sas(&sas).await.refused(403, "AuthorizationFailure");
        }
    }
    table.insert(&document("c", "9")).with_sas(&sas).await.refused(403, "AuthorizationFailure");
    lazuli.tables().table("Other").await;
    let batch = |rows: &[&str]| {
        let parts: Vec<_> = rows.iter().map(|row| table.entity("b", row).part("PUT", "", "{}")).collect();
        lazuli.tables().batch(&parts).with_sas(&sas)
    };
    assert_eq!(batch(&["2", "5"]).await.expect(202).text().matches("204 No Content").count(), 2);
    let refused = batch(&["7", "1"]).await.expect(202).text();
    assert!(refused.contains("HTTP/1.1 403") && refused.contains("\"AuthorizationFailure\""), "{refused}");
    assert!(refused.contains("\"1:The signature does not cover the entity."), "{refused}");
    table.entity("b", "7").get().await.refused(404, "ResourceNotFound");
    let elsewhere = lazuli.tables().batch(&[part("POST", "Other", "", &document("b", "5"))]).with_sas(&sas).await;
    assert!(elsewhere.text().contains("\"0:The signature is for another table."), "{}", elsewhere.text());
}

#[tokio::test]
async fn the_parts_of_a_batch_need_what_they_would_need_alone() {
    let lazuli = Lazuli::start().await;
    let table = people(&lazuli).await;
    let entity = table.entity("p", "r");
    let insert = part("POST", "People", "", &document("p", "new"));
    let parts = [
        (insert, "a"),
        (entity.part("PUT", "If-Match: *\r\n", "{}"), "u"),
        (entity.part("MERGE", "If-Match: *\r\n", "{}"), "u"),
        (entity.part("PUT", "", "{}"), "au"),
        (entity.part("PATCH", "", "{}"), "au"),
        (entity.part("DELETE", "If-Match: *\r\n", ""), "d"),
    ];
    for (part, letters) in parts {
        let sent = async |letters: &str| {
            lazuli.tables().batch(std::slice::from_ref(&part)).with_sas(&Sas::table("People", letters).query()).await
        };
        let others: String =
            "raud".chars().filter(|letter| *letter != letters.chars().next().unwrap_or_default()).collect();
        let refused = sent(&others).await.expect(202).text();
        assert!(refused.contains("HTTP/1.1 403") && refused.contains("AuthorizationPermissionMismatch"), "{refused}");
        let done = sent(letters).await.expect(202).text();
        assert!(done.contains("HTTP/1.1 20"), "{done}");
    }
}

#[tokio::test]
async fn a_stored_policy_says_what_a_signature_allows_until_it_is_withdrawn() {
    let lazuli = Lazuli::start().await;
    let table = people(&lazuli).await;
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2099-01-01</Expiry>\
                    <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    table.request("PUT", "?comp=acl").body(policies).await.expect(204);
    let sas = || Sas::table("PEOPLE", "").with("se", "").with("st", "").with("si", "readers").query();
    let entity = table.entity("p", "r");
    let batch = || lazuli.tables().batch(&[entity.part("PUT", "", "{}")]).with_sas(&sas());
    entity.get().with_sas(&sas()).await.expect(200);
    entity.put("{}").with_sas(&sas()).await.refused(403, "AuthorizationPermissionMismatch");
    assert!(batch().await.expect(202).text().contains("AuthorizationPermissionMismatch"));
    table.request("PUT", "?comp=acl").await.expect(204);
    entity.get().with_sas(&sas()).await.refused(403, "AuthenticationFailed");
    batch().await.refused(403, "AuthenticationFailed");
}

#[tokio::test]
async fn roles_are_for_all_tables_or_for_one_also_in_batches() {
    const ANN: &str = "11111111-1111-1111-1111-111111111111";
    const BOB: &str = "33333333-3333-3333-3333-333333333333";
    let of = |principal: &str, role| Assignment { principal: Some(principal.into()), ..Assignment::everybody(role) };
    let one_table =
        Assignment { service: Some(Service::Table), resource: Some("people".into()), ..of(ANN, Role::Contributor) };
    let issuer = Issuer::form_only().over_plain_http().with_tenant(TENANT);
    let issuer = issuer.with_assignment(one_table).with_assignment(of(BOB, Role::Reader));
    let accounts = Accounts::default().with(ACCOUNT, &[KEY]).expect("the published account is one");
    let lazuli = Lazuli::start_admitting(accounts.trusting(issuer)).await;
    let now = lazuli.clock.now().unix_seconds();
    let (ann, bob) = (token(ANN, &[], now), token(BOB, &[], now));
    let table = people(&lazuli).await;
    let other = lazuli.tables().table("Other").await;

    table.entity("p", "r").put("{}").with_token(&ann).await.expect(204);
    table.query("").with_token(&ann).await.expect(200);
    other.query("").with_token(&ann).await.refused(403, "AuthorizationPermissionMismatch");
    table.request("GET", "?comp=acl").with_token(&ann).await.refused(403, "AuthorizationPermissionMismatch");
    table.query("").with_token(&bob).await.expect(200);
    lazuli.tables().list("").with_token(&bob).await.expect(200);
    table.insert(&document("p", "new")).with_token(&bob).await.refused(403, "AuthorizationPermissionMismatch");
    table.query("").header("x-ms-version", "2019-02-02").with_token(&bob).await.expect(200);
    table.query("").header("x-ms-version", "2017-07-29").with_token(&bob).await.refused(403, "AuthenticationFailed");

    let batch = |table: &str, token: &str| {
        lazuli
            .tables()
            .batch(&[part("PUT", &format!("{table}(PartitionKey='p',RowKey='r')"), "", "{}")])
            .with_token(token)
    };
    assert!(batch("People", &ann).await.expect(202).text().contains("HTTP/1.1 204"));
    for (table, token) in [("Other", &ann), ("People", &bob)] {
        let refused = batch(table, token).await.expect(202).text();
        assert!(refused.contains("HTTP/1.1 403") && refused.contains("AuthorizationPermissionMismatch"), "{refused}");
    }
}

#[tokio::test]
async fn what_an_identity_signs_for_a_table_allows_what_the_identity_may() {
    const BOB: &str = "33333333-3333-3333-3333-333333333333";
    let of = |role| Assignment { principal: Some(BOB.into()), ..Assignment::everybody(role) };
    let one_table = Assignment { resource: Some("people".into()), ..of(Role::Contributor) };
    let issuer = Issuer::form_only().over_plain_http().with_tenant(TENANT);
    let issuer = issuer.with_assignment(one_table).with_assignment(of(Role::Delegator));
    let accounts = Accounts::default().with(ACCOUNT, &[KEY]).expect("the published account is one");
    let lazuli = Lazuli::start_admitting(accounts.trusting(issuer)).await;
    let table = people(&lazuli).await;
    let other = lazuli.tables().table("Other").await;

    let bob = token(BOB, &[], lazuli.clock.now().unix_seconds());
    let expiry = date::iso8601(lazuli.clock.now().after(Duration::from_secs(60 * 60)));
    let ask = |version: &str| {
        let request = lazuli.tables().request("POST", "/?restype=service&comp=userdelegationkey");
        request.header("x-ms-version", version).body(format!("<KeyInfo><Expiry>{expiry}</Expiry></KeyInfo>"))
    };
    ask("2025-07-05").await.refused(403, "AuthenticationFailed");
    ask("2025-05-05").with_token(&bob).await.refused(400, "InvalidHeaderValue");
    let key = ask("2025-07-05").with_token(&bob).await.expect(200).text();
    let element = |name: &str| {
        let rest = key.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once("</"));
        rest.map(|(text, _)| text.to_owned()).unwrap_or_default()
    };
    assert_eq!(element("SignedService"), "t");
    let sas = |name: &str| Sas::table(name, "raud").with("sv", "2025-07-05");
    let whole = sas("People").delegated(element);
    let part = sas("People").with("spk", "p").with("epk", "p").with("erk", "r").delegated(element);

    let batch = |partition: &str, sas: &str| {
        let put = table.entity(partition, "r").part("PUT", "", "{}");
        lazuli.tables().batch(&[put]).with_sas(sas)
    };
    for sas in [&whole, &part] {
        table.entity("p", "r").get().with_sas(sas).await.expect(200);
        table.entity("p", "r").put("{}").with_sas(sas).await.expect(204);
        assert!(batch("p", sas).await.expect(202).text().contains("HTTP/1.1 204"));
        lazuli.tables().list("").with_sas(sas).await.refused(403, "AuthorizationFailure");
        other.query("").with_sas(sas).await.refused(403, "AuthenticationFailed");
    }
    table.entity("q", "r").put("{}").with_sas(&whole).await.expect(204);
    assert_eq!(column(&table.query("").with_sas(&part).await.expect(200), "PartitionKey"), ["p"]);
    table.entity("q", "r").put("{}").with_sas(&part).await.refused(403, "AuthorizationFailure");
    assert!(batch("q", &part).await.expect(202).text().contains("\"AuthorizationFailure\""));

    // Bob may do nothing in the other table, and neither may who has his signature.
    let elsewhere = sas("Other").delegated(element);
    other.query("").with_sas(&elsewhere).await.refused(403, "AuthorizationPermissionMismatch");
    let put = other.entity("p", "r").part("PUT", "", "{}");
    let refused = lazuli.tables().batch(&[put]).with_sas(&elsewhere).await.expect(202).text();
    assert!(refused.contains("HTTP/1.1 403") && refused.contains("AuthorizationPermissionMismatch"), "{refused}");
    let early = sas("People").with("sv", "2024-11-04").delegated(element);
    table.query("").with_sas(&early).await.refused(403, "AuthenticationFailed");
    table.query("").with_sas(&whole.replace("skoid=33", "skoid=34")).await.refused(403, "AuthenticationFailed");
    lazuli.clock.advance(Duration::from_secs(61 * 60));
    table.query("").with_sas(&whole).await.refused(403, "AuthenticationFailed");
}
