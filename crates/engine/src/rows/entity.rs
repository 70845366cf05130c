//! `entities`: incarnation of the table, partition, row -> [`EntityRow`]; `entity-parts`: the same and a part -> bytes:
//! what of the properties does not fit the entity's row.
//!
//! The keys sort as the service sorts them, by code units of UTF-16: text as in UTF-8, but every character beyond
//! U+FFFF as its two surrogates in three bytes each.
//!
//! The value is no frozen struct but bytes to be looked into without decoding them: a version byte, the ETag as eight
//! bytes, the number of parts, then the properties as [`body`] lays them out. All integers in it are little-endian.

pub mod body;

use std::borrow::Cow;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::etag::Etag;
use crate::names::KeyText;
use crate::rows::codec::{KeyReader, KeyWriter, corrupt};
use crate::store::{Space, StoreError, Tx, VALUE_BYTES_MAX, View};
use crate::table::EntityKey;

/// The first byte of the value.
const VERSION: u8 = 1;
/// Bytes before the properties: version, ETag, parts.
const HEADER_BYTES: usize = 1 + 8 + 1;
/// Bytes of the properties that lie in the entity's row.
pub const FIRST_BYTES_MAX: usize = VALUE_BYTES_MAX - HEADER_BYTES;
/// Bytes of the properties in each further row.
pub const PART_BYTES_MAX: usize = VALUE_BYTES_MAX;

/// An entity as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityRow {
    /// Its version.
    pub etag: Etag,
    /// Its properties, as [`body::encode`] lays them out.
    pub body: Bytes,
}

/// What lies in the entity's own row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its version.
    pub etag: Etag,
    /// Rows in `entity-parts` that its properties go on in.
    pub parts: u8,
    /// The beginning of its properties: all of them if there are no parts.
    pub first: Bytes,
}

/// What every key of a table's entities begins with.
pub fn children(incarnation: u64) -> Vec<u8> {
    KeyWriter::new().u64(incarnation).finish()
}

/// The key of an entity.
pub fn key(incarnation: u64, key: &EntityKey) -> Vec<u8> {
    let (partition, row) = (units(key.partition.as_str()), units(key.row.as_str()));
    KeyWriter::new().u64(incarnation).bytes(&partition).bytes(&row).finish()
}

/// One of an entity's two keys, or any text beside them, as it stands in [`key`], with its end: these bytes sort as the
/// text does, and none is another's prefix.
pub fn field(text: &str) -> Vec<u8> {
    KeyWriter::new().bytes(&units(text)).finish()
}

/// The two keys of the entity at `key`, as [`field`] writes them.
pub fn fields(key: &[u8]) -> Result<(&[u8], &[u8]), StoreError> {
    let cut = || corrupt(Space::Entities, key, "a text field does not end");
    let after = key.get(size_of::<u64>()..).ok_or_else(cut)?;
    let end = after.windows(2).position(|pair| pair == [0x00, 0x01]).ok_or_else(cut)?;
    after.split_at_checked(end + 2).ok_or_else(cut)
}

/// The entity that lies at `key`.
pub fn parse_key(key: &[u8]) -> Result<EntityKey, StoreError> {
    let mut reader = KeyReader::new(Space::Entities, key);
    reader.u64()?;
    let mut text = || {
        let text = text(reader.bytes()?).ok_or_else(|| reader.corrupt("a key is not in code units of UTF-16"))?;
        KeyText::parse(&text).map_err(|_| reader.corrupt("a key that no entity can have"))
    };
    let key = EntityKey { partition: text()?, row: text()? };
    reader.end()?;
    Ok(key)
}

/// The key of a further part of an entity, from 0 on.
pub fn part_key(key: &[u8], part: u8) -> Vec<u8> {
    [key, &[part]].concat()
}

/// The entity at `key`, whole.
pub fn read(view: &dyn View, key: &[u8]) -> Result<Option<EntityRow>, StoreError> {
    head(view, key)?.map(|head| head.whole(view, key)).transpose()
}

/// What lies in the row at `key`: enough to judge an entity by its version, and to write over it.
pub fn head(view: &dyn View, key: &[u8]) -> Result<Option<Head>, StoreError> {
    view.get(Space::Entities, key)?.map(|value| Head::parse(key, &value)).transpose()
}

