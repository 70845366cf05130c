//! Incremental Copy Blob over a real socket: what it makes, what it answers, and every way in which it is refused.

use lazuli_tests::harness::{Blob, Container, Lazuli};
use lazuli_tests::signed::Request;

const PAGE: usize = 512;

async fn photos() -> (Lazuli, Container) {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    (lazuli, container)
}

/// The address of a snapshot of a blob of this server.
fn url(lazuli: &Lazuli, blob: &Blob, snapshot: &str) -> String {
    format!("http://{}{}?snapshot={snapshot}", lazuli.client().address(), blob.name())
}

async fn snapshot(blob: &Blob) -> String {
    blob.request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned()
}

fn copy(target: &Blob, source: impl Into<String>) -> Request {
    target.request("PUT", "?comp=incrementalcopy").header("x-ms-copy-source", source)
}

async fn read(blob: &Blob, snapshot: &str) -> Vec<u8> {
    blob.request("GET", &format!("?snapshot={snapshot}")).await.expect(200).body.to_vec()
}

/// A page blob of four pages, the first of them written, and its snapshot.
async fn source(container: &Container, name: &str) -> (Blob, String) {
    let source = container.blob(name);
    source.create_pages(4 * PAGE as u64).header("x-ms-meta-owner", "ann").await.expect(201);
    source.put_pages(0, vec![1; PAGE]).await.expect(201);
    let first = snapshot(&source).await;
    (source, first)
}

#[tokio::test]
async fn each_copy_makes_a_snapshot_of_what_its_source_was() {
    let (lazuli, container) = photos().await;
    let (source, first) = source(&container, "source").await;
    let target = container.blob("target");
    let copied = copy(&target, url(&lazuli, &source, &first)).await.expect(202);
    assert_eq!(copied.header("x-ms-copy-status"), "success");
    assert!(!copied.etag().is_empty() && !copied.header("last-modified").is_empty());
    let head = target.head().await.expect(200);
    let expected = [
        ("x-ms-incremental-copy", "true"),
        ("x-ms-blob-type", "PageBlob"),
        ("x-ms-copy-status", "success"),
        ("x-ms-copy-progress", "2048/2048"),
        ("x-ms-meta-owner", "ann"),
        ("content-length", "2048"),
    ];
    for (name, value) in expected {
        assert_eq!(head.header(name), value, "{name}");
    }
    assert_eq!(head.header("x-ms-copy-id"), copied.header("x-ms-copy-id"));
    assert_eq!(head.etag(), copied.etag());
    let made = [head.header("x-ms-copy-destination-snapshot").to_owned()];
    assert_eq!(read(&target, &made[0]).await, read(&source, &first).await);

    source.put_pages(PAGE as u64, vec![2; 2 * PAGE]).await.expect(201);
    source.clear_pages(0, PAGE as u64).await.expect(201);
    source.resize(8 * PAGE as u64).await.expect(200);
    let second = snapshot(&source).await;
    source.put_pages(0, vec![9; 8 * PAGE]).await.expect(201);
    copy(&target, url(&lazuli, &source, &second)).header("if-match", copied.etag()).await.expect(202);
    let head = target.head().await.expect(200);
    let made = [&made[0], head.header("x-ms-copy-destination-snapshot")];
    assert_ne!(made[0], made[1]);
    assert_eq!(head.header("content-length"), "4096");
    for (snapshot, of) in made.iter().zip([&first, &second]) {
        assert_eq!(read(&target, snapshot).await, read(&source, of).await, "{snapshot}");
    }
    let diff = async |blob: &Blob, from: &str, to: &str| {
        blob.page_list(&format!("&snapshot={to}&prevsnapshot={from}")).await.expect(200).text()
    };
    assert_eq!(diff(&target, made[0], made[1]).await, diff(&source, &first, &second).await);

    let listed = container.list("&include=snapshots").await.expect(200).text();
    assert_eq!(listed.matches("<IncrementalCopy>true</IncrementalCopy>").count(), 3, "{listed}");
    let last = format!("<CopyDestinationSnapshot>{}</CopyDestinationSnapshot>", made[1]);
    assert_eq!(listed.matches(&last).count(), 2, "the blob and its last snapshot");

    target.delete().header("x-ms-delete-snapshots", "include").await.expect(202);
    copy(&target, url(&lazuli, &source, &first)).await.expect(202);
}

