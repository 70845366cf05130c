use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt as _;
use http::{HeaderMap, Method};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use lazuli_engine::clock::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::auth::Peer;
use crate::fields::Fields;
use crate::head::HeaderCase;

const NOW: u64 = 1_785_542_400;
const KEYS: &[u8] = include_bytes!("fixtures/keys.json");
const RSA: &[u8] = include_bytes!("fixtures/rsa.der");
const EC: &[u8] = include_bytes!("fixtures/ec.der");
const ISSUER: &str = "https://sts.windows.net/22222222-2222-2222-2222-222222222222/";

fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "aud": "https://storage.azure.com",
        "exp": NOW + 600,
        "nbf": NOW - 600,
        "tid": "22222222-2222-2222-2222-222222222222",
        "oid": "11111111-1111-1111-1111-11111111111A",
        "appid": "app",
        "groups": ["staff"],
    })
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn token(algorithm: Algorithm, id: Option<&str>, key: &EncodingKey, claims: &Value) -> String {
    let header = Header { kid: id.map(str::to_owned), ..Header::new(algorithm) };
    encode(&header, claims, key).unwrap()
}

/// A token signed with the RSA key.
fn right(claims: &Value) -> String {
    token(Algorithm::RS256, Some("rsa"), &EncodingKey::from_rsa_der(RSA), claims)
}

fn issuer() -> Issuer {
    Issuer::signing(ISSUER, KEYS).unwrap()
}

fn verified(issuer: &Issuer, token: &str) -> Result<Identity, Problem> {
    verified_over(issuer, token, Peer::at("10.0.0.1".parse().unwrap(), true), Service::Blob, Version::NEWEST)
}

fn verified_over(
    issuer: &Issuer,
    token: &str,
    peer: Peer,
    service: Service,
    version: Version,
) -> Result<Identity, Problem> {
    let fields = Fields::parse(HeaderMap::new(), None, HeaderCase::default()).unwrap();
    let target = Target::parse(Service::Blob, None, "/mine/photos/a.jpg", &fields).unwrap();
    let asked = Asked {
        service,
        method: &Method::GET,
        target: &target,
        fields: &fields,
        needs: Permission::Read,
        version,
        now: Timestamp::from_unix_seconds(NOW),
        peer,
        strict: false,
    };
    issuer.verify(token, asked).now_or_never().expect("keys that were given are there")
}

#[test]
fn a_token_signed_with_a_key_of_its_issuer_names_its_bearer() {
    let ec = EncodingKey::from_ec_der(EC);
    for token in [
        right(&claims()),
        token(Algorithm::RS256, None, &EncodingKey::from_rsa_der(RSA), &claims()),
        token(Algorithm::ES256, Some("ec"), &ec, &claims()),
    ] {
        let identity = verified(&issuer(), &token).unwrap();
        assert_eq!(identity.object(), "11111111-1111-1111-1111-11111111111a");
        assert_eq!(identity.tenant(), "22222222-2222-2222-2222-222222222222");
        assert_eq!(identity.principals().len(), 3);
    }
}

#[test]
fn a_token_that_is_not_signed_so_is_refused_with_a_challenge() {
    let rsa = EncodingKey::from_rsa_der(RSA);
    let good = right(&claims());
    let (head, signature) = good.rsplit_once('.').unwrap();
    let encoded = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let public_as_secret = EncodingKey::from_secret(KEYS);
    let cases = [
        format!("{}.{}.", encoded(json!({"alg": "none"})), encoded(claims())),
        format!("{}.{}.AAAA", encoded(json!({"alg": "none"})), encoded(claims())),
        token(Algorithm::HS256, Some("rsa"), &public_as_secret, &claims()),
        token(Algorithm::RS512, Some("rsa"), &rsa, &claims()),
        token(Algorithm::RS256, Some("ec"), &rsa, &claims()),
        token(Algorithm::RS256, Some("enc"), &rsa, &claims()),
        token(Algorithm::RS256, Some("unknown"), &rsa, &claims()),
        format!("{head}.{}", signature.replace(|c: char| c.is_ascii_digit(), "A")),
        format!("{head}."),
        head.to_owned(),
        "x".to_owned(),
        "a.b.c".to_owned(),
        String::new(),
    ];
    for token in cases {
        let problem = verified(&issuer(), &token).unwrap_err();
        assert_eq!((problem.code, problem.status().as_u16()), (Code::InvalidAuthenticationInfo, 401), "{token}");
        assert!(problem.headers.iter().any(|(name, value)| *name == "www-authenticate" && value.contains("common")));
    }
}

