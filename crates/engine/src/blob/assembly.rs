//! Put Block List: from named blocks to a content.
//!
//! The named blocks are looked up in one snapshot. The list's chunks and the references they hold are written in
//! transactions of bounded size; the last of them checks that what was looked up still stands and makes the list the
//! blob's content. A list whose last transaction never came has an appointment at which it is let go.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::blob::blocks::{BlockId, BlockSource, entries, uncommitted_blocks};
use crate::blob::feed::Cause;
use crate::blob::kind::BlobKind;
use crate::blob::{OnBlob, Stored, Written, state};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::PayloadId;
use crate::payload::refs::{self, Target};
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::due::{self, DueKind, DueRow};
use crate::rows::list::{self, CHUNK_ENTRIES_MAX, ListChunk, ListEntry, ListId};
use crate::store::{Purpose, Space, StoreError, Tx, View};

/// Chunks that one transaction writes: each holds up to [`CHUNK_ENTRIES_MAX`] references.
pub(super) const CHUNKS_PER_TRANSACTION: usize = 8;
/// How often the blocks are looked up again because somebody changed them meanwhile.
const ATTEMPTS_MAX: usize = 8;
/// When a list whose last transaction never came is let go.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);

/// What the lookup rests on. While it stands, every block found is held by the staging or the committed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Basis {
    /// The staging and its last Put Block.
    staging: Option<(u64, Timestamp)>,
    /// The committed list, if a block was found there.
    committed: Option<ListId>,
}

/// The content to be, in chunks of a list.
struct Plan {
    basis: Basis,
    chunks: Vec<(u64, ListChunk)>,
    length: u64,
}

/// A list of which some chunks are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Building {
    pub(super) list: ListId,
    due: Timestamp,
}

impl Building {
    /// The key of the appointment at which the list is let go.
    pub(super) fn appointment(self) -> Vec<u8> {
        due::key(self.due, DueKind::List, self.list.0)
    }

    /// Whether the list was let go meanwhile: the machine slept, or its clock was set.
    pub(super) fn is_over(self, tx: &dyn View) -> Result<bool, StoreError> {
        Ok(tx.get(Space::Due, &self.appointment())?.is_none())
    }
}

/// Whether a transaction found the basis as it was.
enum Step<T> {
    Done(T),
    Moved,
}

/// Makes the named blocks the content of the blob. See [`crate::blob::blocks::put_block_list`].
pub(super) async fn commit(
    engine: &Engine,
    on: OnBlob,
    blocks: Vec<(BlockSource, BlockId)>,
    stored: Stored,
) -> Result<Written, Error> {
    let (on, blocks) = (Arc::new(on), Arc::new(blocks));
    for _ in 0..ATTEMPTS_MAX {
        let (looked_on, looked_blocks) = (Arc::clone(&on), Arc::clone(&blocks));
        let plan = Arc::new(engine.scan(move |view| look_up(view, &looked_on, &looked_blocks)).await?);
        let (building, done) = match build(engine, &on, &plan).await? {
            Step::Done(progress) => progress,
            Step::Moved => continue,
        };
        let blob = Blob { on: Arc::clone(&on), stored: stored.clone() };
        let outcome = finish(engine, blob, Arc::clone(&plan), building, done).await;
        if !matches!(outcome, Ok(Step::Done(_)))
            && let Some(building) = building
        {
            abandon(engine, building).await?;
        }
        if let Step::Done(written) = outcome? {
            engine.wake();
            return Ok(written);
        }
    }
    Err(Error::Busy)
}

