//! Copies over a real socket: what they answer, what they take along, and every way in which they are refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::{Blob, Container, Lazuli};
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::Request;
use md5::{Digest as _, Md5};

const CRC64_OF_HELLO_WORLD: &str = "vo7q9sPVKY0=";

fn md5(bytes: &[u8]) -> String {
    STANDARD.encode(Md5::digest(bytes))
}

/// The address of a blob of this server.
fn url(lazuli: &Lazuli, blob: &Blob) -> String {
    format!("http://{}{}", lazuli.client().address(), blob.name())
}

/// The ways to copy a whole blob: Copy Blob, Copy Blob From URL, Put Blob From URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Start,
    Sync,
    Put,
}

const WAYS: [Way; 3] = [Way::Start, Way::Sync, Way::Put];

impl Way {
    fn request(self, target: &Blob, source: &str) -> Request {
        let request = target.request("PUT", "").header("x-ms-copy-source", source);
        match self {
            Self::Start => request,
            Self::Sync => request.header("x-ms-requires-sync", "true"),
            Self::Put => request.header("x-ms-blob-type", "BlockBlob"),
        }
    }

    fn status(self) -> u16 {
        if self == Self::Put { 201 } else { 202 }
    }
}

async fn photos() -> (Lazuli, Container) {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    (lazuli, container)
}

#[tokio::test]
async fn a_copy_has_the_content_properties_metadata_and_blocks_of_its_source() {
    let (lazuli, container) = photos().await;
    let source = container.blob("dir/a ü+b%.txt");
    source.put_block("AAAA", "hello ").await.expect(201);
    source.put_block("BBBB", "world").await.expect(201);
    let list = source.put_block_list(&["AAAA", "BBBB"]).header("x-ms-meta-Owner", "ann");
    list.header("x-ms-blob-content-type", "text/plain").header("x-ms-blob-content-language", "de").await.expect(201);
    for way in WAYS {
        let target = container.blob("target");
        let copied = way.request(&target, &url(&lazuli, &source)).await.expect(way.status());
        assert!(!copied.etag().is_empty() && !copied.header("last-modified").is_empty());
        let read = target.get().await.expect(200);
        assert_eq!((read.text().as_str(), read.etag()), ("hello world", copied.etag()));
        assert_eq!((read.header("content-type"), read.header("content-language")), ("text/plain", "de"));
        assert_eq!((read.header("x-ms-meta-owner"), read.header("x-ms-blob-type")), ("ann", "BlockBlob"));
        assert_eq!(target.block_list().await.expect(200).text().matches("<Block>").count(), 2, "{way:?}");
        let listed = container.list("&include=copy").await.expect(200).text();
        if way == Way::Put {
            assert_eq!((copied.header("x-ms-copy-id"), read.header("x-ms-copy-id")), ("", ""));
            assert!(!listed.contains("<CopyId>"));
            continue;
        }
        assert_eq!(copied.header("x-ms-copy-status"), "success");
        for answer in [read, target.head().await.expect(200)] {
            assert_eq!(answer.header("x-ms-copy-id"), copied.header("x-ms-copy-id"));
            assert_eq!(answer.header("x-ms-copy-status"), "success");
            assert_eq!(answer.header("x-ms-copy-progress"), "11/11");
            assert_eq!(answer.header("x-ms-copy-source"), url(&lazuli, &source));
            assert_eq!(answer.header("x-ms-copy-completion-time"), answer.header("last-modified"));
        }
        assert!(listed.contains(&format!("<CopyId>{}</CopyId><CopyStatus>success", copied.header("x-ms-copy-id"))));
        assert!(!container.list("").await.expect(200).text().contains("<CopyId>"));
    }
}

