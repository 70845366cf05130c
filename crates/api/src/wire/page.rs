//! What requests on page blobs say in their headers, and the list of pages.
//! <https://learn.microsoft.com/rest/api/storageservices/put-page>

use lazuli_engine::blob::pages::{
    PAGE_BLOB_BYTES_MAX, PAGE_BYTES, PageRanges, PagesAsked, SEQUENCE_MAX, SequenceAction, SequenceConditions, Stretch,
};
use lazuli_engine::range::{ByteRange, RangeRequest};

use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::version::Version;
use crate::wire::range;
use crate::wire::xml::{self, Document, Writer};

const LENGTH: &str = "x-ms-blob-content-length";
const SEQUENCE: &str = "x-ms-blob-sequence-number";
const ACTION: &str = "x-ms-sequence-number-action";
/// Most stretches of one answer.
const STRETCHES_MAX: u64 = 10_000;

/// The length of a page blob, if it is given.
///
/// Refuses `InvalidHeaderValue` for a length that is not in whole pages or too large.
pub fn length(fields: &Fields) -> Result<Option<u64>, Problem> {
    let Some(length) = fields.header_number(LENGTH)? else { return Ok(None) };
    if length % PAGE_BYTES != 0 || length > PAGE_BLOB_BYTES_MAX {
        return Err(Problem::header(LENGTH, &length.to_string()));
    }
    Ok(Some(length))
}

/// The length of a new page blob.
///
/// Refuses as [`length`], and `MissingRequiredHeader`.
pub fn new_length(fields: &Fields) -> Result<u64, Problem> {
    length(fields)?.ok_or_else(|| Problem::missing_header(LENGTH))
}

/// The sequence number, if it is given.
///
/// Refuses `InvalidHeaderValue`.
pub fn sequence(fields: &Fields) -> Result<Option<u64>, Problem> {
    match fields.header_number(SEQUENCE)? {
        Some(number) if number > SEQUENCE_MAX => Err(Problem::header(SEQUENCE, &number.to_string())),
        number => Ok(number),
    }
}

/// Of a request on something that has no sequence number.
///
/// Refuses `UnsupportedHeader` if it gives one.
pub fn no_sequence(fields: &Fields) -> Result<(), Problem> {
    match fields.header_opt(SEQUENCE)? {
        None => Ok(()),
        Some(value) => {
            Err(Problem::new(Code::UnsupportedHeader).detail("HeaderName", SEQUENCE).detail("HeaderValue", value))
        }
    }
}

/// What becomes of the sequence number.
///
/// Refuses `InvalidHeaderValue` for an unknown action, a number that is none, or one beside `increment`;
/// `MissingRequiredHeader` for an action without its number or a number without an action.
pub fn action(fields: &Fields) -> Result<Option<SequenceAction>, Problem> {
    let number = sequence(fields)?;
    let needed = || number.ok_or_else(|| Problem::missing_header(SEQUENCE));
    let Some(text) = fields.header_opt(ACTION)? else {
        return number.map_or(Ok(None), |_| Err(Problem::missing_header(ACTION)));
    };
    Ok(Some(match text.to_ascii_lowercase().as_str() {
        "max" => SequenceAction::Max(needed()?),
        "update" => SequenceAction::Update(needed()?),
        "increment" => match number {
            None => SequenceAction::Increment,
            Some(number) => return Err(Problem::header(SEQUENCE, &number.to_string())),
        },
        _ => return Err(Problem::header(ACTION, text)),
    }))
}

/// The conditions on the sequence number.
///
/// Refuses `InvalidHeaderValue` for what is no whole number, `InvalidInput` for one below zero.
pub fn conditions(fields: &Fields) -> Result<SequenceConditions, Problem> {
    let bound = |name| match fields.header_opt(name)?.map(str::parse::<i64>) {
        Some(Ok(..0)) => Err(Problem::new(Code::InvalidInput)
            .saying(format!("The value of the header {name} is below zero."))
            .detail("HeaderName", name)),
        _ => fields.header_number(name),
    };
    Ok(SequenceConditions {
        at_most: bound("x-ms-if-sequence-number-le")?,
        less_than: bound("x-ms-if-sequence-number-lt")?,
        equal: bound("x-ms-if-sequence-number-eq")?,
    })
}

