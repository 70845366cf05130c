//! A change as a record of the feed's files, in the form that Azure writes.
//! <https://learn.microsoft.com/azure/storage/blobs/storage-blob-change-feed#schema-version-4>
//!
//! Where the server is, and which subscription it belongs to, is not known here: `url` is empty, as on Azure, and the
//! names before the account's in `topic` are fixed.

use uuid::Uuid;

use super::calendar;
use crate::avro::encode;
use crate::blob::kind::BlobKind;
use crate::clock::Timestamp;
use crate::names::AccountName;
use crate::rows::change::{Cause, ChangeRow};

/// The version of the form.
const SCHEMA_VERSION: i64 = 4;
/// The form, as the files say it.
pub(super) const SCHEMA: &str = r#"{"type":"record","name":"BlobChangeEvent","fields":[{"name":"schemaVersion","type":"int"},{"name":"topic","type":"string"},{"name":"subject","type":"string"},{"name":"eventType","type":"string"},{"name":"eventTime","type":"string"},{"name":"id","type":"string"},{"name":"data","type":{"type":"record","name":"BlobChangeEventData","fields":[{"name":"api","type":"string"},{"name":"clientRequestId","type":"string"},{"name":"requestId","type":"string"},{"name":"etag","type":"string"},{"name":"contentType","type":"string"},{"name":"contentLength","type":"long"},{"name":"blobType","type":"string"},{"name":"blobVersion","type":["null","string"]},{"name":"containerVersion","type":["null","string"]},{"name":"blobTier","type":["null","string"]},{"name":"url","type":"string"},{"name":"sequencer","type":"string"},{"name":"previousInfo","type":["null",{"type":"map","values":"string"}]},{"name":"snapshot","type":["null","string"]},{"name":"blobPropertiesUpdated","type":["null",{"type":"map","values":{"type":"record","name":"BlobPropertyUpdated","fields":[{"name":"current","type":"string"},{"name":"previous","type":"string"}]}}]},{"name":"asyncOperationInfo","type":["null",{"type":"map","values":"string"}]},{"name":"storageDiagnostics","type":{"type":"map","values":"string"}}]}}]}"#;
/// Whose accounts they are.
const TOPIC: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/lazuli/providers/\
                     Microsoft.Storage/storageAccounts/";

/// What Azure calls the event and the operation.
fn names(cause: Cause) -> (&'static str, &'static str) {
    match cause {
        Cause::Put => ("BlobCreated", "PutBlob"),
        Cause::PutBlockList => ("BlobCreated", "PutBlockList"),
        Cause::Copy => ("BlobCreated", "CopyBlob"),
        Cause::CopyBegun => ("BlobAsyncOperationInitiated", "CopyBlob"),
        Cause::CopyGivenUp => ("BlobPropertiesUpdated", "AbortCopyBlob"),
        Cause::Delete => ("BlobDeleted", "DeleteBlob"),
        Cause::Undelete => ("BlobCreated", "UndeleteBlob"),
        Cause::Snapshot => ("BlobSnapshotCreated", "SnapshotBlob"),
        Cause::Metadata => ("BlobPropertiesUpdated", "SetBlobMetadata"),
        Cause::Properties => ("BlobPropertiesUpdated", "SetBlobProperties"),
        Cause::Tags => ("BlobPropertiesUpdated", "SetBlobTags"),
        Cause::Expiry => ("BlobPropertiesUpdated", "SetBlobExpiry"),
        Cause::Tier => ("BlobTierChanged", "SetBlobTier"),
        Cause::Rehydration => ("BlobAsyncOperationInitiated", "SetBlobTier"),
    }
}

/// Writes the change that was committed at `at` as the record of that number.
pub(super) fn write(out: &mut Vec<u8>, account: &AccountName, at: Timestamp, id: u64, change: &ChangeRow) {
    let (event, api) = names(change.cause);
    encode::long(out, SCHEMA_VERSION);
    encode::string(out, &format!("{TOPIC}{account}"));
    encode::string(out, &format!("/blobServices/default/containers/{}/blobs/{}", change.container, change.blob));
    encode::string(out, event);
    encode::string(out, &calendar::to_the_tick(at));
    encode::string(out, &Uuid::from_u64_pair(at.ticks(), id).to_string());
    encode::string(out, api);
    encode::string(out, change.request.as_ref().map_or("", |request| &request.client));
    encode::string(out, &change.request.as_ref().map_or(Uuid::nil(), |request| request.id).to_string());
    encode::string(out, &change.etag.to_string());
    encode::string(out, change.content_type.as_deref().unwrap_or("application/octet-stream"));
    encode::long(out, i64::try_from(change.length).unwrap_or(i64::MAX));
    encode::string(out, kind(change.kind));
    optional(out, change.version.map(calendar::to_the_tick));
    optional(out, None);
    optional(out, change.tier.map(|tier| tier.to_string()));
    encode::string(out, "");
    // Texts of one length: they sort as the changes do.
    encode::string(out, &format!("{:016X}{:016X}{id:016x}", 0, at.ticks()));
    map(out, &previous(change));
    optional(out, change.snapshot.map(calendar::to_the_tick));
    map(out, &[]);
    map(out, &operation(change));
    encode::long(out, 0);
}

fn kind(kind: BlobKind) -> &'static str {
    match kind {
        BlobKind::Block => "BlockBlob",
        BlobKind::Append { .. } => "AppendBlob",
        BlobKind::Page { .. } => "PageBlob",
    }
}

/// What is said of the blob before the change.
fn previous(change: &ChangeRow) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    if change.soft_deleted {
        said.push(("WasBlobSoftDeleted", "true".to_owned()));
    }
    if let (Cause::Tier, Some(tier)) = (change.cause, change.other_tier) {
        said.push(("PreviousTier", tier.to_string()));
    }
    said
}

/// What is said of an operation that goes on behind its request.
fn operation(change: &ChangeRow) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    if let (Cause::Rehydration, Some(tier)) = (change.cause, change.other_tier) {
        said.push(("DestinationTier", tier.to_string()));
    }
    if let Some(copy) = change.copy {
        said.push(("CopyId", copy.to_string()));
    }
    if !said.is_empty() {
        said.push(("WasAsyncOperation", "true".to_owned()));
    }
    said
}

/// A union of nothing and a text.
fn optional(out: &mut Vec<u8>, text: Option<String>) {
    match text {
        None => encode::long(out, 0),
        Some(text) => {
            encode::long(out, 1);
            encode::string(out, &text);
        }
    }
}

/// A union of nothing and a map.
fn map(out: &mut Vec<u8>, pairs: &[(&'static str, String)]) {
    if pairs.is_empty() {
        return encode::long(out, 0);
    }
    encode::long(out, 1);
    encode::length(out, pairs.len());
    for (name, value) in pairs {
        encode::string(out, name);
        encode::string(out, value);
    }
    encode::long(out, 0);
}
