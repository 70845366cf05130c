use proptest::prelude::*;
use uuid::Uuid;

use super::body::{Malformed, ValueRef, decode, encode, find, select};
use super::*;
use crate::engine::Engine;
use crate::store::{Purpose, TX_BYTES_MAX};
use crate::table::value::Value;
use crate::table::{ENTITY_BYTES_MAX, PROPERTIES_MAX, Properties};

fn at(partition: &str, row: &str) -> EntityKey {
    EntityKey { partition: KeyText::parse(partition).unwrap(), row: KeyText::parse(row).unwrap() }
}

/// A property of each type, in bytes.
fn every_type() -> (Properties, Vec<u8>) {
    let guid = Uuid::from_u128(0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF);
    let cases: [(&str, Value, &[u8]); 8] = [
        ("b", Value::Binary(vec![0, 255]), b"\x01\x01\0\x02\0\0\0b\x00\xFF"),
        ("t", Value::Boolean(true), b"\x02\x01\0t\x01"),
        ("d", Value::DateTime(Timestamp::from_ticks(258)), b"\x03\x01\0d\x02\x01\0\0\0\0\0\0"),
        ("f", Value::Double(1.5), b"\x04\x01\0f\0\0\0\0\0\0\xF8\x3F"),
        ("g", Value::Guid(guid), b"\x05\x01\0g\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xAA\xBB\xCC\xDD\xEE\xFF"),
        ("i", Value::Int32(-2), b"\x06\x01\0i\xFE\xFF\xFF\xFF"),
        ("l", Value::Int64(1 << 32), b"\x07\x01\0l\0\0\0\0\x01\0\0\0"),
        ("\u{e9}t", Value::String("\u{1F980}".into()), b"\x08\x03\0\x04\0\0\0\xC3\xA9t\xF0\x9F\xA6\x80"),
    ];
    let bytes = cases.iter().flat_map(|(_, _, bytes)| bytes.to_vec()).collect();
    (Properties(cases.into_iter().map(|(name, value, _)| (name.to_owned(), value)).collect()), bytes)
}

#[test]
fn keys_on_disk_look_like_this_for_ever() {
    let cases: [(&str, &str, &[u8]); 5] = [
        ("", "", b"\0\x01\0\x01"),
        ("a", "b", b"a\0\x01b\0\x01"),
        ("\u{e9}\u{FFFF}", "", b"\xC3\xA9\xEF\xBF\xBF\0\x01\0\x01"),
        ("\u{10000}", "\u{10FFFF}", b"\xED\xA0\x80\xED\xB0\x80\0\x01\xED\xAF\xBF\xED\xBF\xBF\0\x01"),
        ("x\u{1F980}y", "'", b"x\xED\xA0\xBE\xED\xB6\x80y\0\x01'\0\x01"),
    ];
    for (partition, row, expected) in cases {
        let entity = at(partition, row);
        let bytes = key(258, &entity);
        assert_eq!(bytes, [&[0, 0, 0, 0, 0, 0, 1, 2], expected].concat(), "{entity:?}");
        assert_eq!(parse_key(&bytes).unwrap(), entity);
        assert_eq!(fields(&bytes).unwrap(), (&*field(partition), &*field(row)));
        assert!(bytes.starts_with(&children(258)));
        assert_eq!(part_key(&bytes, 7), [&bytes[..], &[7]].concat());
    }
}

