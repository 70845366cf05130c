use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// A field of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Bytes(Vec<u8>),
    Text(String),
    U64(u64),
    U8(u8),
}

fn write(fields: &[Field]) -> Vec<u8> {
    let key = fields.iter().fold(KeyWriter::new(), |key, field| match field {
        Field::Bytes(value) => key.bytes(value),
        Field::Text(value) => key.text(value),
        Field::U64(value) => key.u64(*value),
        Field::U8(value) => key.u8(*value),
    });
    key.finish()
}

/// Reads a key of the same kinds of fields as `shape`.
fn read(shape: &[Field], key: &[u8]) -> Result<Vec<Field>, StoreError> {
    let mut reader = KeyReader::new(Space::Blobs, key);
    let mut fields = Vec::new();
    for kind in shape {
        fields.push(match kind {
            Field::Bytes(_) => Field::Bytes(reader.bytes()?),
            Field::Text(_) => Field::Text(reader.text()?),
            Field::U64(_) => Field::U64(reader.u64()?),
            Field::U8(_) => Field::U8(reader.u8()?),
        });
    }
    reader.end()?;
    Ok(fields)
}

#[test]
fn keys_are_these_bytes() {
    let cases: [(&[Field], &[u8]); 11] = [
        (&[], b""),
        (&[Field::Bytes(vec![])], b"\x00\x01"),
        (&[Field::Bytes(vec![0])], b"\x00\xFF\x00\x01"),
        (&[Field::Bytes(vec![0, 0])], b"\x00\xFF\x00\xFF\x00\x01"),
        (&[Field::Bytes(vec![1])], b"\x01\x00\x01"),
        (&[Field::Bytes(vec![0xFF])], b"\xFF\x00\x01"),
        (&[Field::Bytes(vec![0, 1])], b"\x00\xFF\x01\x00\x01"),
        (&[Field::Text("a\u{e9}".into())], b"a\xC3\xA9\x00\x01"),
        (&[Field::U64(0x0102_0304_0506_0708)], b"\x01\x02\x03\x04\x05\x06\x07\x08"),
        (&[Field::U64(u64::MAX)], b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
        (&[Field::U8(7), Field::Text("x".into()), Field::U64(1)], b"\x07x\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"),
    ];
    for (fields, bytes) in cases {
        assert_eq!(write(fields), bytes, "{fields:?}");
        assert_eq!(read(fields, bytes).unwrap(), fields, "{bytes:?}");
    }
}

#[test]
fn an_open_field_is_the_prefix_of_exactly_the_fields_that_begin_so() {
    let open = |value: &[u8]| KeyWriter::new().u64(1).open_bytes(value).finish();
    let key = |value: &[u8]| KeyWriter::new().u64(1).bytes(value).finish();
    for (prefix, value, expected) in [
        (&b""[..], &b""[..], true),
        (b"", b"\0", true),
        (b"a", b"a", true),
        (b"a", b"ab", true),
        (b"a\0", b"a\0b", true),
        (b"a\0", b"a", false),
        (b"ab", b"a", false),
        (b"a", b"b", false),
    ] {
        assert_eq!(key(value).starts_with(&open(prefix)), expected, "{prefix:?} {value:?}");
    }
}

#[test]
fn a_key_that_no_writer_made_is_refused_with_its_bytes_and_a_reason() {
    let bytes = [Field::Bytes(vec![])];
    let text = [Field::Text(String::new())];
    let cases: [(&[Field], &[u8], &str, &str); 12] = [
        (&bytes, b"", "", "a text field does not end"),
        (&bytes, b"a", "61", "a text field does not end"),
        (&bytes, b"a\0", "6100", "a text field does not end"),
        (&bytes, b"a\0\0", "610000", "a text field does not end"),
        (&bytes, b"a\0\x02", "610002", "a text field does not end"),
        (&bytes, b"a\0\xFE", "6100fe", "a text field does not end"),
        (&bytes, b"a\0\xFF", "6100ff", "a text field does not end"),
        (&bytes, b"\0\x01\0", "000100", "the key is too long"),
        (&text, b"\xC3\0\x01", "c30001", "a text field is not UTF-8"),
        (&[Field::U64(0)], b"\0\0\0\0\0\0\x01", "00000000000001", "an integer is cut off"),
        (&[Field::U8(0)], b"", "", "a byte is missing"),
        (&[], b"\x0A", "0a", "the key is too long"),
    ];
    for (shape, key, hex, why) in cases {
        match read(shape, key) {
            Err(StoreError::Corrupt { space: Space::Blobs, key: shown, reason }) => {
                assert_eq!((shown.as_str(), reason.as_str()), (hex, why), "{key:?}");
            }
            other => panic!("{key:?}: {other:?}"),
        }
    }
}

/// A row with one of each shape that rows are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Sample {
    number: u64,
    text: String,
    maybe: Option<u32>,
    list: Vec<u8>,
    flag: bool,
}

impl Row for Sample {
    const VERSION: u8 = 3;
}

fn sample() -> Sample {
    Sample { number: 300, text: "hé".into(), maybe: Some(7), list: vec![1, 2], flag: true }
}

const SAMPLE_BYTES: &[u8] = b"\x03\xFB\x2C\x01\x03h\xC3\xA9\x01\x07\x02\x01\x02\x01";

#[test]
fn a_value_is_its_version_and_then_its_fields() {
    assert_eq!(encode(&sample()).unwrap(), SAMPLE_BYTES);
    assert_eq!(decode::<Sample>(Space::Blobs, b"k", SAMPLE_BYTES).unwrap(), sample());
}

