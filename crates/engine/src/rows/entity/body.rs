//! The properties of an entity as bytes, one after the other in the client's order.
//!
//! Each is its type (one byte), the length of its name (two), of text and of binary values the length of the value
//! (four), the name, the value. Whoever looks for one property passes over the others by their lengths.
//!
//! | type | value |
//! | --- | --- |
//! | 1 `Edm.Binary` | the bytes |
//! | 2 `Edm.Boolean` | 0 or 1 |
//! | 3 `Edm.DateTime` | ticks since the year 1, eight bytes |
//! | 4 `Edm.Double` | eight bytes |
//! | 5 `Edm.Guid` | sixteen bytes in the order in which it is written |
//! | 6 `Edm.Int32` | four bytes |
//! | 7 `Edm.Int64` | eight bytes |
//! | 8 `Edm.String` | UTF-8 |

use uuid::Uuid;

use crate::clock::Timestamp;
use crate::rows::codec::corrupt;
use crate::store::{Space, StoreError};
use crate::table::Properties;
use crate::table::value::Value;

const BINARY: u8 = 1;
const BOOLEAN: u8 = 2;
const DATE_TIME: u8 = 3;
const DOUBLE: u8 = 4;
const GUID: u8 = 5;
const INT32: u8 = 6;
const INT64: u8 = 7;
const STRING: u8 = 8;

/// The bytes are not the properties of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

impl Malformed {
    /// The error of the row at `key`, whose properties they should be.
    pub fn at(self, key: &[u8]) -> StoreError {
        corrupt(Space::Entities, key, self.0)
    }
}

/// A value where it lies. Text is not checked to be UTF-8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// [`Value::Binary`].
    Binary(&'a [u8]),
    /// [`Value::Boolean`].
    Boolean(bool),
    /// [`Value::DateTime`].
    DateTime(Timestamp),
    /// [`Value::Double`].
    Double(f64),
    /// [`Value::Guid`].
    Guid(Uuid),
    /// [`Value::Int32`].
    Int32(i32),
    /// [`Value::Int64`].
    Int64(i64),
    /// [`Value::String`], in UTF-8.
    String(&'a [u8]),
}

impl ValueRef<'_> {
    /// The value by itself.
    pub fn to_value(self) -> Result<Value, Malformed> {
        Ok(match self {
            Self::Binary(bytes) => Value::Binary(bytes.to_vec()),
            Self::Boolean(value) => Value::Boolean(value),
            Self::DateTime(value) => Value::DateTime(value),
            Self::Double(value) => Value::Double(value),
            Self::Guid(value) => Value::Guid(value),
            Self::Int32(value) => Value::Int32(value),
            Self::Int64(value) => Value::Int64(value),
            Self::String(bytes) => Value::String(utf8(bytes)?),
        })
    }
}

/// The bytes of `properties`.
///
/// Fails with [`StoreError::TooLarge`] on lengths that no property has that the protocol lets through.
pub fn encode(properties: &Properties) -> Result<Vec<u8>, StoreError> {
    let mut body = Vec::new();
    for (name, value) in &properties.0 {
        put(&mut body, name, value)?;
    }
    Ok(body)
}

fn put(body: &mut Vec<u8>, name: &str, value: &Value) -> Result<(), StoreError> {
    let (kind, bytes): (u8, &[u8]) = match value {
        Value::Binary(bytes) => (BINARY, bytes),
        Value::Boolean(value) => (BOOLEAN, &[u8::from(*value)]),
        Value::DateTime(value) => (DATE_TIME, &value.ticks().to_le_bytes()),
        Value::Double(value) => (DOUBLE, &value.to_le_bytes()),
        Value::Guid(value) => (GUID, value.as_bytes()),
        Value::Int32(value) => (INT32, &value.to_le_bytes()),
        Value::Int64(value) => (INT64, &value.to_le_bytes()),
        Value::String(text) => (STRING, text.as_bytes()),
    };
    body.push(kind);
    let length = u16::try_from(name.len()).map_err(|_| too_large("a name", name.len(), usize::from(u16::MAX)))?;
    body.extend(length.to_le_bytes());
    if matches!(kind, BINARY | STRING) {
        let length = u32::try_from(bytes.len()).map_err(|_| too_large("a value", bytes.len(), u32::MAX as usize))?;
        body.extend(length.to_le_bytes());
    }
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(bytes);
    Ok(())
}

