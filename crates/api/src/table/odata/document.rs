//! The documents of requests: an entity, or the name of a table.
//! <https://learn.microsoft.com/rest/api/storageservices/inserting-and-updating-entities>

use std::collections::HashMap;
use std::fmt;

use lazuli_engine::names::{KeyText, TableName};
use lazuli_engine::table::{EntityKey, PROPERTIES_MAX, Properties};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use unicode_xid::UnicodeXID;

use super::edm;
use super::path::{self, KEYS};
use crate::code::Code;
use crate::error::Problem;

/// Largest document of one entity or one table, and largest batch.
pub const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Longest name of a property, in characters.
const NAME_CHARS_MAX: usize = 255;
/// What follows a property's name in the name of the annotation of its type.
const TYPE: &str = "@odata.type";
/// What the names of annotations of the whole document begin with.
const ANNOTATION: &str = "odata.";
/// The property that the service alone sets.
const TIMESTAMP: &str = "Timestamp";
/// The only property of a table.
pub const TABLE_NAME: &str = "TableName";

/// A member of a document before its type is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number without fraction and exponent.
    Integer(i128),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list or an object.
    Nested,
}

/// An entity as a request describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Described {
    partition: Option<KeyText>,
    row: Option<KeyText>,
    /// Its properties beside its keys.
    pub properties: Properties,
}

impl Described {
    /// Reads the document of an entity. `Timestamp` and annotations other than those of types are passed over, as are
    /// properties that are null.
    ///
    /// Refuses `InvalidInput` for what is no JSON object, `DuplicatePropertiesSpecified`, `PropertyNameInvalid`,
    /// `PropertyNameTooLong`, `TooManyProperties`, what [`path::key`] refuses and what [`edm::value`] refuses.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        let Members { values, types } = Members::read(body)?;
        let mut read = Self::default();
        for (name, raw) in values {
            match name.as_str() {
                TIMESTAMP => continue,
                name if name == KEYS[0] => read.partition = key(KEYS[0], raw, &types)?,
                name if name == KEYS[1] => read.row = key(KEYS[1], raw, &types)?,
                _ => {
                    check_name(&name)?;
                    if let Some(value) = edm::value(&name, types.get(&name).map(String::as_str), raw)? {
                        read.properties.0.push((name, value));
                    }
                }
            }
            if read.properties.0.len() > PROPERTIES_MAX {
                return Err(Problem::new(Code::TooManyProperties));
            }
        }
        Ok(read)
    }

    /// Its keys, both of which the document must have.
    ///
    /// Refuses `PropertiesNeedValue`.
    pub fn keys(&self) -> Result<EntityKey, Problem> {
        let missing = |name| {
            let problem = Problem::new(Code::PropertiesNeedValue).detail("PropertyName", name);
            problem.saying(format!("The entity needs a {name}."))
        };
        Ok(EntityKey {
            partition: self.partition.clone().ok_or_else(|| missing(KEYS[0]))?,
            row: self.row.clone().ok_or_else(|| missing(KEYS[1]))?,
        })
    }

    /// Sees to it that it is the entity of these keys: what it says of its keys is the same.
    ///
    /// Refuses `InvalidInput`.
    pub fn check_keys(&self, key: &EntityKey) -> Result<(), Problem> {
        let pairs = [(&self.partition, &key.partition), (&self.row, &key.row)];
        if pairs.iter().any(|(own, key)| own.as_ref().is_some_and(|own| own != *key)) {
            return Err(Problem::new(Code::InvalidInput).saying("The entity has other keys than the address."));
        }
        Ok(())
    }
}

/// Reads the document of a table.
///
/// Refuses `InvalidInput` for what is no JSON object, `DuplicatePropertiesSpecified`, `PropertiesNeedValue` without a
/// name, what [`path::table`] refuses, and `InvalidResourceName` for the one name that is taken.
pub fn table(body: &[u8]) -> Result<TableName, Problem> {
    let name = Members::read(body)?.values.into_iter().find(|(name, _)| name == TABLE_NAME);
    match name {
        Some((_, Raw::Text(name))) if name.eq_ignore_ascii_case(path::TABLES) => {
            Err(Problem::new(Code::InvalidResourceName).saying("No table can have this name."))
        }
        Some((_, Raw::Text(name))) => path::table(&name),
        Some((_, Raw::Null)) | None => Err(Problem::new(Code::PropertiesNeedValue).saying("The table needs a name.")),
        Some(_) => Err(Problem::new(Code::InvalidInput).saying("The name of a table is a text.")),
    }
}

fn key(name: &'static str, raw: Raw, types: &HashMap<String, String>) -> Result<Option<KeyText>, Problem> {
    let of_text = types.get(name).is_none_or(|edm| edm == edm::Edm::String.name());
    match raw {
        Raw::Text(text) if of_text => path::key(name, &text).map(Some),
        Raw::Null => Ok(None),
        _ => Err(Problem::new(Code::InvalidInput).saying(format!("{name} is a text."))),
    }
}

