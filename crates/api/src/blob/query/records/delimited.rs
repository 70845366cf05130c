//! Records of delimited text.

use bytes::{Buf, Bytes};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use super::{Fault, Names, Next, RECORD_BYTES_MAX, resolve};
use crate::blob::query::request::Delimited;
use crate::blob::query::sql::RowError;
use crate::blob::query::sql::syntax::FieldPath;
use crate::blob::query::sql::value::Value;

/// Most fields of a record.
const FIELDS_MAX: usize = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads delimited text.
pub(in crate::blob::query) struct DelimitedSource {
    parser: Reader,
    chunk: Bytes,
    /// Whether no more bytes come.
    closed: bool,
    record: Parts,
    /// Bytes consumed.
    scanned: u64,
    position: u64,
    /// The byte consumed last.
    last: u8,
    /// Whether a carriage return before the end of a record belongs to that end.
    trims: bool,
    header: Header,
    fields: Vec<FieldPath>,
    columns: Vec<usize>,
}

/// The names of the columns.
enum Header {
    None,
    Due,
    Read(Vec<String>),
}

/// A record being read, or read.
#[derive(Default)]
struct Parts {
    /// The fields one behind the other.
    text: Vec<u8>,
    text_end: usize,
    /// Where each field ends.
    ends: Vec<usize>,
    ends_end: usize,
    /// Whether it is read to its end.
    complete: bool,
}

impl DelimitedSource {
    /// A source of records in `format`, of which the statement names `fields`.
    pub(in crate::blob::query) fn new(format: &Delimited, fields: Vec<FieldPath>) -> Self {
        let terminator = format.record.bytes().last().unwrap_or(b'\n');
        let mut builder = ReaderBuilder::new();
        builder.delimiter(format.column).terminator(Terminator::Any(terminator)).escape(format.escape);
        match format.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        let columns = fields.iter().map(|field| field.name.ordinal().unwrap_or(1) - 1).collect();
        Self {
            parser: builder.build(),
            chunk: Bytes::new(),
            closed: false,
            record: Parts { text: vec![0; 4096], ends: vec![0; 64], ..Parts::default() },
            scanned: 0,
            position: 0,
            last: 0,
            trims: terminator == b'\n',
            header: if format.headers { Header::Due } else { Header::None },
            fields,
            columns,
        }
    }

    pub(super) fn feed(&mut self, chunk: Bytes) {
        self.closed = chunk.is_empty();
        self.chunk = chunk;
        // The parser passes over a byte order mark, but must not be left with nothing by that: it would be the end.
        if self.scanned == 0 && self.chunk == BYTE_ORDER_MARK {
            self.scanned = self.chunk.len() as u64;
            self.chunk.clear();
        }
    }

    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    pub(super) const fn scanned(&self) -> u64 {
        self.scanned
    }

    pub(super) fn next(&mut self) -> Next {
        loop {
            match self.read() {
                Next::Record if self.record.is_blank() => {}
                Next::Record if matches!(self.header, Header::Due) => {
                    let names: Vec<String> =
                        self.record.texts().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
                    match resolve(&names, &self.fields, self.position) {
                        Ok(columns) => self.columns = columns,
                        Err(fault) => return Next::Fault(fault),
                    }
                    self.header = Header::Read(names);
                }
                next => return next,
            }
        }
    }

    /// Forgets the present record, which was handed out.
    fn begin(&mut self) {
        (self.record.text_end, self.record.ends_end, self.record.complete) = (0, 0, false);
        self.position = self.scanned;
    }

    fn read(&mut self) -> Next {
        if self.record.complete {
            self.begin();
        }
        loop {
            if self.chunk.is_empty() && !self.closed {
                return Next::Input;
            }
            let record = &mut self.record;
            let text = record.text.get_mut(record.text_end..).unwrap_or_default();
            let ends = record.ends.get_mut(record.ends_end..).unwrap_or_default();
            let (result, read, written, ended) = self.parser.read_record(&self.chunk, text, ends);
            record.text_end += written;
            record.ends_end += ended;
            let before = match self.chunk.get(..read) {
                Some([.., before, last]) => (*before, *last),
                Some([last]) => (self.last, *last),
                _ => (self.last, self.last),
            };
            self.last = before.1;
            self.scanned += read as u64;
            self.chunk.advance(read);
            match result {
                ReadRecordResult::Record => {
                    record.complete = true;
                    if self.trims && before.0 == b'\r' {
                        record.cut();
                    }
                    return Next::Record;
                }
                ReadRecordResult::End => return Next::End,
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if record.text.len() >= RECORD_BYTES_MAX => {
                    return Next::Fault(Fault::too_large(self.position));
                }
                ReadRecordResult::OutputFull => record.text.resize(record.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if record.ends.len() >= FIELDS_MAX => {
                    return Next::Fault(Fault::too_large(self.position));
                }
                ReadRecordResult::OutputEndsFull => record.ends.resize(record.ends.len() * 2, 0),
            }
        }
    }
}

impl DelimitedSource {
    pub(super) fn row(&self) -> Row<'_> {
        let names = match &self.header {
            Header::Read(names) => Some(names.as_slice()),
            Header::None | Header::Due => None,
        };
        Row { record: &self.record, names, columns: &self.columns }
    }
}

impl Parts {
    /// The fields.
    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends_end).filter_map(|index| self.text(index))
    }

    fn text(&self, index: usize) -> Option<&[u8]> {
        let ends = self.ends.get(..self.ends_end)?;
        let first = index.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
        self.text.get(first..*ends.get(index)?)
    }

    /// Whether there is nothing: an empty line is no record.
    fn is_blank(&self) -> bool {
        self.ends_end <= 1 && self.text_end == 0
    }

    /// Takes a carriage return off the end of the last field.
    fn cut(&mut self) {
        let Some(last) = self.ends_end.checked_sub(1) else { return };
        if self.text(last).is_some_and(|text| text.ends_with(b"\r")) {
            self.text_end -= 1;
            if let Some(end) = self.ends.get_mut(last) {
                *end -= 1;
            }
        }
    }
}

/// A record of delimited text.
pub(in crate::blob::query) struct Row<'r> {
    record: &'r Parts,
    names: Option<&'r [String]>,
    columns: &'r [usize],
}

impl<'r> Row<'r> {
    pub(super) fn all(&self) -> Result<(Names<'r>, Vec<Value<'r>>), RowError> {
        let names = self.names.map_or(Names::Ordinals, Names::Given);
        let values: Result<_, _> = self.record.texts().map(value).collect();
        Ok((names, values?))
    }

    pub(super) fn field(&self, index: usize) -> Result<Value<'r>, RowError> {
        let text = self.columns.get(index).and_then(|column| self.record.text(*column));
        value(text.ok_or(RowError::InvalidColumnOrdinal)?)
    }
}

fn value(text: &[u8]) -> Result<Value<'_>, RowError> {
    match std::str::from_utf8(text) {
        Ok(text) => Ok(Value::Text(text.into())),
        Err(_) => Err(RowError::InvalidTextEncoding),
    }
}
