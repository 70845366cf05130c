//! Blocks and block lists.
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-block-blobs--append-blobs--and-page-blobs>

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::blob::kind::BlobKind;
use crate::blob::{OnBlob, Part, Stored, Written, assembly, state, tags};
use crate::clock::Timestamp;
use crate::encryption::{CustomerKey, Encryption};
use crate::engine::Engine;
use crate::error::Error;
use crate::lease::Leased;
use crate::payload::refs::{self, Target};
use crate::payload::{PayloadId, Staged};
use crate::refusal::Refusal;
use crate::rows::blob::Content;
use crate::rows::due::{self, DueKind, DueRow};
use crate::rows::list::{self, ListChunk, ListId};
use crate::rows::staging::{self, BlockRow, StagingRow};
use crate::rows::{self, codec};
use crate::store::{Direction, KeyRange, Space, StoreError, Tx, View};

/// Most blocks of a committed list.
pub const COMMITTED_BLOCKS_MAX: usize = 50_000;
/// Most uncommitted blocks of a blob.
pub const UNCOMMITTED_BLOCKS_MAX: u64 = 100_000;
/// Longest block id, decoded.
pub const BLOCK_ID_BYTES_MAX: usize = 64;
/// How long uncommitted blocks are kept after the last Put Block.
pub const UNCOMMITTED_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A block's id, decoded: 1 to [`BLOCK_ID_BYTES_MAX`] bytes, which the protocol checks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId(pub Vec<u8>);

/// Where a block list looks for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    /// In the committed list.
    Committed,
    /// Among the uncommitted blocks.
    Uncommitted,
    /// Among the uncommitted blocks, else in the committed list.
    Latest,
}

impl StagingRow {
    /// Whether a request that brings `key`, or none, may add to the blocks or commit them.
    pub(super) fn admit(&self, key: Option<&CustomerKey>) -> Result<(), Refusal> {
        self.key.map_or(Encryption::Account, Encryption::Customer).admit(key)
    }
}

/// Put Block, before its body is read: whether it would be refused now. The answer is not binding.
pub fn check_block(engine: &Engine, on: &OnBlob, id: &BlockId) -> Result<(), Error> {
    engine.read(|view| admit(view, on, id).map(|_| ()))
}

/// Whether a block may be put; answers the key of the blob and what is staged there already.
fn admit(view: &dyn View, on: &OnBlob, id: &BlockId) -> Result<(Vec<u8>, Option<StagingRow>), Error> {
    let state::Place { key, blob, .. } = state::place(view, on)?;
    // An ended lease is not forgotten here: the committed blob stays as it is.
    state::lease_of(blob.as_ref()).guard_write(view.now(), on.lease, Leased::Blob)?;
    if let Some(blob) = &blob {
        if !blob.kind.is_like(BlobKind::Block) {
            return Err(Refusal::BlobKindMismatch.into());
        }
        state::settled(blob)?;
    }
    let staging = state::staging(view, &key)?;
    if staging.is_some_and(|staging| usize::from(staging.block_id_bytes) != id.0.len()) {
        return Err(Refusal::BlockIdLengthDiffers.into());
    }
    if let Some(staging) = &staging {
        staging.admit(on.key.as_ref())?;
    }
    Ok((key, staging))
}

/// Put Block: <https://learn.microsoft.com/rest/api/storageservices/put-block>
///
/// Replaces an uncommitted block of the same id; leaves the committed blob as it is. Conditions are not used.
/// Refuses `ContainerNotFound`, `BlobKindMismatch`, `CopyPending`, `BlockIdLengthDiffers`, `BlocksTooMany` and the lease
/// refusals.
pub async fn put_block(engine: &Engine, on: OnBlob, id: BlockId, content: Staged) -> Result<(), Error> {
    let replaced = engine
        .write_content(content, move |tx, content| place(tx, &on, &id, content.length(), |tx| content.keep(tx)))
        .await?;
    if replaced {
        engine.wake();
    }
    Ok(())
}

