//! Identities: bearer tokens, roles, and what identities sign for others.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use std::ffi::OsString;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use lazuli_api::auth::accounts::Accounts;
use lazuli_api::auth::bearer::Issuer;
use lazuli_api::auth::bearer::roles::{Assignment, Role};
use lazuli_api::wire::date;
use lazuli_engine::clock::{Clock as _, SystemClock};
use lazuli_tests::client::{ACCOUNT, KEY};
use lazuli_tests::harness::Lazuli;
use lazuli_tests::process::{Start, within};
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::{Answer, Request};
use lazuli_tests::token::{TENANT, token};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use warp::Filter as _;

const ANN: &str = "11111111-1111-1111-1111-111111111111";
const ISSUER: &str = "https://issuer.example/";
const BOB: &str = "33333333-3333-3333-3333-333333333333";

fn assignment(principal: &str, role: Role) -> Assignment {
    Assignment { principal: Some(principal.to_owned()), ..Assignment::everybody(role) }
}

/// A server that believes in tokens: who is of the staff reads everywhere, Ann writes photos, Bob delegates.
async fn start() -> Lazuli {
    let issuer = Issuer::form_only()
        .over_plain_http()
        .with_tenant(TENANT)
        .with_assignment(assignment("staff", Role::Reader))
        .with_assignment(Assignment { resource: Some("photos".to_owned()), ..assignment(ANN, Role::Contributor) })
        .with_assignment(assignment(BOB, Role::Delegator));
    let accounts = Accounts::default().with(ACCOUNT, &[KEY]).expect("the published account is one");
    Lazuli::start_admitting(accounts.trusting(issuer)).await
}

fn token_of(lazuli: &Lazuli, object: &str, groups: &[&str]) -> String {
    token(object, groups, lazuli.clock.now().unix_seconds())
}

#[tokio::test]
async fn roles_say_what_a_token_is_good_for() {
    let lazuli = start().await;
    let (photos, others) = (lazuli.container("photos").await, lazuli.container("others").await);
    let (photo, other) = (photos.blob("a"), others.blob("a"));
    let ann = token_of(&lazuli, ANN, &[]);
    let staff = token_of(&lazuli, BOB, &["staff"]);
    photo.put("one").with_token(&ann).await.expect(201);
    other.put("one").with_token(&ann).await.refused(403, "AuthorizationPermissionMismatch");
    other.put("one").await.expect(201);
    other.get().with_token(&ann).await.refused(403, "AuthorizationPermissionMismatch");
    for blob in [&photo, &other] {
        assert_eq!(blob.get().with_token(&staff).await.expect(200).text(), "one");
        blob.delete().with_token(&staff).await.refused(403, "AuthorizationPermissionMismatch");
    }
    photos.request("GET", "&comp=acl").with_token(&ann).await.refused(403, "AuthorizationPermissionMismatch");
    photos.list("").with_token(&ann).await.expect(200);
}

#[tokio::test]
async fn a_token_is_good_for_what_is_copied_within_its_account() {
    let lazuli = start().await;
    let (photos, others) = (lazuli.container("photos").await, lazuli.container("others").await);
    for container in [&photos, &others] {
        container.blob("a").put("one").await.expect(201);
    }
    let (ann, staff) = (token_of(&lazuli, ANN, &[]), token_of(&lazuli, ANN, &["staff"]));
    let copy = |from: &str, kind: (&str, &str), token: &str| {
        let url = format!("http://{}/{ACCOUNT}/{from}", lazuli.client().address());
        let request = photos.blob("copy").request("PUT", "").header("x-ms-copy-source", url);
        request.header(kind.0, kind.1).with_token(token)
    };
    for (name, value, status) in
        [("x-ms-requires-sync", "true", 202), ("x-ms-requires-sync", "", 202), ("x-ms-blob-type", "BlockBlob", 201)]
    {
        copy("photos/a", (name, value), &ann).await.expect(status);
        copy("others/a", (name, value), &staff).await.expect(status);
        let refused = copy("others/a", (name, value), &ann).await.refused(403, "CannotVerifyCopySource");
        assert_eq!(refused.header("x-ms-copy-source-error-code"), "AuthorizationPermissionMismatch");
    }
}

