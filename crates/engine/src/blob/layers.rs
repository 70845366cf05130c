//! Snapshots and previous versions of a blob: finding, deleting and restoring them.
//!
//! Deleting the snapshots of a blob is one short write however many there are: beyond [`AT_ONCE`] of them, or what one
//! transaction takes, it writes a sweep, which hides them all from that moment, and the clockwork does to each what was
//! said for all. Whatever needs
//! to know the outcome for each finishes the sweep first.

use std::ops::Bound;

use crate::blob::tags::{self, Finding};
use crate::blob::{keep, state};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::refs::Target;
use crate::rows::blob::BlobRow;
use crate::rows::due::{self, DueKind};
use crate::rows::layer::{self, DeletedRow, Deletion, LayerKind, SweepRow};
use crate::rows::{self, codec, refs};
use crate::service::Retention;
use crate::store::{Direction, KeyRange, Pair, Purpose, Space, StoreError, Tx, View};

/// Layers that one transaction deletes or restores, at most.
pub(super) const AT_ONCE: usize = 256;

/// The snapshot at `at` of the blob at `base`, unless it is deleted.
pub(super) fn snapshot(view: &dyn View, base: &[u8], at: Timestamp) -> Result<Option<BlobRow>, StoreError> {
    let row = rows::get(view, Space::Snapshots, &layer::key(base, at))?;
    if row.is_some() && sweep(view, base)?.is_some_and(|sweep| at <= sweep.at) {
        return Ok(None);
    }
    Ok(row)
}

/// The previous version `id` of the blob at `base`, unless it is deleted.
pub(super) fn version(view: &dyn View, base: &[u8], id: Timestamp) -> Result<Option<BlobRow>, StoreError> {
    rows::get(view, Space::Versions, &layer::key(base, id))
}

/// The key of the tags of a layer that is not deleted, and how they are found.
pub(super) fn tags(base: &[u8], at: Timestamp, kind: LayerKind) -> (Vec<u8>, Finding) {
    let finding = match kind {
        LayerKind::Snapshot => Finding::Hidden,
        LayerKind::Version => Finding::Version(at),
    };
    (layer::full_key(base, at, kind), finding)
}

/// The sweep over the snapshots of the blob at `base` that is not finished.
pub(super) fn sweep(view: &dyn View, base: &[u8]) -> Result<Option<SweepRow>, StoreError> {
    rows::get(view, Space::Sweeps, base)
}

/// Whether the blob at `base` has snapshots that are not deleted.
pub(super) fn has_snapshots(view: &dyn View, base: &[u8]) -> Result<bool, StoreError> {
    let mut range = KeyRange::prefix(base);
    if let Some(sweep) = sweep(view, base)? {
        range = range.starting(Bound::Excluded(layer::key(base, sweep.at)));
    }
    view.any(Space::Snapshots, &range)
}

/// Whether a transaction did what it was asked for, or must be preceded by the end of a sweep.
pub(super) enum Outcome<T> {
    /// It did.
    Done(T),
    /// It wrote nothing: the sweep over the blob at this key comes first.
    Sweeping(Vec<u8>),
}

/// Runs `body` as one transaction, after the end of the sweeps that it finds in its way.
pub(super) async fn write<T: Send + 'static>(
    engine: &Engine,
    purpose: Purpose,
    body: impl Fn(&mut dyn Tx) -> Result<Outcome<T>, Error> + Clone + Send + 'static,
) -> Result<T, Error> {
    loop {
        match engine.write(purpose, body.clone()).await? {
            Outcome::Done(answer) => return Ok(answer),
            Outcome::Sweeping(base) => while engine.write(Purpose::Free, finishing(base.clone())).await? {},
        }
    }
}

fn finishing(base: Vec<u8>) -> impl Fn(&mut dyn Tx) -> Result<bool, Error> + Send + 'static {
    move |tx| match sweep(tx, &base)? {
        Some(sweep) => Ok(go_on(tx, &base, sweep)?),
        None => Ok(false),
    }
}

/// Deletes all snapshots of the blob at `base`; answers false, and writes nothing, if a sweep must end before.
pub(super) fn delete_snapshots(tx: &mut dyn Tx, base: &[u8], retention: Option<Retention>) -> Result<bool, StoreError> {
    if sweep(tx, base)?.is_some() {
        return Ok(false);
    }
    let deletion = retention.map(|retention| Deletion::for_days(tx, retention.days));
    let row = SweepRow { id: tx.id(), at: tx.now(), until: deletion.map(|deletion| deletion.until) };
    let found = snapshots(tx, base, AT_ONCE + 1)?;
    if found.len() <= AT_ONCE && delete_all(tx, row, found)? {
        return Ok(true);
    }
    let task = refs::dead_key(tx.seq(), Target::sweep(row.id));
    tx.put(Space::Dead, task, base.to_vec())?;
    rows::put(tx, Space::Sweeps, base.to_vec(), &row)?;
    Ok(true)
}

