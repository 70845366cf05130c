use super::NameError::{Characters, Length};
use super::*;

fn check<T>(parse: impl Fn(&str) -> Result<T, NameError>, cases: &[(&str, Result<(), NameError>)]) {
    for (text, expected) in cases {
        let shown: String = text.chars().take(40).collect();
        assert_eq!(parse(text).map(|_| ()), *expected, "{shown:?}, {} bytes", text.len());
    }
}

#[test]
fn account_names_hold_on_both_sides_of_every_limit() {
    let cases = [
        ("", Err(Length)),
        ("ab", Err(Length)),
        ("abc", Ok(())),
        ("012", Ok(())),
        (&"a".repeat(24), Ok(())),
        (&"a".repeat(25), Err(Length)),
        ("Abc", Err(Characters)),
        ("ab-c", Err(Characters)),
        ("ab_c", Err(Characters)),
        ("ab.c", Err(Characters)),
        ("ab c", Err(Characters)),
        ("abç", Err(Characters)),
        (&"ç".repeat(24), Err(Characters)),
        (&"ç".repeat(25), Err(Length)),
    ];
    check(AccountName::parse, &cases);
}

#[test]
fn container_names_hold_on_both_sides_of_every_limit() {
    let cases = [
        ("", Err(Length)),
        ("ab", Err(Length)),
        ("abc", Ok(())),
        ("123", Ok(())),
        ("a-b", Ok(())),
        ("a-b-c", Ok(())),
        ("a--b", Err(Characters)),
        ("-ab", Err(Characters)),
        ("ab-", Err(Characters)),
        ("---", Err(Characters)),
        (&"a".repeat(63), Ok(())),
        (&"a".repeat(64), Err(Length)),
        ("aBc", Err(Characters)),
        ("a_c", Err(Characters)),
        ("a.c", Err(Characters)),
        ("a/c", Err(Characters)),
        ("a c", Err(Characters)),
        ("aßc", Err(Characters)),
        (&"ß".repeat(63), Err(Characters)),
        ("$root", Ok(())),
        ("$web", Ok(())),
        ("$logs", Ok(())),
        ("$blobchangefeed", Ok(())),
        ("$Root", Err(Characters)),
        ("$other", Err(Characters)),
        ("root$", Err(Characters)),
        ("$", Err(Length)),
    ];
    check(ContainerName::parse, &cases);
}

#[test]
fn blob_names_hold_on_both_sides_of_every_limit() {
    let segments = |count: usize| vec!["x"; count].join("/");
    let cases = [
        ("", Err(Length)),
        ("a", Ok(())),
        ("/", Ok(())),
        ("//", Ok(())),
        (".", Ok(())),
        ("..", Ok(())),
        ("../a", Ok(())),
        ("a/", Ok(())),
        ("a.", Ok(())),
        ("a\\b", Ok(())),
        ("a\u{1}b\u{7f}", Ok(())),
        ("A a+%?#&\"<>", Ok(())),
        ("\u{10FFFF}", Ok(())),
        ("a\0", Err(Characters)),
        ("\0", Err(Characters)),
        (&"a".repeat(1024), Ok(())),
        (&"a".repeat(1025), Err(Length)),
        (&"\u{1F600}".repeat(1024), Ok(())),
        (&"\u{1F600}".repeat(1025), Err(Length)),
        (&segments(254), Ok(())),
        (&segments(255), Err(Length)),
        (&"/".repeat(253), Ok(())),
        (&"/".repeat(254), Err(Length)),
    ];
    check(BlobName::parse, &cases);
}

#[test]
fn names_that_differ_in_case_or_form_are_different_names() {
    let name = |text| BlobName::parse(text).unwrap();
    for (one, other) in [("a", "A"), ("\u{e9}", "e\u{301}"), ("a/", "a"), ("a//b", "a/b"), ("./a", "a")] {
        assert_ne!(name(one), name(other), "{one:?} {other:?}");
    }
}

#[test]
fn names_sort_by_their_bytes_and_show_as_they_were_written() {
    let mut names: Vec<_> =
        ["b", "a/b", "a", "a-b", "Z", "\u{e9}", "a b"].map(|text| BlobName::parse(text).unwrap()).into();
    names.sort();
    let texts: Vec<_> = names.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["Z", "a", "a b", "a-b", "a/b", "b", "\u{e9}"]);
    assert!(names.iter().zip(&texts).all(|(name, text)| name.as_str() == text));
}