#[test]
fn a_key_that_no_writer_made_is_refused() {
    let cases: [&[u8]; 14] = [
        b"",
        b"\0\0\0\0\0\0\0",
        b"\0\0\0\0\0\0\0\x01",
        b"\0\0\0\0\0\0\0\x01a\0\x01",
        b"\0\0\0\0\0\0\0\x01a\0\x01b",
        b"\0\0\0\0\0\0\0\x01a\0\x01b\0\x01c",
        b"\0\0\0\0\0\0\0\x01\0\xFF\0\x01b\0\x01",                   // a NUL
        b"\0\0\0\0\0\0\0\x01/\0\x01b\0\x01",                        // what no key contains
        b"\0\0\0\0\0\0\0\x01\xF0\x90\x80\x80\0\x01b\0\x01",         // UTF-8 beyond U+FFFF
        b"\0\0\0\0\0\0\0\x01\xED\xA0\x80\0\x01b\0\x01",             // half a pair
        b"\0\0\0\0\0\0\0\x01\xED\xB0\x80\xED\xA0\x80\0\x01b\0\x01", // a pair the wrong way round
        b"\0\0\0\0\0\0\0\x01\xED\xA0\x80\xED\xB0\x80\xC1\x81\0\x01b\0\x01", // a letter in two bytes
        b"\0\0\0\0\0\0\0\x01\xED\xA0\0\x01b\0\x01",
        b"\0\0\0\0\0\0\0\x01\xFF\0\x01b\0\x01",
    ];
    for bytes in cases {
        assert!(matches!(parse_key(bytes), Err(StoreError::Corrupt { space: Space::Entities, .. })), "{bytes:?}");
    }
}

#[test]
fn properties_on_disk_look_like_this_for_ever() {
    let (properties, bytes) = every_type();
    assert_eq!(encode(&properties).unwrap(), bytes);
    assert_eq!(decode(b"k", &bytes).unwrap(), properties);
    assert_eq!(encode(&Properties::default()).unwrap(), b"");
    assert_eq!(decode(b"k", b"").unwrap(), Properties::default());
}

#[test]
fn one_property_is_found_without_the_others_and_some_are_selected_in_order() {
    let (properties, bytes) = every_type();
    for (name, value) in &properties.0 {
        let found = find(&bytes, name.as_bytes()).unwrap().unwrap();
        assert_eq!(&found.to_value().unwrap(), value, "{name}");
    }
    for absent in ["", "B", "bb", "\u{e9}"] {
        assert_eq!(find(&bytes, absent.as_bytes()).unwrap(), None, "{absent}");
    }
    let some = select(b"k", &bytes, |name| matches!(name, "l" | "b" | "none")).unwrap();
    assert_eq!(some.0, [("b".to_owned(), Value::Binary(vec![0, 255])), ("l".to_owned(), Value::Int64(1 << 32))]);
}

#[test]
fn bytes_that_are_no_properties_are_refused() {
    let (properties, bytes) = every_type();
    let whole = |cut: &[u8]| (0..8).any(|count| encode(&Properties(properties.0[..count].to_vec())).unwrap() == cut);
    for end in 0..bytes.len() {
        let cut = &bytes[..end];
        assert_eq!(decode(b"k", cut).is_ok(), whole(cut), "cut at {end}");
        assert_eq!(find(cut, b"none").is_ok(), whole(cut), "cut at {end}");
    }
    let cases: [(&[u8], &str); 6] = [
        (b"\x00\x01\0x", "a property of unknown type"),
        (b"\x09\x01\0x", "a property of unknown type"),
        (b"\x02\x01\0x\x02", "a boolean that is neither"),
        (b"\x02\x01\0\xFF\x01", "a name is not UTF-8"),
        (b"\x08\x01\0\x01\0\0\0x\xFF", "a text is not UTF-8"),
        (b"\x08\x01\0\xFF\xFF\xFF\xFFx\xFF", "a property is cut off"),
    ];
    for (bytes, reason) in cases {
        match decode(b"\x0A", bytes) {
            Err(StoreError::Corrupt { space: Space::Entities, key, reason: found }) => {
                assert_eq!((key.as_str(), found.as_str()), ("0a", reason), "{bytes:?}");
            }
            other => panic!("{bytes:?}: {other:?}"),
        }
    }
    assert_eq!(find(b"\x02\x01\0x\x02", b"x"), Err(Malformed("a boolean that is neither")));
    assert_eq!(find(b"\x08\x01\0\x01\0\0\0x\xFF", b"x"), Ok(Some(ValueRef::String(b"\xFF"))));
}

#[test]
fn what_no_property_can_be_is_not_written() {
    let named = |length: usize| Properties(vec![("n".repeat(length), Value::Boolean(true))]);
    assert!(encode(&named(65_535)).is_ok());
    assert!(matches!(encode(&named(65_536)), Err(StoreError::TooLarge { what: "a name", size: 65_536, .. })));
}

