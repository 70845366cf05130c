//! `changes`: account, instant, id -> [`ChangeRow`]: changes of blobs that are not in the change feed yet, in the order in
//! which they were committed.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::blob::Requested;
use crate::blob::kind::BlobKind;
use crate::clock::Timestamp;
use crate::etag::Etag;
use crate::names::AccountName;
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};
use crate::tier::Tier;

/// What changed a blob. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// A blob was put whole, or created empty.
    Put,
    /// Its blocks were committed.
    PutBlockList,
    /// It was copied from another one, which has ended.
    Copy,
    /// A copy from another server began.
    CopyBegun,
    /// A copy from another server was given up.
    CopyGivenUp,
    /// A blob, snapshot or version was deleted.
    Delete,
    /// A blob was restored.
    Undelete,
    /// A snapshot was taken.
    Snapshot,
    /// New metadata.
    Metadata,
    /// New HTTP properties, another length or sequence number.
    Properties,
    /// New tags.
    Tags,
    /// Another instant at which it expires.
    Expiry,
    /// Another tier.
    Tier,
    /// An archived blob began its way to another tier.
    Rehydration,
}

/// A change of a blob: what the blob is after it, of a deletion before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRow {
    /// What changed it.
    pub cause: Cause,
    /// Its container's name.
    pub container: String,
    /// Its name.
    pub blob: String,
    /// Its version.
    pub etag: Etag,
    /// What kind of blob it is.
    pub kind: BlobKind,
    /// Bytes of content.
    pub length: u64,
    /// Its Content-Type.
    pub content_type: Option<String>,
    /// The version that it is, where versions are kept.
    pub version: Option<Timestamp>,
    /// The snapshot that it is about.
    pub snapshot: Option<Timestamp>,
    /// Its tier.
    pub tier: Option<Tier>,
    /// The tier that it had before, or is on its way to.
    pub other_tier: Option<Tier>,
    /// The copy that has begun.
    pub copy: Option<Uuid>,
    /// Whether what was deleted can be restored.
    pub soft_deleted: bool,
    /// The request that changed it.
    pub request: Option<Requested>,
}

impl Row for ChangeRow {
    const VERSION: u8 = 1;
}

/// The key of the change of that number in the transaction of that instant.
pub fn key(account: &AccountName, at: Timestamp, id: u64) -> Vec<u8> {
    KeyWriter::new().text(account.as_str()).u64(at.ticks()).u64(id).finish()
}

/// What the keys of the account's changes begin with.
pub fn prefix(account: &AccountName) -> Vec<u8> {
    KeyWriter::new().text(account.as_str()).finish()
}

/// The account, the instant and the number in `key`.
pub fn parse(key: &[u8]) -> Result<(AccountName, Timestamp, u64), StoreError> {
    let mut reader = KeyReader::new(Space::Changes, key);
    let text = reader.text()?;
    let account = AccountName::parse(&text).map_err(|_| reader.corrupt("not an account's name"))?;
    let (at, id) = (Timestamp::from_ticks(reader.u64()?), reader.u64()?);
    reader.end()?;
    Ok((account, at, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        let account = AccountName::parse("dev").unwrap();
        let written = key(&account, Timestamp::from_ticks(258), 3);
        assert_eq!(written, b"dev\x00\x01\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00\x00\x00\x03");
        assert_eq!(parse(&written).unwrap(), (account.clone(), Timestamp::from_ticks(258), 3));
        assert!(written.starts_with(&prefix(&account)));
        let row = ChangeRow {
            cause: Cause::Snapshot,
            container: "c".into(),
            blob: "b".into(),
            etag: Etag::at(Timestamp::from_ticks(2)),
            kind: BlobKind::Block,
            length: 3,
            content_type: Some("t".into()),
            version: None,
            snapshot: Some(Timestamp::from_ticks(4)),
            tier: Some(Tier::Cool),
            other_tier: None,
            copy: None,
            soft_deleted: true,
            request: Some(Requested { id: Uuid::from_u128(1), client: "x".into() }),
        };
        let bytes = encode(&row).unwrap();
        let request = [&[1, 16][..], &[0; 15], &[1, 1, b'x']].concat();
        let fields = [1, 7, 1, b'c', 1, b'b', 2, 0, 3, 1, 1, b't', 0, 1, 4, 1, 1, 0, 0, 1];
        assert_eq!(bytes, [&fields[..], &request].concat());
        assert_eq!(decode::<ChangeRow>(Space::Changes, b"k", &bytes).unwrap(), row);
    }

    #[test]
    fn a_damaged_key_is_reported() {
        let whole = key(&AccountName::parse("dev").unwrap(), Timestamp::from_ticks(1), 1);
        for bad in [&b""[..], b"dev", b"D\x00\x01", &whole[..12], &[&whole[..], b"x"].concat()] {
            assert!(matches!(parse(bad), Err(StoreError::Corrupt { space: Space::Changes, .. })), "{bad:?}");
        }
    }
}
