//! Records of JSON documents that stand one behind the other. Of a document that is an array, every element is one.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use serde_json::Value as Json;

use super::{Fault, Next, RECORD_BYTES_MAX, Row};
use crate::blob::query::sql::syntax::{FieldPath, Step};

/// Most values of a document: each takes some dozen bytes of memory, however short it is written.
const VALUES_MAX: usize = 256 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads JSON documents.
pub(in crate::blob::query) struct JsonSource {
    chunk: Bytes,
    /// Whether no more bytes come.
    closed: bool,
    scanned: u64,
    /// What may stand between documents beside white space.
    separator: String,
    /// The document being read, as it stands in the blob.
    text: Vec<u8>,
    place: Place,
    list: List,
    /// Values of the document so far, at most.
    values: usize,
    position: u64,
    from: Vec<Step>,
    fields: Vec<FieldPath>,
    /// Records of the last document that were not handed out.
    records: VecDeque<Json>,
    present: Json,
}

/// Where the next byte stands.
#[derive(Clone, Copy)]
enum Place {
    /// Between documents.
    Between,
    /// In a document so deep, or at 0 in a scalar.
    Inside(usize),
    /// In a text of a document.
    Text { depth: usize, escaped: bool },
}

/// The array whose elements are the documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    /// There is none.
    None,
    /// It begins: an element or the end is due.
    Begun,
    /// An element is due.
    Element,
    /// A comma or the end is due.
    Comma,
}

impl JsonSource {
    /// A source of what lies at the end of the way `from`, of which the statement names `fields`.
    pub(in crate::blob::query) fn new(separator: &str, from: Vec<Step>, fields: Vec<FieldPath>) -> Self {
        Self {
            chunk: Bytes::new(),
            closed: false,
            scanned: 0,
            separator: separator.to_owned(),
            text: Vec::new(),
            place: Place::Between,
            list: List::None,
            values: 0,
            position: 0,
            from,
            fields,
            records: VecDeque::new(),
            present: Json::Null,
        }
    }

    pub(super) fn feed(&mut self, chunk: Bytes) {
        self.closed = chunk.is_empty();
        self.chunk = chunk;
        if self.scanned == 0 && self.chunk.starts_with(BYTE_ORDER_MARK) {
            self.consume(BYTE_ORDER_MARK.len());
        }
    }

    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    pub(super) const fn scanned(&self) -> u64 {
        self.scanned
    }

