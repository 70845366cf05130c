//! Incremental Copy Blob: a page blob that follows another one, snapshot by snapshot.
//! <https://learn.microsoft.com/rest/api/storageservices/incremental-copy-blob>
//!
//! The target has one snapshot for each that was copied; clients read those. The target itself they neither read nor
//! write. A map of pages is shared whole, so what did not change takes no space. A copy inside the server takes the same
//! time whatever has changed since the last one. A copy from another server is carried on behind its request
//! ([`pending`]): it begins as what the last one made, and only what differs is read.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::blob::copying::{CopyState, CopyStatus, Incremental};
use crate::blob::feed::{Cause, Change};
use crate::blob::kind::BlobKind;
use crate::blob::pending::{self, Begun, Source};
use crate::blob::state::{self, Found, Place};
use crate::blob::{OnBlob, Part, Stored, Written, keep, tags};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::{Lease, Leased};
use crate::policy::{AccountPolicy, Policies};
use crate::properties::{HttpProperties, Metadata};
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::copy::Follows;
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

/// A snapshot that an incremental copy is asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// What tells its blob from every other one.
    source: [u8; 32],
    /// When it was taken.
    of: Timestamp,
}

impl Followed {
    /// Of a blob on this server.
    fn here(base: &[u8], of: Timestamp) -> Self {
        Self { source: Sha256::new().chain_update([0]).chain_update(base).finalize().into(), of }
    }

    /// Of a blob on another server: what `address` says, which is spelt in one way, is the same for all its snapshots.
    pub fn elsewhere(address: &str, of: Timestamp) -> Self {
        Self { source: Sha256::new().chain_update([1]).chain_update(address).finalize().into(), of }
    }
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
    let next = Followed::here(&base, of);
    let lease = admit(tx, target, &place, next)?;
    let copy = CopyState {
        id: request.id,
        source: request.url.clone(),
        status: CopyStatus::Success,
        done: source.length,
        total: source.length,
        ended: Some(tx.now()),
        description: None,
        incremental: Some(Incremental { snapshot: Some(tx.now()), source: next.source, of }),
    };
    state::retain_content(tx, source.content)?;
    if let Some(old) = &place.blob {
        state::release_content(tx, old.content)?;
    }
    let key = place.key.clone();
    let BlobRow { kind, length, content, http, metadata, .. } = source;
    let next = Next { kind, http, metadata, length, content, copy, lease, cause: Cause::Copy };
    let blob = put(tx, policy, target, place, next)?;
    take(tx, &key, &blob)?;
    Ok(Written { etag: blob.etag, version: blob.version })
}

/// An incremental copy of a snapshot on another server, before that is asked: whether the target would refuse it now.
/// The answer is not binding.
pub fn check(engine: &Engine, target: &OnBlob, followed: Followed) -> Result<(), Error> {
    engine.read(|view| admit(view, target, &state::place(view, target)?, followed).map(|_| ()))
}

/// Incremental Copy Blob, of a snapshot on another server: the copy is under way at the target, beside what the last one
/// made. Properties and metadata are the source's.
///
/// Refuses `SourceKindMismatch`, and of the target as [`copy`].
pub async fn begin(
    engine: &Engine,
    target: OnBlob,
    request: IncrementalCopy,
    followed: Followed,
    source: Source,
) -> Result<Begun, Error> {
    let policies = engine.policies();
    let begun =
        engine.write(Purpose::Grow, move |tx| try_begin(tx, &policies, &target, &request, followed, &source)).await?;
    engine.wake();
    engine.copies().notify_waiters();
    Ok(begun)
}

