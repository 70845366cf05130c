//! `tags`: the key of a blob or of one of its layers -> [`TagsRow`]; `tagged`: account, key, value, whether a version,
//! incarnation, blob, instant -> [`TaggedRow`]: the index that finds them.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::names::{AccountName, BlobName};
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};
use crate::tags::Tags;

/// The tags of a blob, a snapshot or a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagsRow {
    /// The account, which the keys of the index begin with.
    pub account: String,
    /// The container, which the rows of the index name.
    pub container: String,
    /// The tags, at least one.
    pub tags: Tags,
}

impl Row for TagsRow {
    const VERSION: u8 = 1;
}

/// Where to look for what the index found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaggedRow {
    /// The container's name; it may have another incarnation by now.
    pub container: String,
}

impl Row for TaggedRow {
    const VERSION: u8 = 1;
}

/// What the index finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// The tag's value.
    pub value: String,
    /// The container's incarnation.
    pub incarnation: u64,
    /// The blob.
    pub blob: BlobName,
    /// The version; none for the blob itself.
    pub version: Option<Timestamp>,
}

/// The key of an index row.
pub fn tagged_key(account: &str, key: &str, found: &Tagged) -> Vec<u8> {
    KeyWriter::new()
        .text(account)
        .u8(u8::from(found.version.is_some()))
        .text(key)
        .text(&found.value)
        .u64(found.incarnation)
        .text(found.blob.as_str())
        .u64(found.version.map_or(0, Timestamp::ticks))
        .finish()
}

/// What the keys of the index begin with for blobs, or for versions, of `account` that have the tag `key`.
pub fn tagged_prefix(account: &AccountName, versions: bool, key: &str) -> Vec<u8> {
    KeyWriter::new().text(account.as_str()).u8(u8::from(versions)).text(key).finish()
}

/// The part of those keys from the value `value` on.
pub fn tagged_value(account: &AccountName, versions: bool, key: &str, value: &str) -> Vec<u8> {
    KeyWriter::new().text(account.as_str()).u8(u8::from(versions)).text(key).text(value).finish()
}

/// What the key of an index row says.
pub fn parse_tagged(key: &[u8]) -> Result<Tagged, StoreError> {
    let mut reader = KeyReader::new(Space::Tagged, key);
    reader.text()?;
    let is_version = reader.u8()? != 0;
    reader.text()?;
    let (value, incarnation, blob) = (reader.text()?, reader.u64()?, reader.text()?);
    let blob = BlobName::parse(&blob).map_err(|_| reader.corrupt("not a blob name"))?;
    let instant = Timestamp::from_ticks(reader.u64()?);
    reader.end()?;
    Ok(Tagged { value, incarnation, blob, version: is_version.then_some(instant) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        let blob = BlobName::parse("b").unwrap();
        let mut found = Tagged { value: "v".into(), incarnation: 1, blob, version: None };
        let key = tagged_key("dev", "k", &found);
        assert_eq!(key, b"dev\x00\x01\x00k\x00\x01v\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01b\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00");
        assert_eq!(parse_tagged(&key).unwrap(), found);
        found.version = Some(Timestamp::from_ticks(2));
        let key = tagged_key("dev", "k", &found);
        assert_eq!(parse_tagged(&key).unwrap(), found);
        let dev = AccountName::parse("dev").unwrap();
        assert!(key.starts_with(&tagged_value(&dev, true, "k", "v")));
        assert!(key.starts_with(&tagged_prefix(&dev, true, "k")));

        let tags = Tags::new(vec![("k".into(), "v".into())]).unwrap();
        let row = TagsRow { account: "dev".into(), container: "c".into(), tags };
        let bytes = encode(&row).unwrap();
        assert_eq!(bytes, b"\x01\x03dev\x01c\x01\x01k\x01v");
        assert_eq!(decode::<TagsRow>(Space::Tags, b"k", &bytes).unwrap(), row);
        assert_eq!(encode(&TaggedRow { container: "c".into() }).unwrap(), b"\x01\x01c");
    }
}