/// Deletes `found` one after the other; answers false if some are left, to a sweep, because their names, tags and
/// metadata are too long for one transaction.
fn delete_all(tx: &mut dyn Tx, row: SweepRow, found: Vec<Pair>) -> Result<bool, StoreError> {
    for pair in found {
        if tx.is_long() {
            return Ok(false);
        }
        delete_swept(tx, row, pair)?;
    }
    Ok(true)
}

/// The clockwork's part: does some of a sweep; answers whether more is left.
pub(crate) fn sweep_on(tx: &mut dyn Tx, id: u64, base: &[u8]) -> Result<bool, StoreError> {
    match sweep(tx, base)?.filter(|sweep| sweep.id == id) {
        Some(sweep) => go_on(tx, base, sweep),
        None => Ok(false),
    }
}

fn go_on(tx: &mut dyn Tx, base: &[u8], sweep: SweepRow) -> Result<bool, StoreError> {
    let mut found = snapshots(tx, base, AT_ONCE + 1)?;
    let mut more = found.len() > AT_ONCE;
    found.truncate(AT_ONCE);
    for pair in found {
        if layer::parse(Space::Snapshots, &pair.0)?.instant > sweep.at {
            more = false;
            break;
        }
        if tx.is_long() {
            more = true;
            break;
        }
        delete_swept(tx, sweep, pair)?;
    }
    if !more {
        tx.delete(Space::Sweeps, base)?;
    }
    Ok(more)
}

/// The first snapshots of the blob at `base`, oldest first.
fn snapshots(tx: &dyn Tx, base: &[u8], count: usize) -> Result<Vec<Pair>, StoreError> {
    tx.scan(Space::Snapshots, KeyRange::prefix(base), Direction::Forward).take(count).collect()
}

fn delete_swept(tx: &mut dyn Tx, sweep: SweepRow, (key, value): Pair) -> Result<(), StoreError> {
    let at = layer::parse(Space::Snapshots, &key)?;
    let blob = codec::decode(Space::Snapshots, &key, &value)?;
    let deletion = sweep.until.map(|until| Deletion { at: sweep.at, until, id: tx.id() });
    put_away(tx, &at.base, at.instant, LayerKind::Snapshot, blob, deletion)
}

/// Deletes one layer: it can be restored until the end of `deletion`, or is gone.
pub(super) fn put_away(
    tx: &mut dyn Tx,
    base: &[u8],
    at: Timestamp,
    kind: LayerKind,
    blob: BlobRow,
    deletion: Option<Deletion>,
) -> Result<(), StoreError> {
    tx.delete(kind.space(), &layer::key(base, at))?;
    let (key, finding) = tags(base, at, kind);
    match deletion {
        Some(deletion) => {
            tags::shift(tx, (&key, finding), (&key, Finding::Hidden))?;
            keep::put_deleted(tx, base, at, kind, &DeletedRow { blob, deletion })
        }
        None => {
            tags::remove(tx, &key, finding)?;
            state::release_content(tx, blob.content)
        }
    }
}

/// Erases a soft-deleted layer whose appointment has come, unless it was restored meanwhile.
pub(crate) fn expire(tx: &mut dyn Tx, at: Timestamp, id: u64, key: &[u8]) -> Result<(), StoreError> {
    tx.delete(Space::Due, &due::key(at, DueKind::Deleted, id))?;
    let row: Option<DeletedRow> = rows::get(tx, Space::Deleted, key)?;
    row.filter(|row| row.deletion.id == id).map_or(Ok(()), |row| erase_deleted(tx, key, &row))
}

/// Erases a soft-deleted layer.
pub(super) fn erase_deleted(tx: &mut dyn Tx, key: &[u8], row: &DeletedRow) -> Result<(), StoreError> {
    keep::forget_deleted(tx, key, &row.deletion)?;
    tags::remove(tx, key, Finding::Hidden)?;
    state::release_content(tx, row.blob.content)
}

/// Erases a soft-deleted base whose appointment has come, unless it was restored meanwhile.
pub(crate) fn expire_removed(tx: &mut dyn Tx, at: Timestamp, id: u64, base: &[u8]) -> Result<(), StoreError> {
    tx.delete(Space::Due, &due::key(at, DueKind::Removed, id))?;
    let row: Option<DeletedRow> = rows::get(tx, Space::Removed, base)?;
    row.filter(|row| row.deletion.id == id).map_or(Ok(()), |row| erase_removed(tx, base, &row))
}

/// Erases a soft-deleted base.
pub(super) fn erase_removed(tx: &mut dyn Tx, base: &[u8], row: &DeletedRow) -> Result<(), StoreError> {
    keep::forget_removed(tx, base, &row.deletion)?;
    tags::remove(tx, base, Finding::Hidden)?;
    state::release_content(tx, row.blob.content)
}
