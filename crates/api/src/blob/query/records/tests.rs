//! What is a record, whatever pieces the bytes come in.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::blob::query::request::Delimited;
use crate::blob::query::sql;

/// All records of `bytes`, each as its fields; then the fault, if there is one. The same in pieces of every size.
fn records(bytes: &[u8], source: impl Fn() -> Source) -> (Vec<Vec<String>>, Option<Fault>) {
    let whole = in_pieces(bytes, source(), bytes.len().max(1));
    for size in 1..bytes.len().min(9) {
        assert_eq!(in_pieces(bytes, source(), size), whole, "pieces of {size}");
    }
    whole
}

fn in_pieces(bytes: &[u8], mut source: Source, size: usize) -> (Vec<Vec<String>>, Option<Fault>) {
    let mut pieces = bytes.chunks(size);
    let mut found = Vec::new();
    loop {
        match source.next() {
            Next::Record => {
                let row = source.record();
                let (names, values) = row.all().unwrap();
                let field = |(index, value): (usize, &Value<'_>)| {
                    format!("{}={}", names.get(index), value.text().unwrap_or("NULL".into()))
                };
                found.push(values.iter().enumerate().map(field).collect());
            }
            Next::Input => source.feed(pieces.next().map(Bytes::copy_from_slice).unwrap_or_default()),
            Next::End => {
                assert_eq!(source.scanned(), bytes.len() as u64);
                return (found, None);
            }
            Next::Fault(fault) => return (found, Some(fault)),
        }
    }
}

fn fields(text: &str) -> Vec<FieldPath> {
    sql::parse(&format!("SELECT {text} FROM BlobStorage")).unwrap().fields
}

#[test]
fn delimited_text_is_read_as_it_is_configured() {
    let plain = Delimited::default;
    let headers = || Delimited { headers: true, ..plain() };
    let other =
        || Delimited { column: b';', quote: Some(b'\''), record: "!".to_owned(), escape: Some(b'\\'), ..plain() };
    let bare = || Delimited { quote: None, ..plain() };
    let windows = || Delimited { record: "\r\n".to_owned(), ..plain() };
    let cases: [(Delimited, &str, &[&[&str]]); 12] = [
        (plain(), "", &[]),
        (plain(), "a,b\nc,d\n", &[&["_1=a", "_2=b"], &["_1=c", "_2=d"]]),
        (plain(), "a,b\r\nc\r\n\r\n\n,d", &[&["_1=a", "_2=b"], &["_1=c"], &["_1=", "_2=d"]]),
        (plain(), "\"a,\"\"b\"\"\n\",c\n", &[&["_1=a,\"b\"\n", "_2=c"]]),
        (plain(), "\"a\"\r\n\"b\r\"\n", &[&["_1=a"], &["_1=b\r"]]),
        (plain(), "a\r", &[&["_1=a"]]),
        (plain(), "\u{feff}a,b\n", &[&["_1=a", "_2=b"]]),
        (headers(), "x,Y z\n1,2,3\n", &[&["x=1", "Y z=2", "_3=3"]]),
        (headers(), "x,y\n", &[]),
        (other(), "'a\\'b;c';d!'e'!", &[&["_1=a'b;c", "_2=d"], &["_1=e"]]),
        (bare(), "\"a,b\"\n", &[&["_1=\"a", "_2=b\""]]),
        (windows(), "a\r\nb\r\n", &[&["_1=a"], &["_1=b"]]),
    ];
    for (format, text, expected) in cases {
        let source = || Source::Delimited(Box::new(DelimitedSource::new(&format, Vec::new())));
        // A byte order mark is only known when it comes in one piece.
        let found = if text.starts_with('\u{feff}') {
            in_pieces(text.as_bytes(), source(), 3)
        } else {
            records(text.as_bytes(), source)
        };
        assert_eq!(
            found,
            (expected.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect(), None),
            "{text:?}"
        );
    }
}

