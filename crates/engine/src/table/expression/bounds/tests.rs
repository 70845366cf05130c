use proptest::prelude::*;

use super::super::Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
use super::super::tests::{compare, matches, text};
use super::*;
use crate::names::KeyText;
use crate::rows::entity;
use crate::table::EntityKey;

fn pk(operator: Operator, constant: &str) -> Expression {
    compare(Field::PartitionKey, operator, text(constant))
}

fn rk(operator: Operator, constant: &str) -> Expression {
    compare(Field::RowKey, operator, text(constant))
}

fn other() -> Expression {
    compare(Field::Property("x".to_owned()), Equal, Value::Int32(1))
}

fn all<const N: usize>(of: [Expression; N]) -> Expression {
    Expression::All(of.into())
}

fn any<const N: usize>(of: [Expression; N]) -> Expression {
    Expression::Any(of.into())
}

fn not(inner: Expression) -> Expression {
    Expression::Not(Box::new(inner))
}

/// A stretch as a person writes it: `a|` is the field `a`, `a+` what comes right after everything that begins with it.
fn shown(stretch: &Stretch) -> String {
    let shown = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.replace("\0\u{1}", "|").replace("\0\u{2}", "+")
    };
    format!("{}..{}", shown(&stretch.start), stretch.end.as_deref().map_or_else(|| "end".to_owned(), shown))
}