#[tokio::test]
async fn metadata_replaces_all_and_properties_of_put_blob_from_url_may_be_left_behind() {
    let (lazuli, container) = photos().await;
    let (source, target) = (container.blob("source"), container.blob("target"));
    source.put("one").header("x-ms-meta-a", "1").header("x-ms-blob-content-type", "text/plain").await.expect(201);
    for way in WAYS {
        way.request(&target, &url(&lazuli, &source)).header("x-ms-meta-b", "2").await.expect(way.status());
        let head = target.head().await.expect(200);
        assert_eq!((head.header("x-ms-meta-a"), head.header("x-ms-meta-b")), ("", "2"), "{way:?}");
    }
    let put = || Way::Put.request(&target, &url(&lazuli, &source)).header("x-ms-blob-cache-control", "no-cache");
    for (flag, content_type) in [("true", "text/plain"), ("false", "application/octet-stream")] {
        put().header("x-ms-copy-source-blob-properties", flag).await.expect(201);
        let head = target.head().await.expect(200);
        assert_eq!((head.header("content-type"), head.header("cache-control")), (content_type, "no-cache"));
    }
    put().header("x-ms-copy-source-blob-properties", "perhaps").await.refused(400, "InvalidHeaderValue");
}

#[tokio::test]
async fn tags_are_the_request_s_or_the_source_s() {
    let (lazuli, container) = photos().await;
    let (source, target) = (container.blob("source"), container.blob("target"));
    source.put("one").header("x-ms-tags", "a=1&b=2").await.expect(201);
    let tags = async || target.request("GET", "?comp=tags").await.expect(200).text();
    for way in WAYS {
        let copy = || way.request(&target, &url(&lazuli, &source));
        copy().await.expect(way.status());
        assert!(!tags().await.contains("<Tag>"), "{way:?}");
        copy().header("x-ms-tags", "c=3").await.expect(way.status());
        assert!(tags().await.contains("<Key>c</Key>"), "{way:?}");
        let option = |value| copy().header("x-ms-copy-source-tag-option", value);
        if way == Way::Start {
            option("COPY").await.refused(400, "UnsupportedHeader");
            continue;
        }
        option("REPLACE").await.expect(way.status());
        assert_eq!(target.head().await.header("x-ms-tag-count"), "", "{way:?}");
        option("COPY").await.expect(way.status());
        assert_eq!(tags().await.matches("<Tag>").count(), 2, "{way:?}");
        let readable = format!("{}?{}", url(&lazuli, &source), Sas::container("photos", "rt").query());
        let writing = |letters| {
            let copy = way.request(&target, &readable).header("x-ms-copy-source-tag-option", "COPY");
            copy.with_sas(&Sas::container("photos", letters).query())
        };
        writing("w").await.refused(403, "AuthorizationPermissionMismatch");
        writing("wt").await.expect(way.status());
        option("MOVE").await.refused(400, "InvalidHeaderValue");
        let both = option("COPY").header("x-ms-tags", "c=3");
        both.await.refused(400, "BothUserTagsAndSourceTagsCopyPresentException");
    }
}

#[tokio::test]
async fn what_a_later_write_says_of_the_copy() {
    let (lazuli, container) = photos().await;
    let (source, target) = (container.blob("source"), container.blob("target"));
    source.put("one").await.expect(201);
    let copy = || Way::Start.request(&target, &url(&lazuli, &source));
    copy().await.expect(202);
    target.set_metadata("a", "b").await.expect(200);
    assert_eq!(target.head().await.header("x-ms-copy-status"), "success");
    target.request("PUT", "?comp=properties").header("x-ms-blob-content-type", "text/plain").await.expect(200);
    assert_eq!(target.head().await.header("x-ms-copy-status"), "");
    copy().await.expect(202);
    target.put("two").await.expect(201);
    assert_eq!(target.head().await.header("x-ms-copy-status"), "");
}

