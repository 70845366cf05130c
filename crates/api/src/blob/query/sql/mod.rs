//! The language of queries: text in, a statement out, and what a statement makes of a record. Pure: no I/O, no format.
//! <https://learn.microsoft.com/azure/storage/blobs/query-acceleration-sql-reference>
//!
//! In reading order: [`syntax`] (what a statement is), [`lexer`] and [`parser`] (from text to it), [`value`] and
//! [`moment`] (what expressions are made of), [`evaluate`] and [`aggregate`] (what comes of a record, and of all).

pub mod aggregate;
pub mod evaluate;
mod lexer;
pub mod moment;
mod parser;
pub mod syntax;
#[cfg(test)]
mod tests;
mod text;
pub mod value;

pub use parser::parse;

use std::fmt;

/// Why a text is no statement of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The byte of the text at which it is noticed.
    pub position: usize,
    /// What is wrong.
    pub reason: String,
}

impl SyntaxError {
    fn new(position: usize, reason: impl Into<String>) -> Self {
        Self { position, reason: reason.into() }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.reason, self.position)
    }
}

/// Why a record has no result. The record is passed over and the query goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowError {
    /// A value cannot become what an operator or a cast needs.
    InvalidTypeConversion,
    /// The record has fewer fields than the statement asks for.
    InvalidColumnOrdinal,
    /// A field is not UTF-8.
    InvalidTextEncoding,
    /// A division by zero.
    DivideByZero,
    /// A number beyond its type.
    ArithmeticOverflow,
    /// A value that a function cannot use.
    InvalidArgument(&'static str),
}

impl RowError {
    /// The name, as it is reported.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InvalidTypeConversion => "InvalidTypeConversion",
            Self::InvalidColumnOrdinal => "InvalidColumnOrdinal",
            Self::InvalidTextEncoding => "InvalidTextEncoding",
            Self::DivideByZero => "DivideByZero",
            Self::ArithmeticOverflow => "ArithmeticOverflow",
            Self::InvalidArgument(_) => "InvalidArgument",
        }
    }

    /// What it means, as it is reported.
    pub const fn description(&self) -> &'static str {
        match self {
            Self::InvalidTypeConversion => "Invalid type conversion.",
            Self::InvalidColumnOrdinal => "Fewer columns found than expected.",
            Self::InvalidTextEncoding => "A field is not UTF-8.",
            Self::DivideByZero => "Division by zero.",
            Self::ArithmeticOverflow => "Arithmetic overflow.",
            Self::InvalidArgument(reason) => reason,
        }
    }
}
