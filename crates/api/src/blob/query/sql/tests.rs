//! The language, by tables: an expression and what it is.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::evaluate::Scope;
use super::moment::Moment;
use super::syntax::{Select, Statement};
use super::*;
use crate::blob::query::records::Row;

/// What `expression` is over a fixed record: its text, `NULL`, `MISSING`, or the name of the error.
fn value(expression: &str) -> String {
    let record = json!({
        "name": "Ann", "Count": 7, "price": 2.5, "text": "12", "on": true, "none": null, "when": "2020-02-29T12:00:00Z",
        "inner": {"a": [1, {"b": "deep"}]}, "two words": "quoted", "Limit": 3,
    });
    let statement = parse(&format!("SELECT {expression} FROM BlobStorage")).unwrap();
    let Select::Columns(columns) = &statement.select else { panic!("{expression} is no column") };
    let row = Row::Json { value: &record, text: None, fields: &statement.fields };
    let now = Moment::utc("2026-08-01T00:00:00Z".parse::<Timestamp>().unwrap());
    match (Scope { record: &row, now }).value(&columns[0].expression) {
        Ok(value::Value::Missing) => "MISSING".to_owned(),
        Ok(value) => value.text().map_or("NULL".to_owned(), std::borrow::Cow::into_owned),
        Err(error) => error.name().to_owned(),
    }
}

fn all(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(&value(expression), expected, "{expression}");
    }
}

#[test]
fn fields_are_found_by_name_and_way() {
    all(&[
        ("name", "Ann"),
        ("NAME", "Ann"),
        ("\"name\"", "Ann"),
        ("\"Name\"", "MISSING"),
        ("count", "7"),
        ("\"two words\"", "quoted"),
        ("\"Limit\"", "3"),
        ("inner.a[0]", "1"),
        ("inner.A[1].b", "deep"),
        ("inner.a[2]", "MISSING"),
        ("inner.a", "[1,{\"b\":\"deep\"}]"),
        ("name.first", "MISSING"),
        ("nothing", "MISSING"),
        ("none", "NULL"),
        ("_1", "MISSING"),
    ]);
}

#[test]
fn arithmetic_keeps_ints_and_binds_as_usual() {
    all(&[
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 4 - 3", "3"),
        ("7 / 2", "3"),
        ("7 % 4", "3"),
        ("7 / 2.0", "3.5"),
        ("-price", "-2.5"),
        ("- - 3", "3"),
        ("1e2 + .5", "100.5"),
        ("text + 1", "13"),
        ("'1.5' * 2", "3"),
        ("on + 1", "2"),
        ("none + 1", "NULL"),
        ("nothing + 1", "NULL"),
        ("name + 1", "InvalidTypeConversion"),
        ("'' + 1", "InvalidTypeConversion"),
        ("'inf' + 1", "InvalidTypeConversion"),
        ("inner + 1", "InvalidTypeConversion"),
        ("1 / 0", "DivideByZero"),
        ("1 % 0.0", "DivideByZero"),
        ("9223372036854775807 + 1", "ArithmeticOverflow"),
        ("1e308 * 10", "ArithmeticOverflow"),
        ("CAST('2020-01-01' AS TIMESTAMP) + 1.5", "2020-01-02T12:00:00Z"),
        ("CAST('2020-01-01' AS TIMESTAMP) - 1", "2019-12-31T00:00:00Z"),
        ("CAST('2020-01-01' AS TIMESTAMP) + 1e9", "InvalidArgument"),
    ]);
}

#[test]
fn comparisons_convert_to_the_stronger_type() {
    all(&[
        ("1 = 1.0", "true"),
        ("1 <> 2", "true"),
        ("1 != 1", "false"),
        ("text > 9", "true"),
        ("text > '9'", "false"),
        ("'a' < 'b'", "true"),
        ("'A' = 'a'", "false"),
        ("on = 'TRUE'", "true"),
        ("on = 1", "true"),
        ("name > 1", "InvalidTypeConversion"),
        ("when = CAST('2020-02-29T13:00+01:00' AS TIMESTAMP)", "true"),
        ("name = CAST('2020' AS TIMESTAMP)", "InvalidTypeConversion"),
        ("none = none", "NULL"),
        ("nothing > 1", "NULL"),
        ("9007199254740993 > 9007199254740992", "true"),
    ]
    .map(|(expression, expected)| {
        // The record has a field that is called like a keyword.
        (
            if expression.starts_with("when") {
                expression.replacen("when", "\"when\"", 1)
            } else {
                expression.to_owned()
            },
            expected,
        )
    })
    .iter()
    .map(|(expression, expected)| (expression.as_str(), *expected))
    .collect::<Vec<_>>());
}

