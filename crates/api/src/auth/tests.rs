use http::{HeaderMap, HeaderName};

use super::*;
use crate::auth::accounts::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use crate::head::HeaderCase;

const DATE: &str = "Sat, 01 Aug 2026 00:00:00 GMT";
const NOW: u64 = 1_785_542_400;
const PATH: &str = "/devstoreaccount1/mycontainer";
const QUERY: &str = "restype=container&comp=metadata&timeout=20";
const SIGNATURE: &str = "oAy94vaEtY9Pkgyb3U9tXYaqXcmGtlG89dpDg6nESFc=";

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Verifies a signed Get Container Metadata with other headers and at another time.
fn verified(keys: &[&str], authorization: &str, date: Headers, now: u64) -> Result<(), Problem> {
    let accounts = Accounts::default().with(DEVELOPMENT_ACCOUNT, keys).unwrap();
    let headers: HeaderMap = date
        .iter()
        .chain(&[("x-ms-version", "2026-04-06")])
        .map(|(name, value)| (HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap()))
        .collect();
    let fields = Fields::parse(headers, Some(QUERY), HeaderCase::default()).unwrap();
    let target = Target::parse(Service::Blob, Some("127.0.0.1"), PATH, &fields).unwrap();
    let asked = Asked {
        service: Service::Blob,
        method: &Method::GET,
        target: &target,
        fields: &fields,
        needs: Permission::Read,
        version: version(&fields, true).unwrap(),
        now: Timestamp::from_unix_seconds(now),
        peer: Peer::default(),
        strict: true,
    };
    match Credential::parse(authorization)? {
        Credential::Key(scheme, credential) => {
            verify(accounts.get(&target.account).unwrap().keys(), scheme, credential, asked)
        }
        Credential::Token(_) => Err(bearer::unknown()),
    }
}

fn code(outcome: Result<(), Problem>) -> Result<(), Code> {
    outcome.map_err(|problem| problem.code)
}

#[test]
fn either_key_of_the_account_signs() {
    let good = format!("SharedKey devstoreaccount1:{SIGNATURE}");
    let date = [("x-ms-date", DATE)];
    assert_eq!(verified(&[DEVELOPMENT_KEY], &good, &date, NOW), Ok(()));
    assert_eq!(verified(&["AAAA", DEVELOPMENT_KEY], &good, &date, NOW), Ok(()));
    assert_eq!(verified(&[DEVELOPMENT_KEY, "AAAA"], &good, &date, NOW), Ok(()));
    assert_eq!(code(verified(&["AAAA"], &good, &date, NOW)), Err(Code::AuthenticationFailed));
}

#[test]
fn wrong_credentials_are_told_apart_from_malformed_ones() {
    let cases = [
        (format!("SharedKey devstoreaccount1:{}", SIGNATURE.replace('o', "p")), Code::AuthenticationFailed),
        ("SharedKey devstoreaccount1:x".into(), Code::AuthenticationFailed),
        (format!("SharedKeyLite devstoreaccount1:{SIGNATURE}"), Code::AuthenticationFailed),
        (format!("SharedKey devstoreaccount2:{SIGNATURE}"), Code::AuthenticationFailed),
        (format!("SharedKey devstoreaccount1-secondary:{SIGNATURE}"), Code::AuthenticationFailed),
        ("Bearer token".into(), Code::InvalidAuthenticationInfo),
        ("SharedKey devstoreaccount1".into(), Code::InvalidAuthenticationInfo),
        ("SharedKey devstoreaccount1:".into(), Code::InvalidAuthenticationInfo),
        ("SharedKey :x".into(), Code::InvalidAuthenticationInfo),
        ("SharedKey".into(), Code::InvalidAuthenticationInfo),
        ("Basic dXNlcjpwYXNz".into(), Code::InvalidAuthenticationInfo),
    ];
    for (authorization, expected) in cases {
        let outcome = verified(&[DEVELOPMENT_KEY], &authorization, &[("x-ms-date", DATE)], NOW);
        assert_eq!(code(outcome), Err(expected), "{authorization}");
    }
}

#[test]
fn a_mismatch_shows_what_should_have_been_signed() {
    let problem = verified(&[DEVELOPMENT_KEY], "SharedKey devstoreaccount1:AAAA", &[("x-ms-date", DATE)], NOW);
    let problem = problem.unwrap_err();
    let (element, detail) = &problem.details[0];
    assert_eq!(*element, "AuthenticationErrorDetail");
    assert!(detail.contains("\n/devstoreaccount1/devstoreaccount1/mycontainer\ncomp:metadata\n"), "{detail}");
}

#[test]
fn a_date_is_at_most_fifteen_minutes_off() {
    let good = format!("SharedKey devstoreaccount1:{SIGNATURE}");
    let cases: [(Headers, u64, _); 8] = [
        (&[("x-ms-date", DATE)], NOW - 900, Ok(())),
        (&[("x-ms-date", DATE)], NOW + 900, Ok(())),
        (&[("x-ms-date", DATE)], NOW - 901, Err(Code::AuthenticationFailed)),
        (&[("x-ms-date", DATE)], NOW + 901, Err(Code::AuthenticationFailed)),
        (&[("x-ms-date", DATE), ("date", "Thu, 01 Jan 1970 00:00:00 GMT")], NOW, Ok(())),
        (&[("date", DATE)], NOW + 901, Err(Code::AuthenticationFailed)),
        (&[("x-ms-date", "yesterday")], NOW, Err(Code::InvalidHeaderValue)),
        (&[], NOW, Err(Code::AuthenticationFailed)),
    ];
    for (date, now, expected) in cases {
        let outcome = code(verified(&[DEVELOPMENT_KEY], &good, date, now));
        // The text signed has no Date line, so a second date header besides x-ms-date changes nothing.
        assert_eq!(outcome, expected, "{date:?} {now}");
    }
}

#[test]
fn a_request_without_a_version_speaks_by_its_credentials() {
    let fields = |headers: &[(&'static str, &str)]| {
        let headers = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        Fields::parse(headers.collect(), None, HeaderCase::default()).unwrap()
    };
    assert_eq!(version(&fields(&[("authorization", "x")]), false), Ok(Version::NEWEST));
    assert_eq!(version(&fields(&[]), false), Ok(Version::ANONYMOUS_DEFAULT));
    assert_eq!(version(&fields(&[("x-ms-version", "2019-12-12")]), false), Ok(Version::V2019_12_12));
    assert_eq!(version(&fields(&[("x-ms-version", "x")]), false).map_err(|p| p.code), Err(Code::InvalidHeaderValue));
}