/// Writes an entity at `key`, over one that had so many parts.
///
/// Fails with [`StoreError::TooLarge`] if its properties are over what 255 parts hold, four times what an entity may
/// have.
pub fn write(tx: &mut dyn Tx, key: Vec<u8>, row: &EntityRow, old_parts: u8) -> Result<(), StoreError> {
    let (first, rest) = row.body.split_at(row.body.len().min(FIRST_BYTES_MAX));
    let parts = u8::try_from(rest.len().div_ceil(PART_BYTES_MAX)).map_err(|_| StoreError::TooLarge {
        what: "an entity",
        size: row.body.len(),
        bound: FIRST_BYTES_MAX + usize::from(u8::MAX) * PART_BYTES_MAX,
    })?;
    for (part, bytes) in (0..parts).zip(rest.chunks(PART_BYTES_MAX)) {
        tx.put(Space::EntityParts, part_key(&key, part), bytes.to_vec())?;
    }
    for part in parts..old_parts {
        tx.delete(Space::EntityParts, &part_key(&key, part))?;
    }
    let mut value = Vec::with_capacity(HEADER_BYTES + first.len());
    value.push(VERSION);
    value.extend(row.etag.committed().ticks().to_le_bytes());
    value.push(parts);
    value.extend_from_slice(first);
    tx.put(Space::Entities, key, value)
}

/// Removes the entity at `key`, which has so many parts.
pub fn remove(tx: &mut dyn Tx, key: &[u8], parts: u8) -> Result<(), StoreError> {
    for part in 0..parts {
        tx.delete(Space::EntityParts, &part_key(key, part))?;
    }
    tx.delete(Space::Entities, key)
}

/// The version, the number of parts and the beginning of the properties in `value`, found at `key`.
pub fn split<'a>(key: &[u8], value: &'a [u8]) -> Result<(Etag, u8, &'a [u8]), StoreError> {
    match value.split_first_chunk::<HEADER_BYTES>() {
        Some(([VERSION, etag @ .., parts], first)) => {
            Ok((Etag::at(Timestamp::from_ticks(u64::from_le_bytes(*etag))), *parts, first))
        }
        Some(([version, ..], _)) => Err(corrupt(Space::Entities, key, &format!("unknown row version {version}"))),
        None => Err(corrupt(Space::Entities, key, "the row is cut off")),
    }
}

impl Head {
    /// The head in `value`, found at `key`.
    pub fn parse(key: &[u8], value: &Bytes) -> Result<Self, StoreError> {
        let (etag, parts, first) = split(key, value)?;
        Ok(Self { etag, parts, first: value.slice_ref(first) })
    }

    /// The whole entity, whose parts lie in `view` too.
    pub fn whole(self, view: &dyn View, key: &[u8]) -> Result<EntityRow, StoreError> {
        let body = if self.parts == 0 { self.first } else { whole(view, key, self.parts, &self.first)?.into() };
        Ok(EntityRow { etag: self.etag, body })
    }
}

/// All properties of an entity whose row holds `first` of them.
pub fn whole(view: &dyn View, key: &[u8], parts: u8, first: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut whole = Vec::with_capacity(first.len() + usize::from(parts) * PART_BYTES_MAX);
    whole.extend_from_slice(first);
    for part in 0..parts {
        let key = part_key(key, part);
        let bytes = view.get(Space::EntityParts, &key)?;
        whole.extend_from_slice(
            &bytes.ok_or_else(|| corrupt(Space::EntityParts, &key, "a part of an entity is missing"))?,
        );
    }
    Ok(whole)
}

/// `text` in bytes that sort as its code units of UTF-16 do.
fn units(text: &str) -> Cow<'_, [u8]> {
    if text.bytes().all(|byte| byte < 0xF0) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len() + text.len() / 2);
    for char in text.chars() {
        let mut buffer = [0; 4];
        if char <= '\u{FFFF}' {
            bytes.extend_from_slice(char.encode_utf8(&mut buffer).as_bytes());
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            let [high, low] = unit.to_be_bytes();
            bytes.extend([0xE0 | high >> 4, 0x80 | (high & 0x0F) << 2 | low >> 6, 0x80 | low & 0x3F]);
        }
    }
    Cow::Owned(bytes)
}

/// The text of which [`units`] makes `bytes`, if there is one.
fn text(bytes: Vec<u8>) -> Option<String> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return text.bytes().all(|byte| byte < 0xF0).then_some(text),
        Err(error) => error.into_bytes(),
    };
    let mut units_of = Vec::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    loop {
        let (unit, after) = match *rest {
            [] => break,
            [one @ 0x00..0x80, ref after @ ..] => (u16::from(one), after),
            [one @ 0xC0..0xE0, two, ref after @ ..] => (u16::from(one & 0x1F) << 6 | u16::from(two & 0x3F), after),
            [one @ 0xE0..0xF0, two, three, ref after @ ..] => {
                (u16::from(one & 0x0F) << 12 | u16::from(two & 0x3F) << 6 | u16::from(three & 0x3F), after)
            }
            _ => return None,
        };
        units_of.push(unit);
        rest = after;
    }
    // What is not exactly what the writer makes would lie elsewhere than it is looked for.
    String::from_utf16(&units_of).ok().filter(|text| *units(text) == *bytes)
}

#[cfg(test)]
mod tests;
