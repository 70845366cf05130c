use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName};
use serde_json::Value;

use super::*;
use crate::auth::accounts::{Accounts, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use crate::auth::sign;
use crate::head::HeaderCase;

fn fields(headers: &[(&str, &str)], query: &str) -> Fields {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    Fields::parse(map, Some(query), HeaderCase::default()).unwrap()
}

/// The texts of a GET by Shared Key.
fn texts(path: &str, fields: &Fields, secondary_in_path: bool, version: &str) -> Vec<String> {
    let account = AccountName::parse("dev").unwrap();
    let version = Version::parse(version, false).unwrap();
    let (service, method) = (Service::Blob, &Method::GET);
    Signed { service, method, fields, account: &account, raw_path: path, secondary_in_path, version }
        .texts(Scheme::SharedKey)
}

/// Requests with their texts and signatures, checked against the vendor's own clients.
#[test]
fn known_requests_have_known_texts_and_signatures() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let accounts = Accounts::default().with(DEVELOPMENT_ACCOUNT, &[DEVELOPMENT_KEY]).unwrap();
    let account = AccountName::parse(DEVELOPMENT_ACCOUNT).unwrap();
    let dev = accounts.get(&account).unwrap();
    let key = &dev.keys()[0];
    for vector in &vectors {
        let text = |name: &str| vector[name].as_str().unwrap();
        let (raw_path, query) = text("target").split_once('?').unwrap_or((text("target"), ""));
        let headers: Vec<(&str, &str)> = vector["headers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()))
            .collect();
        let fields = fields(&headers, query);
        let signed = Signed {
            service: [Service::Blob, Service::Queue, Service::Table]
                .into_iter()
                .find(|service| service.name() == text("service"))
                .unwrap(),
            method: &text("method").parse().unwrap(),
            fields: &fields,
            account: &account,
            raw_path,
            secondary_in_path: false,
            version: Version::parse(fields.header("x-ms-version").unwrap(), true).unwrap(),
        };
        let scheme = if text("scheme") == "SharedKey" { Scheme::SharedKey } else { Scheme::SharedKeyLite };
        assert_eq!(signed.texts(scheme), [text("stringToSign")], "{}", text("id"));
        let signature = STANDARD.encode(sign(key, text("stringToSign")));
        assert_eq!(signature, text("signature"), "{}", text("id"));
    }
}

#[test]
fn both_orders_of_header_names_are_tried_where_they_differ() {
    let same = fields(&[("x-ms-meta-b", "2"), ("x-ms-meta-a", "1")], "");
    assert_eq!(texts("/c", &same, false, "2026-04-06").len(), 1);

    let differ = fields(&[("x-ms-meta-a1", "1"), ("x-ms-meta-a_b", "2")], "");
    let texts = texts("/c", &differ, false, "2026-04-06");
    assert!(texts[0].contains("\nx-ms-meta-a_b:2\nx-ms-meta-a1:1\n/dev/c"), "{texts:?}");
    assert!(texts[1].contains("\nx-ms-meta-a1:1\nx-ms-meta-a_b:2\n/dev/c"), "{texts:?}");
}

#[test]
fn names_sort_by_weight() {
    let ascending = [
        "x-ms-meta-a",
        "x-ms-meta-a_b",
        "x-ms-meta-a1",
        "x-ms-meta-a2",
        "x-ms-meta-ab",
        "x-ms-meta-a-b",
        "x-ms-meta-abc",
        "x-ms-meta-b",
    ];
    for pair in ascending.windows(2) {
        assert_eq!(by_weight(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        assert_eq!(by_weight(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
    }
}

#[test]
fn the_secondary_path_is_signed_as_sent_or_without_its_suffix() {
    let fields = fields(&[], "");
    let texts = |in_path| texts("/dev-secondary/c/x-secondary", &fields, in_path, "2026-04-06");
    let of = |path: &str| format!("GET{}/dev{path}", "\n".repeat(12));
    assert_eq!(texts(true), [of("/dev-secondary/c/x-secondary"), of("/dev/c/x-secondary")]);
    assert_eq!(texts(false), [of("/dev-secondary/c/x-secondary")]);
}

#[test]
fn empty_and_repeated_headers_are_signed_as_the_version_says() {
    let fields = fields(&[("x-ms-b", ""), ("x-ms-a", "1"), ("x-ms-a", " 2  3 ")], "include=");
    assert!(texts("/c", &fields, false, "2016-05-31")[0].ends_with("x-ms-a:1,2  3\nx-ms-b:\n/dev/c\ninclude:"));
    assert!(texts("/c", &fields, false, "2015-12-11")[0].ends_with("x-ms-a:1,2  3\n/dev/c\ninclude:"));
}
