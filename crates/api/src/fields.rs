//! Headers and query parameters by name: required, optional, and how to refuse.

use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::code::Code;
use crate::error::Problem;
use crate::head::HeaderCase;

/// What every metadata header begins with.
pub const METADATA_PREFIX: &str = "x-ms-meta-";

/// The headers and decoded query parameters of a request. Names are matched without regard to letter case; an empty
/// value counts as absent.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    headers: HeaderMap,
    query: Vec<(String, String)>,
    case: HeaderCase,
}

impl Fields {
    /// Decodes the raw query, each name and value once. A plus is a blank, as in forms: so the clients write it that
    /// take their language's own way to write queries, and so they sign it.
    ///
    /// Refuses `InvalidUri` for a malformed escape or what is not UTF-8.
    pub fn parse(headers: HeaderMap, raw_query: Option<&str>, case: HeaderCase) -> Result<Self, Problem> {
        let mut query = Vec::new();
        for pair in raw_query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            query.push((decode_form(name)?, decode_form(value)?));
        }
        Ok(Self { headers, query, case })
    }

    /// A header that must be there.
    ///
    /// Refuses `MissingRequiredHeader`, and `InvalidHeaderValue` for what is not visible ASCII.
    pub fn header(&self, name: &str) -> Result<&str, Problem> {
        self.header_opt(name)?.ok_or_else(|| Problem::missing_header(name))
    }

    /// A header that may be absent.
    ///
    /// Refuses `InvalidHeaderValue` for what is not visible ASCII.
    pub fn header_opt(&self, name: &str) -> Result<Option<&str>, Problem> {
        let Some(value) = self.headers.get(name) else { return Ok(None) };
        let text = value.to_str().map_err(|_| Problem::header(name, &String::from_utf8_lossy(value.as_bytes())))?;
        Ok(Some(text.trim()).filter(|text| !text.is_empty()))
    }

    /// Sees to it that the header has this value: sets it if it is absent.
    ///
    /// Refuses `AuthorizationFailure` for another value, `InvalidHeaderValue` for what no header can carry.
    pub fn demand(&mut self, name: &'static str, value: &str) -> Result<(), Problem> {
        match self.header_opt(name)? {
            Some(own) if own != value => Err(Problem::new(Code::AuthorizationFailure)
                .saying(format!("The signature allows no other value of the header {name} than {value}."))),
            Some(_) => Ok(()),
            None => {
                let given = HeaderValue::from_str(value).map_err(|_| Problem::header(name, value))?;
                self.headers.insert(name, given);
                Ok(())
            }
        }
    }

    /// A header that is a whole number.
    ///
    /// Refuses `InvalidHeaderValue`.
    pub fn header_number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.header_opt(name)? else { return Ok(None) };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        number.map(Some).ok_or_else(|| Problem::header(name, text))
    }

    /// Whether a header is there and not empty.
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.get(name).is_some_and(|value| !value.as_bytes().trim_ascii().is_empty())
    }

    /// All headers, names in lower case.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The metadata headers: each name as it was written, without its prefix, and its value. Repeated ones come
    /// repeatedly.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &HeaderValue)> {
        self.headers.iter().filter_map(|(name, value)| {
            let lower = name.as_str();
            lower.starts_with(METADATA_PREFIX).then(|| {
                let original = self.case.original(lower);
                (original.get(METADATA_PREFIX.len()..).unwrap_or_default(), value)
            })
        })
    }

    /// A query parameter that must be there.
    ///
    /// Refuses `MissingRequiredQueryParameter`.
    pub fn query(&self, name: &str) -> Result<&str, Problem> {
        self.query_opt(name).ok_or_else(|| Problem::missing_query(name))
    }

    /// A query parameter that may be absent; the first one, if there are several.
    pub fn query_opt(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(given, value)| given.eq_ignore_ascii_case(name) && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// Every query parameter, decoded, in its order.
    pub fn query_pairs(&self) -> &[(String, String)] {
        &self.query
    }

    /// A query parameter that is a whole number.
    ///
    /// Refuses `InvalidQueryParameterValue`.
    pub fn query_number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.query_opt(name) else { return Ok(None) };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        number.map(Some).ok_or_else(|| Problem::query(name, text, "It is not a whole number."))
    }
}

/// As [`decode`], where a plus is a blank.
///
/// Refuses as [`decode`].
pub fn decode_form(text: &str) -> Result<String, Problem> {
    if text.contains('+') { decode(&text.replace('+', " ")) } else { decode(text) }
}

