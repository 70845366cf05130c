//! Rows of Parquet. The format is read from its end and in places, so the source reads the blob by itself: page by
//! page, only of the columns that the statement names.

use std::borrow::Cow;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes, BytesMut};
use jiff::Timestamp;
use lazuli_engine::blob::content::Reader;
use lazuli_engine::range::ByteRange;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, FileReader as _, Length, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row as ParquetRow};
use parquet::schema::types::Type;
use serde_json::Value as Json;
use tokio::runtime::Handle;

use super::{Fault, Next, Row, resolve};
use crate::blob::query::sql::moment::Moment;
use crate::blob::query::sql::syntax::FieldPath;
use crate::blob::query::sql::value::Value;

/// Largest page or footer, as it is stored, in bytes.
const PART_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reads Parquet. It waits for bytes, so it must be used where that is allowed.
pub(in crate::blob::query) struct ParquetSource {
    blob: Arc<Blob>,
    fields: Vec<FieldPath>,
    /// Whether all columns are wanted.
    all: bool,
    opened: Option<Opened>,
    values: Vec<Value<'static>>,
}

/// A file whose footer is read.
struct Opened {
    rows: RowIter<'static>,
    /// The names of the columns that are read.
    names: Vec<String>,
    /// For each field of the statement its column among these.
    columns: Vec<usize>,
}

impl ParquetSource {
    /// A source of the rows of a whole blob, of which the statement names `fields`. `reader` has not been read from.
    pub(in crate::blob::query) fn new(reader: &Reader, fields: Vec<FieldPath>, all: bool) -> Self {
        let length = reader.remaining();
        let blob = Blob {
            reader: reader.part(ByteRange { first: 0, length }),
            length,
            runtime: Handle::current(),
            read: AtomicU64::new(0),
            broken: AtomicBool::new(false),
        };
        Self { blob: Arc::new(blob), fields, all, opened: None, values: Vec::new() }
    }

    pub(super) fn scanned(&self) -> u64 {
        self.blob.read.load(Ordering::Relaxed).min(self.blob.length)
    }

    pub(super) fn row(&self) -> Row<'_> {
        let (names, columns): (&[String], &[usize]) =
            self.opened.as_ref().map_or((&[], &[]), |opened| (&opened.names, &opened.columns));
        Row::Columns { names, values: &self.values, fields: &self.fields, columns }
    }

    pub(super) fn next(&mut self) -> Next {
        let opened = match &mut self.opened {
            Some(opened) => opened,
            None => match self.open() {
                Ok(opened) => self.opened.insert(opened),
                Err(fault) => return Next::Fault(fault),
            },
        };
        match opened.rows.next() {
            None => Next::End,
            Some(Ok(row)) => {
                self.values = row.get_column_iter().map(|(_, field)| value(field)).collect();
                Next::Record
            }
            Some(Err(error)) => Next::Fault(self.fault(&error)),
        }
    }

    fn open(&self) -> Result<Opened, Fault> {
        let failed = |error: ParquetError| self.fault(&error);
        let file = SerializedFileReader::new(Shared(Arc::clone(&self.blob))).map_err(failed)?;
        let schema = file.metadata().file_metadata().schema();
        let all: Vec<String> = schema.get_fields().iter().map(|column| column.name().to_owned()).collect();
        let meant = resolve(&all, &self.fields, 0)?;
        if meant.iter().any(|column| *column >= all.len()) {
            let description = "A column has a number beyond the last column's.".to_owned();
            return Err(Fault { fatal: true, name: "InvalidColumnOrdinal", description, position: 0 });
        }
        // Rows are counted by the first column if by none.
        let read: Vec<usize> = (0..all.len())
            .filter(|column| self.all || meant.contains(column) || (meant.is_empty() && *column == 0))
            .collect();
        let wanted = read.iter().filter_map(|column| schema.get_fields().get(*column).cloned()).collect();
        let projection = Type::group_type_builder(schema.name()).with_fields(wanted).build().map_err(failed)?;
        let rows = RowIter::from_file_into(Box::new(file)).project(Some(projection)).map_err(failed)?;
        let names = read.iter().filter_map(|column| all.get(*column).cloned()).collect();
        let columns = meant.iter().filter_map(|column| read.binary_search(column).ok()).collect();
        Ok(Opened { rows, names, columns })
    }

    fn fault(&self, error: &ParquetError) -> Fault {
        if self.blob.broken.load(Ordering::Relaxed) {
            let description = "The blob cannot be read.".to_owned();
            return Fault { fatal: true, name: "InternalError", description, position: self.scanned() };
        }
        Fault::parse(error.to_string(), self.scanned())
    }
}

/// The blob, read in places.
struct Blob {
    /// Never read from: parts are made of it.
    reader: Reader,
    length: u64,
    runtime: Handle,
    /// Bytes read.
    read: AtomicU64,
    /// Whether the store failed.
    broken: AtomicBool,
}

#[derive(Clone)]
struct Shared(Arc<Blob>);

impl Length for Shared {
    fn len(&self) -> u64 {
        self.0.length
    }
}

