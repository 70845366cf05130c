use std::cmp::Ordering;

use proptest::prelude::*;
use uuid::Uuid;

use super::Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
use super::compare::{by_units, holds};
use super::*;
use crate::clock::Timestamp;
use crate::etag::Etag;
use crate::names::{KeyText, TableName};
use crate::rows::entity;
use crate::rows::entity::body::{Malformed, decode, encode};
use crate::table::{EntityKey, Properties};

const OPERATORS: [Operator; 6] = [Equal, NotEqual, Greater, GreaterOrEqual, Less, LessOrEqual];

pub(super) fn compare(field: Field, operator: Operator, value: Value) -> Expression {
    Expression::Compare { field, operator, value }
}

pub(super) fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn own(name: &str, operator: Operator, value: Value) -> Expression {
    compare(Field::Property(name.to_owned()), operator, value)
}

/// Whether `expression` matches the entity of these keys and properties, written at tick 1000.
pub(super) fn matches(expression: &Expression, keys: (&str, &str), properties: &[(&str, Value)]) -> bool {
    let key = EntityKey { partition: KeyText::parse(keys.0).unwrap(), row: KeyText::parse(keys.1).unwrap() };
    let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let (key, body) = (entity::key(7, &key), encode(&Properties(properties)).unwrap());
    let etag = Etag::at(Timestamp::from_ticks(1000));
    Matcher::new(expression).matches(&StoredEntity::new(&key, etag, &body).unwrap()).unwrap()
}

/// Checks each operator: whether it holds of values that compare as `order`; `None`: of none.
fn check(value: &Value, constant: &Value, order: Option<Ordering>) {
    for operator in OPERATORS {
        let expected = order.is_some_and(|order| operator.accepts(Some(order)));
        let found = matches(&own("x", operator, constant.clone()), ("", ""), &[("x", value.clone())]);
        assert_eq!(found, expected, "{value:?} {operator:?} {constant:?}");
    }
}

#[test]
fn operators_hold_of_the_orders_they_name() {
    let cases = [
        (Equal, [false, true, false, false]),
        (NotEqual, [true, false, true, true]),
        (Greater, [false, false, true, false]),
        (GreaterOrEqual, [false, true, true, false]),
        (Less, [true, false, false, false]),
        (LessOrEqual, [true, true, false, false]),
    ];
    for (operator, expected) in cases {
        let orders = [Some(Ordering::Less), Some(Ordering::Equal), Some(Ordering::Greater), None];
        assert_eq!(orders.map(|order| operator.accepts(order)), expected, "{operator:?}");
    }
}

#[test]
fn values_of_one_type_compare_in_its_order() {
    let guid = |text: &str| Value::Guid(Uuid::parse_str(text).unwrap());
    let ticks = |ticks| Value::DateTime(Timestamp::from_ticks(ticks));
    // Each list ascends.
    let lists: [Vec<Value>; 8] = [
        vec![text(""), text("A"), text("Z"), text("a"), text("aa"), text("b"), text("\u{e9}"), text("\u{D7FF}")],
        vec![text("\u{D7FF}"), text("\u{10000}"), text("\u{10FFFF}"), text("\u{E000}"), text("\u{FFFF}")],
        vec![Value::Binary(vec![]), Value::Binary(vec![0]), Value::Binary(vec![0, 0]), Value::Binary(vec![255])],
        vec![Value::Boolean(false), Value::Boolean(true)],
        vec![ticks(0), ticks(1), ticks(u64::MAX)],
        vec![
            guid("00000000-0000-0000-0000-000000000000"),
            guid("00000000-0000-0000-0000-000000000100"),
            guid("00000000-0000-0000-0001-000000000000"),
            guid("00000001-0000-0000-0000-000000000000"),
            guid("01000000-0000-0000-0000-000000000000"),
            guid("ff000000-0000-0000-0000-000000000000"),
        ],
        vec![Value::Int32(i32::MIN), Value::Int32(-1), Value::Int32(0), Value::Int32(i32::MAX)],
        vec![Value::Int64(i64::MIN), Value::Int64(-1), Value::Int64(0), Value::Int64(i64::MAX)],
    ];
    for list in &lists {
        for (place, one) in list.iter().enumerate() {
            for (other_place, other) in list.iter().enumerate() {
                check(one, other, Some(place.cmp(&other_place)));
            }
        }
    }
}

