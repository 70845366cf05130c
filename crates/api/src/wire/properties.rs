//! The stored HTTP properties of a blob, in request headers.
//! <https://learn.microsoft.com/rest/api/storageservices/set-blob-properties>

use http::HeaderMap;
use lazuli_engine::properties::HttpProperties;

use crate::answer::Answer;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::wire::digest;

/// The type of a content that was stored without one.
pub const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

/// Most bytes of all text values together: with the largest metadata they still fit one row.
pub const PROPERTIES_BYTES_MAX: usize = 4 * 1024;

/// Names of the headers that carry them, without what they begin with. The MD5 is read apart: without the beginning
/// it means the body of the request.
const CACHE_CONTROL: &str = "cache-control";
const CONTENT_TYPE: &str = "content-type";
const CONTENT_ENCODING: &str = "content-encoding";
const CONTENT_LANGUAGE: &str = "content-language";
const CONTENT_DISPOSITION: &str = "content-disposition";
const CONTENT_MD5: &str = "content-md5";

/// Of a request that carries the content: what the x-ms-blob-* headers do not say, the plain ones do.
///
/// Refuses `InvalidMd5`, and `InvalidHeaderValue` for more than [`PROPERTIES_BYTES_MAX`].
pub fn of_content(fields: &Fields) -> Result<HttpProperties, Problem> {
    let stored = of_blob(fields)?;
    let plain = |given: Option<String>, name| -> Result<_, Problem> {
        Ok(match given {
            Some(given) => Some(given),
            None => fields.header_opt(name)?.map(str::to_owned),
        })
    };
    bounded(HttpProperties {
        cache_control: plain(stored.cache_control, CACHE_CONTROL)?,
        content_type: plain(stored.content_type, CONTENT_TYPE)?,
        content_encoding: plain(stored.content_encoding, CONTENT_ENCODING)?,
        content_language: plain(stored.content_language, CONTENT_LANGUAGE)?,
        // Only the x-ms-blob-* form of these two describes the blob.
        content_disposition: stored.content_disposition,
        content_md5: stored.content_md5,
    })
}

/// Of a request whose own headers describe something else, such as a block list.
///
/// Refuses `InvalidMd5`, and `InvalidHeaderValue` for more than [`PROPERTIES_BYTES_MAX`].
pub fn of_blob(fields: &Fields) -> Result<HttpProperties, Problem> {
    let text = |name: &str| -> Result<Option<String>, Problem> {
        Ok(fields.header_opt(&format!("x-ms-blob-{name}"))?.map(str::to_owned))
    };
    let md5 = fields.header_opt(&format!("x-ms-blob-{CONTENT_MD5}"))?;
    bounded(HttpProperties {
        cache_control: text(CACHE_CONTROL)?,
        content_type: text(CONTENT_TYPE)?,
        content_encoding: text(CONTENT_ENCODING)?,
        content_language: text(CONTENT_LANGUAGE)?,
        content_disposition: text(CONTENT_DISPOSITION)?,
        content_md5: md5.map(digest::parse_md5).transpose()?,
    })
}

/// The same properties, if they are not too large to be stored.
fn bounded(http: HttpProperties) -> Result<HttpProperties, Problem> {
    let texts = [
        &http.cache_control,
        &http.content_type,
        &http.content_encoding,
        &http.content_language,
        &http.content_disposition,
    ];
    if texts.into_iter().flatten().map(String::len).sum::<usize>() > PROPERTIES_BYTES_MAX {
        return Err(Problem::new(Code::InvalidHeaderValue).saying("The HTTP properties of the blob are too large."));
    }
    Ok(http)
}

/// Of Set Blob Properties: any of them given clears those not given, the content type as well; none if none is given. A
/// header that is there but empty counts as given.
///
/// Refuses `InvalidMd5`, and `InvalidHeaderValue` for more than [`PROPERTIES_BYTES_MAX`].
pub fn to_set(fields: &Fields) -> Result<Option<HttpProperties>, Problem> {
    let names = [CACHE_CONTROL, CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_DISPOSITION, CONTENT_MD5];
    if !names.iter().any(|name| fields.headers().contains_key(format!("x-ms-blob-{name}"))) {
        return Ok(None);
    }
    let http = of_blob(fields)?;
    Ok(Some(HttpProperties { content_type: Some(http.content_type.unwrap_or_default()), ..http }))
}

