//! What every operation on containers and blobs reads first, and how a content is let go.

use crate::blob::copying::{CopyState, CopyStatus};
use crate::blob::feed::{Cause, Change};
use crate::blob::kind::BlobKind;
use crate::blob::tags::{self, Finding};
use crate::blob::{OnBlob, Part, Stored, Written, expiring, keep, layers, protecting};
use crate::clock::Timestamp;
use crate::encryption::{DefaultScope, Encryption};
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::{Lease, Leased};
use crate::names::ContainerAddress;
use crate::payload::refs::{self, Target};
use crate::policy::AccountPolicy;
use crate::refusal::Refusal;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::container::ContainerRow;
use crate::rows::layer::{self, LayerKind};
use crate::rows::staging::StagingRow;
use crate::rows::{self, blob, container};
use crate::store::{Space, StoreError, Tx, View};
use crate::tier::{Tier, TierState};

/// The container at `address`.
///
/// Refuses [`Refusal::ContainerNotFound`].
pub(super) fn container(view: &dyn View, address: &ContainerAddress) -> Result<ContainerRow, Error> {
    rows::get(view, Space::Containers, &container::key(address))?.ok_or(Refusal::ContainerNotFound.into())
}

/// A place for a blob in an existing container, and what is there.
pub(super) struct Place {
    /// The key of the blob, and of its staging.
    pub(super) key: Vec<u8>,
    /// The encryption scope that the container gives to new blobs.
    pub(super) scope: DefaultScope,
    /// The committed blob, if there is one.
    pub(super) blob: Option<BlobRow>,
    /// A blob that has expired and still lies there: a write that puts something in its place deletes it first.
    pub(super) over: Option<BlobRow>,
}

/// Where `on` points: the blob itself, which writes are about.
///
/// Refuses [`Refusal::ContainerNotFound`], and [`Refusal::PartReadOnly`] for a snapshot or version.
pub(super) fn place(view: &dyn View, on: &OnBlob) -> Result<Place, Error> {
    if on.part != Part::Base {
        return Err(Refusal::PartReadOnly.into());
    }
    let container = container(view, &on.address.container)?;
    let key = blob::key(container.incarnation, &on.address.blob);
    let row: Option<BlobRow> = rows::get(view, Space::Blobs, &key)?;
    let (over, blob) = match row {
        Some(row) if expiring::is_over(&row, view.now()) => (Some(row), None),
        row => (None, row),
    };
    Ok(Place { key, scope: container.scope, blob, over })
}

/// The committed blob at `base`, unless it has expired.
pub(super) fn current(view: &dyn View, base: &[u8]) -> Result<Option<BlobRow>, StoreError> {
    let blob: Option<BlobRow> = rows::get(view, Space::Blobs, base)?;
    Ok(blob.filter(|blob| !expiring::is_over(blob, view.now())))
}

/// The key of the blob that `on` is about, whichever of its states is meant.
///
/// Refuses [`Refusal::ContainerNotFound`].
pub(super) fn base_key(view: &dyn View, on: &OnBlob) -> Result<Vec<u8>, Error> {
    Ok(blob::key(container(view, &on.address.container)?.incarnation, &on.address.blob))
}

/// A blob, a snapshot or a version that exists.
pub(super) struct Found {
    /// Which it is. The current version is the blob itself.
    pub(super) part: Part,
    /// The key of the base.
    pub(super) base: Vec<u8>,
    /// Its row.
    pub(super) blob: BlobRow,
}

impl Found {
    /// Writes the row back where it was found.
    pub(super) fn save(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        let (space, key) = match self.part {
            Part::Base => (Space::Blobs, self.base.clone()),
            Part::Snapshot(at) => (LayerKind::Snapshot.space(), layer::key(&self.base, at)),
            Part::Version(id) => (LayerKind::Version.space(), layer::key(&self.base, id)),
        };
        rows::put(tx, space, key, &self.blob)
    }