#[test]
fn a_token_is_for_now_for_here_and_of_who_it_should_be() {
    let seconds = |seconds: i64| json!(i64::try_from(NOW).unwrap() + seconds);
    let cases = [
        (claims(), true),
        (with("exp", seconds(-59)), true),
        (with("exp", seconds(-61)), false),
        (with("exp", json!(1e300)), true),
        (with("exp", json!("soon")), false),
        (with("nbf", seconds(59)), true),
        (with("nbf", seconds(61)), false),
        (with("nbf", json!(-1e300)), true),
        (with("iss", json!("https://sts.windows.net/other/")), false),
        (with("aud", json!("https://storage.azure.com/")), true),
        (with("aud", json!("e406a681-f3d4-42a8-90b6-c2b029497af1")), true),
        (with("aud", json!("https://mine.blob.core.windows.net/")), true),
        (with("aud", json!("https://mine.queue.core.windows.net")), false),
        (with("aud", json!("https://other.blob.core.windows.net")), false),
        (with("aud", json!(["https://graph.example", "api://own"])), true),
        (with("aud", json!("https://graph.example")), false),
        (with("tid", json!("33333333-3333-3333-3333-333333333333")), false),
        (with("groups", json!("staff")), false),
    ];
    let issuer = issuer().with_audience("api://own").with_tenant("22222222-2222-2222-2222-222222222222");
    for (claims, expected) in cases {
        let outcome = verified(&issuer, &right(&claims));
        assert_eq!(outcome.is_ok(), expected, "{claims}: {outcome:?}");
        if let Err(problem) = outcome {
            assert_eq!(problem.code, Code::InvalidAuthenticationInfo);
        }
    }
}

#[test]
fn by_form_alone_a_token_needs_no_known_key_but_must_look_right() {
    let form = Issuer::form_only();
    let stranger = token(Algorithm::HS256, None, &EncodingKey::from_secret(b"x"), &claims());
    assert!(verified(&form, &stranger).is_ok());
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let none = |end: &str| format!("{}.{}.{end}", encoded(&json!({"alg": "none"})), encoded(&claims()));
    for token in [
        none(""),
        none("AAAA"),
        right(&with("exp", json!(NOW - 600))),
        right(&with("aud", json!("https://graph.example"))),
        right(&with("iss", json!("https://issuer.example"))),
        format!("{}.", stranger.rsplit_once('.').unwrap().0),
    ] {
        assert!(verified(&form, &token).is_err(), "{token}");
    }
}

#[test]
fn tokens_travel_encrypted_or_within_the_machine_and_in_versions_that_know_them() {
    let token = right(&claims());
    let outside = || "10.0.0.1".parse().unwrap();
    let peer = Peer::at;
    let cases = [
        (issuer(), peer(outside(), true), Service::Blob, "2017-11-09", true),
        (issuer(), peer(outside(), false), Service::Blob, "2017-11-09", false),
        (issuer(), peer("127.0.0.1".parse().unwrap(), false), Service::Blob, "2017-11-09", true),
        (issuer(), Peer::default(), Service::Blob, "2017-11-09", false),
        (issuer().over_plain_http(), peer(outside(), false), Service::Blob, "2017-11-09", true),
        (issuer(), peer(outside(), true), Service::Blob, "2017-07-29", false),
        (issuer(), peer(outside(), true), Service::Table, "2017-07-29", false),
        (issuer(), peer(outside(), true), Service::Table, "2019-02-02", true),
    ];
    for (issuer, peer, service, version, expected) in cases {
        let spoken = Version::parse(version, true).unwrap();
        let outcome = verified_over(&issuer, &token, peer, service, spoken);
        assert_eq!(outcome.is_ok(), expected, "{peer:?} {service:?} {version}");
        if let Err(problem) = outcome {
            assert_eq!(problem.code, Code::AuthenticationFailed);
        }
    }
}

#[test]
fn a_key_set_has_keys_to_check_signatures_with() {
    assert!(matches!(Issuer::signing(ISSUER, b"{"), Err(IssuerError::Form(_))));
    assert!(matches!(Issuer::signing(ISSUER, b"{\"keys\":[]}"), Err(IssuerError::Empty)));
    let set: Value = serde_json::from_slice(KEYS).unwrap();
    let encrypting = json!({ "keys": [set["keys"][2]] });
    assert!(matches!(Issuer::signing(ISSUER, encrypting.to_string().as_bytes()), Err(IssuerError::Empty)));
}

#[test]
fn roles_are_found_by_all_that_a_token_names() {
    let assignment =
        |principal: &str, role| Assignment { principal: Some(principal.to_owned()), ..Assignment::everybody(role) };
    let issuer = issuer()
        .with_assignment(assignment("STAFF", Role::Reader))
        .with_assignment(assignment("app", Role::Delegator))
        .with_assignment(assignment("bob", Role::Owner));
    let fields = Fields::parse(HeaderMap::new(), None, HeaderCase::default()).unwrap();
    let target = Target::parse(Service::Blob, None, "/mine/photos/a.jpg", &fields).unwrap();
    let identity = verified(&issuer, &right(&claims())).unwrap();
    let identity = issuer.with_roles(identity, Service::Blob, &target);
    assert_eq!(identity.roles, [Role::Reader, Role::Delegator]);
    assert_eq!(identity.allows(Permission::Read, Kind::Object), Ok(()));
    let refused = identity.allows(Permission::Write, Kind::Object).unwrap_err();
    assert_eq!(refused.code, Code::AuthorizationPermissionMismatch);
    let form = Issuer::form_only();
    let anyone = form.with_roles(verified(&form, &right(&claims())).unwrap(), Service::Blob, &target);
    assert_eq!(anyone.roles, [Role::Owner]);
}
