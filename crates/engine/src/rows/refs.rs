//! `refs`: kind, id -> [`RefsRow`], only where there is more than one reference; `dead`: sequence, kind, id -> nothing:
//! what lost its last reference in that transaction and waits to be erased; of a sweep, the key of the blob.

use serde::{Deserialize, Serialize};

use crate::rows::codec::{KeyReader, KeyWriter, Row, numbered};
use crate::store::{Space, StoreError};

numbered! {
    /// What can be referenced and can die. The numbers are on disk and never reused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    Kind {
        /// A stored body.
        Payload = 1,
        /// A committed block list.
        List = 2,
        /// The uncommitted blocks of a blob.
        Staging = 3,
        /// A container's incarnation.
        Container = 4,
        /// An epoch of a map of pages.
        Pages = 5,
        /// The messages of a queue.
        Queue = 6,
        /// Snapshots that were deleted by one write.
        Sweep = 7,
        /// The entities of a table.
        Table = 8,
    }
}

/// A thing with references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// What it is.
    pub kind: Kind,
    /// Which one.
    pub id: u64,
}

/// How many references there are: two or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefsRow {
    /// The count.
    pub count: u64,
}

impl Row for RefsRow {
    const VERSION: u8 = 1;
}

/// The key of a count.
pub fn key(target: Target) -> Vec<u8> {
    KeyWriter::new().u8(target.kind as u8).u64(target.id).finish()
}

/// The key of something that died in the transaction at `seq`.
pub fn dead_key(seq: u64, target: Target) -> Vec<u8> {
    KeyWriter::new().u64(seq).u8(target.kind as u8).u64(target.id).finish()
}

/// What died, and when, in the key of a dead row.
pub fn parse_dead(key: &[u8]) -> Result<(u64, Target), StoreError> {
    let mut reader = KeyReader::new(Space::Dead, key);
    let seq = reader.u64()?;
    let kind = reader.u8()?;
    let kind = Kind::of(kind).ok_or_else(|| reader.corrupt("unknown kind"))?;
    let target = Target { kind, id: reader.u64()? };
    reader.end()?;
    Ok((seq, target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::encode;

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        use Kind::{Container, List, Pages, Payload, Queue, Staging, Sweep, Table};
        let kinds = [Payload, List, Staging, Container, Pages, Queue, Sweep, Table];
        for (kind, number) in kinds.into_iter().zip(1..) {
            let target = Target { kind, id: 5 };
            assert_eq!(key(target), [number, 0, 0, 0, 0, 0, 0, 0, 5]);
            assert_eq!(dead_key(6, target), [0, 0, 0, 0, 0, 0, 0, 6, number, 0, 0, 0, 0, 0, 0, 0, 5]);
            assert_eq!(parse_dead(&dead_key(6, target)).unwrap(), (6, target));
        }
        assert_eq!(encode(&RefsRow { count: 7 }).unwrap(), [1, 7]);
    }
}
