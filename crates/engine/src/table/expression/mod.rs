//! What a query asks of entities: a filter as a tree, evaluated on rows as they lie on disk, and the stretch of keys
//! that it can match.
//! <https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities#filtering-on-different-property-types>

mod bounds;
mod compare;
mod matcher;
#[cfg(test)]
mod tests;

pub use bounds::{Stretch, bounds};
pub use matcher::{Matcher, StoredEntity, Subject};

use crate::table::value::Value;

/// A filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// Matches everything, or nothing.
    Constant(bool),
    /// Matches what all of them match.
    All(Vec<Expression>),
    /// Matches what any of them matches.
    Any(Vec<Expression>),
    /// Matches what the other does not.
    Not(Box<Expression>),
    /// A property beside a constant. Matches no entity that lacks the property or has it with an incomparable type.
    Compare {
        /// What stands left of the operator.
        field: Field,
        /// The operator.
        operator: Operator,
        /// What stands right of it.
        value: Value,
    },
}

/// What of an entity is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Its first key.
    PartitionKey,
    /// Its second key.
    RowKey,
    /// When it was last written.
    Timestamp,
    /// A property of its own.
    Property(String),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `eq`
    Equal,
    /// `ne`
    NotEqual,
    /// `gt`
    Greater,
    /// `ge`
    GreaterOrEqual,
    /// `lt`
    Less,
    /// `le`
    LessOrEqual,
}