#[tokio::test]
async fn a_token_that_will_not_do_is_answered_with_a_challenge() {
    let lazuli = start().await;
    let blob = lazuli.container("photos").await.blob("a");
    let challenged = |answer: Answer| {
        let challenge = answer.header("www-authenticate").to_owned();
        let uri = format!("Bearer authorization_uri=https://login.microsoftonline.com/{TENANT}/oauth2/authorize ");
        assert!(
            challenge.starts_with(&uri) && challenge.ends_with("resource_id=https://storage.azure.com"),
            "{challenge}"
        );
    };
    challenged(blob.get().unsigned().await.refused(401, "NoAuthenticationInformation"));
    let late = token(ANN, &[], lazuli.clock.now().unix_seconds() - 7200);
    for token in ["", "x", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", &late] {
        challenged(blob.get().with_token(token).await.refused(401, "InvalidAuthenticationInfo"));
    }
    let ann = token_of(&lazuli, ANN, &[]);
    blob.get().with_token(&ann).header("x-ms-version", "2017-07-29").await.refused(403, "AuthenticationFailed");
    let deaf = Lazuli::start().await;
    let refused = deaf.existing("photos").blob("a").get().with_token(&ann).await;
    assert!(refused.refused(401, "InvalidAuthenticationInfo").header("www-authenticate").contains("/common/"));
}

/// Asks for a key that holds for a day.
fn key_request(lazuli: &Lazuli) -> Request {
    let day = |days: u64| date::iso8601(lazuli.clock.now().after(Duration::from_secs(days * 24 * 60 * 60)));
    let body = format!("<KeyInfo><Start>{}</Start><Expiry>{}</Expiry></KeyInfo>", day(0), day(1));
    lazuli.client().request("POST", format!("/{ACCOUNT}/?restype=service&comp=userdelegationkey")).body(body)
}

/// The text of an element of an answer; empty if it is not there.
fn element(answer: &Answer, name: &str) -> String {
    let text = answer.text();
    let rest = text.split(&format!("<{name}>")).nth(1);
    rest.and_then(|rest| rest.split("</").next()).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn what_an_identity_signs_allows_what_the_identity_may() {
    let lazuli = start().await;
    let blob = lazuli.container("photos").await.blob("a");
    blob.put("one").await.expect(201);
    key_request(&lazuli).await.refused(403, "AuthenticationFailed");
    let sas = Sas::account("r", "b", "s").query();
    key_request(&lazuli).with_sas(&sas).await.refused(403, "AuthorizationFailure");
    let ann = key_request(&lazuli).with_token(&token_of(&lazuli, ANN, &[])).await;
    ann.refused(403, "AuthorizationPermissionMismatch");

    // Bob may delegate and is of the staff, whose members read.
    let key = key_request(&lazuli).with_token(&token_of(&lazuli, BOB, &["staff"])).await.expect(200);
    assert_eq!(element(&key, "SignedOid"), BOB);
    assert_eq!(element(&key, "SignedTid"), TENANT);
    assert_eq!(element(&key, "SignedService"), "b");
    let signed = |permissions: &str, version: &'static str| {
        Sas::blob("photos", "a", permissions).with("sv", version).delegated(|name| element(&key, name))
    };
    for version in ["2020-12-06", "2024-11-04", "2025-07-05"] {
        assert_eq!(blob.get().with_sas(&signed("rw", version)).await.expect(200).text(), "one");
    }
    let writing = signed("rw", "2024-11-04");
    blob.put("two").with_sas(&writing).await.refused(403, "AuthorizationPermissionMismatch");
    blob.get().with_sas(&signed("w", "2024-11-04")).await.refused(403, "AuthorizationPermissionMismatch");
    let forged = writing.replace("skoid=33", "skoid=34");
    blob.get().with_sas(&forged).await.refused(403, "AuthenticationFailed");
    let stretched = writing.replace("skv=", "skv=2025%2D07%2D05&x=");
    blob.get().with_sas(&stretched).await.refused(403, "AuthenticationFailed");

    // A later token of Bob's says that he left the staff.
    key_request(&lazuli).with_token(&token_of(&lazuli, BOB, &[])).await.expect(200);
    blob.get().with_sas(&writing).await.refused(403, "AuthorizationPermissionMismatch");

    lazuli.clock.advance(Duration::from_secs(25 * 60 * 60));
    blob.get().with_sas(&writing).await.refused(403, "AuthenticationFailed");
}

