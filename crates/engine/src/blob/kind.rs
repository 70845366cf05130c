//! The three kinds of blobs, and what only one of them has.

use serde::{Deserialize, Serialize};

/// A kind of blob. It never changes while the blob exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlobKind {
    /// Content in blocks, replaced as a whole.
    Block,
    /// Content that only grows.
    Append {
        /// How many blocks were appended.
        blocks: u32,
        /// Whether it has stopped growing.
        sealed: bool,
    },
    /// Pages of 512 bytes that are written anywhere.
    Page {
        /// The sequence number, which clients use as they like.
        sequence: u64,
    },
}

impl BlobKind {
    /// Whether both are block blobs, append blobs or page blobs.
    pub fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}