#[tokio::test]
async fn a_source_that_cannot_be_read_is_told_with_its_own_status_and_code() {
    let (lazuli, container) = photos().await;
    let target = container.blob("target");
    let other = lazuli.existing("absent").blob("x");
    let cases = [
        (url(&lazuli, &container.blob("absent")), 404, "BlobNotFound"),
        (url(&lazuli, &other), 404, "ContainerNotFound"),
        (url(&lazuli, &container.blob("absent")).replace(ACCOUNT, "nobody"), 404, "ResourceNotFound"),
        (
            format!("{}?sig=x&sv=2024-11-04&sr=b&sp=r&se=2099-01-01", url(&lazuli, &container.blob("a"))),
            403,
            "AuthenticationFailed",
        ),
    ];
    for way in WAYS {
        for (source, status, code) in &cases {
            let refused = way.request(&target, source).await.refused(*status, "CannotVerifyCopySource");
            assert_eq!(refused.header("x-ms-copy-source-error-code"), *code, "{way:?} {source}");
            assert_eq!(refused.header("x-ms-copy-source-status-code"), status.to_string());
            assert!(refused.text().contains(&format!("<CopySourceErrorCode>{code}</CopySourceErrorCode>")));
        }
        for malformed in ["photos/a", "ftp://host/a/b", "http://", "/photos/a"] {
            let refused = way.request(&target, malformed).await.refused(400, "InvalidHeaderValue");
            assert!(refused.text().contains("x-ms-copy-source"), "{malformed}");
        }
        let service = format!("http://{}/{ACCOUNT}/photos?restype=container", lazuli.client().address());
        way.request(&target, &service).await.refused(409, "InvalidSourceBlobUrl");
        let long = format!("http://elsewhere/{}", "a".repeat(4000));
        way.request(&target, &long).await.refused(400, "InvalidHeaderValue");
    }
    target.head().await.expect(404);
}

#[tokio::test]
async fn conditions_judge_source_and_target_apart() {
    let (lazuli, container) = photos().await;
    let (source, target) = (container.blob("source"), container.blob("target"));
    let etag = source.put("one").await.expect(201).etag();
    let old = target.put("two").await.expect(201).etag();
    const STALE: &str = "\"0x8D0000000000000\"";
    const PAST: &str = "Sat, 01 Aug 2020 00:00:00 GMT";
    const FUTURE: &str = "Sat, 01 Aug 2099 00:00:00 GMT";
    let fails = [
        ("if-match", STALE.to_owned(), "if-match", STALE.to_owned()),
        ("if-none-match", etag.clone(), "if-none-match", old.clone()),
        ("if-modified-since", FUTURE.to_owned(), "if-modified-since", FUTURE.to_owned()),
        ("if-unmodified-since", PAST.to_owned(), "if-unmodified-since", PAST.to_owned()),
    ];
    for way in WAYS {
        let copy = || way.request(&target, &url(&lazuli, &source));
        for (of_source, source_value, of_target, target_value) in &fails {
            let refused = copy().header(&format!("x-ms-source-{of_source}"), source_value);
            refused.await.refused(412, "SourceConditionNotMet");
            copy().header(of_target, target_value).await.refused(412, "TargetConditionNotMet");
        }
        copy().header("x-ms-source-if-none-match", "*").await.refused(412, "SourceConditionNotMet");
        copy().header("if-none-match", "*").await.refused(409, "BlobAlreadyExists");
        let both = copy().header("x-ms-source-if-match", &etag).header("x-ms-source-if-none-match", "*");
        both.await.refused(400, "MultipleConditionHeadersNotSupported");
        copy().header("x-ms-source-if-modified-since", "x").await.refused(400, "InvalidHeaderValue");
        let tags = |expression| copy().header("x-ms-source-if-tags", expression);
        tags("\"a\" = 'b'").await.refused(412, "SourceConditionNotMet");
        tags("a").await.refused(400, "InvalidHeaderValue");
    }
    assert_eq!(target.head().await.etag(), old, "a refused copy changes nothing");
    for way in WAYS {
        let current = target.head().await.etag();
        let held = way.request(&target, &url(&lazuli, &source)).header("x-ms-source-if-match", &etag);
        held.header("if-match", current).await.expect(way.status());
    }
}