/// Puts a block of the bytes that `keep` names; answers whether it replaces another.
pub(super) fn place(
    tx: &mut dyn Tx,
    on: &OnBlob,
    id: &BlockId,
    length: u64,
    keep: impl FnOnce(&mut dyn Tx) -> Result<PayloadId, StoreError>,
) -> Result<bool, Error> {
    let (key, staging) = admit(tx, on, id)?;
    let mut staging = match staging {
        Some(staging) => staging,
        None => begin(tx, &key, id, on.key.as_ref())?,
    };
    let block_key = staging::block_key(staging.id, id);
    let old: Option<BlockRow> = rows::get(tx, Space::Blocks, &block_key)?;
    if old.is_none() {
        if staging.blocks >= UNCOMMITTED_BLOCKS_MAX {
            return Err(Refusal::BlocksTooMany.into());
        }
        staging.blocks += 1;
    }
    staging.last_put = tx.now();
    let block = BlockRow { length, payload: keep(tx)? };
    if let Some(old) = old {
        refs::release(tx, Target::payload(old.payload))?;
    }
    rows::put(tx, Space::Blocks, block_key, &block)?;
    rows::put(tx, Space::Stagings, key, &staging)?;
    Ok(old.is_some())
}

/// A new staging for the blob at `key`, with the appointment at which it is looked at.
fn begin(tx: &mut dyn Tx, key: &[u8], id: &BlockId, under: Option<&CustomerKey>) -> Result<StagingRow, StoreError> {
    let due = tx.now().after(UNCOMMITTED_LIFETIME);
    let block_id_bytes = u8::try_from(id.0.len()).unwrap_or(u8::MAX);
    let under = under.map(CustomerKey::sha256);
    let staging = StagingRow { id: tx.id(), block_id_bytes, blocks: 0, key: under, last_put: tx.now(), due };
    rows::put(tx, Space::Due, due::key(due, DueKind::Staging, staging.id), &DueRow { key: key.to_vec() })?;
    Ok(staging)
}

/// Looks at a staging whose appointment has come: drops it a week after its last Put Block, else makes a new
/// appointment.
pub(crate) fn expire(tx: &mut dyn Tx, at: Timestamp, id: u64, key: &[u8]) -> Result<(), StoreError> {
    tx.delete(Space::Due, &due::key(at, DueKind::Staging, id))?;
    let Some(mut staging) = state::staging(tx, key)?.filter(|staging| staging.id == id) else { return Ok(()) };
    let due = staging.last_put.after(UNCOMMITTED_LIFETIME);
    if due <= tx.now() {
        return state::drop_staging(tx, key);
    }
    staging.due = due;
    rows::put(tx, Space::Due, due::key(due, DueKind::Staging, id), &DueRow { key: key.to_vec() })?;
    rows::put(tx, Space::Stagings, key.to_vec(), &staging)
}

/// Put Block List: <https://learn.microsoft.com/rest/api/storageservices/put-block-list>
///
/// The blob's content becomes the named blocks, in order; every other uncommitted block is dropped. At most
/// [`COMMITTED_BLOCKS_MAX`] entries, which the protocol checks.
/// Refuses as `put`, and `BlockUnknown`.
pub async fn put_block_list(
    engine: &Engine,
    on: OnBlob,
    blocks: Vec<(BlockSource, BlockId)>,
    stored: Stored,
) -> Result<Written, Error> {
    assembly::commit(engine, on, blocks, stored).await
}

/// A block of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockView {
    /// Its id.
    pub id: BlockId,
    /// Its bytes.
    pub length: u64,
}

/// The committed blob that a block list belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedBlob {
    /// Its version.
    pub written: Written,
    /// Bytes of content.
    pub length: u64,
}

