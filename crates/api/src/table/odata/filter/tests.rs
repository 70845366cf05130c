use lazuli_engine::clock::Timestamp;
use lazuli_engine::table::expression::{Field, Operator};
use lazuli_engine::table::value::Value;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn compare(name: &str, operator: Operator, value: Value) -> Expression {
    let field = match name {
        "PartitionKey" => Field::PartitionKey,
        "RowKey" => Field::RowKey,
        "Timestamp" => Field::Timestamp,
        name => Field::Property(name.into()),
    };
    Expression::Compare { field, operator, value }
}

fn equal(name: &str, value: Value) -> Expression {
    compare(name, Operator::Equal, value)
}

fn number(name: &str) -> Expression {
    equal(name, Value::Int32(1))
}

#[test]
fn literals_are_of_every_type() {
    let august = Timestamp::from_unix_seconds(1_785_542_400);
    let id = Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    let cases = [
        ("''", Value::String(String::new())),
        ("'it''s'", Value::String("it's".into())),
        ("'é (not) ''and'''", Value::String("é (not) 'and'".into())),
        ("5", Value::Int32(5)),
        ("-5", Value::Int32(-5)),
        ("2147483647", Value::Int32(i32::MAX)),
        ("2147483648", Value::Int64(2_147_483_648)),
        ("5L", Value::Int64(5)),
        ("-9223372036854775808L", Value::Int64(i64::MIN)),
        ("5.0", Value::Double(5.0)),
        ("-.5", Value::Double(-0.5)),
        ("5e3", Value::Double(5000.0)),
        ("5.5E-3", Value::Double(0.0055)),
        ("5d", Value::Double(5.0)),
        ("INF", Value::Double(f64::INFINITY)),
        ("-INF", Value::Double(f64::NEG_INFINITY)),
        ("true", Value::Boolean(true)),
        ("false", Value::Boolean(false)),
        ("datetime'2026-08-01T00:00:00Z'", Value::DateTime(august)),
        ("guid'00112233-4455-6677-8899-aabbccddeeff'", Value::Guid(id)),
        ("X'00fF'", Value::Binary(vec![0, 255])),
        ("binary'00ff'", Value::Binary(vec![0, 255])),
        ("X''", Value::Binary(Vec::new())),
    ];
    for (literal, value) in cases {
        assert_eq!(parse(&format!("a eq {literal}")), Ok(equal("a", value)), "{literal}");
    }
    let nan = parse("a eq NaN");
    assert!(matches!(nan, Ok(Expression::Compare { value: Value::Double(number), .. }) if number.is_nan()));
}

#[test]
fn comparisons_have_six_operators_and_two_sides() {
    use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let cases = [
        ("eq", Equal, Equal),
        ("ne", NotEqual, NotEqual),
        ("gt", Greater, Less),
        ("ge", GreaterOrEqual, LessOrEqual),
        ("lt", Less, Greater),
        ("le", LessOrEqual, GreaterOrEqual),
    ];
    for (word, operator, exchanged) in cases {
        assert_eq!(parse(&format!("RowKey {word} 'x'")), Ok(compare("RowKey", operator, Value::String("x".into()))));
        assert_eq!(parse(&format!("5 {word} Age")), Ok(compare("Age", exchanged, Value::Int32(5))));
    }
    assert_eq!(parse("ชื่อ eq 1"), Ok(number("ชื่อ")));
    assert_eq!(parse("PartitionKey eq'x'"), Ok(equal("PartitionKey", Value::String("x".into()))));
}