    /// The key of its tags, and how they are found.
    pub(super) fn tags(&self) -> (Vec<u8>, Finding) {
        match self.part {
            Part::Base => (self.base.clone(), Finding::Blob),
            Part::Snapshot(at) => layers::tags(&self.base, at, LayerKind::Snapshot),
            Part::Version(id) => layers::tags(&self.base, id, LayerKind::Version),
        }
    }
}

/// What `on` points to.
///
/// Refuses [`Refusal::ContainerNotFound`] and [`Refusal::BlobNotFound`].
pub(super) fn find(view: &dyn View, on: &OnBlob) -> Result<Found, Error> {
    let base = base_key(view, on)?;
    let (part, blob) = match on.part {
        Part::Base => (Part::Base, current(view, &base)?),
        Part::Snapshot(at) => (on.part, layers::snapshot(view, &base, at)?),
        Part::Version(id) => match current(view, &base)?.filter(|blob| blob.version == Some(id)) {
            Some(blob) => (Part::Base, Some(blob)),
            None => (on.part, layers::version(view, &base, id)?),
        },
    };
    Ok(Found { part, base, blob: blob.ok_or(Refusal::BlobNotFound)? })
}

/// The existing blob, snapshot or version that a read may see: conditions, then lease.
pub(super) fn readable(view: &dyn View, on: &OnBlob) -> Result<Found, Error> {
    let found = find(view, on)?;
    on.conditions.judge_read(found.blob.etag)?;
    on.conditions.judge_tags(|| tags::read(view, &found.tags().0))?;
    found.blob.lease.guard_read(view.now(), on.lease, Leased::Blob)?;
    Ok(found)
}

/// The existing blob that a write may change in its place, with the lease that it has from then on: conditions, then
/// lease, then what protects it.
pub(super) fn writable(view: &dyn View, on: &OnBlob) -> Result<(Vec<u8>, BlobRow), Error> {
    let (key, blob) = admitted(view, on)?;
    own(Part::Base, &blob)?;
    blob.protection.admit(view.now())?;
    Ok((key, blob))
}

/// As [`writable`], for a write that keeps what was as a version where the account does so: then it may be protected.
pub(super) fn supersedable(view: &dyn View, on: &OnBlob, policy: &AccountPolicy) -> Result<(Vec<u8>, BlobRow), Error> {
    let (key, blob) = admitted(view, on)?;
    keep::admit(policy, &blob, view.now())?;
    Ok((key, blob))
}

/// The existing blob that a write is about, protected or not, with the lease that it has from then on.
pub(super) fn admitted(view: &dyn View, on: &OnBlob) -> Result<(Vec<u8>, BlobRow), Error> {
    let Place { key, blob, .. } = place(view, on)?;
    let mut blob = blob.ok_or(Refusal::BlobNotFound)?;
    on.conditions.judge_write(blob.etag)?;
    on.conditions.judge_tags(|| tags::read(view, &key))?;
    blob.lease = blob.lease.guard_write(view.now(), on.lease, Leased::Blob)?;
    settled(&blob)?;
    Ok((key, blob))
}

/// The existing blob, snapshot or version that a write may change which leaves content, properties and metadata as they
/// are: conditions, then lease. Of these only the blob itself can be leased.
pub(super) fn changeable(view: &dyn View, on: &OnBlob) -> Result<Found, Error> {
    let mut found = find(view, on)?;
    on.conditions.judge_write(found.blob.etag)?;
    on.conditions.judge_tags(|| tags::read(view, &found.tags().0))?;
    found.blob.lease = found.blob.lease.guard_write(view.now(), on.lease, Leased::Blob)?;
    settled(&found.blob)?;
    Ok(found)
}

