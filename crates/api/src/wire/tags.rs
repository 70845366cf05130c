//! Tags in headers and bodies. <https://learn.microsoft.com/rest/api/storageservices/set-blob-tags>

pub mod expression;

use lazuli_engine::tags::{TagError, Tags};

use crate::code::Code;
use crate::error::Problem;
use crate::fields::{self, Fields};
use crate::wire::xml::{Document, Writer};

/// The header that carries the tags of a new blob.
pub const TAGS: &str = "x-ms-tags";

/// The tags of a new blob: pairs as in a query string.
///
/// Refuses `InvalidHeaderValue` and `InvalidTag`.
pub fn of_header(fields: &Fields) -> Result<Tags, Problem> {
    let Some(text) = fields.header_opt(TAGS)? else { return Ok(Tags::default()) };
    let malformed = || Problem::header(TAGS, text);
    let mut pairs = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(malformed)?;
        let decode = |text: &str| fields::decode_form(text).map_err(|_| malformed());
        pairs.push((decode(key)?, decode(value)?));
    }
    checked(pairs)
}

/// Reads the body of Set Blob Tags.
///
/// Refuses `InvalidXmlDocument` and `InvalidTag`.
pub fn parse(body: &[u8]) -> Result<Tags, Problem> {
    let mut document = Document::open(body, "Tags")?;
    let mut pairs = Vec::new();
    while let Some(name) = document.child()? {
        if name != "TagSet" {
            return Err(document.wrong("only TagSet belongs here"));
        }
        while let Some(name) = document.child()? {
            if name != "Tag" {
                return Err(document.wrong("only Tag belongs here"));
            }
            pairs.push(tag(&mut document)?);
        }
    }
    document.close()?;
    checked(pairs)
}

fn tag(document: &mut Document<'_>) -> Result<(String, String), Problem> {
    let (mut key, mut value) = (None, None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Key" if key.is_none() => key = Some(document.text()?),
            "Value" if value.is_none() => value = Some(document.text()?),
            _ => return Err(document.wrong("one Key and one Value belong here")),
        }
    }
    match (key, value) {
        (Some(key), Some(value)) => Ok((key, value)),
        _ => Err(document.wrong("a tag has a Key and a Value")),
    }
}

fn checked(pairs: Vec<(String, String)>) -> Result<Tags, Problem> {
    Tags::new(pairs).map_err(|error| {
        Problem::new(Code::InvalidTag).saying(match error {
            TagError::TooMany => "A blob has at most 10 tags.",
            TagError::Duplicate => "Two tags have the same key.",
            TagError::Length => "A tag's key has 1 to 128 characters, its value at most 256.",
            TagError::Characters => "Tags have letters, digits, blanks and + - . / : = _ only.",
        })
    })
}

/// The body of Get Blob Tags.
pub fn document(tags: &Tags) -> Vec<u8> {
    let mut xml = Writer::begin();
    element(&mut xml, tags.pairs());
    xml.finish()
}

/// The element `Tags`.
pub fn element(xml: &mut Writer, pairs: &[(String, String)]) {
    xml.open("Tags");
    if pairs.is_empty() {
        xml.empty("TagSet");
    } else {
        xml.open("TagSet");
        for (key, value) in pairs {
            xml.open("Tag");
            xml.text("Key", key);
            xml.text("Value", value);
            xml.close("Tag");
        }
        xml.close("TagSet");
    }
    xml.close("Tags");
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::head::HeaderCase;

    fn header(text: &str) -> Result<Vec<(String, String)>, Code> {
        let headers = HeaderMap::from_iter([(HeaderName::from_static(TAGS), HeaderValue::from_str(text).unwrap())]);
        let fields = Fields::parse(headers, None, HeaderCase::default()).unwrap();
        of_header(&fields).map(|tags| tags.pairs().to_vec()).map_err(|problem| problem.code)
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.into(), value.into())
    }

    #[test]
    fn a_header_carries_pairs_like_a_query() {
        let cases = [
            ("a=1", Ok(vec![pair("a", "1")])),
            ("b=&a=x%20y", Ok(vec![pair("a", "x y"), pair("b", "")])),
            ("a=x+y%2Bz", Ok(vec![pair("a", "x y+z")])),
            ("", Ok(vec![])),
            ("a", Err(Code::InvalidHeaderValue)),
            ("a=%zz", Err(Code::InvalidHeaderValue)),
            ("a=%C3%A9", Err(Code::InvalidTag)),
            ("a=1&a=2", Err(Code::InvalidTag)),
            ("=1", Err(Code::InvalidTag)),
        ];
        for (text, expected) in cases {
            assert_eq!(header(text), expected, "{text}");
        }
    }

    #[test]
    fn a_document_comes_back_as_it_went() {
        let tags = Tags::new(vec![pair("b", ""), pair("a", "1 + 1")]).unwrap();
        let text = document(&tags);
        assert_eq!(
            String::from_utf8(text.clone()).unwrap(),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet><Tag><Key>a</Key><Value>1 + 1</Value></Tag>\
             <Tag><Key>b</Key><Value /></Tag></TagSet></Tags>"
        );
        assert_eq!(parse(&text), Ok(tags));
        assert_eq!(parse(b"<Tags><TagSet /></Tags>"), Ok(Tags::default()));
    }

    #[test]
    fn a_wrong_document_is_refused() {
        let cases = [
            ("", Code::InvalidXmlDocument),
            ("<Tags><Tag/></Tags>", Code::InvalidXmlDocument),
            ("<Tags><TagSet><Tag><Key>a</Key></Tag></TagSet></Tags>", Code::InvalidXmlDocument),
            ("<Tags><TagSet><Tag><Key>a</Key><Value/><Value/></Tag></TagSet></Tags>", Code::InvalidXmlDocument),
            ("<Tags><TagSet><Tag><Key/><Value/></Tag></TagSet></Tags>", Code::InvalidTag),
            ("<Tags><TagSet><Tag><Key>%</Key><Value/></Tag></TagSet></Tags>", Code::InvalidTag),
        ];
        for (text, code) in cases {
            assert_eq!(parse(text.as_bytes()).unwrap_err().code, code, "{text}");
        }
    }
}
