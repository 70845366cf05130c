//! Shared access signatures as clients of today make them.
//! <https://learn.microsoft.com/rest/api/storageservices/create-service-sas>

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::client::{ACCOUNT, Credentials};

/// The version that signatures name.
const VERSION: &str = "2024-11-04";
/// Far away, both.
const START: &str = "2020-01-01T00:00:00Z";
const EXPIRY: &str = "2099-01-01T00:00:00Z";

/// A shared access signature of the development account about to be made.
#[derive(Clone, Debug)]
#[must_use]
pub struct Sas {
    /// The account's, or the canonical resource and `sr` of a service SAS.
    resource: Option<(String, &'static str)>,
    fields: Vec<(&'static str, String)>,
}

impl Sas {
    /// For the account: letters of permissions, services and resource types.
    pub fn account(permissions: &str, services: &str, types: &str) -> Self {
        Self::new(None, permissions).with("ss", services).with("srt", types)
    }

    /// For a container and what is in it.
    pub fn container(name: &str, permissions: &str) -> Self {
        Self::new(Some((format!("/blob/{ACCOUNT}/{name}"), "c")), permissions)
    }

    /// For a blob.
    pub fn blob(container: &str, name: &str, permissions: &str) -> Self {
        Self::new(Some((format!("/blob/{ACCOUNT}/{container}/{name}"), "b")), permissions)
    }

    /// For a queue and its messages.
    pub fn queue(name: &str, permissions: &str) -> Self {
        Self::new(Some((format!("/queue/{ACCOUNT}/{name}"), "")), permissions)
    }

    /// For a table and its entities.
    pub fn table(name: &str, permissions: &str) -> Self {
        let resource = format!("/table/{ACCOUNT}/{}", name.to_ascii_lowercase());
        Self::new(Some((resource, "")), permissions).with("tn", name)
    }

    fn new(resource: Option<(String, &'static str)>, permissions: &str) -> Self {
        let kind = resource.as_ref().map_or("", |(_, kind)| kind);
        let fields = Self { resource, fields: Vec::new() };
        fields.with("sp", permissions).with("st", START).with("se", EXPIRY).with("sv", VERSION).with("sr", kind)
    }

    /// With one more field, or another value; an empty one leaves it out.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        self.fields.retain(|(other, _)| *other != name);
        if !value.is_empty() {
            self.fields.push((name, value));
        }
        self
    }

    fn get(&self, name: &str) -> &str {
        self.fields.iter().find(|(other, _)| *other == name).map_or("", |(_, value)| value)
    }

    /// Signed by an identity, with a key that it was given: `elements` of that answer, by name.
    pub fn delegated(mut self, element: impl Fn(&str) -> String) -> String {
        let fields = [
            ("skoid", "SignedOid"),
            ("sktid", "SignedTid"),
            ("skt", "SignedStart"),
            ("ske", "SignedExpiry"),
            ("sks", "SignedService"),
            ("skv", "SignedVersion"),
            ("skdutid", "SignedDelegatedUserTid"),
        ];
        for (field, name) in fields {
            self = self.with(field, element(name));
        }
        let (resource, _) = self.resource.clone().expect("an account SAS is signed by nobody but the account");
        let bound: &[&str] = if self.get("sv") >= "2025-07-05" { &["skdutid", "sduoid"] } else { &[] };
        let names = |names: &[&str]| names.iter().map(|name| self.get(name).to_owned()).collect::<Vec<_>>();
        let before = [names(&["sp", "st", "se"]), vec![resource]].concat();
        let key = ["skoid", "sktid", "skt", "ske", "sks", "skv"];
        let (others, after): (&[&str], &[&str]) = if self.get("tn").is_empty() {
            let after = &["sip", "spr", "sv", "sr", "", "ses", "rscc", "rscd", "rsce", "rscl", "rsct"];
            (&["saoid", "suoid", "scid"], after)
        } else {
            (&[], &["sip", "spr", "sv", "spk", "srk", "epk", "erk"])
        };
        let text = [before, names(&key), names(others), names(bound), names(after)].concat().join("\n");
        let credentials = Credentials::new(ACCOUNT, &element("Value")).expect("the key is one");
        self.encoded(&credentials.sign(&text))
    }

    /// The query, signed with the development account's key.
    pub fn query(&self) -> String {
        self.signed_by(&Credentials::development().expect("the published key is one"))
    }

    /// The query, signed by `credentials`.
    pub fn signed_by(&self, credentials: &Credentials) -> String {
        let text = match &self.resource {
            None => {
                let names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv", "ses"];
                let lines: String = names.map(|name| format!("{}\n", self.get(name))).concat();
                format!("{ACCOUNT}\n{lines}")
            }
            Some((resource, _)) => {
                let before = ["sp", "st", "se"].map(|name| self.get(name));
                if !self.get("tn").is_empty() {
                    let after = ["si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"].map(|name| self.get(name));
                    let text = [&before[..], &[resource.as_str()], &after].concat().join("\n");
                    return self.encoded(&credentials.sign(&text));
                }
                let after = ["si", "sip", "spr", "sv", "sr", "", "ses", "rscc", "rscd", "rsce", "rscl", "rsct"];
                // Of a queue nothing follows the version.
                let count = if self.get("sr").is_empty() { 4 } else { after.len() };
                let after: Vec<_> = after.iter().take(count).map(|name| self.get(name)).collect();
                [&before[..], &[resource.as_str()], &after].concat().join("\n")
            }
        };
        self.encoded(&credentials.sign(&text))
    }

    fn encoded(&self, signature: &str) -> String {
        let signature = ("sig", signature.to_owned());
        let pairs = self.fields.iter().chain([&signature]);
        let encoded = pairs.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
        encoded.collect::<Vec<_>>().join("&")
    }
}