#[test]
fn conditions_have_three_values() {
    all(&[
        ("TRUE AND FALSE", "false"),
        ("TRUE OR none", "true"),
        ("none OR TRUE", "true"),
        ("FALSE AND none", "false"),
        ("none AND TRUE", "NULL"),
        ("NOT none", "NULL"),
        ("NOT 1 = 2", "true"),
        ("NOT NOT on", "true"),
        ("FALSE OR TRUE AND FALSE", "false"),
        ("1 = 1 AND 2 = 2 AND 3 = 3", "true"),
        ("1 = 1 OR name > 1", "true"),
        ("name AND TRUE", "InvalidTypeConversion"),
    ]);
}

#[test]
fn tests_can_be_negated() {
    all(&[
        ("2 BETWEEN 1 AND 3", "true"),
        ("2 NOT BETWEEN 1 AND 3", "false"),
        ("2 BETWEEN 3 AND none", "false"),
        ("2 BETWEEN 1 AND none", "NULL"),
        ("text IN (11, 12)", "true"),
        ("text NOT IN (11, 12)", "false"),
        ("1 IN (2, none)", "NULL"),
        ("name IN ('Ann')", "true"),
        ("none IS NULL", "true"),
        ("nothing IS NULL", "true"),
        ("nothing IS MISSING", "true"),
        ("none IS MISSING", "false"),
        ("name IS NOT NULL", "true"),
        ("name IS NOT MISSING", "true"),
        ("name LIKE 'A%'", "true"),
        ("name LIKE '_n_'", "true"),
        ("name LIKE '%n'", "true"),
        ("name LIKE 'a%'", "false"),
        ("name NOT LIKE '%x%'", "true"),
        ("'aXbXc' LIKE '%X_'", "true"),
        ("'' LIKE '%'", "true"),
        ("'' LIKE '_'", "false"),
        ("'50%' LIKE '50!%' ESCAPE '!'", "true"),
        ("'50x' LIKE '50!%' ESCAPE '!'", "false"),
        ("none LIKE 'a'", "NULL"),
        ("'a' LIKE 'a!' ESCAPE '!'", "InvalidArgument"),
        ("'a' LIKE 'a' ESCAPE 'xy'", "InvalidArgument"),
        ("'äöü' LIKE '_ö%'", "true"),
    ]);
}

#[test]
fn casts_give_the_value_or_fail() {
    all(&[
        ("CAST(' 12 ' AS INT)", "12"),
        ("CAST('1.5' AS INT)", "InvalidTypeConversion"),
        ("CAST(2.9 AS INT)", "2"),
        ("CAST(-2.9 AS INT)", "-2"),
        ("CAST(1e30 AS INT)", "ArithmeticOverflow"),
        ("CAST(on AS INT)", "1"),
        ("CAST('1.5' AS FLOAT)", "1.5"),
        ("CAST(count AS FLOAT)", "7"),
        ("CAST(price AS STRING)", "2.5"),
        ("CAST('false' AS BOOLEAN)", "false"),
        ("CAST(0 AS BOOLEAN)", "false"),
        ("CAST('yes' AS BOOLEAN)", "InvalidTypeConversion"),
        ("CAST(none AS INT)", "NULL"),
        ("CAST(nothing AS INT)", "NULL"),
        ("CAST('2020-01-02T03:04:05.678+05:30' AS TIMESTAMP)", "2020-01-02T03:04:05.678+05:30"),
        ("CAST(1 AS TIMESTAMP)", "InvalidTypeConversion"),
        ("CAST(inner AS STRING)", "{\"a\":[1,{\"b\":\"deep\"}]}"),
    ]);
}

#[test]
fn case_takes_the_first_arm_that_fits() {
    all(&[
        ("CASE WHEN count > 5 THEN 'many' ELSE 'few' END", "many"),
        ("CASE WHEN none THEN 1 WHEN TRUE THEN 2 END", "2"),
        ("CASE name WHEN 'Bob' THEN 1 WHEN 'Ann' THEN 2 END", "2"),
        ("CASE name WHEN 'Bob' THEN 1 END", "NULL"),
        ("CASE WHEN TRUE THEN 1 ELSE 1 / 0 END", "1"),
    ]);
}