/// The pages that a write is about; `x-ms-range` wins over `Range`.
///
/// Refuses `MissingRequiredHeader`, `InvalidHeaderValue` for what is not one closed range, and `InvalidPageRange` for
/// one that is not in whole pages.
pub fn pages(fields: &Fields) -> Result<ByteRange, Problem> {
    let (name, text) = match (fields.header_opt("x-ms-range")?, fields.header_opt("range")?) {
        (Some(text), _) => ("x-ms-range", text),
        (None, Some(text)) => ("Range", text),
        (None, None) => return Err(Problem::missing_header("x-ms-range")),
    };
    let unclear = || Problem::header(name, text);
    let Ok(Some(RangeRequest { first, last: Some(last) })) = range::parse(None, Some(text)) else {
        return Err(unclear());
    };
    let length = (last - first).checked_add(1).ok_or_else(unclear)?;
    if first % PAGE_BYTES != 0 || length % PAGE_BYTES != 0 {
        return Err(Problem::new(Code::InvalidPageRange));
    }
    Ok(ByteRange { first, length })
}

/// What Get Page Ranges asks for. Before version 2020-10-02 there were no pages of an answer.
///
/// Refuses `InvalidHeaderValue`, `InvalidQueryParameterValue`, `OutOfRangeQueryParameterValue`.
pub fn asked(fields: &Fields, version: Version) -> Result<PagesAsked, Problem> {
    let range = range::parse(fields.header_opt("range")?, fields.header_opt("x-ms-range")?)?;
    if version < Version::V2020_10_02 {
        return Ok(PagesAsked { range, start: 0, limit: None });
    }
    let limit = match fields.query_number("maxresults")? {
        Some(0) => {
            return Err(Problem::new(Code::OutOfRangeQueryParameterValue)
                .detail("QueryParameterName", "maxresults")
                .detail("QueryParameterValue", "0")
                .detail("MinimumAllowed", "1")
                .detail("MaximumAllowed", STRETCHES_MAX.to_string()));
        }
        limit => limit.unwrap_or(STRETCHES_MAX).min(STRETCHES_MAX),
    };
    let start = fields.query_number("marker")?.unwrap_or(0);
    Ok(PagesAsked { range, start, limit: usize::try_from(limit).ok() })
}

/// The body of Get Page Ranges.
pub fn document(ranges: &PageRanges) -> Vec<u8> {
    let mut xml = Writer::begin();
    xml.open("PageList");
    for stretch in &ranges.stretches {
        let name = if stretch.cleared { "ClearRange" } else { "PageRange" };
        xml.open(name);
        xml.text("Start", &stretch.range.first.to_string());
        xml.text("End", &(stretch.range.first + stretch.range.length - 1).to_string());
        xml.close(name);
    }
    xml.text_opt("NextMarker", ranges.next.map(|next| next.to_string()).as_deref());
    xml.close("PageList");
    xml.finish()
}

/// Reads the body of Get Page Ranges: the stretches, and where to go on.
///
/// Refuses `InvalidXmlDocument` and `InvalidXmlNodeValue`.
pub fn parse(body: &[u8]) -> Result<(Vec<Stretch>, Option<String>), Problem> {
    let mut document = Document::open(body, "PageList")?;
    let (mut stretches, mut next) = (Vec::new(), None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "PageRange" => stretches.push(stretch(&mut document, false)?),
            "ClearRange" => stretches.push(stretch(&mut document, true)?),
            "NextMarker" => next = Some(document.text()?).filter(|text| !text.is_empty()),
            _ => return Err(document.wrong("only ranges and a marker belong here")),
        }
    }
    document.close()?;
    Ok((stretches, next))
}

