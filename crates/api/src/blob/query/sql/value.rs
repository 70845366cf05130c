//! Values, and how they become each other: an operator that meets two types converts the weaker to the stronger, in the
//! order text, boolean, int, float, timestamp.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value as Json;

use super::RowError;
use super::moment::Moment;
use super::syntax::{Literal, Operator, Type};

/// A value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'v> {
    /// The record has no such field.
    Missing,
    /// Known to be unknown.
    Null,
    /// BOOLEAN
    Boolean(bool),
    /// INT
    Integer(i64),
    /// FLOAT
    Float(f64),
    /// STRING
    Text(Cow<'v, str>),
    /// TIMESTAMP
    Moment(Moment),
    /// An object or array of a JSON document: it can be selected, not computed with.
    Json(Cow<'v, Json>),
}

/// A value of a numeric type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

impl<'v> Value<'v> {
    /// A value of a JSON document.
    pub fn of_json(json: &'v Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(boolean) => Self::Boolean(*boolean),
            Json::Number(number) => match number.as_i64() {
                Some(integer) => Self::Integer(integer),
                None => number.as_f64().map_or(Self::Null, Self::Float),
            },
            Json::String(text) => Self::Text(Cow::Borrowed(text)),
            Json::Array(_) | Json::Object(_) => Self::Json(Cow::Borrowed(json)),
        }
    }

    /// A constant.
    pub(super) fn of_literal(literal: &'v Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Boolean(boolean) => Self::Boolean(*boolean),
            Literal::Integer(integer) => Self::Integer(*integer),
            Literal::Float(float) => Self::Float(*float),
            Literal::Text(text) => Self::Text(Cow::Borrowed(text)),
        }
    }

    /// The same value, held elsewhere.
    pub fn borrowed(&self) -> Value<'_> {
        match self {
            Self::Missing => Value::Missing,
            Self::Null => Value::Null,
            Self::Boolean(boolean) => Value::Boolean(*boolean),
            Self::Integer(integer) => Value::Integer(*integer),
            Self::Float(float) => Value::Float(*float),
            Self::Text(text) => Value::Text(Cow::Borrowed(text)),
            Self::Moment(moment) => Value::Moment(*moment),
            Self::Json(json) => Value::Json(Cow::Borrowed(json)),
        }
    }

    /// The same value, on its own.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Missing => Value::Missing,
            Self::Null => Value::Null,
            Self::Boolean(boolean) => Value::Boolean(boolean),
            Self::Integer(integer) => Value::Integer(integer),
            Self::Float(float) => Value::Float(float),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Moment(moment) => Value::Moment(moment),
            Self::Json(json) => Value::Json(Cow::Owned(json.into_owned())),
        }
    }

    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Missing | Self::Null)
    }

    /// Its text, as it stands in delimited output; none if nothing is known.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Missing | Self::Null => return None,
            Self::Boolean(true) => Cow::Borrowed("true"),
            Self::Boolean(false) => Cow::Borrowed("false"),
            Self::Integer(integer) => Cow::Owned(integer.to_string()),
            Self::Float(float) => Cow::Owned(float.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Moment(moment) => Cow::Owned(moment.to_string()),
            Self::Json(json) => Cow::Owned(json.to_string()),
        })
    }

    /// As a condition; none if nothing is known.
    pub(super) fn truth(&self) -> Result<Option<bool>, RowError> {
        match self {
            Self::Missing | Self::Null => Ok(None),
            Self::Boolean(boolean) => Ok(Some(*boolean)),
            Self::Integer(integer) => Ok(Some(*integer != 0)),
            Self::Text(text) => boolean(text).map(Some),
            Self::Float(_) | Self::Moment(_) | Self::Json(_) => Err(RowError::InvalidTypeConversion),
        }
    }

    /// As a number; none if nothing is known.
    pub(super) fn number(&self) -> Result<Option<Number>, RowError> {
        match self {
            Self::Missing | Self::Null => Ok(None),
            Self::Boolean(boolean) => Ok(Some(Number::Integer(i64::from(*boolean)))),
            Self::Integer(integer) => Ok(Some(Number::Integer(*integer))),
            Self::Float(float) => Ok(Some(Number::Float(*float))),
            Self::Text(text) => number(text).map(Some),
            Self::Moment(_) | Self::Json(_) => Err(RowError::InvalidTypeConversion),
        }
    }

    /// As a moment; none if nothing is known.
    pub(super) fn moment(&self) -> Result<Option<Moment>, RowError> {
        match self {
            Self::Missing | Self::Null => Ok(None),
            Self::Text(text) => Moment::parse(text).map(Some).ok_or(RowError::InvalidTypeConversion),
            Self::Moment(moment) => Ok(Some(*moment)),
            _ => Err(RowError::InvalidTypeConversion),
        }
    }

    /// The same value as another type.
    ///
    /// Fails with `InvalidTypeConversion` where there is no such value.
    pub fn cast(self, to: Type) -> Result<Self, RowError> {
        if self.is_unknown() {
            return Ok(Self::Null);
        }
        match to {
            Type::String => match self {
                Self::Text(_) => Ok(self),
                value => Ok(value.text().map_or(Self::Null, |text| Self::Text(Cow::Owned(text.into_owned())))),
            },
            Type::Boolean => match self {
                Self::Float(float) => Ok(Self::Boolean(float != 0.0)),
                value => Ok(value.truth()?.map_or(Self::Null, Self::Boolean)),
            },
            Type::Float => Ok(self.number()?.map_or(Self::Null, |number| Self::Float(number.float()))),
            Type::Int => match self {
                Self::Text(text) => {
                    Ok(Self::Integer(text.trim().parse().map_err(|_| RowError::InvalidTypeConversion)?))
                }
                value => value.number()?.map_or(Ok(Self::Null), |number| Ok(Self::Integer(number.truncated()?))),
            },
            Type::Timestamp => Ok(self.moment()?.map_or(Self::Null, Self::Moment)),
        }
    }

    /// How the two compare; none if nothing is known of one.
    pub(super) fn compare(&self, other: &Value<'_>) -> Result<Option<Ordering>, RowError> {
        if self.is_unknown() || other.is_unknown() {
            return Ok(None);
        }
        match (self, other) {
            (Self::Text(one), Value::Text(two)) => Ok(Some(one.cmp(two))),
            (Self::Moment(_), _) | (_, Value::Moment(_)) => {
                Ok(self.moment()?.zip(other.moment()?).map(|(one, two)| one.instant().cmp(&two.instant())))
            }
            (Self::Boolean(one), Value::Text(two)) => Ok(Some(one.cmp(&boolean(two)?))),
            (Self::Text(one), Value::Boolean(two)) => Ok(Some(boolean(one)?.cmp(two))),
            _ => Ok(self.number()?.zip(other.number()?).and_then(|(one, two)| one.compare(two))),
        }
    }
}

