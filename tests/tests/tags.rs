//! Tags: kept, judged by and found.

use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::{Blob, Container, Lazuli, Service};
use lazuli_tests::signed::{Request, encode};

fn document(pairs: &[(&str, &str)]) -> String {
    let tags: String =
        pairs.iter().map(|(key, value)| format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>")).collect();
    format!("<Tags><TagSet>{tags}</TagSet></Tags>")
}

fn set(blob: &Blob, pairs: &[(&str, &str)]) -> Request {
    blob.request("PUT", "?comp=tags").body(document(pairs))
}

fn tagged(blob: &Blob, tags: &str) -> Request {
    blob.put("text").header("x-ms-tags", tags)
}

fn find_all(service: &Service, query: &str) -> Request {
    service.client().request("GET", format!("/{ACCOUNT}?comp=blobs{query}"))
}

fn find_in(container: &Container, expression: &str) -> Request {
    container.request("GET", &format!("&comp=blobs&where={}", encode(expression).replace('/', "%2F")))
}

/// Container and name of all that a search answers.
fn names(xml: &str) -> Vec<String> {
    let element = |blob: &str, name: &str| {
        let rest = blob.split_once(&format!("<{name}>")).map(|(_, rest)| rest).unwrap_or_default();
        rest.split_once('<').map(|(text, _)| text.to_owned()).unwrap_or_default()
    };
    xml.split("<Blob>")
        .skip(1)
        .map(|blob| format!("{}/{}", element(blob, "ContainerName"), element(blob, "Name")))
        .collect()
}

#[tokio::test]
async fn tags_come_back_are_counted_and_do_not_change_the_version() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let etag = tagged(&blob, "b=2&a=x%20y").await.expect(201).etag();
    let head = blob.head().await.expect(200);
    assert_eq!(head.header("x-ms-tag-count"), "2");
    let read = || blob.request("GET", "?comp=tags");
    assert!(read().await.expect(200).text().ends_with(&document(&[("a", "x y"), ("b", "2")])));

    set(&blob, &[("c", "3")]).await.expect(204);
    assert!(read().await.expect(200).text().contains(&document(&[("c", "3")])));
    let head = blob.head().await.expect(200);
    assert_eq!((head.etag(), head.header("x-ms-tag-count")), (etag, "1"));
    let listing = container.list("&include=tags").await.expect(200).text();
    assert!(listing.contains("<TagCount>1</TagCount>") && listing.contains(&document(&[("c", "3")])), "{listing}");
    assert!(!container.list("").await.expect(200).text().contains("<Tags>"));

    // Overwriting without tags drops them; so does setting none.
    blob.put("other").await.expect(201);
    assert!(read().await.expect(200).text().contains("<TagSet />"));
    set(&blob, &[("c", "3")]).await.expect(204);
    set(&blob, &[]).await.expect(204);
    assert_eq!(blob.head().await.expect(200).header("x-ms-tag-count"), "");
    container.blob("b").put_block("AA", "text").await.expect(201);
    container.blob("b").put_block_list(&["AA"]).header("x-ms-tags", "k=v").await.expect(201);
    assert_eq!(container.blob("b").head().await.expect(200).header("x-ms-tag-count"), "1");
}

#[tokio::test]
async fn writes_and_reads_are_judged_by_tags() {
    const IF_TAGS: &str = "x-ms-if-tags";
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a");
    blob.put("new").header(IF_TAGS, "state = 'open'").await.refused(412, "ConditionNotMet");
    tagged(&blob, "state=open").await.expect(201);
    blob.get().header(IF_TAGS, "state = 'open'").await.expect(200);
    blob.get().header(IF_TAGS, "state = 'shut'").await.refused(412, "ConditionNotMet");
    blob.delete().header(IF_TAGS, "state <> 'open'").await.refused(412, "ConditionNotMet");
    blob.set_metadata("a", "b").header(IF_TAGS, "missing <> 'x'").await.refused(412, "ConditionNotMet");
    blob.block_list().header(IF_TAGS, "state = 'shut'").await.refused(412, "ConditionNotMet");
    blob.get().header(IF_TAGS, "state = ").await.refused(400, "InvalidHeaderValue");
    set(&blob, &[("state", "shut")]).header(IF_TAGS, "state = 'open'").await.expect(204);
    set(&blob, &[("state", "shut")]).header(IF_TAGS, "state = 'open'").await.refused(412, "ConditionNotMet");
    set(&blob, &[]).header("x-ms-blob-if-match", "\"0x1\"").await.refused(412, "ConditionNotMet");
    set(&blob, &[]).header("if-match", "*").await.refused(400, "ConditionHeadersNotSupported");
    tagged(&blob, "state=open").header(IF_TAGS, "state='shut' AND (a='1' OR state>'a')").await.expect(201);
}

