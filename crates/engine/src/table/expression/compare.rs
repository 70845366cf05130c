//! How a value as it lies in a row compares with a constant.
//!
//! - Numbers compare by number, whatever their types, and exactly: no integer is rounded to a double.
//! - NaN equals nothing, not even itself, and is neither less nor greater: only `ne` holds.
//! - Text compares by code units of UTF-16, letter case included.
//! - Bytes compare one by one; what another begins with is less than that.
//! - GUIDs compare as .NET does: field by field as they are written, which is byte by byte.
//! - `false` is less than `true`.
//! - Values of other pairs of types do not compare: no operator holds, not even `ne`.

use std::cmp::Ordering;

use super::Operator;
use crate::rows::entity::body::ValueRef;
use crate::table::value::Value;

/// Whether `value operator constant` holds.
pub(super) fn holds(value: ValueRef<'_>, operator: Operator, constant: &Value) -> bool {
    match (value, constant) {
        (ValueRef::Binary(value), Value::Binary(constant)) => operator.accepts(Some(value.cmp(constant))),
        (ValueRef::Boolean(value), Value::Boolean(constant)) => operator.accepts(Some(value.cmp(constant))),
        (ValueRef::DateTime(value), Value::DateTime(constant)) => operator.accepts(Some(value.cmp(constant))),
        (ValueRef::Guid(value), Value::Guid(constant)) => operator.accepts(Some(value.cmp(constant))),
        (ValueRef::String(value), Value::String(constant)) => match operator {
            // Most filters on text ask for equality, which needs no order.
            Operator::Equal => value == constant.as_bytes(),
            Operator::NotEqual => value != constant.as_bytes(),
            _ => operator.accepts(Some(by_units(value, constant.as_bytes()))),
        },
        (value, constant) => match (Number::of(value), Number::of_constant(constant)) {
            (Some(value), Some(constant)) => operator.accepts(value.compare(constant)),
            _ => false,
        },
    }
}

impl Operator {
    /// Whether it holds for values that compare so; `None`: one of them is NaN.
    pub(super) fn accepts(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        }
    }
}

/// A number of any type.
#[derive(Clone, Copy)]
enum Number {
    Integer(i64),
    Double(f64),
}

impl Number {
    fn of(value: ValueRef<'_>) -> Option<Self> {
        Some(match value {
            ValueRef::Double(value) => Self::Double(value),
            ValueRef::Int32(value) => Self::Integer(value.into()),
            ValueRef::Int64(value) => Self::Integer(value),
            _ => return None,
        })
    }

    fn of_constant(value: &Value) -> Option<Self> {
        Some(match *value {
            Value::Double(value) => Self::Double(value),
            Value::Int32(value) => Self::Integer(value.into()),
            Value::Int64(value) => Self::Integer(value),
            _ => return None,
        })
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => Some(one.cmp(&other)),
            (Self::Double(one), Self::Double(other)) => one.partial_cmp(&other),
            (Self::Integer(one), Self::Double(other)) => integer_with_double(one, other),
            (Self::Double(one), Self::Integer(other)) => integer_with_double(other, one).map(Ordering::reverse),
        }
    }
}

/// 2⁶³: the first double beyond every `i64`.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

fn integer_with_double(integer: i64, double: f64) -> Option<Ordering> {
    if double >= BEYOND {
        return Some(Ordering::Less);
    }
    if double < -BEYOND {
        return Some(Ordering::Greater);
    }
    #[expect(clippy::cast_possible_truncation, reason = "only the fraction is cut off: the bounds are checked")]
    let whole = double as i64;
    // What is left of the double is zero, or has its sign, or is NaN as the double is.
    let fraction = 0.0.partial_cmp(&double.fract())?;
    Some(integer.cmp(&whole).then(fraction))
}

/// The order of two texts in UTF-8 by their code units of UTF-16.
///
/// UTF-8 sorts by characters. UTF-16 sorts so too, but for the characters beyond U+FFFF: their surrogates come before
/// U+E000. Where two texts part, such a character shows as a byte of `F0` or more, and U+E000 to U+FFFF as `EE` or `EF`.
pub(super) fn by_units(one: &[u8], other: &[u8]) -> Ordering {
    match one.iter().zip(other).find(|(one, other)| one != other) {
        Some((&(0xEE | 0xEF), &(0xF0..))) => Ordering::Greater,
        Some((&(0xF0..), &(0xEE | 0xEF))) => Ordering::Less,
        Some((one, other)) => one.cmp(other),
        None => one.len().cmp(&other.len()),
    }
}