#[test]
fn filters_read_no_more_than_this() {
    let cases: Vec<(Expression, &str)> = vec![
        // Nothing about keys.
        (Expression::Constant(true), "..end"),
        (Expression::Constant(false), ""),
        (other(), "..end"),
        (not(other()), "..end"),
        (all([]), "..end"),
        (any([]), ""),
        (compare(Field::Timestamp, Equal, text("a")), "..end"),
        // One comparison.
        (pk(Equal, "a"), "a|..a+"),
        (pk(NotEqual, "a"), "..a| a+..end"),
        (pk(Greater, "a"), "a+..end"),
        (pk(GreaterOrEqual, "a"), "a|..end"),
        (pk(Less, "a"), "..a|"),
        (pk(LessOrEqual, "a"), "..a+"),
        (pk(Equal, ""), "|..+"),
        (rk(Equal, "r"), "..end"),
        (compare(Field::PartitionKey, Equal, Value::Int32(1)), ""),
        (compare(Field::RowKey, NotEqual, Value::Int32(1)), ""),
        (not(compare(Field::RowKey, NotEqual, Value::Int32(1))), "..end"),
        // Points and rows of one partition.
        (all([pk(Equal, "a"), rk(Equal, "r")]), "a|r|..a|r+"),
        (all([rk(Equal, "r"), other(), pk(Equal, "a")]), "a|r|..a|r+"),
        (all([pk(Equal, "a"), rk(GreaterOrEqual, "r"), rk(Less, "s")]), "a|r|..a|s|"),
        (all([pk(Equal, "a"), rk(Greater, "r"), rk(LessOrEqual, "s")]), "a|r+..a|s+"),
        (all([pk(Equal, "a"), rk(Greater, "r")]), "a|r+..a+"),
        (all([pk(Equal, "a"), rk(Less, "s")]), "a|..a|s|"),
        (all([pk(Equal, "a"), rk(NotEqual, "r")]), "a|..a|r| a|r+..a+"),
        (all([pk(Equal, "a"), other()]), "a|..a+"),
        (all([pk(Equal, ""), rk(Equal, "")]), "||..|+"),
        // Partitions with rows: from the first row of the first to the last row of the last.
        (all([pk(GreaterOrEqual, "a"), pk(Less, "b")]), "a|..b|"),
        (all([pk(GreaterOrEqual, "a"), pk(LessOrEqual, "b"), rk(GreaterOrEqual, "r"), rk(Less, "s")]), "a|r|..b|s|"),
        (all([pk(Greater, "a"), pk(Less, "b"), rk(Equal, "r")]), "a+..b|"),
        (all([pk(GreaterOrEqual, "b"), rk(Equal, "r")]), "b|r|..end"),
        (all([pk(LessOrEqual, "b"), rk(Equal, "r")]), "..b|r+"),
        (all([pk(GreaterOrEqual, "a"), pk(LessOrEqual, "a")]), "a|..a+"),
        (all([pk(GreaterOrEqual, "a"), pk(LessOrEqual, "a"), rk(Equal, "r")]), "a|r|..a|r+"),
        // What contradicts itself.
        (all([pk(Equal, "a"), pk(Equal, "b")]), ""),
        (all([pk(Equal, "a"), rk(Less, "r"), rk(Greater, "s")]), ""),
        (all([pk(Less, "a"), pk(GreaterOrEqual, "a")]), ""),
        (all([pk(Equal, "a"), Expression::Constant(false)]), ""),
        // Either.
        (any([pk(Equal, "b"), pk(Equal, "a")]), "a|..a+ b|..b+"),
        (any([pk(Equal, "a"), pk(Equal, "a")]), "a|..a+"),
        (any([pk(Equal, "a"), other()]), "..end"),
        (any([pk(Less, "b"), pk(GreaterOrEqual, "a")]), "..end"),
        (any([pk(Less, "b"), pk(LessOrEqual, "c")]), "..c+"),
        (any([pk(Less, "a"), pk(Greater, "a")]), "..a| a+..end"),
        (any([all([pk(Equal, "b"), rk(Equal, "2")]), all([pk(Equal, "a"), rk(Equal, "1")])]), "a|1|..a|1+ b|2|..b|2+"),
        (all([any([pk(Equal, "a"), pk(Equal, "b")]), rk(Equal, "1")]), "a|1|..a|1+ b|1|..b|1+"),
        (all([pk(Equal, "a"), any([rk(Equal, "2"), rk(Equal, "1")])]), "a|1|..a|1+ a|2|..a|2+"),
        (all([pk(Equal, "a"), any([rk(Equal, "1"), all([rk(Greater, "1"), rk(Less, "3")])])]), "a|1|..a|3|"),
        (any([all([pk(Equal, "a"), other()]), pk(Equal, "b")]), "a|..a+ b|..b+"),
        // Not.
        (not(pk(Equal, "a")), "..a| a+..end"),
        (not(pk(NotEqual, "a")), "a|..a+"),
        (not(pk(Greater, "a")), "..a+"),
        (not(pk(GreaterOrEqual, "a")), "..a|"),
        (not(pk(Less, "a")), "a|..end"),
        (not(pk(LessOrEqual, "a")), "a+..end"),
        (not(not(pk(Equal, "a"))), "a|..a+"),
        (not(any([pk(Less, "a"), pk(Greater, "a")])), "a|..a+"),
        (not(all([pk(GreaterOrEqual, "a"), other()])), "..end"),
        (not(any([pk(NotEqual, "a"), rk(NotEqual, "r"), other()])), "a|r|..a|r+"),
    ];
    for (expression, expected) in cases {
        let found: Vec<String> = bounds(&expression).iter().map(shown).collect();
        assert_eq!(found.join(" "), expected, "{expression:?}");
    }
}

#[test]
fn only_a_stretch_of_one_key_is_a_point() {
    let cases = [
        (all([pk(Equal, "a"), rk(Equal, "r")]), true),
        (all([pk(Equal, ""), rk(Equal, "")]), true),
        (all([pk(Equal, "\0"), rk(Equal, "\0\u{1}")]), true),
        (pk(Equal, "a"), false),
        (all([pk(Equal, "a"), rk(GreaterOrEqual, "r")]), false),
        (all([pk(Equal, "a"), rk(GreaterOrEqual, "r"), rk(LessOrEqual, "s")]), false),
        (Expression::Constant(true), false),
    ];
    for (expression, expected) in cases {
        let [stretch] = &bounds(&expression)[..] else { panic!("{expression:?}") };
        assert_eq!(stretch.point().is_some(), expected, "{expression:?}");
        assert!(stretch.point().is_none_or(|point| point == stretch.start), "{expression:?}");
    }
}