#[test]
fn functions_of_texts() {
    all(&[
        ("CHARACTER_LENGTH('abcdefg')", "7"),
        ("CHAR_LENGTH('äö')", "2"),
        ("LOWER('AbCdEfG')", "abcdefg"),
        ("UPPER('AbCdEfG')", "ABCDEFG"),
        ("SUBSTRING('123456789', 1, 5)", "23456"),
        ("SUBSTRING('123456789', 7)", "89"),
        ("SUBSTRING('123', -1, 2)", "1"),
        ("SUBSTRING('äöü', 1, 1)", "ö"),
        ("SUBSTRING('123', 9, 2)", ""),
        ("SUBSTRING('123', 0, -1)", "InvalidArgument"),
        ("SUBSTRING('123', 1.5)", "InvalidTypeConversion"),
        ("TRIM(BOTH '123' FROM '1112211Microsoft22211122')", "Microsoft"),
        ("TRIM('  a b ')", "a b"),
        ("TRIM(LEADING FROM '  a ')", "a "),
        ("TRIM(TRAILING 'x' FROM 'xax')", "xa"),
        ("TRIM('x' FROM 'xax')", "a"),
        ("COALESCE(none, nothing, name)", "Ann"),
        ("COALESCE(none)", "NULL"),
        ("NULLIF(1, 1.0)", "NULL"),
        ("NULLIF(name, 'Bob')", "Ann"),
        ("NULLIF(none, 1)", "NULL"),
        ("UPPER(none)", "NULL"),
        ("UPPER(count)", "7"),
    ]);
}

#[test]
fn functions_of_dates() {
    all(&[
        ("UTCNOW()", "2026-08-01T00:00:00Z"),
        ("DATE_ADD('minute', 1, CAST('2017-01-02T03:04:05.006Z' AS TIMESTAMP))", "2017-01-02T03:05:05.006Z"),
        ("DATE_ADD(month, 1, '2020-01-31')", "2020-02-29T00:00:00Z"),
        ("DATE_ADD('year', -1, '2020-02-29T')", "2019-02-28T00:00:00Z"),
        ("DATE_ADD('day', 1, '2020-02-29T23:00+02:00')", "2020-03-01T23:00:00+02:00"),
        ("DATE_ADD('year', 100000, '2020')", "InvalidArgument"),
        ("DATE_DIFF('hour','2018-11-09T00:00+05:30','2018-11-09T01:00:23-08:00')", "14"),
        ("DATE_DIFF('month', '2010-01-31', '2010-03-30')", "1"),
        ("DATE_DIFF('year', '2010-12', '2011-01')", "0"),
        ("DATE_DIFF('day', '2010-01-02', '2010-01-01')", "-1"),
        ("DATE_DIFF('second', '2010-01-01T00:00:00.5Z', '2010-01-01T00:00:01.4Z')", "0"),
        ("EXTRACT(YEAR FROM '2010-01-01T')", "2010"),
        ("EXTRACT(hour FROM '2010-01-01T05:06+07:30')", "5"),
        ("EXTRACT(timezone_hour FROM '2010-01-01T05:06+07:30')", "7"),
        ("EXTRACT(timezone_minute FROM '2010-01-01T05:06+07:30')", "30"),
        ("EXTRACT(year FROM 'soon')", "InvalidTypeConversion"),
        ("TO_TIMESTAMP('2007T')", "2007-01-01T00:00:00Z"),
        ("TO_TIMESTAMP('2007-13-01')", "InvalidTypeConversion"),
        ("TO_STRING(CAST('1969-07-20T20:18Z' AS TIMESTAMP), 'MMMM d, y')", "July 20, 1969"),
        ("TO_STRING('1999-01-02T13:04:05.678+05:30', 'yy yyyy M MM MMM')", "99 1999 1 01 JAN"),
        ("TO_STRING('1999-01-02T13:04:05.678+05:30', 'd dd h hh H HH m mm s ss a')", "2 02 1 01 13 13 4 04 5 05 PM"),
        (
            "TO_STRING('1999-01-02T13:04:05.678+05:30', 'S SS SSS X XX XXX x xx xxx')",
            "6 67 678 +05 +0530 +05:30 +05 +0530 +05:30",
        ),
        ("TO_STRING('1999-01-02T00:04Z', 'yyyy-MM-ddTHH:mm:ssX h a')", "1999-01-02T00:04:00Z 12 AM"),
        ("TO_STRING('1999', '''year'' y')", "year 1999"),
        ("TO_STRING('1999', 'q')", "InvalidArgument"),
        ("TO_STRING('1999', '''y')", "InvalidArgument"),
    ]);
}