/// Names are identifiers as those of C#: also of scripts that write vowels and tones as marks of their own.
fn check_name(name: &str) -> Result<(), Problem> {
    let wrong = |code| Problem::new(code).detail("PropertyName", name);
    if name.chars().count() > NAME_CHARS_MAX {
        return Err(wrong(Code::PropertyNameTooLong));
    }
    let first = name.starts_with(|c: char| c.is_xid_start() || c == '_');
    if !first || !name.chars().all(UnicodeXID::is_xid_continue) {
        return Err(wrong(Code::PropertyNameInvalid));
    }
    Ok(())
}

/// The members of a document, annotations apart.
struct Members {
    values: Vec<(String, Raw)>,
    types: HashMap<String, String>,
}

impl Members {
    /// Refuses `InvalidInput` and `DuplicatePropertiesSpecified`.
    fn read(body: &[u8]) -> Result<Self, Problem> {
        let malformed = |reason: &dyn fmt::Display| {
            Problem::new(Code::InvalidInput).saying(format!("The request's body is not a JSON object: {reason}"))
        };
        let members: Pairs = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
        let mut read = Self { values: Vec::new(), types: HashMap::new() };
        for (name, raw) in members.0 {
            if name.starts_with(ANNOTATION) {
                continue;
            }
            match (name.strip_suffix(TYPE), raw) {
                (Some(of), Raw::Text(edm)) => {
                    if read.types.insert(of.to_owned(), edm).is_some() {
                        return Err(Problem::new(Code::DuplicatePropertiesSpecified).detail("PropertyName", name));
                    }
                }
                (Some(_), _) => return Err(malformed(&format_args!("{name} is a text"))),
                (None, _) if name.contains("@odata.") => {}
                (None, raw) => read.values.push((name, raw)),
            }
        }
        let mut names: Vec<_> = read.values.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair.first() == pair.last()).and_then(<[_]>::first) {
            Some(name) => Err(Problem::new(Code::DuplicatePropertiesSpecified).detail("PropertyName", *name)),
            None => Ok(read),
        }
    }
}

