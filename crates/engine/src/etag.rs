//! The version of an object, as clients see it. <https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations>

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// The version of an object. Changes with every write, even within one second, because it is the commit time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Etag(Timestamp);

impl Etag {
    /// The version written at `committed`.
    pub const fn at(committed: Timestamp) -> Self {
        Self(committed)
    }

    /// When this version was written.
    pub const fn committed(self) -> Timestamp {
        self.0
    }

    /// Whether a client's text, with or without quotes, names this version.
    pub fn matches(self, text: &str) -> bool {
        let bare = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
        bare == self.to_string()
    }
}

/// Without quotes: `0x8DE367BCEBC6CC0`.
impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:X}", self.0.ticks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_the_service_and_matches_with_and_without_quotes() {
        let etag = Etag::at(Timestamp::from_unix_seconds(1_785_542_400));
        assert_eq!(etag.to_string(), "0x8DEEF5FD48B0000");
        assert!(etag.matches("\"0x8DEEF5FD48B0000\""));
        assert!(etag.matches("0x8DEEF5FD48B0000"));
        for other in [
            "\"0x8DEEF5FD48B0000",
            "0x8DEEF5FD48B0001",
            "",
            "\"\"",
            "*",
            "W/\"0x8DEEF5FD48B0000\"",
            "0x8deef5fd48b0000",
            "\"",
        ] {
            assert!(!etag.matches(other), "{other}");
        }
    }

    #[test]
    fn two_writes_in_one_second_are_two_versions() {
        let first = Timestamp::from_unix_seconds(1_785_542_400);
        let second = Timestamp::from_ticks(first.ticks() + 1);
        assert_ne!(Etag::at(first), Etag::at(second));
        assert_ne!(Etag::at(first).to_string(), Etag::at(second).to_string());
        assert!(!Etag::at(second).matches(&Etag::at(first).to_string()));
    }
}