fn try_begin(
    tx: &mut dyn Tx,
    policies: &Policies,
    target: &OnBlob,
    request: &IncrementalCopy,
    followed: Followed,
    source: &Source,
) -> Result<Begun, Error> {
    let policy = policies.of(&target.address.container.account);
    let place = state::place(tx, target)?;
    if !source.kind.is_like(BlobKind::Page { sequence: 0 }) {
        return Err(Refusal::SourceKindMismatch.into());
    }
    let lease = admit(tx, target, &place, followed)?;
    let (key, total) = (place.key.clone(), source.length);
    let last = place.blob.as_ref().and_then(|blob| Some((blob, blob.copy.as_ref()?.incremental?)));
    let last = last.filter(|(_, last)| last.snapshot.is_some());
    let (length, content) = last.map_or((total, Content::Empty), |(blob, _)| (blob.length, blob.content));
    let incremental =
        last.map_or(Incremental { snapshot: None, source: followed.source, of: followed.of }, |(_, last)| last);
    // What is told of differences ends where the source does: what the last copy has behind that would stay.
    let since = last.filter(|_| length <= total).map(|(_, last)| last.of);
    let start = since.map_or(Content::Empty, |_| content);
    let copy = CopyState {
        id: request.id,
        source: request.url.clone(),
        status: CopyStatus::Pending,
        done: 0,
        total,
        ended: None,
        description: None,
        incremental: Some(incremental),
    };
    let (kind, http, metadata) = (source.kind, source.http.clone(), source.metadata.clone());
    let next = Next { kind, http, metadata, length, content, copy, lease, cause: Cause::CopyBegun };
    let blob = put(tx, &policy, target, place, next)?;
    state::retain_content(tx, start)?;
    let follows = Follows { of: followed.of, since };
    let row = pending::note(tx, request.id, target, &key, source, (start, Some(follows)))?;
    // Of nothing there is nothing to wait for.
    let complete = total == 0 && pending::come(tx, policies, request.id, row)?;
    let status = if complete { CopyStatus::Success } else { CopyStatus::Pending };
    Ok(Begun { written: Written { etag: blob.etag, version: blob.version }, status })
}

/// A copy from another server is complete: the target, which has its content, gets its snapshot.
pub(super) fn complete(tx: &mut dyn Tx, key: &[u8], blob: &mut BlobRow, follows: Follows) -> Result<(), StoreError> {
    if let Some(last) = blob.copy.as_mut().and_then(|copy| copy.incremental.as_mut()) {
        *last = Incremental { snapshot: Some(tx.now()), of: follows.of, ..*last };
    }
    take(tx, key, blob)
}

/// Whether the target may follow the source; answers the lease that it has from then on.
fn admit(view: &dyn View, target: &OnBlob, place: &Place, next: Followed) -> Result<Lease, Error> {
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
    // Of the first one nothing may have come.
    if last.snapshot.is_some() && next.of <= last.of {
        return Err(Refusal::SourceEarlier.into());
    }
    Ok(lease)
}

/// What the target becomes.
struct Next {
    kind: BlobKind,
    http: HttpProperties,
    metadata: Metadata,
    length: u64,
    /// The target takes over the reference.
    content: Content,
    copy: CopyState,
    lease: Lease,
    cause: Cause,
}

/// Writes the target, over the one that there is; what refers to its content is left to the caller.
fn put(tx: &mut dyn Tx, policy: &AccountPolicy, target: &OnBlob, place: Place, next: Next) -> Result<BlobRow, Error> {
    let Next { kind, http, metadata, length, content, copy, lease, cause } = next;
    let (key, copy) = (place.key.clone(), Some(copy));
    let Some(old) = place.blob.clone() else {
        let encryption = place.scope.encryption(None, None)?;
        let stored = Stored { http, metadata, ..Stored::default() };
        let new = state::New { kind, stored, length, content, copy, encryption, cause };
        state::replace(tx, policy, target, place, lease, new)?;
        return Ok(rows::get(tx, Space::Blobs, &key)?.ok_or(Refusal::BlobNotFound)?);
    };
    let etag = Etag::at(tx.now());
    let blob = BlobRow { kind, length, http, metadata, content, copy, lease, etag, ..old };
    rows::put(tx, Space::Blobs, key, &blob)?;
    Change::of(cause, &blob).record(tx, policy, target)?;
    Ok(blob)
}

/// Takes a snapshot of the target as it is.
fn take(tx: &mut dyn Tx, key: &[u8], blob: &BlobRow) -> Result<(), StoreError> {
    let snapshot = BlobRow { version: None, ..keep::as_layer(blob) };
    let key = layer::key(key, tx.now());
    state::retain_content(tx, snapshot.content)?;
    rows::put(tx, LayerKind::Snapshot.space(), key, &snapshot)
}
