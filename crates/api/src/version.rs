//! Protocol versions: dates, compared as dates.
//! <https://learn.microsoft.com/rest/api/storageservices/versioning-for-the-azure-storage-services>

use std::fmt;

use crate::error::Problem;

/// The header that names the version.
pub const VERSION_HEADER: &str = "x-ms-version";

/// The version of the protocol that a request speaks. Behaviour is switched by comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    year: u16,
    month: u8,
    day: u8,
}

impl Version {
    /// The first that quotes ETags.
    pub const V2011_08_18: Self = Self::of(2011, 8, 18);
    /// The first whose shared access signatures name it.
    pub const V2012_02_12: Self = Self::of(2012, 2, 12);
    /// The first with CORS and JSON tables.
    pub const V2013_08_15: Self = Self::of(2013, 8, 15);
    /// The first that signs a Content-Length of zero as nothing.
    pub const V2015_02_21: Self = Self::of(2015, 2, 21);
    /// The first with shared access signatures for accounts, addresses and protocols.
    pub const V2015_04_05: Self = Self::of(2015, 4, 5);
    /// The first with 256 MiB blobs and 100 MiB blocks; signs empty headers; shows public access in listings.
    pub const V2016_05_31: Self = Self::of(2016, 5, 31);
    /// The first with blob tiers and the deletion type.
    pub const V2017_07_29: Self = Self::of(2017, 7, 29);
    /// The first with the creation time.
    pub const V2017_11_09: Self = Self::of(2017, 11, 9);
    /// The first with static websites.
    pub const V2018_03_28: Self = Self::of(2018, 3, 28);
    /// The first with user delegation keys.
    pub const V2018_11_09: Self = Self::of(2018, 11, 9);
    /// The first with CRC-64 of bodies.
    pub const V2019_02_02: Self = Self::of(2019, 2, 2);
    /// The first with 4000 MiB blocks and a challenge for requests without credentials.
    pub const V2019_12_12: Self = Self::of(2019, 12, 12);
    /// The first with shared access signatures for directories.
    pub const V2020_02_10: Self = Self::of(2020, 2, 10);
    /// The first that lists page ranges in parts.
    pub const V2020_10_02: Self = Self::of(2020, 10, 2);
    /// The first with encryption scopes in shared access signatures.
    pub const V2020_12_06: Self = Self::of(2020, 12, 6);
    /// The first that escapes names which XML cannot carry.
    pub const V2021_02_12: Self = Self::of(2021, 2, 12);
    /// The first with the cold tier.
    pub const V2021_12_02: Self = Self::of(2021, 12, 2);
    /// The first with user delegation keys for queues and tables, and for one user alone.
    pub const V2025_07_05: Self = Self::of(2025, 7, 5);
    /// The first with headers and parameters in user delegation signatures.
    pub const V2026_04_06: Self = Self::of(2026, 4, 6);
    /// The first with the smart tier.
    pub const V2026_06_06: Self = Self::of(2026, 6, 6);

    /// The first with blocks of 100 MiB in append blobs.
    pub const V2022_11_02: Self = Self::of(2022, 11, 2);

    /// What an anonymous request without a version speaks.
    pub const ANONYMOUS_DEFAULT: Self = Self::of(2009, 9, 19);
    /// The newest known one; what a signed request without a version speaks.
    pub const NEWEST: Self = Self::of(2027, 3, 7);

    const fn of(year: u16, month: u8, day: u8) -> Self {
        Self { year, month, day }
    }

    /// Reads `YYYY-MM-DD`. A date later than every known version is taken as the newest one and kept as given, unless
    /// `strict`: clients move to new versions every few months.
    ///
    /// Refuses `InvalidHeaderValue`.
    pub fn parse(text: &str, strict: bool) -> Result<Self, Problem> {
        let version = date(text).ok_or_else(|| Problem::header(VERSION_HEADER, text))?;
        if KNOWN.contains(&version) || (!strict && version > Self::NEWEST) {
            return Ok(version);
        }
        Err(Problem::header(VERSION_HEADER, text))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn date(text: &str) -> Option<Version> {
    let number = |part: &str, digits: usize| {
        (part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse::<u16>().ok())?
    };
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    let possible = parts.next().is_none() && (1..=12).contains(&month) && (1..=31).contains(&day);
    possible.then_some(Version::of(year, month.try_into().ok()?, day.try_into().ok()?))
}

macro_rules! known {
    ($($year:literal $month:literal $day:literal;)*) => { &[$(Version::of($year, $month, $day),)*] };
}

/// Every published version, oldest first.
const KNOWN: &[Version] = known! {
    2009 4 14; 2009 7 17; 2009 9 19; 2011 8 18; 2012 2 12; 2013 8 15; 2014 2 14; 2015 2 21; 2015 4 5;
    2015 7 8; 2015 12 11; 2016 5 31; 2017 4 17; 2017 7 29; 2017 11 9; 2018 3 28; 2018 11 9; 2019 2 2;
    2019 7 7; 2019 10 10; 2019 12 12; 2020 2 10; 2020 4 8; 2020 6 12; 2020 8 4; 2020 10 2; 2020 12 6;
    2021 2 12; 2021 4 10; 2021 6 8; 2021 8 6; 2021 10 4; 2021 12 2; 2022 11 2; 2023 1 3; 2023 5 3;
    2023 8 3; 2023 11 3; 2024 2 4; 2024 5 4; 2024 8 4; 2024 11 4; 2025 1 5; 2025 5 5; 2025 7 5;
    2025 11 5; 2026 2 6; 2026 4 6; 2026 6 6; 2026 10 6; 2026 12 6; 2027 3 7;
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;

    #[test]
    fn versions_are_known_or_newer_than_all_known() {
        let cases = [
            ("2009-04-14", true, true),
            ("2026-10-06", true, true),
            ("2027-03-07", true, true),
            ("2027-03-08", true, false),
            ("2099-12-31", true, false),
            ("2020-01-01", false, false),
            ("2008-01-01", false, false),
            ("2099-13-01", false, false),
            ("2099-01-32", false, false),
            ("2099-1-1", false, false),
            ("2026-10-06 ", false, false),
            ("2026-10-06-01", false, false),
            ("+026-10-06", false, false),
            ("latest", false, false),
            ("", false, false),
        ];
        for (text, lenient, strict) in cases {
            assert_eq!(Version::parse(text, false).is_ok(), lenient, "{text}");
            assert_eq!(Version::parse(text, true).is_ok(), strict, "{text}");
        }
    }

    #[test]
    fn a_version_is_echoed_as_given_and_a_refusal_names_the_header() {
        assert_eq!(Version::parse("2030-01-02", false).map(|version| version.to_string()), Ok("2030-01-02".into()));
        let problem = Version::parse("x", false).unwrap_err();
        assert_eq!(problem.code, Code::InvalidHeaderValue);
        assert!(problem.details.contains(&("HeaderName", VERSION_HEADER.into())));
    }

    #[test]
    fn known_versions_ascend_to_the_newest() {
        assert!(KNOWN.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(KNOWN.last(), Some(&Version::NEWEST));
    }
}
