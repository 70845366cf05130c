//! Where records come from: one module a format. A source is fed with the bytes of the blob as they come, holds no more
//! than one record of them, and hands out record after record.

mod delimited;
mod json;
#[cfg(feature = "parquet")]
mod parquet;

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value as Json;

pub(super) use self::delimited::DelimitedSource;
pub(super) use self::json::JsonSource;
#[cfg(feature = "parquet")]
pub(super) use self::parquet::ParquetSource;
use super::sql::RowError;
use super::sql::evaluate::Record;
use super::sql::syntax::{FieldPath, Step};
use super::sql::value::Value;

/// Longest record of text, in bytes.
pub(super) const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Something wrong with the blob, as the answer tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Whether the query ends with it.
    pub(super) fatal: bool,
    /// What kind of thing it is.
    pub(super) name: &'static str,
    /// What it is.
    pub(super) description: String,
    /// The byte of the blob at which its record begins.
    pub(super) position: u64,
}

impl Fault {
    /// The blob is not what the request says.
    fn parse(description: impl Into<String>, position: u64) -> Self {
        Self { fatal: true, name: "ParseError", description: description.into(), position }
    }

    /// A record is longer than is ever held in memory.
    fn too_large(position: u64) -> Self {
        let description = format!("A record is larger than {RECORD_BYTES_MAX} bytes or has too many fields.");
        Self { fatal: true, name: "RecordTooLarge", description, position }
    }

    /// A record that is passed over.
    pub(super) fn of_row(error: &RowError, position: u64) -> Self {
        Self { fatal: false, name: error.name(), description: error.description().to_owned(), position }
    }
}

/// What a source has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A record: see [`Source::record`].
    Record,
    /// Nothing before it is fed.
    Input,
    /// Nothing more.
    End,
    /// A reason to have nothing more.
    Fault(Fault),
}

/// Where records come from.
pub(super) enum Source {
    /// Delimited text.
    Delimited(Box<DelimitedSource>),
    /// JSON documents.
    Json(Box<JsonSource>),
    /// Parquet, which reads the blob by itself.
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetSource>),
}

impl Source {
    /// Takes the next bytes of the blob; empty ones say that there are no more.
    pub(super) fn feed(&mut self, chunk: Bytes) {
        match self {
            Self::Delimited(source) => source.feed(chunk),
            Self::Json(source) => source.feed(chunk),
            #[cfg(feature = "parquet")]
            Self::Parquet(_) => {}
        }
    }

    /// Goes on to the next record.
    pub(super) fn next(&mut self) -> Next {
        match self {
            Self::Delimited(source) => source.next(),
            Self::Json(source) => source.next(),
            #[cfg(feature = "parquet")]
            Self::Parquet(source) => source.next(),
        }
    }

    /// The present record.
    pub(super) fn record(&self) -> Row<'_> {
        match self {
            Self::Delimited(source) => Row::Delimited(source.row()),
            Self::Json(source) => source.row(),
            #[cfg(feature = "parquet")]
            Self::Parquet(source) => source.row(),
        }
    }

    /// The byte of the blob at which the present record begins.
    pub(super) fn position(&self) -> u64 {
        match self {
            Self::Delimited(source) => source.position(),
            Self::Json(source) => source.position(),
            #[cfg(feature = "parquet")]
            Self::Parquet(_) => 0,
        }
    }

    /// Bytes of the blob up to the end of the present record.
    pub(super) fn scanned(&self) -> u64 {
        match self {
            Self::Delimited(source) => source.scanned(),
            Self::Json(source) => source.scanned(),
            #[cfg(feature = "parquet")]
            Self::Parquet(source) => source.scanned(),
        }
    }
}

/// A record.
pub(super) enum Row<'r> {
    /// Of delimited text.
    Delimited(delimited::Row<'r>),
    /// Of a JSON document.
    Json {
        /// The record.
        value: &'r Json,
        /// The document as it stands in the blob, if the record is all of it.
        text: Option<&'r [u8]>,
        /// The fields of the statement.
        fields: &'r [FieldPath],
    },
    /// Of columns.
    #[cfg(feature = "parquet")]
    Columns {
        /// The names of the columns.
        names: &'r [String],
        /// The values of the columns.
        values: &'r [Value<'static>],
        /// The fields of the statement.
        fields: &'r [FieldPath],
        /// The column of each field.
        columns: &'r [usize],
    },
}

