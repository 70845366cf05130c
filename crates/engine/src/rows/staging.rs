//! `stagings`: incarnation of the container, blob name -> [`StagingRow`]; `blocks`: staging, block id -> [`BlockRow`].
//!
//! A staging is the parent of a name's uncommitted blocks. Dropping its row makes them unreachable at once.

use serde::{Deserialize, Serialize};

use crate::blob::blocks::BlockId;
use crate::clock::Timestamp;
use crate::payload::PayloadId;
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};

/// The uncommitted side of a blob. Its key is that of the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagingRow {
    /// The number that its blocks carry.
    pub id: u64,
    /// Bytes of every block id.
    pub block_id_bytes: u8,
    /// How many blocks.
    pub blocks: u64,
    /// The SHA-256 of the customer's key that all blocks are stored under.
    pub key: Option<[u8; 32]>,
    /// The last Put Block; changes with every one.
    pub last_put: Timestamp,
    /// When the clockwork looks whether the blocks have outlived their week.
    pub due: Timestamp,
}

impl Row for StagingRow {
    const VERSION: u8 = 1;
}

/// An uncommitted block. It holds one reference on its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRow {
    /// Its bytes.
    pub length: u64,
    /// Where they are.
    pub payload: PayloadId,
}

impl Row for BlockRow {
    const VERSION: u8 = 1;
}

/// The key of a block of the staging.
pub fn block_key(staging: u64, id: &BlockId) -> Vec<u8> {
    KeyWriter::new().u64(staging).bytes(&id.0).finish()
}

/// What the keys of the staging's blocks begin with.
pub fn block_prefix(staging: u64) -> Vec<u8> {
    KeyWriter::new().u64(staging).finish()
}

/// The block id in `key`.
pub fn block_id(key: &[u8]) -> Result<BlockId, StoreError> {
    let mut reader = KeyReader::new(Space::Blocks, key);
    reader.u64()?;
    let id = BlockId(reader.bytes()?);
    reader.end()?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};

    #[test]
    fn a_block_key_on_disk_looks_like_this_for_ever() {
        let id = BlockId(vec![0, 1, 255]);
        let key = block_key(1, &id);
        assert_eq!(key, b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\xFF\x01\xFF\x00\x01");
        assert_eq!(block_id(&key).unwrap(), id);
    }

    #[test]
    fn values_on_disk_look_like_this_for_ever() {
        let time = Timestamp::from_ticks;
        let staging = StagingRow { id: 1, block_id_bytes: 2, blocks: 3, key: None, last_put: time(4), due: time(5) };
        assert_eq!(encode(&staging).unwrap(), [1, 1, 2, 3, 0, 4, 5]);
        let block = BlockRow { length: 6, payload: PayloadId(7) };
        assert_eq!(encode(&block).unwrap(), [1, 6, 7]);
        assert_eq!(decode::<BlockRow>(Space::Blocks, b"k", &[1, 6, 7]).unwrap(), block);
    }
}
