//! Reading and writing of the service's small XML documents. <https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api>
//!
//! The reader is strict: UTF-8, one root, no document type, no entities but the five predefined and character
//! references, no text between elements. Attributes and namespaces say nothing here and are passed over.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::{partial_escape, resolve_predefined_entity};
use quick_xml::events::{BytesRef, Event};

use crate::code::Code;
use crate::error::Problem;

/// A document being read, element by element. After an error it is of no further use. Nothing is skipped: an element
/// that its reader does not ask for is an error, so a document cannot nest deeper than what it stands for.
pub struct Document<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    depth: usize,
}

impl<'a> Document<'a> {
    /// Reads up to and into the root element.
    ///
    /// Refuses `InvalidXmlDocument` for anything else than a document whose root is `root`.
    pub fn open(bytes: &'a [u8], root: &str) -> Result<Self, Problem> {
        let text = std::str::from_utf8(bytes).map_err(|_| malformed("the document is not UTF-8"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !text.chars().all(is_legal) {
            return Err(malformed("there is a character that XML does not have"));
        }
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        let mut document = Self { text, reader, depth: 0 };
        match document.child()? {
            Some(name) if name == root => Ok(document),
            Some(_) => Err(document.wrong(&format!("the root element is not {root}"))),
            None => Err(document.wrong("there is no root element")),
        }
    }

    /// Enters the next child of the current element and answers its name; leaves the element if there is none.
    pub fn child(&mut self) -> Result<Option<String>, Problem> {
        loop {
            match self.event()? {
                // An empty element comes as a start and an end: see `open`.
                Event::Start(start) | Event::Empty(start) => {
                    if start.attributes().any(|attribute| attribute.is_err()) {
                        return Err(self.wrong("an attribute is malformed"));
                    }
                    self.depth += 1;
                    return Ok(Some(start.name().as_ref().to_owned()));
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(None);
                }
                Event::Text(text) if text.trim_ascii().is_empty() => {}
                Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {
                    return Err(self.wrong("there is text where an element belongs"));
                }
                Event::DocType(_) => return Err(self.wrong("document types are not allowed")),
                Event::Eof if self.depth == 0 => return Ok(None),
                Event::Eof => return Err(self.wrong("the document ends too early")),
            }
        }
    }

    /// The text of the current element, which is left.
    pub fn text(&mut self) -> Result<String, Problem> {
        let mut whole = String::new();
        loop {
            match self.event()? {
                Event::Text(text) => whole.push_str(&text),
                Event::CData(text) => whole.push_str(&text),
                Event::GeneralRef(reference) => match resolved(&reference) {
                    Some(text) => whole.push_str(&text),
                    None => return Err(self.wrong("an entity is not known")),
                },
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(whole);
                }
                Event::Comment(_) | Event::PI(_) => {}
                Event::Start(_) | Event::Empty(_) => return Err(self.wrong("there is an element where text belongs")),
                Event::Decl(_) | Event::DocType(_) => return Err(self.wrong("a declaration is out of place")),
                Event::Eof => return Err(self.wrong("the document ends too early")),
            }
        }
    }

    /// Sees to it that nothing follows the root element, which has been left.
    pub fn close(mut self) -> Result<(), Problem> {
        match self.child()? {
            None => Ok(()),
            Some(_) => Err(self.wrong("there is more than one root element")),
        }
    }

    /// An `InvalidXmlDocument` at the present place.
    pub fn wrong(&self, reason: &str) -> Problem {
        let end = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
        let before = self.text.as_bytes().get(..end).unwrap_or(self.text.as_bytes());
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let position = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        malformed(reason).detail("LineNumber", line.to_string()).detail("LinePosition", position.to_string())
    }

    fn event(&mut self) -> Result<Event<'a>, Problem> {
        match self.reader.read_event() {
            Ok(event) => Ok(event),
            Err(error) => Err(self.wrong(&error.to_string())),
        }
    }
}

/// A node whose value cannot be used.
pub fn node_value(name: &'static str, value: &str, reason: &str) -> Problem {
    Problem::new(Code::InvalidXmlNodeValue)
        .detail("XmlNodeName", name)
        .detail("XmlNodeValue", value)
        .detail("Reason", reason)
}

fn malformed(reason: &str) -> Problem {
    Problem::new(Code::InvalidXmlDocument).detail("Reason", reason)
}

