//! Copies from one server to another over HTTP: within a request, and behind it, through crashes of the one that copies.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_tests::client::ACCOUNT;
use lazuli_tests::disk::payload_becomes;
use lazuli_tests::elsewhere::{Scripted, Silent, answer, narrow, pair, settled, url};
use lazuli_tests::harness::{Blob, Container};
use lazuli_tests::process::{Start, within};
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::Request;
use md5::{Digest as _, Md5};

const MIB: usize = 1024 * 1024;

fn copy(target: &Blob, source: impl Into<String>) -> Request {
    target.request("PUT", "").header("x-ms-copy-source", source)
}

fn bytes(length: usize) -> Vec<u8> {
    (0..=250u8).cycle().take(length).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_of_another_server_comes_with_properties_and_metadata() {
    let ((_here, mine), (there, theirs)) = pair().await;
    let source = theirs.blob("dir/a ü+b%.txt");
    let whole = bytes(9 * MIB + 7);
    source
        .put(whole.clone())
        .header("x-ms-meta-owner", "ann")
        .header("x-ms-blob-content-type", "text/plain")
        .await
        .expect(201);
    let target = mine.blob("target");
    let begun = copy(&target, url(&there, &source)).await.expect(202);
    assert_eq!(begun.header("x-ms-copy-status"), "pending");
    let head = settled(&target).await;
    assert_eq!(
        (head.header("x-ms-copy-status"), head.header("x-ms-copy-id")),
        ("success", begun.header("x-ms-copy-id"))
    );
    assert_eq!(head.header("x-ms-copy-progress"), format!("{0}/{0}", whole.len()));
    assert_eq!((head.header("content-type"), head.header("x-ms-meta-owner")), ("text/plain", "ann"));
    assert_eq!(head.header("content-md5"), STANDARD.encode(Md5::digest(&whole)));
    assert_ne!(head.etag(), begun.etag());
    assert!(target.get().await.expect(200).body == whole);
    theirs.blob("empty").put("").await.expect(201);
    let nothing = copy(&target, url(&there, &theirs.blob("empty"))).await.expect(202);
    assert_eq!(nothing.header("x-ms-copy-status"), "success");
    assert_eq!(target.get().await.expect(200).text(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_of_another_server_are_read_within_the_request_where_it_says_so() {
    let ((_here, mine), (there, theirs)) = pair().await;
    let source = theirs.blob("source");
    let whole = bytes(300_000);
    source.put(whole.clone()).header("x-ms-tags", "a=1").header("x-ms-meta-a", "b").await.expect(201);
    let md5 = STANDARD.encode(Md5::digest(&whole));
    let target = mine.blob("target");
    let sync = || copy(&target, url(&there, &source)).header("x-ms-requires-sync", "true");
    let put = || copy(&target, url(&there, &source)).header("x-ms-blob-type", "BlockBlob");
    for (request, status) in [(sync(), 202), (put(), 201)] {
        let copied = request.header("x-ms-source-content-md5", &md5).await.expect(status);
        assert_eq!(copied.header("content-md5"), md5);
        let read = target.get().await.expect(200);
        assert!(read.body == whole);
        assert_eq!((read.header("x-ms-meta-a"), read.header("x-ms-copy-status") == "success"), ("b", status == 202));
    }
    for request in [sync(), put()] {
        request.header("x-ms-source-content-crc64", "AAAAAAAAAAA=").await.refused(400, "Crc64Mismatch");
    }
    let block = |id: &str| {
        let id = STANDARD.encode(id).replace('=', "%3D");
        target.request("PUT", &format!("?comp=block&blockid={id}")).header("x-ms-copy-source", url(&there, &source))
    };
    block("AAAA").await.expect(201);
    block("BBBB").header("x-ms-source-range", "bytes=100000-100099").await.expect(201);
    block("CCCC").header("x-ms-source-range", "bytes=300000-").await.refused(416, "InvalidRange");
    target.put_block_list(&["BBBB", "AAAA"]).await.expect(201);
    assert!(target.get().await.expect(200).body == [&whole[100_000..100_100], &whole].concat());
}

#[tokio::test]
async fn what_the_other_server_refuses_is_told_on() {
    let ((_here, mine), (there, theirs)) = pair().await;
    let private = there.container("private").await;
    let source = private.blob("a");
    source.put("hello").header("x-ms-tags", "a=1").await.expect(201);
    let target = mine.blob("target");
    let ways = || [("x-ms-requires-sync", "true"), ("x-ms-blob-type", "BlockBlob"), ("x-ms-client-request-id", "1")];
    let address = url(&there, &source);
    for (name, value) in ways() {
        let copy = |source: &str| copy(&target, source).header(name, value);
        let cases = [
            (address.clone(), 401, "NoAuthenticationInformation"),
            (format!("{address}?sig=x&sv=2024-11-04&sr=b&sp=r&se=2099-01-01"), 403, "AuthenticationFailed"),
            (url(&there, &theirs.blob("absent")), 404, "BlobNotFound"),
        ];
        for (source, status, code) in cases {
            let refused = copy(&source).await.refused(status, "CannotVerifyCopySource");
            assert_eq!(refused.header("x-ms-copy-source-error-code"), code, "{name} {source}");
            assert_eq!(refused.header("x-ms-copy-source-status-code"), status.to_string());
        }
        let signed = format!("{address}?{}", Sas::blob("private", "a", "r").query());
        copy(&signed).header("x-ms-source-if-match", "\"0x1\"").await.refused(412, "SourceConditionNotMet");
        copy(&signed).header("x-ms-source-if-none-match", "*").await.refused(400, "CannotVerifyCopySource");
        copy("http://127.0.0.1:1/dev/a/b").await.refused(500, "CannotVerifyCopySource");
        copy(&signed).header("if-match", "\"0x1\"").await.refused(412, "TargetConditionNotMet");
        target.head().await.expect(404);
        assert!(copy(&signed).await.status.is_success());
        let shown = settled(&target).await.header("x-ms-copy-source").to_owned();
        assert!(shown.is_empty() || shown == address, "{shown}");
        target.delete().await.expect(202);
    }
    let tagged = Sas::blob("private", "a", "rt").query();
    let tagged = copy(&target, format!("{address}?{tagged}")).header("x-ms-blob-type", "BlockBlob");
    tagged.header("x-ms-copy-source-tag-option", "COPY").await.expect(201);
    assert!(target.request("GET", "?comp=tags").await.expect(200).text().contains("<Key>a</Key><Value>1</Value>"));
}

#[tokio::test]
async fn credentials_for_the_source_are_not_kept_for_a_copy_that_goes_on() {
    let ((_here, mine), (there, theirs)) = pair().await;
    let (source, target) = (theirs.blob("a"), mine.blob("a"));
    source.put("one").await.expect(201);
    let copy = target.request("PUT", "").header("x-ms-copy-source", url(&there, &source));
    let refused = copy.header("x-ms-copy-source-authorization", "Bearer x").await.refused(400, "UnsupportedHeader");
    assert!(refused.text().contains("<HeaderName>x-ms-copy-source-authorization</HeaderName>"), "{}", refused.text());
    target.head().await.expect(404);
}

#[tokio::test]
async fn a_reading_that_breaks_off_goes_on_with_the_same_version() {
    let ((_here, mine), _) = pair().await;
    let whole = bytes(10);
    let script = vec![
        ("get /photos/a", answer("200 OK\r\netag: \"1\"\r\ncontent-length: 10", &whole[..4])),
        ("range: bytes=4-9", answer("503 Busy\r\ncontent-length: 0", b"")),
        (
            "if-match: \"1\"",
            answer("206 Partial\r\netag: \"1\"\r\ncontent-range: bytes 4-9/10\r\ncontent-length: 6", &whole[4..]),
        ),
    ];
    let source = Scripted::start(script).await;
    let target = mine.blob("target");
    copy(&target, &source.address).header("x-ms-blob-type", "BlockBlob").await.expect(201);
    assert_eq!(target.get().await.expect(200).body, whole);
    source.done().await;
}

#[tokio::test]
async fn a_source_that_changes_or_lies_is_not_copied() {
    let ((_here, mine), _) = pair().await;
    let target = mine.blob("target");
    let begun = || ("get /photos/a", answer("200 OK\r\netag: \"1\"\r\ncontent-length: 10", b"1234"));
    let first = |head: &str, body: &[u8]| vec![("get /photos/a", answer(head, body))];
    let cases = [
        (
            vec![begun(), ("if-match: \"1\"", answer("412 Changed\r\ncontent-length: 0", b""))],
            412,
            "SourceConditionNotMet",
        ),
        (
            vec![begun(), ("if-match: \"1\"", answer("404 Gone\r\ncontent-length: 0", b""))],
            404,
            "CannotVerifyCopySource",
        ),
        (first("200 OK\r\ncontent-length: 10", b"1234"), 500, "CannotVerifyCopySource"),
        (first("200 OK\r\ntransfer-encoding: chunked", b"1\r\na\r\n0\r\n\r\n"), 409, "CannotVerifyCopySource"),
        (first("302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0", b""), 409, "CannotVerifyCopySource"),
        (first("500 Broken\r\ncontent-length: 0", b""), 500, "CannotVerifyCopySource"),
        (first("nonsense", b""), 500, "CannotVerifyCopySource"),
    ];
    for (script, status, code) in cases {
        let source = Scripted::start(script).await;
        let request = copy(&target, &source.address).header("x-ms-blob-type", "BlockBlob");
        request.await.refused(status, code);
        source.done().await;
    }
    target.head().await.expect(404);
    let large = Scripted::start(first("200 OK\r\ncontent-length: 268435457", b"")).await;
    let sync = copy(&target, &large.address).header("x-ms-requires-sync", "true").await;
    sync.refused(409, "CannotVerifyCopySource");
}

#[tokio::test]
async fn a_copy_under_way_refuses_everything_but_its_end() {
    let ((here, mine), _) = pair().await;
    let target = mine.blob("target");
    target.put("old").await.expect(201);
    // The first answer describes the source; the second is the copy's, and never comes to its end.
    let describe = answer("200 OK\r\netag: \"1\"\r\ncontent-length: 10", b"");
    let stuck = b"HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 10\r\n\r\n1234".to_vec();
    let silent = Silent::start(vec![("get /photos/a", describe), ("get /photos/a", stuck)]).await;
    let address = silent.address.clone();
    let begun = copy(&target, &address).await.expect(202);
    let id = begun.header("x-ms-copy-id").to_owned();
    assert_eq!(begun.header("x-ms-copy-status"), "pending");
    let head = target.head().await.expect(200);
    assert_eq!((head.header("content-length"), head.header("x-ms-copy-progress")), ("0", "0/10"));
    assert!(mine.list("&include=copy").await.text().contains("<CopyStatus>pending</CopyStatus>"));
    let pending = [
        target.put("new"),
        target.delete(),
        target.set_metadata("a", "b"),
        target.acquire_lease(-1),
        target.request("PUT", "?comp=snapshot"),
        target.put_block("AAAA", "new"),
        target.put_block_list(&[]),
        target.request("PUT", "?comp=tier").header("x-ms-access-tier", "Cool"),
        copy(&target, &address),
        copy(&mine.blob("other"), url(&here, &target)),
    ];
    for request in pending {
        request.await.refused(409, "PendingCopyOperation");
    }
    let abort =
        |id: &str| target.request("PUT", &format!("?comp=copy&copyid={id}")).header("x-ms-copy-action", "abort");
    abort("00000000-0000-0000-0000-00000000000b").await.refused(409, "CopyIdMismatch");
    abort("x").await.refused(400, "InvalidQueryParameterValue");
    target
        .request("PUT", "?comp=copy")
        .header("x-ms-copy-action", "abort")
        .await
        .refused(400, "MissingRequiredQueryParameter");
    target.request("PUT", &format!("?comp=copy&copyid={id}")).await.refused(400, "MissingRequiredHeader");
    abort(&id).header("x-ms-copy-action", "stop").await.refused(400, "InvalidHeaderValue");
    abort(&id).await.expect(204);
    let head = target.head().await.expect(200);
    assert_eq!((head.header("content-length"), head.header("x-ms-copy-status")), ("0", "aborted"));
    abort(&id).await.refused(409, "NoPendingCopyOperation");
    target.put("new").await.expect(201);
}

#[tokio::test]
async fn a_source_that_is_gone_when_its_bytes_are_wanted_fails_the_copy() {
    let ((_here, mine), _) = pair().await;
    let target = mine.blob("target");
    for (status, expected) in [("404 Gone\r\nx-ms-error-code: BlobNotFound", "404"), ("412 Changed", "412")] {
        let script = vec![
            ("get /photos/a", answer("200 OK\r\netag: \"1\"\r\ncontent-length: 10", b"")),
            ("if-match: \"1\"", answer(&format!("{status}\r\ncontent-length: 0"), b"")),
        ];
        let source = Scripted::start(script).await;
        copy(&target, &source.address).await.expect(202);
        let head = settled(&target).await;
        assert_eq!((head.header("x-ms-copy-status"), head.header("content-length")), ("failed", "0"));
        let description = head.header("x-ms-copy-status-description");
        assert!(description.starts_with(expected), "{description}");
        source.done().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_goes_on_after_its_server_was_killed() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source_server = Start::at(there.path()).ready().await;
    let whole = bytes(40 * MIB + 3);
    let theirs = source_server.service().existing("photos");
    theirs.create().header("x-ms-blob-public-access", "blob").await.expect(201);
    theirs.blob("a").put(whole.clone()).await.expect(201);

    let mut server = Start::at(here.path()).ready().await;
    let mine = server.service().container("photos").await;
    let open = Arc::new(tokio::sync::Notify::new());
    // The request itself reads the head of an answer, and at most what fits the buffers on the way of its body.
    let gate = narrow(source_server.address(), 28 * MIB, Arc::clone(&open)).await;
    copy(&mine.blob("a"), format!("http://{gate}/{ACCOUNT}/photos/a")).await.expect(202);
    let target = mine.blob("a");
    let progressed = async {
        while !target
            .head()
            .await
            .expect(200)
            .header("x-ms-copy-progress")
            .starts_with(|first| ('1'..='9').contains(&first))
        {
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
    assert!(target.get().await.expect(200).body == whole);
    // The last three bytes are a row.
    payload_becomes(here.path(), 40 * MIB as u64).await;
    target.delete().await.expect(202);
    payload_becomes(here.path(), 0).await;
}

/// A page blob of a GiB of which `count` stretches of 4 MiB are written, 8 MiB apart.
async fn disk(container: &Container, count: usize) -> Blob {
    let disk = container.blob("disk");
    disk.create_pages(1024 * MIB as u64).header("x-ms-blob-sequence-number", "7").await.expect(201);
    for number in 0..count {
        disk.put_pages((number * 8 * MIB) as u64, vec![u8::try_from(number + 1).unwrap(); 4 * MIB]).await.expect(201);
    }
    disk
}

/// That both have the same pages, and the same bytes in those and around them.
async fn same_pages(one: &Blob, other: &Blob, count: usize) {
    let list = async |blob: &Blob| blob.page_list("").await.expect(200).text();
    assert_eq!(list(one).await, list(other).await);
    for number in 0..count {
        let first = (number * 8 * MIB).saturating_sub(1);
        let range = format!("bytes={first}-{}", first + 4 * MIB + 1);
        let part = async |blob: &Blob| blob.get().header("x-ms-range", &range).await.expect(206).body;
        assert!(part(one).await == part(other).await, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_page_blob_only_its_pages_come() {
    let ((_here, mine), (there, theirs)) = pair().await;
    let source = disk(&theirs, 3).await;
    source.clear_pages(8 * MIB as u64, MIB as u64).await.expect(201);
    let target = mine.blob("target");
    let begun = copy(&target, url(&there, &source)).await.expect(202);
    assert_eq!(begun.header("x-ms-copy-status"), "pending");
    let head = settled(&target).await;
    assert_eq!(head.header("x-ms-copy-status"), "success", "{}", head.header("x-ms-copy-status-description"));
    assert_eq!(head.header("x-ms-copy-progress"), "1073741824/1073741824");
    assert_eq!((head.header("x-ms-blob-type"), head.header("x-ms-blob-sequence-number")), ("PageBlob", "7"));
    assert_eq!(head.header("content-length"), "1073741824");
    same_pages(&target, &source, 3).await;
    target.put_pages(512, vec![9; 512]).await.expect(201);

    // Nothing written, written to the last byte, and no bytes at all.
    let cases: [(&str, u64, &[u8]); 3] = [("bare", 4096, b""), ("full", 1024, &[3; 1024]), ("none", 0, b"")];
    for (name, length, content) in cases {
        let source = theirs.blob(name);
        source.create_pages(length).await.expect(201);
        if !content.is_empty() {
            source.put_pages(0, content.to_vec()).await.expect(201);
        }
        copy(&mine.blob(name), url(&there, &source)).await.expect(202);
        let head = settled(&mine.blob(name)).await;
        assert_eq!(head.header("x-ms-copy-status"), "success", "{name}");
        assert_eq!(mine.blob(name).get().await.expect(200).body, source.get().await.expect(200).body, "{name}");
    }
    mine.blob("block").put("x").await.expect(201);
    copy(&mine.blob("block"), url(&there, &source)).await.refused(409, "InvalidBlobType");
}

#[tokio::test]
async fn a_page_blob_that_changes_or_lists_no_pages_fails_the_copy() {
    const DISK: &str = "200 OK\r\netag: \"1\"\r\nx-ms-blob-type: PageBlob\r\ncontent-length: ";
    let ((_here, mine), _) = pair().await;
    let target = mine.blob("target");
    let begun = || ("get /photos/a", answer(&format!("{DISK}1024"), b""));
    let list = |body: &str| answer(&format!("200 OK\r\ncontent-length: {}", body.len()), body.as_bytes());
    let range = |start: u64, end: u64| {
        list(&format!("<PageList><PageRange><Start>{start}</Start><End>{end}</End></PageRange></PageList>"))
    };
    let cases = [
        (vec![begun(), ("comp=pagelist", answer("412 Changed\r\ncontent-length: 0", b""))], "412"),
        (vec![begun(), ("comp=pagelist", answer("404 Gone\r\ncontent-length: 0", b""))], "404"),
        (vec![begun(), ("if-match: \"1\"", list("<html/>"))], "409"),
        (vec![begun(), ("comp=pagelist", range(0, 510))], "409"),
        (vec![begun(), ("comp=pagelist", range(512, 2047))], "409"),
    ];
    for (script, expected) in cases {
        let source = Scripted::start(script).await;
        let begun = copy(&target, &source.address).await.expect(202);
        let head = settled(&target).await;
        assert_eq!((head.header("x-ms-copy-status"), head.header("content-length")), ("failed", "0"));
        assert_eq!(head.header("x-ms-copy-id"), begun.header("x-ms-copy-id"));
        let description = head.header("x-ms-copy-status-description");
        assert!(description.starts_with(expected), "{description}");
        source.done().await;
        target.delete().await.expect(202);
    }
    let crooked = Scripted::start(vec![("get /photos/a", answer(&format!("{DISK}1000"), b""))]).await;
    copy(&target, &crooked.address).await.refused(409, "CannotVerifyCopySource");
    crooked.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_pages_goes_on_after_its_server_was_killed() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source_server = Start::at(there.path()).ready().await;
    let theirs = source_server.service().existing("photos");
    theirs.create().header("x-ms-blob-public-access", "blob").await.expect(201);
    let source = disk(&theirs, 8).await;

    let mut server = Start::at(here.path()).ready().await;
    let target = server.service().container("photos").await.blob("a");
    let open = Arc::new(tokio::sync::Notify::new());
    let gate = narrow(source_server.address(), 20 * MIB, Arc::clone(&open)).await;
    copy(&target, format!("http://{gate}/{ACCOUNT}/photos/disk")).await.expect(202);
    let progressed = async {
        while target.head().await.expect(200).header("x-ms-copy-progress").starts_with("0/") {
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
    same_pages(&target, &source, 8).await;
    payload_becomes(here.path(), 32 * MIB as u64).await;
    target.delete().await.expect(202);
    payload_becomes(here.path(), 0).await;
}
