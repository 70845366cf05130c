//! Block blobs as whole objects: put, get, properties, metadata, delete, lease.
//! <https://learn.microsoft.com/rest/api/storageservices/operations-on-blobs>

use crate::blob::content::{Held, Reader};
use crate::blob::copying::CopyState;
use crate::blob::feed::{Cause, Change};
use crate::blob::kind::BlobKind;
use crate::blob::state::Found;
use crate::blob::{LeaseAnswer, LeaseView, OnBlob, Part, Stored, Written, keep, state, tags};
use crate::clock::Timestamp;
use crate::encryption::Encryption;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::{LeaseAction, LeaseState};
use crate::names::BlobName;
use crate::payload::Staged;
use crate::properties::{HttpProperties, Metadata};
use crate::protection::Protection;
use crate::range::{ByteRange, RangeRequest};
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::layer::Deletion;
use crate::store::{Purpose, Space, View};
use crate::tags::Tags;
use crate::tier::TierState;

/// A blob as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobView {
    /// Its name.
    pub name: BlobName,
    /// Which of its states this is: the blob itself, which is the current version if it is one; a snapshot; or a previous
    /// version.
    pub part: Part,
    /// That it is soft-deleted, and until when.
    pub deleted: Option<Deletion>,
    /// Its version; the commit time is Last-Modified.
    pub etag: Etag,
    /// When the blob was first created.
    pub created: Timestamp,
    /// The version that it is, where versions are kept.
    pub version: Option<Timestamp>,
    /// What kind of blob it is.
    pub kind: BlobKind,
    /// Bytes of content.
    pub length: u64,
    /// Stored HTTP properties.
    pub http: HttpProperties,
    /// Its metadata.
    pub metadata: Metadata,
    /// Its lease.
    pub lease: LeaseView,
    /// How many tags it has.
    pub tags: u8,
    /// The tags, in a listing that shows them.
    pub tag_set: Tags,
    /// Its access tier, once one was set, as it stands now.
    pub tier: Option<TierState>,
    /// The copy that made it.
    pub copy: Option<CopyState>,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// What protects it from overwriting and deleting.
    pub protection: Protection,
    /// Under which key it is stored.
    pub encryption: Encryption,
}

impl BlobView {
    /// A block blob without content that was just made, with nothing stored beside it.
    pub fn new(name: BlobName, etag: Etag) -> Self {
        Self {
            name,
            part: Part::Base,
            deleted: None,
            etag,
            created: etag.committed(),
            version: None,
            kind: BlobKind::Block,
            length: 0,
            http: HttpProperties::default(),
            metadata: Metadata::default(),
            lease: LeaseView { state: LeaseState::Available, duration: None },
            tags: 0,
            tag_set: Tags::default(),
            tier: None,
            copy: None,
            expires: None,
            protection: Protection::default(),
            encryption: Encryption::Account,
        }
    }

    pub(super) fn of(name: BlobName, part: Part, row: BlobRow, now: Timestamp) -> Self {
        Self {
            name,
            part,
            deleted: None,
            etag: row.etag,
            created: row.created,
            version: row.version,
            kind: row.kind,
            length: row.length,
            http: row.http,
            metadata: row.metadata,
            lease: LeaseView::of(&row.lease, now),
            tags: row.tags,
            tag_set: Tags::default(),
            tier: row.tier.map(|tier| tier.at(now)),
            copy: row.copy,
            expires: row.expires.map(|expiry| expiry.at),
            protection: row.protection,
            encryption: row.encryption,
        }
    }
}

/// Put Blob, before its body is read: whether it would be refused now. The answer is not binding.
pub fn check_put(engine: &Engine, on: &OnBlob) -> Result<(), Error> {
    let policy = engine.policy(&on.address.container.account);
    engine.read(|view| {
        let place = state::place(view, on)?;
        state::admit_create(view, on, &place, BlobKind::Block)?;
        Ok(place.blob.map_or(Ok(()), |blob| keep::admit(&policy, &blob, view.now()))?)
    })
}