#[test]
fn numbers_compare_by_number_whatever_their_types() {
    const TWO_53: i64 = 1 << 53;
    // Each list ascends, and what stands in one place is equal.
    let ascending: [&[Value]; 11] = [
        &[Value::Double(f64::NEG_INFINITY)],
        &[Value::Double(-1e300)],
        &[Value::Int64(i64::MIN), Value::Double(-9_223_372_036_854_775_808.0)],
        &[Value::Double(-1.5)],
        &[Value::Int32(-1), Value::Int64(-1), Value::Double(-1.0)],
        &[Value::Double(-0.5)],
        &[Value::Int32(0), Value::Int64(0), Value::Double(0.0), Value::Double(-0.0)],
        &[Value::Double(0.5)],
        &[Value::Int64(TWO_53), Value::Double(9_007_199_254_740_992.0)],
        &[Value::Int64(TWO_53 + 1)],
        &[Value::Int64(i64::MAX)],
    ];
    let beyond: [&[Value]; 2] = [&[Value::Double(9_223_372_036_854_775_808.0)], &[Value::Double(f64::INFINITY)]];
    let ascending = [&ascending[..], &beyond[..]].concat();
    for (place, ones) in ascending.iter().enumerate() {
        for (other_place, others) in ascending.iter().enumerate() {
            for (one, other) in ones.iter().flat_map(|one| others.iter().map(move |other| (one, other))) {
                check(one, other, Some(place.cmp(&other_place)));
            }
        }
    }
}

#[test]
fn nan_is_only_unequal() {
    let nan = Value::Double(f64::NAN);
    for other in [nan.clone(), Value::Double(1.0), Value::Int32(1), Value::Int64(1), Value::Double(f64::INFINITY)] {
        for (value, constant) in [(&nan, &other), (&other, &nan)] {
            for operator in OPERATORS {
                let found = matches(&own("x", operator, constant.clone()), ("", ""), &[("x", value.clone())]);
                assert_eq!(found, operator == NotEqual, "{value:?} {operator:?} {constant:?}");
            }
        }
    }
}

#[test]
fn values_of_other_types_do_not_compare() {
    let values = [
        Value::Binary(b"1".to_vec()),
        Value::Boolean(true),
        Value::DateTime(Timestamp::from_ticks(1)),
        Value::Guid(Uuid::from_u128(1)),
        Value::Int32(1),
        text("1"),
    ];
    for (place, one) in values.iter().enumerate() {
        for (other_place, other) in values.iter().enumerate() {
            if place != other_place {
                check(one, other, None);
                for number in [Value::Int64(1), Value::Double(1.0)] {
                    let is_number = |value: &Value| matches!(value, Value::Int32(_));
                    check(&number, one, is_number(one).then_some(Ordering::Equal));
                    check(one, &number, is_number(one).then_some(Ordering::Equal));
                }
            }
        }
    }
}

#[test]
fn a_property_that_is_absent_or_incomparable_matches_nothing_and_its_negation_everything() {
    for operator in OPERATORS {
        for expression in
            [own("y", operator, Value::Int32(1)), own("X", operator, Value::Int32(1)), own("x", operator, text("1"))]
        {
            let negated = Expression::Not(Box::new(expression.clone()));
            let properties = [("x", Value::Int32(1))];
            assert!(!matches(&expression, ("", ""), &properties), "{expression:?}");
            assert!(matches(&negated, ("", ""), &properties), "{expression:?}");
        }
    }
}

#[test]
fn keys_compare_as_text_and_the_timestamp_as_an_instant() {
    let cases = [
        (compare(Field::PartitionKey, Equal, text("p")), true),
        (compare(Field::PartitionKey, Equal, text("P")), false),
        (compare(Field::PartitionKey, NotEqual, text("p")), false),
        (compare(Field::PartitionKey, Greater, text("")), true),
        (compare(Field::PartitionKey, GreaterOrEqual, text("p")), true),
        (compare(Field::PartitionKey, Less, text("p ")), true),
        (compare(Field::PartitionKey, LessOrEqual, text("o\u{FFFF}")), false),
        (compare(Field::PartitionKey, Less, text("p\0")), true),
        (compare(Field::RowKey, Equal, text("\u{1F980}")), true),
        (compare(Field::RowKey, Less, text("\u{E000}")), true),
        (compare(Field::RowKey, Greater, text("\u{D7FF}")), true),
        (compare(Field::RowKey, NotEqual, Value::Int32(1)), false),
        (compare(Field::PartitionKey, LessOrEqual, Value::Boolean(true)), false),
        (compare(Field::Timestamp, Equal, Value::DateTime(Timestamp::from_ticks(1000))), true),
        (compare(Field::Timestamp, Greater, Value::DateTime(Timestamp::from_ticks(999))), true),
        (compare(Field::Timestamp, Less, Value::DateTime(Timestamp::from_ticks(1000))), false),
        (compare(Field::Timestamp, NotEqual, text("1000")), false),
        // Properties of their own, not the keys.
        (own("PartitionKey", Equal, text("p")), false),
        (own("RowKey", Equal, Value::Int32(5)), true),
        (own("Timestamp", NotEqual, Value::DateTime(Timestamp::from_ticks(1))), false),
    ];
    for (expression, expected) in cases {
        let found = matches(&expression, ("p", "\u{1F980}"), &[("RowKey", Value::Int32(5))]);
        assert_eq!(found, expected, "{expression:?}");
    }
}