fn too_large(what: &'static str, size: usize, bound: usize) -> StoreError {
    StoreError::TooLarge { what, size, bound }
}

/// All properties of the entity at `key`, strictly.
pub fn decode(key: &[u8], body: &[u8]) -> Result<Properties, StoreError> {
    select(key, body, |_| true)
}

/// The properties of the entity at `key` whose names are `wanted`, in their order.
pub fn select(key: &[u8], body: &[u8], wanted: impl Fn(&str) -> bool) -> Result<Properties, StoreError> {
    let read = || {
        let (mut properties, mut rest) = (Vec::new(), body);
        while let Some((property, after)) = Property::first(rest)? {
            let name = std::str::from_utf8(property.name).map_err(|_| Malformed("a name is not UTF-8"))?;
            if wanted(name) {
                properties.push((name.to_owned(), property.value()?.to_value()?));
            }
            rest = after;
        }
        Ok(Properties(properties))
    };
    read().map_err(|error: Malformed| error.at(key))
}

/// The value of the property of that name, without decoding the others.
pub fn find<'a>(body: &'a [u8], name: &[u8]) -> Result<Option<ValueRef<'a>>, Malformed> {
    let mut rest = body;
    while let Some((property, after)) = Property::first(rest)? {
        if property.name == name {
            return property.value().map(Some);
        }
        rest = after;
    }
    Ok(None)
}

/// A property cut out, not decoded.
#[derive(Clone, Copy, Debug)]
struct Property<'a> {
    kind: u8,
    name: &'a [u8],
    value: &'a [u8],
}

impl<'a> Property<'a> {
    /// The property that `body` begins with, and what follows it.
    fn first(body: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, Malformed> {
        let Some((&kind, rest)) = body.split_first() else { return Ok(None) };
        let (name_length, rest) = rest.split_first_chunk().ok_or(CUT)?;
        let (length, rest) = match kind {
            BINARY | STRING => {
                let (length, rest) = rest.split_first_chunk().ok_or(CUT)?;
                (u32::from_le_bytes(*length) as usize, rest)
            }
            DATE_TIME | DOUBLE | INT64 => (8, rest),
            INT32 => (4, rest),
            BOOLEAN => (1, rest),
            GUID => (16, rest),
            _ => return Err(Malformed("a property of unknown type")),
        };
        let (name, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*name_length))).ok_or(CUT)?;
        let (value, rest) = rest.split_at_checked(length).ok_or(CUT)?;
        Ok(Some((Self { kind, name, value }, rest)))
    }

    fn value(&self) -> Result<ValueRef<'a>, Malformed> {
        Ok(match self.kind {
            BINARY => ValueRef::Binary(self.value),
            BOOLEAN => match self.value {
                [0] => ValueRef::Boolean(false),
                [1] => ValueRef::Boolean(true),
                _ => return Err(Malformed("a boolean that is neither")),
            },
            DATE_TIME => ValueRef::DateTime(Timestamp::from_ticks(u64::from_le_bytes(fixed(self.value)?))),
            DOUBLE => ValueRef::Double(f64::from_le_bytes(fixed(self.value)?)),
            GUID => ValueRef::Guid(Uuid::from_bytes(fixed(self.value)?)),
            INT32 => ValueRef::Int32(i32::from_le_bytes(fixed(self.value)?)),
            INT64 => ValueRef::Int64(i64::from_le_bytes(fixed(self.value)?)),
            _ => ValueRef::String(self.value),
        })
    }
}

const CUT: Malformed = Malformed("a property is cut off");

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Malformed> {
    bytes.try_into().map_err(|_| CUT)
}

fn utf8(bytes: &[u8]) -> Result<String, Malformed> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Malformed("a text is not UTF-8"))
}