/// Decodes the escapes of `text` once.
///
/// Refuses `InvalidUri` for a malformed escape or what is not UTF-8.
pub fn decode(text: &str) -> Result<String, Problem> {
    let mut rest = text.split('%');
    rest.next();
    let hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    if !rest.all(|escape| hex(escape.as_bytes().first()) && hex(escape.as_bytes().get(1))) {
        return Err(Problem::new(Code::InvalidUri));
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Problem::new(Code::InvalidUri)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(headers: &[(&str, &str)], query: &str, case: &[&str]) -> Fields {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        let case = HeaderCase(case.iter().map(ToString::to_string).collect());
        Fields::parse(map, Some(query), case).unwrap()
    }

    #[test]
    fn an_empty_field_is_an_absent_field() {
        let fields = fields(&[("x-ms-lease-id", ""), ("x-ms-version", " ")], "include=&Comp=list", &[]);
        assert_eq!(fields.header_opt("x-ms-lease-id"), Ok(None));
        assert!(!fields.has_header("x-ms-version"));
        assert_eq!(fields.header("x-ms-lease-id").unwrap_err().code, Code::MissingRequiredHeader);
        assert_eq!(fields.query_opt("include"), None);
        assert_eq!(fields.query("include").unwrap_err().code, Code::MissingRequiredQueryParameter);
        assert_eq!(fields.query("comp"), Ok("list"));
    }

    #[test]
    fn a_demanded_header_is_set_or_must_be_the_same() {
        let mut fields = fields(&[("x-ms-version", "1")], "", &[]);
        assert_eq!(fields.demand("x-ms-encryption-scope", "mine"), Ok(()));
        assert_eq!(fields.header("x-ms-encryption-scope"), Ok("mine"));
        assert_eq!(fields.demand("x-ms-version", "1"), Ok(()));
        let other = fields.demand("x-ms-version", "2").unwrap_err();
        assert_eq!(other.code, Code::AuthorizationFailure);
        let broken = fields.demand("x-ms-lease-id", "a\nb").unwrap_err();
        assert_eq!(broken.code, Code::InvalidHeaderValue);
    }

    #[test]
    fn a_header_of_other_bytes_is_refused_by_name() {
        let fields = fields(&[("x-ms-lease-id", "\u{e9}")], "", &[]);
        let problem = fields.header_opt("x-ms-lease-id").unwrap_err();
        assert_eq!(problem.code, Code::InvalidHeaderValue);
        assert!(problem.details.contains(&("HeaderName", "x-ms-lease-id".into())));
    }

    #[test]
    fn query_values_are_decoded_once_and_a_plus_is_a_blank() {
        let fields = fields(&[], "prefix=a%20b+%2Fc%252F&blockid=AAA%2B%3D=&flag", &[]);
        assert_eq!(fields.query("prefix"), Ok("a b /c%2F"));
        assert_eq!(fields.query("blockid"), Ok("AAA+=="));
        assert_eq!(fields.query_opt("flag"), None);
        assert_eq!(fields.query_pairs().len(), 3);
    }

    #[test]
    fn malformed_escapes_are_refused() {
        for text in ["%", "a%2", "%zz", "%ff", "%C3%28"] {
            assert_eq!(decode(text).unwrap_err().code, Code::InvalidUri, "{text}");
        }
        assert_eq!(decode("%C3%A9%00"), Ok("é\0".into()));
    }

    #[test]
    fn whole_numbers_are_digits_only() {
        let fields = fields(&[], "a=5&b=+5&c=5.0&d=-1&e=99999999999999999999999", &[]);
        assert_eq!(fields.query_number("a"), Ok(Some(5)));
        assert_eq!(fields.query_number("z"), Ok(None));
        for name in ["b", "c", "d", "e"] {
            assert_eq!(fields.query_number(name).unwrap_err().code, Code::InvalidQueryParameterValue, "{name}");
        }
    }

    #[test]
    fn metadata_names_keep_their_case_if_the_head_is_known() {
        let headers = [("x-ms-meta-owner", "ann"), ("x-ms-meta-b", "2"), ("x-ms-date", "3")];
        let known = fields(&headers, "", &["X-Ms-Meta-Owner", "x-ms-date"]);
        let names: Vec<_> = known.metadata().map(|(name, _)| name).collect();
        assert_eq!(names, ["Owner", "b"]);
    }
}
