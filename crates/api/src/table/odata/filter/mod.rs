//! `$filter`: which entities, or tables, a query asks for.
//! <https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities#constructing-filter-strings>
//!
//! ```text
//! any  := all { or all }     all := none { and none }     none := { not } item
//! item := ( any ) | property | literal | operand operator operand
//! ```

mod lexer;
mod parser;

use lazuli_engine::table::expression::Expression;

use crate::code::Code;
use crate::error::Problem;

/// How deep parentheses and negations nest, at most.
pub const DEPTH_MAX: usize = 128;

/// Why a filter is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Where, in bytes.
    pub position: usize,
    /// Whether it may be right, but is not built.
    pub unbuilt: bool,
    /// For people.
    pub reason: String,
}

impl Wrong {
    fn at(position: usize, reason: impl Into<String>) -> Self {
        Self { position, unbuilt: false, reason: reason.into() }
    }
}

/// Reads a filter.
pub fn parse(text: &str) -> Result<Expression, Wrong> {
    parser::parse(text)
}

/// Reads a filter from the query of a request.
///
/// Refuses `InvalidInput` and `NotImplemented`, both naming the place.
pub fn of_query(text: &str) -> Result<Expression, Problem> {
    parse(text).map_err(|wrong| {
        let characters = text.get(..wrong.position).unwrap_or(text).chars().count();
        let code = if wrong.unbuilt { Code::NotImplemented } else { Code::InvalidInput };
        Problem::new(code)
            .saying(format!("$filter: {} at character {characters}.", wrong.reason))
            .detail("QueryParameterName", "$filter")
    })
}

#[cfg(test)]
mod tests;