#[test]
fn dates_are_read_in_every_iso_form() {
    let cases = [
        ("2007", Some("2007-01-01T00:00:00Z")),
        ("2007T", Some("2007-01-01T00:00:00Z")),
        ("2007-02", Some("2007-02-01T00:00:00Z")),
        ("2007-02-03", Some("2007-02-03T00:00:00Z")),
        ("2007-02-03T04:05", Some("2007-02-03T04:05:00Z")),
        ("2007-02-03T04:05:06Z", Some("2007-02-03T04:05:06Z")),
        ("2007-02-03 04:05:06", Some("2007-02-03T04:05:06Z")),
        ("2007-02-03T04:05:06.1234567891Z", Some("2007-02-03T04:05:06.123456789Z")),
        ("2007-02-03T04:05-0800", Some("2007-02-03T04:05:00-08:00")),
        ("2007-02-03T04:05+09", Some("2007-02-03T04:05:00+09:00")),
        ("", None),
        ("207", None),
        ("2007-2-3", None),
        ("2007-02-30", None),
        ("2007-02-03T04", None),
        ("2007-02-03T25:00", None),
        ("2007-02-03T04:05:06.Z", None),
        ("2007-02-03T04:05+99:00", None),
        ("2007-02-03T04:05 and more", None),
    ];
    for (text, expected) in cases {
        assert_eq!(Moment::parse(text).map(|moment| moment.to_string()).as_deref(), expected, "{text}");
    }
}

