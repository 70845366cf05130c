//! Copies inside the server: one transaction that judges both sides and shares the bytes by reference, whatever their
//! number. <https://learn.microsoft.com/rest/api/storageservices/copy-blob>

use uuid::Uuid;

use crate::blob::blocks::{self, BlockId};
use crate::blob::copying::{CopyState, CopyStatus};
use crate::blob::feed::Cause;
use crate::blob::kind::BlobKind;
use crate::blob::object::{self, BlobView, Download};
use crate::blob::state::{self, Place};
use crate::blob::{OnBlob, Stored, Written, tags};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::lease::{Lease, LeaseDuration};
use crate::payload::Staged;
use crate::payload::refs::{self, Target};
use crate::policy::AccountPolicy;
use crate::properties::{HttpProperties, Metadata};
use crate::protection::Protection;
use crate::range::RangeRequest;
use crate::refusal::Refusal;
use crate::rows::blob::Content;
use crate::store::{Purpose, Tx, View};
use crate::tags::Tags;
use crate::tier::Tier;

/// Largest source of Copy Blob From URL.
pub const SYNC_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Which of the copies is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// Copy Blob: any kind; a lease on the target must be endless.
    Start,
    /// Copy Blob From URL: block blobs up to [`SYNC_BYTES_MAX`].
    Sync,
    /// Put Blob From URL: a new block blob, whatever the source is. Nothing of the copy is remembered.
    Put,
}

/// What a copy is told beside its two sides.
#[derive(Clone, Debug)]
pub struct CopyRequest {
    /// Which of the copies it is.
    pub kind: CopyKind,
    /// Names it.
    pub id: Uuid,
    /// The source as the client named it, without its signature.
    pub url: String,
    /// HTTP properties of the new blob.
    pub http: HttpProperties,
    /// Whether properties that are not given are those of the source.
    pub keep_http: bool,
    /// Metadata of the new blob; none: the source's.
    pub metadata: Option<Metadata>,
    /// Tags of the new blob; none: the source's.
    pub tags: Option<Tags>,
    /// The encryption scope of the new blob; none for the container's default.
    pub scope: Option<String>,
    /// The access tier of the new blob; none: of a copy that of the blob which it replaces, else the account's default.
    pub tier: Option<Tier>,
    /// What protects the new blob.
    pub protection: Protection,
    /// Whether a new append blob is sealed; none: if its source is.
    pub seal: Option<bool>,
}

/// The source of a copy on this server, as it is now: conditions and lease of `on` are those that the request puts on
/// its source.
///
/// Refuses `SourceContainerNotFound`, `SourceBlobNotFound`, `SourceConditionFailed`, `CopyPending` and the lease
/// refusals.
pub fn source(engine: &Engine, on: &OnBlob) -> Result<BlobView, Error> {
    engine.read(|view| {
        let found = state::source(view, on)?;
        Ok(BlobView::of(on.address.blob.clone(), found.part, found.blob, view.now()))
    })
}

/// A copy, before its source on another server is asked: whether its target would refuse it now. The answer is not
/// binding.
pub fn check(engine: &Engine, target: &OnBlob, kind: CopyKind) -> Result<(), Error> {
    engine.read(|view| {
        let place = state::place(view, target)?;
        // The source may be of any kind that the target's is.
        let like = place.blob.as_ref().filter(|_| kind == CopyKind::Start).map_or(BlobKind::Block, |blob| blob.kind);
        admit_target(view, target, &place, kind, like).map(|_| ())
    })
}

/// Copy Blob, Copy Blob From URL and Put Blob From URL, of a source on this server.
///
/// Takes properties, metadata, the committed block list with its ids, sequence number and count of appended blocks; not
/// the lease, the snapshots and the uncommitted blocks. The source may be the target itself.
///
/// Refuses as [`source`] and as `put`; `LeaseNotInfinite` for [`CopyKind::Start`]; `SourceTooLarge` and
/// `SourceKindMismatch` for [`CopyKind::Sync`]; `BlobArchived` for both over an archived blob.
pub async fn copy(engine: &Engine, source: OnBlob, target: OnBlob, request: CopyRequest) -> Result<Written, Error> {
    let policy = engine.policy(&target.address.container.account);
    let written = engine.write(Purpose::Grow, move |tx| share(tx, &policy, &source, &target, &request)).await?;
    engine.wake();
    Ok(written)
}

