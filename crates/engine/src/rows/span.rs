//! `spans`: incarnation of the queue, span of time -> [`SpanRow`]: a stretch of the queue's places, and how long any of
//! them lives. Thanks to it a reader passes over all that has expired, however many, without looking at each.
//!
//! The place of a message that lives lies in a span that outlives it, and a span goes with the last place in it.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::rows::place;
use crate::store::{KeyRange, Space, StoreError};

/// A span lasts two to the power of so many ticks: 1.7 seconds.
const BITS: u32 = 24;

/// A stretch of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanRow {
    /// From then on every place in it is of an expired message.
    pub until: Timestamp,
}

impl Row for SpanRow {
    const VERSION: u8 = 1;
}

/// Which span of which queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The queue's incarnation.
    pub incarnation: u64,
    number: u64,
}

impl Span {
    /// The span in which what is visible from `visible` on has its place.
    pub const fn at(incarnation: u64, visible: Timestamp) -> Self {
        Self { incarnation, number: visible.ticks() >> BITS }
    }

    /// The key of the span.
    pub fn key(&self) -> Vec<u8> {
        KeyWriter::new().u64(self.incarnation).u64(self.number).finish()
    }

    /// The span in `key`.
    pub fn parse(key: &[u8]) -> Result<Self, StoreError> {
        let mut reader = KeyReader::new(Space::Spans, key);
        let (incarnation, number) = (reader.u64()?, reader.u64()?);
        reader.end()?;
        if number > u64::MAX >> BITS {
            return Err(crate::rows::codec::corrupt(Space::Spans, key, "a span after the end of time"));
        }
        Ok(Self { incarnation, number })
    }

    /// The last instant in it.
    pub const fn last(&self) -> Timestamp {
        Timestamp::from_ticks((self.number << BITS) | ((1 << BITS) - 1))
    }

    /// The keys of its places that are visible at `now`.
    pub fn visible(&self, now: Timestamp) -> KeyRange {
        self.places(self.last().min(now))
    }

    /// The keys of all its places.
    pub fn all(&self) -> KeyRange {
        self.places(self.last())
    }

    fn places(&self, last: Timestamp) -> KeyRange {
        let first = place::from(self.incarnation, Timestamp::from_ticks(self.number << BITS));
        let end = place::Place { incarnation: self.incarnation, visible: last, number: u64::MAX };
        KeyRange { start: Bound::Included(first), end: Bound::Included(end.key()) }
    }
}

/// The keys of the queue's spans that hold something visible at `now`.
pub fn up_to(incarnation: u64, now: Timestamp) -> KeyRange {
    let first = KeyWriter::new().u64(incarnation).finish();
    KeyRange { start: Bound::Included(first), end: Bound::Included(Span::at(incarnation, now).key()) }
}

/// An instant at or after `expires`, the same for many, so that a span is not written again for each of its places.
pub const fn rounded(expires: Timestamp) -> Timestamp {
    Timestamp::from_ticks(expires.ticks() | ((1 << BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};
    use crate::rows::place::Place;

    fn at(ticks: u64) -> Span {
        Span::at(1, Timestamp::from_ticks(ticks))
    }

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        let key = at(0x0200_0000).key();
        assert_eq!(key, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(Span::parse(&key).unwrap(), at(0x02FF_FFFF));
        let row = SpanRow { until: Timestamp::from_ticks(300) };
        assert_eq!(encode(&row).unwrap(), [1, 251, 44, 1]);
        assert_eq!(decode::<SpanRow>(Space::Spans, b"k", &[1, 251, 44, 1]).unwrap(), row);
    }

    #[test]
    fn a_span_holds_the_places_of_its_time_and_no_others() {
        let place = |ticks| Place { incarnation: 1, visible: Timestamp::from_ticks(ticks), number: 5 }.key();
        let span = at(0x0200_0000);
        for (ticks, inside) in [(0x01FF_FFFF, false), (0x0200_0000, true), (0x02FF_FFFF, true), (0x0300_0000, false)] {
            assert_eq!(span.all().contains(&place(ticks)), inside, "{ticks:x}");
        }
        let now = Timestamp::from_ticks(0x0280_0000);
        for (ticks, visible) in [(0x0200_0000, true), (0x0280_0000, true), (0x0280_0001, false)] {
            assert_eq!(span.visible(now).contains(&place(ticks)), visible, "{ticks:x}");
        }
        for (ticks, listed) in [(0, true), (0x0200_0000, true), (0x0300_0000, false)] {
            assert_eq!(up_to(1, now).contains(&at(ticks).key()), listed, "{ticks:x}");
        }
    }

    #[test]
    fn the_end_of_time_is_in_the_last_span() {
        let end = Timestamp::from_ticks(u64::MAX);
        assert_eq!((rounded(end), Span::at(1, end).last()), (end, end));
        assert!(matches!(Span::parse(&[0xFF; 16]), Err(StoreError::Corrupt { .. })));
    }
}
