use http::{HeaderMap, HeaderName, Method};
use lazuli_engine::access::{AccessControl, AccessPolicy, PublicAccess};
use lazuli_engine::blob::{OnContainer, container};
use lazuli_engine::clock::HeldClock;
use lazuli_engine::condition::Conditions;
use lazuli_engine::names::KeyText;
use lazuli_engine::table::EntityKey;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::auth::accounts::{Accounts, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use crate::auth::{Grant, authorize, sign};
use crate::fields::Fields;
use crate::head::HeaderCase;
use crate::operation::Permission;
use crate::target::Target;

/// The key that an identity was given in the vectors.
const DELEGATION_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// Within the time of every vector.
const NOW: Timestamp = Timestamp::from_unix_seconds(1_785_542_400 + 3600);

fn account(key: &str) -> Accounts {
    Accounts::default().with(DEVELOPMENT_ACCOUNT, &[key]).unwrap()
}

/// A request for `target` with a signature, ready to be judged.
struct Signed {
    service: Service,
    method: Method,
    target: Target,
    fields: Fields,
    needs: Permission,
    now: Timestamp,
    peer: Peer,
}

impl Signed {
    fn new(service: Service, target: &str, headers: &[(&str, &str)]) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap()))
            .collect();
        let fields = Fields::parse(headers, Some(query), HeaderCase::default()).unwrap();
        let target = Target::parse(service, None, path, &fields).unwrap();
        let peer = Peer::at("10.0.0.5".parse().unwrap(), true);
        Self { service, method: Method::GET, target, fields, needs: Permission::Read, now: NOW, peer }
    }

    fn blob(target: &str) -> Self {
        Self::new(Service::Blob, &format!("/{DEVELOPMENT_ACCOUNT}/{target}"), &[])
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            service: self.service,
            method: &self.method,
            target: &self.target,
            fields: &self.fields,
            needs: self.needs,
            version: Version::NEWEST,
            now: self.now,
            peer: self.peer,
            strict: false,
        }
    }

    /// The text that a signature of this request covers.
    fn text(&self) -> String {
        let form = Form::read(&self.fields, self.service, false).unwrap();
        text::text(&form, self.asked()).unwrap()
    }

    async fn judged(&self, engine: &Engine) -> Result<Grant, Problem> {
        authorize(&account(DEVELOPMENT_KEY), engine, self.asked()).await
    }
}

/// `target`, a blob or container with a query that lacks `sig`, signed with the account's key.
fn signed(service: Service, target: &str) -> Signed {
    let path = format!("/{DEVELOPMENT_ACCOUNT}/{target}");
    let placeholder = base64(&[0; 32]);
    let text = Signed::new(service, &format!("{path}&sig={placeholder}"), &[]).text();
    let accounts = account(DEVELOPMENT_KEY);
    let dev = accounts.get(&lazuli_engine::names::AccountName::parse(DEVELOPMENT_ACCOUNT).unwrap()).unwrap();
    let signature = base64(&sign(&dev.keys()[0], &text));
    Signed::new(service, &format!("{path}&sig={signature}"), &[])
}

/// In Base64, as it stands in a URL.
fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes).replace('+', "%2B").replace('/', "%2F")
}

async fn engine() -> Engine {
    Engine::memory(std::sync::Arc::new(HeldClock::at(NOW))).await.unwrap()
}

fn code<T>(outcome: Result<T, Problem>) -> Result<(), Code> {
    outcome.map(|_| ()).map_err(|problem| problem.code)
}

/// What every service SAS of these tests says unless it says otherwise.
const VALID: &str = "sp=r&st=2026-08-01&se=2026-08-02&sv=2026-10-06";