#[test]
fn columns_are_found_by_header_or_ordinal() {
    let format = Delimited { headers: true, ..Delimited::default() };
    let mut source = Source::Delimited(Box::new(DelimitedSource::new(&format, fields("B, \"b\", _1, _9"))));
    source.feed(Bytes::from_static(b"a,b\n1,2\n"));
    assert_eq!(source.next(), Next::Record);
    let row = source.record();
    let found: Vec<_> = (0..4).map(|index| row.field(index)).collect();
    let text = |text: &'static str| Ok(Value::Text(text.into()));
    assert_eq!(found, [text("2"), text("2"), text("1"), Err(RowError::InvalidColumnOrdinal)]);
    assert_eq!(source.position(), 4);

    let mut source = Source::Delimited(Box::new(DelimitedSource::new(&format, fields("c"))));
    source.feed(Bytes::from_static(b"a,b\n1,2\n"));
    assert!(matches!(source.next(), Next::Fault(Fault { fatal: true, name: "InvalidColumnName", .. })));
}

#[test]
fn a_field_that_is_no_text_is_an_error_of_its_record() {
    let mut source = Source::Delimited(Box::new(DelimitedSource::new(&Delimited::default(), fields("_2"))));
    source.feed(Bytes::from_static(b"a,\xff\n"));
    assert_eq!(source.next(), Next::Record);
    assert_eq!(source.record().field(0), Err(RowError::InvalidTextEncoding));
}

