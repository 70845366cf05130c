//! Names in listings, whatever they are made of, and where listings begin and end.

use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::{Container, Lazuli};
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::Answer;

/// Names and prefixes as they stand in a listing.
fn names(answer: &Answer) -> Vec<String> {
    let text = answer.text();
    let elements = text.split("<Name").skip(1).filter_map(|rest| rest.split_once("</Name>"));
    elements.map(|(name, _)| name.trim_start_matches('>').to_owned()).collect()
}

async fn filled(lazuli: &Lazuli, names: &[&str]) -> Container {
    let container = lazuli.container("photos").await;
    for name in names {
        container.blob(name).put("1").await.expect(201);
    }
    container
}

#[tokio::test]
async fn names_that_xml_cannot_carry_are_listed_escaped_and_found_again() {
    let lazuli = Lazuli::start().await;
    let container = filled(&lazuli, &["a\u{1}b/c d", "a\u{ffff}", "a%41ü"]).await;
    let flat = container.list("").await.expect(200);
    assert_eq!(names(&flat), [" Encoded=\"true\">a%01b/c%20d", "a%41ü", " Encoded=\"true\">a%EF%BF%BF"]);
    assert_eq!(container.blob("a\u{1}b/c d").get().await.expect(200).text(), "1");

    let tree = container.list("&prefix=a%01&delimiter=%2F&maxresults=1").await.expect(200);
    assert_eq!(names(&tree), [" Encoded=\"true\">a%01b/"]);
    assert!(tree.text().contains("<Prefix Encoded=\"true\">a%01</Prefix>"), "{}", tree.text());
    let other = container.list("&delimiter=%01").await.expect(200);
    assert_eq!(names(&other), [" Encoded=\"true\">a%01", "a%41ü", " Encoded=\"true\">a%EF%BF%BF"]);
    assert!(other.text().contains("<Delimiter Encoded=\"true\">%01</Delimiter>"), "{}", other.text());

    let first = container.list("&maxresults=2").await.expect(200).text();
    let marker = first.split_once("<NextMarker>").and_then(|(_, rest)| rest.split_once('<')).unwrap().0.to_owned();
    let second = container.list(&format!("&marker={marker}")).await.expect(200);
    assert_eq!(names(&second), [" Encoded=\"true\">a%EF%BF%BF"]);
    assert!(second.text().contains(&format!("<Marker>{marker}</Marker>")), "{}", second.text());
}

#[tokio::test]
async fn a_listing_begins_and_ends_where_it_is_asked_to() {
    let lazuli = Lazuli::start().await;
    let container = filled(&lazuli, &["a", "b/1", "b/2", "c"]).await;
    let cases = [
        ("&startFrom=b%2F2", &["b/2", "c"][..]),
        ("&startfrom=b&endBefore=b%2F2", &["b/1"]),
        ("&startFrom=b&delimiter=%2F", &["b/", "c"]),
        ("&startFrom=c&endBefore=c", &[]),
        ("&prefix=b%2F&startFrom=a", &["b/1", "b/2"]),
    ];
    for (query, expected) in cases {
        assert_eq!(names(&container.list(query).await.expect(200)), expected, "{query}");
    }
    container.list("&showonly=files").await.refused(400, "InvalidQueryParameterValue");
}

#[tokio::test]
async fn a_plus_is_a_blank_in_a_query_and_itself_in_a_path() {
    let lazuli = Lazuli::start().await;
    let container = filled(&lazuli, &["a b", "a+b"]).await;
    assert_eq!(names(&container.list("&prefix=a%20b").await.expect(200)), ["a b"]);
    assert_eq!(names(&container.list("&prefix=a%2Bb").await.expect(200)), ["a+b"]);
    let read = Sas::container("photos", "rl").query();
    let get = |path: &str| lazuli.client().request("GET", format!("/{ACCOUNT}/photos{path}")).with_sas(&read);
    assert_eq!(names(&get("?restype=container&comp=list&prefix=a+b").await.expect(200)), ["a b"]);
    get("/a+b").await.expect(200);
}

#[tokio::test]
async fn a_listing_is_xml_also_for_who_would_take_another_form() {
    let lazuli = Lazuli::start().await;
    let container = filled(&lazuli, &["a"]).await;
    let both = "application/vnd.apache.arrow.stream, application/xml";
    let answer = container.list("").header("accept", both).header("x-ms-version", "2026-10-06").await.expect(200);
    assert_eq!(answer.header("content-type"), "application/xml");
    assert_eq!(names(&answer), ["a"]);
    let endpoint = format!("ServiceEndpoint=\"http://{}/{ACCOUNT}/\"", lazuli.client().address());
    assert!(answer.text().contains(&endpoint), "{}", answer.text());
}