impl ChunkReader for Shared {
    type T = Part;

    fn get_read(&self, start: u64) -> ParquetResult<Part> {
        let length = self.0.length.checked_sub(start).ok_or_else(|| beyond(start))?;
        let reader = self.0.reader.part(ByteRange { first: start, length });
        Ok(Part { blob: Arc::clone(&self.0), reader, chunk: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if length > PART_BYTES_MAX {
            return Err(ParquetError::General(format!("a page or footer is larger than {PART_BYTES_MAX} bytes")));
        }
        let length = length as u64;
        if start.checked_add(length).is_none_or(|end| end > self.0.length) {
            return Err(beyond(start));
        }
        let mut part = Part {
            blob: Arc::clone(&self.0),
            reader: self.0.reader.part(ByteRange { first: start, length }),
            chunk: Bytes::new(),
        };
        let mut whole = BytesMut::new();
        loop {
            let chunk = part.next()?;
            if chunk.is_empty() {
                return Ok(whole.freeze());
            }
            whole.extend_from_slice(&chunk);
        }
    }
}

fn beyond(start: u64) -> ParquetError {
    ParquetError::EOF(format!("byte {start} lies beyond the end"))
}

/// Bytes of the blob from some place on.
struct Part {
    blob: Arc<Blob>,
    reader: Reader,
    chunk: Bytes,
}

impl Part {
    fn next(&mut self) -> io::Result<Bytes> {
        match self.blob.runtime.block_on(self.reader.next()) {
            Ok(chunk) => {
                let chunk = chunk.unwrap_or_default();
                self.blob.read.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                Ok(chunk)
            }
            Err(error) => {
                tracing::error!(%error, "a query cannot read its blob");
                self.blob.broken.store(true, Ordering::Relaxed);
                Err(io::Error::other("the store failed"))
            }
        }
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() {
            self.chunk = self.next()?;
        }
        let length = buffer.len().min(self.chunk.len());
        if let Some(filled) = buffer.get_mut(..length) {
            self.chunk.copy_to_slice(filled);
        }
        Ok(length)
    }
}

/// A field as a value of the language.
fn value(field: &Field) -> Value<'static> {
    match field {
        Field::Null => Value::Null,
        Field::Bool(boolean) => Value::Boolean(*boolean),
        Field::Byte(integer) => Value::Integer((*integer).into()),
        Field::Short(integer) => Value::Integer((*integer).into()),
        Field::Int(integer) => Value::Integer((*integer).into()),
        Field::Long(integer) => Value::Integer(*integer),
        Field::UByte(integer) => Value::Integer((*integer).into()),
        Field::UShort(integer) => Value::Integer((*integer).into()),
        Field::UInt(integer) => Value::Integer((*integer).into()),
        Field::ULong(integer) => match i64::try_from(*integer) {
            Ok(integer) => Value::Integer(integer),
            #[expect(clippy::cast_precision_loss, reason = "beyond INT there is only FLOAT")]
            Err(_) => Value::Float(*integer as f64),
        },
        Field::Float16(float) => Value::Float(f64::from(*float)),
        Field::Float(float) => Value::Float((*float).into()),
        Field::Double(float) => Value::Float(*float),
        Field::Decimal(_) => {
            let text = field.to_string();
            text.parse().map_or_else(|_| Value::Text(text.clone().into()), Value::Float)
        }
        Field::Str(text) => Value::Text(text.clone().into()),
        Field::Bytes(bytes) => Value::Text(bytes_text(bytes.data()).into()),
        Field::TimestampMillis(millis) => moment(Timestamp::from_millisecond(*millis)),
        Field::TimestampMicros(micros) => moment(Timestamp::from_microsecond(*micros)),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => Value::Json(Cow::Owned(json(field))),
        // Dates and times of day.
        other => Value::Text(other.to_string().into()),
    }
}

fn moment(instant: Result<Timestamp, jiff::Error>) -> Value<'static> {
    instant.map_or(Value::Null, |instant| Value::Moment(Moment::utc(instant)))
}

/// Bytes as text: as they are if they are UTF-8, else in Base64.
fn bytes_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => STANDARD.encode(bytes),
    }
}

/// A field as JSON.
fn json(field: &Field) -> Json {
    match field {
        Field::Group(row) => group(row),
        Field::ListInternal(list) => list.elements().iter().map(json).collect(),
        Field::MapInternal(map) => {
            let key = |key: &Field| value(key).text().map(Cow::into_owned).unwrap_or_default();
            map.entries().iter().map(|(name, member)| (key(name), json(member))).collect()
        }
        plain => match value(plain) {
            Value::Boolean(boolean) => Json::Bool(boolean),
            Value::Integer(integer) => Json::from(integer),
            Value::Float(float) => Json::from(float),
            other => other.text().map_or(Json::Null, |text| Json::String(text.into_owned())),
        },
    }
}

fn group(row: &ParquetRow) -> Json {
    row.get_column_iter().map(|(name, member)| (name.clone(), json(member))).collect()
}