/// The existing blob, snapshot or version that a copy may read: conditions, then lease.
///
/// Refuses [`Refusal::SourceContainerNotFound`], [`Refusal::SourceBlobNotFound`], [`Refusal::SourceConditionFailed`],
/// [`Refusal::CopyPending`] and the lease refusals.
pub(super) fn source(view: &dyn View, on: &OnBlob) -> Result<Found, Error> {
    let of_source = |error| match error {
        Error::Refused(Refusal::ContainerNotFound) => Refusal::SourceContainerNotFound.into(),
        Error::Refused(Refusal::BlobNotFound) => Refusal::SourceBlobNotFound.into(),
        Error::Refused(Refusal::ConditionFailed) => Refusal::SourceConditionFailed.into(),
        other => other,
    };
    let found = find(view, on).map_err(of_source)?;
    on.conditions.judge_write(found.blob.etag).map_err(|refusal| of_source(refusal.into()))?;
    on.conditions.judge_tags(|| tags::read(view, &found.tags().0)).map_err(of_source)?;
    found.blob.lease.guard_read(view.now(), on.lease, Leased::Blob)?;
    settled(&found.blob)?;
    own(found.part, &found.blob)?;
    opened(&found.blob, on)?;
    Ok(found)
}

/// Whether the blob is more than the place where a copy is under way.
///
/// Refuses [`Refusal::CopyPending`].
pub(super) fn settled(blob: &BlobRow) -> Result<(), Refusal> {
    match &blob.copy {
        Some(copy) if copy.status == CopyStatus::Pending => Err(Refusal::CopyPending),
        _ => Ok(()),
    }
}

/// Whether the blob is more than the target of incremental copies, which clients neither read nor write. Its snapshots
/// and versions are as any.
///
/// Refuses [`Refusal::IncrementalTarget`].
pub(super) fn own(part: Part, blob: &BlobRow) -> Result<(), Refusal> {
    match &blob.copy {
        Some(copy) if copy.incremental.is_some() && part == Part::Base => Err(Refusal::IncrementalTarget),
        _ => Ok(()),
    }
}

/// Whether the request brings the key that the blob is stored under.
///
/// Refuses [`Refusal::KeyNeeded`] and [`Refusal::KeyNotUsed`].
pub(super) fn opened(blob: &BlobRow, on: &OnBlob) -> Result<(), Refusal> {
    blob.encryption.admit(on.key.as_ref())
}

/// Whether the content of a blob can be read, and what stands beside it changed.
///
/// Refuses [`Refusal::BlobArchived`].
pub(super) fn online(blob: &BlobRow, now: Timestamp) -> Result<(), Refusal> {
    match blob.tier.map(|tier| tier.at(now).tier) {
        Some(Tier::Archive) => Err(Refusal::BlobArchived),
        _ => Ok(()),
    }
}

/// Whether a write may create or replace the blob by one of `kind`; answers the lease that it has from then on.
/// A blob never changes its kind: conditions, then lease, then kind.
pub(super) fn admit_create(view: &dyn View, on: &OnBlob, place: &Place, kind: BlobKind) -> Result<Lease, Error> {
    let existing = place.blob.as_ref();
    on.conditions.judge_create(existing.map(|blob| blob.etag))?;
    if existing.is_none() {
        on.conditions.judge_absent(view.now())?;
    }
    on.conditions.judge_tags(|| tags::read(view, &place.key))?;
    let lease = lease_of(existing).guard_write(view.now(), on.lease, Leased::Blob)?;
    if existing.is_some_and(|blob| !blob.kind.is_like(kind)) {
        return Err(Refusal::BlobKindMismatch.into());
    }
    existing.map_or(Ok(()), |blob| settled(blob).and_then(|()| own(Part::Base, blob)))?;
    Ok(lease)
}

/// The lease recorded; a blob that does not exist has none.
pub(super) fn lease_of(blob: Option<&BlobRow>) -> Lease {
    blob.map_or(Lease::Available, |blob| blob.lease)
}

/// The staging at a blob's key.
pub(super) fn staging(view: &dyn View, key: &[u8]) -> Result<Option<StagingRow>, StoreError> {
    rows::get(view, Space::Stagings, key)
}

