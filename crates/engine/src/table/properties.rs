//! What the properties of an entity weigh, and what a merge makes of them.
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model>

use crate::names::KeyText;
use crate::refusal::Refusal;
use crate::table::value::Value;
use crate::table::{ENTITY_BYTES_MAX, EntityKey, PROPERTIES_MAX, Properties};

/// What the service counts for an entity and for each property, whatever they hold.
const ENTITY_BYTES: usize = 4;
const PROPERTY_BYTES: usize = 8;

impl Properties {
    /// Bytes of an entity as the service counts them: its keys, and the names and values of its properties, text at two
    /// bytes a code unit of UTF-16.
    pub fn size(&self, key: &EntityKey) -> usize {
        let keys = [&key.partition, &key.row].into_iter().map(KeyText::as_str).map(text).sum::<usize>();
        let properties = self.0.iter().map(|(name, value)| PROPERTY_BYTES + text(name) + value.size());
        ENTITY_BYTES + keys + properties.sum::<usize>()
    }

    /// Refuses [`Refusal::PropertiesTooMany`] and [`Refusal::EntityTooLarge`].
    pub(super) fn check(&self, key: &EntityKey) -> Result<(), Refusal> {
        if self.0.len() > PROPERTIES_MAX {
            return Err(Refusal::PropertiesTooMany);
        }
        if self.size(key) > ENTITY_BYTES_MAX { Err(Refusal::EntityTooLarge) } else { Ok(()) }
    }

    /// Overwrites what `other` names, in its place, and appends the rest of it.
    pub(super) fn merge(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            match self.0.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => old.clone_from(value),
                None => self.0.push((name.clone(), value.clone())),
            }
        }
    }
}

impl Value {
    /// Its bytes as the service counts them.
    fn size(&self) -> usize {
        match self {
            Self::Binary(bytes) => 4 + bytes.len(),
            Self::Boolean(_) => 1,
            Self::DateTime(_) | Self::Double(_) | Self::Int64(_) => 8,
            Self::Guid(_) => 16,
            Self::Int32(_) => 4,
            Self::String(string) => 4 + text(string),
        }
    }
}

fn text(text: &str) -> usize {
    2 * if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::clock::Timestamp;

    fn properties(pairs: &[(&str, Value)]) -> Properties {
        Properties(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    fn key(partition: &str, row: &str) -> EntityKey {
        EntityKey { partition: KeyText::parse(partition).unwrap(), row: KeyText::parse(row).unwrap() }
    }

    #[test]
    fn an_entity_weighs_what_the_service_counts() {
        assert_eq!(Properties::default().size(&key("", "")), 4);
        assert_eq!(Properties::default().size(&key("ab", "\u{e9}\u{1F600}")), 4 + 4 + 6);
        let values = [
            (Value::Binary(vec![0; 5]), 9),
            (Value::Boolean(true), 1),
            (Value::DateTime(Timestamp::from_ticks(0)), 8),
            (Value::Double(0.5), 8),
            (Value::Guid(Uuid::nil()), 16),
            (Value::Int32(1), 4),
            (Value::Int64(1), 8),
            (Value::String("abc".into()), 10),
            (Value::String("\u{4e00}\u{1F600}".into()), 10),
        ];
        for (value, size) in values {
            assert_eq!(properties(&[("name", value.clone())]).size(&key("", "")), 4 + 8 + 8 + size, "{value:?}");
        }
    }

    #[test]
    fn an_entity_may_have_so_much_and_no_more() {
        let many = |count| Properties((0..count).map(|number| (format!("p{number}"), Value::Int32(0))).collect());
        assert_eq!(many(252).check(&key("p", "r")), Ok(()));
        assert_eq!(many(253).check(&key("p", "r")), Err(Refusal::PropertiesTooMany));
        let large = |bytes: usize| properties(&[("b", Value::Binary(vec![0; bytes - 4 - 4 - 8 - 2 - 4]))]);
        assert_eq!(large(1024 * 1024).check(&key("p", "r")), Ok(()));
        assert_eq!(large(1024 * 1024 + 1).check(&key("p", "r")), Err(Refusal::EntityTooLarge));
    }

    #[test]
    fn a_merge_overwrites_in_place_and_appends() {
        let [one, two, three] = [1, 2, 3].map(Value::Int32);
        let mut merged = properties(&[("a", one.clone()), ("b", two.clone())]);
        merged.merge(&properties(&[("c", three.clone()), ("a", Value::Boolean(true)), ("A", one.clone())]));
        assert_eq!(merged, properties(&[("a", Value::Boolean(true)), ("b", two), ("c", three), ("A", one)]));
        let before = merged.clone();
        merged.merge(&Properties::default());
        assert_eq!(merged, before);
    }
}