#[tokio::test]
async fn what_is_signed_for_one_user_is_used_by_that_user() {
    let lazuli = start().await;
    let blob = lazuli.container("photos").await.blob("a");
    blob.put("one").await.expect(201);
    let key = key_request(&lazuli).with_token(&token_of(&lazuli, BOB, &["staff"])).await.expect(200);
    let sas = Sas::blob("photos", "a", "r").with("sv", "2025-07-05").with("sduoid", ANN);
    let query = sas.delegated(|name| element(&key, name));
    let (ann, bob) = (token_of(&lazuli, ANN, &[]), token_of(&lazuli, BOB, &[]));
    blob.get().with_sas(&query).with_token(&ann).await.expect(200);
    blob.get().with_sas(&query).with_token(&bob).await.refused(403, "AuthenticationFailed");
    blob.get().with_sas(&query).with_token("x").await.refused(401, "InvalidAuthenticationInfo");
    blob.get().with_sas(&query).await.refused(403, "AuthenticationFailed");
}

#[tokio::test]
async fn a_key_is_asked_for_in_order() {
    let lazuli = start().await;
    let bob = token_of(&lazuli, BOB, &[]);
    let ask = |body: &str| key_request(&lazuli).body(body.to_owned()).with_token(&bob);
    ask("").await.refused(400, "InvalidXmlDocument");
    ask("<KeyInfo></KeyInfo>").await.refused(400, "MissingRequiredXmlNode");
    ask("<KeyInfo><Expiry>2999-01-01</Expiry></KeyInfo>").await.refused(400, "InvalidXmlNodeValue");
    ask("<KeyInfo><Expiry>never</Expiry></KeyInfo>").await.refused(400, "InvalidXmlNodeValue");
    let old = key_request(&lazuli).header("x-ms-version", "2018-03-28").with_token(&bob);
    old.await.refused(400, "InvalidHeaderValue");
}

#[tokio::test]
async fn accounts_and_roles_follow_their_file_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("lazuli.toml");
    let write = |text: &str| std::fs::write(&config, text).unwrap();
    let reader = format!("[oauth]\nmode = \"basic\"\n[[oauth.roles]]\nprincipal = \"{ANN}\"\nrole = \"reader\"\n");
    write(&format!("[accounts]\n{ACCOUNT} = {{}}\n{reader}"));
    let start = Start::bare().argument("--location").argument(directory.path().join("data"));
    let free = ["--blobPort", "0", "--queuePort", "0", "--tablePort", "0", "--config"];
    let server = free.into_iter().fold(start, Start::argument).argument(&config).ready().await;
    let container = server.service().container("photos").await;
    let blob = container.blob("a");
    blob.put("one").await.expect(201);
    let ann = token(ANN, &[], SystemClock.now().unix_seconds());
    blob.get().with_token(&ann).await.expect(200);
    blob.put("two").with_token(&ann).await.refused(403, "AuthorizationPermissionMismatch");

    write(&format!("[accounts]\n{ACCOUNT} = {{ versioning = true }}\n{}", reader.replace("reader", "contributor")));
    server.logged(&["accounts and roles were read again"]).await;
    let put = blob.put("two").with_token(&ann).await.expect(201);
    assert!(!put.header("x-ms-version-id").is_empty(), "what is set for the account follows too");

    // A fault in the file changes nothing.
    write("[accounts]\nnobody = [");
    server.logged(&["accounts and roles stay as they are"]).await;
    blob.get().await.expect(200);

    write(&format!("[accounts]\n{ACCOUNT} = [\"AAAA\"]\n"));
    within("the other key", async { while blob.get().await.code() != "AuthenticationFailed" {} }).await;
    blob.get().with_token(&ann).await.refused(401, "InvalidAuthenticationInfo");
}

#[tokio::test]
async fn a_file_that_would_open_the_server_to_everybody_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("lazuli.toml");
    let own = format!("[accounts]\n{ACCOUNT} = [\"AAAA\"]\n");
    std::fs::write(&config, &own).unwrap();
    let start = Start::at(&directory.path().join("data")).argument("--config").argument(&config);
    let server = start.argument("--tableHost").argument("0.0.0.0").ready().await;
    let blob = server.service().existing("photos").blob("a");
    let unchecked = format!("{own}[oauth]\nmode = \"basic\"\n");
    for (open, why) in [("", "is known to everybody"), (&unchecked, "everybody can make a token")] {
        std::fs::write(&config, open).unwrap();
        server.logged(&["accounts and roles stay as they are", why]).await;
        blob.get().await.refused(403, "AuthenticationFailed");
        let ann = token(ANN, &[], SystemClock.now().unix_seconds());
        blob.get().with_token(&ann).await.refused(401, "InvalidAuthenticationInfo");
    }
}

