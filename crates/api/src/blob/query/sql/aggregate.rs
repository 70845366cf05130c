//! What comes of all records together.

use std::cmp::Ordering;

use super::RowError;
use super::evaluate::Scope;
use super::syntax::{AggregateColumn, AggregateFunction, Operator};
use super::value::{Number, Value};

/// Longest text that `MIN` and `MAX` keep, in bytes.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The aggregates of a statement, on their way over the records.
#[derive(Clone, Debug)]
pub struct Aggregates(Vec<State>);

/// One aggregate so far.
#[derive(Clone, Debug)]
struct State {
    /// Records, or those whose argument is known.
    count: i64,
    /// The sum so far.
    sum: Number,
    /// The least or greatest so far.
    extreme: Option<Value<'static>>,
}

impl Aggregates {
    /// Those of `columns`, of no record yet.
    pub fn of(columns: &[AggregateColumn]) -> Self {
        Self(columns.iter().map(|_| State { count: 0, sum: Number::Integer(0), extreme: None }).collect())
    }

    /// Counts a record, in all aggregates or, if one fails, in none.
    pub fn add(&mut self, columns: &[AggregateColumn], scope: Scope<'_>) -> Result<(), RowError> {
        if let ([state], [column]) = (self.0.as_mut_slice(), columns) {
            return state.add(column, scope);
        }
        let mut next = self.0.clone();
        for (state, column) in next.iter_mut().zip(columns) {
            state.add(column, scope)?;
        }
        self.0 = next;
        Ok(())
    }

    /// The results, in the order of the columns.
    pub fn results(&self, columns: &[AggregateColumn]) -> Vec<Value<'static>> {
        self.0.iter().zip(columns).map(|(state, column)| state.result(column.function)).collect()
    }
}

impl State {
    /// Counts a record, or fails and stays as it is.
    fn add(&mut self, column: &AggregateColumn, scope: Scope<'_>) -> Result<(), RowError> {
        let Some(argument) = &column.argument else {
            self.count += 1;
            return Ok(());
        };
        let value = scope.value(argument)?;
        if value.is_unknown() {
            return Ok(());
        }
        match column.function {
            AggregateFunction::Count => {}
            AggregateFunction::Sum | AggregateFunction::Average => {
                let number = value.number()?.ok_or(RowError::InvalidTypeConversion)?;
                self.sum = self.sum.calculate(Operator::Add, number)?;
            }
            AggregateFunction::Min => self.keep(value, Ordering::Less)?,
            AggregateFunction::Max => self.keep(value, Ordering::Greater)?,
        }
        self.count += 1;
        Ok(())
    }

    /// Keeps `value` if there is none yet or it compares as wanted with the one that is kept.
    fn keep(&mut self, value: Value<'_>, wanted: Ordering) -> Result<(), RowError> {
        if let Value::Json(_) = value {
            return Err(RowError::InvalidTypeConversion);
        }
        let better = match &self.extreme {
            None => true,
            Some(kept) => value.compare(kept)? == Some(wanted),
        };
        if !better {
            return Ok(());
        }
        if matches!(&value, Value::Text(text) if text.len() > TEXT_BYTES_MAX) {
            return Err(RowError::InvalidArgument("The text is too long for MIN and MAX."));
        }
        self.extreme = Some(value.into_owned());
        Ok(())
    }

    fn result(&self, function: AggregateFunction) -> Value<'static> {
        match function {
            AggregateFunction::Count => Value::Integer(self.count),
            _ if self.count == 0 => Value::Null,
            AggregateFunction::Sum => self.sum.value(),
            AggregateFunction::Average => {
                let count = Number::Integer(self.count).float();
                Value::Float(self.sum.float() / count)
            }
            AggregateFunction::Min | AggregateFunction::Max => self.extreme.clone().unwrap_or(Value::Null),
        }
    }
}
