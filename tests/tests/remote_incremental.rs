//! Incremental copies from one server to another: what comes, what is refused, and what is left of those that fail.

use std::sync::Arc;
use std::time::Duration;

use lazuli_tests::client::ACCOUNT;
use lazuli_tests::disk::payload_becomes;
use lazuli_tests::elsewhere::{Scripted, Silent, answer, narrow, pair, settled, url};
use lazuli_tests::harness::{Blob, Container};
use lazuli_tests::process::{Start, within};
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::{Answer, Request};

const PAGE: usize = 512;
const MIB: usize = 1024 * 1024;
const FIRST: &str = "2026-08-01T00:00:00.0000000Z";
const SECOND: &str = "2026-08-02T00:00:00.0000000Z";

async fn snapshot(blob: &Blob) -> String {
    blob.request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned()
}

fn copy(target: &Blob, source: impl Into<String>) -> Request {
    target.request("PUT", "?comp=incrementalcopy").header("x-ms-copy-source", source)
}

/// The target's properties once the copy from there is complete.
async fn copied(target: &Blob, source: impl Into<String>) -> Answer {
    let begun = copy(target, source).await.expect(202);
    assert_eq!(begun.header("x-ms-copy-status"), "pending");
    let head = settled(target).await;
    assert_eq!(head.header("x-ms-copy-status"), "success", "{}", head.header("x-ms-copy-status-description"));
    assert_eq!(head.header("x-ms-copy-id"), begun.header("x-ms-copy-id"));
    head
}

fn made(head: &Answer) -> String {
    head.header("x-ms-copy-destination-snapshot").to_owned()
}

async fn read(blob: &Blob, snapshot: &str) -> Vec<u8> {
    blob.request("GET", &format!("?snapshot={snapshot}")).await.expect(200).body.to_vec()
}

async fn pages(blob: &Blob, snapshot: &str, previous: &str) -> String {
    let previous = if previous.is_empty() { String::new() } else { format!("&prevsnapshot={previous}") };
    blob.page_list(&format!("&snapshot={snapshot}{previous}")).await.expect(200).text()
}

