//! Under which key a blob is stored. <https://learn.microsoft.com/azure/storage/blobs/encryption-customer-provided-keys>

use serde::{Deserialize, Serialize};

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
