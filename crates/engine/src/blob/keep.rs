//! What a write keeps of what it replaces or deletes: previous versions, and soft-deleted states.
//! <https://learn.microsoft.com/azure/storage/blobs/versioning-overview>,
//! <https://learn.microsoft.com/azure/storage/blobs/soft-delete-blob-overview>

use std::time::Duration;

use crate::blob::feed::{Cause, Change};
use crate::blob::tags::{self, Finding};
use crate::blob::{OnBlob, expiring, layers, state};
use crate::clock::Timestamp;
use crate::lease::Lease;
use crate::names::AccountName;
use crate::policy::AccountPolicy;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::BlobRow;
use crate::rows::due::{self, DueKind, DueRow};
use crate::rows::layer::{self, DeletedRow, Deletion, LayerKind};
use crate::service;
use crate::store::{Space, StoreError, Tx};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

impl Deletion {
    /// A deletion in this transaction of what can be restored for so many days.
    pub(crate) fn for_days(tx: &mut dyn Tx, days: u16) -> Self {
        let until = tx.now().after(Duration::from_secs(u64::from(days) * SECONDS_PER_DAY));
        Self { at: tx.now(), until, id: tx.id() }
    }

    /// Whole days left at `now`.
    pub fn days_left(&self, now: Timestamp) -> u64 {
        self.until.since(now).as_secs() / SECONDS_PER_DAY
    }
}

/// Whether the account's policy, or the blob's own past, keeps this state of it as a version.
fn is_kept_as_version(policy: &AccountPolicy, blob: &BlobRow) -> bool {
    // A blob that is a version stays one after versioning was switched off.
    policy.versioning || blob.version.is_some()
}

/// Whether a write may take this state of a blob away: what is protected must be kept as a version.
///
/// Refuses [`Refusal::BlobHeld`] and [`Refusal::BlobImmutable`].
pub(super) fn admit(policy: &AccountPolicy, blob: &BlobRow, now: Timestamp) -> Result<(), Refusal> {
    if is_kept_as_version(policy, blob) { Ok(()) } else { blob.protection.admit(now) }
}

/// Keeps what a whole new blob takes the place of, or lets it go. The new blob takes over nothing of it.
pub(super) fn replaced(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    account: &AccountName,
    base: &[u8],
    old: Option<&BlobRow>,
) -> Result<(), StoreError> {
    let Some(old) = old else { return displaced(tx, base) };
    expiring::forget(tx, old)?;
    if is_kept_as_version(policy, old) {
        return become_version(tx, base, old);
    }
    match service::blob_retention(tx, account)? {
        Some(retention) => {
            let deletion = Deletion::for_days(tx, retention.days);
            let (at, blob) = (tx.now(), as_layer(old));
            let key = layer::full_key(base, at, LayerKind::Snapshot);
            tags::shift(tx, (base, Finding::Blob), (&key, Finding::Hidden))?;
            put_deleted(tx, base, at, LayerKind::Snapshot, &DeletedRow { blob, deletion })
        }
        None => {
            tags::remove(tx, base, Finding::Blob)?;
            state::release_content(tx, old.content)
        }
    }
}

/// A soft-deleted base whose name is taken by a new one becomes a soft-deleted snapshot.
fn displaced(tx: &mut dyn Tx, base: &[u8]) -> Result<(), StoreError> {
    let Some(row) = rows::get::<DeletedRow>(tx, Space::Removed, base)? else { return Ok(()) };
    forget_removed(tx, base, &row.deletion)?;
    let at = tx.now();
    let key = layer::full_key(base, at, LayerKind::Snapshot);
    tags::shift(tx, (base, Finding::Hidden), (&key, Finding::Hidden))?;
    put_deleted(tx, base, at, LayerKind::Snapshot, &row)
}

/// Keeps the state of a base that a write is about to change, if versions are kept; answers the id of the version that
/// the base becomes. The content is shared from now on.
pub(super) fn changed(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    base: &[u8],
    old: &BlobRow,
) -> Result<Option<Timestamp>, StoreError> {
    if is_kept_as_version(policy, old) {
        state::retain_content(tx, old.content)?;
        let id = put_version(tx, base, old)?;
        let (key, finding) = layers::tags(base, id, LayerKind::Version);
        tags::share(tx, base, &key, finding)?;
    }
    Ok(policy.versioning.then(|| tx.now()))
}

