//! The conditional headers: which combinations a request may carry.
//! <https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations>

use lazuli_engine::clock::Timestamp;
use lazuli_engine::condition::{Conditions, EtagSet};
use lazuli_engine::tags::TagCondition;

use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::version::Version;
use crate::wire::date;
use crate::wire::tags::expression;

const IF_MATCH: &str = "if-match";
const IF_NONE_MATCH: &str = "if-none-match";
const IF_MODIFIED_SINCE: &str = "if-modified-since";
const IF_UNMODIFIED_SINCE: &str = "if-unmodified-since";
const IF_TAGS: &str = "x-ms-if-tags";

/// The conditions of a blob read. From version 2013-08-15 on all four may be combined and ETags may be lists; before,
/// the rules of writes hold. `If-None-Match: *`, which no existing blob can meet, says nothing before 2016-05-31.
///
/// Refuses `InvalidHeaderValue`, `MultipleConditionHeadersNotSupported`.
pub fn read(fields: &Fields, version: Version) -> Result<Conditions, Problem> {
    let mut conditions = parse(fields)?;
    if version < Version::V2016_05_31 && conditions.if_none_match == Some(EtagSet::Any) {
        conditions.if_none_match = None;
    }
    if version < Version::V2013_08_15 {
        check_combination(&conditions)?;
    }
    Ok(conditions)
}

/// The conditions of a blob write: one header; or If-None-Match with If-Modified-Since, or If-Match with
/// If-Unmodified-Since, of which the ETag decides.
///
/// Refuses `InvalidHeaderValue`, `MultipleConditionHeadersNotSupported`.
pub fn write(fields: &Fields) -> Result<Conditions, Problem> {
    let conditions = parse(fields)?;
    check_combination(&conditions)?;
    Ok(conditions)
}

/// The conditions that a copy puts on its source, combined as those of a write.
///
/// Refuses `InvalidHeaderValue`, `MultipleConditionHeadersNotSupported`.
pub fn source(fields: &Fields) -> Result<Conditions, Problem> {
    let conditions = Conditions {
        if_match: etags(fields, "x-ms-source-if-match")?,
        if_none_match: etags(fields, "x-ms-source-if-none-match")?,
        if_modified_since: instant(fields, "x-ms-source-if-modified-since")?,
        if_unmodified_since: instant(fields, "x-ms-source-if-unmodified-since")?,
        if_tags: tags(fields, "x-ms-source-if-tags")?,
        ..Conditions::default()
    };
    check_combination(&conditions)?;
    Ok(conditions)
}

/// The conditions of a container write that judges by both dates: Set Container ACL, Delete and Lease Container.
///
/// Refuses `InvalidHeaderValue`, `ConditionHeadersNotSupported` for ETags, `MultipleConditionHeadersNotSupported`.
pub fn dates(fields: &Fields) -> Result<Conditions, Problem> {
    let conditions = parse(fields)?;
    if conditions.if_match.is_some() || conditions.if_none_match.is_some() || conditions.if_tags.is_some() {
        return Err(Problem::new(Code::ConditionHeadersNotSupported));
    }
    check_combination(&conditions)?;
    Ok(conditions)
}

/// The conditions of Set Container Metadata, which knows If-Modified-Since alone.
///
/// Refuses `InvalidHeaderValue` and `ConditionHeadersNotSupported`.
pub fn modified_since(fields: &Fields) -> Result<Conditions, Problem> {
    let conditions = dates(fields)?;
    if conditions.if_unmodified_since.is_some() {
        return Err(Problem::new(Code::ConditionHeadersNotSupported));
    }
    Ok(conditions)
}

/// The condition of Set Immutability Policy, which knows If-Unmodified-Since alone.
///
/// Refuses `InvalidHeaderValue` and `ConditionHeadersNotSupported`.
pub fn unmodified_since(fields: &Fields) -> Result<Conditions, Problem> {
    let conditions = dates(fields)?;
    if conditions.if_modified_since.is_some() {
        return Err(Problem::new(Code::ConditionHeadersNotSupported));
    }
    Ok(conditions)
}

/// The conditions of a write with those of Delete Blob on when the tier was set.
///
/// Refuses `InvalidHeaderValue`.
pub fn with_tier(conditions: Conditions, fields: &Fields) -> Result<Conditions, Problem> {
    Ok(Conditions {
        tier_modified_since: instant(fields, "x-ms-access-tier-if-modified-since")?,
        tier_unmodified_since: instant(fields, "x-ms-access-tier-if-unmodified-since")?,
        ..conditions
    })
}

/// Of an operation that knows no conditions.
///
/// Refuses `ConditionHeadersNotSupported` if there is one.
pub fn none(fields: &Fields) -> Result<Conditions, Problem> {
    if parse(fields)? == Conditions::default() {
        return Ok(Conditions::default());
    }
    Err(Problem::new(Code::ConditionHeadersNotSupported))
}