#[tokio::test]
async fn the_snapshots_are_as_any_and_the_blob_itself_is_closed() {
    const CLOSED: &str = "OperationNotAllowedOnIncrementalCopyBlob";
    let (lazuli, container) = photos().await;
    let (source, first) = source(&container, "source").await;
    let target = container.blob("target");
    copy(&target, url(&lazuli, &source, &first)).await.expect(202);
    let made = target.head().await.header("x-ms-copy-destination-snapshot").to_owned();
    let plain = format!("http://{}{}", lazuli.client().address(), source.name());
    let own = format!("http://{}{}", lazuli.client().address(), target.name());
    let put = |query| target.request("PUT", query);
    let closed = [
        target.get(),
        target.request("GET", "?comp=metadata"),
        target.page_list(""),
        target.page_list(&format!("&prevsnapshot={made}")),
        target.create_pages(1024),
        target.put_pages(0, vec![1; PAGE]),
        target.clear_pages(0, PAGE as u64),
        target.resize(1024),
        target.set_metadata("a", "b"),
        target.acquire_lease(15),
        put("?comp=properties").header("x-ms-blob-content-type", "a/b"),
        put("?comp=snapshot"),
        put("?comp=tags").body("<Tags><TagSet/></Tags>"),
        put("?comp=tier").header("x-ms-access-tier", "P10"),
        put("?comp=legalhold").header("x-ms-legal-hold", "true"),
        put("").header("x-ms-copy-source", &plain),
        container.blob("other").request("PUT", "").header("x-ms-copy-source", &own),
    ];
    for request in closed {
        request.await.refused(409, CLOSED);
    }
    container.blob("other").head().await.expect(404);
    let of_snapshot = url(&lazuli, &target, &made);
    container.blob("other").request("PUT", "").header("x-ms-copy-source", &of_snapshot).await.expect(202);
    copy(&container.blob("chained"), &of_snapshot).await.expect(202);
    assert_eq!(container.blob("other").head().await.header("x-ms-incremental-copy"), "");
    let part = target.request("GET", &format!("?snapshot={made}")).header("range", "bytes=510-513");
    assert_eq!(part.await.expect(206).body, [1, 1, 0, 0][..]);
    target.request("DELETE", &format!("?snapshot={made}")).await.expect(202);
    target.delete().await.expect(202);
    target.head().await.expect(404);
}

#[tokio::test]
async fn every_source_and_target_that_does_not_fit_is_refused() {
    let (lazuli, container) = photos().await;
    let (source, first) = source(&container, "source").await;
    let (other, of_other) = self::source(&container, "other").await;
    let second = snapshot(&source).await;
    let block = container.blob("block");
    block.put("one").await.expect(201);
    let of_block = snapshot(&block).await;
    let target = container.blob("target");

    let base = format!("http://{}{}", lazuli.client().address(), source.name());
    copy(&target, &base).await.refused(409, "IncrementalCopySourceMustBeSnapshot");
    target.request("PUT", "?comp=incrementalcopy").await.refused(400, "MissingRequiredHeader");
    copy(&target, url(&lazuli, &block, &of_block)).await.refused(409, "InvalidSourceBlobType");
    let absent = copy(&target, url(&lazuli, &source, "2020-01-01T00:00:00.0000000Z"));
    let absent = absent.await.refused(404, "CannotVerifyCopySource");
    assert_eq!(absent.header("x-ms-copy-source-error-code"), "BlobNotFound");
    let nowhere = lazuli.existing("absent").blob("target");
    copy(&nowhere, url(&lazuli, &source, &first)).await.refused(404, "ContainerNotFound");
    copy(&block, url(&lazuli, &source, &first)).await.refused(409, "InvalidBlobType");
    copy(&other, url(&lazuli, &source, &first)).await.refused(409, "IncrementalCopyBlobMismatch");
    let held = copy(&target, url(&lazuli, &source, &first)).header("if-match", "*");
    held.await.refused(412, "TargetConditionNotMet");

    copy(&target, url(&lazuli, &source, &second)).await.expect(202);
    for earlier in [&first, &second] {
        let again = copy(&target, url(&lazuli, &source, earlier)).await;
        again.refused(409, "IncrementalCopyOfEarlierVersionSnapshotNotAllowed");
    }
    copy(&target, url(&lazuli, &other, &of_other)).await.refused(409, "IncrementalCopyBlobMismatch");
    let third = snapshot(&source).await;
    let next = || copy(&target, url(&lazuli, &source, &third));
    let fails = [
        ("if-match", "\"0x8D0000000000000\"", 412, "TargetConditionNotMet"),
        ("if-none-match", "*", 409, "BlobAlreadyExists"),
        ("if-modified-since", "Sat, 01 Aug 2099 00:00:00 GMT", 412, "TargetConditionNotMet"),
        ("if-unmodified-since", "Sat, 01 Aug 2020 00:00:00 GMT", 412, "TargetConditionNotMet"),
        ("x-ms-if-tags", "\"a\" = 'b'", 412, "TargetConditionNotMet"),
        ("x-ms-lease-id", "00000000-0000-0000-0000-00000000000b", 412, "LeaseNotPresentWithBlobOperation"),
    ];
    for (name, value, status, code) in fails {
        next().header(name, value).await.refused(status, code);
    }
    next().await.expect(202);
}

#[tokio::test]
async fn the_source_of_another_account_must_be_public() {
    let (lazuli, container) = photos().await;
    for (name, access, status) in [("closed", "", 401), ("open", "blob", 202)] {
        let theirs = lazuli.of_other().existing(name);
        let create = theirs.create();
        let create = if access.is_empty() { create } else { create.header("x-ms-blob-public-access", access) };
        create.await.expect(201);
        let (source, first) = source(&theirs, "source").await;
        let copied = copy(&container.blob("target"), url(&lazuli, &source, &first)).await;
        assert_eq!(copied.status.as_u16(), status, "{name} {}", copied.text());
    }
}
