//! Moments: an instant and the offset from UTC at which it was written. <https://www.w3.org/TR/NOTE-datetime>

use std::fmt::{self, Write as _};

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{Span, Timestamp};

use super::RowError;
use super::syntax::DatePart;

const SECONDS_PER_DAY: i128 = 86_400;
const NANOS_PER_SECOND: i128 = 1_000_000_000;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const OUT_OF_RANGE: RowError = RowError::InvalidArgument("The timestamp is out of range.");
const NO_PART: RowError = RowError::InvalidArgument("The part of a date does not fit here.");

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    instant: Timestamp,
    offset: Offset,
}

impl Moment {
    /// The moment in UTC.
    pub const fn utc(instant: Timestamp) -> Self {
        Self { instant, offset: Offset::UTC }
    }

    /// The instant alone.
    pub const fn instant(self) -> Timestamp {
        self.instant
    }

    /// Reads ISO 8601: a year, then as much more as there is. Without an offset it is UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        let year = digits(&mut rest, 4)?;
        let month = if skip(&mut rest, "-") { digits(&mut rest, 2)? } else { 1 };
        let day = if skip(&mut rest, "-") { digits(&mut rest, 2)? } else { 1 };
        let timed = skip(&mut rest, "T") || skip(&mut rest, "t") || skip(&mut rest, " ");
        let (mut hour, mut minute, mut second, mut nanos) = (0, 0, 0, 0);
        if timed && !rest.is_empty() {
            hour = digits(&mut rest, 2)?;
            if !skip(&mut rest, ":") {
                return None;
            }
            minute = digits(&mut rest, 2)?;
            if skip(&mut rest, ":") {
                second = digits(&mut rest, 2)?;
                if skip(&mut rest, ".") {
                    nanos = fraction(&mut rest)?;
                }
            }
        }
        let offset = offset(rest)?;
        let small = |number: i32| i8::try_from(number).ok();
        let date = jiff::civil::Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()?;
        let local = DateTime::from_parts(
            date,
            jiff::civil::Time::new(small(hour)?, small(minute)?, small(second)?, nanos).ok()?,
        );
        Some(Self { instant: offset.to_timestamp(local).ok()?, offset })
    }

    fn local(self) -> DateTime {
        self.offset.to_datetime(self.instant)
    }

    /// The moment so many days later, a part of a day counted.
    pub(super) fn plus_days(self, days: f64) -> Result<Self, RowError> {
        // Beyond some ten thousand years either way there is no moment.
        if days.is_nan() || days.abs() > 1e7 {
            return Err(OUT_OF_RANGE);
        }
        #[expect(clippy::cast_possible_truncation, reason = "in range, see above")]
        let nanos = (days * 86_400e9) as i128;
        self.plus_nanos(nanos)
    }

    fn plus_nanos(self, nanos: i128) -> Result<Self, RowError> {
        let instant = Timestamp::from_nanosecond(self.instant.as_nanosecond() + nanos).map_err(|_| OUT_OF_RANGE)?;
        Ok(Self { instant, offset: self.offset })
    }

    /// `DATE_ADD`
    pub(super) fn plus(self, part: DatePart, quantity: i64) -> Result<Self, RowError> {
        let span = match part {
            DatePart::Year => Span::new().try_years(quantity),
            DatePart::Month => Span::new().try_months(quantity),
            _ => {
                let seconds = seconds(part).ok_or(NO_PART)?;
                return self.plus_nanos(i128::from(quantity) * seconds * NANOS_PER_SECOND);
            }
        };
        let local = span.and_then(|span| self.local().checked_add(span)).map_err(|_| OUT_OF_RANGE)?;
        let instant = self.offset.to_timestamp(local).map_err(|_| OUT_OF_RANGE)?;
        Ok(Self { instant, offset: self.offset })
    }

    /// `DATE_DIFF`: whole units from this moment to `later`, negative if it lies before.
    pub(super) fn until(self, part: DatePart, later: Self) -> Result<i64, RowError> {
        if let Some(seconds) = seconds(part) {
            let nanos = later.instant.as_nanosecond() - self.instant.as_nanosecond();
            return i64::try_from(nanos / (seconds * NANOS_PER_SECOND)).map_err(|_| OUT_OF_RANGE);
        }
        let (from, to) = (Offset::UTC.to_datetime(self.instant), Offset::UTC.to_datetime(later.instant));
        let within = |moment: DateTime| (moment.day(), moment.time());
        let years = i64::from(to.year()) - i64::from(from.year());
        let mut months = years * 12 + i64::from(to.month()) - i64::from(from.month());
        if months > 0 && within(to) < within(from) {
            months -= 1;
        } else if months < 0 && within(to) > within(from) {
            months += 1;
        }
        match part {
            DatePart::Year => Ok(months / 12),
            DatePart::Month => Ok(months),
            _ => Err(NO_PART),
        }
    }

    /// `EXTRACT`
    pub(super) fn part(self, part: DatePart) -> i64 {
        let local = self.local();
        match part {
            DatePart::Year => local.year().into(),
            DatePart::Month => local.month().into(),
            DatePart::Day => local.day().into(),
            DatePart::Hour => local.hour().into(),
            DatePart::Minute => local.minute().into(),
            DatePart::Second => local.second().into(),
            DatePart::TimezoneHour => i64::from(self.offset.seconds() / 3600),
            DatePart::TimezoneMinute => i64::from(self.offset.seconds() / 60 % 60),
        }
    }

    /// `TO_STRING`: letters stand for parts of the moment, what is in single quotes and all else for itself.
    pub(super) fn format(self, format: &str) -> Result<String, RowError> {
        let mut text = String::new();
        let mut rest = format;
        while let Some(first) = rest.chars().next() {
            if first == '\'' {
                let inner = rest.get(1..).unwrap_or_default();
                let end =
                    inner.find('\'').ok_or(RowError::InvalidArgument("A quotation in the format does not end."))?;
                text.push_str(if end == 0 { "'" } else { inner.get(..end).unwrap_or_default() });
                rest = inner.get(end + 1..).unwrap_or_default();
                continue;
            }
            let length = rest.find(|c| c != first).unwrap_or(rest.len());
            if first.is_ascii_alphabetic() && !matches!(first, 'T' | 'Z') {
                self.field(&mut text, first, length)?;
            } else {
                text.push_str(rest.get(..length).unwrap_or_default());
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(text)
    }

    fn field(self, text: &mut String, letter: char, length: usize) -> Result<(), RowError> {
        let local = self.local();
        let month = usize::try_from(local.month() - 1).ok().and_then(|month| MONTHS.get(month)).unwrap_or(&"");
        let half = match local.hour() % 12 {
            0 => 12,
            hour => hour,
        };
        let written = match (letter, length) {
            ('y', 2) => write!(text, "{:02}", local.year().rem_euclid(100)),
            ('y', 1 | 4) => write!(text, "{:04}", local.year()),
            ('M', 3) => write!(text, "{}", month.get(..3).unwrap_or_default().to_uppercase()),
            ('M', 4) => write!(text, "{month}"),
            ('M', 1 | 2) => write!(text, "{:0length$}", local.month()),
            ('d', 1 | 2) => write!(text, "{:0length$}", local.day()),
            ('a', 1) => write!(text, "{}", if local.hour() < 12 { "AM" } else { "PM" }),
            ('h', 1 | 2) => write!(text, "{half:0length$}"),
            ('H', 1 | 2) => write!(text, "{:0length$}", local.hour()),
            ('m', 1 | 2) => write!(text, "{:0length$}", local.minute()),
            ('s', 1 | 2) => write!(text, "{:0length$}", local.second()),
            ('S', 1..=3) => {
                let fraction = format!("{:09}", local.subsec_nanosecond());
                write!(text, "{}", fraction.get(..length).unwrap_or_default())
            }
            ('X', 1..=5) if self.offset.seconds() == 0 => write!(text, "Z"),
            ('X' | 'x', 1) => write!(text, "{}", self.offset_text("", false)),
            ('X' | 'x', 2 | 4) => write!(text, "{}", self.offset_text("", true)),
            ('X' | 'x', 3 | 5) => write!(text, "{}", self.offset_text(":", true)),
            _ => return Err(RowError::InvalidArgument("The format has a letter that means nothing.")),
        };
        written.map_err(|_| OUT_OF_RANGE)
    }

    fn offset_text(self, between: &str, minutes: bool) -> String {
        let seconds = self.offset.seconds();
        let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
        let hours = format!("{sign}{:02}", seconds / 3600);
        if minutes { format!("{hours}{between}{:02}", seconds / 60 % 60) } else { hours }
    }
}

impl fmt::Display for Moment {
    /// ISO 8601, with no more digits of a second than there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.offset == Offset::UTC {
            return write!(f, "{}", self.instant);
        }
        write!(f, "{}", self.instant.display_with_offset(self.offset))
    }
}