/// Both block lists of a blob, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLists {
    /// The committed blob, if there is one.
    pub blob: Option<CommittedBlob>,
    /// Its blocks in content order; empty for a blob that was put whole.
    pub committed: Vec<BlockView>,
    /// The uncommitted blocks, in order of their ids.
    pub uncommitted: Vec<BlockView>,
}

/// Get Block List: <https://learn.microsoft.com/rest/api/storageservices/get-block-list>. Only what is asked for is
/// read. Of the conditions only that on tags is used.
///
/// Refuses `ContainerNotFound`, `BlobNotFound` if there is neither a blob nor a block, the lease refusals, and
/// `BlobKindMismatch` for an append or page blob.
pub async fn get_block_list(
    engine: &Engine,
    on: OnBlob,
    committed: bool,
    uncommitted: bool,
) -> Result<BlockLists, Error> {
    engine.scan(move |view| block_lists(view, &on, committed, uncommitted)).await
}

fn block_lists(view: &dyn View, on: &OnBlob, committed: bool, uncommitted: bool) -> Result<BlockLists, Error> {
    let found = match state::find(view, on) {
        Ok(found) => Some(found),
        Err(Error::Refused(Refusal::BlobNotFound)) if on.part == Part::Base => None,
        Err(error) => return Err(error),
    };
    let base = state::base_key(view, on)?;
    let tags_key = found.as_ref().map_or_else(|| base.clone(), |found| found.tags().0);
    // Only the blob itself has uncommitted blocks.
    let is_base = found.as_ref().is_none_or(|found| found.part == Part::Base);
    let staging = if is_base { state::staging(view, &base)? } else { None };
    let blob = found.map(|found| found.blob);
    if blob.is_none() && staging.is_none() {
        return Err(Refusal::BlobNotFound.into());
    }
    on.conditions.judge_tags(|| tags::read(view, &tags_key))?;
    state::lease_of(blob.as_ref()).guard_read(view.now(), on.lease, Leased::Blob)?;
    if blob.as_ref().is_some_and(|blob| !blob.kind.is_like(BlobKind::Block)) {
        return Err(Refusal::BlobKindMismatch.into());
    }
    let mut lists = BlockLists { blob: None, committed: Vec::new(), uncommitted: Vec::new() };
    if let Some(blob) = blob {
        lists.blob =
            Some(CommittedBlob { written: Written { etag: blob.etag, version: blob.version }, length: blob.length });
        if let (true, Content::Blocks(list)) = (committed, blob.content) {
            for entry in entries(view, list) {
                let entry = entry?;
                lists.committed.push(BlockView { id: entry.id, length: entry.length });
            }
        }
    }
    if let (true, Some(staging)) = (uncommitted, staging) {
        for block in uncommitted_blocks(view, staging.id) {
            let (id, block) = block?;
            lists.uncommitted.push(BlockView { id, length: block.length });
        }
    }
    Ok(lists)
}

/// The blocks of a committed list, in content order.
pub(super) fn entries(view: &dyn View, list: ListId) -> impl Iterator<Item = Result<list::ListEntry, StoreError>> + '_ {
    view.scan(Space::Lists, KeyRange::prefix(&list::prefix(list)), Direction::Forward).flat_map(|pair| {
        let chunk = pair.and_then(|(key, value)| codec::decode::<ListChunk>(Space::Lists, &key, &value));
        match chunk {
            Ok(chunk) => chunk.entries.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        }
    })
}

/// The blocks of a staging, in order of their ids.
pub(super) fn uncommitted_blocks(
    view: &dyn View,
    staging: u64,
) -> impl Iterator<Item = Result<(BlockId, BlockRow), StoreError>> + '_ {
    view.scan(Space::Blocks, KeyRange::prefix(&staging::block_prefix(staging)), Direction::Forward).map(|pair| {
        let (key, value) = pair?;
        Ok((staging::block_id(&key)?, codec::decode(Space::Blocks, &key, &value)?))
    })
}
