//! Dates in headers and in XML.
//! <https://learn.microsoft.com/rest/api/storageservices/representation-of-date-time-values-in-headers>

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::SignedDuration;
use jiff::civil::{DateTime, Time};
use jiff::fmt::temporal::Pieces;
use lazuli_engine::clock::{TICKS_PER_SECOND, Timestamp};

/// 9999-12-31T23:59:59Z, the last second that either form can write.
const LAST_SECOND: u64 = 253_402_300_799;
/// Seconds between 0001-01-01 and 1970-01-01.
const EPOCH_SECONDS: u64 = 62_135_596_800;
/// Dates are reckoned from here, as civil ones: instants of the library end a day before the year 9999 does, whose last
/// second clients write for what never ends, and so do the times that it adds.
const MILLENNIUM: DateTime = DateTime::constant(2000, 1, 1, 0, 0, 0, 0);
/// Seconds between 0001-01-01 and then.
const MILLENNIUM_SECONDS: i64 = 63_082_281_600;

/// `Sat, 01 Aug 2026 00:00:00 GMT`; the part of a second is cut.
pub fn rfc1123(time: Timestamp) -> String {
    let seconds = time.unix_seconds().min(LAST_SECOND);
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Reads the three forms of RFC 9110: RFC 1123, RFC 850 and asctime. None for anything else and before 1970.
pub fn parse_http(text: &str) -> Option<Timestamp> {
    httpdate::parse_http_date(text.trim()).ok().map(|time: SystemTime| Timestamp::from(time))
}

/// The same instant for calendar rules, to the tick.
pub fn instant(time: Timestamp) -> jiff::Timestamp {
    let nanos = (i128::from(time.ticks()) - i128::from(EPOCH_SECONDS) * i128::from(TICKS_PER_SECOND)) * 100;
    // Every tick of the years 1 to 9999 is in range.
    jiff::Timestamp::from_nanosecond(nanos).unwrap_or(jiff::Timestamp::MAX)
}

/// `2026-08-01T00:00:00.0000000Z`.
pub fn iso8601(time: Timestamp) -> String {
    let (seconds, part) = (time.ticks() / TICKS_PER_SECOND, time.ticks() % TICKS_PER_SECOND);
    let since = i64::try_from(seconds).unwrap_or(i64::MAX) - MILLENNIUM_SECONDS;
    let date = MILLENNIUM.saturating_add(SignedDuration::from_secs(since));
    format!("{}.{part:07}Z", date.strftime("%Y-%m-%dT%H:%M:%S"))
}

/// Reads ISO 8601, by default in UTC; a date alone is its midnight. Digits beyond the seventh are cut.
pub fn parse_iso8601(text: &str) -> Option<Timestamp> {
    let pieces = Pieces::parse(text).ok()?;
    let date = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    let ahead = pieces.to_numeric_offset().map_or(0, |offset| i64::from(offset.seconds()));
    let since = date.duration_since(MILLENNIUM).as_nanos().div_euclid(100);
    let ticks = since + i128::from(MILLENNIUM_SECONDS - ahead) * i128::from(TICKS_PER_SECOND);
    u64::try_from(ticks).ok().map(Timestamp::from_ticks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AUGUST: u64 = 1_785_542_400;

    #[test]
    fn http_dates_are_read_in_three_forms_and_written_in_one() {
        let august = Timestamp::from_unix_seconds(AUGUST);
        let cases = [
            ("Sat, 01 Aug 2026 00:00:00 GMT", Some(august)),
            ("Saturday, 01-Aug-26 00:00:00 GMT", Some(august)),
            ("Sat Aug  1 00:00:00 2026", Some(august)),
            (" Sat, 01 Aug 2026 00:00:00 GMT ", Some(august)),
            ("2026-08-01T00:00:00Z", None),
            ("Sat, 01 Aug 2026", None),
            ("Sat, 01 Aug 2026 00:00:00 GMT, Sat, 01 Aug 2026 00:00:00 GMT", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_http(text), expected, "{text}");
        }
        assert_eq!(rfc1123(august.after(Duration::from_millis(999))), "Sat, 01 Aug 2026 00:00:00 GMT");
        assert_eq!(rfc1123(Timestamp::from_ticks(u64::MAX)), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn iso_dates_have_seven_digits() {
        let august = Timestamp::from_unix_seconds(AUGUST);
        let tick = Timestamp::from_ticks(august.ticks() + 1_234_567);
        let last = Timestamp::from_ticks(Timestamp::from_unix_seconds(LAST_SECOND + 1).ticks() - 1);
        assert_eq!(iso8601(august), "2026-08-01T00:00:00.0000000Z");
        assert_eq!(iso8601(tick), "2026-08-01T00:00:00.1234567Z");
        assert_eq!(iso8601(Timestamp::from_ticks(0)), "0001-01-01T00:00:00.0000000Z");
        assert_eq!(iso8601(last), "9999-12-31T23:59:59.9999999Z");
        let cases = [
            ("2026-08-01T00:00:00.1234567Z", Some(tick)),
            ("2026-08-01T00:00:00.123456789Z", Some(tick)),
            ("2026-08-01T00:00:00Z", Some(august)),
            ("2026-08-01T00:00Z", Some(august)),
            ("2026-08-01T02:00:00+02:00", Some(august)),
            ("2026-08-01T00:00:00", Some(august)),
            ("2026-08-01", Some(august)),
            ("9999-12-31T23:59:59.9999999Z", Some(last)),
            ("9999-12-31T23:59:59Z", Some(last.whole_second())),
            ("9999-12-31", Some(Timestamp::from_unix_seconds(LAST_SECOND - 86_399))),
            ("2026-13-01T00:00:00Z", None),
            ("-000001-01-01T00:00:00Z", None),
            ("yesterday", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_iso8601(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "\\PC{0,40}") {
            let _ = (parse_http(&text), parse_iso8601(&text));
        }

        #[test]
        fn iso_dates_come_back(ticks in 0..3_155_378_975_999_999_999_u64) {
            let time = Timestamp::from_ticks(ticks);
            prop_assert_eq!(parse_iso8601(&iso8601(time)), Some(time));
        }
    }
}