#[tokio::test]
async fn leases_of_both_sides_are_respected() {
    let (lazuli, container) = photos().await;
    let (source, target) = (container.blob("source"), container.blob("target"));
    source.put("one").await.expect(201);
    target.put("two").await.expect(201);
    for (seconds, start) in [(60, (412, "InfiniteLeaseDurationRequired")), (-1, (202, ""))] {
        let lease = target.acquire_lease(seconds).await.expect(201).header("x-ms-lease-id").to_owned();
        for way in WAYS {
            let copy = || way.request(&target, &url(&lazuli, &source));
            copy().await.refused(412, "LeaseIdMissing");
            let other = copy().header("x-ms-lease-id", "00000000-0000-0000-0000-00000000000b");
            other.await.refused(412, "LeaseIdMismatchWithBlobOperation");
            let held = copy().header("x-ms-lease-id", &lease).await;
            let expected = if way == Way::Start { start } else { (way.status(), "") };
            assert_eq!((held.status.as_u16(), held.code()), expected, "{way:?} {seconds}");
        }
        assert_eq!(target.head().await.header("x-ms-lease-status"), "locked");
        let release = target.request("PUT", "?comp=lease").header("x-ms-lease-action", "release");
        release.header("x-ms-lease-id", lease).await.expect(200);
    }
    let copy = || Way::Start.request(&target, &url(&lazuli, &source));
    let other = copy().header("x-ms-source-lease-id", "00000000-0000-0000-0000-00000000000b");
    other.await.refused(412, "LeaseNotPresentWithBlobOperation");
    copy().header("x-ms-source-lease-id", "x").await.refused(400, "InvalidHeaderValue");
}

#[tokio::test]
async fn digests_of_the_source_are_checked() {
    let (lazuli, container) = photos().await;
    let (source, target) = (container.blob("source"), container.blob("target"));
    source.put("hello world").await.expect(201);
    let right = [("md5", md5(b"hello world")), ("crc64", CRC64_OF_HELLO_WORLD.to_owned())];
    let wrong = [
        ("md5", md5(b"other"), "Md5Mismatch"),
        ("crc64", "AAAAAAAAAAA=".to_owned(), "Crc64Mismatch"),
        ("md5", "x".to_owned(), "InvalidMd5"),
        ("crc64", "x".to_owned(), "InvalidCrc64"),
    ];
    let requests = |source: String| {
        [
            Way::Sync.request(&target, &source),
            Way::Put.request(&target, &source),
            target.request("PUT", "?comp=block&blockid=QUFBQQ%3D%3D").header("x-ms-copy-source", source),
        ]
    };
    for (digest, value, code) in wrong {
        for request in requests(url(&lazuli, &source)) {
            request.header(&format!("x-ms-source-content-{digest}"), &value).await.refused(400, code);
        }
    }
    target.head().await.expect(404);
    for (digest, value) in right {
        for request in requests(url(&lazuli, &source)) {
            let copied = request.header(&format!("x-ms-source-content-{digest}"), &value).await;
            assert!(copied.status.is_success(), "{}", copied.text());
            let name = if digest == "md5" { "content-md5" } else { "x-ms-content-crc64" };
            assert_eq!(copied.header(name), value);
        }
    }
    let both = Way::Sync.request(&target, &url(&lazuli, &source)).header("x-ms-source-content-md5", md5(b""));
    both.header("x-ms-source-content-crc64", "AAAAAAAAAAA=").await.refused(400, "BothCrc64AndMd5HeaderPresent");
    let result = Way::Put.request(&target, &url(&lazuli, &source)).header("content-md5", md5(b"other"));
    result.await.refused(400, "Md5Mismatch");
}

