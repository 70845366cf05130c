//! User delegation keys: what identities sign with for others. A key is never stored; the account's own key and what
//! the key is for make it again.
//! <https://learn.microsoft.com/rest/api/storageservices/get-user-delegation-key>

use lazuli_engine::clock::Timestamp;

use super::accounts::Key;
use super::sign;
use crate::target::Service;

/// What a user delegation key is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delegation<'a> {
    /// The identity's object id.
    pub(crate) object: &'a str,
    /// Its tenant.
    pub(crate) tenant: &'a str,
    /// From when on it holds.
    pub(crate) start: Timestamp,
    /// Until when.
    pub(crate) expiry: Timestamp,
    /// The service.
    pub(crate) service: Service,
    /// The version in which it was asked for.
    pub(crate) version: &'a str,
    /// The tenant of the only one who may use what is signed; empty for the identity's own.
    pub(crate) for_tenant: &'a str,
}

impl Delegation<'_> {
    /// The key, made from a key of the account.
    pub(crate) fn key(&self, account: &Key) -> Key {
        let text = [
            "user delegation key",
            &self.object.to_ascii_lowercase(),
            &self.tenant.to_ascii_lowercase(),
            &self.start.unix_seconds().to_string(),
            &self.expiry.unix_seconds().to_string(),
            letter(self.service),
            self.version,
            &self.for_tenant.to_ascii_lowercase(),
        ];
        Key::from_bytes(sign(account, &text.join("\n")).to_vec())
    }
}

/// What stands for a service in keys and signatures.
pub(crate) const fn letter(service: Service) -> &'static str {
    match service {
        Service::Blob => "b",
        Service::Queue => "q",
        Service::Table => "t",
    }
}

#[cfg(test)]
mod tests {
    use lazuli_engine::names::AccountName;

    use super::*;
    use crate::auth::accounts::Accounts;

    #[test]
    fn a_key_is_made_again_and_only_for_the_same() {
        let accounts = Accounts::default().with("dev", &["AAAA", "BBBB"]).unwrap();
        let account = accounts.get(&AccountName::parse("dev").unwrap()).unwrap();
        let key = |delegation: Delegation<'_>, number: usize| delegation.key(&account.keys()[number]).bytes().to_vec();
        let first = Delegation {
            object: "ABC",
            tenant: "t",
            start: Timestamp::from_unix_seconds(1),
            expiry: Timestamp::from_unix_seconds(2),
            service: Service::Blob,
            version: "2026-10-06",
            for_tenant: "",
        };
        let same = Delegation { object: "abc", ..first.clone() };
        assert_eq!(key(first.clone(), 0), key(same, 0));
        let others = [
            key(first.clone(), 1),
            key(Delegation { object: "abd", ..first.clone() }, 0),
            key(Delegation { tenant: "u", ..first.clone() }, 0),
            key(Delegation { start: Timestamp::from_unix_seconds(0), ..first.clone() }, 0),
            key(Delegation { expiry: Timestamp::from_unix_seconds(3), ..first.clone() }, 0),
            key(Delegation { service: Service::Queue, ..first.clone() }, 0),
            key(Delegation { version: "2025-07-05", ..first.clone() }, 0),
            key(Delegation { for_tenant: "v", ..first.clone() }, 0),
        ];
        assert!(others.iter().all(|other| *other != key(first.clone(), 0)));
    }
}
