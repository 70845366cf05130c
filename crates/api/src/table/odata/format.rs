//! How much an answer says about itself, and which media types are understood.
//! <https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations>

use http::HeaderMap;
use http::header::ACCEPT;

use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::version::Version;

/// The media type of what is understood.
const JSON: &str = "application/json";
/// Media types of the format that came before JSON.
const ATOM: [&str; 3] = ["application/atom+xml", "application/xml", "text/xml"];

/// Preferences of who inserts something.
const WITH: &str = "return-content";
const WITHOUT: &str = "return-no-content";

/// How much an answer says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// Only properties.
    None,
    /// Also the types that JSON does not show, and versions.
    Minimal,
    /// Also addresses, and the type of the timestamp.
    Full,
}

impl Metadata {
    /// What an answer to the request is to say: by `$format`, else by `Accept`, else [`Metadata::Minimal`].
    ///
    /// Refuses `AtomFormatNotSupported` and `MediaTypeNotSupported`, `JsonFormatNotSupported` for a version that is
    /// older than JSON, and `InvalidHeaderValue`.
    pub fn asked(fields: &Fields, version: Version) -> Result<Self, Problem> {
        if version < Version::V2013_08_15 {
            return Err(Problem::new(Code::JsonFormatNotSupported));
        }
        match fields.query_opt("$format") {
            Some(format) if format.eq_ignore_ascii_case("json") => Ok(Self::Minimal),
            Some(format) if format.eq_ignore_ascii_case("atom") => Err(Problem::new(Code::AtomFormatNotSupported)),
            Some(format) => Self::of_list(format),
            None => fields.header_opt("accept")?.map_or(Ok(Self::Minimal), Self::of_list),
        }
    }

    /// What a refusal is to say; none if it is to be XML.
    pub fn of_refusal(headers: &HeaderMap) -> Option<Self> {
        match headers.get(ACCEPT).map(|value| value.to_str().unwrap_or_default().trim()) {
            None | Some("") => Some(Self::Minimal),
            // Who reads JSON at all reads this, of whatever level.
            Some(list) => Self::of_list(list).ok().or_else(|| list.contains(JSON).then_some(Self::Minimal)),
        }
    }

    /// The first of the list that is understood.
    fn of_list(list: &str) -> Result<Self, Problem> {
        if let Some(found) = list.split(',').find_map(Self::of_type) {
            return Ok(found);
        }
        let atom = |one: &str| ATOM.iter().any(|atom| bare(one).eq_ignore_ascii_case(atom));
        let code = if list.split(',').any(atom) { Code::AtomFormatNotSupported } else { Code::MediaTypeNotSupported };
        Err(Problem::new(code))
    }

    fn of_type(text: &str) -> Option<Self> {
        if ["*/*", "application/*"].contains(&bare(text)) {
            return Some(Self::Minimal);
        }
        if !bare(text).eq_ignore_ascii_case(JSON) {
            return None;
        }
        let parameter = text.split(';').filter_map(|parameter| parameter.trim().split_once('='));
        let level = parameter.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("odata")).map(|(_, level)| level);
        match level.map(str::to_ascii_lowercase).as_deref() {
            None | Some("minimalmetadata") => Some(Self::Minimal),
            Some("nometadata") => Some(Self::None),
            Some("fullmetadata") => Some(Self::Full),
            Some(_) => None,
        }
    }

    /// The Content-Type of an answer.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// A media type without its parameters.
fn bare(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

/// Sees to it that the body of a request is JSON, if it says what it is.
///
/// Refuses `AtomFormatNotSupported`, `MediaTypeNotSupported`, `JsonFormatNotSupported` for a version that is older than
/// JSON, and `InvalidHeaderValue`.
pub fn check_content_type(fields: &Fields, version: Version) -> Result<(), Problem> {
    if version < Version::V2013_08_15 {
        return Err(Problem::new(Code::JsonFormatNotSupported));
    }
    match fields.header_opt("content-type")?.map(bare) {
        None => Ok(()),
        Some(kind) if kind.eq_ignore_ascii_case(JSON) => Ok(()),
        Some(kind) if ATOM.iter().any(|atom| kind.eq_ignore_ascii_case(atom)) => {
            Err(Problem::new(Code::AtomFormatNotSupported))
        }
        Some(_) => Err(Problem::new(Code::MediaTypeNotSupported)),
    }
}

/// How an insertion is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// What the client prefers, if it says so; to be repeated in the answer.
    pub preference: Option<&'static str>,
    /// How much is said about what was inserted; none if it is not to be repeated.
    pub metadata: Option<Metadata>,
}