/// The conditions of an operation that judges by tags alone.
///
/// Refuses `ConditionHeadersNotSupported` if there is another one.
pub fn tags_only(fields: &Fields) -> Result<Conditions, Problem> {
    let conditions = parse(fields)?;
    if conditions == (Conditions { if_tags: conditions.if_tags.clone(), ..Conditions::default() }) {
        return Ok(conditions);
    }
    Err(Problem::new(Code::ConditionHeadersNotSupported))
}

/// The conditions of Get and Set Blob Tags, whose HTTP conditions have names of their own.
///
/// Refuses `InvalidHeaderValue`, `MultipleConditionHeadersNotSupported`.
pub fn of_tags(fields: &Fields) -> Result<Conditions, Problem> {
    let conditions = Conditions {
        if_match: etags(fields, "x-ms-blob-if-match")?,
        if_none_match: etags(fields, "x-ms-blob-if-none-match")?,
        if_modified_since: instant(fields, "x-ms-blob-if-modified-since")?,
        if_unmodified_since: instant(fields, "x-ms-blob-if-unmodified-since")?,
        ..tags_only(fields)?
    };
    check_combination(&conditions)?;
    Ok(conditions)
}

fn parse(fields: &Fields) -> Result<Conditions, Problem> {
    Ok(Conditions {
        if_match: etags(fields, IF_MATCH)?,
        if_none_match: etags(fields, IF_NONE_MATCH)?,
        if_modified_since: instant(fields, IF_MODIFIED_SINCE)?,
        if_unmodified_since: instant(fields, IF_UNMODIFIED_SINCE)?,
        if_tags: tags(fields, IF_TAGS)?,
        ..Conditions::default()
    })
}

fn tags(fields: &Fields, name: &'static str) -> Result<Option<TagCondition>, Problem> {
    let Some(text) = fields.header_opt(name)? else { return Ok(None) };
    expression::condition(text).map(Some).map_err(|reason| Problem::header(name, text).detail("Reason", reason))
}

fn check_combination(conditions: &Conditions) -> Result<(), Problem> {
    let several = |set: &Option<EtagSet>| matches!(set, Some(EtagSet::OneOf(etags)) if etags.len() > 1);
    let given = (
        conditions.if_match.is_some(),
        conditions.if_none_match.is_some(),
        conditions.if_modified_since.is_some(),
        conditions.if_unmodified_since.is_some(),
    );
    let allowed = matches!(
        given,
        (false, false, false | true, false)
            | (false, false, false, true)
            | (true, false, false, false | true)
            | (false, true, false | true, false)
    );
    if allowed && !several(&conditions.if_match) && !several(&conditions.if_none_match) {
        return Ok(());
    }
    Err(Problem::new(Code::MultipleConditionHeadersNotSupported))
}

fn instant(fields: &Fields, name: &'static str) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = fields.header_opt(name)? else { return Ok(None) };
    let alone = fields.headers().get_all(name).iter().count() == 1;
    match date::parse_http(text) {
        Some(time) if alone => Ok(Some(time)),
        _ => Err(Problem::header(name, text)),
    }
}

fn etags(fields: &Fields, name: &'static str) -> Result<Option<EtagSet>, Problem> {
    let mut etags = Vec::new();
    for value in fields.headers().get_all(name) {
        let text = value.to_str().map_err(|_| Problem::header(name, &String::from_utf8_lossy(value.as_bytes())))?;
        etags.extend(split(text));
    }
    if etags.iter().any(|etag| etag == "*") {
        // A star among others says the same as the star alone.
        return Ok(Some(EtagSet::Any));
    }
    Ok(if etags.is_empty() { None } else { Some(EtagSet::OneOf(etags)) })
}