impl Number {
    /// As a float; a large int loses its last digits.
    #[expect(clippy::cast_precision_loss, reason = "what the type can hold")]
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        }
    }

    /// As an int, what is behind the point cut off.
    fn truncated(self) -> Result<i64, RowError> {
        match self {
            Self::Integer(integer) => Ok(integer),
            Self::Float(float) if float.abs() < 9.2e18 =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "cut on purpose, and in range")]
                Ok(float as i64)
            }
            Self::Float(_) => Err(RowError::ArithmeticOverflow),
        }
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(two)) => Some(one.cmp(&two)),
            (one, two) => one.float().partial_cmp(&two.float()),
        }
    }

    /// Two ints give an int, also divided.
    pub(super) fn calculate(self, operator: Operator, other: Self) -> Result<Self, RowError> {
        let zero = matches!(operator, Operator::Divide | Operator::Remainder) && other.float() == 0.0;
        if zero {
            return Err(RowError::DivideByZero);
        }
        if let (Self::Integer(one), Self::Integer(two)) = (self, other) {
            let integer = match operator {
                Operator::Add => one.checked_add(two),
                Operator::Subtract => one.checked_sub(two),
                Operator::Multiply => one.checked_mul(two),
                Operator::Divide => one.checked_div(two),
                Operator::Remainder => one.checked_rem(two),
            };
            return integer.map(Self::Integer).ok_or(RowError::ArithmeticOverflow);
        }
        let (one, two) = (self.float(), other.float());
        let float = match operator {
            Operator::Add => one + two,
            Operator::Subtract => one - two,
            Operator::Multiply => one * two,
            Operator::Divide => one / two,
            Operator::Remainder => one % two,
        };
        if float.is_finite() { Ok(Self::Float(float)) } else { Err(RowError::ArithmeticOverflow) }
    }

    /// As a value.
    pub(super) const fn value(self) -> Value<'static> {
        match self {
            Self::Integer(integer) => Value::Integer(integer),
            Self::Float(float) => Value::Float(float),
        }
    }
}

fn boolean(text: &str) -> Result<bool, RowError> {
    match text.trim() {
        "1" => Ok(true),
        "0" => Ok(false),
        text if text.eq_ignore_ascii_case("true") => Ok(true),
        text if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(RowError::InvalidTypeConversion),
    }
}

fn number(text: &str) -> Result<Number, RowError> {
    let text = text.trim();
    // The standard library also reads words, such as `inf`.
    if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
        return Err(RowError::InvalidTypeConversion);
    }
    match text.parse() {
        Ok(integer) => Ok(Number::Integer(integer)),
        Err(_) => match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Number::Float(float)),
            _ => Err(RowError::InvalidTypeConversion),
        },
    }
}
