//! What an expression is, given a record.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::RowError;
use super::moment::Moment;
use super::syntax::{Comparison, Expression, Function, Operator, Test};
use super::text;
use super::value::{Number, Value};

/// A record, as far as expressions see it.
pub trait Record {
    /// The field of [`super::syntax::Statement::fields`] at `index`.
    ///
    /// Fails with `InvalidColumnOrdinal` if the record has too few fields.
    fn field(&self, index: usize) -> Result<Value<'_>, RowError>;
}

/// What expressions are evaluated over.
#[derive(Clone, Copy)]
pub struct Scope<'r> {
    /// The record.
    pub record: &'r dyn Record,
    /// `UTCNOW()`: one moment for the whole query.
    pub now: Moment,
}

impl<'r> Scope<'r> {
    /// Whether `condition` holds. What is unknown does not.
    pub fn holds(self, condition: &'r Expression) -> Result<bool, RowError> {
        Ok(self.truth(condition)?.unwrap_or(false))
    }

    /// The value of `expression`.
    pub fn value(self, expression: &'r Expression) -> Result<Value<'r>, RowError> {
        match expression {
            Expression::Literal(literal) => Ok(Value::of_literal(literal)),
            Expression::Field(index) => self.record.field(*index),
            Expression::All(_)
            | Expression::Any(_)
            | Expression::Not(_)
            | Expression::Compare(..)
            | Expression::Test { .. } => Ok(self.truth(expression)?.map_or(Value::Null, Value::Boolean)),
            Expression::Arithmetic(first, rest) => {
                let mut value = self.value(first)?;
                for (operator, operand) in rest {
                    value = calculate(&value, *operator, &self.value(operand)?)?;
                }
                Ok(value)
            }
            Expression::Negate(value) => calculate(&Value::Integer(0), Operator::Subtract, &self.value(value)?),
            Expression::Case { subject, arms, otherwise } => self.case(subject.as_deref(), arms, otherwise.as_deref()),
            Expression::Cast(value, to) => self.value(value)?.cast(*to),
            Expression::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    /// The truth of a condition; none if it is unknown.
    fn truth(self, condition: &'r Expression) -> Result<Option<bool>, RowError> {
        match condition {
            Expression::All(parts) => self.decided(parts, false),
            Expression::Any(parts) => self.decided(parts, true),
            Expression::Not(part) => Ok(self.truth(part)?.map(|truth| !truth)),
            Expression::Compare(one, comparison, two) => {
                let ordering = self.value(one)?.compare(&self.value(two)?)?;
                Ok(ordering.map(|ordering| comparison.fits(ordering)))
            }
            Expression::Test { negated, value, test } => {
                let truth = self.test(&self.value(value)?, test)?;
                Ok(truth.map(|truth| truth != *negated))
            }
            value => self.value(value)?.truth(),
        }
    }

    /// Whether one of `parts` is `decisive`, which decides; else unknown if one of them is.
    fn decided(self, parts: &'r [Expression], decisive: bool) -> Result<Option<bool>, RowError> {
        let mut whole = Some(!decisive);
        for part in parts {
            match self.truth(part)? {
                Some(truth) if truth == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => whole = None,
            }
        }
        Ok(whole)
    }

    fn test(self, value: &Value<'r>, test: &'r Test) -> Result<Option<bool>, RowError> {
        match test {
            Test::Null => Ok(Some(value.is_unknown())),
            Test::Missing => Ok(Some(matches!(value, Value::Missing))),
            Test::Between(low, high) => {
                let low = value.compare(&self.value(low)?)?.map(Ordering::is_ge);
                let high = value.compare(&self.value(high)?)?.map(Ordering::is_le);
                Ok(match (low, high) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                })
            }
            Test::In(list) => {
                let mut found = Some(false);
                for item in list {
                    match value.compare(&self.value(item)?)? {
                        Some(Ordering::Equal) => return Ok(Some(true)),
                        Some(_) => {}
                        None => found = None,
                    }
                }
                Ok(found)
            }
            Test::Like(pattern, escape) => {
                let pattern = self.value(pattern)?;
                let escape = escape.as_deref().map(|escape| self.value(escape)).transpose()?;
                let escape = escape.as_ref().map(Value::text);
                match (value.text(), pattern.text(), escape) {
                    (None, _, _) | (_, None, _) | (_, _, Some(None)) => Ok(None),
                    (Some(text), Some(pattern), None) => text::is_like(&text, &pattern, None).map(Some),
                    (Some(text), Some(pattern), Some(Some(escape))) => {
                        text::is_like(&text, &pattern, Some(&escape)).map(Some)
                    }
                }
            }
        }
    }

    fn case(
        self,
        subject: Option<&'r Expression>,
        arms: &'r [(Expression, Expression)],
        otherwise: Option<&'r Expression>,
    ) -> Result<Value<'r>, RowError> {
        let subject = subject.map(|subject| self.value(subject)).transpose()?;
        for (when, then) in arms {
            let fits = match &subject {
                None => self.holds(when)?,
                Some(subject) => subject.compare(&self.value(when)?)? == Some(Ordering::Equal),
            };
            if fits {
                return self.value(then);
            }
        }
        otherwise.map_or(Ok(Value::Null), |otherwise| self.value(otherwise))
    }

    fn call(self, function: Function, arguments: &'r [Expression]) -> Result<Value<'r>, RowError> {
        match function {
            Function::UtcNow => return Ok(Value::Moment(self.now)),
            Function::Coalesce => {
                for argument in arguments {
                    let value = self.value(argument)?;
                    if !value.is_unknown() {
                        return Ok(value);
                    }
                }
                return Ok(Value::Null);
            }
            _ => {}
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.value(argument)?);
        }
        let mut values = values.into_iter();
        let first = values.next().unwrap_or(Value::Null);
        if function == Function::NullIf {
            let second = values.next().unwrap_or(Value::Null);
            let equal = first.compare(&second)? == Some(Ordering::Equal);
            return Ok(if equal { Value::Null } else { first });
        }
        if first.is_unknown() || values.as_slice().iter().any(Value::is_unknown) {
            return Ok(Value::Null);
        }
        applied(function, first, values)
    }
}

/// A function of known values.
fn applied<'r>(
    function: Function,
    first: Value<'r>,
    mut rest: impl Iterator<Item = Value<'r>>,
) -> Result<Value<'r>, RowError> {
    let mut next = || rest.next().unwrap_or(Value::Null);
    match function {
        Function::Lower => Ok(Value::Text(Cow::Owned(string(first)?.to_lowercase()))),
        Function::Upper => Ok(Value::Text(Cow::Owned(string(first)?.to_uppercase()))),
        Function::CharLength => Ok(Value::Integer(i64::try_from(string(first)?.chars().count()).unwrap_or(i64::MAX))),
        Function::Substring => {
            let start = integer(&next())?.unwrap_or(0);
            let length = integer(&next())?;
            text::part(string(first)?, |text| text::substring(text, start, length)).map(Value::Text)
        }
        Function::Trim(side) => {
            let trimmed = next();
            let trimmed = trimmed.text().unwrap_or(Cow::Borrowed(" "));
            text::part(string(first)?, |text| Ok(text::trim(text, side, &trimmed))).map(Value::Text)
        }
        Function::ToString => {
            let format = string(next())?;
            let moment = first.moment()?.ok_or(RowError::InvalidTypeConversion)?;
            Ok(Value::Text(Cow::Owned(moment.format(&format)?)))
        }
        Function::ToTimestamp => Ok(first.moment()?.map_or(Value::Null, Value::Moment)),
        Function::DateAdd(part) => {
            let quantity = integer(&first)?.ok_or(RowError::InvalidTypeConversion)?;
            let moment = next().moment()?.ok_or(RowError::InvalidTypeConversion)?;
            moment.plus(part, quantity).map(Value::Moment)
        }
        Function::DateDiff(part) => {
            let from = first.moment()?.ok_or(RowError::InvalidTypeConversion)?;
            let to = next().moment()?.ok_or(RowError::InvalidTypeConversion)?;
            from.until(part, to).map(Value::Integer)
        }
        Function::Extract(part) => {
            let moment = first.moment()?.ok_or(RowError::InvalidTypeConversion)?;
            Ok(Value::Integer(moment.part(part)))
        }
        // These judge unknown values by themselves: see `call`.
        Function::Coalesce | Function::NullIf | Function::UtcNow => Ok(Value::Null),
    }
}

