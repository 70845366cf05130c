//! Snapshot Blob: <https://learn.microsoft.com/rest/api/storageservices/snapshot-blob>

use crate::blob::feed::{Cause, Change};
use crate::blob::{OnBlob, Part, Written, keep, layers, state, tags};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::Leased;
use crate::properties::Metadata;
use crate::protection::Protection;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::BlobRow;
use crate::rows::layer::{self, LayerKind};
use crate::store::{Purpose, Space};

/// What taking a snapshot answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Names the snapshot.
    pub at: Timestamp,
    /// The snapshot's ETag: the blob's, unless the snapshot has metadata of its own. The version is the blob's.
    pub written: Written,
}

/// Takes a snapshot, which shares the blob's bytes: the time does not depend on how many there are. `metadata` replaces
/// the blob's. Where versions are kept, the blob becomes a new version as well, as on Azure.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `PartReadOnly`, `ConditionFailed`, and the lease refusals if a lease is
/// named that is not held, `BlobArchived`.
pub async fn take(engine: &Engine, on: OnBlob, metadata: Option<Metadata>) -> Result<Taken, Error> {
    let policy = engine.policy(&on.address.container.account);
    engine
        .write(Purpose::Grow, move |tx| {
            let (at, state::Place { key, blob, .. }) = (tx.now(), state::place(tx, &on)?);
            let mut blob = blob.ok_or(Refusal::BlobNotFound)?;
            on.conditions.judge_write(blob.etag)?;
            on.conditions.judge_tags(|| tags::read(tx, &key))?;
            blob.lease.guard_read(at, on.lease, Leased::Blob)?;
            state::online(&blob, at)?;
            state::opened(&blob, &on)?;
            state::settled(&blob)?;
            state::own(Part::Base, &blob)?;
            let mut snapshot = BlobRow { version: None, protection: Protection::default(), ..keep::as_layer(&blob) };
            if let Some(metadata) = &metadata {
                (snapshot.metadata, snapshot.etag) = (metadata.clone(), Etag::at(at));
            }
            state::retain_content(tx, snapshot.content)?;
            let (tags_key, finding) = layers::tags(&key, at, LayerKind::Snapshot);
            tags::share(tx, &key, &tags_key, finding)?;
            rows::put(tx, LayerKind::Snapshot.space(), layer::key(&key, at), &snapshot)?;
            Change::of(Cause::Snapshot, &snapshot).part(Part::Snapshot(at)).record(tx, &policy, &on)?;
            if policy.versioning {
                blob.version = keep::changed(tx, &policy, &key, &blob)?;
                rows::put(tx, Space::Blobs, key, &blob)?;
            }
            Ok(Taken { at, written: Written { etag: snapshot.etag, version: blob.version } })
        })
        .await
}