/// The bytes of the source of a copy, or of a part of them, as of one moment.
///
/// Refuses as [`source`], and `RangeOutside`.
pub async fn read(engine: &Engine, on: OnBlob, range: Option<RangeRequest>) -> Result<Download, Error> {
    object::download_of(engine, state::source, on, range).await
}

/// A source of another server, fetched whole.
#[derive(Debug)]
pub struct Fetched {
    /// Its HTTP properties.
    pub http: HttpProperties,
    /// Its metadata.
    pub metadata: Metadata,
    /// Its tags, if they are wanted.
    pub tags: Tags,
    /// Its bytes.
    pub content: Staged,
}

/// Copy Blob From URL and Put Blob From URL, of a source on another server: a new block blob.
///
/// Refuses as `put`.
pub async fn put(engine: &Engine, target: OnBlob, request: CopyRequest, fetched: Fetched) -> Result<Written, Error> {
    let Fetched { http, metadata, tags, content } = fetched;
    let policy = engine.policy(&target.address.container.account);
    let written = engine
        .write_content(content, move |tx, content| {
            let place = state::place(tx, &target)?;
            let lease = admit_target(tx, &target, &place, request.kind, BlobKind::Block)?;
            let length = content.length();
            let kept = if length == 0 { Content::Empty } else { Content::Whole(content.keep(tx)?) };
            let tags = request.tags.clone().unwrap_or_else(|| tags.clone());
            let tier = tier(&request, &place, (BlobKind::Block, length), tx.now());
            let stored = Stored { tier, ..stored(&request, http.clone(), metadata.clone(), tags) };
            let copy = remembered(&request, length, tx.now());
            let encryption = place.scope.encryption(target.key.as_ref(), stored.scope.as_ref())?;
            let cause = cause(request.kind);
            let new = state::New { kind: BlobKind::Block, stored, length, content: kept, copy, encryption, cause };
            state::replace(tx, &policy, &target, place, lease, new)
        })
        .await?;
    engine.wake();
    Ok(written)
}

/// Put Block From URL, of a source on this server that is stored as one body, or of all of one: the block shares it.
/// Answers whether it did; otherwise the bytes are to be read and put.
///
/// Refuses as [`read`] and as `put_block`.
pub async fn put_block(
    engine: &Engine,
    source: OnBlob,
    range: Option<RangeRequest>,
    target: OnBlob,
    id: BlockId,
) -> Result<bool, Error> {
    let shared = engine
        .write(Purpose::Grow, move |tx| {
            let source = state::source(tx, &source)?.blob;
            state::online(&source, tx.now())?;
            let range = range.map(|range| range.within(source.length)).transpose()?;
            let whole = range.is_none_or(|range| range.length == source.length);
            let Content::Whole(payload) = source.content else { return Ok(false) };
            if whole {
                blocks::place(tx, &target, &id, source.length, |tx| {
                    refs::retain(tx, Target::payload(payload), 1)?;
                    Ok(payload)
                })?;
            }
            Ok(whole)
        })
        .await?;
    engine.wake();
    Ok(shared)
}

fn share(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    source: &OnBlob,
    target: &OnBlob,
    request: &CopyRequest,
) -> Result<Written, Error> {
    let place = state::place(tx, target)?;
    let found = state::source(tx, source)?;
    if request.tier.is_none() {
        state::online(&found.blob, tx.now())?;
    }
    let tags_key = found.tags().0;
    let source = found.blob;
    admit_source(request.kind, source.kind, source.length)?;
    let kind = kind_of_copy(request, source.kind);
    let lease = admit_target(tx, target, &place, request.kind, kind)?;
    let tags = match &request.tags {
        Some(tags) => tags.clone(),
        None => tags::read(tx, &tags_key)?,
    };
    state::retain_content(tx, source.content)?;
    let copy = remembered(request, source.length, tx.now());
    let tier = tier(request, &place, (kind, source.length), tx.now());
    let stored = Stored { tier, ..stored(request, source.http, source.metadata, tags) };
    // The bytes are shared as they are: what is under a customer's key is no source.
    let encryption = place.scope.encryption(None, stored.scope.as_ref())?;
    let (length, content, cause) = (source.length, source.content, cause(request.kind));
    let new = state::New { kind, stored, length, content, copy, encryption, cause };
    state::replace(tx, policy, target, place, lease, new)
}

