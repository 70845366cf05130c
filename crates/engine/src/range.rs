//! Byte ranges of a content.
//! <https://learn.microsoft.com/rest/api/storageservices/specifying-the-range-header-for-blob-service-operations>

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeRequest {
    /// First byte.
    pub first: u64,
    /// Last byte, inclusive; none: to the end. The protocol checks that it is not before `first`.
    pub last: Option<u64>,
}

/// Consecutive bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    /// First byte.
    pub first: u64,
    /// How many bytes. At least one, where they are those that a request asks for.
    pub length: u64,
}

impl RangeRequest {
    /// The part of a content of `length` bytes that is asked for; an end beyond the content is cut.
    ///
    /// Refuses [`Refusal::RangeOutside`] if it begins at or after the end.
    pub fn within(self, length: u64) -> Result<ByteRange, Refusal> {
        if self.first >= length {
            return Err(Refusal::RangeOutside { length });
        }
        let last = self.last.map_or(length - 1, |last| last.min(length - 1));
        Ok(ByteRange { first: self.first, length: last.saturating_sub(self.first) + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_at_the_end_and_refused_beyond_it() {
        let cases = [
            (0, None, 10, Ok((0, 10))),
            (0, Some(0), 10, Ok((0, 1))),
            (9, Some(9), 10, Ok((9, 1))),
            (3, Some(99), 10, Ok((3, 7))),
            (3, Some(u64::MAX), 10, Ok((3, 7))),
            (10, None, 10, Err(10)),
            (u64::MAX, Some(u64::MAX), 10, Err(10)),
            (0, None, 0, Err(0)),
            (0, Some(0), 0, Err(0)),
            (9, None, 10, Ok((9, 1))),
            (0, Some(8), 10, Ok((0, 9))),
            (0, Some(9), 10, Ok((0, 10))),
            (0, Some(10), 10, Ok((0, 10))),
            (10, Some(12), 10, Err(10)),
            (0, None, u64::MAX, Ok((0, u64::MAX))),
            (u64::MAX - 1, Some(u64::MAX), u64::MAX, Ok((u64::MAX - 1, 1))),
        ];
        for (first, last, length, expected) in cases {
            let answer = RangeRequest { first, last }.within(length);
            let expected = match expected {
                Ok((first, length)) => Ok(ByteRange { first, length }),
                Err(length) => Err(Refusal::RangeOutside { length }),
            };
            assert_eq!(answer, expected, "{first}-{last:?} of {length}");
        }
    }
}