/// Put Blob (block blob): <https://learn.microsoft.com/rest/api/storageservices/put-blob>
///
/// Replaces content, properties and metadata; keeps a held lease; drops the blob's uncommitted blocks.
/// Refuses `ContainerNotFound`, `BlobExists`, `ConditionFailed`, the lease refusals, `BlobHeld`, `BlobImmutable`,
/// `TierNotForKind`, `ProtectionOff` and `PolicyOver`.
pub async fn put(engine: &Engine, on: OnBlob, stored: Stored, content: Staged) -> Result<Written, Error> {
    let policy = engine.policy(&on.address.container.account);
    let written = engine
        .write_content(content, move |tx, content| {
            let place = state::place(tx, &on)?;
            let lease = state::admit_create(tx, &on, &place, BlobKind::Block)?;
            let encryption = place.scope.encryption(on.key.as_ref(), stored.scope.as_ref())?;
            let length = content.length();
            let kept = if length == 0 { Content::Empty } else { Content::Whole(content.keep(tx)?) };
            let (kind, stored) = (BlobKind::Block, stored.clone());
            let new = state::New { kind, stored, length, content: kept, copy: None, encryption, cause: Cause::Put };
            state::replace(tx, &policy, &on, place, lease, new)
        })
        .await?;
    engine.wake();
    Ok(written)
}

/// Get Blob Properties.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `NotModified`, `ConditionFailed`, `ConditionUnsatisfiable` and the
/// lease refusals.
pub async fn get(engine: &Engine, on: OnBlob) -> Result<BlobView, Error> {
    engine.read(|view| {
        let found = state::readable(view, &on)?;
        state::opened(&found.blob, &on)?;
        Ok(BlobView::of(on.address.blob.clone(), found.part, found.blob, view.now()))
    })
}

/// Get Blob Metadata.
///
/// Refuses as [`get`], and `IncrementalTarget`.
pub async fn get_metadata(engine: &Engine, on: OnBlob) -> Result<BlobView, Error> {
    let blob = get(engine, on).await?;
    let is_target = blob.copy.as_ref().is_some_and(|copy| copy.incremental.is_some());
    if is_target && blob.part == Part::Base { Err(Refusal::IncrementalTarget.into()) } else { Ok(blob) }
}

/// A content about to be read: one moment of the blob, however long the reading takes.
#[derive(Debug)]
pub struct Download {
    /// The blob.
    pub blob: BlobView,
    /// The part that was asked for; none for the whole.
    pub range: Option<ByteRange>,
    /// The bytes of that part.
    pub reader: Reader,
}

/// Get Blob: <https://learn.microsoft.com/rest/api/storageservices/get-blob>
///
/// Refuses as [`get`], `BlobArchived` and `RangeOutside`.
pub async fn download(engine: &Engine, on: OnBlob, range: Option<RangeRequest>) -> Result<Download, Error> {
    download_of(engine, state::readable, on, range).await
}

/// As [`download`], of what `find` answers.
pub(super) async fn download_of(
    engine: &Engine,
    find: fn(&dyn View, &OnBlob) -> Result<Found, Error>,
    on: OnBlob,
    range: Option<RangeRequest>,
) -> Result<Download, Error> {
    let key = on.key.clone();
    let opened = engine.read(|view| {
        let (Found { part, blob, .. }, range, bytes) = part_of(view, &on, find(view, &on)?, range)?;
        let Some(reader) = Reader::open(engine, view, blob.content, blob.length, bytes)? else { return Ok(None) };
        Ok(Some(Download { blob: BlobView::of(on.address.blob.clone(), part, blob, view.now()), range, reader }))
    })?;
    if let Some(Download { blob, range, reader }) = opened {
        return Ok(Download { blob, range, reader: reader.under(key) });
    }
    let (name, pins) = (on.address.blob.clone(), engine.payloads().pins().clone());
    let held = engine.write(Purpose::Free, move |tx| {
        let (found, range, bytes) = part_of(tx, &on, find(tx, &on)?, range)?;
        Ok((Held::by(&pins, found.blob.content), found, range, bytes, tx.now()))
    });
    let (held, Found { part, blob, .. }, range, bytes, now) = held.await?;
    let reader = Reader::over(engine, held, blob.content, blob.length, bytes).under(key);
    Ok(Download { blob: BlobView::of(name, part, blob, now), range, reader })
}