#[test]
fn statements_are_understood() {
    let select = |text: &str| parse(text).map(|statement| statement.select);
    assert_eq!(select("select * from blobstorage;"), Ok(Select::All));
    assert_eq!(select("SELECT sys.split(10485760)FROM BlobStorage"), Ok(Select::Split(10_485_760)));
    let Ok(Statement { limit, from, filter, .. }) =
        parse("SELECT a FROM BlobStorage[*].b[3].\"C d\"[*] WHERE a > 1 LIMIT 5")
    else {
        panic!("the statement is one");
    };
    assert_eq!((limit, from.len(), filter.is_some()), (Some(5), 4, true));
    let names = |text: &str| match select(text) {
        Ok(Select::Columns(columns)) => columns.into_iter().map(|column| column.name).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let expected = [Some("a"), Some("c"), None, Some("x"), None, None, Some("Y")];
    let found = names("SELECT a, b.c, _2, a AS x, t[1], a + 1, \"Y\" FROM BlobStorage");
    assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
}

#[test]
fn anything_else_is_no_statement() {
    let columns = |count| format!("SELECT {} FROM BlobStorage", vec!["_1"; count].join(", "));
    assert!(parse(&columns(49)).is_ok());
    let deep = format!("SELECT {}1{} FROM BlobStorage", "(".repeat(5000), ")".repeat(5000));
    let minus = format!("SELECT {}1 FROM BlobStorage", "-".repeat(5000));
    let way = format!("SELECT a FROM BlobStorage[*]{}", "[*]".repeat(5000));
    let long = format!("SELECT * FROM BlobStorage WHERE {}", vec!["_1 = 1"; 5000].join(" OR "));
    assert!(parse(&long).is_ok());
    let cases = [
        "",
        "SELECT",
        "SELECT FROM BlobStorage",
        "SELECT * FROM table",
        "SELECT * FROM BlobStorage.a",
        "SELECT * FROM BlobStorage[0]",
        "SELECT * FROM BlobStorage WHERE",
        "SELECT * FROM BlobStorage LIMIT -1",
        "SELECT * FROM BlobStorage LIMIT 1.5",
        "SELECT * FROM BlobStorage ORDER BY _1",
        "SELECT * FROM BlobStorage GROUP BY _1",
        "SELECT * FROM BlobStorage; SELECT * FROM BlobStorage",
        "SELECT *, _1 FROM BlobStorage",
        "SELECT _1, COUNT(*) FROM BlobStorage",
        "SELECT COUNT(*) + 1 FROM BlobStorage",
        "SELECT * FROM BlobStorage WHERE COUNT(*) > 1",
        "SELECT SUM(*) FROM BlobStorage",
        "SELECT DISTINCT _1 FROM BlobStorage",
        "SELECT sys.split(10485759) FROM BlobStorage",
        "SELECT sys.split(10485760) FROM BlobStorage LIMIT 1",
        "SELECT FLOOR(_1) FROM BlobStorage",
        "SELECT LOWER() FROM BlobStorage",
        "SELECT LOWER(_1, _2) FROM BlobStorage",
        "SELECT CAST(_1 AS DATE) FROM BlobStorage",
        "SELECT EXTRACT(week FROM _1) FROM BlobStorage",
        "SELECT DATE_ADD('week', 1, _1) FROM BlobStorage",
        "SELECT DATE_DIFF('timezone_hour', _1, _2) FROM BlobStorage",
        "SELECT CASE END FROM BlobStorage",
        "SELECT where FROM BlobStorage",
        "SELECT 'open FROM BlobStorage",
        "SELECT 12abc FROM BlobStorage",
        "SELECT 1e FROM BlobStorage",
        "SELECT _1 = _2 = _3 FROM BlobStorage",
        "SELECT _1 NOT 1 FROM BlobStorage",
        "SELECT _1 IS 1 FROM BlobStorage",
        "SELECT _1 ? FROM BlobStorage",
        "INSERT INTO BlobStorage",
        &columns(50),
        &deep,
        &minus,
        &way,
    ];
    for text in cases {
        assert!(parse(text).is_err(), "{text:.80}");
    }
    assert_eq!(parse("SELECT * FROM Elsewhere").unwrap_err().to_string(), "BLOBSTORAGE is missing (at byte 14)");
}

#[test]
fn aggregates_pass_over_what_is_unknown() {
    let records = [json!({"a": 1, "b": "x"}), json!({"a": 2.5}), json!({"a": null, "b": "w"}), json!({"a": "4"})];
    let results = |list: &str| {
        let statement = parse(&format!("SELECT {list} FROM BlobStorage")).unwrap();
        let Select::Aggregates(columns) = &statement.select else { panic!("{list}") };
        let mut aggregates = aggregate::Aggregates::of(columns);
        for record in &records {
            let row = Row::Json { value: record, text: None, fields: &statement.fields };
            let scope = Scope { record: &row, now: Moment::utc(Timestamp::UNIX_EPOCH) };
            aggregates.add(columns, scope).unwrap();
        }
        let values = aggregates.results(columns);
        values.iter().map(|value| value.text().unwrap_or("NULL".into()).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(results("COUNT(*), COUNT(a), COUNT(b), COUNT(c)"), ["4", "3", "2", "0"]);
    assert_eq!(results("SUM(a), AVG(a), average(a), MIN(a), MAX(a)"), ["7.5", "2.5", "2.5", "1", "4"]);
    assert_eq!(results("MIN(b), MAX(b), SUM(c), AVG(c), MIN(c)"), ["w", "x", "NULL", "NULL", "NULL"]);
    assert_eq!(results("SUM(CAST(a AS FLOAT) * 2) AS twice"), ["15"]);
}

#[test]
fn a_record_that_fails_one_aggregate_counts_in_none() {
    let statement = parse("SELECT COUNT(*), SUM(a) FROM BlobStorage").unwrap();
    let Select::Aggregates(columns) = &statement.select else { panic!("aggregates") };
    let mut aggregates = aggregate::Aggregates::of(columns);
    for (record, expected) in [
        (json!({"a": 1}), Ok(())),
        (json!({"a": "x"}), Err(RowError::InvalidTypeConversion)),
        (json!({"a": 2}), Ok(())),
    ] {
        let row = Row::Json { value: &record, text: None, fields: &statement.fields };
        let scope = Scope { record: &row, now: Moment::utc(Timestamp::UNIX_EPOCH) };
        assert_eq!(aggregates.add(columns, scope), expected, "{record}");
    }
    assert_eq!(aggregates.results(columns), [value::Value::Integer(2), value::Value::Integer(3)]);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_words_make_the_parser_panic(words in proptest::collection::vec(
        prop_oneof![
            Just("SELECT"), Just("FROM"), Just("BlobStorage"), Just("WHERE"), Just("("), Just(")"), Just("_1"), Just("'a'"),
            Just("1"), Just(","), Just("NOT"), Just("CASE"), Just("WHEN"), Just("END"), Just("CAST"), Just("AS"), Just("IN"),
            Just("TRIM"), Just("EXTRACT"), Just("COUNT"), Just("*"), Just("-"), Just("["), Just("]"), Just("."),
        ],
        0..20,
    )) {
        let _ = parse(&format!("SELECT {} FROM BlobStorage", words.join(" ")));
        let _ = parse(&words.join(" "));
    }
}