fn stretch(document: &mut Document<'_>, cleared: bool) -> Result<Stretch, Problem> {
    let (mut start, mut end) = (None, None);
    while let Some(name) = document.child()? {
        let text = document.text()?;
        let number = text.parse().map_err(|_| xml::node_value("PageRange", &text, "It is not a number."))?;
        match name.as_str() {
            "Start" if start.is_none() => start = Some(number),
            "End" if end.is_none() => end = Some(number),
            _ => return Err(document.wrong("one Start and one End belong here")),
        }
    }
    let length = |start: u64, end: u64| end.checked_sub(start)?.checked_add(1);
    match (start, end, start.zip(end).and_then(|(start, end)| length(start, end))) {
        (Some(first), Some(_), Some(length)) => Ok(Stretch { range: ByteRange { first, length }, cleared }),
        _ => Err(document.wrong("a range has a Start and an End behind it")),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName};
    use lazuli_engine::blob::Written;
    use lazuli_engine::clock::Timestamp;
    use lazuli_engine::etag::Etag;

    use super::*;
    use crate::head::HeaderCase;

    fn fields(headers: &[(&'static str, &str)], query: &str) -> Fields {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect();
        Fields::parse(headers, Some(query), HeaderCase::default()).unwrap()
    }

    #[test]
    fn a_write_names_whole_pages() {
        let whole = |first, length| Ok(ByteRange { first, length });
        let cases = [
            ("bytes=0-511", whole(0, 512)),
            ("bytes=1024-4095", whole(1024, 3072)),
            ("bytes=0-510", Err(Code::InvalidPageRange)),
            ("bytes=1-512", Err(Code::InvalidPageRange)),
            ("bytes=256-767", Err(Code::InvalidPageRange)),
            ("bytes=0-", Err(Code::InvalidHeaderValue)),
            ("bytes=-512", Err(Code::InvalidHeaderValue)),
            ("bytes=0-511,1024-1535", Err(Code::InvalidHeaderValue)),
            ("bytes=511-0", Err(Code::InvalidHeaderValue)),
            ("pages=0-511", Err(Code::InvalidHeaderValue)),
            ("bytes=0-18446744073709551615", Err(Code::InvalidHeaderValue)),
        ];
        for (text, expected) in cases {
            for name in ["range", "x-ms-range"] {
                assert_eq!(pages(&fields(&[(name, text)], "")).map_err(|problem| problem.code), expected, "{text}");
            }
        }
        assert_eq!(pages(&fields(&[], "")).map_err(|problem| problem.code), Err(Code::MissingRequiredHeader));
        let both = [("range", "bytes=0-511"), ("x-ms-range", "bytes=512-1023")];
        assert_eq!(pages(&fields(&both, "")), Ok(ByteRange { first: 512, length: 512 }));
    }

    #[test]
    fn a_length_is_in_pages_and_not_endless() {
        let cases = [
            ("0", Ok(0)),
            ("512", Ok(512)),
            ("8796093022208", Ok(PAGE_BLOB_BYTES_MAX)),
            ("8796093022720", Err(Code::InvalidHeaderValue)),
            ("511", Err(Code::InvalidHeaderValue)),
            ("-512", Err(Code::InvalidHeaderValue)),
        ];
        for (text, expected) in cases {
            assert_eq!(new_length(&fields(&[(LENGTH, text)], "")).map_err(|problem| problem.code), expected, "{text}");
        }
        assert_eq!(new_length(&fields(&[], "")).map_err(|problem| problem.code), Err(Code::MissingRequiredHeader));
    }

    #[test]
    fn an_action_has_the_number_that_it_needs() {
        let number = |text| (SEQUENCE, text);
        let cases: [(&[_], _); 10] = [
            (&[], Ok(None)),
            (&[(ACTION, "max"), number("7")], Ok(Some(SequenceAction::Max(7)))),
            (&[(ACTION, "Update"), number("0")], Ok(Some(SequenceAction::Update(0)))),
            (&[(ACTION, "increment")], Ok(Some(SequenceAction::Increment))),
            (&[(ACTION, "increment"), number("7")], Err(Code::InvalidHeaderValue)),
            (&[(ACTION, "max")], Err(Code::MissingRequiredHeader)),
            (&[(ACTION, "update")], Err(Code::MissingRequiredHeader)),
            (&[number("7")], Err(Code::MissingRequiredHeader)),
            (&[(ACTION, "decrement"), number("7")], Err(Code::InvalidHeaderValue)),
            (&[(ACTION, "update"), number("9223372036854775808")], Err(Code::InvalidHeaderValue)),
        ];
        for (headers, expected) in cases {
            assert_eq!(action(&fields(headers, "")).map_err(|problem| problem.code), expected, "{headers:?}");
        }
        assert_eq!(no_sequence(&fields(&[], "")), Ok(()));
        let refused = no_sequence(&fields(&[number("7")], "")).map_err(|problem| problem.code);
        assert_eq!(refused, Err(Code::UnsupportedHeader));
    }

    #[test]
    fn a_list_of_pages_is_asked_for_in_parts_since_there_are_parts() {
        let cases = [
            ("", Ok((0, Some(10_000)))),
            ("maxresults=3&marker=512", Ok((512, Some(3)))),
            ("maxresults=20000", Ok((0, Some(10_000)))),
            ("maxresults=0", Err(Code::OutOfRangeQueryParameterValue)),
            ("maxresults=x", Err(Code::InvalidQueryParameterValue)),
            ("marker=x", Err(Code::InvalidQueryParameterValue)),
        ];
        for (query, expected) in cases {
            let found = asked(&fields(&[], query), Version::V2020_10_02);
            let found = found.map(|asked| (asked.start, asked.limit)).map_err(|problem| problem.code);
            assert_eq!(found, expected, "{query}");
            let before = asked(&fields(&[], query), Version::V2019_12_12).unwrap();
            assert_eq!((before.start, before.limit), (0, None), "{query}");
        }
        let malformed = fields(&[("x-ms-range", "bytes=9-1")], "");
        assert_eq!(
            asked(&malformed, Version::NEWEST).map_err(|problem| problem.code).err(),
            Some(Code::InvalidHeaderValue)
        );
    }

    #[test]
    fn pages_and_cleared_pages_are_listed_in_order() {
        let stretch = |first, length, cleared| Stretch { range: ByteRange { first, length }, cleared };
        let mut ranges = PageRanges {
            written: Written { etag: Etag::at(Timestamp::from_ticks(1)), version: None },
            length: 4096,
            stretches: vec![stretch(0, 512, false), stretch(512, 1024, true)],
            next: None,
        };
        let list = "<PageRange><Start>0</Start><End>511</End></PageRange>\
                    <ClearRange><Start>512</Start><End>1535</End></ClearRange>";
        let body = |ranges: &PageRanges| String::from_utf8(document(ranges)).unwrap();
        assert!(body(&ranges).ends_with(&format!("<PageList>{list}</PageList>")), "{}", body(&ranges));
        ranges.next = Some(2048);
        assert!(body(&ranges).ends_with(&format!("{list}<NextMarker>2048</NextMarker></PageList>")));
        ranges.stretches.clear();
        ranges.next = None;
        assert!(body(&ranges).ends_with("<PageList></PageList>"));
    }

    #[test]
    fn a_list_of_pages_is_read_as_it_is_written() {
        let stretch = |first, length, cleared| Stretch { range: ByteRange { first, length }, cleared };
        let mut ranges = PageRanges {
            written: Written { etag: Etag::at(Timestamp::from_unix_seconds(1)), version: None },
            length: 4096,
            stretches: vec![stretch(0, 512, false), stretch(512, 1024, true)],
            next: Some(2048),
        };
        assert_eq!(parse(&document(&ranges)).unwrap(), (ranges.stretches.clone(), Some("2048".into())));
        (ranges.stretches, ranges.next) = (Vec::new(), None);
        assert_eq!(parse(&document(&ranges)).unwrap(), (Vec::new(), None));
        assert_eq!(parse(b"<PageList><NextMarker/></PageList>").unwrap(), (Vec::new(), None));
        let range = |inside: &str| format!("<PageList><PageRange>{inside}</PageRange></PageList>");
        let ends = |start: &str, end: &str| range(&format!("<Start>{start}</Start><End>{end}</End>"));
        let whole = format!("{}", u64::MAX);
        for bad in [
            "<List/>".to_owned(),
            "<PageList><Page/></PageList>".to_owned(),
            range(""),
            range("<Start>0</Start>"),
            range("<Start>0</Start><End>511</End><End>511</End>"),
            ends("1", "0"),
            ends("x", "1"),
            ends("0", &whole),
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
