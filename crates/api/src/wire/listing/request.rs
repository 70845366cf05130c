//! The query of a listing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lazuli_engine::blob::Marker;
use lazuli_engine::blob::listing::Shown;

use crate::auth::Peer;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::target::Target;
use crate::wire::protection;

/// Most entries of a page; also how many there are if the request does not say.
pub const PAGE_MAX: u64 = 5000;

/// Which part of a listing is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    /// Only names that begin so.
    pub prefix: String,
    /// The marker as given, to be repeated in the answer.
    pub marker: Option<String>,
    /// Where to go on.
    pub start: Option<Marker>,
    /// Most entries, as given, to be repeated in the answer.
    pub asked: Option<u64>,
    /// Most entries to answer, 1 to [`PAGE_MAX`].
    pub limit: usize,
}

impl Paging {
    /// Reads `prefix`, `marker` and `maxresults`.
    ///
    /// Refuses `InvalidQueryParameterValue`, and `OutOfRangeQueryParameterValue` for less than one entry.
    pub fn parse(fields: &Fields) -> Result<Self, Problem> {
        let marker = fields.query_opt("marker").map(str::to_owned);
        let asked = fields.query_opt("maxresults").map(max_results).transpose()?;
        Ok(Self {
            prefix: fields.query_opt("prefix").unwrap_or_default().to_owned(),
            start: marker.as_deref().map(parse_marker).transpose()?,
            marker,
            asked,
            // PAGE_MAX fits any usize.
            limit: usize::try_from(asked.unwrap_or(PAGE_MAX).min(PAGE_MAX)).unwrap_or(usize::MAX),
        })
    }
}

fn max_results(text: &str) -> Result<u64, Problem> {
    match text.parse::<i64>() {
        Ok(number @ 1..) => Ok(number.unsigned_abs()),
        Ok(_) => Err(Problem::new(Code::OutOfRangeQueryParameterValue)
            .detail("QueryParameterName", "maxresults")
            .detail("QueryParameterValue", text)
            .detail("MinimumAllowed", "1")
            .detail("MaximumAllowed", PAGE_MAX.to_string())),
        Err(_) => Err(Problem::query("maxresults", text, "It is not a whole number.")),
    }
}

fn parse_marker(text: &str) -> Result<Marker, Problem> {
    let bytes = URL_SAFE_NO_PAD.decode(text);
    bytes.map(Marker).map_err(|_| Problem::query("marker", text, "It was not made by this service."))
}

pub(super) fn marker_text(marker: Option<&Marker>) -> String {
    marker.map(|marker| URL_SAFE_NO_PAD.encode(&marker.0)).unwrap_or_default()
}

/// What a listing of blobs shows beside the committed ones and their properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobIncludes {
    /// What else is listed.
    pub shown: Shown,
    /// Metadata.
    pub metadata: bool,
    /// Copies.
    pub copy: bool,
    /// Tags.
    pub tags: bool,
    /// Immutability policies and legal holds.
    pub protection: protection::Shown,
}

/// Reads `include` and `showonly` of List Blobs.
///
/// Refuses `InvalidQueryParameterValue` for unknown words, `NotImplemented` for `permissions`.
pub fn blob_includes(fields: &Fields) -> Result<BlobIncludes, Problem> {
    let mut includes = BlobIncludes::default();
    for word in words(fields) {
        match word.to_ascii_lowercase().as_str() {
            "metadata" => includes.metadata = true,
            "tags" => includes.tags = true,
            "uncommittedblobs" => includes.shown.uncommitted = true,
            "snapshots" => includes.shown.snapshots = true,
            "versions" => includes.shown.versions = true,
            "deleted" => includes.shown.deleted = true,
            "deletedwithversions" => includes.shown.versions_only = true,
            "copy" => includes.copy = true,
            "immutabilitypolicy" => includes.protection.policies = true,
            "legalhold" => includes.protection.holds = true,
            "permissions" => return Err(Problem::not_implemented("The query parameter include=permissions")),
            _ => return Err(unknown_include(word)),
        }
    }
    match fields.query_opt("showonly") {
        None => {}
        Some(text) if includes.shown.deleted => {
            return Err(Problem::query("showonly", text, "It is not for a request that includes deleted ones."));
        }
        Some(text) if text.eq_ignore_ascii_case("deleted") => {
            (includes.shown.deleted, includes.shown.only_deleted) = (true, true);
        }
        Some(text) => return Err(Problem::query("showonly", text, "It is not known.")),
    }
    Ok(includes)
}