#[test]
fn many_points_stay_points_and_too_many_areas_become_larger_ones() {
    let point = |number: usize| all([pk(Equal, "p"), rk(Equal, &format!("{number:04}"))]);
    let points = |count: usize| bounds(&Expression::Any((0..count).map(point).collect()));
    assert_eq!(points(AREAS_MAX).len(), AREAS_MAX);
    assert!(points(AREAS_MAX).iter().all(|stretch| stretch.point().is_some()));
    assert!((AREAS_MAX / 2..=AREAS_MAX).contains(&points(AREAS_MAX * 3).len()));
    // Two ways each, forty times over: not 2⁴⁰ areas.
    let either = |number: usize| any([pk(NotEqual, &format!("p{number}")), rk(NotEqual, &format!("r{number}"))]);
    for count in [40, 2000] {
        let found = bounds(&Expression::All((0..count).map(either).collect()));
        assert!((1..=AREAS_MAX * 2).contains(&found.len()), "{}", found.len());
    }
    // What is said first still counts when the rest is too much.
    let rest = (0..2000).map(either);
    let found = bounds(&Expression::All([pk(Equal, "p")].into_iter().chain(rest).collect()));
    assert!(found.iter().all(|stretch| stretch.start.starts_with(b"p\0") && stretch.end.is_some()), "{found:?}");
}

/// Few texts, so that constants and keys meet.
fn any_text() -> impl Strategy<Value = String> {
    "[ab\u{E000}\u{1F980}]{0,2}"
}

fn any_expression() -> impl Strategy<Value = Expression> {
    let operator = proptest::sample::select(vec![Equal, NotEqual, Greater, GreaterOrEqual, Less, LessOrEqual]);
    let field = prop_oneof![
        4 => Just(Field::PartitionKey),
        4 => Just(Field::RowKey),
        1 => Just(Field::Timestamp),
        2 => Just(Field::Property("x".to_owned())),
    ];
    let value = prop_oneof![8 => any_text().prop_map(Value::String), 1 => Just(Value::Int32(1))];
    let leaf = prop_oneof![
        1 => proptest::bool::ANY.prop_map(Expression::Constant),
        20 => (field, operator, value).prop_map(|(field, operator, value)| compare(field, operator, value)),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Expression::All),
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Expression::Any),
            inner.prop_map(not),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_matches_lies_within_the_bounds(
        expression in any_expression(), partition in any_text(), row in any_text(), own in proptest::option::of(any_text()),
    ) {
        let bounds = bounds(&expression);
        for pair in bounds.windows(2) {
            prop_assert!(pair[0].end.as_ref().is_some_and(|end| *end < pair[1].start), "{:?}", bounds);
        }
        prop_assert!(bounds.iter().all(|stretch| stretch.end.as_ref().is_none_or(|end| *end > stretch.start)));
        let key = EntityKey { partition: KeyText::parse(&partition).unwrap(), row: KeyText::parse(&row).unwrap() };
        let key = entity::key(7, &key);
        let own: Vec<_> = own.iter().map(|own| ("x", text(own))).collect();
        let inside = bounds.iter().any(|stretch| stretch.contains(&key[8..]));
        prop_assert!(inside || !matches(&expression, (&partition, &row), &own), "{:?}", bounds);
    }

    /// Within one partition nothing is read that does not match, where only keys decide.
    #[test]
    fn in_one_partition_the_bounds_are_exact(rows in any_rows(), row in any_text()) {
        let expression = all([pk(Equal, "p"), rows]);
        let key = EntityKey { partition: KeyText::parse("p").unwrap(), row: KeyText::parse(&row).unwrap() };
        let key = entity::key(7, &key);
        let inside = bounds(&expression).iter().any(|stretch| stretch.contains(&key[8..]));
        prop_assert_eq!(inside, matches(&expression, ("p", &row), &[]));
    }
}

/// Expressions of rows alone.
fn any_rows() -> impl Strategy<Value = Expression> {
    let operator = proptest::sample::select(vec![Equal, NotEqual, Greater, GreaterOrEqual, Less, LessOrEqual]);
    let leaf = (operator, any_text()).prop_map(|(operator, text)| rk(operator, &text));
    leaf.prop_recursive(4, 20, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Expression::All),
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Expression::Any),
            inner.prop_map(not),
        ]
    })
}
