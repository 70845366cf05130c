//! Under which key a blob is stored. <https://learn.microsoft.com/azure/storage/blobs/encryption-customer-provided-keys>

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::refusal::Refusal;

/// Under which key a blob is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    /// The account's.
    #[default]
    Account,
    /// That of a named scope.
    Scope(String),
    /// One that only the client has, known by the SHA-256 of its bytes.
    Customer([u8; 32]),
}

/// The encryption scope that the blobs of a container get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultScope {
    /// Its name; none for the account's own key.
    pub name: Option<String>,
    /// Whether no blob may have another one.
    pub fixed: bool,
}

impl DefaultScope {
    /// What a new blob is stored under, for which the request brings `key` or names `scope`.
    ///
    /// Refuses [`Refusal::ScopeFixed`] where another one is asked for than the container allows.
    pub fn encryption(&self, key: Option<&CustomerKey>, scope: Option<&String>) -> Result<Encryption, Refusal> {
        let other = key.is_some() || scope.is_some_and(|scope| self.name.as_ref() != Some(scope));
        if self.fixed && other {
            return Err(Refusal::ScopeFixed);
        }
        Ok(match (key, scope.or(self.name.as_ref())) {
            (Some(key), _) => Encryption::Customer(key.sha256),
            (None, Some(scope)) => Encryption::Scope(scope.clone()),
            (None, None) => Encryption::Account,
        })
    }
}

/// A key that comes with a request and goes with it. Never shown, never stored.
#[derive(Clone)]
pub struct CustomerKey {
    bytes: Zeroizing<[u8; 32]>,
    sha256: [u8; 32],
}

impl CustomerKey {
    /// The key of these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self { sha256: Sha256::digest(bytes).into(), bytes: Zeroizing::new(bytes) }
    }

    /// What is remembered of it.
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// The key itself.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomerKey(..)")
    }
}

impl Encryption {
    /// Whether a request that brings `key`, or none, may read or write a blob stored so.
    ///
    /// Refuses [`Refusal::KeyNeeded`] without the blob's key, [`Refusal::KeyNotUsed`] with a key that it does not have.
    pub fn admit(&self, key: Option<&CustomerKey>) -> Result<(), Refusal> {
        match (self, key) {
            (Self::Customer(sha256), Some(key)) if *sha256 == key.sha256 => Ok(()),
            (Self::Customer(_), _) => Err(Refusal::KeyNeeded),
            (_, Some(_)) => Err(Refusal::KeyNotUsed),
            (_, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_that_a_blob_is_stored_under_opens_it() {
        let (key, other) = (CustomerKey::new([1; 32]), CustomerKey::new([2; 32]));
        let sealed = Encryption::Customer(key.sha256());
        assert_eq!(sealed.admit(Some(&key)), Ok(()));
        assert_eq!(sealed.admit(Some(&other)), Err(Refusal::KeyNeeded));
        assert_eq!(sealed.admit(None), Err(Refusal::KeyNeeded));
        for open in [Encryption::Account, Encryption::Scope("s".into())] {
            assert_eq!(open.admit(None), Ok(()));
            assert_eq!(open.admit(Some(&key)), Err(Refusal::KeyNotUsed));
        }
    }

    #[test]
    fn a_container_gives_its_scope_to_blobs_and_may_insist() {
        let key = CustomerKey::new([1; 32]);
        let (own, other) = ("own".to_owned(), "other".to_owned());
        let scope = |name: &str| Ok(Encryption::Scope(name.into()));
        let open = DefaultScope { name: Some(own.clone()), fixed: false };
        assert_eq!(open.encryption(None, None), scope("own"));
        assert_eq!(open.encryption(None, Some(&other)), scope("other"));
        assert_eq!(open.encryption(Some(&key), None), Ok(Encryption::Customer(key.sha256())));
        let fixed = DefaultScope { fixed: true, ..open };
        assert_eq!(fixed.encryption(None, None), scope("own"));
        assert_eq!(fixed.encryption(None, Some(&own)), scope("own"));
        assert_eq!(fixed.encryption(None, Some(&other)), Err(Refusal::ScopeFixed));
        assert_eq!(fixed.encryption(Some(&key), None), Err(Refusal::ScopeFixed));
        assert_eq!(DefaultScope::default().encryption(None, None), Ok(Encryption::Account));
    }

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", CustomerKey::new([7; 32])), "CustomerKey(..)");
    }
}
