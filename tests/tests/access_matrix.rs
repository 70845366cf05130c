//! Every operation of the route table against every kind of credentials: who may, may, and nobody else.

#![expect(clippy::panic, reason = "a test that cannot go on fails loudly")]

use std::collections::BTreeMap;

use lazuli_api::blob::ROUTES;
use lazuli_api::route::{Marker, Route, Selector, Verb};
use lazuli_api::target::Level;
use lazuli_tests::client::{ACCOUNT, Credentials};
use lazuli_tests::harness::Lazuli;
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::{Answer, Request};

/// All letters that a signature may have.
const LETTERS: &str = "racwdxyltfmeopiu";

/// Of each operation: resource types, any of which an account SAS must name; sets of letters, any of which suffices, but
/// whole; and whether a service SAS can have them. An operation without types is closed to every SAS.
/// <https://learn.microsoft.com/rest/api/storageservices/create-account-sas#account-sas-permissions-by-operation>
const ALLOWED: &str = "
Service_ListContainersSegment s l account
Service_GetProperties s r account
Service_SetProperties s w account
Service_GetStatistics s r account
Service_FilterBlobs so f account
Service_GetUserDelegationKey - - -
Service_GetAccountInfo sco * both
Service_SubmitBatch sco * both
Container_GetAccountInfo sco * both
Container_SubmitBatch sco * both
Container_Create c c,w account
Container_GetProperties c r account
Container_GetMetadata c r account
Container_SetMetadata c w account
Container_GetAccessPolicy - - -
Container_SetAccessPolicy - - -
Container_Delete c d account
Container_Restore c w account
Container_Rename - - -
Container_AcquireLease c w account
Container_RenewLease c w account
Container_ChangeLease c w account
Container_ReleaseLease c w account
Container_BreakLease c w,d account
Container_FilterBlobs co f both
Container_ListBlobFlatSegment c l both
Container_ListBlobHierarchySegment c l both
Blob_Download o r both
Blob_GetProperties o r both
Blob_GetMetadata o r both
Blob_SetMetadata o w both
Blob_SetHTTPHeaders o w both
Blob_Delete o d both
Blob_AcquireLease o w both
Blob_RenewLease o w both
Blob_ChangeLease o w both
Blob_ReleaseLease o w both
Blob_BreakLease o w,d both
Blob_CreateSnapshot o c,w both
Blob_StartCopyFromURL o c,w both
Blob_CopyFromURL o c,w both
Blob_AbortCopyFromURL o w both
Blob_Undelete o w both
Blob_SetTier o w both
Blob_GetTags o t both
Blob_SetTags o t both
Blob_SetExpiry o w both
Blob_SetImmutabilityPolicy o i both
Blob_DeleteImmutabilityPolicy o i both
Blob_SetLegalHold o i both
Blob_Query o r both
Blob_GetAccountInfo sco * both
BlockBlob_Upload o c,w both
BlockBlob_PutBlobFromUrl o c,w both
BlockBlob_StageBlock o c,w both
BlockBlob_StageBlockFromURL o c,w both
BlockBlob_CommitBlockList o c,w both
BlockBlob_GetBlockList o r both
AppendBlob_Create o c,w both
AppendBlob_AppendBlock o a,w both
AppendBlob_AppendBlockFromUrl o a,w both
AppendBlob_Seal o w both
PageBlob_Create o c,w both
PageBlob_UploadPages o w both
PageBlob_ClearPages o w both
PageBlob_UploadPagesFromURL o w both
PageBlob_GetPageRanges o r both
PageBlob_GetPageRangesDiff o r both
PageBlob_Resize o w both
PageBlob_UpdateSequenceNumber o w both
PageBlob_CopyIncremental o c,w both
";

/// What a signature must say for an operation.
#[derive(Clone, Copy, Debug)]
struct Needs {
    types: &'static str,
    /// None if any letters do.
    letters: Option<&'static str>,
    service: bool,
}

fn allowed() -> BTreeMap<&'static str, Option<Needs>> {
    let line = |line: &'static str| {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap_or_default();
        let (name, types, letters) = (word(), word(), word());
        let needs = Needs { types, letters: Some(letters).filter(|&set| set != "*"), service: word() == "both" };
        (name, Some(needs).filter(|needs| needs.types != "-"))
    };
    ALLOWED.lines().filter(|text| !text.is_empty()).map(line).collect()
}

/// A request that fits the route, on a container and a blob that are there.
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
        Level::Service => format!("/{ACCOUNT}/"),
        Level::Container => format!("/{ACCOUNT}/photos"),
        Level::Blob => format!("/{ACCOUNT}/photos/a.jpg"),
        other => panic!("the Blob service has no {other:?}"),
    };
    let selected = [("restype", route.restype), ("comp", route.comp)];
    let mut query: Vec<_> = selected
        .iter()
        .filter_map(|(name, selector)| match selector {
            Selector::Is(value) => Some(format!("{name}={value}")),
            Selector::Absent | Selector::Any => None,
        })
        .collect();
    let mut headers = Vec::new();
    let source = format!(
        "http://{}/{ACCOUNT}/photos/b.jpg?{}",
        lazuli.client().address(),
        Sas::blob("photos", "b.jpg", "r").query()
    );
    for marker in route.markers {
        match *marker {
            Marker::Header("x-ms-copy-source") => headers.push(("x-ms-copy-source", source.as_str())),
            Marker::Header(name) => headers.push((name, "x")),
            Marker::HeaderIs(name, value) => headers.push((name, value)),
            Marker::Query(name) => query.push(format!("{name}=x")),
            Marker::QueryIs(name, value) => query.push(format!("{name}={value}")),
            Marker::NoHeader(_) | Marker::HeaderIsNot(..) | Marker::NoQuery(_) | Marker::QueryIsNot(..) => {}
        }
    }
    let request = lazuli.client().request(method, format!("{path}?{}", query.join("&")));
    headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
}

