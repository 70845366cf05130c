//! A filter made ready, and what it is evaluated on.

use super::compare::holds;
use super::{Expression, Field, Operator};
use crate::clock::Timestamp;
use crate::etag::Etag;
use crate::names::TableName;
use crate::rows::entity;
use crate::rows::entity::body::{Malformed, ValueRef, find};
use crate::store::StoreError;
use crate::table::value::Value;

/// What a filter is evaluated on.
pub trait Subject {
    /// Its first key as [`entity::field`] writes it, if it has one.
    fn partition(&self) -> Option<&[u8]>;

    /// Its second key as [`entity::field`] writes it, if it has one.
    fn row(&self) -> Option<&[u8]>;

    /// When it was last written, if that is known.
    fn written(&self) -> Option<Timestamp>;

    /// Its own property of that name, if it has it.
    fn property(&self, name: &[u8]) -> Result<Option<ValueRef<'_>>, Malformed>;
}

/// An entity as it lies in its row and parts.
#[derive(Clone, Copy, Debug)]
pub struct StoredEntity<'a> {
    partition: &'a [u8],
    row: &'a [u8],
    etag: Etag,
    body: &'a [u8],
}

impl<'a> StoredEntity<'a> {
    /// The entity at `key`, with all of its properties in `body`.
    pub fn new(key: &'a [u8], etag: Etag, body: &'a [u8]) -> Result<Self, StoreError> {
        let (partition, row) = entity::fields(key)?;
        Ok(Self { partition, row, etag, body })
    }
}

impl Subject for StoredEntity<'_> {
    fn partition(&self) -> Option<&[u8]> {
        Some(self.partition)
    }

    fn row(&self) -> Option<&[u8]> {
        Some(self.row)
    }

    fn written(&self) -> Option<Timestamp> {
        Some(self.etag.committed())
    }

    fn property(&self, name: &[u8]) -> Result<Option<ValueRef<'_>>, Malformed> {
        find(self.body, name)
    }
}

/// A table as listings filter it: all it has is its name, as the property `TableName`.
impl Subject for TableName {
    fn partition(&self) -> Option<&[u8]> {
        None
    }

    fn row(&self) -> Option<&[u8]> {
        None
    }

    fn written(&self) -> Option<Timestamp> {
        None
    }

    fn property(&self, name: &[u8]) -> Result<Option<ValueRef<'_>>, Malformed> {
        Ok((name == b"TableName").then(|| ValueRef::String(self.as_str().as_bytes())))
    }
}

/// A filter whose constants are in the form in which rows have their values.
#[derive(Clone, Debug)]
pub struct Matcher(Test);

#[derive(Clone, Debug)]
enum Test {
    Constant(bool),
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
    Partition(Operator, Vec<u8>),
    Row(Operator, Vec<u8>),
    Written(Operator, Value),
    Property(Vec<u8>, Operator, Value),
}

impl Matcher {
    /// Makes `expression` ready. Takes stack with its depth, which the protocol bounds.
    pub fn new(expression: &Expression) -> Self {
        Self(Test::new(expression))
    }

    /// How many comparisons it may take to say whether something matches.
    pub fn comparisons(&self) -> usize {
        self.0.comparisons()
    }

    /// Whether `subject` matches.
    ///
    /// Fails on a row whose properties cannot be read.
    pub fn matches(&self, subject: &impl Subject) -> Result<bool, Malformed> {
        self.0.holds(subject)
    }
}

impl Test {
    fn new(expression: &Expression) -> Self {
        let all_of = |expressions: &[Expression]| expressions.iter().map(Self::new).collect();
        match expression {
            Expression::Constant(value) => Self::Constant(*value),
            Expression::All(all) => Self::All(all_of(all)),
            Expression::Any(any) => Self::Any(all_of(any)),
            Expression::Not(inner) => Self::Not(Box::new(Self::new(inner))),
            Expression::Compare { field, operator, value } => match (field, value) {
                (Field::PartitionKey, Value::String(text)) => Self::Partition(*operator, entity::field(text)),
                (Field::RowKey, Value::String(text)) => Self::Row(*operator, entity::field(text)),
                // Keys are text, whatever they are compared with.
                (Field::PartitionKey | Field::RowKey, _) => Self::Constant(false),
                (Field::Timestamp, value) => Self::Written(*operator, value.clone()),
                (Field::Property(name), value) => Self::Property(name.clone().into_bytes(), *operator, value.clone()),
            },
        }
    }

    fn comparisons(&self) -> usize {
        match self {
            Self::Constant(_) => 0,
            Self::All(tests) | Self::Any(tests) => tests.iter().map(Self::comparisons).sum(),
            Self::Not(test) => test.comparisons(),
            Self::Partition(..) | Self::Row(..) | Self::Written(..) | Self::Property(..) => 1,
        }
    }

    fn holds(&self, subject: &impl Subject) -> Result<bool, Malformed> {
        let key = |key: Option<&[u8]>, operator: Operator, constant: &[u8]| {
            key.is_some_and(|key| operator.accepts(Some(key.cmp(constant))))
        };
        Ok(match self {
            Self::Constant(value) => *value,
            Self::All(tests) => {
                for test in tests {
                    if !test.holds(subject)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Any(tests) => {
                for test in tests {
                    if test.holds(subject)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::Not(test) => !test.holds(subject)?,
            Self::Partition(operator, constant) => key(subject.partition(), *operator, constant),
            Self::Row(operator, constant) => key(subject.row(), *operator, constant),
            Self::Written(operator, constant) => {
                subject.written().is_some_and(|written| holds(ValueRef::DateTime(written), *operator, constant))
            }
            Self::Property(name, operator, constant) => {
                subject.property(name)?.is_some_and(|value| holds(value, *operator, constant))
            }
        })
    }
}
