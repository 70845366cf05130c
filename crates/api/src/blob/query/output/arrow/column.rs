//! Columns of Arrow, being filled.

use crate::blob::query::request::ArrowField;
use crate::blob::query::sql::RowError;
use crate::blob::query::sql::syntax::Type;
use crate::blob::query::sql::value::Value;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int64,
    Bool,
    /// In milliseconds.
    Timestamp,
    String,
    Double,
    Decimal {
        precision: u8,
        scale: i8,
    },
}

/// A value as its column holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Bytes(Vec<u8>),
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// For each value whether it is known.
    known: Vec<bool>,
    /// The values, little-endian or as text, one behind the other.
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Vec<i32>,
}

impl Kind {
    /// The type that a request means; none if there is no such type.
    pub(super) fn of(field: &ArrowField) -> Option<Self> {
        match field.kind.to_ascii_lowercase().as_str() {
            "int64" => Some(Self::Int64),
            "bool" => Some(Self::Bool),
            "timestamp[ms]" => Some(Self::Timestamp),
            "string" => Some(Self::String),
            "double" => Some(Self::Double),
            "decimal" => {
                let (precision, scale) = (field.precision?, field.scale.unwrap_or(0));
                ((1..=38).contains(&precision) && (0..=38).contains(&scale))
                    .then_some(Self::Decimal { precision, scale })
            }
            _ => None,
        }
    }

    /// The value as a column of this type holds it.
    pub(super) fn cell(self, value: Value<'_>) -> Result<Cell, RowError> {
        let to = match self {
            Self::Int64 => Type::Int,
            Self::Bool => Type::Boolean,
            Self::Timestamp => Type::Timestamp,
            Self::String | Self::Decimal { .. } => Type::String,
            Self::Double => Type::Float,
        };
        Ok(Cell::Bytes(match (self, value.cast(to)?) {
            (_, Value::Integer(integer)) => integer.to_le_bytes().to_vec(),
            (_, Value::Float(float)) => float.to_le_bytes().to_vec(),
            (_, Value::Boolean(boolean)) => vec![u8::from(boolean)],
            (_, Value::Moment(moment)) => moment.instant().as_millisecond().to_le_bytes().to_vec(),
            (Self::Decimal { scale, .. }, Value::Text(text)) => {
                decimal(&text, scale).ok_or(RowError::InvalidTypeConversion)?.to_le_bytes().to_vec()
            }
            (_, Value::Text(text)) => text.into_owned().into_bytes(),
            (_, Value::Missing | Value::Null | Value::Json(_)) => return Ok(Cell::Null),
        }))
    }

    /// Bytes of each value; none for texts.
    const fn width(self) -> Option<usize> {
        match self {
            Self::String => None,
            Self::Bool => Some(1),
            Self::Int64 | Self::Timestamp | Self::Double => Some(8),
            Self::Decimal { .. } => Some(16),
        }
    }
}

impl Column {
    pub(super) fn new(name: String, kind: Kind) -> Self {
        Self { name, kind, known: Vec::new(), bytes: Vec::new(), ends: Vec::new() }
    }

    pub(super) fn push(&mut self, cell: &Cell) {
        self.known.push(*cell != Cell::Null);
        match (cell, self.kind.width()) {
            (Cell::Bytes(bytes), _) => self.bytes.extend_from_slice(bytes),
            (Cell::Null, width) => self.bytes.resize(self.bytes.len() + width.unwrap_or(0), 0),
        }
        if self.kind == Kind::String {
            self.ends.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
        }
    }

    /// Bytes held.
    pub(super) const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Values that are not known.
    pub(super) fn nulls(&self) -> usize {
        self.known.iter().filter(|known| !**known).count()
    }

    /// The buffers of the column: which values are known, where texts begin and end, the values.
    pub(super) fn buffers(&self) -> Vec<Vec<u8>> {
        let mut buffers = vec![bits(self.known.iter().copied())];
        if self.kind == Kind::String {
            buffers.push([0].iter().chain(&self.ends).flat_map(|end: &i32| end.to_le_bytes()).collect());
        }
        buffers.push(match self.kind {
            Kind::Bool => bits(self.bytes.iter().map(|byte| *byte != 0)),
            _ => self.bytes.clone(),
        });
        buffers
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A bit each, the first one lowest.
fn bits(bits: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, bit) in bits.enumerate() {
        if index % 8 == 0 {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= u8::from(bit) << (index % 8);
        }
    }
    bytes
}

/// The number in units of the last of `scale` digits behind the point; digits beyond are rounded. None if it is no
/// number or too large.
fn decimal(text: &str, scale: i8) -> Option<i128> {
    let text = text.trim();
    let expanded;
    let plain = if text.contains(['e', 'E']) {
        expanded = text.parse::<f64>().ok().filter(|float| float.is_finite())?.to_string();
        &expanded
    } else {
        text
    };
    let (negative, digits) = match plain.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, plain.strip_prefix('+').unwrap_or(plain)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let scale = usize::try_from(scale).ok()?;
    let mut units: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes().chain(std::iter::repeat(b'0')).take(scale)) {
        units = units.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    if fraction.as_bytes().get(scale).is_some_and(|digit| *digit >= b'5') {
        units = units.checked_add(1)?;
    }
    Some(if negative { -units } else { units })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_scaled_and_rounded() {
        let cases = [
            ("400", 2, Some(40_000)),
            ("-1.5", 2, Some(-150)),
            ("+.125", 2, Some(13)),
            ("1e2", 1, Some(1000)),
            ("7", 0, Some(7)),
            ("6.5", 0, Some(7)),
            ("", 0, None),
            (".", 0, None),
            ("1.2.3", 0, None),
            ("x", 0, None),
            ("170141183460469231731687303715884105728", 0, None),
        ];
        for (text, scale, expected) in cases {
            assert_eq!(decimal(text, scale), expected, "{text} {scale}");
        }
    }

    #[test]
    fn a_column_has_its_buffers() {
        let mut texts = Column::new("a".to_owned(), Kind::String);
        for value in [Value::Text("ab".into()), Value::Null, Value::Integer(7)] {
            let cell = Kind::String.cell(value).unwrap();
            texts.push(&cell);
        }
        let ends = [0_i32, 2, 2, 3].map(i32::to_le_bytes).concat();
        assert_eq!((texts.nulls(), texts.buffers()), (1, vec![vec![0b101], ends, b"ab7".to_vec()]));

        let mut bools = Column::new("b".to_owned(), Kind::Bool);
        for index in 0..10 {
            bools.push(&Kind::Bool.cell(Value::Boolean(index % 3 == 0)).unwrap());
        }
        assert_eq!(bools.buffers(), [vec![0xff, 0b11], vec![0b0100_1001, 0b10]]);
        assert_eq!(Kind::Int64.cell(Value::Text("x".into())), Err(RowError::InvalidTypeConversion));
        assert_eq!(Kind::Timestamp.cell(Value::Text("1970T".into())), Ok(Cell::Bytes(vec![0; 8])));
    }
}