/// Whether the request came through, whatever became of it then. What is answered to HEAD has its code in a header.
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
        lazuli.container("photos").await.blob("a.jpg").put("one").await.expect(201);
        let ask = || request(&lazuli, route);
        let sent = async |sas: Sas| ask().with_sas(&sas.query()).await;
        if name == "Preflight" {
            let answer = ask().unsigned().await;
            came_through(&answer, name);
            continue;
        }
        let needs = *allowed.get(name).unwrap_or_else(|| panic!("{name} is not in the table of this test"));

        // Nobody's.
        ask().unsigned().await.refused(401, "NoAuthenticationInformation");
        let stranger = Credentials::new(ACCOUNT, "AAAA").unwrap();
        ask().signed_by(stranger.clone()).await.refused(403, "AuthenticationFailed");
        let all = || Sas::account(LETTERS, "b", "sco");
        let forged = ask().with_sas(&all().signed_by(&stranger));
        forged.await.refused(403, "AuthenticationFailed");
        sent(all().with("se", "2020-01-02")).await.refused(403, "AuthenticationFailed");
        sent(all().with("st", "2098-01-01")).await.refused(403, "AuthenticationFailed");

        // The owner's.
        let Some(Needs { types, letters, service }) = needs else {
            sent(all()).await.refused(403, "AuthorizationFailure");
            continue;
        };
        came_through(&ask().await, name);

        // An account SAS.
        sent(Sas::account(LETTERS, "qtf", "sco")).await.refused(403, "AuthorizationServiceMismatch");
        let other_types: String = "sco".chars().filter(|one| !types.contains(*one)).collect();
        if !other_types.is_empty() {
            sent(Sas::account(LETTERS, "b", &other_types)).await.refused(403, "AuthorizationResourceTypeMismatch");
        }
        for kind in types.chars().map(String::from) {
            for set in letters.unwrap_or("r,w,d").split(',') {
                came_through(&sent(Sas::account(set, "b", &kind)).await, name);
            }
        }
        let others = |letters: &str| LETTERS.chars().filter(|one| !letters.contains(*one)).collect::<String>();
        if let Some(letters) = letters {
            let lacking = sent(Sas::account(&others(letters), "b", "sco")).await;
            lacking.refused(403, "AuthorizationPermissionMismatch");
        }

        // A service SAS, which never reaches the service itself.
        if route.level == Level::Service {
            sent(Sas::container("photos", LETTERS)).await.refused(403, "AuthenticationFailed");
            continue;
        }
        let whole = |permissions: &str| match route.level {
            Level::Blob => vec![Sas::container("photos", permissions), Sas::blob("photos", "a.jpg", permissions)],
            _ => vec![Sas::container("photos", permissions)],
        };
        sent(Sas::container("other", LETTERS)).await.refused(403, "AuthenticationFailed");
        sent(Sas::blob("photos", "b.jpg", LETTERS)).await.refused(403, "AuthenticationFailed");
        for sas in whole(letters.unwrap_or("r").split(',').next().unwrap_or_default()) {
            if service {
                came_through(&sent(sas).await, name);
            } else {
                sent(sas).await.refused(403, "AuthorizationFailure");
            }
        }
        if let Some(letters) = letters.filter(|_| service) {
            for sas in whole(&others(letters)) {
                sent(sas).await.refused(403, "AuthorizationPermissionMismatch");
            }
        }
    }
}

#[tokio::test]
async fn every_creation_leaves_what_exists_to_those_who_may_write() {
    let allowed = allowed();
    let creates = |route: &&Route| {
        let needs = allowed.get(route.operation.name).copied().flatten();
        route.level == Level::Blob && needs.is_some_and(|needs| needs.letters == Some("c,w"))
    };
    for route in ROUTES.iter().flat_map(|table| table.iter()).filter(creates) {
        let name = route.operation.name;
        let lazuli = Lazuli::start().await;
        let container = lazuli.container("photos").await;
        container.blob("b.jpg").put("two").await.expect(201);
        let blob = container.blob("a.jpg");
        let etag = blob.put("one").await.expect(201).etag();
        let answer = request(&lazuli, route)
            .header("x-ms-blob-content-length", if name == "PageBlob_Create" { "512" } else { "" })
            .with_sas(&Sas::container("photos", "c").query())
            .await;
        // Neither leaves a mark on the blob.
        let harmless = ["Blob_CreateSnapshot", "BlockBlob_StageBlock", "BlockBlob_StageBlockFromURL"].contains(&name);
        assert!(harmless || !answer.status.is_success(), "{name}: {answer:?}");
        let kept = blob.get().await.expect(200);
        assert_eq!((kept.text(), kept.etag()), ("one".to_owned(), etag), "{name}");
    }
}