#[test]
fn expressions_combine() {
    let (yes, no) = (Expression::Constant(true), Expression::Constant(false));
    let not = |inner: &Expression| Expression::Not(Box::new(inner.clone()));
    let all = |of: &[&Expression]| Expression::All(of.iter().map(|one| (*one).clone()).collect());
    let any = |of: &[&Expression]| Expression::Any(of.iter().map(|one| (*one).clone()).collect());
    let cases = [
        (yes.clone(), true),
        (no.clone(), false),
        (not(&yes), false),
        (not(&not(&yes)), true),
        (all(&[]), true),
        (any(&[]), false),
        (all(&[&yes, &yes]), true),
        (all(&[&yes, &no]), false),
        (all(&[&no, &yes]), false),
        (any(&[&no, &no]), false),
        (any(&[&no, &yes]), true),
        (any(&[&yes, &no]), true),
        (not(&all(&[&yes, &no])), true),
        (not(&any(&[&no, &yes])), false),
        (all(&[&any(&[&no, &yes]), &not(&no)]), true),
    ];
    for (expression, expected) in cases {
        assert_eq!(matches(&expression, ("", ""), &[]), expected, "{expression:?}");
    }
}

#[test]
fn a_table_has_its_name_and_nothing_else() {
    let table = TableName::parse("Photos").unwrap();
    let cases = [
        (own("TableName", Equal, text("Photos")), true),
        (own("TableName", Equal, text("photos")), false),
        (own("TableName", GreaterOrEqual, text("Ph")), true),
        (own("TableName", Less, text("Pi")), true),
        (own("TableName", NotEqual, Value::Int32(1)), false),
        (own("tablename", NotEqual, text("x")), false),
        (compare(Field::PartitionKey, NotEqual, text("x")), false),
        (compare(Field::RowKey, NotEqual, text("x")), false),
        (compare(Field::Timestamp, NotEqual, Value::DateTime(Timestamp::from_ticks(1))), false),
        (Expression::Not(Box::new(compare(Field::RowKey, Equal, text("x")))), true),
    ];
    for (expression, expected) in cases {
        assert_eq!(Matcher::new(&expression).matches(&table), Ok(expected), "{expression:?}");
    }
}

#[test]
fn what_cannot_be_read_is_found_only_where_it_is_looked_at() {
    let key = entity::key(7, &EntityKey { partition: KeyText::parse("p").unwrap(), row: KeyText::parse("r").unwrap() });
    let etag = Etag::at(Timestamp::from_ticks(1));
    let entity = StoredEntity::new(&key, etag, b"\x02\x01\0a\x01\x02\x01\0b\x07").unwrap();
    let matches = |expression: &Expression| Matcher::new(expression).matches(&entity);
    assert_eq!(matches(&own("a", Equal, Value::Boolean(true))), Ok(true));
    assert_eq!(matches(&own("b", Equal, Value::Boolean(true))), Err(Malformed("a boolean that is neither")));
    assert!(StoredEntity::new(b"", etag, b"").is_err());
    assert!(StoredEntity::new(&key[..10], etag, b"").is_err());
}

fn any_text() -> impl Strategy<Value = String> {
    "[ab\u{7f}\u{e9}\u{D7FF}\u{E000}\u{FFFD}\u{FFFF}\u{10000}\u{1F980}\u{10FFFF}]{0,4}"
}

fn any_value() -> impl Strategy<Value = Value> {
    let double =
        prop_oneof![any::<f64>(), Just(f64::NAN), Just(0.0), (-4_i32..4).prop_map(|halves| f64::from(halves) / 2.0),];
    prop_oneof![
        proptest::collection::vec(0_u8..3, 0..3).prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Boolean),
        (0_u64..4).prop_map(|ticks| Value::DateTime(Timestamp::from_ticks(ticks))),
        double.prop_map(Value::Double),
        (0_u128..4).prop_map(|guid| Value::Guid(Uuid::from_u128(guid))),
        prop_oneof![any::<i32>(), -2..3].prop_map(Value::Int32),
        prop_oneof![any::<i64>(), -2_i64..3].prop_map(Value::Int64),
        any_text().prop_map(Value::String),
    ]
}

proptest! {
    #[test]
    fn text_sorts_by_code_units_of_utf_16(one in any_text(), other in any_text()) {
        prop_assert_eq!(by_units(one.as_bytes(), other.as_bytes()), one.encode_utf16().cmp(other.encode_utf16()));
    }

    #[test]
    fn of_comparable_values_exactly_one_order_holds_and_ne_is_not_eq(value in any_value(), constant in any_value()) {
        let body = encode(&Properties(vec![("x".to_owned(), value)])).unwrap();
        let value = entity::body::find(&body, b"x").unwrap().unwrap();
        let [equal, unequal, greater, at_least, less, at_most] =
            OPERATORS.map(|operator| holds(value, operator, &constant));
        if equal || unequal {
            prop_assert_ne!(equal, unequal);
            prop_assert_eq!(at_least, greater || equal);
            prop_assert_eq!(at_most, less || equal);
            prop_assert!(!(less && greater) && !(equal && (less || greater)));
        } else {
            prop_assert!(!(greater || at_least || less || at_most));
        }
        prop_assert!(decode(b"", &body).is_ok());
    }
}
