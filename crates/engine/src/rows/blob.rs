//! `blobs`: incarnation of the container, blob name -> [`BlobRow`].

use serde::{Deserialize, Serialize};

use crate::blob::copying::CopyState;
use crate::blob::kind::BlobKind;
use crate::clock::Timestamp;
use crate::encryption::Encryption;
use crate::etag::Etag;
use crate::expiry::Expiry;
use crate::lease::Lease;
use crate::names::BlobName;
use crate::payload::PayloadId;
use crate::properties::{HttpProperties, Metadata};
use crate::protection::Protection;
use crate::range::ByteRange;
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::rows::list::ListId;
use crate::store::{Space, StoreError};
use crate::tier::TierState;

/// A committed blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRow {
    /// When the blob was first created.
    pub created: Timestamp,
    /// Its version.
    pub etag: Etag,
    /// The version that it is, where versions are kept.
    pub version: Option<Timestamp>,
    /// What kind of blob it is.
    pub kind: BlobKind,
    /// Bytes of content.
    pub length: u64,
    /// Stored HTTP properties.
    pub http: HttpProperties,
    /// Its metadata.
    pub metadata: Metadata,
    /// Its lease.
    pub lease: Lease,
    /// Where the bytes are.
    pub content: Content,
    /// How many tags it has; they lie in a row of their own.
    pub tags: u8,
    /// Its access tier, once one was set.
    pub tier: Option<TierState>,
    /// The copy that made it.
    pub copy: Option<CopyState>,
    /// When it expires.
    pub expires: Option<Expiry>,
    /// What protects it from overwriting and deleting.
    pub protection: Protection,
    /// Under which key it is stored.
    pub encryption: Encryption,
    /// Of a page blob: when it was put as a whole. Only what was written since can be compared.
    pub begun: Option<Timestamp>,
}

impl Row for BlobRow {
    const VERSION: u8 = 1;
}

/// Where the bytes of a blob are. The blob holds one reference on what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Nowhere: the blob is empty.
    Empty,
    /// In one stored body: the blob was put whole.
    Whole(PayloadId),
    /// In a committed block list.
    Blocks(ListId),
    /// In the first bytes of a list that may still grow: the blob was appended to.
    Log(ListId),
    /// In pages: those of a map, as of one of its epochs.
    Pages {
        /// The map.
        map: u64,
        /// The epoch.
        epoch: u64,
        /// What reads as zeros though there may still be pages; nothing if it has no bytes.
        cleared: ByteRange,
    },
}

/// The key of the blob `name` in the container `incarnation`.
pub fn key(incarnation: u64, name: &BlobName) -> Vec<u8> {
    KeyWriter::new().u64(incarnation).text(name.as_str()).finish()
}

/// What the keys of the container's blobs whose names begin with `prefix` begin with.
pub fn prefix(incarnation: u64, prefix: &[u8]) -> Vec<u8> {
    KeyWriter::new().u64(incarnation).open_bytes(prefix).finish()
}

/// The incarnation and the blob that `key` begins with: it is that of a blob, or of something that hangs below it.
pub fn owner(space: Space, key: &[u8]) -> Result<(u64, BlobName), StoreError> {
    let mut reader = KeyReader::new(space, key);
    let incarnation = reader.u64()?;
    let text = reader.text()?;
    let name = BlobName::parse(&text).map_err(|_| reader.corrupt("not a blob name"))?;
    Ok((incarnation, name))
}

/// The blob's name in `key`, found in `space`: blobs and stagings have the same keys.
pub fn name(space: Space, key: &[u8]) -> Result<BlobName, StoreError> {
    let mut reader = KeyReader::new(space, key);
    reader.u64()?;
    let text = reader.text()?;
    let name = BlobName::parse(&text).map_err(|_| reader.corrupt("not a blob name"))?;
    reader.end()?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};

    fn blob(text: &str) -> BlobName {
        BlobName::parse(text).unwrap()
    }

    #[test]
    fn a_key_on_disk_looks_like_this_for_ever() {
        assert_eq!(key(258, &blob("a/é")), b"\x00\x00\x00\x00\x00\x00\x01\x02a/\xC3\xA9\x00\x01");
        assert_eq!(name(Space::Blobs, &key(258, &blob("a/é"))).unwrap(), blob("a/é"));
    }

    #[test]
    fn keys_sort_like_their_names() {
        let names = ["!", "a", "a ", "a!", "a/", "a/b", "aa", "b", "é", "\u{10FFFF}"];
        for (first, second) in names.iter().zip(names.iter().skip(1)) {
            assert!(key(1, &blob(first)) < key(1, &blob(second)), "{first} {second}");
            assert!(key(1, &blob(second)) < key(2, &blob(first)), "{first} {second}");
        }
    }

    #[test]
    fn a_value_on_disk_looks_like_this_for_ever() {
        let row = BlobRow {
            created: Timestamp::from_ticks(1),
            etag: Etag::at(Timestamp::from_ticks(2)),
            version: None,
            kind: BlobKind::Block,
            length: 3,
            http: HttpProperties { content_type: Some("t".into()), ..HttpProperties::default() },
            metadata: Metadata::default(),
            lease: Lease::Available,
            content: Content::Whole(PayloadId(9)),
            tags: 4,
            tier: None,
            copy: None,
            expires: None,
            protection: Protection::default(),
            encryption: Encryption::Account,
            begun: None,
        };
        let bytes = encode(&row).unwrap();
        assert_eq!(bytes, [1, 1, 2, 0, 0, 3, 0, 1, 1, b't', 0, 0, 0, 0, 0, 0, 1, 9, 4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(decode::<BlobRow>(Space::Blobs, b"k", &bytes).unwrap(), row);
        let others: [(_, _, &[u8], &[u8]); 3] = [
            (BlobKind::Append { blocks: 5, sealed: true }, Content::Log(ListId(6)), &[1, 5, 1], &[3, 6]),
            (BlobKind::Page { sequence: 7 }, Content::Empty, &[2, 7], &[0]),
            (
                BlobKind::Page { sequence: 7 },
                Content::Pages { map: 8, epoch: 9, cleared: ByteRange { first: 10, length: 11 } },
                &[2, 7],
                &[4, 8, 9, 10, 11],
            ),
        ];
        for (kind, content, kind_bytes, content_bytes) in others {
            let other = encode(&BlobRow { kind, content, ..row.clone() }).unwrap();
            assert_eq!(other, [&bytes[..4], kind_bytes, &bytes[5..16], content_bytes, &bytes[18..]].concat());
        }
    }
}
