//! Keys and values as bytes. The only file that knows the encodings; see `docs/FORMAT.md`.

use bincode::Options as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::store::{Space, StoreError, VALUE_BYTES_MAX};

/// Builds an order-preserving key field by field.
#[derive(Clone, Debug, Default)]
pub struct KeyWriter(Vec<u8>);

impl KeyWriter {
    /// An empty key.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends bytes that may hold anything: `00` becomes `00 FF`, and `00 01` ends the field, so that order is that
    /// of the plain bytes and no field is another's prefix.
    #[must_use]
    pub fn bytes(mut self, value: &[u8]) -> Self {
        self = self.open_bytes(value);
        self.0.extend([0x00, 0x01]);
        self
    }

    /// Appends bytes without ending the field: the prefix of every key whose field begins with `value`.
    #[must_use]
    pub fn open_bytes(mut self, value: &[u8]) -> Self {
        for &byte in value {
            self.0.push(byte);
            if byte == 0x00 {
                self.0.push(0xFF);
            }
        }
        self
    }

    /// Appends text as [`Self::bytes`].
    #[must_use]
    pub fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    /// Appends a big-endian integer.
    #[must_use]
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    /// Appends one byte.
    #[must_use]
    pub fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    /// The key.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a key field by field, strictly.
#[derive(Clone, Debug)]
pub struct KeyReader<'a> {
    space: Space,
    whole: &'a [u8],
    rest: &'a [u8],
}

impl<'a> KeyReader<'a> {
    /// Reads `key`, which was found in `space`.
    pub const fn new(space: Space, key: &'a [u8]) -> Self {
        Self { space, whole: key, rest: key }
    }

    /// A field written by [`KeyWriter::bytes`].
    pub fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        let mut field = Vec::with_capacity(self.rest.len());
        loop {
            match *self.rest {
                [0x00, 0x01, ..] => {
                    self.rest = self.rest.get(2..).unwrap_or_default();
                    return Ok(field);
                }
                [0x00, 0xFF, ..] => {
                    field.push(0x00);
                    self.rest = self.rest.get(2..).unwrap_or_default();
                }
                [0x00, ..] | [] => return Err(self.corrupt("a text field does not end")),
                [byte, ref rest @ ..] => {
                    field.push(byte);
                    self.rest = rest;
                }
            }
        }
    }

    /// A field written by [`KeyWriter::text`].
    pub fn text(&mut self) -> Result<String, StoreError> {
        String::from_utf8(self.bytes()?).map_err(|_| self.corrupt("a text field is not UTF-8"))
    }

    /// A field written by [`KeyWriter::u64`].
    pub fn u64(&mut self) -> Result<u64, StoreError> {
        let (field, rest) = self.rest.split_first_chunk().ok_or_else(|| self.corrupt("an integer is cut off"))?;
        self.rest = rest;
        Ok(u64::from_be_bytes(*field))
    }

    /// A field written by [`KeyWriter::u8`].
    pub fn u8(&mut self) -> Result<u8, StoreError> {
        let (&field, rest) = self.rest.split_first().ok_or_else(|| self.corrupt("a byte is missing"))?;
        self.rest = rest;
        Ok(field)
    }

    /// Checks that nothing is left.
    pub fn end(self) -> Result<(), StoreError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.corrupt("the key is too long")) }
    }

    /// The error for a key that does not decode.
    pub fn corrupt(&self, reason: &str) -> StoreError {
        corrupt(self.space, self.whole, reason)
    }
}

/// Kinds that stand in keys as a number, each said once. The numbers are on disk and never reused.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant = $number,)* }

        impl $name {
            /// The kind of this number, if there is one.
            fn of(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }
    };
}
pub(super) use numbered;

/// A row value: one frozen struct per version.
pub trait Row: Serialize + DeserializeOwned {
    /// The first byte of the value. Never reused for another shape in the same space.
    const VERSION: u8;
}

/// The bytes of `row`: its version, then its fields.
pub fn encode<R: Row>(row: &R) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![R::VERSION];
    options().serialize_into(&mut bytes, row).map_err(|error| StoreError::Backend(format!("row: {error}")))?;
    Ok(bytes)
}

/// The row in `bytes`, found in `space` at `key`. Nothing is defaulted, nothing may be left over.
pub fn decode<R: Row>(space: Space, key: &[u8], bytes: &[u8]) -> Result<R, StoreError> {
    match bytes.split_first() {
        Some((&version, fields)) if version == R::VERSION => {
            options().deserialize(fields).map_err(|error| corrupt(space, key, &error.to_string()))
        }
        Some((version, _)) => Err(corrupt(space, key, &format!("unknown row version {version}"))),
        None => Err(corrupt(space, key, "the value is empty")),
    }
}

/// The error for a row that does not decode.
pub fn corrupt(space: Space, key: &[u8], reason: &str) -> StoreError {
    StoreError::Corrupt { space, key: hex(key), reason: reason.to_owned() }
}

/// A key as errors and log lines show it.
pub fn hex(key: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(key.len() * 2);
    for byte in key {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
    }
    text
}

/// Variable-length integers, no trailing bytes, bounded allocation: with its version byte a row is a value that every
/// store takes.
fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_limit(VALUE_BYTES_MAX as u64 - 1)
}

#[cfg(test)]
mod tests;