/// What a whole new blob is made of, beside its lease and its times.
pub(super) struct New {
    /// What kind of blob it is.
    pub(super) kind: BlobKind,
    /// What the client says about it.
    pub(super) stored: Stored,
    /// Bytes of content.
    pub(super) length: u64,
    /// Where they are; the blob takes over the reference.
    pub(super) content: Content,
    /// The copy that made it.
    pub(super) copy: Option<CopyState>,
    /// Under which key the content is stored.
    pub(super) encryption: Encryption,
    /// What puts it there.
    pub(super) cause: Cause,
}

/// Puts a new blob at `place`, over what is there: the uncommitted blocks go, the old content too unless the account
/// keeps it.
///
/// Refuses [`Refusal::BlobHeld`] and [`Refusal::BlobImmutable`] over what is protected and would not be kept,
/// [`Refusal::TierNotForKind`], [`Refusal::TierTooSmall`], [`Refusal::ProtectionOff`] and [`Refusal::PolicyOver`].
pub(super) fn replace(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    on: &OnBlob,
    place: Place,
    lease: Lease,
    new: New,
) -> Result<Written, Error> {
    let (stored, account) = (new.stored, &on.address.container.account);
    if let Some(old) = &place.blob {
        keep::admit(policy, old, tx.now())?;
    }
    if let Some(tier) = stored.tier {
        tier.admit(new.kind, new.length)?;
    }
    protecting::admit_new(tx, policy, &on.address.container, &stored.protection)?;
    drop_staging(tx, &place.key)?;
    if let Some(over) = &place.over {
        keep::removed(tx, policy, on, &place.key, over)?;
    }
    keep::replaced(tx, policy, account, &place.key, place.blob.as_ref())?;
    tags::put(tx, &on.address.container, &place.key, Finding::Blob, &stored.tags)?;
    let version = policy.versioning.then(|| tx.now());
    // A version is created when it is written; a blob without versions when the first of its kind was.
    let created = place.blob.filter(|_| version.is_none()).map_or(tx.now(), |old| old.created);
    let row = BlobRow {
        created,
        etag: Etag::at(tx.now()),
        version,
        kind: new.kind,
        length: new.length,
        http: stored.http,
        metadata: stored.metadata,
        lease,
        content: new.content,
        tags: stored.tags.count(),
        tier: stored.tier.map(|tier| TierState::new(tier, tx.now())),
        copy: new.copy,
        expires: None,
        protection: stored.protection,
        encryption: new.encryption,
        begun: matches!(new.kind, BlobKind::Page { .. }).then(|| tx.now()),
    };
    rows::put(tx, Space::Blobs, place.key, &row)?;
    Change::of(new.cause, &row).record(tx, policy, on)?;
    Ok(Written { etag: row.etag, version })
}

/// Adds a reference to a content: a snapshot, a version or a copy shares the base's.
pub(super) fn retain_content(tx: &mut dyn Tx, content: Content) -> Result<(), StoreError> {
    content_target(content).map_or(Ok(()), |target| refs::retain(tx, target, 1))
}

/// Gives up the reference that a blob holds on its content.
pub(super) fn release_content(tx: &mut dyn Tx, content: Content) -> Result<(), StoreError> {
    content_target(content).map_or(Ok(()), |target| refs::release(tx, target))
}

/// What a content holds its reference on.
pub(super) fn content_target(content: Content) -> Option<Target> {
    match content {
        Content::Empty => None,
        Content::Whole(payload) => Some(Target::payload(payload)),
        Content::Blocks(list) | Content::Log(list) => Some(Target::list(list)),
        Content::Pages { epoch, .. } => Some(Target::pages(epoch)),
    }
}

/// Drops all uncommitted blocks at a blob's key, in one step whatever their number.
pub(super) fn drop_staging(tx: &mut dyn Tx, key: &[u8]) -> Result<(), StoreError> {
    if let Some(row) = staging(tx, key)? {
        tx.delete(Space::Stagings, key)?;
        tx.delete(Space::Due, &rows::due::key(row.due, rows::due::DueKind::Staging, row.id))?;
        refs::release(tx, Target::staging(row.id))?;
    }
    Ok(())
}
