//! `copies`: copy -> [`CopyRow`]: the copies from other servers that are under way.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::rows::blob::Content;
use crate::rows::codec::Row;

/// A copy under way. The content that it holds one reference on becomes the blob's once it is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRow {
    /// The account of the blob that is to be.
    pub account: String,
    /// Its container's name.
    pub container: String,
    /// Its key.
    pub blob: Vec<u8>,
    /// Where the source is, with its signature.
    pub address: String,
    /// The version of the source, as its server calls it; every byte is of this one.
    pub version: String,
    /// Whether it is of pages.
    pub pages: bool,
    /// Bytes to copy.
    pub total: u64,
    /// Bytes up to which the content is complete.
    pub done: u64,
    /// The bytes so far: a list, which nobody shares, or a map of pages.
    pub content: Content,
    /// Names the appointment.
    pub number: u64,
    /// When it is given up.
    pub due: Timestamp,
    /// What an incremental copy follows.
    pub follows: Option<Follows>,
}

/// What an incremental copy follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follows {
    /// The snapshot of the source that is copied.
    pub of: Timestamp,
    /// The snapshot of the source that the content began as; none if it began as nothing.
    pub since: Option<Timestamp>,
}

impl Row for CopyRow {
    const VERSION: u8 = 1;
}

/// The key of a copy.
pub fn key(copy: Uuid) -> Vec<u8> {
    copy.as_bytes().to_vec()
}

/// The copy in `key`; none if it is not one.
pub fn id(key: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(key).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};
    use crate::rows::list::ListId;
    use crate::store::Space;

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        let copy = Uuid::from_u128(0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10);
        assert_eq!(key(copy), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!((id(&key(copy)), id(b"short")), (Some(copy), None));
        let row = CopyRow {
            account: "a".into(),
            container: "c".into(),
            blob: vec![7],
            address: "u".into(),
            version: "v".into(),
            pages: true,
            total: 3,
            done: 2,
            content: Content::Log(ListId(5)),
            number: 6,
            due: Timestamp::from_ticks(9),
            follows: None,
        };
        let follows = |since| Some(Follows { of: Timestamp::from_ticks(8), since });
        let start = [1, 1, b'a', 1, b'c', 1, 7, 1, b'u', 1, b'v', 1, 3, 2, 3, 5, 6, 9];
        let cases: [(_, &[u8]); 3] =
            [(None, &[0]), (follows(None), &[1, 8, 0]), (follows(Some(Timestamp::from_ticks(4))), &[1, 8, 1, 4])];
        for (follows, end) in cases {
            let row = CopyRow { follows, ..row.clone() };
            let bytes = encode(&row).unwrap();
            assert_eq!(bytes, [&start, end].concat());
            assert_eq!(decode::<CopyRow>(Space::Copies, b"k", &bytes).unwrap(), row);
        }
    }
}