/// The members of an object in their order, repeated ones repeatedly.
struct Pairs(Vec<(String, Raw)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Raw, E> {
                Ok(Raw::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::Boolean(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
                Ok(Raw::Integer(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
                Ok(Raw::Integer(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
                Ok(Raw::Number(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
                Ok(Raw::Text(value.to_owned()))
            }

            fn visit_string<E>(self, value: String) -> Result<Raw, E> {
                Ok(Raw::Text(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Raw::Nested)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Raw::Nested)
            }
        }

        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use lazuli_engine::table::value::Value;
    use proptest::prelude::*;

    use super::*;

    fn code(body: &str) -> Result<(), Code> {
        Described::read(body.as_bytes()).map(|_| ()).map_err(|problem| problem.code)
    }

    #[test]
    fn an_entity_has_keys_and_properties_in_their_order() {
        let body = r#"{"odata.metadata":"x","z@odata.type":"Edm.Int64","z":"5","PartitionKey@odata.type":"Edm.String",
            "PartitionKey":"p","Timestamp@odata.type":"Edm.DateTime","Timestamp":"nonsense","a":1,"n":null,"RowKey":"r",
            "b":"x","b@odata.type":"Edm.String","c@odata.other":7,"d":0.1,"é_1":true}"#;
        let read = Described::read(body.as_bytes()).unwrap();
        let key = read.keys().unwrap();
        assert_eq!((key.partition.as_str(), key.row.as_str()), ("p", "r"));
        let expected = [
            ("z", Value::Int64(5)),
            ("a", Value::Int32(1)),
            ("b", Value::String("x".into())),
            ("d", Value::Double(0.1)),
            ("é_1", Value::Boolean(true)),
        ];
        assert_eq!(read.properties.0, expected.map(|(name, value)| (name.to_owned(), value)));
        let other = EntityKey { partition: KeyText::parse("q").unwrap(), ..key.clone() };
        assert_eq!(read.check_keys(&key), Ok(()));
        assert_eq!(read.check_keys(&other).unwrap_err().code, Code::InvalidInput);
        assert_eq!(Described::read(b"{}").unwrap().check_keys(&other), Ok(()));
    }

    #[test]
    fn numbers_are_read_to_the_last_bit() {
        for text in ["0.1", "2.2250738585072014e-308", "9007199254740993.0", "1.7976931348623157e308", "5e-324"] {
            let read = Described::read(format!("{{\"a\":{text}}}").as_bytes()).unwrap();
            assert_eq!(read.properties.0, [("a".to_owned(), Value::Double(text.parse().unwrap()))], "{text}");
        }
    }

    #[test]
    fn what_is_no_entity_is_refused() {
        let name = |chars: usize| format!("{{\"{}\":1}}", "n".repeat(chars));
        let many =
            |count: usize| format!("{{{}}}", (0..count).map(|n| format!("\"p{n}\":1")).collect::<Vec<_>>().join(","));
        let key = |units: usize| format!("{{\"RowKey\":\"{}\"}}", "é".repeat(units));
        let cases = [
            ("", Err(Code::InvalidInput)),
            ("[]", Err(Code::InvalidInput)),
            ("{\"a\":1", Err(Code::InvalidInput)),
            ("{\"a\":1}x", Err(Code::InvalidInput)),
            ("{\"a\":1e999}", Err(Code::InvalidInput)),
            ("{\"a\":[1]}", Err(Code::InvalidInput)),
            ("{\"a\":{\"b\":[]}}", Err(Code::InvalidInput)),
            ("{\"a@odata.type\":\"Edm.Single\",\"a\":1}", Err(Code::InvalidInput)),
            ("{\"a@odata.type\":1,\"a\":1}", Err(Code::InvalidInput)),
            ("{\"a@odata.type\":\"Edm.Guid\",\"a\":\"1\"}", Err(Code::InvalidValueType)),
            ("{\"a\":1,\"a\":1}", Err(Code::DuplicatePropertiesSpecified)),
            ("{\"a\":1,\"A\":1}", Ok(())),
            ("{\"a\":1,\"\\u0061\":null}", Err(Code::DuplicatePropertiesSpecified)),
            ("{\"RowKey\":\"1\",\"RowKey\":\"1\"}", Err(Code::DuplicatePropertiesSpecified)),
            ("{\"RowKey\":1}", Err(Code::InvalidInput)),
            ("{\"RowKey@odata.type\":\"Edm.Int32\",\"RowKey\":\"1\"}", Err(Code::InvalidInput)),
            ("{\"RowKey\":\"a/b\"}", Err(Code::OutOfRangeInput)),
            ("{\"rowkey\":\"a/b\"}", Ok(())),
            (&key(512), Ok(())),
            (&key(513), Err(Code::KeyValueTooLarge)),
            ("{\"a-b\":1}", Err(Code::PropertyNameInvalid)),
            ("{\"1a\":1}", Err(Code::PropertyNameInvalid)),
            ("{\"\":1}", Err(Code::PropertyNameInvalid)),
            ("{\"a b\":null}", Err(Code::PropertyNameInvalid)),
            ("{\"_\":1}", Ok(())),
            ("{\"a_1\":1,\"été\":1,\"नमस्ते\":1,\"ชื่อ\":1,\"e\u{301}\":1}", Ok(())),
            ("{\"\u{301}e\":1}", Err(Code::PropertyNameInvalid)),
            ("{\"m²\":1}", Err(Code::PropertyNameInvalid)),
            (&name(255), Ok(())),
            (&name(256), Err(Code::PropertyNameTooLong)),
            (&many(252), Ok(())),
            (&many(253), Err(Code::TooManyProperties)),
        ];
        for (body, expected) in cases {
            assert_eq!(code(body), expected, "{}", body.get(..60).unwrap_or(body));
        }
        for body in ["{\"PartitionKey\":\"\"}", "{\"RowKey\":\"\"}", "{\"RowKey\":null,\"PartitionKey\":\"\"}"] {
            let keys = Described::read(body.as_bytes()).unwrap().keys();
            assert_eq!(keys.unwrap_err().code, Code::PropertiesNeedValue, "{body}");
        }
    }

    #[test]
    fn a_table_has_a_name() {
        let cases = [
            ("{\"TableName\":\"People\"}", Ok("People")),
            ("{\"odata.type\":\"x\",\"TableName@odata.type\":\"Edm.String\",\"TableName\":\"a12\"}", Ok("a12")),
            ("{\"TableName\":\"tables\"}", Err(Code::InvalidResourceName)),
            ("{\"TableName\":\"a-b\"}", Err(Code::InvalidResourceName)),
            ("{\"TableName\":\"ab\"}", Err(Code::OutOfRangeInput)),
            ("{\"TableName\":5}", Err(Code::InvalidInput)),
            ("{\"TableName\":null}", Err(Code::PropertiesNeedValue)),
            ("{}", Err(Code::PropertiesNeedValue)),
            ("", Err(Code::InvalidInput)),
        ];
        for (body, expected) in cases {
            let name = table(body.as_bytes()).map_err(|problem| problem.code);
            assert_eq!(name.as_ref().map(TableName::as_str), expected.as_ref().map(|name| *name), "{body}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(body in "(\\{|\\}|\"|:|,|\\[|\\]|odata|@odata.type|RowKey|1|null|é|\\\\)*") {
            let _ = (Described::read(body.as_bytes()), table(body.as_bytes()));
        }
    }
}
