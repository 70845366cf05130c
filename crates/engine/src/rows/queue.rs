//! `queues`: account, queue -> [`QueueRow`].

use serde::{Deserialize, Serialize};

use crate::access::AccessPolicy;
use crate::names::{AccountName, QueueAddress, QueueName};
use crate::properties::Metadata;
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};

/// A queue. Its messages carry `incarnation`, so changing that number makes all of them unreachable at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRow {
    /// The number that its messages carry.
    pub incarnation: u64,
    /// Stored access policies, in the client's order.
    pub policies: Vec<AccessPolicy>,
    /// Its metadata.
    pub metadata: Metadata,
}

impl Row for QueueRow {
    const VERSION: u8 = 1;
}

/// The key of the queue at `address`.
pub fn key(address: &QueueAddress) -> Vec<u8> {
    KeyWriter::new().text(address.account.as_str()).text(address.queue.as_str()).finish()
}

/// What the keys of the account's queues whose names begin with `prefix` begin with.
pub fn prefix(account: &AccountName, prefix: &[u8]) -> Vec<u8> {
    KeyWriter::new().text(account.as_str()).open_bytes(prefix).finish()
}

/// The queue's name in `key`.
pub fn name(key: &[u8]) -> Result<QueueName, StoreError> {
    let mut reader = KeyReader::new(Space::Queues, key);
    reader.text()?;
    let text = reader.text()?;
    let name = QueueName::parse(&text).map_err(|_| reader.corrupt("not a queue name"))?;
    reader.end()?;
    Ok(name)
}

/// What the keys of all that belongs to `incarnation` begin with, in every space of messages.
pub fn children(incarnation: u64) -> Vec<u8> {
    KeyWriter::new().u64(incarnation).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};

    fn address(queue: &str) -> QueueAddress {
        QueueAddress { account: AccountName::parse("dev").unwrap(), queue: QueueName::parse(queue).unwrap() }
    }

    #[test]
    fn a_key_on_disk_looks_like_this_for_ever() {
        assert_eq!(key(&address("jobs")), b"dev\x00\x01jobs\x00\x01");
        assert_eq!(name(&key(&address("jobs"))).unwrap().as_str(), "jobs");
    }

    #[test]
    fn a_value_on_disk_looks_like_this_for_ever() {
        let policy = AccessPolicy { id: "p".into(), permission: Some("ra".into()), ..AccessPolicy::default() };
        let metadata = Metadata(vec![("a".into(), "b".into())]);
        let row = QueueRow { incarnation: 7, policies: vec![policy], metadata };
        let bytes = encode(&row).unwrap();
        assert_eq!(bytes, [1, 7, 1, 1, b'p', 0, 0, 1, 2, b'r', b'a', 1, 1, b'a', 1, b'b']);
        assert_eq!(decode::<QueueRow>(Space::Queues, b"k", &bytes).unwrap(), row);
    }

    #[test]
    fn a_damaged_key_is_reported() {
        for bad in [&b""[..], b"dev", b"dev\x00\x01", b"dev\x00\x01A\x00\x01", b"dev\x00\x01$root\x00\x01"] {
            assert!(matches!(name(bad), Err(StoreError::Corrupt { space: Space::Queues, .. })), "{bad:?}");
        }
    }
}