/// Reads `include` of Find Blobs by Tags: whether versions are found.
///
/// Refuses `InvalidQueryParameterValue` for unknown words.
pub fn find_versions(fields: &Fields) -> Result<bool, Problem> {
    let mut versions = false;
    for word in words(fields) {
        match word.to_ascii_lowercase().as_str() {
            "versions" => versions = true,
            "none" => {}
            _ => return Err(unknown_include(word)),
        }
    }
    Ok(versions)
}

/// What a listing of containers shows beside the usual ones and their properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerIncludes {
    /// Metadata.
    pub metadata: bool,
    /// Soft-deleted containers.
    pub deleted: bool,
    /// Containers that the service itself makes.
    pub system: bool,
}

/// Reads `include` of List Containers.
///
/// Refuses `InvalidQueryParameterValue` for unknown words.
pub fn container_includes(fields: &Fields) -> Result<ContainerIncludes, Problem> {
    let mut includes = ContainerIncludes::default();
    for word in words(fields) {
        match word.to_ascii_lowercase().as_str() {
            "metadata" => includes.metadata = true,
            "deleted" => includes.deleted = true,
            "system" => includes.system = true,
            _ => return Err(unknown_include(word)),
        }
    }
    Ok(includes)
}

/// Reads `include` of List Queues: whether metadata is shown.
///
/// Refuses `InvalidQueryParameterValue` for unknown words.
pub fn queue_metadata(fields: &Fields) -> Result<bool, Problem> {
    let mut metadata = false;
    for word in words(fields) {
        if !word.eq_ignore_ascii_case("metadata") {
            return Err(unknown_include(word));
        }
        metadata = true;
    }
    Ok(metadata)
}

