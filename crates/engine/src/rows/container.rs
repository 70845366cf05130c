//! `containers`: account, container -> [`ContainerRow`]; `deleted-containers`: account, container, instant ->
//! [`DeletedContainerRow`].

use serde::{Deserialize, Serialize};

use crate::access::AccessControl;
use crate::clock::Timestamp;
use crate::encryption::DefaultScope;
use crate::etag::Etag;
use crate::lease::Lease;
use crate::names::{AccountName, ContainerAddress, ContainerName};
use crate::properties::Metadata;
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::rows::layer::Deletion;
use crate::store::{Space, StoreError};

/// A container. Its blobs carry `incarnation`, so deleting this row makes them unreachable at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRow {
    /// The number that its children carry.
    pub incarnation: u64,
    /// Its version.
    pub etag: Etag,
    /// Its lease.
    pub lease: Lease,
    /// Public access and stored policies.
    pub access: AccessControl,
    /// Its metadata.
    pub metadata: Metadata,
    /// The encryption scope of its blobs.
    pub scope: DefaultScope,
    /// How often a blob in it was protected; changes with every policy and legal hold that is set.
    pub protections: u64,
}

impl Row for ContainerRow {
    const VERSION: u8 = 1;
}

/// A soft-deleted container. Its blobs stay, under an incarnation that no container has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedContainerRow {
    /// What it was.
    pub container: ContainerRow,
    /// Its deletion, whose instant names it among the deleted ones of its name.
    pub deletion: Deletion,
}

impl Row for DeletedContainerRow {
    const VERSION: u8 = 1;
}

/// The key of the container at `address`.
pub fn key(address: &ContainerAddress) -> Vec<u8> {
    KeyWriter::new().text(address.account.as_str()).text(address.container.as_str()).finish()
}

/// What the keys of the account's containers whose names begin with `prefix` begin with.
pub fn prefix(account: &AccountName, prefix: &[u8]) -> Vec<u8> {
    KeyWriter::new().text(account.as_str()).open_bytes(prefix).finish()
}

/// The key of the container at `address` that was deleted at `instant`.
pub fn deleted_key(address: &ContainerAddress, instant: Timestamp) -> Vec<u8> {
    [&key(address)[..], &instant.ticks().to_be_bytes()].concat()
}

/// The container's name in `key`.
pub fn name(key: &[u8]) -> Result<ContainerName, StoreError> {
    let mut reader = KeyReader::new(Space::Containers, key);
    let name = read_name(&mut reader)?;
    reader.end()?;
    Ok(name)
}

/// The container's name in the key of a deleted one, and the instant.
pub fn deleted_name(key: &[u8]) -> Result<(ContainerName, Timestamp), StoreError> {
    let mut reader = KeyReader::new(Space::DeletedContainers, key);
    let name = read_name(&mut reader)?;
    let instant = Timestamp::from_ticks(reader.u64()?);
    reader.end()?;
    Ok((name, instant))
}

fn read_name(reader: &mut KeyReader<'_>) -> Result<ContainerName, StoreError> {
    reader.text()?;
    let text = reader.text()?;
    ContainerName::parse(&text).map_err(|_| reader.corrupt("not a container name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};

    fn address(container: &str) -> ContainerAddress {
        ContainerAddress {
            account: AccountName::parse("dev").unwrap(),
            container: ContainerName::parse(container).unwrap(),
        }
    }

    #[test]
    fn a_key_on_disk_looks_like_this_for_ever() {
        assert_eq!(key(&address("photos")), b"dev\x00\x01photos\x00\x01");
        assert_eq!(name(&key(&address("photos"))).unwrap().as_str(), "photos");
        let instant = Timestamp::from_ticks(258);
        let deleted = deleted_key(&address("photos"), instant);
        assert_eq!(deleted, b"dev\x00\x01photos\x00\x01\x00\x00\x00\x00\x00\x00\x01\x02");
        assert_eq!(deleted_name(&deleted).unwrap(), (ContainerName::parse("photos").unwrap(), instant));
    }

    #[test]
    fn a_value_on_disk_looks_like_this_for_ever() {
        let row = ContainerRow {
            incarnation: 7,
            etag: Etag::at(Timestamp::from_ticks(300)),
            lease: Lease::Available,
            access: AccessControl::default(),
            metadata: Metadata(vec![("a".into(), "b".into())]),
            scope: DefaultScope::default(),
            protections: 5,
        };
        let bytes = encode(&row).unwrap();
        assert_eq!(bytes, [1, 7, 251, 44, 1, 0, 0, 0, 1, 1, b'a', 1, b'b', 0, 0, 5]);
        assert_eq!(decode::<ContainerRow>(Space::Containers, b"k", &bytes).unwrap(), row);
        let at = Timestamp::from_ticks;
        let deleted = DeletedContainerRow { container: row, deletion: Deletion { at: at(1), until: at(2), id: 3 } };
        assert_eq!(encode(&deleted).unwrap(), [&bytes[..], &[1, 2, 3]].concat());
    }

    #[test]
    fn a_damaged_key_is_reported() {
        for bad in [&b""[..], b"dev", b"dev\x00\x01", b"dev\x00\x01A\x00\x01", b"dev\x00\x01photos\x00\x01x"] {
            assert!(matches!(name(bad), Err(StoreError::Corrupt { space: Space::Containers, .. })), "{bad:?}");
        }
    }
}