/// The blob, the range that was asked for, and the bytes of the content that this is.
fn part_of(
    view: &dyn View,
    on: &OnBlob,
    found: Found,
    range: Option<RangeRequest>,
) -> Result<(Found, Option<ByteRange>, ByteRange), Error> {
    state::own(found.part, &found.blob)?;
    state::opened(&found.blob, on)?;
    state::online(&found.blob, view.now())?;
    let range = range.map(|range| range.within(found.blob.length)).transpose()?;
    let bytes = range.unwrap_or(ByteRange { first: 0, length: found.blob.length });
    Ok((found, range, bytes))
}

/// Set Blob Metadata: replaces all of it. Where versions are kept, the blob becomes a new one.
pub async fn set_metadata(engine: &Engine, on: OnBlob, metadata: Metadata) -> Result<Written, Error> {
    let policy = engine.policy(&on.address.container.account);
    engine
        .write(Purpose::Grow, move |tx| {
            let (key, mut blob) = state::supersedable(tx, &on, &policy)?;
            state::own(Part::Base, &blob)?;
            state::opened(&blob, &on)?;
            state::online(&blob, tx.now())?;
            blob.version = keep::changed(tx, &policy, &key, &blob)?;
            blob.created = blob.version.unwrap_or(blob.created);
            (blob.metadata, blob.etag) = (metadata.clone(), Etag::at(tx.now()));
            rows::put(tx, Space::Blobs, key, &blob)?;
            Change::of(Cause::Metadata, &blob).record(tx, &policy, &on)?;
            Ok(Written { etag: blob.etag, version: blob.version })
        })
        .await
}

/// What Set Blob Properties answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertiesSet {
    /// The version that it made.
    pub written: Written,
    /// The kind of the blob, with what only one of that kind has.
    pub kind: BlobKind,
}

/// Set Blob Properties: replaces all stored HTTP properties; none of them given leaves all as they are.
pub async fn set_http(engine: &Engine, on: OnBlob, http: Option<HttpProperties>) -> Result<PropertiesSet, Error> {
    let policy = engine.policy(&on.address.container.account);
    engine
        .write(Purpose::Grow, move |tx| {
            let (key, mut blob) = state::writable(tx, &on)?;
            state::online(&blob, tx.now())?;
            if let Some(http) = &http {
                blob.http = http.clone();
                blob.copy = None;
            }
            blob.etag = Etag::at(tx.now());
            rows::put(tx, Space::Blobs, key, &blob)?;
            Change::of(Cause::Properties, &blob).record(tx, &policy, &on)?;
            Ok(PropertiesSet { written: Written { etag: blob.etag, version: blob.version }, kind: blob.kind })
        })
        .await
}

/// Lease Blob: <https://learn.microsoft.com/rest/api/storageservices/lease-blob>. `on.lease` is not used.
pub async fn lease(engine: &Engine, on: OnBlob, action: LeaseAction) -> Result<LeaseAnswer, Error> {
    engine
        .write(Purpose::Free, move |tx| {
            let state::Place { key, blob, .. } = state::place(tx, &on)?;
            let mut blob = blob.ok_or(Refusal::BlobNotFound)?;
            on.conditions.judge_write(blob.etag)?;
            on.conditions.judge_tags(|| tags::read(tx, &key))?;
            state::settled(&blob)?;
            state::own(Part::Base, &blob)?;
            blob.lease = blob.lease.apply(action, tx.now())?;
            rows::put(tx, Space::Blobs, key, &blob)?;
            Ok(LeaseAnswer::of(blob.etag, &blob.lease, tx.now()))
        })
        .await
}
