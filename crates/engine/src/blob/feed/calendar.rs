//! Instants as the files of a feed write them, all in UTC.

use crate::clock::{TICKS_PER_SECOND, Timestamp};

/// Seconds of the time that a segment covers.
pub(super) const SEGMENT_SECONDS: u64 = 60 * 60;

/// When the hour began that `time` lies in.
pub(super) fn hour(time: Timestamp) -> Timestamp {
    Timestamp::from_ticks(time.ticks() - time.ticks() % (SEGMENT_SECONDS * TICKS_PER_SECOND))
}

/// `2026/08/01/0000`.
pub(super) fn path(begin: Timestamp) -> String {
    civil(begin).strftime("%Y/%m/%d/%H%M").to_string()
}

/// `2026-08-01T00:00:00.000Z`.
pub(super) fn to_the_second(time: Timestamp) -> String {
    format!("{}.000Z", civil(time).strftime("%Y-%m-%dT%H:%M:%S"))
}

/// `2026-08-01T00:00:00.0000000Z`.
pub(super) fn to_the_tick(time: Timestamp) -> String {
    format!("{}.{:07}Z", civil(time).strftime("%Y-%m-%dT%H:%M:%S"), time.ticks() % TICKS_PER_SECOND)
}

fn civil(time: Timestamp) -> jiff::Timestamp {
    let seconds = i64::try_from(time.unix_seconds()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_instant_has_its_hour_and_is_written_in_three_forms() {
        let time = Timestamp::from_unix_seconds(1_785_542_400 + 13 * 3600 + 59).after(Duration::from_nanos(1_234_500));
        assert_eq!(hour(time), Timestamp::from_unix_seconds(1_785_542_400 + 13 * 3600));
        assert_eq!(path(hour(time)), "2026/08/01/1300");
        assert_eq!(to_the_second(time), "2026-08-01T13:00:59.000Z");
        assert_eq!(to_the_tick(time), "2026-08-01T13:00:59.0012345Z");
        assert_eq!(hour(hour(time)), hour(time));
    }
}
