//! `due`: instant, kind, id -> [`DueRow`]: what the clockwork looks at when the instant has come.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::rows::codec::{KeyReader, KeyWriter, Row, numbered};
use crate::store::{KeyRange, Space, StoreError};

numbered! {
    /// What is looked at. The numbers are on disk and never reused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    DueKind {
        /// Uncommitted blocks: dropped a week after the last Put Block.
        Staging = 1,
        /// A block list that was being built: dropped if its commit never came.
        List = 2,
        /// A message of a queue: removed when it has expired.
        Message = 3,
        /// A soft-deleted snapshot or version: erased.
        Deleted = 4,
        /// A soft-deleted base: erased.
        Removed = 5,
        /// A soft-deleted container: erased.
        Container = 6,
        /// A map of pages that was being built: dropped if no blob came to name it.
        Pages = 7,
        /// A copy from another server: given up if it has not ended.
        Copy = 8,
        /// A blob that expires: deleted.
        Expiry = 9,
    }
}

/// What the clockwork needs to find the thing again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueRow {
    /// The key of the row concerned, if it is not found by the id.
    pub key: Vec<u8>,
}

impl Row for DueRow {
    const VERSION: u8 = 1;
}

/// The key of an appointment.
pub fn key(at: Timestamp, kind: DueKind, id: u64) -> Vec<u8> {
    KeyWriter::new().u64(at.ticks()).u8(kind as u8).u64(id).finish()
}

/// The keys of the appointments whose instant has come at `now`.
pub fn up_to(now: Timestamp) -> KeyRange {
    let end = KeyWriter::new().u64(now.ticks().saturating_add(1)).finish();
    KeyRange { start: Bound::Unbounded, end: Bound::Excluded(end) }
}

/// The appointment in `key`.
pub fn parse(key: &[u8]) -> Result<(Timestamp, DueKind, u64), StoreError> {
    let mut reader = KeyReader::new(Space::Due, key);
    let at = Timestamp::from_ticks(reader.u64()?);
    let kind = reader.u8()?;
    let kind = DueKind::of(kind).ok_or_else(|| reader.corrupt("unknown kind of appointment"))?;
    let id = reader.u64()?;
    reader.end()?;
    Ok((at, kind, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::encode;

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        let at = Timestamp::from_ticks(1);
        let written = key(at, DueKind::List, 3);
        assert_eq!(written, [0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(parse(&written).unwrap(), (at, DueKind::List, 3));
        for kind in [
            DueKind::Staging,
            DueKind::List,
            DueKind::Message,
            DueKind::Deleted,
            DueKind::Removed,
            DueKind::Container,
            DueKind::Expiry,
        ] {
            assert_eq!(parse(&key(at, kind, 3)).unwrap(), (at, kind, 3));
        }
        assert_eq!(encode(&DueRow { key: vec![9] }).unwrap(), [1, 1, 9]);
    }

    #[test]
    fn what_has_come_ends_with_the_instant_itself() {
        for (ticks, come) in [(0, true), (6, true), (7, true), (8, false), (u64::MAX, false)] {
            let key = key(Timestamp::from_ticks(ticks), DueKind::Expiry, u64::MAX);
            assert_eq!(up_to(Timestamp::from_ticks(7)).contains(&key), come, "{ticks}");
        }
    }

    #[test]
    fn an_unknown_kind_is_reported() {
        let mut written = key(Timestamp::from_ticks(1), DueKind::List, 3);
        written[8] = 99;
        assert!(matches!(parse(&written), Err(StoreError::Corrupt { space: Space::Due, .. })));
    }
}
