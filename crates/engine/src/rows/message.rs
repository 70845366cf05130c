//! `messages`: incarnation of the queue, number -> [`MessageRow`]; `texts`: incarnation, number, part -> bytes: what of
//! the text does not fit the message's row. Both are written with the message and with a new text, never in between.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::rows::codec::{KeyWriter, Row};

/// Bytes of a text that lie in the message's row.
pub const HEAD_BYTES_MAX: usize = 15 * 1024;
/// Bytes of a text in each further row.
pub const PART_BYTES_MAX: usize = 16 * 1024;

/// What of a message does not change while it is handed out again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRow {
    /// When it was put.
    pub inserted: Timestamp,
    /// When it ceases to exist.
    pub expires: Timestamp,
    /// Bytes of its text.
    pub length: u32,
    /// The first of them, at most [`HEAD_BYTES_MAX`].
    #[serde(with = "serde_bytes")]
    pub head: Vec<u8>,
}

impl Row for MessageRow {
    const VERSION: u8 = 1;
}

impl MessageRow {
    /// Rows in `texts` that its text goes on in.
    pub fn parts(&self) -> u8 {
        let rest = (self.length as usize).saturating_sub(HEAD_BYTES_MAX);
        u8::try_from(rest.div_ceil(PART_BYTES_MAX)).unwrap_or(u8::MAX)
    }
}

/// The key of a message.
pub fn key(incarnation: u64, number: u64) -> Vec<u8> {
    KeyWriter::new().u64(incarnation).u64(number).finish()
}

/// The key of a further part of its text, from 0 on.
pub fn text_key(incarnation: u64, number: u64, part: u8) -> Vec<u8> {
    KeyWriter::new().u64(incarnation).u64(number).u8(part).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};
    use crate::store::{Space, VALUE_BYTES_MAX};

    fn row(length: u32, head: Vec<u8>) -> MessageRow {
        MessageRow { inserted: Timestamp::from_ticks(1), expires: Timestamp::from_ticks(2), length, head }
    }

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        assert_eq!(key(258, 3), [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(text_key(1, 2, 3), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 3]);
        let row = row(2, vec![8, 255]);
        let bytes = encode(&row).unwrap();
        assert_eq!(bytes, [1, 1, 2, 2, 2, 8, 255]);
        assert_eq!(decode::<MessageRow>(Space::Messages, b"k", &bytes).unwrap(), row);
    }

    #[test]
    fn the_largest_text_fits_its_rows() {
        let (head, part) = (u32::try_from(HEAD_BYTES_MAX).unwrap(), u32::try_from(PART_BYTES_MAX).unwrap());
        let cases = [(0, 0), (head, 0), (head + 1, 1), (head + part, 1), (head + part + 1, 2), (65_536, 4)];
        for (length, parts) in cases {
            assert_eq!(row(length, Vec::new()).parts(), parts, "{length}");
        }
        let mut full = row(65_536, vec![255; HEAD_BYTES_MAX]);
        (full.inserted, full.expires) = (Timestamp::from_ticks(u64::MAX), Timestamp::from_ticks(u64::MAX));
        assert!(encode(&full).unwrap().len() <= VALUE_BYTES_MAX);
    }
}
