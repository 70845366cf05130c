//! What of an account the path of a request addresses.
//! <https://learn.microsoft.com/rest/api/storageservices/addressing-table-service-resources>

use std::fmt::Write as _;

use lazuli_engine::names::{KeyText, NameError, TableName};
use lazuli_engine::table::EntityKey;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::code::Code;
use crate::error::Problem;
use crate::target::{Resource, name_problem};

/// The address of the tables, and a name that no table can have.
pub const TABLES: &str = "Tables";
/// The address of batches.
const BATCH: &str = "$batch";
/// The address of the service's own description.
const METADATA: &str = "$metadata";
/// The names of an entity's keys.
pub const KEYS: [&str; 2] = ["PartitionKey", "RowKey"];
/// What a key keeps as it is in an address.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Reads the decoded path behind the account.
///
/// Refuses `InvalidInput` for malformed keys, `InvalidResourceName` and `OutOfRangeInput` for what cannot be a table,
/// `OutOfRangeInput` and `KeyValueTooLarge` for what cannot be a key, `NotImplemented` for the service's description.
pub fn resource(path: &str) -> Result<Resource, Problem> {
    let path = path.strip_suffix('/').unwrap_or(path);
    match path {
        "" => return Ok(Resource::Service),
        BATCH => return Ok(Resource::Batch),
        METADATA => return Err(Problem::not_implemented("The description of the Table service")),
        _ => {}
    }
    let (name, keys) = match path.split_once('(') {
        None => (path, ""),
        Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(malformed)?.trim()),
    };
    let of_tables = name.eq_ignore_ascii_case(TABLES);
    match (of_tables, keys) {
        (true, "") => Ok(Resource::Tables),
        (true, quoted) => match text(quoted) {
            Some((name, "")) => Ok(Resource::TableEntry(table(&name)?)),
            _ => Err(malformed()),
        },
        (false, "") => Ok(Resource::Table(table(name)?)),
        (false, keys) => Ok(Resource::Entity(table(name)?, entity(keys)?)),
    }
}

/// Checks a table's name.
///
/// Refuses `InvalidResourceName`, and `OutOfRangeInput` for its length.
pub fn table(name: &str) -> Result<TableName, Problem> {
    TableName::parse(name).map_err(name_problem)
}

/// Checks a key.
///
/// Refuses `KeyValueTooLarge`, and `OutOfRangeInput` for its characters.
pub fn key(name: &'static str, text: &str) -> Result<KeyText, Problem> {
    KeyText::parse(text).map_err(|error| match error {
        NameError::Length => Problem::new(Code::KeyValueTooLarge).detail("PropertyName", name),
        NameError::Characters => Problem::new(Code::OutOfRangeInput)
            .saying(format!("{name} has a character that keys cannot have: a control character or one of /\\#?."))
            .detail("PropertyName", name),
    })
}

/// Both keys, in any order.
fn entity(keys: &str) -> Result<EntityKey, Problem> {
    let mut found = [None, None];
    let mut rest = keys;
    loop {
        let (name, value) = rest.split_once('=').ok_or_else(malformed)?;
        let index = KEYS.iter().position(|key| name.trim() == *key).ok_or_else(malformed)?;
        let (value, after) = text(value.trim_start()).ok_or_else(malformed)?;
        let slot = found.get_mut(index).filter(|slot| slot.is_none()).ok_or_else(malformed)?;
        *slot = Some(value);
        match after.trim_start() {
            "" => break,
            after => rest = after.strip_prefix(',').ok_or_else(malformed)?,
        }
    }
    match found {
        [Some(partition), Some(row)] => {
            let [first, second] = KEYS;
            Ok(EntityKey { partition: key(first, &partition)?, row: key(second, &row)? })
        }
        _ => Err(malformed()),
    }
}

/// A text in quotes, where a quote is written twice, and what follows it.
pub fn text(quoted: &str) -> Option<(String, &str)> {
    let mut rest = quoted.strip_prefix('\'')?;
    let mut text = String::new();
    loop {
        let (before, after) = rest.split_once('\'')?;
        text.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                text.push('\'');
                rest = after;
            }
            None => return Some((text, after)),
        }
    }
}

