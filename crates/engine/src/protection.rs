//! Protection from overwriting and deleting: immutability policies and legal holds.
//! <https://learn.microsoft.com/azure/storage/blobs/immutable-storage-overview>

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// What protects a blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// Until when, and how firmly.
    pub policy: Option<ImmutabilityPolicy>,
    /// Whether it is held until the hold is taken back; none if that was never said.
    pub hold: Option<bool>,
}

/// A time-based policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImmutabilityPolicy {
    /// When the protection ends.
    pub until: Timestamp,
    /// Whether it can only be extended.
    pub locked: bool,
}
