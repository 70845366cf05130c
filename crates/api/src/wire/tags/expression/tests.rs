use lazuli_engine::tags::Tags;
use proptest::prelude::*;

use super::*;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    Tags::new(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()).unwrap()
}

#[test]
fn conditions_mean_what_they_say() {
    let tagged = tags(&[("a", "1"), ("b", "2"), ("two words", "x"), ("AND", "y")]);
    let cases = [
        ("a='1'", true),
        ("\"a\" = '1'", true),
        ("a = '2'", false),
        ("a <> '2'", true),
        ("c <> '2'", false),
        ("a>='1' AND b<'3'", true),
        ("a='2' OR b='2'", true),
        ("a='2' or b='3' or a='1'", true),
        ("a='2' AND a='1' OR b='2'", true),
        ("a='2' AND (a='1' OR b='2')", false),
        ("(( a='1' ))", true),
        ("\"two words\"='x'", true),
        ("\"AND\" = 'y' and a='1'", true),
        ("A='1'", false),
        ("a='1'AND b='2'", true),
        ("a > '0'\n\tAND\r\nb<='2'", true),
    ];
    for (text, expected) in cases {
        assert_eq!(condition(text).map(|condition| condition.holds(&tagged)), Ok(expected), "{text}");
    }
}

#[test]
fn quotes_are_doubled() {
    let term = Term { key: "a\"b".into(), comparison: Comparison::Equal, value: "it's".into() };
    assert_eq!(condition("\"a\"\"b\" = 'it''s'"), Ok(TagCondition::Term(term)));
}

#[test]
fn wrong_conditions_are_refused() {
    let many = ["a='1'"; TERMS_MAX + 1].join(" AND ");
    let deep = format!("{}a='1'{}", "(".repeat(DEPTH_MAX + 1), ")".repeat(DEPTH_MAX + 1));
    let wrong = [
        "",
        " ",
        "a",
        "a=",
        "a=1",
        "a='1",
        "='1'",
        "a='1' b='2'",
        "a='1' AND",
        "(a='1'",
        "a='1')",
        "a=='1'",
        "a!='1'",
        "\"a='1'",
        "@container='c' AND a='1'",
        "NOT a='1'",
        "a='1' ANDb='2'",
        "@='1'",
        "a b='1'",
        "é='1'",
        &many,
        &deep,
    ];
    for text in wrong {
        assert!(condition(text).is_err(), "{text}");
    }
    assert!(condition(&["a='1'"; TERMS_MAX].join(" AND ")).is_ok());
}

#[test]
fn a_search_names_values_or_ranges() {
    let container = ContainerName::parse("photos").unwrap();
    let found = search("@container='photos' AND a='1' AND b>'2' AND b<='3'").unwrap();
    assert_eq!(found.container, Some(container));
    let terms: Vec<_> = found.terms.iter().map(|term| (term.key.as_str(), term.comparison)).collect();
    assert_eq!(terms, [("a", Comparison::Equal), ("b", Comparison::Greater), ("b", Comparison::LessOrEqual)]);
    let wrong = [
        "a<>'1'",
        "a='1' OR b='1'",
        "@container='photos'",
        "@container>'photos' AND a='1'",
        "@container='photos' AND @container='photos' AND a='1'",
        "@container='No' AND a='1'",
        "a='1' AND a='2'",
        "a='1' AND a>'0'",
        "a>'1' AND a>='0'",
        "a<'1' AND a<='0'",
    ];
    for text in wrong {
        assert!(search(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[ a-c\"'()<>=@é]{0,40}|( AND | OR |a='1'|\\(|\\)|b>='2'){0,20}") {
        let _ = condition(&text);
        let _ = search(&text);
    }

    #[test]
    fn every_value_can_be_said(value in "[^\u{0}]{0,30}") {
        let text = format!("a = '{}'", value.replace('\'', "''"));
        let term = Term { key: "a".into(), comparison: Comparison::Equal, value };
        prop_assert_eq!(condition(&text), Ok(TagCondition::Term(term)));
    }
}
