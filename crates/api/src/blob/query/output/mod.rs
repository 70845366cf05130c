//! What results are written as.

mod arrow;
mod delimited;
mod json;

use self::arrow::ArrowSink;
use super::records::Names;
use super::request::{Delimited, Format};
use super::sql::RowError;
use super::sql::value::Value;
use crate::error::Problem;

/// Writes results.
pub(super) enum Sink {
    /// Delimited text.
    Delimited {
        /// How it is written.
        format: Delimited,
        /// Whether the names of the columns come before the next result.
        header_due: bool,
    },
    /// A JSON document each.
    Json {
        /// What stands behind each.
        separator: String,
    },
    /// Arrow.
    Arrow(ArrowSink),
}

impl Sink {
    /// The sink for results in `format`.
    ///
    /// Refuses `InvalidXmlNodeValue` for columns that Arrow does not have.
    pub(super) fn of(format: Format) -> Result<Self, Problem> {
        match format {
            Format::Delimited(format) => Ok(Self::Delimited { header_due: format.headers, format }),
            Format::Json { separator } => Ok(Self::Json { separator }),
            Format::Arrow(fields) => Ok(Self::Arrow(ArrowSink::of(&fields)?)),
            Format::Parquet => Err(Problem::not_implemented("A query with Parquet output")),
        }
    }

    /// Writes a result, or nothing if it cannot be what its column is.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, names: &Names<'_>, values: &[Value<'_>]) -> Result<(), RowError> {
        match self {
            Self::Delimited { format, header_due } => {
                if std::mem::take(header_due) {
                    let names: Vec<_> = (0..values.len().max(names.known())).map(|index| names.get(index)).collect();
                    delimited::record(out, format, names.iter().map(|name| Some(name.as_ref())));
                }
                let texts: Vec<_> = values.iter().map(Value::text).collect();
                delimited::record(out, format, texts.iter().map(Option::as_deref));
            }
            Self::Json { separator } => {
                json::object(out, names, values);
                out.extend_from_slice(separator.as_bytes());
            }
            Self::Arrow(sink) => return sink.write(out, values),
        }
        Ok(())
    }

    /// Writes what comes behind the last result.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if let Self::Arrow(sink) = self {
            sink.end(out);
        }
    }

    /// Writes a document as it stands in the blob, if results look like that; answers whether they do.
    pub(super) fn write_document(&self, out: &mut Vec<u8>, text: &[u8]) -> bool {
        let Self::Json { separator } = self else { return false };
        json::without_space(out, text);
        out.extend_from_slice(separator.as_bytes());
        true
    }
}