impl Echo {
    /// Reads `Prefer`, of which what is not known is passed over, and what [`Metadata::asked`] reads if the answer is to
    /// have a document. <https://www.rfc-editor.org/rfc/rfc7240#section-2>
    ///
    /// Refuses `InvalidHeaderValue`, and as [`Metadata::asked`].
    pub fn asked(fields: &Fields, version: Version) -> Result<Self, Problem> {
        let known = |text: &str| [WITHOUT, WITH].into_iter().find(|known| text.trim().eq_ignore_ascii_case(known));
        let preference = fields.header_opt("prefer")?.unwrap_or_default().split(',').find_map(known);
        let wanted = preference != Some(WITHOUT);
        let metadata = wanted.then(|| Metadata::asked(fields, version)).transpose()?;
        Ok(Self { preference, metadata })
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::head::HeaderCase;

    fn fields(name: &'static str, value: &str, query: &str) -> Fields {
        let value = HeaderValue::from_str(value).unwrap();
        let headers = HeaderMap::from_iter([(HeaderName::from_static(name), value)]);
        Fields::parse(headers, Some(query), HeaderCase::default()).unwrap()
    }

    #[test]
    fn the_format_is_that_of_the_query_or_of_accept() {
        use Metadata::{Full, Minimal, None as Nothing};
        let cases = [
            ("", "", Ok(Minimal)),
            ("*/*", "", Ok(Minimal)),
            ("application/json", "", Ok(Minimal)),
            ("application/json;odata=nometadata", "", Ok(Nothing)),
            ("Application/JSON; charset=utf-8; OData=FullMetadata", "", Ok(Full)),
            ("application/atom+xml, application/json;odata=minimalmetadata", "", Ok(Minimal)),
            ("application/json;odata=verbose", "", Err(Code::MediaTypeNotSupported)),
            ("text/plain", "", Err(Code::MediaTypeNotSupported)),
            ("application/atom+xml", "", Err(Code::AtomFormatNotSupported)),
            ("application/xml", "", Err(Code::AtomFormatNotSupported)),
            ("text/plain", "$format=json", Ok(Minimal)),
            ("application/json;odata=nometadata", "$format=application/json;odata=fullmetadata", Ok(Full)),
            ("application/json", "$format=atom", Err(Code::AtomFormatNotSupported)),
            ("application/json", "$format=x", Err(Code::MediaTypeNotSupported)),
        ];
        for (accept, query, expected) in cases {
            let fields = fields("accept", accept, query);
            let found = Metadata::asked(&fields, Version::NEWEST).map_err(|problem| problem.code);
            assert_eq!(found, expected, "{accept} {query}");
            if query.is_empty() {
                let of_refusal = expected.ok().or(accept.contains("verbose").then_some(Minimal));
                assert_eq!(Metadata::of_refusal(fields.headers()), of_refusal, "{accept}");
            }
        }
        assert_eq!(Metadata::of_refusal(&HeaderMap::new()), Some(Minimal));
        let old = Metadata::asked(&fields("accept", "application/json", ""), Version::V2012_02_12);
        assert_eq!(old.map_err(|problem| problem.code), Err(Code::JsonFormatNotSupported));
    }

    #[test]
    fn bodies_are_json() {
        let cases = [
            ("", Ok(())),
            ("application/json", Ok(())),
            ("application/json;odata=nometadata", Ok(())),
            ("application/atom+xml", Err(Code::AtomFormatNotSupported)),
            ("text/plain", Err(Code::MediaTypeNotSupported)),
        ];
        for (kind, expected) in cases {
            let checked = check_content_type(&fields("content-type", kind, ""), Version::NEWEST);
            assert_eq!(checked.map_err(|problem| problem.code), expected, "{kind}");
        }
    }

    #[test]
    fn an_echo_is_wanted_or_not() {
        let cases = [
            ("", Ok((None, true))),
            ("return-content", Ok((Some(WITH), true))),
            ("Return-No-Content", Ok((Some(WITHOUT), false))),
            ("respond-async", Ok((None, true))),
            ("respond-async, return-no-content", Ok((Some(WITHOUT), false))),
        ];
        for (prefer, expected) in cases {
            let echo = Echo::asked(&fields("prefer", prefer, ""), Version::NEWEST);
            let found = echo.map(|echo| (echo.preference, echo.metadata.is_some())).map_err(|problem| problem.code);
            assert_eq!(found, expected, "{prefer}");
        }
    }
}
