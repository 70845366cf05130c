//! What a blob remembers of the copy that made it. <https://learn.microsoft.com/rest/api/storageservices/copy-blob>

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Timestamp;

/// The last copy into a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyState {
    /// Its id.
    pub id: Uuid,
    /// The source as the client named it, without its signature.
    pub source: String,
    /// How it stands.
    pub status: CopyStatus,
    /// Bytes copied so far.
    pub done: u64,
    /// Bytes to copy.
    pub total: u64,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Why it failed.
    pub description: Option<String>,
    /// That the blob is the target of incremental copies, and how far it has come.
    pub incremental: Option<Incremental>,
}

/// How a copy stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyStatus {
    /// Under way.
    Pending,
    /// All bytes are there.
    Success,
    /// Stopped by a client.
    Aborted,
    /// Given up.
    Failed,
}

/// An incremental copy of a page blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incremental {
    /// The snapshot of the blob that the last complete one made; none before the first is complete.
    pub snapshot: Option<Timestamp>,
    /// What tells the source from every other blob.
    pub source: [u8; 32],
    /// The snapshot of the source that the last complete one copied, or that the first copies.
    pub of: Timestamp,
}
