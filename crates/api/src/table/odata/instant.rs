//! Instants as the Table service writes them: every tick from year 1 to 9999, which the calendar of the other services
//! does not reach.

use lazuli_engine::clock::{TICKS_PER_SECOND, Timestamp};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
const DAYS_PER_400_YEARS: u64 = 146_097;
/// Days between 0000-03-01, where the calendar below begins, and 0001-01-01.
const DAYS_BEFORE_YEAR_ONE: u64 = 306;

/// How the part of a second is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fraction {
    /// Seven digits.
    Full,
    /// Without zeros at its end, and not at all if nothing is left.
    Short,
}

/// Appends `2026-08-01T00:00:00.1234567Z`.
pub fn write(out: &mut Vec<u8>, time: Timestamp, fraction: Fraction) {
    let (seconds, part) = (time.ticks() / TICKS_PER_SECOND, time.ticks() % TICKS_PER_SECOND);
    let (year, month, day) = civil(seconds / SECONDS_PER_DAY);
    let second = seconds % SECONDS_PER_DAY;
    number(out, year, 4);
    for (mark, value) in [(b'-', month), (b'-', day), (b'T', second / 3600)] {
        out.push(mark);
        number(out, value, 2);
    }
    for value in [second / 60 % 60, second % 60] {
        out.push(b':');
        number(out, value, 2);
    }
    if part > 0 || fraction == Fraction::Full {
        out.push(b'.');
        number(out, part, 7);
        while fraction == Fraction::Short && out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.push(b'Z');
}

/// Appends the last `digits` digits.
fn number(out: &mut Vec<u8>, value: u64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = u8::try_from(value / 10_u64.pow(place) % 10).unwrap_or_default();
        out.push(b'0' + digit);
    }
}

/// Year, month and day of a day counted from 0001-01-01, by a calendar whose years begin in March.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_BEFORE_YEAR_ONE;
    let (era, day_of_era) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = year_of_era + era * 400;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

/// Days from 0001-01-01 to a day of that or a later year.
const fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_400_YEARS + day_of_era - DAYS_BEFORE_YEAR_ONE
}

/// Reads a date, or a date and a time with or without seconds, a part of a second and an offset; without an offset it
/// is UTC. Digits beyond the seventh are cut.
pub fn parse(text: &str) -> Option<Timestamp> {
    let mut rest = text.as_bytes();
    let year = digits(&mut rest, 4)?;
    let month = after(&mut rest, b'-')?;
    let day = after(&mut rest, b'-')?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year == 0 || !(1..=longest).contains(&day) {
        return None;
    }
    let mut seconds = days(year, month, day) * SECONDS_PER_DAY;
    let mut part = 0;
    let mut offset = 0;
    if !rest.is_empty() {
        let (hour, minute) = (after(&mut rest, b'T')?, after(&mut rest, b':')?);
        let second = if rest.first() == Some(&b':') { after(&mut rest, b':')? } else { 0 };
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        seconds += hour * 3600 + minute * 60 + second;
        part = fraction(&mut rest)?;
        offset = self::offset(rest)?;
    }
    let utc = i64::try_from(seconds).ok()?.checked_sub(offset)?;
    let utc = u64::try_from(utc).ok().filter(|utc| civil(utc / SECONDS_PER_DAY).0 <= 9999)?;
    Some(Timestamp::from_ticks(utc * TICKS_PER_SECOND + part))
}

fn digits(rest: &mut &[u8], count: usize) -> Option<u64> {
    let (given, after) = rest.split_at_checked(count)?;
    *rest = after;
    given.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
}

/// Two digits behind `mark`.
fn after(rest: &mut &[u8], mark: u8) -> Option<u64> {
    *rest = rest.strip_prefix(&[mark])?;
    digits(rest, 2)
}

/// Ticks.
fn fraction(rest: &mut &[u8]) -> Option<u64> {
    let Some(behind) = rest.strip_prefix(b".") else { return Some(0) };
    let count = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (given, after) = behind.split_at_checked(count).filter(|_| count > 0)?;
    *rest = after;
    let shown = given.iter().chain(std::iter::repeat(&b'0')).take(7);
    Some(shown.fold(0, |ticks, byte| ticks * 10 + u64::from(byte - b'0')))
}