/// What the copy is to those who follow the changes.
fn cause(copy: CopyKind) -> Cause {
    match copy {
        CopyKind::Start | CopyKind::Sync => Cause::Copy,
        CopyKind::Put => Cause::Put,
    }
}

/// Whether the copy takes sources like this one.
fn admit_source(copy: CopyKind, source: BlobKind, length: u64) -> Result<(), Refusal> {
    if copy == CopyKind::Sync && !source.is_like(BlobKind::Block) {
        return Err(Refusal::SourceKindMismatch);
    }
    if copy == CopyKind::Sync && length > SYNC_BYTES_MAX {
        return Err(Refusal::SourceTooLarge);
    }
    Ok(())
}

/// Whether the target may become the copy; answers the lease that it has from then on.
pub(super) fn admit_target(
    view: &dyn View,
    target: &OnBlob,
    place: &Place,
    copy: CopyKind,
    kind: BlobKind,
) -> Result<Lease, Error> {
    let lease = state::admit_create(view, target, place, kind)?;
    if copy == CopyKind::Start && matches!(lease.duration(view.now()), Some(LeaseDuration::Seconds(_))) {
        return Err(Refusal::LeaseNotInfinite.into());
    }
    if let Some(blob) = place.blob.as_ref().filter(|_| copy != CopyKind::Put) {
        state::online(blob, view.now())?;
    }
    Ok(lease)
}

/// The tier of a new blob of `kind` and `length`, if it is not the account's default: that of the one it replaces, if
/// it fits.
pub(super) fn tier(
    request: &CopyRequest,
    place: &Place,
    (kind, length): (BlobKind, u64),
    now: Timestamp,
) -> Option<Tier> {
    let replaced = place.blob.as_ref().filter(|_| request.kind != CopyKind::Put);
    let fits = |tier: &Tier| tier.admit(kind, length).is_ok();
    request.tier.or_else(|| Some(replaced?.tier?.at(now).tier).filter(fits))
}

/// The kind of the new blob.
pub(super) fn kind_of_copy(request: &CopyRequest, source: BlobKind) -> BlobKind {
    match (request.kind, source) {
        (CopyKind::Put, _) => BlobKind::Block,
        (_, BlobKind::Append { blocks, sealed }) => BlobKind::Append { blocks, sealed: request.seal.unwrap_or(sealed) },
        (_, kind) => kind,
    }
}

/// What is stored beside the bytes of the new blob.
pub(super) fn stored(request: &CopyRequest, http: HttpProperties, metadata: Metadata, tags: Tags) -> Stored {
    let given = request.http.clone();
    let kept = if request.keep_http { http } else { HttpProperties::default() };
    let http = HttpProperties {
        cache_control: given.cache_control.or(kept.cache_control),
        content_type: given.content_type.or(kept.content_type),
        content_encoding: given.content_encoding.or(kept.content_encoding),
        content_language: given.content_language.or(kept.content_language),
        content_disposition: given.content_disposition.or(kept.content_disposition),
        content_md5: given.content_md5.or(kept.content_md5),
    };
    Stored {
        http,
        metadata: request.metadata.clone().unwrap_or(metadata),
        tags,
        scope: request.scope.clone(),
        tier: request.tier,
        protection: request.protection,
    }
}

/// What the new blob remembers of the copy.
pub(super) fn remembered(request: &CopyRequest, length: u64, now: Timestamp) -> Option<CopyState> {
    (request.kind != CopyKind::Put).then(|| CopyState {
        id: request.id,
        source: request.url.clone(),
        status: CopyStatus::Success,
        done: length,
        total: length,
        ended: Some(now),
        description: None,
        incremental: None,
    })
}