#[tokio::test]
async fn a_block_is_taken_from_a_whole_source_or_a_part_of_it() {
    let (lazuli, container) = photos().await;
    let (source, target) = (container.blob("source"), container.blob("target"));
    let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    source.put(bytes.clone()).await.expect(201);
    let block = |id: &str| {
        let id = STANDARD.encode(id).replace('=', "%3D");
        target.request("PUT", &format!("?comp=block&blockid={id}")).header("x-ms-copy-source", url(&lazuli, &source))
    };
    block("AAAA").await.expect(201);
    let part = block("BBBB").header("x-ms-source-range", "bytes=70000-70009").await.expect(201);
    assert!(!part.header("x-ms-content-crc64").is_empty());
    block("CCCC").header("x-ms-source-range", "bytes=399990-").await.expect(201);
    target.put_block_list(&["BBBB", "AAAA", "CCCC"]).await.expect(201);
    let expected = [&bytes[70_000..70_010], &bytes, &bytes[399_990..]].concat();
    assert_eq!(target.get().await.expect(200).body, expected);
    for (range, status, code) in [
        ("bytes=400000-", 416, "InvalidRange"),
        ("bytes=9-3", 400, "InvalidHeaderValue"),
        ("bytes=-5", 400, "InvalidHeaderValue"),
        ("x", 400, "InvalidHeaderValue"),
    ] {
        block("DDDD").header("x-ms-source-range", range).await.refused(status, code);
    }
    block("DDDD").header("if-match", "*").await.refused(400, "ConditionHeadersNotSupported");
    block("DDDD").header("x-ms-source-if-none-match", "*").await.refused(412, "SourceConditionNotMet");
    block("DDDDD").await.expect(201);
    block("EEEE").await.refused(400, "InvalidBlobOrBlock");
    container.blob("empty").put("").await.expect(201);
    let empty = block("EEEEE").header("x-ms-copy-source", url(&lazuli, &container.blob("empty")));
    empty.await.refused(400, "InvalidInput");
}

