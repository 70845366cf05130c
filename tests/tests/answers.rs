//! What answers say beside their bodies, and what the largest requests are told.

use lazuli_tests::harness::{Blob, Lazuli};

#[tokio::test]
async fn an_answer_that_nothing_changed_names_the_version_that_the_client_has() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    let written = blob.put("one").await.expect(201);
    for request in [blob.get(), blob.head()] {
        let same = request.header("if-none-match", written.etag()).await.expect(304);
        assert_eq!((same.code(), same.etag()), ("ConditionNotMet", written.etag()));
        assert_eq!(same.header("last-modified"), written.header("last-modified"));
    }
}

#[tokio::test]
async fn the_largest_properties_beside_the_largest_metadata_are_kept_and_larger_ones_refused() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    let (full, larger) = ("v".repeat(4 * 1024), "v".repeat(4 * 1024 + 1));
    let largest = |bytes: &str| {
        let mut put = blob.put("one").header("x-ms-blob-content-disposition", bytes);
        for pair in 0..64 {
            put = put.header(&format!("x-ms-meta-{pair:_>64}"), "v".repeat(64));
        }
        put
    };
    largest(&full).await.expect(201);
    largest(&larger).await.refused(400, "InvalidHeaderValue");
    let set = blob.request("PUT", "?comp=properties").header("x-ms-blob-cache-control", "v".repeat(17_000));
    set.await.refused(400, "InvalidHeaderValue");
    blob.put_block("AAAA", "two").await.expect(201);
    let list = blob.put_block_list(&["AAAA"]).header("x-ms-blob-content-type", &larger);
    list.await.refused(400, "InvalidHeaderValue");
    assert_eq!(blob.head().await.expect(200).header("content-disposition"), full);
}

#[tokio::test]
async fn who_sets_no_property_clears_all() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a.jpg");
    let properties = |blob: &Blob, headers: &[&str]| {
        let set = blob.request("PUT", "?comp=properties");
        headers.iter().fold(set, |set, name| set.header(&format!("x-ms-blob-{name}"), "x"))
    };
    let seen = async || {
        let head = blob.head().await.expect(200);
        ["content-type", "content-language", "cache-control"].map(|name| head.header(name).to_owned())
    };
    blob.put("one").await.expect(201);
    assert_eq!(seen().await, ["application/octet-stream", "", ""]);
    properties(&blob, &["content-type", "content-language"]).await.expect(200);
    assert_eq!(seen().await, ["x", "x", ""]);
    properties(&blob, &["cache-control"]).await.expect(200);
    assert_eq!(seen().await, ["", "", "x"]);
    properties(&blob, &[]).await.expect(200);
    assert_eq!(seen().await, [""; 3]);
    let listed = container.list("").await.expect(200).text();
    assert!(listed.contains("<Content-Type />"), "{listed}");
}

#[tokio::test]
async fn deleting_the_snapshots_of_a_blob_that_has_none_leaves_the_blob() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    let only = || blob.delete().header("x-ms-delete-snapshots", "only");
    only().await.refused(404, "BlobNotFound");
    blob.put("one").await.expect(201);
    only().header("if-match", "\"0x1\"").await.refused(412, "ConditionNotMet");
    only().await.expect(202);
    assert_eq!(blob.get().await.expect(200).text(), "one");
}
