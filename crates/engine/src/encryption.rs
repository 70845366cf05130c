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
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", CustomerKey::new([7; 32])), "CustomerKey(..)");
    }
}