#[test]
fn rows_on_disk_look_like_this_for_ever() {
    let value = b"\x01\x02\x01\0\0\0\0\0\0\x03body";
    let etag = Etag::at(Timestamp::from_ticks(258));
    assert_eq!(split(b"k", value).unwrap(), (etag, 3, &b"body"[..]));
    let head = Head::parse(b"k", &Bytes::from_static(value)).unwrap();
    assert_eq!(head, Head { etag, parts: 3, first: Bytes::from_static(b"body") });
    for (bytes, reason) in [
        (&b""[..], "the row is cut off"),
        (&value[..9], "the row is cut off"),
        (b"\x02\x02\x01\0\0\0\0\0\0\x03", "unknown row version 2"),
    ] {
        match split(b"\x0A", bytes) {
            Err(StoreError::Corrupt { space: Space::Entities, key, reason: found }) => {
                assert_eq!((key.as_str(), found.as_str()), ("0a", reason));
            }
            other => panic!("{bytes:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_entity_has_the_parts_it_needs_and_leaves_none_behind() {
    let clock = crate::clock::HeldClock::at(Timestamp::from_unix_seconds(1));
    let engine = Engine::memory(std::sync::Arc::new(clock)).await.unwrap();
    let at = key(1, &at("p", "r"));
    let neighbour = part_key(&key(1, &self::at("p", "r0")), 0);
    let put = neighbour.clone();
    engine.write(Purpose::Grow, move |tx| Ok(tx.put(Space::EntityParts, put.clone(), vec![1])?)).await.unwrap();
    let mut old_parts = 0;
    let largest = 2 * ENTITY_BYTES_MAX;
    for length in [0, 1, FIRST_BYTES_MAX, FIRST_BYTES_MAX + 1, largest, FIRST_BYTES_MAX + PART_BYTES_MAX, 3] {
        let body: Vec<u8> = (0..length).map(|byte| u8::try_from(byte % 251).unwrap()).collect();
        let row = EntityRow { etag: Etag::at(Timestamp::from_ticks(7)), body: body.into() };
        let (written, here) = (row.clone(), at.clone());
        engine.write(Purpose::Grow, move |tx| Ok(write(tx, here.clone(), &written, old_parts)?)).await.unwrap();
        let head = engine.read(|view| Ok(head(view, &at)?)).unwrap().unwrap();
        assert_eq!(usize::from(head.parts), length.saturating_sub(FIRST_BYTES_MAX).div_ceil(PART_BYTES_MAX));
        assert_eq!(engine.read(|view| Ok(read(view, &at)?)).unwrap(), Some(row), "{length}");
        let parts = engine.census().unwrap().into_iter().find(|(space, _)| *space == Space::EntityParts);
        assert_eq!(parts, Some((Space::EntityParts, usize::from(head.parts) + 1)), "{length}");
        old_parts = head.parts;
    }
    let here = at.clone();
    engine.write(Purpose::Free, move |tx| Ok(remove(tx, &here, old_parts)?)).await.unwrap();
    assert_eq!(engine.read(|view| Ok(read(view, &at)?)).unwrap(), None);
    assert_eq!(engine.census().unwrap(), [(Space::EntityParts, 1)]);
}

#[tokio::test]
async fn an_entity_whose_parts_are_missing_is_corrupt_and_one_too_large_is_not_written() {
    let clock = crate::clock::HeldClock::at(Timestamp::from_unix_seconds(1));
    let engine = Engine::memory(std::sync::Arc::new(clock)).await.unwrap();
    let at = key(1, &at("p", "r"));
    let body = |length: usize| EntityRow { etag: Etag::at(Timestamp::from_ticks(7)), body: vec![7; length].into() };
    let (row, here) = (body(3 * PART_BYTES_MAX), at.clone());
    let lost = part_key(&at, 1);
    engine
        .write(Purpose::Grow, move |tx| {
            write(tx, here.clone(), &row, 0)?;
            Ok(tx.delete(Space::EntityParts, &lost)?)
        })
        .await
        .unwrap();
    let answer = engine.read(|view| Ok(read(view, &at)?));
    let shown = format!("{answer:?}");
    assert!(shown.contains("EntityParts") && shown.contains("missing"), "{shown}");
    let row = body(FIRST_BYTES_MAX + 255 * PART_BYTES_MAX + 1);
    assert!(row.body.len() < TX_BYTES_MAX);
    let answer = engine.write(Purpose::Grow, move |tx| Ok(write(tx, at.clone(), &row, 0)?)).await;
    assert!(format!("{answer:?}").contains("an entity"), "{answer:?}");
}

#[test]
fn the_largest_entity_has_parts_to_spare() {
    // Text is counted as two bytes a code unit of UTF-16, of which UTF-8 makes three bytes at most.
    let most = ENTITY_BYTES_MAX / 2 * 3 + PROPERTIES_MAX * 7;
    assert!(most < FIRST_BYTES_MAX + usize::from(u8::MAX) * PART_BYTES_MAX);
}

/// Text with many of the characters that UTF-8 and UTF-16 sort differently.
fn any_text() -> impl Strategy<Value = String> {
    "[a-c'\u{7f}\u{e9}\u{7FF}\u{800}\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{1F980}\u{10FFFF}\u{0}\u{1}]{0,5}"
}

fn any_key() -> impl Strategy<Value = String> {
    "[a-c' \u{e9}\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{1F980}\u{10FFFF}]{0,5}"
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<Vec<u8>>().prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Boolean),
        any::<u64>().prop_map(|ticks| Value::DateTime(Timestamp::from_ticks(ticks))),
        proptest::num::f64::NORMAL.prop_map(Value::Double),
        any::<u128>().prop_map(|guid| Value::Guid(Uuid::from_u128(guid))),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<String>().prop_map(Value::String),
    ]
}

proptest! {
    #[test]
    fn fields_sort_as_code_units_of_utf_16(one in any_text(), other in any_text()) {
        let order = one.encode_utf16().cmp(other.encode_utf16());
        prop_assert_eq!(field(&one).cmp(&field(&other)), order);
        prop_assert_eq!(field(&one).starts_with(&field(&other)), one == other);
    }

    #[test]
    fn keys_round_trip_and_sort_by_partition_then_row(
        one in (any_key(), any_key()), other in (any_key(), any_key()),
    ) {
        let units = |(partition, row): &(String, String)| -> (Vec<u16>, Vec<u16>) {
            (partition.encode_utf16().collect(), row.encode_utf16().collect())
        };
        let (a, b) = (key(1, &at(&one.0, &one.1)), key(1, &at(&other.0, &other.1)));
        prop_assert_eq!(a.cmp(&b), units(&one).cmp(&units(&other)));
        prop_assert_eq!(parse_key(&a).unwrap(), at(&one.0, &one.1));
    }

    #[test]
    fn a_key_of_arbitrary_bytes_is_refused_or_exactly_what_the_writer_makes(
        bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(0xED), 0x80..0xC0_u8, any::<u8>()], 0..12),
    ) {
        let bytes = [&[0, 0, 0, 0, 0, 0, 0, 9][..], &bytes].concat();
        if let Ok(entity) = parse_key(&bytes) {
            prop_assert_eq!(key(9, &entity), bytes);
        }
    }

    #[test]
    fn properties_round_trip_and_each_is_found(
        properties in proptest::collection::vec((any_text(), any_value()), 0..6),
    ) {
        let properties = Properties(properties);
        let bytes = encode(&properties).unwrap();
        prop_assert_eq!(&decode(b"", &bytes).unwrap(), &properties);
        for (name, _) in &properties.0 {
            let first = properties.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
            let found = find(&bytes, name.as_bytes()).unwrap().map(|value| value.to_value().unwrap());
            prop_assert_eq!(found, first);
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_exactly_what_the_writer_makes(
        bytes in proptest::collection::vec(prop_oneof![4 => 0_u8..10, 1 => any::<u8>()], 0..40),
    ) {
        if let Ok(properties) = decode(b"", &bytes) {
            prop_assert_eq!(encode(&properties).unwrap(), bytes);
        }
    }
}