/// Finds every block. Refuses what would be refused anyway before it looks.
fn look_up(view: &dyn View, on: &OnBlob, blocks: &[(BlockSource, BlockId)]) -> Result<Plan, Error> {
    let place = state::place(view, on)?;
    state::admit_create(view, on, &place, BlobKind::Block)?;
    let state::Place { key, blob, .. } = place;
    let staging = state::staging(view, &key)?;
    let mut uncommitted = HashMap::new();
    if let Some(staging) = staging {
        staging.admit(on.key.as_ref())?;
        for block in uncommitted_blocks(view, staging.id) {
            let (id, block) = block?;
            uncommitted.insert(id, (block.length, block.payload));
        }
    }
    let mut committed = HashMap::new();
    let mut committed_list = None;
    let online = blob.as_ref().map_or(Ok(()), |blob| state::online(blob, view.now()));
    if let Some(blob) = blob
        && let Content::Blocks(list) = blob.content
        && blocks.iter().any(|(source, _)| *source != BlockSource::Uncommitted)
    {
        state::opened(&blob, on)?;
        committed_list = Some(list);
        for entry in entries(view, list) {
            let entry = entry?;
            committed.insert(entry.id, (entry.length, entry.payload));
        }
    }
    let mut found = Vec::with_capacity(blocks.len());
    for (source, id) in blocks {
        let new = uncommitted.get(id).filter(|_| *source != BlockSource::Committed);
        let old = committed.get(id).filter(|_| *source != BlockSource::Uncommitted);
        let &(length, payload) = match (new, old) {
            (Some(block), _) => block,
            (None, Some(block)) => online.map(|()| block)?,
            (None, None) => return Err(Refusal::BlockUnknown.into()),
        };
        found.push(ListEntry { id: id.clone(), length, payload });
    }
    let basis = Basis { staging: staging.map(|row| (row.id, row.last_put)), committed: committed_list };
    let (chunks, length) = chunked(found);
    Ok(Plan { basis, chunks, length })
}

/// The chunks of a list of these entries, each with the byte at which it begins, and the bytes of all.
pub(super) fn chunked(found: Vec<ListEntry>) -> (Vec<(u64, ListChunk)>, u64) {
    let mut chunks = Vec::with_capacity(found.len() / CHUNK_ENTRIES_MAX + 1);
    let mut length = 0;
    for entry in found {
        let first = length;
        length += entry.length;
        match chunks.last_mut() {
            Some((_, ListChunk { entries })) if entries.len() < CHUNK_ENTRIES_MAX => entries.push(entry),
            _ => chunks.push((first, ListChunk { entries: vec![entry] })),
        }
    }
    (chunks, length)
}

impl Basis {
    /// Whether the blocks found are still held.
    fn stands(&self, tx: &dyn View, key: &[u8], blob: Option<&BlobRow>) -> Result<bool, StoreError> {
        let staging = state::staging(tx, key)?.map(|row| (row.id, row.last_put));
        let committed = self.committed.is_none()
            || blob.is_some_and(|blob| self.committed.map(Content::Blocks) == Some(blob.content));
        Ok(staging == self.staging && committed)
    }
}

/// Writes all chunks but those that fit the last transaction; answers how many those were.
async fn build(engine: &Engine, on: &Arc<OnBlob>, plan: &Arc<Plan>) -> Result<Step<(Option<Building>, usize)>, Error> {
    let mut building: Option<Building> = None;
    let mut done = 0;
    while plan.chunks.len() - done > CHUNKS_PER_TRANSACTION {
        let (on, plan) = (Arc::clone(on), Arc::clone(plan));
        let step = engine
            .write(Purpose::Grow, move |tx| {
                let state::Place { key, blob, .. } = state::place(tx, &on)?;
                if !plan.basis.stands(tx, &key, blob.as_ref())? {
                    return Ok(Step::Moved);
                }
                let building = match building {
                    Some(building) if building.is_over(tx)? => return Ok(Step::Moved),
                    Some(building) => building,
                    None => begin(tx)?,
                };
                write_chunks(tx, building.list, &plan.chunks, done, CHUNKS_PER_TRANSACTION)?;
                Ok(Step::Done(building))
            })
            .await;
        match step {
            Ok(Step::Done(begun)) => building = Some(begun),
            Ok(Step::Moved) | Err(_) => {
                if let Some(building) = building {
                    abandon(engine, building).await?;
                }
                return step.map(|_| Step::Moved);
            }
        }
        done += CHUNKS_PER_TRANSACTION;
    }
    Ok(Step::Done((building, done)))
}