#[tokio::test]
async fn a_leased_blob_keeps_its_tags_from_strangers() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a");
    blob.put("text").await.expect(201);
    let lease = blob.acquire_lease(-1).await.expect(201).header("x-ms-lease-id").to_owned();
    set(&blob, &[("a", "b")]).await.refused(412, "LeaseIdMissing");
    set(&blob, &[("a", "b")]).header("x-ms-lease-id", &lease).await.expect(204);
    blob.request("GET", "?comp=tags").await.expect(200);
}

#[tokio::test]
async fn wrong_tags_are_refused() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    set(&blob, &[("a", "b")]).await.refused(404, "BlobNotFound");
    blob.request("GET", "?comp=tags").await.refused(404, "BlobNotFound");
    blob.put("text").await.expect(201);
    for tags in ["a=1&a=2", "a=%C3%A9", "=1", "a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1&j=1&k=1"] {
        tagged(&blob, tags).await.refused(400, "InvalidTag");
    }
    tagged(&blob, "a").await.refused(400, "InvalidHeaderValue");
    set(&blob, &[("", "v")]).await.refused(400, "InvalidTag");
    blob.request("PUT", "?comp=tags").body("<Tags><Tag/></Tags>").await.refused(400, "InvalidXmlDocument");
    for expression in ["a", "a='1' OR b='1'", "a<>'1'", "@container='photos'", "a='1' AND a='2'"] {
        find_in(&container, expression).await.refused(400, "InvalidQueryParameterValue");
    }
    find_in(&container, "@container='other' AND a='1'").await.refused(400, "InvalidQueryParameterValue");
    find_all(&lazuli, "").await.refused(400, "MissingRequiredQueryParameter");
    find_all(&lazuli, "&where=a%3D'1'&include=all").await.refused(400, "InvalidQueryParameterValue");
    find_all(&lazuli, "&where=a%3D'1'&maxresults=0").await.refused(400, "OutOfRangeQueryParameterValue");
    find_in(&lazuli.existing("elsewhere"), "a='1'").await.refused(404, "ContainerNotFound");
}

#[tokio::test]
async fn blobs_are_found_by_their_tags_until_those_are_gone() {
    let lazuli = Lazuli::start().await;
    let (photos, films) = (lazuli.container("photos").await, lazuli.container("films").await);
    for (container, name, tags) in [
        (&photos, "1", "kind=cat&year=2020"),
        (&photos, "2", "kind=cat&year=2024"),
        (&photos, "3", "kind=dog&year=2024"),
        (&films, "4", "kind=cat&year=2026"),
    ] {
        tagged(&container.blob(name), tags).await.expect(201);
    }
    let everywhere = |expression: &str| find_all(&lazuli, &format!("&where={}", encode(expression)));
    let answer = everywhere("kind='cat' AND year>='2024'").await.expect(200).text();
    assert_eq!(names(&answer), ["photos/2", "films/4"]);
    assert!(answer.contains("<Tag><Key>kind</Key><Value>cat</Value></Tag><Tag><Key>year</Key>"), "{answer}");
    assert_eq!(names(&find_in(&photos, "kind='cat'").await.expect(200).text()), ["photos/1", "photos/2"]);
    let range = find_in(&photos, "year>'2020' AND year<='2024'").await.expect(200).text();
    assert_eq!(names(&range), ["photos/2", "photos/3"]);
    let named = everywhere("@container='films' AND kind='cat'").await.expect(200).text();
    assert_eq!(names(&named), ["films/4"]);

    // A page at a time.
    let first = find_all(&lazuli, "&where=kind%3D'cat'&maxresults=2").await.expect(200).text();
    assert_eq!(names(&first), ["photos/1", "photos/2"]);
    let marker = first.split_once("<NextMarker>").and_then(|(_, rest)| rest.split_once('<')).map(|(marker, _)| marker);
    let second = format!("&where=kind%3D'cat'&maxresults=2&marker={}", marker.unwrap_or_default());
    let second = find_all(&lazuli, &second).await.expect(200).text();
    assert_eq!(names(&second), ["films/4"]);
    assert!(second.contains("<NextMarker />"), "{second}");

    photos.blob("1").delete().await.expect(202);
    photos.blob("2").put("untagged").await.expect(201);
    films.delete().await.expect(202);
    assert_eq!(names(&everywhere("kind='cat'").await.expect(200).text()), [""; 0]);
    // The name comes back with nothing of what was found in it before.
    films.create().await.expect(201);
    assert_eq!(names(&everywhere("kind='cat'").await.expect(200).text()), [""; 0]);
}
