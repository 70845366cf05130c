//! Incremental Copy Blob: a page blob that follows another one, snapshot by snapshot.
//! <https://learn.microsoft.com/rest/api/storageservices/incremental-copy-blob>
//!
//! The target has one snapshot for each that was copied; clients read those. The target itself they neither read nor
//! write. A map of pages is shared whole, so a copy takes the same time whatever has changed since the last one, and
//! what did not change takes no space.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::blob::copying::{CopyState, CopyStatus, Incremental};
use crate::blob::feed::{Cause, Change};
use crate::blob::kind::BlobKind;
use crate::blob::state::{self, Found, Place};
use crate::blob::{OnBlob, Part, Stored, Written, keep, tags};
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::{Lease, Leased};
use crate::policy::AccountPolicy;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::BlobRow;
use crate::rows::layer::{self, LayerKind};
use crate::store::{Purpose, Space, StoreError, Tx, View};

/// What an incremental copy is told beside its two sides.
#[derive(Clone, Debug)]
pub struct IncrementalCopy {
    /// Names it.
    pub id: Uuid,
    /// The source as the client named it, without its signature.
    pub url: String,
}

/// Incremental Copy Blob, of a snapshot on this server: the target becomes what the snapshot is, and gets a snapshot of
/// that. Properties and metadata are the source's.
///
/// Refuses as [`crate::blob::copy::source`]; `SourceNotSnapshot`, `SourceKindMismatch`; of the target
/// `ContainerNotFound`, `BlobExists`, `ConditionFailed`, the lease refusals, `BlobKindMismatch`, `CopyPending`,
/// `SourceDiffers` for one that follows another blob or none, `SourceEarlier` for a snapshot that is not newer than the
/// last.
pub async fn copy(engine: &Engine, source: OnBlob, target: OnBlob, request: IncrementalCopy) -> Result<Written, Error> {
    let policy = engine.policy(&target.address.container.account);
    let written = engine.write(Purpose::Grow, move |tx| follow(tx, &policy, &source, &target, &request)).await?;
    engine.wake();
    Ok(written)
}

fn follow(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    source: &OnBlob,
    target: &OnBlob,
    request: &IncrementalCopy,
) -> Result<Written, Error> {
    let place = state::place(tx, target)?;
    let Found { part, base, blob: source } = state::source(tx, source)?;
    let Part::Snapshot(of) = part else { return Err(Refusal::SourceNotSnapshot.into()) };
    if !source.kind.is_like(BlobKind::Page { sequence: 0 }) {
        return Err(Refusal::SourceKindMismatch.into());
    }
    let next = Incremental { snapshot: Some(tx.now()), source: Sha256::digest(&base).into(), of };
    let lease = admit(tx, target, &place, &next)?;
    let copy = Some(CopyState {
        id: request.id,
        source: request.url.clone(),
        status: CopyStatus::Success,
        done: source.length,
        total: source.length,
        ended: Some(tx.now()),
        description: None,
        incremental: Some(next),
    });
    state::retain_content(tx, source.content)?;
    let key = place.key.clone();
    let blob = match place.blob {
        Some(ref old) => {
            state::release_content(tx, old.content)?;
            let BlobRow { kind, length, http, metadata, content, .. } = source;
            let etag = Etag::at(tx.now());
            let blob = BlobRow { kind, length, http, metadata, content, copy, lease, etag, ..old.clone() };
            rows::put(tx, Space::Blobs, key.clone(), &blob)?;
            Change::of(Cause::Copy, &blob).record(tx, policy, target)?;
            blob
        }
        None => begin(tx, policy, target, place, (source, copy, lease))?,
    };
    take(tx, &key, &blob)?;
    Ok(Written { etag: blob.etag, version: blob.version })
}

/// Whether the target may follow the source; answers the lease that it has from then on.
fn admit(view: &dyn View, target: &OnBlob, place: &Place, next: &Incremental) -> Result<Lease, Error> {
    let existing = place.blob.as_ref();
    target.conditions.judge_create(existing.map(|blob| blob.etag))?;
    target.conditions.judge_tags(|| tags::read(view, &place.key))?;
    let lease = state::lease_of(existing).guard_write(view.now(), target.lease, Leased::Blob)?;
    let Some(blob) = existing else { return Ok(lease) };
    if !blob.kind.is_like(BlobKind::Page { sequence: 0 }) {
        return Err(Refusal::BlobKindMismatch.into());
    }
    state::settled(blob)?;
    let last = blob.copy.as_ref().and_then(|copy| copy.incremental);
    let last = last.filter(|last| last.source == next.source).ok_or(Refusal::SourceDiffers)?;
    if next.of <= last.of {
        return Err(Refusal::SourceEarlier.into());
    }
    Ok(lease)
}

/// The target of a first copy.
fn begin(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    target: &OnBlob,
    place: Place,
    (source, copy, lease): (BlobRow, Option<CopyState>, Lease),
) -> Result<BlobRow, Error> {
    let key = place.key.clone();
    let encryption = place.scope.encryption(None, None)?;
    let BlobRow { kind, length, content, http, metadata, .. } = source;
    let stored = Stored { http, metadata, ..Stored::default() };
    let new = state::New { kind, stored, length, content, copy, encryption, cause: Cause::Copy };
    state::replace(tx, policy, target, place, lease, new)?;
    Ok(rows::get(tx, Space::Blobs, &key)?.ok_or(Refusal::BlobNotFound)?)
}

/// Takes a snapshot of the target as it is.
fn take(tx: &mut dyn Tx, key: &[u8], blob: &BlobRow) -> Result<(), StoreError> {
    let snapshot = BlobRow { version: None, ..keep::as_layer(blob) };
    let key = layer::key(key, tx.now());
    state::retain_content(tx, snapshot.content)?;
    rows::put(tx, LayerKind::Snapshot.space(), key, &snapshot)
}