/// The address of an entity behind that of its account, as it stands in a URL.
pub fn address(table: &TableName, key: &EntityKey) -> String {
    let mut address = format!("{table}(");
    for (name, value) in KEYS.iter().zip([&key.partition, &key.row]) {
        let value = value.as_str().replace('\'', "''");
        let comma = if address.ends_with('(') { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(address, "{comma}{name}='{}'", utf8_percent_encode(&value, KEPT));
    }
    address.push(')');
    address
}

fn malformed() -> Problem {
    Problem::new(Code::InvalidInput)
        .saying("The address is not that of a table or of an entity: t(PartitionKey='p',RowKey='r').")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fields::decode;

    fn shown(path: &str) -> String {
        match decode(path).and_then(|path| resource(&path)) {
            Ok(Resource::Service) => "service".into(),
            Ok(Resource::Batch) => "batch".into(),
            Ok(Resource::Tables) => "tables".into(),
            Ok(Resource::TableEntry(table)) => format!("entry {table}"),
            Ok(Resource::Table(table)) => format!("table {table}"),
            Ok(Resource::Entity(table, key)) => format!("{table} <{}> <{}>", key.partition, key.row),
            Ok(other) => format!("{other:?}"),
            Err(problem) => problem.code.name().to_owned(),
        }
    }

    #[test]
    fn paths_address_tables_and_entities() {
        let cases = [
            ("", "service"),
            ("$batch", "batch"),
            ("$metadata", "NotImplemented"),
            ("Tables", "tables"),
            ("Tables()", "tables"),
            ("tables", "tables"),
            ("Tables('People')", "entry People"),
            ("Tables(%27People%27)", "entry People"),
            ("Tables('a1')", "OutOfRangeInput"),
            ("Tables('1ab')", "InvalidResourceName"),
            ("Tables(People)", "InvalidInput"),
            ("Tables('People'", "InvalidInput"),
            ("Tables('People')x", "InvalidInput"),
            ("People", "table People"),
            ("People/", "table People"),
            ("People()", "table People"),
            ("a-b", "InvalidResourceName"),
            ("ab", "OutOfRangeInput"),
            ("People/x", "InvalidResourceName"),
            ("People(PartitionKey='p',RowKey='r')", "People <p> <r>"),
            ("People(RowKey='r',PartitionKey='p')", "People <p> <r>"),
            ("People(PartitionKey='p', RowKey = 'r')", "People <p> <r>"),
            ("People(PartitionKey=%27p%27,RowKey=%27r%27)", "People <p> <r>"),
            ("People(PartitionKey='',RowKey='')", "People <> <>"),
            ("People(PartitionKey='it''s',RowKey='%27%27')", "People <it's> <'>"),
            ("People(PartitionKey='a,RowKey=''b''',RowKey='%25 )')", "People <a,RowKey='b'> <% )>"),
            ("People(PartitionKey='%C3%A9',RowKey='%F0%9F%98%80')", "People <é> <😀>"),
            ("People(PartitionKey='a/b',RowKey='r')", "OutOfRangeInput"),
            ("People(PartitionKey='a%2Fb',RowKey='r')", "OutOfRangeInput"),
            ("People(PartitionKey='p',RowKey='%0A')", "OutOfRangeInput"),
            ("People(PartitionKey='p',RowKey='%ff')", "InvalidUri"),
            ("People(PartitionKey='p')", "InvalidInput"),
            ("People(PartitionKey='p',PartitionKey='p')", "InvalidInput"),
            ("People(PartitionKey='p',RowKey='r',Other='x')", "InvalidInput"),
            ("People(PartitionKey='p',RowKey='r'", "InvalidInput"),
            ("People(PartitionKey='p',RowKey='r'x)", "InvalidInput"),
            ("People(PartitionKey='p',RowKey='it's')", "InvalidInput"),
            ("People(partitionkey='p',rowkey='r')", "InvalidInput"),
            ("People('p')", "InvalidInput"),
        ];
        for (path, expected) in cases {
            assert_eq!(shown(path), expected, "{path}");
        }
        let long = |units: usize| shown(&format!("People(PartitionKey='{}',RowKey='r')", "k".repeat(units)));
        assert_eq!(long(513), "KeyValueTooLarge");
        assert!(long(512).starts_with("People <kkk"));
    }

    proptest! {
        #[test]
        fn addresses_come_back(partition in "[^/\\\\#?\\pC]{0,20}", row in "[^/\\\\#?\\pC]{0,20}") {
            let name = TableName::parse("People").unwrap();
            let given = EntityKey { partition: KeyText::parse(&partition).unwrap(), row: KeyText::parse(&row).unwrap() };
            let address = address(&name, &given);
            prop_assert!(address.is_ascii());
            prop_assert_eq!(resource(&decode(&address).unwrap()), Ok(Resource::Entity(name, given)));
        }

        #[test]
        fn no_path_makes_the_reader_panic(path in "\\PC{0,40}", keys in "('|=|,|RowKey|PartitionKey|\\(|\\)|é)*") {
            let _ = (resource(&path), resource(&format!("People({keys})")));
        }
    }
}