#[test]
fn a_value_that_is_not_wholly_its_row_is_corrupt_and_names_the_key_in_hex() {
    let with = |position: usize, byte: u8| {
        let mut bytes = SAMPLE_BYTES.to_vec();
        bytes[position] = byte;
        bytes
    };
    let trailing = [SAMPLE_BYTES, b"\0"].concat();
    let cases = [
        ("empty", vec![], "empty"),
        ("version only", vec![3], ""),
        ("unknown version", with(0, 4), "version 4"),
        ("version zero", with(0, 0), "version 0"),
        ("trailing byte", trailing, ""),
        ("not UTF-8", with(6, 0xFF), ""),
        ("a tag that is no option", with(8, 2), ""),
        ("a byte that is no bool", with(SAMPLE_BYTES.len() - 1, 2), ""),
        ("a length beyond everything", [&[3, 0, 0xFD][..], &[0xFF; 8]].concat(), ""),
    ];
    let cut = (1..SAMPLE_BYTES.len()).map(|length| ("cut off", SAMPLE_BYTES[..length].to_vec(), ""));
    for (case, bytes, part) in cases.into_iter().chain(cut) {
        match decode::<Sample>(Space::Lists, b"\x00\xABk", &bytes) {
            Err(StoreError::Corrupt { space: Space::Lists, key, reason }) => {
                assert_eq!(key, "00ab6b", "{case}");
                assert!(!reason.is_empty() && reason.contains(part), "{case}: {reason}");
            }
            other => panic!("{case}, {bytes:?}: {other:?}"),
        }
    }
}

#[test]
fn the_largest_row_is_a_value_that_the_store_takes() {
    let sized = |length: usize| Sample { list: vec![9; length], ..sample() };
    let overhead = encode(&sized(300)).unwrap().len() - 300;
    let largest = encode(&sized(VALUE_BYTES_MAX - overhead)).unwrap();
    assert_eq!(largest.len(), VALUE_BYTES_MAX);
    assert_eq!(decode::<Sample>(Space::Blobs, b"", &largest).unwrap().list.len(), VALUE_BYTES_MAX - overhead);
    assert!(encode(&sized(VALUE_BYTES_MAX - overhead + 1)).is_err());
}

/// Bytes with many of those that mean something to the encoding.
fn any_bytes(length_max: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => Just(0_u8), 2 => Just(1_u8), 2 => Just(0xFF_u8), 3 => any::<u8>()];
    proptest::collection::vec(byte, 0..=length_max)
}

fn any_text() -> impl Strategy<Value = String> {
    "[\u{0}\u{1}a-c/\u{e9}\u{10FFFF}]{0,6}"
}

/// Two keys of one shape.
fn any_pair() -> impl Strategy<Value = (Vec<Field>, Vec<Field>)> {
    let both = prop_oneof![
        (any_bytes(6), any_bytes(6)).prop_map(|(a, b)| (Field::Bytes(a), Field::Bytes(b))),
        (any_text(), any_text()).prop_map(|(a, b)| (Field::Text(a), Field::Text(b))),
        (any::<u64>(), any::<u64>()).prop_map(|(a, b)| (Field::U64(a), Field::U64(b))),
        (0_u8..4, 0_u8..4).prop_map(|(a, b)| (Field::U8(a), Field::U8(b))),
        any_bytes(6).prop_map(|a| (Field::Bytes(a.clone()), Field::Bytes(a))),
    ];
    proptest::collection::vec(both, 1..5).prop_map(|fields| fields.into_iter().unzip())
}

fn any_shape() -> impl Strategy<Value = Vec<Field>> {
    let field = prop_oneof![
        Just(Field::Bytes(Vec::new())),
        Just(Field::Text(String::new())),
        Just(Field::U64(0)),
        Just(Field::U8(0)),
    ];
    proptest::collection::vec(field, 0..4)
}

proptest! {
    #[test]
    fn keys_round_trip_sort_as_their_fields_and_are_no_prefix_of_each_other((one, other) in any_pair()) {
        let (a, b) = (write(&one), write(&other));
        prop_assert_eq!(&read(&one, &a).unwrap(), &one);
        prop_assert_eq!(a.cmp(&b), one.cmp(&other), "{:?} {:?}", a, b);
        prop_assert_eq!(a.starts_with(&b), one == other);
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_are_exactly_what_the_writer_would_make(
        shape in any_shape(),
        bytes in any_bytes(24),
    ) {
        if let Ok(fields) = read(&shape, &bytes) {
            prop_assert_eq!(write(&fields), bytes);
        }
    }

    #[test]
    fn an_open_field_cuts_keys_where_their_values_part(prefix in any_bytes(4), value in any_bytes(6)) {
        let key = KeyWriter::new().bytes(&value).finish();
        let open = KeyWriter::new().open_bytes(&prefix).finish();
        prop_assert_eq!(key.starts_with(&open), value.starts_with(&prefix));
    }

    #[test]
    fn values_round_trip_and_arbitrary_bytes_decode_to_a_row_or_to_corrupt(
        number: u64, text: String, maybe: Option<u32>, list: Vec<u8>, flag: bool, bytes in any_bytes(64),
    ) {
        let row = Sample { number, text, maybe, list, flag };
        let encoded = encode(&row).unwrap();
        prop_assert_eq!(decode::<Sample>(Space::Blobs, b"", &encoded).unwrap(), row);
        let bytes = [&[Sample::VERSION][..], &bytes].concat();
        match decode::<Sample>(Space::Blobs, b"", &bytes) {
            Ok(row) => prop_assert_eq!(decode::<Sample>(Space::Blobs, b"", &encode(&row).unwrap()).unwrap(), row),
            Err(error) => prop_assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}"),
        }
    }
}