/// The length of a part that always has the same.
const fn seconds(part: DatePart) -> Option<i128> {
    match part {
        DatePart::Day => Some(SECONDS_PER_DAY),
        DatePart::Hour => Some(3600),
        DatePart::Minute => Some(60),
        DatePart::Second => Some(1),
        _ => None,
    }
}

fn skip(rest: &mut &str, what: &str) -> bool {
    match rest.strip_prefix(what) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

/// Exactly `count` digits.
fn digits(rest: &mut &str, count: usize) -> Option<i32> {
    let (digits, behind) = rest.split_at_checked(count)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    *rest = behind;
    digits.parse().ok()
}

/// Digits behind the point, as nanoseconds; those beyond the ninth are cut.
fn fraction(rest: &mut &str) -> Option<i32> {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    let nine: String = digits.chars().chain(std::iter::repeat('0')).take(9).collect();
    if digits.is_empty() { None } else { nine.parse().ok() }
}

/// `Z`, `±hh`, `±hhmm`, `±hh:mm` or nothing.
fn offset(text: &str) -> Option<Offset> {
    if matches!(text, "" | "Z" | "z") {
        return Some(Offset::UTC);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut rest = text.get(1..)?;
    let hours = digits(&mut rest, 2)?;
    skip(&mut rest, ":");
    let minutes = if rest.is_empty() { 0 } else { digits(&mut rest, 2)? };
    if !rest.is_empty() || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}
