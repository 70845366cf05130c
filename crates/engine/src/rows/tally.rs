//! `tallies`: incarnation of the queue, shard -> [`TallyRow`]: how many messages the queue holds, in several rows so
//! that writers of a store that locks rows do not all wait for one.

use serde::{Deserialize, Serialize};

use crate::rows::codec::{KeyWriter, Row};

/// Rows that the messages of a queue are counted in.
const SHARDS: u64 = 8;

/// How many messages are counted here; the row is absent if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TallyRow {
    /// The count.
    pub messages: u64,
}

impl Row for TallyRow {
    const VERSION: u8 = 1;
}

/// The key of the row that counts the message `number`.
pub fn key(incarnation: u64, number: u64) -> Vec<u8> {
    // Less than SHARDS.
    let shard = u8::try_from(number % SHARDS).unwrap_or_default();
    KeyWriter::new().u64(incarnation).u8(shard).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::encode;

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        assert_eq!(key(258, 13), [0, 0, 0, 0, 0, 0, 1, 2, 5]);
        assert_eq!(encode(&TallyRow { messages: 300 }).unwrap(), [1, 251, 44, 1]);
    }
}