/// Deletes the base: it becomes a version, or can be restored for a while, or is gone. Answers whether it is gone.
pub(super) fn removed(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    on: &OnBlob,
    base: &[u8],
    old: &BlobRow,
) -> Result<bool, StoreError> {
    let gone = put_by(tx, policy, &on.address.container.account, base, old)?;
    let soft_deleted = !gone && !is_kept_as_version(policy, old);
    Change::of(Cause::Delete, old).soft_deleted(soft_deleted).record(tx, policy, on)?;
    Ok(gone)
}

fn put_by(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    account: &AccountName,
    base: &[u8],
    old: &BlobRow,
) -> Result<bool, StoreError> {
    tx.delete(Space::Blobs, base)?;
    expiring::forget(tx, old)?;
    if is_kept_as_version(policy, old) {
        become_version(tx, base, old)?;
        return Ok(false);
    }
    let Some(retention) = service::blob_retention(tx, account)? else {
        tags::remove(tx, base, Finding::Blob)?;
        state::release_content(tx, old.content)?;
        return Ok(true);
    };
    tags::shift(tx, (base, Finding::Blob), (base, Finding::Hidden))?;
    let deletion = Deletion::for_days(tx, retention.days);
    let appointment = due::key(deletion.until, DueKind::Removed, deletion.id);
    rows::put(tx, Space::Due, appointment, &DueRow { key: base.to_vec() })?;
    rows::put(tx, Space::Removed, base.to_vec(), &DeletedRow { blob: as_layer(old), deletion })?;
    Ok(false)
}

/// Takes the row of a soft-deleted base away, and its appointment.
pub(super) fn forget_removed(tx: &mut dyn Tx, base: &[u8], deletion: &Deletion) -> Result<(), StoreError> {
    tx.delete(Space::Removed, base)?;
    tx.delete(Space::Due, &due::key(deletion.until, DueKind::Removed, deletion.id))
}

/// Writes a soft-deleted layer and its appointment.
pub(super) fn put_deleted(
    tx: &mut dyn Tx,
    base: &[u8],
    at: Timestamp,
    kind: LayerKind,
    row: &DeletedRow,
) -> Result<(), StoreError> {
    let key = layer::full_key(base, at, kind);
    let appointment = due::key(row.deletion.until, DueKind::Deleted, row.deletion.id);
    rows::put(tx, Space::Due, appointment, &DueRow { key: key.clone() })?;
    rows::put(tx, Space::Deleted, key, row)
}

/// Takes the row of a soft-deleted layer away, and its appointment.
pub(super) fn forget_deleted(tx: &mut dyn Tx, key: &[u8], deletion: &Deletion) -> Result<(), StoreError> {
    tx.delete(Space::Deleted, key)?;
    tx.delete(Space::Due, &due::key(deletion.until, DueKind::Deleted, deletion.id))
}

/// The base, with its tags and its reference on the content, becomes a previous version.
fn become_version(tx: &mut dyn Tx, base: &[u8], old: &BlobRow) -> Result<(), StoreError> {
    let id = put_version(tx, base, old)?;
    let (key, finding) = layers::tags(base, id, LayerKind::Version);
    tags::shift(tx, (base, Finding::Blob), (&key, finding))
}

/// Writes the state of a base as a previous version; answers its id. One that was written before versions were kept
/// gets the instant of that write.
fn put_version(tx: &mut dyn Tx, base: &[u8], old: &BlobRow) -> Result<Timestamp, StoreError> {
    let id = old.version.unwrap_or(old.etag.committed());
    let row = BlobRow { version: Some(id), ..as_layer(old) };
    rows::put(tx, Space::Versions, layer::key(base, id), &row)?;
    Ok(id)
}

/// The state of a base as a layer has it: only bases are leased and expire.
pub(super) fn as_layer(base: &BlobRow) -> BlobRow {
    BlobRow { lease: Lease::Available, expires: None, ..base.clone() }
}