#[test]
fn documents_stand_one_behind_the_other() {
    let cases: [(&str, &[&[&str]]); 9] = [
        ("", &[]),
        (" \n ", &[]),
        ("{\"a\":1}\n{\"a\":2}", &[&["a=1"], &["a=2"]]),
        ("{\"a\":1}{\"b\":\"}{\\\"\"}", &[&["a=1"], &["b=}{\""]]),
        ("{\"z\":1,\"a\":{\"x\":[1, 2]}};{}", &[&["z=1", "a={\"x\":[1,2]}"], &[]]),
        (
            "[{\"a\":1}, 2 ,\"x,]\", [3,4],null]\n{\"a\":5}",
            &[&["a=1"], &["_1=2"], &["_1=x,]"], &["_1=[3,4]"], &["_1=NULL"], &["a=5"]],
        ),
        ("[]{\"a\":1}[ ]", &[&["a=1"]]),
        ("[1,2]", &[&["_1=1"], &["_1=2"]]),
        ("{\n\"a\" :\r\n true }\r\n", &[&["a=true"]]),
    ];
    for (text, expected) in cases {
        let found = records(text.as_bytes(), || Source::Json(Box::new(JsonSource::new(";", Vec::new(), Vec::new()))));
        assert_eq!(
            found,
            (expected.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect(), None),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_json_ends_the_query() {
    let cases = [
        ("100,200\n", 0, "Unexpected token '1' at [byte: 0]. Expecting tokens '{', or '['."),
        ("{\"a\":1}x", 7, "Unexpected token 'x' at [byte: 7]. Expecting tokens '{', or '['."),
        ("[1 2]", 3, "Unexpected token '2' at [byte: 3]. Expecting tokens ',', or ']'."),
        ("[1,]", 3, "Unexpected token ']' at [byte: 3]. Expecting tokens '{', or '['."),
        ("[1", 0, ""),
        ("[1,", 3, "The array does not end."),
        ("{\"a\":", 0, "The document does not end."),
        ("{name: owner}", 0, ""),
        ("{\"a\":1]", 0, ""),
        ("{\"a\":\"\u{1}\"}", 0, ""),
    ];
    for (text, position, description) in cases {
        let (_, fault) =
            records(text.as_bytes(), || Source::Json(Box::new(JsonSource::new("\n", Vec::new(), Vec::new()))));
        let fault = fault.unwrap();
        assert!(fault.fatal && fault.name == "ParseError", "{text}: {fault:?}");
        if !description.is_empty() {
            assert_eq!((fault.position, fault.description.as_str()), (position, description), "{text}");
        }
    }
    let deep = "[".repeat(5000);
    let (_, fault) = records(deep.as_bytes(), || Source::Json(Box::new(JsonSource::new("\n", Vec::new(), Vec::new()))));
    assert!(fault.is_some());
}

#[test]
fn records_can_lie_below_a_document() {
    let document = br#"{"id":1,"tags":["a","b"],"In":{"x":1},"list":[{"y":1},{"y":2},{"z":3}]}{"id":2}"#;
    let cases: [(&str, &[&str]); 8] = [
        ("[*]", &["id=1,tags=[\"a\",\"b\"],In={\"x\":1},list=[{\"y\":1},{\"y\":2},{\"z\":3}]", "id=2"]),
        ("[*].tags[*]", &["_1=a", "_1=b"]),
        ("[*].tags", &["_1=[\"a\",\"b\"]"]),
        ("[*].in", &["x=1"]),
        ("[*].\"in\"", &[]),
        ("[*].list[*]", &["y=1", "y=2", "z=3"]),
        ("[*].list[1].y", &["_1=2"]),
        ("[*].list[9]", &[]),
    ];
    for (way, expected) in cases {
        let from = sql::parse(&format!("SELECT * FROM BlobStorage{way}")).unwrap().from;
        let (found, fault) =
            records(document, || Source::Json(Box::new(JsonSource::new("\n", from.clone(), Vec::new()))));
        assert_eq!(fault, None);
        assert_eq!(found.iter().map(|row| row.join(",")).collect::<Vec<_>>(), expected, "{way}");
    }
}

#[test]
fn a_record_too_large_to_be_held_ends_the_query() {
    let mut long = vec![b'"'];
    long.resize(RECORD_BYTES_MAX * 2, b'a');
    let many = b",".repeat(100_000);
    let delimited = || Source::Delimited(Box::new(DelimitedSource::new(&Delimited::default(), Vec::new())));
    let json = || Source::Json(Box::new(JsonSource::new("\n", Vec::new(), Vec::new())));
    let object = [b"{\"a\":", long.as_slice()].concat();
    let values = [b"{\"a\":[1", b",1".repeat(1_000_000).as_slice()].concat();
    for (bytes, source) in [(&long, delimited()), (&many, delimited()), (&object, json()), (&values, json())] {
        let (_, fault) = in_pieces(bytes, source, 256 * 1024);
        assert_eq!(fault.map(|fault| (fault.fatal, fault.name)), Some((true, "RecordTooLarge")));
    }
}

proptest! {
    #[test]
    fn delimited_text_is_the_same_in_all_pieces(text in "[a,;'\"\\\\\r\n]{0,40}", size in 1_usize..20, odd in any::<bool>()) {
        let odd_format = Delimited { column: b';', quote: Some(b'\''), escape: Some(b'\\'), ..Delimited::default() };
        let format = if odd { odd_format } else { Delimited::default() };
        let source = || Source::Delimited(Box::new(DelimitedSource::new(&format, Vec::new())));
        prop_assert_eq!(in_pieces(text.as_bytes(), source(), size), in_pieces(text.as_bytes(), source(), 64));
    }

    #[test]
    fn json_is_the_same_in_all_pieces(text in "[\\[\\]{}:,1\"\\\\ tn]{0,40}", size in 1_usize..20) {
        let source = || Source::Json(Box::new(JsonSource::new("\n", Vec::new(), Vec::new())));
        prop_assert_eq!(in_pieces(text.as_bytes(), source(), size), in_pieces(text.as_bytes(), source(), 64));
    }

    #[test]
    fn documents_come_back_in_their_order(numbers in proptest::collection::vec(any::<i64>(), 0..20), list in any::<bool>()) {
        let documents: Vec<String> = numbers.iter().map(|number| format!("{{\"n\": {number}}}")).collect();
        let text = if list { format!("[{}]", documents.join(",")) } else { documents.join("\n") };
        let source = Source::Json(Box::new(JsonSource::new("\n", Vec::new(), Vec::new())));
        let expected: Vec<_> = numbers.iter().map(|number| vec![format!("n={number}")]).collect();
        prop_assert_eq!(in_pieces(text.as_bytes(), source, 7), (expected, None));
    }
}
