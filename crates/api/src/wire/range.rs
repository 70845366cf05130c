//! The Range and x-ms-range headers.
//! <https://learn.microsoft.com/rest/api/storageservices/specifying-the-range-header-for-blob-service-operations>

use lazuli_engine::range::RangeRequest;

use crate::error::Problem;

/// The range that a request asks for; `x-ms-range` wins over `Range`.
///
/// Suffix ranges and several ranges are legal HTTP that the service does not speak: they ask for the whole. So does
/// a `Range` that means nothing; an `x-ms-range` that means nothing is refused with `InvalidHeaderValue`.
pub fn parse(range: Option<&str>, ms_range: Option<&str>) -> Result<Option<RangeRequest>, Problem> {
    match (ms_range, range) {
        (Some(text), _) => match understand(text) {
            Meaning::Range(range) => Ok(Some(range)),
            Meaning::Whole => Ok(None),
            Meaning::Nothing => Err(Problem::header("x-ms-range", text)),
        },
        (None, Some(text)) => match understand(text) {
            Meaning::Range(range) => Ok(Some(range)),
            Meaning::Whole | Meaning::Nothing => Ok(None),
        },
        (None, None) => Ok(None),
    }
}

enum Meaning {
    Range(RangeRequest),
    Whole,
    Nothing,
}

fn understand(text: &str) -> Meaning {
    let Some((unit, ranges)) = text.trim().split_once('=') else { return Meaning::Nothing };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Meaning::Nothing;
    }
    let mut specs = ranges.split(',').map(spec);
    match (specs.next(), specs.next()) {
        (Some(Some(Spec::FromTo(range))), None) => Meaning::Range(range),
        (Some(Some(Spec::Suffix)), None) => Meaning::Whole,
        (Some(Some(_)), Some(Some(_))) if specs.all(|spec| spec.is_some()) => Meaning::Whole,
        _ => Meaning::Nothing,
    }
}

enum Spec {
    FromTo(RangeRequest),
    Suffix,
}

fn spec(text: &str) -> Option<Spec> {
    let (first, last) = text.trim().split_once('-')?;
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Some(Spec::FromTo(RangeRequest { first, last: Some(last) })),
        (Some(first), None) if last.is_empty() => Some(Spec::FromTo(RangeRequest { first, last: None })),
        (None, Some(_)) if first.is_empty() => Some(Spec::Suffix),
        _ => None,
    }
}

/// Digits alone; a number too large to count bytes is as good as the largest.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::code::Code;

    const fn from_to(first: u64, last: u64) -> Option<RangeRequest> {
        Some(RangeRequest { first, last: Some(last) })
    }

    #[test]
    fn one_range_is_understood_and_other_http_means_the_whole() {
        let open = Some(RangeRequest { first: 7, last: None });
        let cases = [
            ("bytes=0-0", from_to(0, 0)),
            ("bytes=0-511", from_to(0, 511)),
            ("Bytes = 3-9", from_to(3, 9)),
            ("bytes=7-", open),
            ("bytes=0-99999999999999999999", from_to(0, u64::MAX)),
            ("bytes=-5", None),
            ("bytes=0-1,3-4", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(Some(text), None), Ok(expected), "Range: {text}");
            assert_eq!(parse(None, Some(text)), Ok(expected), "x-ms-range: {text}");
        }
        assert_eq!(parse(None, None), Ok(None));
        assert_eq!(parse(Some("bytes=0-1"), Some("bytes=7-")), Ok(open));
    }

    #[test]
    fn nonsense_is_passed_over_in_range_and_refused_in_x_ms_range() {
        for text in
            ["", "bytes", "bytes=", "bytes=-", "bytes=5-4", "items=0-1", "bytes=a-b", "bytes=0-1,", "bytes=+1-2"]
        {
            assert_eq!(parse(Some(text), None), Ok(None), "{text}");
            assert_eq!(
                parse(None, Some(text)).map_err(|problem| problem.code),
                Err(Code::InvalidHeaderValue),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_range_never_ends_before_it_begins(text in "(bytes=)?[0-9, -]{0,30}") {
            if let Ok(Some(RangeRequest { first, last: Some(last) })) = parse(Some(&text), None) {
                prop_assert!(first <= last);
            }
        }
    }
}
