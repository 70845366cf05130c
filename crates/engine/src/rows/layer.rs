//! What a blob has beside its base, each at the base's key and an instant:
//!
//! - `snapshots`, `versions`: incarnation, blob, instant -> [`BlobRow`];
//! - `deleted`: incarnation, blob, instant, kind -> [`DeletedRow`]: the same, soft-deleted;
//! - `removed`: incarnation, blob -> [`DeletedRow`]: a soft-deleted base, while there is no other;
//! - `sweeps`: incarnation, blob -> [`SweepRow`]: many snapshots deleted by one write.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::names::BlobName;
use crate::rows::blob::{self, BlobRow};
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};

/// What kind of layer it is. The numbers are on disk and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LayerKind {
    /// A snapshot.
    Snapshot = 1,
    /// A previous version.
    Version = 2,
}

impl LayerKind {
    /// Where layers of the kind lie that are not deleted.
    pub const fn space(self) -> Space {
        match self {
            Self::Snapshot => Space::Snapshots,
            Self::Version => Space::Versions,
        }
    }
}

/// That something is deleted, and until when it can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// When it was deleted.
    pub at: Timestamp,
    /// When it is erased.
    pub until: Timestamp,
    /// Names the appointment at which it is erased.
    pub id: u64,
}

/// A soft-deleted base, snapshot or version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedRow {
    /// What it was, and holds a reference to the content of.
    pub blob: BlobRow,
    /// Its deletion.
    pub deletion: Deletion,
}

impl Row for DeletedRow {
    const VERSION: u8 = 1;
}

/// All snapshots up to an instant are deleted; the clockwork does to each what was said for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRow {
    /// Names the clockwork's task.
    pub id: u64,
    /// When they were deleted: all that were taken until then are.
    pub at: Timestamp,
    /// Until when they can be restored; none if they cannot.
    pub until: Option<Timestamp>,
}

impl Row for SweepRow {
    const VERSION: u8 = 1;
}

/// The key of the layer at `instant` of the blob at `base`.
pub fn key(base: &[u8], instant: Timestamp) -> Vec<u8> {
    [base, &instant.ticks().to_be_bytes()].concat()
}

/// What names the layer whether it is deleted or not: its key in `deleted`, and that of its tags.
pub fn full_key(base: &[u8], instant: Timestamp, kind: LayerKind) -> Vec<u8> {
    [base, &instant.ticks().to_be_bytes(), &[kind as u8]].concat()
}

/// A layer as its key says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerKey {
    /// The key of the base.
    pub base: Vec<u8>,
    /// The blob's name.
    pub name: BlobName,
    /// The layer's instant.
    pub instant: Timestamp,
    /// Its kind.
    pub kind: LayerKind,
}

/// The layer at `key` in `snapshots`, `versions` or `deleted`.
pub fn parse(space: Space, key: &[u8]) -> Result<LayerKey, StoreError> {
    let mut reader = KeyReader::new(space, key);
    let incarnation = reader.u64()?;
    let text = reader.text()?;
    let name = BlobName::parse(&text).map_err(|_| reader.corrupt("not a blob name"))?;
    let instant = Timestamp::from_ticks(reader.u64()?);
    let kind = match space {
        Space::Snapshots => LayerKind::Snapshot,
        Space::Versions => LayerKind::Version,
        _ => match reader.u8()? {
            1 => LayerKind::Snapshot,
            2 => LayerKind::Version,
            _ => return Err(reader.corrupt("unknown kind of layer")),
        },
    };
    reader.end()?;
    Ok(LayerKey { base: blob::key(incarnation, &name), name, instant, kind })
}

/// What the keys of all sweeps of the container begin with.
pub fn sweeps(incarnation: u64) -> Vec<u8> {
    KeyWriter::new().u64(incarnation).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::kind::BlobKind;
    use crate::encryption::Encryption;
    use crate::etag::Etag;
    use crate::lease::Lease;
    use crate::properties::{HttpProperties, Metadata};
    use crate::protection::Protection;
    use crate::rows::blob::Content;
    use crate::rows::codec::{decode, encode};

    #[test]
    fn keys_on_disk_look_like_this_for_ever() {
        let name = BlobName::parse("a").unwrap();
        let (base, instant) = (blob::key(1, &name), Timestamp::from_ticks(258));
        let key = key(&base, instant);
        assert_eq!(key, b"\x00\x00\x00\x00\x00\x00\x00\x01a\x00\x01\x00\x00\x00\x00\x00\x00\x01\x02");
        for (kind, number) in [(LayerKind::Snapshot, 1), (LayerKind::Version, 2)] {
            let expected = LayerKey { base: base.clone(), name: name.clone(), instant, kind };
            assert_eq!(parse(kind.space(), &key).unwrap(), expected);
            let deleted = full_key(&base, instant, kind);
            assert_eq!(deleted, [&key[..], &[number]].concat());
            assert_eq!(parse(Space::Deleted, &deleted).unwrap(), expected);
        }
        for (space, bad) in
            [(Space::Snapshots, &base[..]), (Space::Deleted, &key), (Space::Versions, &[key.clone(), vec![1]].concat())]
        {
            assert!(matches!(parse(space, bad), Err(StoreError::Corrupt { .. })), "{space:?} {bad:?}");
        }
    }

    #[test]
    fn values_on_disk_look_like_this_for_ever() {
        let time = Timestamp::from_ticks;
        let row = DeletedRow {
            blob: BlobRow {
                created: time(1),
                etag: Etag::at(time(2)),
                version: Some(time(3)),
                kind: BlobKind::Block,
                length: 0,
                http: HttpProperties::default(),
                metadata: Metadata::default(),
                lease: Lease::Available,
                content: Content::Empty,
                tags: 0,
                tier: None,
                copy: None,
                expires: None,
                protection: Protection::default(),
                encryption: Encryption::Account,
                begun: Some(time(7)),
            },
            deletion: Deletion { at: time(4), until: time(5), id: 6 },
        };
        let bytes = encode(&row).unwrap();
        assert_eq!(bytes, [1, 1, 2, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 4, 5, 6]);
        assert_eq!(decode::<DeletedRow>(Space::Deleted, b"k", &bytes).unwrap(), row);
        let sweep = SweepRow { id: 1, at: time(2), until: Some(time(3)) };
        assert_eq!(encode(&sweep).unwrap(), [1, 1, 2, 1, 3]);
        assert_eq!(decode::<SweepRow>(Space::Sweeps, b"k", &[1, 1, 2, 1, 3]).unwrap(), sweep);
    }
}
