//! References: who still needs a body, a list, or the children of something.
//!
//! Everything is born with one reference. A count is written only while it is more than one, so that a body that is
//! never shared costs no row.

use crate::payload::PayloadId;
use crate::rows;
use crate::rows::list::ListId;
use crate::rows::refs::{self, Kind, RefsRow};
use crate::store::{Space, StoreError, Tx, View};

pub(crate) use crate::rows::refs::Target;

impl Target {
    /// A stored body.
    pub(crate) fn payload(id: PayloadId) -> Self {
        Self { kind: Kind::Payload, id: id.0 }
    }

    /// A committed block list.
    pub(crate) fn list(id: ListId) -> Self {
        Self { kind: Kind::List, id: id.0 }
    }

    /// The uncommitted blocks of a blob.
    pub(crate) fn staging(id: u64) -> Self {
        Self { kind: Kind::Staging, id }
    }

    /// An epoch of a map of pages.
    pub(crate) fn pages(epoch: u64) -> Self {
        Self { kind: Kind::Pages, id: epoch }
    }

    /// Snapshots that were deleted by one write.
    pub(crate) fn sweep(id: u64) -> Self {
        Self { kind: Kind::Sweep, id }
    }

    /// A container's incarnation.
    pub(crate) fn container(id: u64) -> Self {
        Self { kind: Kind::Container, id }
    }

    /// The incarnation of a queue's messages.
    pub(crate) fn queue(id: u64) -> Self {
        Self { kind: Kind::Queue, id }
    }

    /// The incarnation of a table's entities.
    pub(crate) fn table(id: u64) -> Self {
        Self { kind: Kind::Table, id }
    }
}

/// Adds `count` references.
pub(crate) fn retain(tx: &mut dyn Tx, target: Target, count: u64) -> Result<(), StoreError> {
    let row = RefsRow { count: references(tx, target)? + count };
    rows::put(tx, Space::Refs, refs::key(target), &row)
}

/// Gives up one reference. With the last one the target is dead: the clockwork erases it.
pub(crate) fn release(tx: &mut dyn Tx, target: Target) -> Result<(), StoreError> {
    match references(tx, target)? {
        0 | 1 => {
            let seq = tx.seq();
            tx.put(Space::Dead, refs::dead_key(seq, target), Vec::new())
        }
        2 => tx.delete(Space::Refs, &refs::key(target)),
        count => rows::put(tx, Space::Refs, refs::key(target), &RefsRow { count: count - 1 }),
    }
}

/// How many references there are.
pub(crate) fn references(tx: &dyn View, target: Target) -> Result<u64, StoreError> {
    let row: Option<RefsRow> = rows::get(tx, Space::Refs, &refs::key(target))?;
    Ok(row.map_or(1, |row| row.count))
}