/// Whether XML 1.0 has the character.
fn is_legal(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

fn resolved(reference: &BytesRef<'_>) -> Option<Cow<'static, str>> {
    match reference.resolve_char_ref() {
        Ok(Some(character)) if is_legal(character) => Some(Cow::Owned(character.to_string())),
        Ok(Some(_)) | Err(_) => None,
        Ok(None) => resolve_predefined_entity(reference).map(Cow::Borrowed),
    }
}

/// A document being written.
pub struct Writer(String);

impl Writer {
    /// A document that begins with its declaration.
    pub fn begin() -> Self {
        Self(r#"<?xml version="1.0" encoding="utf-8"?>"#.to_owned())
    }

    /// Begins an element. `name` is one of ours or valid as a name.
    pub fn open(&mut self, name: &str) {
        self.raw(&["<", name, ">"]);
    }

    /// Begins an element with attributes.
    pub fn open_with(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.raw(&["<", name]);
        for (name, value) in attributes {
            self.raw(&[" ", name, "=\"", &partial_escape(*value).replace('"', "&quot;"), "\""]);
        }
        self.raw(&[">"]);
    }

    /// Ends an element.
    pub fn close(&mut self, name: &str) {
        self.raw(&["</", name, ">"]);
    }

    /// An element without content.
    pub fn empty(&mut self, name: &str) {
        self.raw(&["<", name, " />"]);
    }

    /// An element with text; `<name />` if the text is empty.
    pub fn text(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return self.empty(name);
        }
        self.open(name);
        self.content(text);
        self.close(name);
    }

    /// An element with text, if there is any to say.
    pub fn text_opt(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Text inside the element just begun.
    pub fn content(&mut self, text: &str) {
        self.0.push_str(&partial_escape(text));
    }

    /// The document.
    pub fn finish(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    fn raw(&mut self, parts: &[&str]) {
        for part in parts {
            self.0.push_str(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(bytes: &[u8]) -> Result<Vec<(String, String)>, Problem> {
        let mut document = Document::open(bytes, "Root")?;
        let mut pairs = Vec::new();
        while let Some(name) = document.child()? {
            pairs.push((name, document.text()?));
        }
        document.close()?;
        Ok(pairs)
    }

    #[test]
    fn elements_and_their_texts_are_read_in_order() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("<Root/>", &[]),
            ("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<Root>\n</Root>\n", &[]),
            ("<Root><a>1</a><b/><a x='y'>2</a></Root>", &[("a", "1"), ("b", ""), ("a", "2")]),
            ("<Root><a>x &amp; y&lt;&#65;&#x42;</a></Root>", &[("a", "x & y<AB")]),
            ("<Root><!-- c --><a><![CDATA[<b>]]></a></Root>", &[("a", "<b>")]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            assert_eq!(pairs(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not_a_document() {
        let deep = format!("<Root>{}", "<a>".repeat(100_000));
        let cases = [
            "",
            "  ",
            "text",
            "<Root>",
            "<Root><a></Root>",
            "<Root></a></Root>",
            "<Other/>",
            "<Root/><Root/>",
            "<Root/>x",
            "<Root>x</Root>",
            "<Root><a><b/></a></Root>",
            "<Root><a>&unknown;</a></Root>",
            "<Root><a>&#0;</a></Root>",
            "<Root><a>&#1;</a></Root>",
            "<Root><a>\u{1}</a></Root>",
            "<Root><a>\u{ffff}</a></Root>",
            "<Root><a b=c>1</a></Root>",
            "<Root><a b='1' b='2'>1</a></Root>",
            "<!DOCTYPE Root [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><Root><a>&e;</a></Root>",
            "<Root><a",
            &deep,
        ];
        for text in cases {
            let code = pairs(text.as_bytes()).map_err(|problem| problem.code);
            assert_eq!(code, Err(Code::InvalidXmlDocument), "{text:.60}");
        }
        assert!(pairs(b"<Root>\xff</Root>").is_err());
    }

    #[test]
    fn an_error_names_its_place() {
        let problem = pairs(b"<Root>\n  <a>&no;</a></Root>").unwrap_err();
        assert!(problem.details.contains(&("LineNumber", "2".to_owned())), "{problem:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = pairs(&bytes);
        }

        #[test]
        fn what_is_written_can_be_read(text in "[ -~äöü€\r\n\t]{0,40}") {
            let mut writer = Writer::begin();
            writer.open_with("Root", &[("x", &text)]);
            writer.text("a", &text);
            writer.close("Root");
            prop_assert_eq!(pairs(&writer.finish()), Ok(vec![("a".to_owned(), text)]));
        }
    }
}
