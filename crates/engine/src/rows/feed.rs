//! `feeds`: account -> [`FeedRow`]: how far the change feed of the account has come.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::names::AccountName;
use crate::rows::codec::{KeyWriter, Row};

/// How far a change feed has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedRow {
    /// The segment that takes the next changes, if they are of its hour.
    pub open: Option<Segment>,
}

/// A segment: the changes of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// When the hour began.
    pub begin: Timestamp,
    /// The number of its last file.
    pub file: u32,
}

impl Row for FeedRow {
    const VERSION: u8 = 1;
}

/// The key of the account's feed.
pub fn key(account: &AccountName) -> Vec<u8> {
    KeyWriter::new().text(account.as_str()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::encode;

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        assert_eq!(key(&AccountName::parse("dev").unwrap()), b"dev\x00\x01");
        assert_eq!(encode(&FeedRow::default()).unwrap(), [1, 0]);
        let open = Segment { begin: Timestamp::from_ticks(5), file: 6 };
        assert_eq!(encode(&FeedRow { open: Some(open) }).unwrap(), [1, 1, 5, 6]);
    }
}