    pub(super) fn row(&self) -> Row<'_> {
        let text = self.from.is_empty().then_some(self.text.as_slice());
        Row::Json { value: &self.present, text, fields: &self.fields }
    }

    pub(super) fn next(&mut self) -> Next {
        loop {
            if let Some(record) = self.records.pop_front() {
                self.present = record;
                return Next::Record;
            }
            match self.document() {
                Next::Record => {
                    let document = match serde_json::from_slice(&self.text) {
                        Ok(document) => document,
                        Err(error) => return Next::Fault(Fault::parse(error.to_string(), self.position)),
                    };
                    descend(document, &self.from, &mut self.records);
                }
                other => return other,
            }
        }
    }

    /// Reads up to the end of a document.
    fn document(&mut self) -> Next {
        if let Place::Between = self.place {
            match self.begin() {
                Next::Record => {}
                other => return other,
            }
        }
        match self.inside() {
            Some(next) => next,
            None if self.text.len() > RECORD_BYTES_MAX || self.values > VALUES_MAX => {
                Next::Fault(Fault::too_large(self.position))
            }
            None if self.closed => Next::Fault(Fault::parse("The document does not end.", self.position)),
            None => Next::Input,
        }
    }

    fn ended(&mut self) -> Next {
        self.place = Place::Between;
        Next::Record
    }

    /// Passes over what stands between documents, up to the first byte of one.
    fn begin(&mut self) -> Next {
        loop {
            let Some(&byte) = self.chunk.first() else {
                return match (self.closed, self.list) {
                    (false, _) => Next::Input,
                    (true, List::None) => Next::End,
                    (true, _) => Next::Fault(Fault::parse("The array does not end.", self.scanned)),
                };
            };
            match (byte, self.list) {
                (b' ' | b'\t' | b'\r' | b'\n', _) => {}
                (b'[', List::None) => self.list = List::Begun,
                (b']', List::Begun | List::Comma) => self.list = List::None,
                (b',', List::Comma) => self.list = List::Element,
                (b'{', List::None)
                | (b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n', List::Begun | List::Element) => {
                    self.text.clear();
                    self.values = 0;
                    self.position = self.scanned;
                    self.place = Place::Inside(0);
                    if self.list != List::None {
                        self.list = List::Comma;
                    }
                    return Next::Record;
                }
                (_, List::None) if self.separator.as_bytes().contains(&byte) => {}
                (byte, list) => {
                    let due = if list == List::Comma { "',', or ']'" } else { "'{', or '['" };
                    let token = char::from(byte).escape_default();
                    let at = self.scanned;
                    let reason = format!("Unexpected token '{token}' at [byte: {at}]. Expecting tokens {due}.");
                    return Next::Fault(Fault::parse(reason, self.scanned));
                }
            }
            self.consume(1);
        }
    }

    /// Reads on in a document; nothing when the bytes are used up before its end.
    fn inside(&mut self) -> Option<Next> {
        let mut length = 0;
        let mut end = false;
        for &byte in &self.chunk {
            // A scalar ends before what follows it.
            if matches!(self.place, Place::Inside(0)) && matches!(byte, b',' | b']' | b' ' | b'\t' | b'\r' | b'\n') {
                end = true;
                break;
            }
            length += 1;
            self.place = match (self.place, byte) {
                (Place::Text { depth, escaped: true }, _) => Place::Text { depth, escaped: false },
                (Place::Text { depth, .. }, b'\\') => Place::Text { depth, escaped: true },
                (Place::Text { depth, .. }, b'"') => Place::Inside(depth),
                (Place::Inside(depth), b'"') => Place::Text { depth, escaped: false },
                (Place::Inside(depth), b'{' | b'[') => {
                    self.values += 1;
                    Place::Inside(depth + 1)
                }
                (Place::Inside(depth), b'}' | b']') => Place::Inside(depth.saturating_sub(1)),
                (Place::Inside(depth), b',') => {
                    self.values += 1;
                    Place::Inside(depth)
                }
                (place, _) => place,
            };
            if matches!(self.place, Place::Inside(0)) && matches!(byte, b'}' | b']' | b'"') {
                end = true;
                break;
            }
        }
        self.text.extend_from_slice(self.chunk.get(..length).unwrap_or_default());
        self.consume(length);
        end.then(|| self.ended())
    }

    fn consume(&mut self, length: usize) {
        self.chunk.advance(length);
        self.scanned += length as u64;
    }
}

/// Adds what lies at the end of the way. A value that is no array is its own only element.
fn descend(value: Json, way: &[Step], found: &mut VecDeque<Json>) {
    let Some((step, rest)) = way.split_first() else {
        return found.push_back(value);
    };
    match (step, value) {
        (Step::Every, Json::Array(elements)) => elements.into_iter().for_each(|element| descend(element, rest, found)),
        (Step::Every, value) => descend(value, rest, found),
        (Step::Element(index), Json::Array(mut elements)) if *index < elements.len() => {
            descend(elements.swap_remove(*index), rest, found);
        }
        (Step::Member(name), Json::Object(mut members)) => {
            let key = match members.contains_key(&name.text) {
                true => Some(name.text.clone()),
                false => members.keys().find(|key| name.means(key)).cloned(),
            };
            if let Some(member) = key.and_then(|key| members.swap_remove(&key)) {
                descend(member, rest, found);
            }
        }
        _ => {}
    }
}
