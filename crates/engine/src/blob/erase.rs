//! What is dead, erased in steps of bounded size. Each answers whether more is left.

use crate::blob::tags::{self, Finding};
use crate::blob::{expiring, layers, pages, pending, state};
use crate::payload::refs::{self, Target};
use crate::rows::blob::{self, BlobRow};
use crate::rows::codec;
use crate::rows::layer::{self, DeletedRow};
use crate::rows::list::{self, ListChunk, ListId};
use crate::rows::staging::{self, BlockRow};
use crate::store::{Direction, KeyRange, Space, StoreError, Tx};

/// Chunks of a list that one step erases.
const CHUNKS_PER_STEP: usize = 8;
/// Other rows that one step erases.
const ROWS_PER_STEP: usize = 512;

/// Erases a block list and gives up what its blocks hold.
pub(crate) fn list(tx: &mut dyn Tx, list: ListId) -> Result<bool, StoreError> {
    let (pairs, more) = first(tx, Space::Lists, &list::prefix(list), CHUNKS_PER_STEP)?;
    for (key, value) in pairs {
        for entry in codec::decode::<ListChunk>(Space::Lists, &key, &value)?.entries {
            refs::release(tx, Target::payload(entry.payload))?;
        }
        tx.delete(Space::Lists, &key)?;
    }
    Ok(more)
}

/// Erases uncommitted blocks and gives up what they hold.
pub(crate) fn staging(tx: &mut dyn Tx, staging: u64) -> Result<bool, StoreError> {
    let (pairs, more) = first(tx, Space::Blocks, &staging::block_prefix(staging), ROWS_PER_STEP)?;
    for (key, value) in pairs {
        let block: BlockRow = codec::decode(Space::Blocks, &key, &value)?;
        refs::release(tx, Target::payload(block.payload))?;
        tx.delete(Space::Blocks, &key)?;
    }
    Ok(more)
}

/// Erases an epoch of a map of pages, but for what other epochs show.
pub(crate) fn pages(tx: &mut dyn Tx, epoch: u64) -> Result<bool, StoreError> {
    pages::erase(tx, epoch, if cfg!(test) { 3 } else { ROWS_PER_STEP })
}

/// Erases what lies in a deleted container: blobs, snapshots, versions and uncommitted blocks, deleted ones too.
pub(crate) fn container(tx: &mut dyn Tx, incarnation: u64) -> Result<bool, StoreError> {
    let children = blob::prefix(incarnation, b"");
    for space in [Space::Blobs, Space::Snapshots, Space::Versions] {
        let (blobs, more) = first(tx, space, &children, ROWS_PER_STEP)?;
        let done = blobs.is_empty();
        for (key, value) in blobs {
            if tx.is_long() {
                return Ok(true);
            }
            let blob: BlobRow = codec::decode(space, &key, &value)?;
            expiring::forget(tx, &blob)?;
            state::release_content(tx, blob.content)?;
            pending::erase(tx, &blob)?;
            let (tags_key, finding) = match space {
                Space::Blobs => (key.to_vec(), Finding::Blob),
                _ => layer::parse(space, &key).map(|at| layers::tags(&at.base, at.instant, at.kind))?,
            };
            tags::remove(tx, &tags_key, finding)?;
            tx.delete(space, &key)?;
        }
        if more || !done {
            return Ok(true);
        }
    }
    for space in [Space::Removed, Space::Deleted] {
        let (deleted, more) = first(tx, space, &children, ROWS_PER_STEP)?;
        let done = deleted.is_empty();
        for (key, value) in deleted {
            if tx.is_long() {
                return Ok(true);
            }
            let row: DeletedRow = codec::decode(space, &key, &value)?;
            match space {
                Space::Removed => layers::erase_removed(tx, &key, &row)?,
                _ => layers::erase_deleted(tx, &key, &row)?,
            }
        }
        if more || !done {
            return Ok(true);
        }
    }
    let (sweeps, _) = first(tx, Space::Sweeps, &children, ROWS_PER_STEP)?;
    for (key, _) in &sweeps {
        tx.delete(Space::Sweeps, key)?;
    }
    let (stagings, more) = first(tx, Space::Stagings, &children, ROWS_PER_STEP)?;
    for (key, _) in stagings {
        state::drop_staging(tx, &key)?;
    }
    Ok(more || sweeps.len() == ROWS_PER_STEP)
}

/// The first `count` pairs that begin with `prefix`, and whether there are more.
pub(crate) fn first(
    tx: &dyn Tx,
    space: Space,
    prefix: &[u8],
    count: usize,
) -> Result<(Vec<crate::store::Pair>, bool), StoreError> {
    let mut pairs =
        tx.scan(space, KeyRange::prefix(prefix), Direction::Forward).take(count + 1).collect::<Result<Vec<_>, _>>()?;
    let more = pairs.len() > count;
    pairs.truncate(count);
    Ok((pairs, more))
}
