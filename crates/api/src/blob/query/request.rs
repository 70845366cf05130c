//! The body of Query Blob Contents. <https://learn.microsoft.com/rest/api/storageservices/query-blob-contents>

use crate::code::Code;
use crate::error::Problem;
use crate::wire::xml::{Document, node_value};

/// Longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 256 * 1024;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRequest {
    /// The statement.
    pub expression: String,
    /// What the blob is.
    pub input: Format,
    /// What the results are to be.
    pub output: Format,
}

/// A form of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Fields between separators.
    Delimited(Delimited),
    /// JSON documents.
    Json {
        /// What stands between them.
        separator: String,
    },
    /// Parquet. Only as input.
    Parquet,
    /// Arrow. Only as output.
    Arrow(Vec<ArrowField>),
}

/// How fields and records are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimited {
    /// Between fields.
    pub column: u8,
    /// Around a field that holds separators.
    pub quote: Option<u8>,
    /// Behind a record: one character, or a carriage return and a line feed.
    pub record: String,
    /// Before a quote that belongs to its field.
    pub escape: Option<u8>,
    /// Whether the first record holds the names of the fields.
    pub headers: bool,
}

/// A column of Arrow output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrowField {
    /// The name of its type.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Digits of a decimal.
    pub precision: Option<u8>,
    /// Digits of a decimal behind the point.
    pub scale: Option<i8>,
}

impl Default for Delimited {
    fn default() -> Self {
        Self { column: b',', quote: Some(b'"'), record: "\n".to_owned(), escape: None, headers: false }
    }
}

/// Reads a request.
///
/// Refuses `InvalidXmlDocument`, `InvalidXmlNodeValue`, `MissingRequiredXmlNode`, and `OutOfRangeInput` for an
/// expression of more than [`EXPRESSION_BYTES_MAX`].
pub fn parse(body: &[u8]) -> Result<QueryRequest, Problem> {
    let mut document = Document::open(body, "QueryRequest")?;
    let (mut kind, mut expression, mut input, mut output) = (None, None, None, None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "QueryType" => kind = Some(document.text()?),
            "Expression" => expression = Some(document.text()?),
            "InputSerialization" => input = serialization(&mut document)?,
            "OutputSerialization" => output = serialization(&mut document)?,
            _ => return Err(document.wrong("a query has no such element")),
        }
    }
    document.close()?;
    let kind = kind.ok_or_else(|| missing("QueryType"))?;
    if !kind.trim().eq_ignore_ascii_case("SQL") {
        return Err(node_value("QueryType", &kind, "It is not SQL."));
    }
    let expression = expression.filter(|text| !text.trim().is_empty()).ok_or_else(|| missing("Expression"))?;
    if expression.len() > EXPRESSION_BYTES_MAX {
        return Err(Problem::new(Code::OutOfRangeInput).saying("The query expression is longer than 256 KiB."));
    }
    let input = input.unwrap_or_else(|| Format::Delimited(Delimited::default()));
    let output = output.unwrap_or_else(|| match &input {
        Format::Parquet => Format::Delimited(Delimited::default()),
        same => same.clone(),
    });
    if let Format::Arrow(_) = input {
        return Err(node_value("Type", "arrow", "A blob is not read as Arrow."));
    }
    if output == Format::Parquet {
        return Err(node_value("Type", "parquet", "Results are not written as Parquet."));
    }
    if let Format::Delimited(delimited) = &input {
        unambiguous(delimited)?;
    }
    Ok(QueryRequest { expression, input, output })
}

/// The format of an `InputSerialization` or `OutputSerialization`; none if the element is empty.
fn serialization(document: &mut Document<'_>) -> Result<Option<Format>, Problem> {
    let mut format = None;
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Format" => format = Some(read_format(document)?),
            _ => return Err(document.wrong("only Format belongs here")),
        }
    }
    Ok(format)
}

fn read_format(document: &mut Document<'_>) -> Result<Format, Problem> {
    let (mut kind, mut delimited, mut separator, mut arrow, mut parquet) = (None, None, None, None, None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Type" => kind = Some(document.text()?),
            "DelimitedTextConfiguration" => delimited = Some(read_delimited(document)?),
            "JsonTextConfiguration" => separator = Some(read_json(document)?),
            "ArrowConfiguration" => arrow = Some(read_arrow(document)?),
            "ParquetTextConfiguration" => parquet = Some(document.text()?),
            _ => return Err(document.wrong("a format has no such element")),
        }
    }
    let kind = kind.ok_or_else(|| missing("Type"))?;
    let others = |own: &str| {
        let given = [
            ("delimited", delimited.is_some()),
            ("json", separator.is_some()),
            ("arrow", arrow.is_some()),
            ("parquet", parquet.is_some()),
        ];
        given.into_iter().any(|(name, given)| given && name != own)
    };
    let kind = match kind.trim().to_ascii_lowercase() {
        kind if kind == "csv" => "delimited".to_owned(),
        kind => kind,
    };
    if others(&kind) {
        return Err(node_value("Type", &kind, "There is the configuration of another type."));
    }
    match kind.as_str() {
        "delimited" => Ok(Format::Delimited(delimited.unwrap_or_default())),
        "json" => Ok(Format::Json { separator: separator.unwrap_or_else(|| "\n".to_owned()) }),
        "parquet" => Ok(Format::Parquet),
        "arrow" => arrow.map(Format::Arrow).ok_or_else(|| missing("ArrowConfiguration")),
        _ => Err(node_value("Type", &kind, "It is not delimited, json, parquet or arrow.")),
    }
}