#[test]
fn and_binds_before_or_and_not_before_both() {
    let [a, b, c] = ["a", "b", "c"].map(number);
    let flag = equal("flag", Value::Boolean(true));
    let negated = |inner: &Expression| Expression::Not(Box::new(inner.clone()));
    let any = |parts: &[&Expression]| Expression::Any(parts.iter().copied().cloned().collect());
    let all = |parts: &[&Expression]| Expression::All(parts.iter().copied().cloned().collect());
    let cases = [
        ("a eq 1 or b eq 1 and c eq 1", any(&[&a, &all(&[&b, &c])])),
        ("(a eq 1 or b eq 1) and c eq 1", all(&[&any(&[&a, &b]), &c])),
        ("a eq 1 and b eq 1 and c eq 1", all(&[&a, &b, &c])),
        ("((a eq 1) and (b eq 1)) and (c eq 1)", all(&[&a, &b, &c])),
        ("a eq 1 or (b eq 1 or c eq 1)", any(&[&a, &b, &c])),
        ("not a eq 1 and b eq 1", all(&[&negated(&a), &b])),
        ("not (a eq 1 and b eq 1)", negated(&all(&[&a, &b]))),
        ("not(a eq 1)", negated(&a)),
        ("not not a eq 1", a.clone()),
        ("flag", flag.clone()),
        ("not flag and a eq 1", all(&[&negated(&flag), &a])),
        ("true", Expression::Constant(true)),
        ("a eq 1 or false", any(&[&a, &Expression::Constant(false)])),
        ("  ( a eq 1 )  ", a.clone()),
        ("(a eq 1)and(b eq 1)", all(&[&a, &b])),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_no_filter_is_refused_at_its_place() {
    let cases = [
        ("", 0, false),
        ("a eq", 4, false),
        ("a eq 1 b", 7, false),
        ("a eq 1 and", 10, false),
        ("(a eq 1", 7, false),
        ("a eq 1)", 6, false),
        ("a EQ 1", 2, false),
        ("a eq null", 5, false),
        ("null", 0, false),
        ("5", 1, false),
        ("'x' and a eq 1", 4, false),
        ("a eq 'x", 5, false),
        ("a eq date'2026'", 5, false),
        ("a eq datetime'x'", 5, false),
        ("a eq guid'1'", 5, false),
        ("a eq X'0'", 5, false),
        ("a eq X'zz'", 5, false),
        ("a eq 1x", 5, false),
        ("a eq 9223372036854775808", 5, false),
        ("a eq 1e999", 5, false),
        ("a = 1", 2, false),
        ("a/b eq 1", 1, false),
        ("é eq §", 6, false),
        ("startswith(a,'x')", 0, true),
        ("a eq 1 and not substringof('x',a)", 15, true),
        ("a add 1 eq 2", 2, true),
        ("a eq b", 0, true),
        ("1 eq 1", 0, true),
    ];
    for (text, position, unbuilt) in cases {
        let wrong = parse(text).unwrap_err();
        assert_eq!((wrong.position, wrong.unbuilt), (position, unbuilt), "{text}: {wrong:?}");
    }
    let problem = of_query("é eq §").unwrap_err();
    assert_eq!(problem.code, Code::InvalidInput);
    assert!(problem.message.unwrap().contains("at character 5"));
    let problem = of_query("startswith(a,'x')").unwrap_err();
    assert_eq!(problem.code, Code::NotImplemented);
    assert!(problem.message.unwrap().contains("The function startswith is not implemented"));
}

#[test]
fn nesting_is_bounded_and_length_is_not() {
    let nested = |depth: usize| format!("{}a eq 1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(parse(&nested(DEPTH_MAX)), Ok(number("a")));
    assert_eq!(parse(&nested(DEPTH_MAX + 1)).unwrap_err().position, DEPTH_MAX);
    let long = vec!["a eq 1"; 5000].join(" or ");
    assert!(matches!(parse(&long), Ok(Expression::Any(parts)) if parts.len() == 5000));
    assert_eq!(parse(&format!("{}a eq 1", "not ".repeat(10_001))), Ok(Expression::Not(Box::new(number("a")))));
    let mixed = "not (a eq 1 or ".repeat(DEPTH_MAX) + "b eq 1" + &")".repeat(DEPTH_MAX);
    assert!(parse(&mixed).is_ok());
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(
        text in "\\PC{0,40}",
        words in "( |\\(|\\)|'|eq|and|or|not|a|1|5L|e|-|\\.|X|datetime|é)*",
    ) {
        for text in [text, words] {
            if let Err(wrong) = parse(&text) {
                prop_assert!(text.is_char_boundary(wrong.position), "{:?} {:?}", text, wrong);
            }
        }
    }
}