/// What the last transaction stores beside the content.
struct Blob {
    on: Arc<OnBlob>,
    stored: Stored,
}

/// Writes the last chunks and makes the list the blob's content.
async fn finish(
    engine: &Engine,
    new: Blob,
    plan: Arc<Plan>,
    building: Option<Building>,
    done: usize,
) -> Result<Step<Written>, Error> {
    let policy = engine.policy(&new.on.address.container.account);
    engine
        .write(Purpose::Grow, move |tx| {
            let place = state::place(tx, &new.on)?;
            let lease = state::admit_create(tx, &new.on, &place, BlobKind::Block)?;
            if !plan.basis.stands(tx, &place.key, place.blob.as_ref())? {
                return Ok(Step::Moved);
            }
            let content = if plan.chunks.is_empty() {
                Content::Empty
            } else {
                let list = match building {
                    Some(building) if building.is_over(tx)? => return Ok(Step::Moved),
                    Some(building) => {
                        tx.delete(Space::Due, &building.appointment())?;
                        building.list
                    }
                    None => ListId(tx.id()),
                };
                write_chunks(tx, list, &plan.chunks, done, CHUNKS_PER_TRANSACTION)?;
                Content::Blocks(list)
            };
            let stored = new.stored.clone();
            let encryption = place.scope.encryption(new.on.key.as_ref(), stored.scope.as_ref())?;
            let kind = BlobKind::Block;
            let made = state::New {
                kind,
                stored,
                length: plan.length,
                content,
                copy: None,
                encryption,
                cause: Cause::PutBlockList,
            };
            Ok(Step::Done(state::replace(tx, &policy, &new.on, place, lease, made)?))
        })
        .await
}

/// A new list, with the appointment at which it is let go if nobody finishes it.
pub(super) fn begin(tx: &mut dyn Tx) -> Result<Building, StoreError> {
    let building = Building { list: ListId(tx.id()), due: tx.now().after(ABANDONED_AFTER) };
    rows::put(tx, Space::Due, building.appointment(), &DueRow::default())?;
    Ok(building)
}

/// Writes `count` chunks from the `skip`th on, with the references that they hold.
pub(super) fn write_chunks(
    tx: &mut dyn Tx,
    list: ListId,
    chunks: &[(u64, ListChunk)],
    skip: usize,
    count: usize,
) -> Result<(), StoreError> {
    let mut references: BTreeMap<PayloadId, u64> = BTreeMap::new();
    for (first, chunk) in chunks.iter().skip(skip).take(count) {
        for entry in &chunk.entries {
            *references.entry(entry.payload).or_default() += 1;
        }
        rows::put(tx, Space::Lists, list::key(list, *first), chunk)?;
    }
    for (payload, count) in references {
        refs::retain(tx, Target::payload(payload), count)?;
    }
    Ok(())
}

/// Lets a list go that no blob came to name.
pub(super) async fn abandon(engine: &Engine, building: Building) -> Result<(), Error> {
    engine.write(Purpose::Free, move |tx| Ok(expire(tx, building.due, building.list.0)?)).await?;
    engine.wake();
    Ok(())
}

/// Lets an unfinished list go, unless that was done already.
pub(crate) fn expire(tx: &mut dyn Tx, at: Timestamp, list: u64) -> Result<(), StoreError> {
    let key = due::key(at, DueKind::List, list);
    if tx.get(Space::Due, &key)?.is_none() {
        return Ok(());
    }
    tx.delete(Space::Due, &key)?;
    refs::release(tx, Target::list(ListId(list)))
}

#[cfg(test)]
mod tests;