/// A page blob of eight pages, the second and third of them written.
async fn source(container: &Container) -> Blob {
    let source = container.blob("source");
    source.create_pages(8 * PAGE as u64).header("x-ms-meta-owner", "ann").await.expect(201);
    source.put_pages(PAGE as u64, vec![1; 2 * PAGE]).await.expect(201);
    source
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_differs_comes() {
    let ((_here, mine), (there, theirs)) = pair().await;
    let (source, target) = (source(&theirs).await, mine.blob("target"));
    let first = snapshot(&source).await;
    let head = copied(&target, format!("{}?snapshot={first}", url(&there, &source))).await;
    let expected = [
        ("x-ms-incremental-copy", "true"),
        ("x-ms-blob-type", "PageBlob"),
        ("x-ms-copy-progress", "4096/4096"),
        ("x-ms-meta-owner", "ann"),
        ("content-length", "4096"),
    ];
    for (name, value) in expected {
        assert_eq!(head.header(name), value, "{name}");
    }
    let made_first = made(&head);
    assert_eq!(read(&target, &made_first).await, read(&source, &first).await);
    target.get().await.refused(409, "OperationNotAllowedOnIncrementalCopyBlob");

    source.clear_pages(PAGE as u64, PAGE as u64).await.expect(201);
    source.put_pages(5 * PAGE as u64, vec![2; PAGE]).await.expect(201);
    source.resize(16 * PAGE as u64).await.expect(200);
    source.put_pages(14 * PAGE as u64, vec![3; 2 * PAGE]).await.expect(201);
    let second = snapshot(&source).await;
    source.put_pages(0, vec![9; 16 * PAGE]).await.expect(201);
    // The same blob, spelt and signed in another way.
    let signed = Sas::blob("photos", "source", "r").query();
    let spelt = url(&there, &source).replace("source", "%73ource");
    let head = copied(&target, format!("{spelt}?{signed}&snapshot={second}")).await;
    assert_eq!(head.header("x-ms-copy-source"), format!("{spelt}?snapshot={second}"));
    let made_second = made(&head);
    for (made, of) in [(&made_first, &first), (&made_second, &second)] {
        assert_eq!(read(&target, made).await, read(&source, of).await);
        assert_eq!(pages(&target, made, "").await, pages(&source, of, "").await);
    }
    // What did not differ is still the same: it was not read again.
    assert_eq!(pages(&target, &made_second, &made_first).await, pages(&source, &second, &first).await);

    // Cleared to the end, and then nothing at all.
    source.clear_pages(0, 16 * PAGE as u64).await.expect(201);
    for _ in 0..2 {
        let next = snapshot(&source).await;
        let head = copied(&target, format!("{}?snapshot={next}", url(&there, &source))).await;
        assert_eq!(read(&target, &made(&head)).await, vec![0; 16 * PAGE]);
        assert_eq!(pages(&target, &made(&head), "").await, pages(&source, &next, "").await);
    }
    let listed = mine.list("&include=snapshots").await.expect(200).text();
    assert_eq!(listed.matches("<Snapshot>").count(), 4, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_lacks_the_earlier_snapshot_or_shrank_is_read_whole() {
    let ((_here, mine), (there, theirs)) = pair().await;
    let (source, target) = (source(&theirs).await, mine.blob("target"));
    let first = snapshot(&source).await;
    copied(&target, format!("{}?snapshot={first}", url(&there, &source))).await;
    source.put_pages(4 * PAGE as u64, vec![2; PAGE]).await.expect(201);
    source.clear_pages(PAGE as u64, PAGE as u64).await.expect(201);
    let second = snapshot(&source).await;
    source.request("DELETE", &format!("?snapshot={first}")).await.expect(202);
    let head = copied(&target, format!("{}?snapshot={second}", url(&there, &source))).await;
    assert_eq!(read(&target, &made(&head)).await, read(&source, &second).await);
    for pages in [2, 8] {
        source.resize(pages * PAGE as u64).await.expect(200);
        let next = snapshot(&source).await;
        let head = copied(&target, format!("{}?snapshot={next}", url(&there, &source))).await;
        assert_eq!(read(&target, &made(&head)).await, read(&source, &next).await, "{pages}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_source_and_target_that_does_not_fit_is_refused() {
    let ((here, mine), (there, theirs)) = pair().await;
    let (source, target) = (source(&theirs).await, mine.blob("target"));
    let (first, second) = (snapshot(&source).await, snapshot(&source).await);
    let base = url(&there, &source);
    let of = |snapshot: &str| format!("{base}?snapshot={snapshot}");
    let other = theirs.blob("other");
    other.create_pages(512).await.expect(201);
    let of_other = format!("{}?snapshot={}", url(&there, &other), snapshot(&other).await);
    let block = theirs.blob("block");
    block.put("one").await.expect(201);
    let of_block = format!("{}?snapshot={}", url(&there, &block), snapshot(&block).await);
    let private = there.container("private").await.blob("a");
    private.create_pages(512).await.expect(201);
    let of_private = format!("{}?snapshot={}", url(&there, &private), snapshot(&private).await);
    let sources = [
        (base.clone(), 409, "IncrementalCopySourceMustBeSnapshot"),
        (format!("{base}?snapshot=yesterday"), 400, "InvalidQueryParameterValue"),
        (format!("{base}%zz?snapshot={first}"), 400, "InvalidHeaderValue"),
        (of_block, 409, "InvalidSourceBlobType"),
        (of(FIRST), 404, "CannotVerifyCopySource"),
        (of_private, 401, "CannotVerifyCopySource"),
        (format!("http://127.0.0.1:1/dev/a/b?snapshot={first}"), 500, "CannotVerifyCopySource"),
    ];
    for (source, status, code) in sources {
        copy(&target, source).await.refused(status, code);
    }
    target.head().await.expect(404);
    copy(&here.existing("absent").blob("target"), of(&first)).await.refused(404, "ContainerNotFound");
    mine.blob("block").put("one").await.expect(201);
    copy(&mine.blob("block"), of(&first)).await.refused(409, "InvalidBlobType");
    mine.blob("disk").create_pages(512).await.expect(201);
    copy(&mine.blob("disk"), of(&first)).await.refused(409, "IncrementalCopyBlobMismatch");

    copied(&target, of(&second)).await;
    for earlier in [&first, &second] {
        copy(&target, of(earlier)).await.refused(409, "IncrementalCopyOfEarlierVersionSnapshotNotAllowed");
    }
    copy(&target, of_other).await.refused(409, "IncrementalCopyBlobMismatch");
    let own = self::source(&mine).await;
    let of_own = format!("{}?snapshot={}", url(&here, &own), snapshot(&own).await);
    copy(&target, of_own).await.refused(409, "IncrementalCopyBlobMismatch");
    let third = snapshot(&source).await;
    let fails = [
        ("if-match", "\"0x8D0000000000000\"", 412, "TargetConditionNotMet"),
        ("if-none-match", "*", 409, "BlobAlreadyExists"),
        ("x-ms-source-if-match", "\"0x1\"", 412, "SourceConditionNotMet"),
        ("x-ms-lease-id", "00000000-0000-0000-0000-00000000000b", 412, "LeaseNotPresentWithBlobOperation"),
    ];
    for (name, value, status, code) in fails {
        copy(&target, of(&third)).header(name, value).await.refused(status, code);
    }
    copied(&target, of(&third)).await;
}

/// What a source of two pages answers that the copies of a test ask for.
fn described() -> (&'static str, Vec<u8>) {
    let head = "200 OK\r\netag: \"1\"\r\nx-ms-blob-type: PageBlob\r\ncontent-length: 1024";
    ("get /photos/a?snapshot=", answer(head, b""))
}

/// What the list of its pages answers.
fn listed(expected: &'static str, ranges: &str) -> (&'static str, Vec<u8>) {
    let body = format!("<PageList>{ranges}</PageList>");
    (expected, answer(&format!("200 OK\r\ncontent-length: {}", body.len()), body.as_bytes()))
}

const FIRST_PAGE: &str = "<PageRange><Start>0</Start><End>511</End></PageRange>";
const SECOND_CLEARED: &str = "<ClearRange><Start>512</Start><End>1023</End></ClearRange>";

/// What the first page answers: all of it, or as much as is said.
fn first_page(content: &[u8]) -> (&'static str, Vec<u8>) {
    let head = "206 Partial\r\netag: \"1\"\r\ncontent-range: bytes 0-511/1024\r\ncontent-length: 512";
    ("range: bytes=0-511", answer(head, content))
}

fn failed(expected: &'static str, status: &str) -> (&'static str, Vec<u8>) {
    (expected, answer(&format!("{status}\r\ncontent-length: 0"), b""))
}

#[tokio::test]
async fn a_copy_that_fails_takes_no_snapshot_and_the_next_one_succeeds() {
    const DIFFERENCES: &str = "&prevsnapshot=2026%2d08%2d01t00%3a00%3a00%2e0000000z";
    let ((_here, mine), _) = pair().await;
    let target = mine.blob("target");
    let script = vec![
        // The first one: its source is gone at once; then it comes.
        described(),
        failed("comp=pagelist", "404 Gone"),
        described(),
        listed("comp=pagelist", FIRST_PAGE),
        first_page(&[1; PAGE]),
        // The second one: the source changes; breaks in the midst; lists nonsense in both ways; then it comes.
        described(),
        failed(DIFFERENCES, "412 Changed"),
        described(),
        listed(DIFFERENCES, FIRST_PAGE),
        first_page(&[2; 100]),
        failed("range: bytes=100-511", "412 Changed"),
        described(),
        listed(DIFFERENCES, "<Page/>"),
        listed("comp=pagelist", "<Page/>"),
        described(),
        listed(DIFFERENCES, &format!("{SECOND_CLEARED}{FIRST_PAGE}")),
        first_page(&[3; PAGE]),
    ];
    let source = Scripted::start(script).await;
    let of = |snapshot: &str| format!("{}?snapshot={snapshot}", source.address);
    let fails = async |snapshot: &str, length: &str, expected: &str| {
        copy(&target, of(snapshot)).await.expect(202);
        let head = settled(&target).await;
        assert_eq!((head.header("x-ms-copy-status"), head.header("x-ms-incremental-copy")), ("failed", "true"));
        assert_eq!((head.header("content-length"), made(&head).as_str()), (length, ""));
        let description = head.header("x-ms-copy-status-description");
        assert!(description.starts_with(expected), "{description}");
    };
    fails(FIRST, "0", "404").await;
    let first = made(&copied(&target, of(FIRST)).await);
    for expected in ["412", "412", "409"] {
        fails(SECOND, "1024", expected).await;
        assert_eq!(read(&target, &first).await, [[1; PAGE], [0; PAGE]].concat());
    }
    let second = made(&copied(&target, of(SECOND)).await);
    assert_eq!(read(&target, &second).await, [[3; PAGE], [0; PAGE]].concat());
    assert_eq!(read(&target, &first).await, [[1; PAGE], [0; PAGE]].concat());
    assert_eq!(mine.list("&include=snapshots").await.text().matches("<Snapshot>").count(), 2);
    source.done().await;
}

#[tokio::test]
async fn a_copy_under_way_is_aborted_and_asked_for_again() {
    let ((_here, mine), _) = pair().await;
    let target = mine.blob("target");
    let whole = || vec![described(), listed("comp=pagelist", FIRST_PAGE)];
    // The first page never comes to its end.
    let stuck =
        b"HTTP/1.1 206 Partial\r\netag: \"1\"\r\ncontent-range: bytes 0-511/1024\r\ncontent-length: 512\r\n\r\n1";
    let script = [
        whole(),
        vec![first_page(&[1; PAGE])],
        whole(),
        vec![("range: bytes=0-511", stuck.to_vec())],
        whole(),
        vec![first_page(&[2; PAGE])],
    ];
    let source = Silent::start(script.concat()).await;
    let of = |snapshot: &str| format!("{}?snapshot={snapshot}", source.address);
    let first = made(&copied(&target, of(FIRST)).await);
    let begun = copy(&target, of(SECOND)).await.expect(202);
    let head = target.head().await.expect(200);
    assert_eq!((head.header("x-ms-incremental-copy"), head.header("x-ms-copy-status")), ("true", "pending"));
    assert_eq!((head.header("x-ms-copy-progress"), made(&head).as_str()), ("0/1024", ""));
    for request in [copy(&target, of(SECOND)), target.delete(), target.set_metadata("a", "b")] {
        request.await.refused(409, "PendingCopyOperation");
    }
    assert_eq!(read(&target, &first).await, [[1; PAGE], [0; PAGE]].concat());
    source.answered(6).await;
    let id = begun.header("x-ms-copy-id");
    let abort = || target.request("PUT", &format!("?comp=copy&copyid={id}")).header("x-ms-copy-action", "abort");
    abort().await.expect(204);
    abort().await.refused(409, "NoPendingCopyOperation");
    let head = target.head().await.expect(200);
    assert_eq!((head.header("x-ms-copy-status"), made(&head).as_str()), ("aborted", ""));
    assert_eq!(head.header("content-length"), "1024");
    let second = made(&copied(&target, of(SECOND)).await);
    assert_eq!(read(&target, &second).await, [[2; PAGE], [0; PAGE]].concat());
    assert_eq!(read(&target, &first).await, [[1; PAGE], [0; PAGE]].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_differences_goes_on_after_its_server_was_killed() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source_server = Start::at(there.path()).ready().await;
    let theirs = source_server.service().existing("photos");
    theirs.create().header("x-ms-blob-public-access", "blob").await.expect(201);
    let disk = theirs.blob("disk");
    disk.create_pages(4096).await.expect(201);
    disk.put_pages(0, vec![9; 4096]).await.expect(201);
    let first = snapshot(&disk).await;

    let mut server = Start::at(here.path()).ready().await;
    let target = server.service().container("photos").await.blob("a");
    let open = Arc::new(tokio::sync::Notify::new());
    let gate = narrow(source_server.address(), 20 * MIB, Arc::clone(&open)).await;
    let of = |snapshot: &str| format!("http://{gate}/{ACCOUNT}/photos/disk?snapshot={snapshot}");
    let made_first = made(&copied(&target, of(&first)).await);

    disk.clear_pages(0, 512).await.expect(201);
    disk.resize(1024 * MIB as u64).await.expect(200);
    for number in 1..9_u8 {
        let first = usize::from(number) * 8 * MIB;
        disk.put_pages(first as u64, vec![number; 4 * MIB]).await.expect(201);
    }
    let second = snapshot(&disk).await;
    copy(&target, of(&second)).await.expect(202);
    let progressed = async {
        loop {
            let head = target.head().await.expect(200);
            let done: usize = head.header("x-ms-copy-progress").split('/').next().unwrap().parse().unwrap();
            if done > 8 * MIB {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("a part to come", progressed).await;
    server.kill().await;

    open.notify_one();
    server = Start::at(here.path()).ready().await;
    let target = server.service().existing("photos").blob("a");
    let head = settled(&target).await;
    assert_eq!(head.header("x-ms-copy-status"), "success", "{}", head.header("x-ms-copy-status-description"));
    let made_second = made(&head);
    assert_eq!(read(&target, &made_first).await, [9; 4096]);
    assert_eq!(pages(&target, &made_second, &made_first).await, pages(&disk, &second, &first).await);
    for first in (0..9).map(|number| (number * 8 * MIB).saturating_sub(1)) {
        let range = format!("bytes={first}-{}", first + 4 * MIB + 1);
        let part = async |blob: &Blob, snapshot: &str| {
            let get = blob.request("GET", &format!("?snapshot={snapshot}"));
            get.header("x-ms-range", &range).await.expect(206).body
        };
        assert!(part(&target, &made_second).await == part(&disk, &second).await, "{first}");
    }
    target.delete().header("x-ms-delete-snapshots", "include").await.expect(202);
    payload_becomes(here.path(), 0).await;
}
