//! The kinds of blobs by name.

use lazuli_engine::blob::kind::BlobKind;

/// The value of `x-ms-blob-type` and of the element `BlobType`.
pub fn name(kind: BlobKind) -> &'static str {
    match kind {
        BlobKind::Block => "BlockBlob",
        BlobKind::Append { .. } => "AppendBlob",
        BlobKind::Page { .. } => "PageBlob",
    }
}
