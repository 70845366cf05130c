//! Rows: one file a kind. Domain code never touches bytes; the codec never knows a rule.
//!
//! The map of the key space. Text and byte fields are escaped and ended, integers are big-endian; children carry
//! their parent's incarnation, never its name. Values are a version byte and bincode; see `docs/FORMAT.md`.
//!
//! ```text
//! meta        what                           -> format, sequence, last commit time, last id
//! services    account, service               -> Service { logging, metrics, cors, version, retention, website }
//! identities  tenant, object                 -> Identity { principals }
//! containers  account, container             -> Container { incarnation, etag, lease, access, metadata, protections }
//! deleted-containers  account, name, instant -> DeletedContainer { the same, until when }
//! blobs       incarnation, blob              -> Blob { etag, length, properties, lease, content }
//! snapshots   incarnation, blob, instant    -> Blob
//! versions    incarnation, blob, instant    -> Blob { a previous version }
//! deleted     incarnation, blob, instant, k -> Deleted { a soft-deleted snapshot or version, until when }
//! removed     incarnation, blob              -> Deleted { a soft-deleted base, until when }
//! sweeps      incarnation, blob              -> Sweep { all snapshots until then are deleted }
//! stagings    incarnation, blob              -> Staging { its blocks' parent, count, last Put Block }
//! blocks      staging, block id              -> Block { length, payload }              (uncommitted only)
//! lists       list, first byte               -> ListChunk { blocks in content order }
//! pages       map, cell, inverted epoch      -> Cell { written pages }
//! epochs      epoch                          -> Epoch { map, neighbours }
//! payloads    payload, first byte            -> PieceChunk { pieces in segments }
//! small       payload                        -> the bytes themselves
//! refs        kind, id                       -> references, where more than one
//! extents     segment, offset                -> Extent { length, payload }
//! segments    segment                        -> active or sealed
//! tags        blob's or layer's key          -> Tags
//! tagged      account, tag, value, blob      -> the index of tags
//! copies      copy                           -> Copy { target, source, its version, what is there of it }
//! changes     account, instant, id           -> Change { what became of which blob }
//! feeds       account                        -> Feed { the files that take the next changes }
//! dead        sequence, kind, id             -> what the clockwork erases next
//! due         instant, kind, id              -> what the clockwork looks at then
//! queues      account, queue                 -> Queue { incarnation, policies, metadata }
//! messages    incarnation, number            -> Message { inserted, expires, the beginning of its text }
//! texts       incarnation, number, part      -> the bytes themselves                   (long texts only)
//! places      incarnation, visible, number   -> Place { expires, receipt, times taken }
//! spans       incarnation, span of time      -> Span { when all places in it have expired }
//! tallies     incarnation, shard             -> Tally { messages }
//! tables      account, name                  -> Table { incarnation, name as created, policies }
//! entities    incarnation, partition, row    -> etag, parts, the beginning of the properties
//! entity-parts  entity's key, part           -> the properties, further            (large entities only)
//! ```

pub mod blob;
pub mod change;
pub mod codec;
pub mod container;
pub mod copy;
pub mod due;
pub mod entity;
pub mod feed;
pub mod identity;
pub mod layer;
pub mod list;
pub mod message;
pub mod page;
pub mod payload;
pub mod place;
pub mod queue;
pub mod refs;
pub mod segment;
pub mod service;
pub mod span;
pub mod staging;
pub mod table;
pub mod tags;
pub mod tally;

use crate::store::{Space, StoreError, Tx, View};
use codec::Row;

/// The row at `key`, decoded strictly.
pub(crate) fn get<R: Row>(view: &dyn View, space: Space, key: &[u8]) -> Result<Option<R>, StoreError> {
    view.get(space, key)?.map(|bytes| codec::decode(space, key, &bytes)).transpose()
}

/// Writes the row at `key`.
pub(crate) fn put<R: Row>(tx: &mut dyn Tx, space: Space, key: Vec<u8>, row: &R) -> Result<(), StoreError> {
    tx.put(space, key, codec::encode(row)?)
}
