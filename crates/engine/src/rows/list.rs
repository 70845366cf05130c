//! `lists`: list, first byte -> [`ListChunk`]. A list may be shared once a blob names it. A committed block list never
//! changes; that of an append blob grows at its end, beyond what those who share it see.

use serde::{Deserialize, Serialize};

use crate::blob::blocks::BlockId;
use crate::payload::PayloadId;
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};

/// Names a committed block list for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ListId(pub u64);

/// One block of a list. It holds one reference on its payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEntry {
    /// The block's id; empty if it was appended.
    pub id: BlockId,
    /// Its bytes, at least one.
    pub length: u64,
    /// Where they are.
    pub payload: PayloadId,
}

/// Some consecutive blocks of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListChunk {
    /// The blocks, in content order.
    pub entries: Vec<ListEntry>,
}

impl Row for ListChunk {
    const VERSION: u8 = 1;
}

/// Most entries of a chunk: with the longest ids it stays below the value bound.
pub const CHUNK_ENTRIES_MAX: usize = 128;

/// The key of the chunk that begins at byte `first` of the content.
pub fn key(list: ListId, first: u64) -> Vec<u8> {
    KeyWriter::new().u64(list.0).u64(first).finish()
}

/// What the keys of the list's chunks begin with.
pub fn prefix(list: ListId) -> Vec<u8> {
    KeyWriter::new().u64(list.0).finish()
}

/// The first byte in `key`.
pub fn first_byte(key: &[u8]) -> Result<u64, StoreError> {
    let mut reader = KeyReader::new(Space::Lists, key);
    reader.u64()?;
    let first = reader.u64()?;
    reader.end()?;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::blocks::BLOCK_ID_BYTES_MAX;
    use crate::rows::codec::{decode, encode};
    use crate::store::VALUE_BYTES_MAX;

    #[test]
    fn the_largest_chunk_fits_a_value() {
        let entry =
            ListEntry { id: BlockId(vec![0xFF; BLOCK_ID_BYTES_MAX]), length: u64::MAX, payload: PayloadId(u64::MAX) };
        let chunk = ListChunk { entries: vec![entry; CHUNK_ENTRIES_MAX] };
        assert!(encode(&chunk).unwrap().len() <= VALUE_BYTES_MAX);
    }

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        assert_eq!(key(ListId(1), 2), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(first_byte(&key(ListId(1), 2)).unwrap(), 2);
        let chunk = ListChunk { entries: vec![ListEntry { id: BlockId(vec![5]), length: 6, payload: PayloadId(7) }] };
        assert_eq!(encode(&chunk).unwrap(), [1, 1, 1, 5, 6, 7]);
        assert_eq!(decode::<ListChunk>(Space::Lists, b"k", &[1, 1, 1, 5, 6, 7]).unwrap(), chunk);
    }
}