/// Seconds ahead of UTC.
fn offset(rest: &[u8]) -> Option<i64> {
    let (sign, mut rest) = match rest.split_first() {
        None => return Some(0),
        Some((b'Z', [])) => return Some(0),
        Some((b'+', rest)) => (1, rest),
        Some((b'-', rest)) => (-1, rest),
        Some(_) => return None,
    };
    let (hours, minutes) = (digits(&mut rest, 2)?, after(&mut rest, b':')?);
    let seconds = i64::try_from(hours * 3600 + minutes * 60).ok()?;
    (rest.is_empty() && minutes < 60 && seconds <= 14 * 3600).then_some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::date;

    /// 9999-12-31T23:59:59.9999999Z.
    const LAST: u64 = 3_155_378_975_999_999_999;

    fn written(ticks: u64, fraction: Fraction) -> String {
        let mut out = Vec::new();
        write(&mut out, Timestamp::from_ticks(ticks), fraction);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn instants_have_up_to_seven_digits() {
        let august = Timestamp::from_unix_seconds(1_785_542_400).ticks();
        let cases = [
            (0, "0001-01-01T00:00:00.0000000Z", "0001-01-01T00:00:00Z"),
            (august, "2026-08-01T00:00:00.0000000Z", "2026-08-01T00:00:00Z"),
            (august + 1_234_560, "2026-08-01T00:00:00.1234560Z", "2026-08-01T00:00:00.123456Z"),
            (august + 1, "2026-08-01T00:00:00.0000001Z", "2026-08-01T00:00:00.0000001Z"),
            (LAST, "9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
        ];
        for (ticks, full, short) in cases {
            assert_eq!((&*written(ticks, Fraction::Full), &*written(ticks, Fraction::Short)), (full, short));
        }
    }

    #[test]
    fn instants_are_read_with_offsets() {
        let august = Timestamp::from_unix_seconds(1_785_542_400).ticks();
        let cases = [
            ("2026-08-01", Some(august)),
            ("2026-08-01T00:00Z", Some(august)),
            ("2026-08-01T00:00:00", Some(august)),
            ("2026-08-01T02:30:00+02:30", Some(august)),
            ("2026-07-31T22:00:00.0-02:00", Some(august)),
            ("2026-08-01T00:00:00.12345678Z", Some(august + 1_234_567)),
            ("0001-01-01T00:00:00Z", Some(0)),
            ("9999-12-31T23:59:59.9999999Z", Some(LAST)),
            ("2024-02-29T00:00:00Z", Some(Timestamp::from_unix_seconds(1_709_164_800).ticks())),
            ("0001-01-01T00:00:00+00:01", None),
            ("9999-12-31T23:59:59-00:01", None),
            ("2023-02-29T00:00:00Z", None),
            ("0000-01-01T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-00-01T00:00:00Z", None),
            ("2026-04-31T00:00:00Z", None),
            ("2026-08-01T24:00:00Z", None),
            ("2026-08-01T00:60:00Z", None),
            ("2026-08-01T00:00:60Z", None),
            ("2026-08-01T00:00:00.Z", None),
            ("2026-08-01T00:00:00z", None),
            ("2026-08-01T00:00:00+15:00", None),
            ("2026-08-01 00:00:00Z", None),
            ("2026-08-01T00:00:00Zx", None),
            ("2026-8-1", None),
            ("+2026-08-01", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).map(Timestamp::ticks), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn instants_come_back_and_agree_with_the_calendar(ticks in 0..=LAST) {
            let time = Timestamp::from_ticks(ticks);
            for fraction in [Fraction::Full, Fraction::Short] {
                prop_assert_eq!(parse(&written(ticks, fraction)), Some(time));
            }
            if ticks < LAST - 3 * SECONDS_PER_DAY * TICKS_PER_SECOND {
                prop_assert_eq!(written(ticks, Fraction::Full), date::iso8601(time));
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[-0-9T:.Z+é]{0,40}") {
            let _ = parse(&text);
        }
    }
}
