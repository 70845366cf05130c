//! `payloads`: payload, first byte -> [`PieceChunk`]; `small`: payload -> the bytes of a body up to the inline bound,
//! as they are; `extents`: segment, offset -> [`ExtentRow`], which tells at start which bytes of a segment are named.

use serde::{Deserialize, Serialize};

use crate::payload::{PayloadId, Piece};
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};

/// Some consecutive pieces of a body. Never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceChunk {
    /// The pieces, in content order.
    pub pieces: Vec<Piece>,
}

impl Row for PieceChunk {
    const VERSION: u8 = 1;
}

/// Most pieces of a chunk: with all their checksums they stay below the value bound.
pub const CHUNK_PIECES_MAX: usize = 24;
/// Most pieces of a chunk that are sealed: they have a tag a frame besides.
pub const CHUNK_SEALED_PIECES_MAX: usize = 8;

/// Named bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtentRow {
    /// Bytes.
    pub length: u32,
    /// The body they belong to.
    pub payload: PayloadId,
}

impl Row for ExtentRow {
    const VERSION: u8 = 1;
}

/// The key of the chunk that begins at byte `first` of the body.
pub fn key(payload: PayloadId, first: u64) -> Vec<u8> {
    KeyWriter::new().u64(payload.0).u64(first).finish()
}

/// What the keys of the body's chunks begin with.
pub fn prefix(payload: PayloadId) -> Vec<u8> {
    KeyWriter::new().u64(payload.0).finish()
}

/// The first byte in `key`.
pub fn first_byte(key: &[u8]) -> Result<u64, StoreError> {
    pair(Space::Payloads, key).map(|(_, first)| first)
}

/// The key of a small body.
pub fn small_key(payload: PayloadId) -> Vec<u8> {
    KeyWriter::new().u64(payload.0).finish()
}

/// The key of an extent.
pub fn extent_key(segment: u64, offset: u64) -> Vec<u8> {
    KeyWriter::new().u64(segment).u64(offset).finish()
}

/// What the keys of the segment's extents begin with.
pub fn extent_prefix(segment: u64) -> Vec<u8> {
    KeyWriter::new().u64(segment).finish()
}

/// The offset in the key of an extent.
pub fn extent_offset(key: &[u8]) -> Result<u64, StoreError> {
    pair(Space::Extents, key).map(|(_, offset)| offset)
}

fn pair(space: Space, key: &[u8]) -> Result<(u64, u64), StoreError> {
    let mut reader = KeyReader::new(space, key);
    let pair = (reader.u64()?, reader.u64()?);
    reader.end()?;
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::seal::{SALT_BYTES, Seal, TAG_BYTES};
    use crate::payload::{FRAME_BYTES, PIECE_BYTES_MAX};
    use crate::rows::codec::{decode, encode};
    use crate::store::VALUE_BYTES_MAX;

    #[test]
    fn the_largest_chunk_fits_a_value() {
        let frames = vec![u64::MAX; (PIECE_BYTES_MAX / FRAME_BYTES) as usize];
        let tags = vec![[0xFF; TAG_BYTES]; frames.len()];
        let mut piece = Piece { segment: u64::MAX, offset: u64::MAX, length: PIECE_BYTES_MAX, frames, seal: None };
        let chunk = PieceChunk { pieces: vec![piece.clone(); CHUNK_PIECES_MAX] };
        assert!(encode(&chunk).unwrap().len() <= VALUE_BYTES_MAX);
        piece.seal = Some(Seal { salt: [0xFF; SALT_BYTES], tags });
        let chunk = PieceChunk { pieces: vec![piece; CHUNK_SEALED_PIECES_MAX] };
        assert!(encode(&chunk).unwrap().len() <= VALUE_BYTES_MAX);
    }

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        let id = PayloadId(1);
        assert_eq!(key(id, 2), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(first_byte(&key(id, 2)).unwrap(), 2);
        assert_eq!(small_key(id), [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(extent_offset(&extent_key(1, 4096)).unwrap(), 4096);
        let mut piece = Piece { segment: 3, offset: 4, length: 5, frames: vec![6], seal: None };
        let chunk = PieceChunk { pieces: vec![piece.clone()] };
        assert_eq!(encode(&chunk).unwrap(), [1, 1, 3, 4, 5, 1, 6, 0]);
        assert_eq!(decode::<PieceChunk>(Space::Payloads, b"k", &[1, 1, 3, 4, 5, 1, 6, 0]).unwrap(), chunk);
        piece.seal = Some(Seal { salt: [7; SALT_BYTES], tags: vec![[8; TAG_BYTES]] });
        let sealed = [&[1, 1, 3, 4, 5, 1, 6, 1][..], &[7; SALT_BYTES], &[1], &[8; TAG_BYTES]].concat();
        assert_eq!(encode(&PieceChunk { pieces: vec![piece] }).unwrap(), sealed);
        assert_eq!(encode(&ExtentRow { length: 7, payload: PayloadId(8) }).unwrap(), [1, 7, 8]);
    }
}