fn read_delimited(document: &mut Document<'_>) -> Result<Delimited, Problem> {
    let mut delimited = Delimited::default();
    while let Some(name) = document.child()? {
        let text = document.text()?;
        match name.as_str() {
            "ColumnSeparator" => {
                delimited.column = character("ColumnSeparator", &text)?.unwrap_or(delimited.column);
            }
            "FieldQuote" => delimited.quote = character("FieldQuote", &text)?,
            "EscapeChar" => delimited.escape = character("EscapeChar", &text)?,
            "RecordSeparator" => {
                if text != "\r\n" {
                    character("RecordSeparator", &text)?;
                }
                delimited.record = Some(text).filter(|text| !text.is_empty()).unwrap_or(delimited.record);
            }
            "HasHeaders" => {
                delimited.headers = match text.trim() {
                    text if text.eq_ignore_ascii_case("true") => true,
                    text if text.eq_ignore_ascii_case("false") || text.is_empty() => false,
                    text => return Err(node_value("HasHeaders", text, "It is not true or false.")),
                };
            }
            _ => return Err(document.wrong("delimited text has no such setting")),
        }
    }
    Ok(delimited)
}

fn read_json(document: &mut Document<'_>) -> Result<String, Problem> {
    let mut separator = None;
    while let Some(name) = document.child()? {
        match name.as_str() {
            "RecordSeparator" => separator = Some(document.text()?).filter(|text| !text.is_empty()),
            _ => return Err(document.wrong("JSON text has no such setting")),
        }
    }
    Ok(separator.unwrap_or_else(|| "\n".to_owned()))
}

fn read_arrow(document: &mut Document<'_>) -> Result<Vec<ArrowField>, Problem> {
    let mut fields = Vec::new();
    while let Some(name) = document.child()? {
        if name != "Schema" {
            return Err(document.wrong("only Schema belongs here"));
        }
        while let Some(name) = document.child()? {
            if name != "Field" {
                return Err(document.wrong("only Field belongs here"));
            }
            fields.push(read_arrow_field(document)?);
        }
    }
    Ok(fields)
}

fn read_arrow_field(document: &mut Document<'_>) -> Result<ArrowField, Problem> {
    let mut field = ArrowField::default();
    while let Some(name) = document.child()? {
        let text = document.text()?;
        match name.as_str() {
            "Type" => field.kind = text.trim().to_owned(),
            "Name" => field.name = text,
            "Precision" => {
                let number = text.trim().parse();
                field.precision =
                    Some(number.map_err(|_| node_value("Precision", &text, "It is not a small number."))?);
            }
            "Scale" => {
                let number = text.trim().parse();
                field.scale = Some(number.map_err(|_| node_value("Scale", &text, "It is not a small number."))?);
            }
            _ => return Err(document.wrong("a field has no such element")),
        }
    }
    if field.kind.is_empty() { Err(missing("Type")) } else { Ok(field) }
}

/// One ASCII character; none for an empty text.
fn character(node: &'static str, text: &str) -> Result<Option<u8>, Problem> {
    match text.as_bytes() {
        [] => Ok(None),
        [byte] if byte.is_ascii() => Ok(Some(*byte)),
        _ => Err(node_value(node, text, "It is not one ASCII character.")),
    }
}

/// Sees to it that no character has two meanings.
fn unambiguous(delimited: &Delimited) -> Result<(), Problem> {
    let column = char::from(delimited.column);
    if delimited.record.contains(column) || delimited.quote == Some(delimited.column) {
        return Err(node_value("ColumnSeparator", &column.to_string(), "It has another meaning too."));
    }
    match delimited.quote.map(char::from) {
        Some(quote) if delimited.record.contains(quote) => {
            Err(node_value("FieldQuote", &quote.to_string(), "It has another meaning too."))
        }
        _ => Ok(()),
    }
}

fn missing(node: &str) -> Problem {
    Problem::new(Code::MissingRequiredXmlNode)
        .saying(format!("The element {node} is mandatory."))
        .detail("XmlNodeName", node)
}

#[cfg(test)]
mod tests;