/// Requests with their texts and signatures, checked against the vendor's own clients.
#[test]
fn known_requests_have_known_texts_and_signatures() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("vectors.json")).unwrap();
    for vector in &vectors {
        let text = |name: &str| vector[name].as_str().unwrap();
        let key = if text("key") == "account" { DEVELOPMENT_KEY } else { DELEGATION_KEY };
        let accounts = account(key);
        let dev = accounts.get(&lazuli_engine::names::AccountName::parse(DEVELOPMENT_ACCOUNT).unwrap()).unwrap();
        let mac = sign(&dev.keys()[0], text("stringToSign"));
        assert_eq!(base64(&mac), base64url(text("signature")), "{}", text("id"));
        // File shares are not served, and one container has a name that is too short: there is no request to see.
        let Some(service) = vector["service"].as_str() else { continue };
        let service =
            [Service::Blob, Service::Queue, Service::Table].into_iter().find(|one| one.name() == service).unwrap();
        let headers: Vec<(&str, &str)> = vector["headers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()))
            .collect();
        let request = Signed::new(service, text("target"), &headers);
        assert_eq!(request.text(), text("stringToSign"), "{}", text("id"));
        let form = Form::read(&request.fields, service, true).unwrap();
        assert_eq!(form.signature, mac, "{}", text("id"));
    }
}

fn base64url(text: &str) -> String {
    text.replace('+', "%2B").replace('/', "%2F")
}

#[tokio::test]
async fn a_signature_opens_what_it_is_for_and_nothing_else() {
    let engine = engine().await;
    let cases = [
        ("mycontainer/dir/blob?sr=b", "mycontainer/dir/blob", Ok(())),
        ("mycontainer/dir/blob?sr=b", "mycontainer/dir/other", Err(Code::AuthenticationFailed)),
        ("mycontainer/dir/blob?sr=b", "mycontainer/dir", Err(Code::AuthenticationFailed)),
        ("mycontainer/any?sr=c", "mycontainer/dir/blob", Ok(())),
        ("mycontainer/any?sr=c", "other/dir/blob", Err(Code::AuthenticationFailed)),
        ("mycontainer/d1/d2/x?sr=d&sdd=2", "mycontainer/d1/d2/deep/blob", Ok(())),
        ("mycontainer/d1/d2/x?sr=d&sdd=2", "mycontainer/d1/d2", Ok(())),
        ("mycontainer/d1/d2/x?sr=d&sdd=2", "mycontainer/d1/d2x/blob", Err(Code::AuthenticationFailed)),
        ("mycontainer/d1/d2/x?sr=d&sdd=2", "mycontainer/d1", Err(Code::AuthenticationFailed)),
    ];
    for (given, used, expected) in cases {
        let (_, query) = given.split_once('?').unwrap();
        let right = signed(Service::Blob, &format!("{given}&{VALID}"));
        let signature = base64url(right.fields.query_opt("sig").unwrap());
        let request = Signed::blob(&format!("{used}?{query}&{VALID}&sig={signature}"));
        assert_eq!(code(request.judged(&engine).await), expected, "{given} {used}");
    }
}

#[test]
fn a_directory_s_text_names_its_first_segments() {
    let placeholder = base64(&[0; 32]);
    let query = format!("sp=rl&se=2026-08-02&sv=2026-10-06&sr=d&sdd=2&sig={placeholder}");
    for target in ["files/d1/d2/d3/file", "files/d1/d2"] {
        let text = Signed::blob(&format!("{target}?{query}")).text();
        assert!(text.starts_with("rl\n\n2026-08-02\n/blob/devstoreaccount1/files/d1/d2\n"), "{text}");
        assert!(text.ends_with("\n2026-10-06\nd\n\n\n\n\n\n\n"), "{text}");
    }
    for (listed, whole) in [
        ("prefix=d1/d2/", true),
        ("prefix=d1/d2/x", true),
        ("directory=d1/d2", true),
        ("prefix=d1/d2", false),
        ("prefix=d1/", false),
        ("directory=d1", false),
        ("", false),
    ] {
        let request = Signed::new(
            Service::Blob,
            &format!("/{DEVELOPMENT_ACCOUNT}/files?restype=container&{listed}&{query}"),
            &[],
        );
        let form = Form::read(&request.fields, Service::Blob, false).unwrap();
        assert_eq!(text::text(&form, request.asked()).is_ok(), whole, "{listed}");
    }
}