#[tokio::test]
async fn a_file_that_is_gone_is_no_wish_for_the_well_known_account() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    std::fs::create_dir(&config).unwrap();
    std::fs::write(config.join("lazuli.toml"), format!("[accounts]\n{ACCOUNT} = [\"AAAA\"]\n")).unwrap();
    let start = Start::at(&directory.path().join("data"));
    let there = [OsString::from("-C"), directory.path().into()];
    let server = start.under("env", there).ready().await;
    let blob = server.service().existing("photos").blob("a");
    blob.get().await.refused(403, "AuthenticationFailed");
    std::fs::remove_file(config.join("lazuli.toml")).unwrap();
    server.logged(&["accounts and roles stay as they are", "lazuli.toml"]).await;
    blob.get().await.refused(403, "AuthenticationFailed");
}

/// An issuer that signs tokens with ES256 and publishes its keys, once it is there.
struct Publisher {
    key: EncodingKey,
    set: String,
}

impl Publisher {
    fn new() -> Self {
        let pair = rcgen::KeyPair::generate().expect("a key is made");
        // The first byte says that both coordinates follow.
        let (x, y) = pair.public_key_raw().split_at(1).1.split_at(32);
        let [x, y] = [x, y].map(|half| URL_SAFE_NO_PAD.encode(half));
        let key = json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": "one", "x": x, "y": y});
        Self { key: EncodingKey::from_ec_der(&pair.serialize_der()), set: json!({"keys": [key]}).to_string() }
    }

    fn token(&self, object: &str) -> String {
        let now = SystemClock.now().unix_seconds();
        let claims = json!({
            "iss": ISSUER, "aud": "https://storage.azure.com", "exp": now + 3600, "tid": TENANT, "oid": object,
        });
        let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, &claims, &self.key).expect("a token is signed")
    }

    /// Publishes its keys at `listener` until the task is aborted.
    fn publish(&self, listener: TcpListener) -> JoinHandle<()> {
        let set = self.set.clone();
        let address = listener.local_addr().expect("a bound socket has an address");
        let discovery = json!({"issuer": ISSUER, "jwks_uri": format!("http://{address}/keys")}).to_string();
        let keys = warp::path("keys").map(move || set.clone());
        let filter = warp::path(".well-known").map(move || discovery.clone()).or(keys);
        tokio::spawn(warp::serve(filter).incoming(listener).run())
    }
}

#[tokio::test]
async fn keys_that_an_issuer_publishes_are_fetched_and_kept() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("lazuli.toml");
    let write = |role: &str| {
        let text = format!(
            "[accounts]\n{ACCOUNT} = {{}}\n[oauth]\nissuer = \"{ISSUER}\"\n\
             keys = \"http://{address}/.well-known/openid-configuration\"\n\
             [[oauth.roles]]\nprincipal = \"{ANN}\"\nrole = \"{role}\"\n"
        );
        std::fs::write(&config, text).unwrap();
    };
    write("reader");
    let start = Start::bare().argument("--location").argument(directory.path().join("data"));
    let free = ["--blobPort", "0", "--queuePort", "0", "--tablePort", "0", "--config"];
    let server = free.into_iter().fold(start, Start::argument).argument(&config).ready().await;
    server.logged(&["the keys of tokens cannot be fetched"]).await;

    // Who has no token is not concerned; who has one is to come again.
    let blob = server.service().container("photos").await.blob("a");
    blob.put("one").await.expect(201);
    let (publisher, stranger) = (Publisher::new(), Publisher::new());
    let ann = publisher.token(ANN);
    blob.get().with_token(&ann).await.refused(503, "ServerBusy");
    blob.get().with_token("x").await.refused(401, "InvalidAuthenticationInfo");

    let published = publisher.publish(TcpListener::bind(address).await.unwrap());
    within("the keys", async { while blob.get().with_token(&ann).await.status != 200 {} }).await;
    blob.get().with_token(&stranger.token(ANN)).await.refused(401, "InvalidAuthenticationInfo");
    blob.put("two").with_token(&ann).await.refused(403, "AuthorizationPermissionMismatch");

    // They outlast the issuer's absence, and other roles.
    published.abort();
    let _ = published.await;
    write("contributor");
    server.logged(&["accounts and roles were read again"]).await;
    blob.put("two").with_token(&ann).await.expect(201);
}
