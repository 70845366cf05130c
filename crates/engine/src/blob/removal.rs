//! Delete Blob and Undelete Blob: of a blob, its snapshots and its versions.
//! <https://learn.microsoft.com/rest/api/storageservices/delete-blob>

use std::sync::Arc;

use crate::blob::feed::{Cause, Change};
use crate::blob::layers::{self, AT_ONCE, Outcome};
use crate::blob::tags::{self, Finding};
use crate::blob::{OnBlob, Part, keep, protecting, state};
use crate::clock::Timestamp;
use crate::condition::Conditions;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::Leased;
use crate::policy::AccountPolicy;
use crate::refusal::Refusal;
use crate::rows::blob::BlobRow;
use crate::rows::layer::{self, DeletedRow, Deletion, LayerKind};
use crate::rows::{self, codec};
use crate::service;
use crate::store::{Direction, KeyRange, Purpose, Space, Tx};

/// What becomes of the snapshots of a blob that is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Snapshots {
    /// There must be none.
    #[default]
    Refuse,
    /// They are deleted with the blob.
    Include,
    /// They are deleted, the blob stays.
    Only,
}

/// What a deletion answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Whether what was deleted is gone: it can neither be restored nor read as a version.
    pub permanent: bool,
}

/// Delete Blob, in one short write however many snapshots go with it. Its uncommitted blocks go too; a blob that has
/// nothing else is deleted by that. Of a snapshot or version, only that is deleted and `snapshots` is not used.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `ConditionFailed`, the lease refusals, `SnapshotsPresent`,
/// `VersionIsCurrent` for the current version by its id, `BlobHeld` and `BlobImmutable` for what is protected and would
/// not be kept as a version.
pub async fn delete(engine: &Engine, on: OnBlob, snapshots: Snapshots) -> Result<Deleted, Error> {
    let policy = engine.policy(&on.address.container.account);
    let mut seen = None;
    loop {
        let (policy, to) = (Arc::clone(&policy), on.clone());
        let deleted = layers::write(engine, Purpose::Free, move |tx| match to.part {
            Part::Base => delete_base(tx, &policy, &to, snapshots, seen),
            Part::Snapshot(_) | Part::Version(_) => {
                delete_layer(tx, &policy, &to).map(|deleted| Outcome::Done(Some(deleted)))
            }
        });
        if let Some(deleted) = deleted.await? {
            engine.wake();
            return Ok(deleted);
        }
        seen = Some(protecting::look_through_snapshots(engine, on.clone()).await?);
    }
}

/// When the tier of a blob was set: when it was created, if never.
fn tier_set(blob: &BlobRow, now: Timestamp) -> Timestamp {
    blob.tier.map_or(blob.created, |tier| tier.at(now).changed)
}

/// Deletes the blob, its snapshots or both; writes nothing if the snapshots must be looked through before.
fn delete_base(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    on: &OnBlob,
    snapshots: Snapshots,
    seen: Option<protecting::Seen>,
) -> Result<Outcome<Option<Deleted>>, Error> {
    if delete_uncommitted(tx, on)? {
        return Ok(Outcome::Done(Some(Deleted { permanent: true })));
    }
    let (base, blob) = match snapshots {
        Snapshots::Only => state::admitted(tx, on)?,
        Snapshots::Refuse | Snapshots::Include => state::supersedable(tx, on, policy)?,
    };
    on.conditions.judge_tier(tier_set(&blob, tx.now()))?;
    let account = &on.address.container.account;
    let retention = service::blob_retention(tx, account)?;
    match snapshots {
        Snapshots::Refuse if layers::has_snapshots(tx, &base)? => return Err(Refusal::SnapshotsPresent.into()),
        Snapshots::Refuse => {}
        Snapshots::Include | Snapshots::Only => {
            let container = state::container(tx, &on.address.container)?;
            if !protecting::is_free(&container, seen) && layers::has_snapshots(tx, &base)? {
                return Ok(Outcome::Done(None));
            }
            if !layers::delete_snapshots(tx, &base, retention)? {
                return Ok(Outcome::Sweeping(base));
            }
        }
    }
    let permanent = match snapshots {
        Snapshots::Only => retention.is_none(),
        _ => {
            state::drop_staging(tx, &base)?;
            keep::removed(tx, policy, on, &base, &blob)?
        }
    };
    Ok(Outcome::Done(Some(Deleted { permanent })))
}

/// Deletes a blob that has uncommitted blocks and was never committed; answers whether it was one. What is not committed
/// meets no condition.
fn delete_uncommitted(tx: &mut dyn Tx, on: &OnBlob) -> Result<bool, Error> {
    let place = state::place(tx, on)?;
    let uncommitted = place.blob.is_none() && state::staging(tx, &place.key)?.is_some();
    if !uncommitted || on.conditions != Conditions::default() {
        return Ok(false);
    }
    state::lease_of(None).guard_write(tx.now(), on.lease, Leased::Blob)?;
    state::drop_staging(tx, &place.key)?;
    Ok(true)
}

fn delete_layer(tx: &mut dyn Tx, policy: &AccountPolicy, on: &OnBlob) -> Result<Deleted, Error> {
    let found = state::changeable(tx, on)?;
    let (at, kind) = instant(found.part).ok_or(Refusal::VersionIsCurrent)?;
    on.conditions.judge_tier(tier_set(&found.blob, tx.now()))?;
    found.blob.protection.admit(tx.now())?;
    let retention = service::blob_retention(tx, &on.address.container.account)?;
    let deletion = retention.map(|retention| Deletion::for_days(tx, retention.days));
    Change::of(Cause::Delete, &found.blob).part(found.part).soft_deleted(deletion.is_some()).record(tx, policy, on)?;
    layers::put_away(tx, &found.base, at, kind, found.blob, deletion)?;
    Ok(Deleted { permanent: deletion.is_none() })
}

