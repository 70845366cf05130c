//! When a blob expires. <https://learn.microsoft.com/rest/api/storageservices/set-blob-expiry>

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::refusal::Refusal;

/// The instant from which on a blob is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expiry {
    /// The instant.
    pub at: Timestamp,
    /// Names the appointment at which the blob is deleted.
    pub id: u64,
}

/// What Set Blob Expiry asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryOption {
    /// The blob stays.
    Never,
    /// So long after the blob was created.
    AfterCreation(Duration),
    /// So long after the request.
    AfterNow(Duration),
    /// Then.
    At(Timestamp),
}

impl ExpiryOption {
    /// The instant, for a blob that was created at `created`.
    ///
    /// Refuses [`Refusal::ExpiryOver`] for one that has passed.
    pub fn instant(self, created: Timestamp, now: Timestamp) -> Result<Option<Timestamp>, Refusal> {
        let at = match self {
            Self::Never => return Ok(None),
            Self::AfterCreation(time) => created.after(time),
            Self::AfterNow(time) => now.after(time),
            Self::At(at) => at,
        };
        if at <= now { Err(Refusal::ExpiryOver) } else { Ok(Some(at)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_lies_in_the_future() {
        let at = Timestamp::from_unix_seconds;
        let after = Duration::from_secs;
        let cases = [
            (ExpiryOption::Never, Ok(None)),
            (ExpiryOption::AfterCreation(after(11)), Ok(Some(at(101)))),
            (ExpiryOption::AfterCreation(after(10)), Err(Refusal::ExpiryOver)),
            (ExpiryOption::AfterNow(after(1)), Ok(Some(at(101)))),
            (ExpiryOption::AfterNow(after(0)), Err(Refusal::ExpiryOver)),
            (ExpiryOption::AfterNow(Duration::MAX), Ok(Some(Timestamp::from_ticks(u64::MAX)))),
            (ExpiryOption::At(at(101)), Ok(Some(at(101)))),
            (ExpiryOption::At(at(100)), Err(Refusal::ExpiryOver)),
        ];
        for (option, expected) in cases {
            assert_eq!(option.instant(at(90), at(100)), expected, "{option:?}");
        }
    }
}
