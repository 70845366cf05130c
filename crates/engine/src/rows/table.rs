//! `tables`: account, name in small letters -> [`TableRow`].

use serde::{Deserialize, Serialize};

use crate::access::AccessPolicy;
use crate::names::{AccountName, TableAddress, TableName};
use crate::rows::codec::{KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};

/// A table. Its entities carry `incarnation`, so that all of them are unreachable at once when it is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRow {
    /// The number that its entities carry.
    pub incarnation: u64,
    /// Its name with the letter case in which it was created.
    name: String,
    /// Stored access policies, in the client's order.
    pub policies: Vec<AccessPolicy>,
}

impl Row for TableRow {
    const VERSION: u8 = 1;
}

impl TableRow {
    /// A new table without policies.
    pub fn new(incarnation: u64, name: &TableName) -> Self {
        Self { incarnation, name: name.as_str().to_owned(), policies: Vec::new() }
    }

    /// The table's name as it was created, where `key` is the row's.
    pub fn name(&self, key: &[u8]) -> Result<TableName, StoreError> {
        let mut reader = KeyReader::new(Space::Tables, key);
        reader.text()?;
        let folded = reader.text()?;
        let name = TableName::parse(&self.name).map_err(|_| reader.corrupt("not a table name"))?;
        if name.folded() != folded {
            return Err(reader.corrupt("the name is another table's"));
        }
        reader.end()?;
        Ok(name)
    }
}

/// The key of the table at `address`.
pub fn key(address: &TableAddress) -> Vec<u8> {
    KeyWriter::new().text(address.account.as_str()).text(&address.table.folded()).finish()
}

/// What the keys of all tables of the account begin with.
pub fn of(account: &AccountName) -> Vec<u8> {
    KeyWriter::new().text(account.as_str()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};

    fn address(table: &str) -> TableAddress {
        TableAddress { account: AccountName::parse("dev").unwrap(), table: TableName::parse(table).unwrap() }
    }

    #[test]
    fn a_key_on_disk_looks_like_this_for_ever() {
        assert_eq!(key(&address("Books1")), b"dev\x00\x01books1\x00\x01");
        assert_eq!(key(&address("bOOKS1")), key(&address("Books1")));
        assert!(key(&address("Books1")).starts_with(&of(&address("Books1").account)));
    }

    #[test]
    fn a_value_on_disk_looks_like_this_for_ever() {
        let policy = AccessPolicy { id: "p".into(), permission: Some("ra".into()), ..AccessPolicy::default() };
        let row = TableRow { policies: vec![policy], ..TableRow::new(7, &address("aBc").table) };
        let bytes = encode(&row).unwrap();
        assert_eq!(bytes, [1, 7, 3, b'a', b'B', b'c', 1, 1, b'p', 0, 0, 1, 2, b'r', b'a']);
        assert_eq!(decode::<TableRow>(Space::Tables, b"k", &bytes).unwrap(), row);
        assert_eq!(row.name(&key(&address("abc"))).unwrap().as_str(), "aBc");
    }

    #[test]
    fn a_damaged_row_is_reported() {
        let row = |name: &str| TableRow { incarnation: 7, name: name.into(), policies: Vec::new() };
        let keys = [&b""[..], b"dev", b"dev\x00\x01", b"dev\x00\x01abd\x00\x01", b"dev\x00\x01abc\x00\x01\x00"];
        let damaged = keys.map(|key| (row("abc"), key));
        for (row, key) in damaged.into_iter().chain([(row("a-b"), &b"dev\x00\x01a-b\x00\x01"[..])]) {
            assert!(matches!(row.name(key), Err(StoreError::Corrupt { space: Space::Tables, .. })), "{key:?}");
        }
    }
}