fn instant(part: Part) -> Option<(Timestamp, LayerKind)> {
    match part {
        Part::Base => None,
        Part::Snapshot(at) => Some((at, LayerKind::Snapshot)),
        Part::Version(id) => Some((id, LayerKind::Version)),
    }
}

/// Delete Blob, of a soft-deleted snapshot or version before its time. Conditions and leases are not used.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `PermanentDeletionOff`, and `NotDeletedBefore` for what is not deleted,
/// as the blob itself cannot be.
pub async fn delete_for_good(engine: &Engine, on: OnBlob) -> Result<Deleted, Error> {
    let policy = engine.policy(&on.address.container.account);
    let deleted = layers::write(engine, Purpose::Free, move |tx| {
        let base = state::base_key(tx, &on)?;
        let retention = service::blob_retention(tx, &on.address.container.account)?;
        if !retention.is_some_and(|retention| retention.allow_permanent) {
            return Err(Refusal::PermanentDeletionOff.into());
        }
        let (at, kind) = instant(on.part).ok_or(Refusal::NotDeletedBefore)?;
        if layers::sweep(tx, &base)?.is_some() {
            return Ok(Outcome::Sweeping(base));
        }
        let key = layer::full_key(&base, at, kind);
        let row: Option<DeletedRow> = rows::get(tx, Space::Deleted, &key)?;
        match row.filter(|row| row.deletion.until > tx.now()) {
            Some(row) => {
                Change::of(Cause::Delete, &row.blob).part(on.part).record(tx, &policy, &on)?;
                layers::erase_deleted(tx, &key, &row)?;
            }
            None => return Err(state::find(tx, &on).map_or_else(|error| error, |_| Refusal::NotDeletedBefore.into())),
        }
        Ok(Outcome::Done(Deleted { permanent: true }))
    });
    let deleted = deleted.await?;
    engine.wake();
    Ok(deleted)
}

/// Undelete Blob: <https://learn.microsoft.com/rest/api/storageservices/undelete-blob>. Restores the blob, unless there
/// is one, and all its soft-deleted snapshots and versions. Thousands of those come back in several writes, oldest first,
/// the blob with the last. Nothing to restore is no error while the blob exists. Conditions and leases are not used.
///
/// Refuses `ContainerNotFound`, `BlobNotFound` and `PartReadOnly`.
pub async fn undelete(engine: &Engine, on: OnBlob) -> Result<(), Error> {
    let policy = engine.policy(&on.address.container.account);
    let mut restored = false;
    loop {
        let (policy, on) = (Arc::clone(&policy), on.clone());
        let step = layers::write(engine, Purpose::Grow, move |tx| restore_some(tx, &policy, &on, restored)).await?;
        match step {
            Restored::Some => restored = true,
            Restored::All => return Ok(()),
        }
    }
}

/// How far restoring came.
enum Restored {
    Some,
    All,
}

fn restore_some(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    on: &OnBlob,
    mut restored: bool,
) -> Result<Outcome<Restored>, Error> {
    let state::Place { key: base, blob, over, .. } = state::place(tx, on)?;
    if layers::sweep(tx, &base)?.is_some() {
        return Ok(Outcome::Sweeping(base));
    }
    let found: Vec<_> =
        tx.scan(Space::Deleted, KeyRange::prefix(&base), Direction::Forward).take(AT_ONCE).collect::<Result<_, _>>()?;
    let mut more = found.len() == AT_ONCE;
    for (key, value) in found {
        if tx.is_long() {
            more = true;
            break;
        }
        let at = layer::parse(Space::Deleted, &key)?;
        let row: DeletedRow = codec::decode(Space::Deleted, &key, &value)?;
        if row.deletion.until <= tx.now() {
            layers::erase_deleted(tx, &key, &row)?;
            continue;
        }
        keep::forget_deleted(tx, &key, &row.deletion)?;
        let (tags_key, finding) = layers::tags(&base, at.instant, at.kind);
        tags::shift(tx, (&tags_key, Finding::Hidden), (&tags_key, finding))?;
        rows::put(tx, at.kind.space(), layer::key(&base, at.instant), &row.blob)?;
        restored = true;
    }
    if more {
        return Ok(Outcome::Done(Restored::Some));
    }
    if blob.is_none() {
        if let Some(over) = over {
            keep::removed(tx, policy, on, &base, &over)?;
        }
        if let Some(blob) = restore_base(tx, &base)? {
            Change::of(Cause::Undelete, &blob).record(tx, policy, on)?;
            restored = true;
        }
        if !restored {
            return Err(Refusal::BlobNotFound.into());
        }
    }
    Ok(Outcome::Done(Restored::All))
}

fn restore_base(tx: &mut dyn Tx, base: &[u8]) -> Result<Option<BlobRow>, Error> {
    let row: Option<DeletedRow> = rows::get(tx, Space::Removed, base)?;
    let Some(mut row) = row.filter(|row| row.deletion.until > tx.now()) else { return Ok(None) };
    keep::forget_removed(tx, base, &row.deletion)?;
    tags::shift(tx, (base, Finding::Hidden), (base, Finding::Blob))?;
    row.blob.etag = Etag::at(tx.now());
    rows::put(tx, Space::Blobs, base.to_vec(), &row.blob)?;
    Ok(Some(row.blob))
}
