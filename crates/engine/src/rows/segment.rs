//! `segments`: segment -> [`SegmentRow`].

use serde::{Deserialize, Serialize};

use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};

/// What may happen to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SegmentRow {
    /// Bytes may be appended: after a crash it may hold some that no row names.
    Active,
    /// Nothing is appended any more.
    Sealed,
}

impl Row for SegmentRow {
    const VERSION: u8 = 1;
}

/// The key of a segment.
pub fn key(segment: u64) -> Vec<u8> {
    KeyWriter::new().u64(segment).finish()
}

/// The segment in `key`.
pub fn id(key: &[u8]) -> Result<u64, StoreError> {
    let mut reader = KeyReader::new(Space::Segments, key);
    let id = reader.u64()?;
    reader.end()?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::encode;

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        assert_eq!(key(1), [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(id(&key(1)).unwrap(), 1);
        assert_eq!(encode(&SegmentRow::Active).unwrap(), [1, 0]);
        assert_eq!(encode(&SegmentRow::Sealed).unwrap(), [1, 1]);
    }
}