#[tokio::test]
async fn a_snapshot_s_signature_opens_that_snapshot_alone() {
    let engine = engine().await;
    let moment = "2026-07-01T00:00:00.0000000Z";
    for (kind, parameter) in [("bs", "snapshot"), ("bv", "versionid")] {
        let query = format!("sr={kind}&{VALID}");
        let right = signed(Service::Blob, &format!("mycontainer/b?{parameter}={moment}&{query}"));
        assert_eq!(code(right.judged(&engine).await), Ok(()), "{kind}");
        let signature = base64url(right.fields.query_opt("sig").unwrap());
        for other in ["", &format!("{parameter}=2026-07-02T00:00:00.0000000Z&")] {
            let request = Signed::blob(&format!("mycontainer/b?{other}{query}&sig={signature}"));
            assert_eq!(code(request.judged(&engine).await), Err(Code::AuthenticationFailed), "{kind} {other}");
        }
    }
}

#[tokio::test]
async fn what_is_out_of_order_is_refused_before_anything_is_compared() {
    let engine = engine().await;
    let good = base64(&[1; 32]);
    let short = base64(&[1; 31]);
    let cases = [
        (format!("sr=b&sp=r&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "sp is given more than once"),
        (format!("sr=b&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}&sig={good}"), "sig is given more than once"),
        (format!("sr=b&sp=rr&se=2026-08-02&sv=2026-10-06&sig={good}"), "sp is not in the correct format"),
        (format!("sr=b&sp=r&se=9999-99-99&sv=2026-10-06&sig={good}"), "se is not in the correct format"),
        (format!("sr=b&sp=r&st=now&se=2026-08-02&sv=2026-10-06&sig={good}"), "st is not in the correct format"),
        (format!("sr=b&sp=r&se=2026-08-02&sv=2020-01-01&sig={good}"), "sv is not in the correct format"),
        (format!("sr=x&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "sr is not in the correct format"),
        (format!("sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "sr is mandatory"),
        (format!("sr=d&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "sdd is mandatory"),
        (format!("sr=d&sdd=-1&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "sdd is not in the correct format"),
        (format!("sr=bs&sp=r&se=2026-08-02&sv=2018-03-28&sig={good}"), "known from 2018-11-09 on"),
        (format!("sr=b&sp=r&sip=10.0.0.0/8&se=2026-08-02&sv=2026-10-06&sig={good}"), "sip is not in the correct"),
        (format!("sr=b&sp=r&spr=http&se=2026-08-02&sv=2026-10-06&sig={good}"), "spr is not in the correct"),
        (format!("sr=b&sp=r&se=2026-08-02&sv=2026-10-06&sig={short}"), "Signature size is invalid"),
        ("sr=b&sp=r&se=2026-08-02&sv=2026-10-06&sig=%25%25".into(), "sig is not in the correct format"),
        (format!("ss=b&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "srt is mandatory"),
        (format!("ss=bz&srt=o&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "ss is not in the correct format"),
        (format!("ss=b&srt=oo&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "srt is not in the correct format"),
        (format!("ss=b&srt=o&sp=r&se=2026-08-02&sv=2015-02-21&sig={good}"), "known from 2015-04-05 on"),
        (format!("ss=b&srt=o&sp=r&si=a&se=2026-08-02&sv=2026-10-06&sig={good}"), "si cannot be used"),
        (format!("skoid=1&sr=b&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "sktid is mandatory"),
        (format!("sr=b&sp=r&se=2026-08-02&sv=2026-10-06&sig={good}"), "Signature did not match. String to sign used"),
    ];
    for (query, says) in cases {
        let problem = Signed::blob(&format!("mycontainer/b?{query}")).judged(&engine).await.unwrap_err();
        assert_eq!(problem.code, Code::AuthenticationFailed, "{query}");
        assert!(problem.details[0].1.contains(says), "{query}: {problem:?}");
    }
}

#[tokio::test]
async fn a_signature_holds_for_its_time_protocol_and_addresses() {
    let engine = engine().await;
    let at = |text| form::parse_instant(text).unwrap();
    let (inside, outside) = ("10.0.0.9", "10.0.0.10");
    let cases = [
        ("2026-08-01", inside, true, Ok(())),
        ("2026-08-01T23:59:59.9999999Z", inside, true, Ok(())),
        ("2026-07-31T23:59:59.9999999Z", inside, true, Err(Code::AuthenticationFailed)),
        ("2026-08-02", inside, true, Err(Code::AuthenticationFailed)),
        ("2026-08-01", inside, false, Err(Code::AuthorizationProtocolMismatch)),
        ("2026-08-01", outside, false, Err(Code::AuthorizationProtocolMismatch)),
        ("2026-08-01", outside, true, Err(Code::AuthorizationSourceIPMismatch)),
        ("2026-08-01", "::ffff:10.0.0.1", true, Ok(())),
        ("2026-08-01", "::1", true, Err(Code::AuthorizationSourceIPMismatch)),
    ];
    for (now, address, secure, expected) in cases {
        let query = format!("sr=b&{VALID}&sip=10.0.0.1-10.0.0.9&spr=https");
        let mut request = signed(Service::Blob, &format!("mycontainer/b?{query}"));
        request.now = at(now);
        request.peer = Peer::at(address.parse().unwrap(), secure);
        assert_eq!(code(request.judged(&engine).await), expected, "{now} {address} {secure}");
    }
    let mut request = signed(Service::Blob, &format!("mycontainer/b?sr=b&{VALID}&sip=10.0.0.1"));
    request.peer = Peer::default();
    assert_eq!(code(request.judged(&engine).await), Err(Code::AuthorizationSourceIPMismatch));
}

#[tokio::test]
async fn an_account_signature_names_services_types_and_letters() {
    let engine = engine().await;
    let cases = [
        ("ss=b&srt=o&sp=r", Permission::Read, Ok(())),
        ("ss=btqf&srt=sco&sp=rwdxylacuptfi", Permission::Read, Ok(())),
        ("ss=qt&srt=o&sp=r", Permission::Read, Err(Code::AuthorizationServiceMismatch)),
        ("ss=b&srt=sc&sp=r", Permission::Read, Err(Code::AuthorizationResourceTypeMismatch)),
        ("ss=b&srt=o&sp=wdlacup", Permission::Read, Err(Code::AuthorizationPermissionMismatch)),
        ("ss=b&srt=o&sp=rwdxylacuptfi", Permission::Own, Err(Code::AuthorizationFailure)),
        ("ss=b&srt=o&sp=w", Permission::Write, Ok(())),
        ("ss=b&srt=o&sp=c", Permission::Write, Err(Code::AuthorizationPermissionMismatch)),
        ("ss=b&srt=o&sp=c", Permission::Create, Ok(())),
        ("ss=b&srt=o&sp=a", Permission::Add, Ok(())),
        ("ss=b&srt=o&sp=w", Permission::Add, Ok(())),
        ("ss=b&srt=c&sp=", Permission::Account, Err(Code::AuthenticationFailed)),
        ("ss=b&srt=c&sp=w", Permission::Account, Ok(())),
    ];
    for (query, needs, expected) in cases {
        let query = format!("mycontainer/b?{query}&se=2026-08-02&sv=2026-10-06");
        if query.contains("sp=&") {
            let request = Signed { needs, ..Signed::blob(&format!("{query}&sig={}", base64(&[1; 32]))) };
            assert_eq!(code(request.judged(&engine).await), expected, "{query}");
            continue;
        }
        let request = Signed { needs, ..signed(Service::Blob, &query) };
        assert_eq!(code(request.judged(&engine).await), expected, "{query} {needs:?}");
    }
}

#[tokio::test]
async fn who_may_only_create_is_known_to() {
    let engine = engine().await;
    for (letters, only) in [("c", true), ("w", false), ("cw", false)] {
        let query = format!("mycontainer/b?sr=b&sp={letters}&se=2026-08-02&sv=2026-10-06");
        let request = Signed { needs: Permission::Create, ..signed(Service::Blob, &query) };
        assert_eq!(request.judged(&engine).await.unwrap().creates_only(), only, "{letters}");
    }
}

#[tokio::test]
async fn tags_and_protection_need_letters_of_their_own() {
    let engine = engine().await;
    let cases = [
        ("cw", &[("x-ms-tags", "a=b")][..], Err(Code::AuthorizationPermissionMismatch)),
        ("cwt", &[("x-ms-tags", "a=b")], Ok(())),
        ("cw", &[("x-ms-legal-hold", "true")], Err(Code::AuthorizationPermissionMismatch)),
        ("cwi", &[("x-ms-legal-hold", "true")], Ok(())),
        ("cw", &[("x-ms-if-tags", "a='b'")], Err(Code::AuthorizationPermissionMismatch)),
        ("cwt", &[("x-ms-if-tags", "a='b'")], Ok(())),
    ];
    for (letters, headers, expected) in cases {
        let right = signed(Service::Blob, &format!("mycontainer/b?sr=b&sp={letters}&se=2026-08-02&sv=2026-10-06"));
        let signature = base64url(right.fields.query_opt("sig").unwrap());
        let target = format!(
            "/{DEVELOPMENT_ACCOUNT}/mycontainer/b?sr=b&sp={letters}&se=2026-08-02&sv=2026-10-06&sig={signature}"
        );
        let mut request = Signed::new(Service::Blob, &target, headers);
        request.method = Method::PUT;
        request.needs = Permission::Create;
        let grant = request.judged(&engine).await;
        assert_eq!(code(grant.clone()), expected, "{letters} {headers:?}");
        assert_eq!(grant.is_ok_and(|grant| grant.reads_tags()), letters.contains('t'));
    }
}

#[tokio::test]
async fn deletions_need_what_they_delete() {
    let engine = engine().await;
    let cases = [
        ("d", "", Ok(())),
        ("d", "versionid=1&", Err(Code::AuthorizationPermissionMismatch)),
        ("x", "versionid=1&", Ok(())),
        ("x", "", Err(Code::AuthorizationPermissionMismatch)),
        ("d", "snapshot=1&deletetype=permanent&", Err(Code::AuthorizationPermissionMismatch)),
        ("y", "snapshot=1&deletetype=permanent&", Ok(())),
    ];
    for (letters, what, expected) in cases {
        let query = format!("mycontainer/b?{what}sr=b&sp={letters}&se=2026-08-02&sv=2026-10-06");
        let mut request = signed(Service::Blob, &query);
        request.method = Method::DELETE;
        request.needs = Permission::Delete;
        assert_eq!(code(request.judged(&engine).await), expected, "{letters} {what}");
    }
}

#[tokio::test]
async fn a_stored_policy_says_what_the_signature_leaves_out() {
    let engine = engine().await;
    let address = Signed::blob("mycontainer/b").target.container().unwrap();
    container::create(&engine, address.clone(), container::NewContainer::default()).await.unwrap();
    let policy = |id: &str, start: Option<&str>, expiry: Option<&str>, permission: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        AccessPolicy { id: id.into(), start: own(start), expiry: own(expiry), permission: own(permission) }
    };
    let policies = vec![
        policy("all", Some("2026-08-01"), Some("2026-08-02"), Some("r")),
        policy("old", None, Some("2026-08-01"), Some("r")),
        policy("bare", None, None, None),
        policy("letters", None, None, Some("w")),
        policy("offset", Some("2026-08-01T02:00:00+02:00"), Some("2026-08-01T23:00:00.000000000-01:00"), Some("r")),
    ];
    let on = OnContainer { address, conditions: Conditions::default(), lease: None };
    let access = AccessControl { public: PublicAccess::Private, policies };
    container::set_access(&engine, on, access).await.unwrap();
    let cases = [
        ("si=all", Ok(())),
        ("si=all&sp=r", Ok(())),
        ("si=all&se=2026-08-02T00:00Z", Ok(())),
        ("si=all&se=2026-08-03", Err(Code::AuthenticationFailed)),
        ("si=all&sp=rw", Err(Code::AuthenticationFailed)),
        ("si=old", Err(Code::AuthenticationFailed)),
        ("si=bare", Err(Code::AuthenticationFailed)),
        ("si=bare&se=2026-08-02", Err(Code::AuthenticationFailed)),
        ("si=bare&se=2026-08-02&sp=r", Ok(())),
        ("si=letters&se=2026-08-02", Err(Code::AuthorizationPermissionMismatch)),
        ("si=offset", Ok(())),
        ("si=offset&se=2026-08-02", Ok(())),
        ("si=none", Err(Code::AuthenticationFailed)),
    ];
    for (query, expected) in cases {
        let request = signed(Service::Blob, &format!("mycontainer/b?sr=c&sv=2026-10-06&{query}"));
        assert_eq!(code(request.judged(&engine).await), expected, "{query}");
    }
    let request = signed(Service::Blob, "elsewhere/b?sr=c&sv=2026-10-06&si=all");
    assert_eq!(code(request.judged(&engine).await), Err(Code::AuthenticationFailed));
}

#[tokio::test]
async fn only_what_the_signature_covers_is_set_in_answers() {
    let engine = engine().await;
    let headers = "rscc=no-cache&rsct=text%2Fplain";
    let cases = [
        (format!("sr=b&{VALID}&{headers}"), 2),
        (format!("sr=b&{VALID}"), 0),
        (format!("sr=b&sp=r&se=2026-08-02&sv=2012-02-12&{headers}"), 0),
        (format!("ss=b&srt=o&sp=r&se=2026-08-02&sv=2026-10-06&{headers}"), 0),
    ];
    for (query, count) in cases {
        let grant = signed(Service::Blob, &format!("mycontainer/b?{query}")).judged(&engine).await.unwrap();
        assert_eq!(grant.overrides().len(), count, "{query}");
    }
    let grant = signed(Service::Blob, &format!("mycontainer/b?sr=b&{VALID}&ses=mine")).judged(&engine).await.unwrap();
    assert_eq!(grant.encryption_scope(), Some("mine"));
}

#[tokio::test]
async fn a_table_s_signature_says_which_entities() {
    let engine = engine().await;
    let query = "sp=raud&se=2026-08-02&sv=2026-10-06&tn=MyTable&spk=a&srk=1&epk=b";
    let mut request = signed(Service::Table, &format!("?{query}"));
    request.needs = Permission::Any;
    let grant = request.judged(&engine).await.unwrap();
    let key = |partition, row| {
        let text = |text| KeyText::parse(text).unwrap();
        EntityKey { partition: text(partition), row: text(row) }
    };
    assert!(grant.entities().is_some_and(|range| range.contains(&key("b", "9")) && !range.contains(&key("a", "0"))));
    assert_eq!(grant.table(), Some("MyTable"));
    let upsert = grant.check(Permission::Upsert, Service::Table, crate::target::Level::Entity);
    assert_eq!(upsert.map_err(|problem| problem.code), Ok(()));
    let odd = Signed::new(Service::Table, &format!("/{DEVELOPMENT_ACCOUNT}/?{query}%2F&sig={}", base64(&[1; 32])), &[]);
    let refused = odd.judged(&engine).await.unwrap_err();
    assert!(refused.details.iter().any(|(_, detail)| detail.starts_with("epk is not")), "{refused:?}");
    let missing =
        Signed::new(Service::Table, &format!("/{DEVELOPMENT_ACCOUNT}/?{query}&sig={}", base64(&[1; 32])), &[]);
    assert_eq!(code(missing.judged(&engine).await), Err(Code::AuthenticationFailed));
}

proptest! {
    #[test]
    fn no_query_lets_in_or_makes_the_parser_panic(
        pairs in proptest::collection::vec((0..form::NAMES.len() + 3, "[a-z0-9:,/%-]{0,12}"), 0..12),
        service in 0..2_usize,
        sig in proptest::bool::ANY,
    ) {
        let name = |index: usize| form::NAMES.get(index).copied().unwrap_or("snapshot");
        let mut query: String = pairs.iter().map(|(index, value)| format!("{}={value}&", name(*index))).collect();
        if sig {
            query += &format!("sig={}", base64(&[1; 32]));
        }
        let Ok(fields) = Fields::parse(HeaderMap::new(), Some(&query), HeaderCase::default()) else { return Ok(()) };
        let service = [Service::Blob, Service::Queue][service];
        let Ok(target) = Target::parse(service, None, "/devstoreaccount1/mycontainer/a/b", &fields) else { return Ok(()) };
        let Ok(form) = Form::read(&fields, service, false) else { return Ok(()) };
        let request = Signed {
            service,
            method: Method::GET,
            target,
            fields: fields.clone(),
            needs: Permission::Read,
            now: NOW,
            peer: Peer::default(),
        };
        let _ = text::text(&form, request.asked());
        let _ = Delegated::read(&form, service).is_ok();
    }
}
