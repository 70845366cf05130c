//! What every operation on containers and blobs reads first, and how a content is let go.

use crate::blob::copying::CopyState;
use crate::blob::kind::BlobKind;
use crate::blob::tags::{self, Finding};
use crate::blob::{OnBlob, Stored, Written};
use crate::encryption::Encryption;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::{Lease, Leased};
use crate::names::ContainerAddress;
use crate::payload::refs::{self, Target};
use crate::protection::Protection;
use crate::refusal::Refusal;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::container::ContainerRow;
use crate::rows::staging::StagingRow;
use crate::rows::{self, blob, container};
use crate::store::{Space, StoreError, Tx, View};

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
    /// The committed blob, if there is one.
    pub(super) blob: Option<BlobRow>,
}

/// Where `on` points.
///
/// Refuses [`Refusal::ContainerNotFound`].
pub(super) fn place(view: &dyn View, on: &OnBlob) -> Result<Place, Error> {
    let container = container(view, &on.address.container)?;
    let key = blob::key(container.incarnation, &on.address.blob);
    let blob = rows::get(view, Space::Blobs, &key)?;
    Ok(Place { key, blob })
}

/// The existing blob that a read may see: conditions, then lease.
pub(super) fn readable(view: &dyn View, on: &OnBlob) -> Result<BlobRow, Error> {
    let Place { key, blob } = place(view, on)?;
    let blob = blob.ok_or(Refusal::BlobNotFound)?;
    on.conditions.judge_read(blob.etag)?;
    on.conditions.judge_tags(|| tags::read(view, &key))?;
    blob.lease.guard_read(view.now(), on.lease, Leased::Blob)?;
    Ok(blob)
}

/// The existing blob that a write may change, with the lease that it has from then on: conditions, then lease.
pub(super) fn writable(view: &dyn View, on: &OnBlob) -> Result<(Vec<u8>, BlobRow), Error> {
    let Place { key, blob } = place(view, on)?;
    let mut blob = blob.ok_or(Refusal::BlobNotFound)?;
    on.conditions.judge_write(blob.etag)?;
    on.conditions.judge_tags(|| tags::read(view, &key))?;
    blob.lease = blob.lease.guard_write(view.now(), on.lease, Leased::Blob)?;
    Ok((key, blob))
}

/// Whether a write may create or replace the blob by one of `kind`; answers the lease that it has from then on.
/// A blob never changes its kind: conditions, then lease, then kind.
pub(super) fn admit_create(view: &dyn View, on: &OnBlob, place: &Place, kind: BlobKind) -> Result<Lease, Error> {
    let existing = place.blob.as_ref();
    on.conditions.judge_create(existing.map(|blob| blob.etag))?;
    on.conditions.judge_tags(|| tags::read(view, &place.key))?;
    let lease = lease_of(existing).guard_write(view.now(), on.lease, Leased::Blob)?;
    if existing.is_some_and(|blob| !blob.kind.is_like(kind)) {
        return Err(Refusal::BlobKindMismatch.into());
    }
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
}

/// Puts a new blob at `place`, over what is there: the old content goes, and the uncommitted blocks.
pub(super) fn replace(
    tx: &mut dyn Tx,
    on: &OnBlob,
    place: Place,
    lease: Lease,
    new: New,
) -> Result<Written, StoreError> {
    drop_staging(tx, &place.key)?;
    tags::remove(tx, &place.key, Finding::Blob)?;
    tags::put(tx, &on.address.container, &place.key, Finding::Blob, &new.stored.tags)?;
    if let Some(old) = &place.blob {
        release_content(tx, old.content)?;
    }
    let row = BlobRow {
        created: place.blob.map_or(tx.now(), |old| old.created),
        etag: Etag::at(tx.now()),
        version: None,
        kind: new.kind,
        length: new.length,
        http: new.stored.http,
        metadata: new.stored.metadata,
        lease,
        content: new.content,
        tags: new.stored.tags.count(),
        tier: None,
        copy: new.copy,
        expires: None,
        protection: Protection::default(),
        encryption: Encryption::Account,
    };
    rows::put(tx, Space::Blobs, place.key, &row)?;
    Ok(Written { etag: row.etag })
}

/// Gives up the reference that a blob holds on its content.
pub(super) fn release_content(tx: &mut dyn Tx, content: Content) -> Result<(), StoreError> {
    match content {
        Content::Empty => Ok(()),
        Content::Whole(payload) => refs::release(tx, Target::payload(payload)),
        Content::Blocks(list) | Content::Log(list) => refs::release(tx, Target::list(list)),
        Content::Pages { epoch, .. } => refs::release(tx, Target::pages(epoch)),
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
