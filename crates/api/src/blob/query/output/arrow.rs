//! Arrow, as a stream of batches. <https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format>

mod column;
mod message;

use self::column::{Column, Kind};
use crate::blob::query::request::ArrowField;
use crate::blob::query::sql::RowError;
use crate::blob::query::sql::value::Value;
use crate::error::Problem;
use crate::wire::xml::node_value;

/// Rows of a batch, unless their values are large.
const BATCH_ROWS: usize = 1024;
/// Bytes of values after which a batch ends.
const BATCH_BYTES: usize = 128 * 1024;

/// Writes results as the columns that the request wants, in their order.
#[derive(Debug)]
pub(in crate::blob::query) struct ArrowSink {
    columns: Vec<Column>,
    rows: usize,
    /// Whether the schema is written.
    begun: bool,
}

impl ArrowSink {
    /// Refuses `InvalidXmlNodeValue` for a type that there is not, and for no columns.
    pub(super) fn of(fields: &[ArrowField]) -> Result<Self, Problem> {
        if fields.is_empty() {
            return Err(node_value("Schema", "", "It has no fields."));
        }
        let column = |(index, field): (usize, &ArrowField)| {
            let reason =
                "It is not int64, bool, timestamp[ms], string, double, or decimal with a precision of 1 to 38.";
            let kind = Kind::of(field).ok_or_else(|| node_value("Type", &field.kind, reason))?;
            let name = if field.name.is_empty() { format!("_{}", index + 1) } else { field.name.clone() };
            Ok(Column::new(name, kind))
        };
        let columns = fields.iter().enumerate().map(column).collect::<Result<_, Problem>>()?;
        Ok(Self { columns, rows: 0, begun: false })
    }

    /// Adds a result, or nothing if it fails.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, values: &[Value<'_>]) -> Result<(), RowError> {
        if values.len() != self.columns.len() {
            return Err(RowError::InvalidColumnOrdinal);
        }
        let cells = self.columns.iter().zip(values).map(|(column, value)| column.kind.cell(value.clone()));
        let cells: Vec<_> = cells.collect::<Result<_, _>>()?;
        for (column, cell) in self.columns.iter_mut().zip(&cells) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows >= BATCH_ROWS || self.columns.iter().map(Column::size).sum::<usize>() >= BATCH_BYTES {
            self.flush(out);
        }
        Ok(())
    }

    /// Writes what is left, and the end of the stream.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
        message::end(out);
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            message::schema(out, &self.columns);
        }
        if self.rows > 0 {
            message::batch(out, &self.columns, self.rows);
            self.columns.iter_mut().for_each(Column::clear);
            self.rows = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// What the reference implementation reads as two rows of an int64 `n` and a string `s`, 7 and "ab", then 8 and
    /// null.
    const STREAM: &str = "/////7AAAAAUAAAAAAAAAAwAFAAGAAUACAAMAAwAAAAAAQQAFAAAAAAAAAAAAAAACAAIAAAABAAIAAAABAAAAAIAAABAAAAABAAA\
        ANj///8AAAUBFAAAAAwAAAAQAAAABAAEAAQAAAAAAAAAAQAAAHMAAAAQABQAEAAHAAYADAAAAAgAEAAAAAAAAgEgAAAAEAAAABwA\
        AAAIAAwACAAHAAgAAAAAAAABQAAAAAAAAAABAAAAbgAAAP/////IAAAAFAAAAAAAAAAMABYABgAFAAgADAAMAAAAAAMEABgAAAA4\
        AAAAAAAAAAAACgAYAAwACAAEAAoAAAAUAAAAaAAAAAIAAAAAAAAAAAAAAAUAAAAAAAAAAAAAAAEAAAAAAAAACAAAAAAAAAAQAAAA\
        AAAAABgAAAAAAAAAAQAAAAAAAAAgAAAAAAAAAAwAAAAAAAAAMAAAAAAAAAACAAAAAAAAAAAAAAACAAAAAgAAAAAAAAAAAAAAAAAA\
        AAIAAAAAAAAAAQAAAAAAAAADAAAAAAAAAAcAAAAAAAAACAAAAAAAAAABAAAAAAAAAAAAAAACAAAAAgAAAAAAAABhYgAAAAAAAP//\
        //8AAAAA";

    fn field(kind: &str, name: &str) -> ArrowField {
        ArrowField { kind: kind.to_owned(), name: name.to_owned(), ..ArrowField::default() }
    }

    #[test]
    fn a_stream_has_these_bytes() {
        let mut sink = ArrowSink::of(&[field("int64", "n"), field("string", "s")]).unwrap();
        let mut out = Vec::new();
        sink.write(&mut out, &[Value::Integer(7), Value::Text("ab".into())]).unwrap();
        assert_eq!(sink.write(&mut out, &[Value::Text("x".into()), Value::Null]), Err(RowError::InvalidTypeConversion));
        assert_eq!(sink.write(&mut out, &[Value::Null]), Err(RowError::InvalidColumnOrdinal));
        sink.write(&mut out, &[Value::Text("8".into()), Value::Missing]).unwrap();
        assert!(out.is_empty());
        sink.end(&mut out);
        assert_eq!(STANDARD.encode(out), STREAM);
    }

    #[test]
    fn batches_end_with_their_rows_or_bytes() {
        let mut sink = ArrowSink::of(&[field("string", "")]).unwrap();
        let mut out = Vec::new();
        for _ in 0..BATCH_ROWS {
            assert!(out.is_empty());
            sink.write(&mut out, &[Value::Text("x".into())]).unwrap();
        }
        let before = out.len();
        assert!(before > BATCH_ROWS);
        sink.write(&mut out, &[Value::Text("y".repeat(BATCH_BYTES).into())]).unwrap();
        assert!(out.len() > before + BATCH_BYTES);
    }

    #[test]
    fn columns_that_there_are_not_are_refused() {
        let decimal = |precision, scale| ArrowField { precision, scale, ..field("decimal", "d") };
        for fields in [vec![], vec![field("int32", "n")], vec![decimal(None, None)], vec![decimal(Some(39), None)]] {
            assert!(ArrowSink::of(&fields).is_err(), "{fields:?}");
        }
        assert!(ArrowSink::of(&[decimal(Some(38), Some(2)), field("timestamp[ms]", "t")]).is_ok());
    }
}
