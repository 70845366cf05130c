//! `places`: incarnation of the queue, visibility instant, number -> [`PlaceRow`]. Every message has exactly one place;
//! whoever takes or updates it moves it. Nothing is ever placed before the present, so what lies behind only shrinks.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};

/// Where a message stands in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The queue's incarnation.
    pub incarnation: u64,
    /// When the message can be had.
    pub visible: Timestamp,
    /// The message's number: of messages that become visible at the same instant, the first that was put is the first.
    pub number: u64,
}

/// What changes with every hand-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceRow {
    /// When the message ceases to exist.
    pub expires: Timestamp,
    /// When the message was placed here: with its visibility, what a receipt says.
    pub placed: Timestamp,
    /// How often it was taken.
    pub dequeues: u64,
}

impl Row for PlaceRow {
    const VERSION: u8 = 1;
}

impl Place {
    /// The key of the place.
    pub fn key(&self) -> Vec<u8> {
        from(self.incarnation, self.visible).into_iter().chain(self.number.to_be_bytes()).collect()
    }

    /// The place in `key`.
    pub fn parse(key: &[u8]) -> Result<Self, StoreError> {
        let mut reader = KeyReader::new(Space::Places, key);
        let (incarnation, visible, number) = (reader.u64()?, reader.u64()?, reader.u64()?);
        reader.end()?;
        Ok(Self { incarnation, visible: Timestamp::from_ticks(visible), number })
    }
}

/// What is not greater than the key of any place at `visible` or later.
pub fn from(incarnation: u64, visible: Timestamp) -> Vec<u8> {
    KeyWriter::new().u64(incarnation).u64(visible.ticks()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};

    fn place(visible: u64, number: u64) -> Place {
        Place { incarnation: 1, visible: Timestamp::from_ticks(visible), number }
    }

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        let key = place(258, 3).key();
        assert_eq!(key, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(Place::parse(&key).unwrap(), place(258, 3));
        let row = PlaceRow { expires: Timestamp::from_ticks(4), placed: Timestamp::from_ticks(300), dequeues: 5 };
        let bytes = encode(&row).unwrap();
        assert_eq!(bytes, [1, 4, 251, 44, 1, 5]);
        assert_eq!(decode::<PlaceRow>(Space::Places, b"k", &bytes).unwrap(), row);
    }

    #[test]
    fn places_sort_by_visibility_then_by_number() {
        let places = [place(1, 9), place(2, 1), place(2, 2), place(256, 1)];
        for (first, second) in places.iter().zip(&places[1..]) {
            assert!(first.key() < second.key(), "{first:?} {second:?}");
        }
        assert!(place(1, u64::MAX).key() < from(1, Timestamp::from_ticks(2)));
        assert!(from(1, Timestamp::from_ticks(2)) <= place(2, 0).key());
    }

    #[test]
    fn a_damaged_key_is_reported() {
        for bad in [&b""[..], &[0; 23], &[0; 25]] {
            assert!(matches!(Place::parse(bad), Err(StoreError::Corrupt { space: Space::Places, .. })), "{bad:?}");
        }
    }
}