fn words(fields: &Fields) -> impl Iterator<Item = &str> {
    let text = fields.query_opt("include").unwrap_or_default();
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn unknown_include(word: &str) -> Problem {
    Problem::query("include", word, "It is not known.")
}

/// The address that a listing says it comes from: the one that the client used.
pub fn service_endpoint(fields: &Fields, target: &Target, peer: Peer) -> Result<String, Problem> {
    let host = fields.header_opt("host")?.unwrap_or("localhost");
    let scheme = if peer.secure { "https" } else { "http" };
    if !target.path_style {
        return Ok(format!("{scheme}://{host}/"));
    }
    let suffix = if target.secondary { "-secondary" } else { "" };
    Ok(format!("{scheme}://{host}/{}{suffix}/", target.account))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use proptest::prelude::*;

    use super::*;
    use crate::head::HeaderCase;

    fn fields(query: &str) -> Fields {
        Fields::parse(HeaderMap::new(), Some(query), HeaderCase::default()).unwrap()
    }

    #[test]
    fn a_page_has_one_to_five_thousand_entries() {
        let cases = [
            ("", Ok((None, 5000))),
            ("maxresults=", Ok((None, 5000))),
            ("maxresults=1", Ok((Some(1), 1))),
            ("maxresults=5000", Ok((Some(5000), 5000))),
            ("maxresults=999999", Ok((Some(999_999), 5000))),
            ("maxresults=0", Err(Code::OutOfRangeQueryParameterValue)),
            ("maxresults=-1", Err(Code::OutOfRangeQueryParameterValue)),
            ("maxresults=many", Err(Code::InvalidQueryParameterValue)),
        ];
        for (query, expected) in cases {
            let answer = Paging::parse(&fields(query));
            assert_eq!(
                answer.map(|page| (page.asked, page.limit)).map_err(|problem| problem.code),
                expected,
                "{query}"
            );
        }
    }

    #[test]
    fn a_marker_comes_back_and_an_empty_one_is_the_start() {
        assert_eq!(Paging::parse(&fields("marker=")).unwrap().start, None);
        let marker = Marker(vec![0, 0xff, b'a']);
        let page = Paging::parse(&fields(&format!("marker={}", marker_text(Some(&marker))))).unwrap();
        assert_eq!(page.start, Some(marker));
        let problem = Paging::parse(&fields("marker=2!92!")).unwrap_err();
        assert_eq!(problem.code, Code::InvalidQueryParameterValue);
    }

    #[test]
    fn includes_are_known_words() {
        let none = Shown::default();
        let shown = |shown| Ok(BlobIncludes { shown, ..BlobIncludes::default() });
        let protected = |protection| Ok(BlobIncludes { protection, ..BlobIncludes::default() });
        let cases = [
            ("", shown(none)),
            ("include=metadata", Ok(BlobIncludes { metadata: true, ..BlobIncludes::default() })),
            ("include=tags", Ok(BlobIncludes { tags: true, ..BlobIncludes::default() })),
            ("include=snapshots,UncommittedBlobs", shown(Shown { snapshots: true, uncommitted: true, ..none })),
            ("include=deleted,versions", shown(Shown { deleted: true, versions: true, ..none })),
            ("include=deletedwithversions", shown(Shown { versions_only: true, ..none })),
            ("showonly=deleted", shown(Shown { deleted: true, only_deleted: true, ..none })),
            ("include=Copy", Ok(BlobIncludes { copy: true, ..BlobIncludes::default() })),
            ("include=LegalHold", protected(protection::Shown { holds: true, policies: false })),
            ("include=immutabilitypolicy,legalhold", protected(protection::Shown { holds: true, policies: true })),
            ("include=permissions", Err(Code::NotImplemented)),
            ("include=everything", Err(Code::InvalidQueryParameterValue)),
            ("showonly=everything", Err(Code::InvalidQueryParameterValue)),
            ("showonly=deleted&include=deleted", Err(Code::InvalidQueryParameterValue)),
        ];
        for (query, expected) in cases {
            assert_eq!(blob_includes(&fields(query)).map_err(|problem| problem.code), expected, "{query}");
        }
        let all = ContainerIncludes { metadata: true, deleted: true, system: true };
        assert_eq!(container_includes(&fields("include=Metadata,system,deleted")), Ok(all));
        assert_eq!(container_includes(&fields("")), Ok(ContainerIncludes::default()));
        assert_eq!(container_includes(&fields("include=copy")).unwrap_err().code, Code::InvalidQueryParameterValue);
    }

    #[test]
    fn the_endpoint_is_the_one_that_was_called() {
        let cases = [
            ("127.0.0.1:10000", "/devstoreaccount1/photos", "http://127.0.0.1:10000/devstoreaccount1/"),
            (
                "127.0.0.1:10000",
                "/devstoreaccount1-secondary/photos",
                "http://127.0.0.1:10000/devstoreaccount1-secondary/",
            ),
            ("dev.blob.localhost:10000", "/photos", "http://dev.blob.localhost:10000/"),
        ];
        for (host, path, expected) in cases {
            let headers = HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_static(host))]);
            let fields = Fields::parse(headers, Some("restype=container"), HeaderCase::default()).unwrap();
            let target = Target::parse(crate::target::Service::Blob, Some(host), path, &fields).unwrap();
            assert_eq!(service_endpoint(&fields, &target, Peer::default()), Ok(expected.to_owned()));
            let secure = Peer { secure: true, ..Peer::default() };
            assert_eq!(service_endpoint(&fields, &target, secure), Ok(expected.replace("http:", "https:")));
        }
    }

    proptest! {
        #[test]
        fn no_query_makes_the_reader_panic(marker in "[ -$'-~]{0,30}", number in "[-0-9a]{0,25}") {
            let fields = fields(&format!("marker={}&maxresults={number}", marker.replace('%', "")));
            let _ = Paging::parse(&fields);
        }
    }
}