#[tokio::test]
async fn a_source_of_another_account_must_be_public() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let target = container.blob("target");
    for (access, status, code) in [("", 401, "NoAuthenticationInformation"), ("blob", 202, ""), ("container", 202, "")]
    {
        let other = lazuli.of_other().existing(&format!("open{access}"));
        other.create().header("x-ms-blob-public-access", access).await.expect(201);
        other.blob("x").put("theirs").await.expect(201);
        let copied = Way::Start.request(&target, &url(&lazuli, &other.blob("x"))).await;
        assert_eq!((copied.status.as_u16(), copied.header("x-ms-copy-source-error-code")), (status, code), "{access}");
    }
    assert_eq!(target.get().await.expect(200).text(), "theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_conditional_copies_to_one_name_one_wins() {
    let (lazuli, container) = photos().await;
    let target = container.blob("_delta_log/00000000000000000001.json");
    for racer in 0..24 {
        container.blob(&format!("tmp {racer}")).put(format!("racer {racer}")).await.expect(201);
    }
    let racers = (0..24).map(|racer| {
        let source = url(&lazuli, &container.blob(&format!("tmp {racer}")));
        let copy = WAYS[racer % 3].request(&target, &source).header("if-none-match", "*");
        tokio::spawn(async move { (racer, copy.await) })
    });
    let mut winners = Vec::new();
    for outcome in join_all(racers).await {
        let (racer, answer) = outcome.unwrap();
        if answer.status.is_success() {
            winners.push(racer);
        } else {
            answer.refused(409, "BlobAlreadyExists");
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(target.get().await.expect(200).text(), format!("racer {}", winners[0]));
}

#[tokio::test]
async fn an_append_takes_its_block_from_a_source() {
    let (lazuli, container) = photos().await;
    let (source, log) = (container.blob("source"), container.blob("log"));
    source.put("hello world").await.expect(201);
    log.request("PUT", "").header("x-ms-blob-type", "AppendBlob").await.expect(201);
    let append = || log.request("PUT", "?comp=appendblock").header("x-ms-copy-source", url(&lazuli, &source));
    let first = append().header("x-ms-source-content-md5", md5(b"hello world")).await.expect(201);
    assert_eq!((first.header("x-ms-blob-append-offset"), first.header("x-ms-blob-committed-block-count")), ("0", "1"));
    let part = append().header("x-ms-source-range", "bytes=5-").header("x-ms-blob-condition-appendpos", "11");
    assert_eq!(part.await.expect(201).header("x-ms-blob-append-offset"), "11");
    assert_eq!(log.get().await.expect(200).text(), "hello world world");
    let stale = append().header("x-ms-blob-condition-appendpos", "1");
    stale.await.refused(412, "AppendPositionConditionNotMet");
    append().header("x-ms-blob-condition-maxsize", "20").await.refused(412, "MaxBlobSizeConditionNotMet");
    append().header("x-ms-source-content-crc64", "AAAAAAAAAAA=").await.refused(400, "Crc64Mismatch");
    append().header("x-ms-source-if-none-match", "*").await.refused(412, "SourceConditionNotMet");
    append().header("x-ms-source-range", "bytes=11-").await.refused(416, "InvalidRange");
    let absent = append().header("x-ms-copy-source", url(&lazuli, &container.blob("absent")));
    absent.await.refused(404, "CannotVerifyCopySource");
    source
        .request("PUT", "?comp=appendblock")
        .header("x-ms-copy-source", url(&lazuli, &log))
        .await
        .refused(409, "InvalidBlobType");
}

#[tokio::test]
async fn pages_are_taken_from_a_source() {
    let (lazuli, container) = photos().await;
    let (source, disk) = (container.blob("source"), container.blob("disk"));
    let bytes: Vec<u8> = (0..2048u32).flat_map(u32::to_le_bytes).collect();
    source.put(bytes.clone()).await.expect(201);
    let create =
        disk.request("PUT", "").header("x-ms-blob-type", "PageBlob").header("x-ms-blob-content-length", "4096");
    create.header("x-ms-blob-sequence-number", "5").await.expect(201);
    let put = |pages: &str, range: &str| {
        let put = disk.request("PUT", "?comp=page").header("x-ms-page-write", "update").header("x-ms-range", pages);
        put.header("x-ms-copy-source", url(&lazuli, &source)).header("x-ms-source-range", range)
    };
    let done = put("bytes=512-1535", "bytes=100-1123").header("x-ms-if-sequence-number-eq", "5").await.expect(201);
    assert_eq!(done.header("x-ms-blob-sequence-number"), "5");
    let read = disk.get().header("range", "bytes=512-1535").await.expect(206);
    assert_eq!(read.body, bytes[100..1124]);
    put("bytes=512-1535", "bytes=0-511").await.refused(400, "InvalidHeaderValue");
    put("bytes=512-1535", "").await.refused(400, "MissingRequiredHeader");
    put("bytes=4096-4607", "bytes=0-511").await.refused(416, "InvalidPageRange");
    let stale = put("bytes=0-511", "bytes=0-511").header("x-ms-if-sequence-number-lt", "5");
    stale.await.refused(412, "SequenceNumberConditionNotMet");
    let wrong = put("bytes=0-511", "bytes=0-511").header("x-ms-source-content-md5", md5(b"other"));
    wrong.await.refused(400, "Md5Mismatch");
}

#[tokio::test]
async fn append_and_page_blobs_are_copied_with_what_only_they_have() {
    let (lazuli, container) = photos().await;
    let (log, disk, target) = (container.blob("log"), container.blob("disk"), container.blob("target"));
    log.request("PUT", "").header("x-ms-blob-type", "AppendBlob").await.expect(201);
    for block in ["one", "two"] {
        log.request("PUT", "?comp=appendblock").body(block).await.expect(201);
    }
    let create =
        disk.request("PUT", "").header("x-ms-blob-type", "PageBlob").header("x-ms-blob-content-length", "1024");
    create.header("x-ms-blob-sequence-number", "7").await.expect(201);
    let write =
        disk.request("PUT", "?comp=page").header("x-ms-page-write", "update").header("x-ms-range", "bytes=512-1023");
    write.body("p".repeat(512)).await.expect(201);

    Way::Start.request(&target, &url(&lazuli, &log)).header("x-ms-seal-blob", "true").await.expect(202);
    let head = target.head().await.expect(200);
    assert_eq!((head.header("x-ms-blob-committed-block-count"), head.header("x-ms-blob-sealed")), ("2", "true"));
    // The seal is copied too, unless the copy says otherwise.
    for (seal, sealed) in [("", "true"), ("false", ""), ("true", "true")] {
        let copy = container.blob("sealed copy");
        Way::Start.request(&copy, &url(&lazuli, &target)).header("x-ms-seal-blob", seal).await.expect(202);
        assert_eq!(copy.head().await.expect(200).header("x-ms-blob-sealed"), sealed, "{seal}");
    }
    Way::Start.request(&target, &url(&lazuli, &log)).await.expect(202);
    for blob in [&log, &target] {
        blob.request("PUT", "?comp=appendblock").body(blob.name().to_owned()).await.expect(201);
        assert_eq!(blob.get().await.text(), format!("onetwo{}", blob.name()), "each goes on by itself");
    }
    Way::Start.request(&target, &url(&lazuli, &disk)).await.refused(409, "InvalidBlobType");
    Way::Sync.request(&container.blob("new"), &url(&lazuli, &log)).await.refused(409, "InvalidSourceBlobType");

    let copy = container.blob("copy");
    Way::Start.request(&copy, &url(&lazuli, &disk)).await.expect(202);
    assert_eq!(copy.head().await.header("x-ms-blob-sequence-number"), "7");
    let write =
        copy.request("PUT", "?comp=page").header("x-ms-page-write", "update").header("x-ms-range", "bytes=0-511");
    write.body("q".repeat(512)).await.expect(201);
    assert_eq!(copy.get().await.text(), "q".repeat(512) + &"p".repeat(512));
    assert_eq!(copy.head().await.header("x-ms-copy-status"), "success");
    copy.resize(512).await.expect(200);
    assert_eq!(copy.head().await.header("x-ms-copy-status"), "", "properties were set since");
    assert_eq!(disk.get().await.text(), "\0".repeat(512) + &"p".repeat(512));
    Way::Put.request(&container.blob("flat"), &url(&lazuli, &disk)).await.expect(201);
    let flat = container.blob("flat").get().await.expect(200);
    assert_eq!((flat.text(), flat.header("x-ms-blob-type")), ("\0".repeat(512) + &"p".repeat(512), "BlockBlob"));
}

#[tokio::test]
async fn a_copy_has_the_tier_of_the_blob_that_it_replaces_unless_it_says_another() {
    let (lazuli, container) = photos().await;
    let (source, target) = (container.blob("source"), container.blob("target"));
    source.put("one").header("x-ms-access-tier", "Cold").await.expect(201);
    let tier = async |blob: &Blob| {
        let head = blob.head().await.expect(200);
        ["x-ms-access-tier", "x-ms-access-tier-inferred"].map(|name| head.header(name).to_owned())
    };
    for way in WAYS {
        way.request(&container.blob("new"), &url(&lazuli, &source)).await.expect(way.status());
        assert_eq!(tier(&container.blob("new")).await, ["Hot", "true"], "{way:?}");
        target.put("two").header("x-ms-access-tier", "Cool").await.expect(201);
        way.request(&target, &url(&lazuli, &source)).await.expect(way.status());
        let kept = if way == Way::Put { ["Hot", "true"] } else { ["Cool", ""] };
        assert_eq!(tier(&target).await, kept, "{way:?}");
        let cold = way.request(&target, &url(&lazuli, &source)).header("x-ms-access-tier", "Cold");
        cold.await.expect(way.status());
        assert_eq!(tier(&target).await, ["Cold", ""], "{way:?}");
        target.put("two").header("x-ms-access-tier", "Archive").await.expect(201);
        let over = || way.request(&target, &url(&lazuli, &source));
        if way == Way::Put {
            over().await.expect(201);
            continue;
        }
        over().await.refused(409, "BlobArchived");
        over().header("x-ms-access-tier", "Hot").await.refused(409, "BlobArchived");
        // Out of the archive a blob is copied to another one.
        let restored = way.request(&container.blob("restored"), &url(&lazuli, &target));
        restored.await.refused(409, "BlobArchived");
        let restored = way.request(&container.blob("restored"), &url(&lazuli, &target));
        restored.header("x-ms-access-tier", "Hot").await.expect(202);
        assert_eq!(container.blob("restored").get().await.expect(200).text(), "two", "{way:?}");
    }
}

#[tokio::test]
async fn what_comes_from_a_url_comes_without_a_body() {
    let (lazuli, container) = photos().await;
    let (source, log, disk) = (container.blob("source"), container.blob("log"), container.blob("disk"));
    source.put("o".repeat(512)).await.expect(201);
    log.create_append().await.expect(201);
    disk.create_pages(512).await.expect(201);
    let target = container.blob("target");
    let page = disk.request("PUT", "?comp=page").header("x-ms-page-write", "update");
    let parts = [
        target.request("PUT", "?comp=block&blockid=AAAA"),
        log.request("PUT", "?comp=appendblock"),
        page.header("x-ms-range", "bytes=0-511").header("x-ms-source-range", "bytes=0-511"),
    ];
    let parts = parts.map(|request| request.header("x-ms-copy-source", url(&lazuli, &source)));
    let whole = WAYS.map(|way| way.request(&target, &url(&lazuli, &source)));
    for request in parts.into_iter().chain(whole) {
        let refused = request.body("x").await.refused(400, "InvalidHeaderValue");
        assert!(refused.text().contains("<HeaderName>Content-Length</HeaderName>"), "{}", refused.text());
    }
    assert!(!container.list("&include=uncommittedblobs").await.expect(200).text().contains("target"));
}

#[tokio::test]
async fn a_snapshot_or_version_is_a_source_and_who_may_read_it_copies_it() {
    let (lazuli, container) = photos().await;
    let blob = container.blob("a");
    blob.put("old").await.expect(201);
    let at = blob.request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned();
    blob.put("new").await.expect(201);
    let snapshot = format!("{}?snapshot={at}", url(&lazuli, &blob));
    let copied = Way::Start.request(&blob, &snapshot).await.expect(202);
    assert_eq!(blob.get().await.expect(200).text(), "old");
    assert_eq!(blob.head().await.header("x-ms-copy-source"), snapshot);
    assert_eq!(copied.header("x-ms-copy-status"), "success");
    for way in WAYS {
        let absent = format!("{}?snapshot=2020-01-01T00:00:00.0000000Z", url(&lazuli, &blob));
        way.request(&blob, &absent).await.refused(404, "CannotVerifyCopySource");
        let wrong = format!("{}?snapshot=yesterday", url(&lazuli, &blob));
        way.request(&blob, &wrong).await.refused(400, "InvalidQueryParameterValue");
        let signed = format!("{}?{}", url(&lazuli, &blob), Sas::blob("photos", "a", "r").query());
        way.request(&container.blob("b"), &signed).await.expect(way.status());
        let write_only = format!("{}?{}", url(&lazuli, &blob), Sas::blob("photos", "a", "w").query());
        way.request(&container.blob("b"), &write_only).await.refused(403, "CannotVerifyCopySource");
        let tags = way.request(&container.blob("b"), &signed).header("x-ms-copy-source-tag-option", "COPY");
        if way != Way::Start {
            tags.await.refused(403, "CannotVerifyCopySource");
        }
    }
}

#[tokio::test]
async fn the_tags_of_a_snapshot_whose_bytes_are_read_are_its_own() {
    let (lazuli, container) = photos().await;
    let (log, target) = (container.blob("log"), container.blob("target"));
    let create = |tags| log.request("PUT", "").header("x-ms-blob-type", "AppendBlob").header("x-ms-tags", tags);
    create("a=old").await.expect(201);
    let at = log.request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned();
    create("a=new").await.expect(201);
    for (source, value) in [(format!("{}?snapshot={at}", url(&lazuli, &log)), "old"), (url(&lazuli, &log), "new")] {
        let copy = Way::Put.request(&target, &source).header("x-ms-copy-source-tag-option", "COPY");
        copy.await.expect(201);
        let tags = target.request("GET", "?comp=tags").await.expect(200).text();
        assert!(tags.contains(&format!("<Value>{value}</Value>")), "{tags}");
    }
}