/// The names of a record's fields, or of a result's columns.
pub(super) enum Names<'n> {
    /// Their places are their names.
    Ordinals,
    /// These.
    Given(&'n [String]),
    /// These, of an object.
    Keys(Vec<&'n str>),
}

impl Names<'_> {
    /// How many names there are beside ordinals.
    pub(super) fn known(&self) -> usize {
        match self {
            Self::Ordinals => 0,
            Self::Given(names) => names.len(),
            Self::Keys(keys) => keys.len(),
        }
    }

    /// The name of the field at `index`.
    pub(super) fn get(&self, index: usize) -> Cow<'_, str> {
        let given = match self {
            Self::Ordinals => None,
            Self::Given(names) => names.get(index).map(String::as_str),
            Self::Keys(keys) => keys.get(index).copied(),
        };
        given.map_or_else(|| format!("_{}", index + 1).into(), Into::into)
    }
}

impl<'r> Row<'r> {
    /// All fields.
    pub(super) fn all(&self) -> Result<(Names<'r>, Vec<Value<'r>>), RowError> {
        match self {
            Self::Delimited(row) => row.all(),
            Self::Json { value: Json::Object(members), .. } => {
                let keys = members.keys().map(String::as_str).collect();
                Ok((Names::Keys(keys), members.values().map(Value::of_json).collect()))
            }
            Self::Json { value, .. } => Ok((Names::Ordinals, vec![Value::of_json(value)])),
            #[cfg(feature = "parquet")]
            Self::Columns { names, values, .. } => {
                Ok((Names::Given(names), values.iter().map(Value::borrowed).collect()))
            }
        }
    }
}

impl Record for Row<'_> {
    fn field(&self, index: usize) -> Result<Value<'_>, RowError> {
        match self {
            Self::Delimited(row) => row.field(index),
            Self::Json { value, fields, .. } => {
                Ok(fields.get(index).map_or(Value::Missing, |field| found(value, field)))
            }
            #[cfg(feature = "parquet")]
            Self::Columns { values, fields, columns, .. } => {
                let value = columns.get(index).and_then(|column| values.get(*column)).unwrap_or(&Value::Missing);
                Ok(match (value, fields.get(index)) {
                    (Value::Json(json), Some(field)) if !field.rest.is_empty() => {
                        walk(json, &field.rest).map_or(Value::Missing, Value::of_json)
                    }
                    (_, Some(field)) if !field.rest.is_empty() => Value::Missing,
                    (value, _) => value.borrowed(),
                })
            }
        }
    }
}

/// The field of a JSON record.
fn found<'j>(record: &'j Json, field: &FieldPath) -> Value<'j> {
    let first = match record {
        Json::Object(_) => walk(record, &[Step::Member(field.name.clone())]),
        scalar if field.name.ordinal() == Some(1) => Some(scalar),
        _ => None,
    };
    first.and_then(|first| walk(first, &field.rest)).map_or(Value::Missing, Value::of_json)
}

/// What lies at the end of the way.
fn walk<'j>(mut value: &'j Json, way: &[Step]) -> Option<&'j Json> {
    for step in way {
        value = match (step, value) {
            (Step::Member(name), Json::Object(members)) => match members.get(&name.text) {
                Some(member) => member,
                None if name.exact => return None,
                None => members.iter().find(|(key, _)| name.means(key)).map(|(_, member)| member)?,
            },
            (Step::Element(index), Json::Array(elements)) => elements.get(*index)?,
            _ => return None,
        };
    }
    Some(value)
}

/// The columns that `fields` mean, among columns of these names.
fn resolve(names: &[String], fields: &[FieldPath], position: u64) -> Result<Vec<usize>, Fault> {
    let column = |field: &FieldPath| {
        let named = names.iter().position(|name| field.name.means(name));
        named.or_else(|| field.name.ordinal().map(|ordinal| ordinal - 1)).ok_or_else(|| Fault {
            fatal: true,
            name: "InvalidColumnName",
            description: format!("There is no column {}.", field.name.text),
            position,
        })
    };
    fields.iter().map(column).collect()
}

#[cfg(test)]
mod tests;
