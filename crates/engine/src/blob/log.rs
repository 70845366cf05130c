//! The list of an append blob. It grows in place, and whoever shares it sees as much of it as its own length says.
//!
//! Only a blob that is as long as the list may append to it. Of two that share a list, the one that appends first goes
//! on with it; the other gets a list of its own, of the same bodies, once it appends.

use std::ops::Bound;
use std::sync::Arc;

use crate::blob::assembly::{self, Building, CHUNKS_PER_TRANSACTION, abandon, write_chunks};
use crate::blob::blocks::{BlockId, entries};
use crate::blob::{OnBlob, state};
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::Staged;
use crate::payload::refs::{self, Target};
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::codec;
use crate::rows::list::{self, CHUNK_ENTRIES_MAX, ListChunk, ListEntry, ListId};
use crate::store::{Direction, KeyRange, Purpose, Space, StoreError, Tx, View};

/// The end of a list, where it grows.
pub(super) struct Tail {
    /// None: there is no list yet.
    list: Option<ListId>,
    /// The byte at which `chunk` begins.
    first: u64,
    /// The last chunk.
    chunk: ListChunk,
    /// The byte at which the next entry begins.
    end: u64,
}

/// The end of what a blob of `length` bytes names; none if it goes on beyond that.
pub(super) fn tail(view: &dyn View, content: Content, length: u64) -> Result<Option<Tail>, StoreError> {
    let list = match content {
        Content::Empty => return Ok(Some(Tail::of(ListChunk::default(), 0))),
        // It came whole, by a copy.
        Content::Whole(payload) => {
            let entry = ListEntry { id: BlockId(Vec::new()), length, payload };
            return Ok(Some(Tail::of(ListChunk { entries: vec![entry] }, length)));
        }
        Content::Log(list) | Content::Blocks(list) => list,
        Content::Pages { .. } => return Err(codec::corrupt(Space::Blobs, &[], "an append blob has pages")),
    };
    let chunks = KeyRange { start: Bound::Included(list::key(list, 0)), end: Bound::Included(list::key(list, length)) };
    let missing = || codec::corrupt(Space::Lists, &list::prefix(list), "a chunk is missing");
    let (key, value) = view.scan(Space::Lists, chunks, Direction::Backward).next().ok_or_else(missing)??;
    let (first, chunk) = (list::first_byte(&key)?, codec::decode::<ListChunk>(Space::Lists, &key, &value)?);
    let end = first + chunk.entries.iter().map(|entry| entry.length).sum::<u64>();
    match end.cmp(&length) {
        std::cmp::Ordering::Less => Err(codec::corrupt(Space::Lists, &key, "the list is shorter than its blob")),
        std::cmp::Ordering::Equal => Ok(Some(Tail { list: Some(list), first, chunk, end })),
        std::cmp::Ordering::Greater => Ok(None),
    }
}

impl Tail {
    /// Of a list yet to be made.
    fn of(chunk: ListChunk, end: u64) -> Self {
        Self { list: None, first: 0, chunk, end }
    }

    /// Appends a body, which the list keeps; answers the list.
    pub(super) fn push(self, tx: &mut dyn Tx, content: &Staged) -> Result<ListId, StoreError> {
        let Self { list, mut first, mut chunk, end } = self;
        let list = list.unwrap_or_else(|| ListId(tx.id()));
        if chunk.entries.len() >= CHUNK_ENTRIES_MAX {
            (first, chunk) = (end, ListChunk::default());
        }
        // What is appended has no id.
        chunk.entries.push(ListEntry { id: BlockId(Vec::new()), length: content.length(), payload: content.keep(tx)? });
        rows::put(tx, Space::Lists, list::key(list, first), &chunk)?;
        Ok(list)
    }
}

/// Gives the blob a list of its own that ends where the blob does. Nothing that a client sees changes.
///
/// Refuses `ContainerNotFound` and `BlobNotFound`.
pub(super) async fn rebuild(engine: &Engine, on: &Arc<OnBlob>) -> Result<(), Error> {
    let looked_on = Arc::clone(on);
    let Some((old, chunks)) = engine.scan(move |view| look_up(view, &looked_on)).await? else { return Ok(()) };
    let chunks = Arc::new(chunks);
    let mut building = None;
    let mut done = 0;
    while done < chunks.len() {
        let (on, chunks) = (Arc::clone(on), Arc::clone(&chunks));
        let last = chunks.len() - done <= CHUNKS_PER_TRANSACTION;
        let step = engine
            .write(Purpose::Grow, move |tx| {
                let Some((key, blob)) = unmoved(tx, &on, old)? else { return Ok(None) };
                let building = match building {
                    Some(building) if Building::is_over(building, tx)? => return Ok(None),
                    Some(building) => building,
                    None => assembly::begin(tx)?,
                };
                write_chunks(tx, building.list, &chunks, done, CHUNKS_PER_TRANSACTION)?;
                if last {
                    tx.delete(Space::Due, &building.appointment())?;
                    refs::release(tx, Target::list(old.0))?;
                    rows::put(tx, Space::Blobs, key, &BlobRow { content: Content::Log(building.list), ..blob })?;
                }
                Ok(Some(building))
            })
            .await;
        match step {
            Ok(Some(begun)) => building = Some(begun),
            Ok(None) | Err(_) => {
                if let Some(building) = building {
                    abandon(engine, building).await?;
                }
                return step.map(|_| ());
            }
        }
        done += CHUNKS_PER_TRANSACTION;
    }
    engine.wake();
    Ok(())
}

/// A list and how much of it a blob sees.
type Seen = (ListId, u64);
/// Chunks of a list, each with the byte at which it begins.
type Chunks = Vec<(u64, ListChunk)>;

/// What a blob sees of its list, in chunks; none if it has none.
fn look_up(view: &dyn View, on: &OnBlob) -> Result<Option<(Seen, Chunks)>, Error> {
    let blob = state::place(view, on)?.blob.ok_or(Refusal::BlobNotFound)?;
    let (Content::Log(list) | Content::Blocks(list)) = blob.content else { return Ok(None) };
    let mut seen = Vec::new();
    let mut length = 0;
    for entry in entries(view, list) {
        if length >= blob.length {
            break;
        }
        let entry = entry?;
        length += entry.length;
        seen.push(entry);
    }
    let (chunks, _) = assembly::chunked(seen);
    Ok(Some(((list, blob.length), chunks)))
}

/// The blob, if it still sees the same of the same list, which then holds every body found there.
fn unmoved(view: &dyn View, on: &OnBlob, (list, length): Seen) -> Result<Option<(Vec<u8>, BlobRow)>, Error> {
    let state::Place { key, blob, .. } = state::place(view, on)?;
    let same = |blob: &BlobRow| {
        matches!(blob.content, Content::Log(now) | Content::Blocks(now) if now == list) && blob.length == length
    };
    Ok(blob.filter(same).map(|blob| (key, blob)))
}

#[cfg(test)]
mod tests;