/// Splits at commas outside quotes.
fn split(text: &str) -> Vec<String> {
    let mut quoted = false;
    text.split(|character| {
        quoted ^= character == '"';
        character == ',' && !quoted
    })
    .map(str::trim)
    .filter(|etag| !etag.is_empty())
    .map(str::to_owned)
    .collect()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;
    use crate::head::HeaderCase;

    const AUGUST: &str = "Sat, 01 Aug 2026 00:00:00 GMT";

    fn fields(headers: &[(&'static str, &str)]) -> Fields {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        Fields::parse(map, None, HeaderCase::default()).unwrap()
    }

    fn one_of(etags: &[&str]) -> Option<EtagSet> {
        Some(EtagSet::OneOf(etags.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn etags_are_kept_as_written_and_lists_are_split_outside_quotes() {
        let cases = [
            ("\"0x8D\"", one_of(&["\"0x8D\""])),
            ("0x8D", one_of(&["0x8D"])),
            ("\"a\", \"b,c\" ,d", one_of(&["\"a\"", "\"b,c\"", "d"])),
            ("*", Some(EtagSet::Any)),
            ("\"a\", *", Some(EtagSet::Any)),
            ("", None),
            (" , ", None),
        ];
        for (text, expected) in cases {
            let conditions = read(&fields(&[(IF_MATCH, text)]), Version::NEWEST).unwrap();
            assert_eq!(conditions.if_match, expected, "{text}");
        }
        let repeated = read(&fields(&[(IF_NONE_MATCH, "a"), (IF_NONE_MATCH, "b")]), Version::NEWEST).unwrap();
        assert_eq!(repeated.if_none_match, one_of(&["a", "b"]));
    }

    #[test]
    fn a_date_is_one_date() {
        assert!(write(&fields(&[(IF_MODIFIED_SINCE, AUGUST)])).unwrap().if_modified_since.is_some());
        let cases: [&[_]; 3] = [
            &[(IF_MODIFIED_SINCE, "yesterday")],
            &[(IF_MODIFIED_SINCE, AUGUST), (IF_MODIFIED_SINCE, AUGUST)],
            &[(IF_UNMODIFIED_SINCE, "Sat, 01 Aug 2026 00:00:00 GMT, Sat, 01 Aug 2026 00:00:00 GMT")],
        ];
        for headers in cases {
            let fields = fields(headers);
            for answer in [read(&fields, Version::NEWEST), write(&fields), dates(&fields), none(&fields)] {
                assert_eq!(answer.unwrap_err().code, Code::InvalidHeaderValue, "{headers:?}");
            }
        }
    }

    #[test]
    fn a_read_combines_all_and_a_write_only_what_cannot_contradict() {
        let header = |bit: usize| match bit {
            0 => (IF_MATCH, "a"),
            1 => (IF_NONE_MATCH, "b"),
            2 => (IF_MODIFIED_SINCE, AUGUST),
            _ => (IF_UNMODIFIED_SINCE, AUGUST),
        };
        // Bits of the cell: If-Match 1, If-None-Match 2, If-Modified-Since 4, If-Unmodified-Since 8.
        let writable = [0, 1, 2, 4, 8, 1 + 8, 2 + 4];
        for cell in 0..16 {
            let headers: Vec<_> = (0..4).filter(|bit| cell & (1 << bit) != 0).map(header).collect();
            let fields = fields(&headers);
            assert!(read(&fields, Version::V2013_08_15).is_ok(), "{headers:?}");
            let expected =
                if writable.contains(&cell) { None } else { Some(Code::MultipleConditionHeadersNotSupported) };
            assert_eq!(write(&fields).err().map(|problem| problem.code), expected, "{headers:?}");
            assert_eq!(read(&fields, Version::V2011_08_18).err().map(|problem| problem.code), expected, "{headers:?}");
            assert_eq!(none(&fields).is_ok(), cell == 0, "{headers:?}");
            assert_eq!(dates(&fields).is_ok(), [0, 4, 8].contains(&cell), "{headers:?}");
            assert_eq!(modified_since(&fields).is_ok(), [0, 4].contains(&cell), "{headers:?}");
        }
        let list = fields(&[(IF_MATCH, "a, b")]);
        assert_eq!(write(&list).unwrap_err().code, Code::MultipleConditionHeadersNotSupported);
    }

    #[test]
    fn a_read_that_demands_absence_says_nothing_in_old_versions() {
        let fields = fields(&[(IF_NONE_MATCH, "*")]);
        assert_eq!(read(&fields, Version::V2016_05_31).unwrap().if_none_match, Some(EtagSet::Any));
        assert_eq!(read(&fields, Version::V2013_08_15).unwrap().if_none_match, None);
    }

    #[test]
    fn containers_judge_by_dates_and_never_by_tags() {
        let etag = fields(&[(IF_MATCH, "a")]);
        assert_eq!(dates(&etag).unwrap_err().code, Code::ConditionHeadersNotSupported);
        let tags = fields(&[(IF_TAGS, "\"a\" = 'b'")]);
        for answer in [dates(&tags), none(&tags)] {
            assert_eq!(answer.unwrap_err().code, Code::ConditionHeadersNotSupported);
        }
        for answer in [read(&tags, Version::NEWEST), write(&tags), tags_only(&tags), of_tags(&tags)] {
            assert!(answer.unwrap().if_tags.is_some());
        }
        assert_eq!(tags_only(&etag).unwrap_err().code, Code::ConditionHeadersNotSupported);
        assert_eq!(of_tags(&etag).unwrap_err().code, Code::ConditionHeadersNotSupported);
        assert!(of_tags(&fields(&[("x-ms-blob-if-match", "a")])).unwrap().if_match.is_some());
        let problem = read(&fields(&[(IF_TAGS, "a =")]), Version::NEWEST).unwrap_err();
        assert_eq!(problem.code, Code::InvalidHeaderValue);
    }

    proptest! {
        #[test]
        fn no_header_makes_the_reader_panic(a in "[ -~]{0,30}", b in "[ -~]{0,30}", c in "[ -~]{0,40}") {
            let fields = fields(&[(IF_MATCH, &a), (IF_NONE_MATCH, &b), (IF_MODIFIED_SINCE, &c)]);
            let _ = (read(&fields, Version::NEWEST), write(&fields), dates(&fields));
        }
    }
}