/// What is left when all are cleared.
pub fn cleared() -> HttpProperties {
    HttpProperties { content_type: Some(String::new()), ..HttpProperties::default() }
}

/// Of another server's answer that describes a blob. Values that cannot be stored are left out.
pub fn of_answer(headers: &HeaderMap) -> HttpProperties {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let md5 = headers.get("x-ms-blob-content-md5").or_else(|| headers.get(CONTENT_MD5));
    let http = HttpProperties {
        cache_control: text(CACHE_CONTROL),
        content_type: text(CONTENT_TYPE),
        content_encoding: text(CONTENT_ENCODING),
        content_language: text(CONTENT_LANGUAGE),
        content_disposition: text(CONTENT_DISPOSITION),
        content_md5: md5.and_then(|md5| digest::parse_md5(md5.to_str().ok()?).ok()),
    };
    bounded(http).unwrap_or_default()
}

/// The answer with the stored properties in its headers, but for the MD5, which may mean the whole or a part.
#[must_use]
pub fn onto(answer: Answer, http: &HttpProperties) -> Answer {
    let content_type = http.content_type.as_deref().unwrap_or(DEFAULT_CONTENT_TYPE);
    answer
        .header_opt(CONTENT_TYPE, Some(content_type).filter(|text| !text.is_empty()))
        .header_opt(CACHE_CONTROL, http.cache_control.as_deref())
        .header_opt(CONTENT_ENCODING, http.content_encoding.as_deref())
        .header_opt(CONTENT_LANGUAGE, http.content_language.as_deref())
        .header_opt(CONTENT_DISPOSITION, http.content_disposition.as_deref())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::head::HeaderCase;

    fn fields(headers: &[(&'static str, &str)]) -> Fields {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        Fields::parse(pairs.collect::<HeaderMap>(), None, HeaderCase::default()).unwrap()
    }

    #[test]
    fn plain_headers_stand_in_for_absent_ones_where_they_describe_the_content() {
        let fields = fields(&[
            ("content-type", "text/plain"),
            ("x-ms-blob-content-type", "text/html"),
            ("content-language", "de"),
            ("content-md5", "XrY7u+Ae7tCTyyK7j1rNww=="),
            ("content-disposition", "inline"),
        ]);
        let content = of_content(&fields).unwrap();
        assert_eq!(content.content_type.as_deref(), Some("text/html"));
        assert_eq!(content.content_language.as_deref(), Some("de"));
        assert_eq!((content.content_md5, content.content_disposition), (None, None));
        let blob = of_blob(&fields).unwrap();
        assert_eq!(blob, HttpProperties { content_type: Some("text/html".into()), ..HttpProperties::default() });
    }

    #[test]
    fn setting_one_clears_the_others() {
        assert_eq!(to_set(&fields(&[("content-type", "text/plain")])), Ok(None));
        let one = HttpProperties { cache_control: Some("no-cache".into()), ..cleared() };
        assert_eq!(to_set(&fields(&[("x-ms-blob-cache-control", "no-cache")])), Ok(Some(one)));
        assert_eq!(to_set(&fields(&[("x-ms-blob-content-type", "")])), Ok(Some(cleared())));
    }

    #[test]
    fn a_stored_md5_has_sixteen_bytes() {
        let md5 = fields(&[("x-ms-blob-content-md5", "XrY7u+Ae7tCTyyK7j1rNww==")]);
        assert!(of_blob(&md5).unwrap().content_md5.is_some());
        let short = fields(&[("x-ms-blob-content-md5", "XrY7")]);
        assert_eq!(of_blob(&short).unwrap_err().code, Code::InvalidMd5);
    }
}