impl Comparison {
    /// Whether it holds of values that compare so.
    const fn fits(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// Numbers, or a moment and a number of days.
fn calculate(one: &Value<'_>, operator: Operator, two: &Value<'_>) -> Result<Value<'static>, RowError> {
    let (moment, days, sign) = match (one, two, operator) {
        (Value::Moment(moment), days, Operator::Add) => (moment, days, 1.0),
        (Value::Moment(moment), days, Operator::Subtract) => (moment, days, -1.0),
        (days, Value::Moment(moment), Operator::Add) => (moment, days, 1.0),
        _ => {
            return match one.number()?.zip(two.number()?) {
                Some((one, two)) => one.calculate(operator, two).map(Number::value),
                None => Ok(Value::Null),
            };
        }
    };
    match days.number()? {
        Some(days) => moment.plus_days(days.float() * sign).map(Value::Moment),
        None => Ok(Value::Null),
    }
}

fn string(value: Value<'_>) -> Result<Cow<'_, str>, RowError> {
    match value {
        Value::Text(text) => Ok(text),
        value => match value.text() {
            Some(text) => Ok(Cow::Owned(text.into_owned())),
            None => Err(RowError::InvalidTypeConversion),
        },
    }
}

/// A whole number; none if nothing is known.
fn integer(value: &Value<'_>) -> Result<Option<i64>, RowError> {
    match value.number()? {
        None => Ok(None),
        Some(Number::Integer(integer)) => Ok(Some(integer)),
        Some(Number::Float(_)) => Err(RowError::InvalidTypeConversion),
    }
}
