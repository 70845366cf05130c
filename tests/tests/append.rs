//! Append blobs over a real socket.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use lazuli_tests::harness::Lazuli;

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn an_append_blob_grows_and_says_how_far() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("logs").await;
    let blob = container.blob("a.log");
    let created = blob.create_append().header("x-ms-blob-content-type", "text/plain").header("x-ms-meta-by", "ann");
    let created = created.await.expect(201);
    assert_eq!(created.header("x-ms-request-server-encrypted"), "true");
    let first = blob.append("one,").await.expect(201);
    assert_eq!((first.header("x-ms-blob-append-offset"), first.header("x-ms-blob-committed-block-count")), ("0", "1"));
    assert_ne!(first.etag(), created.etag());
    assert!(!first.header("last-modified").is_empty() && !first.header("x-ms-content-crc64").is_empty());
    let second = blob.append("two").header("content-md5", "uMgIE5OKW6+e0yJqx8KoLA==").await;
    second.refused(400, "Md5Mismatch");
    let second = blob.append("two").header("x-ms-blob-condition-appendpos", "4");
    let second = second.header("x-ms-blob-condition-maxsize", "7").header("if-match", first.etag()).await.expect(201);
    assert_eq!(
        (second.header("x-ms-blob-append-offset"), second.header("x-ms-blob-committed-block-count")),
        ("4", "2")
    );
    assert_eq!(blob.get().await.expect(200).text(), "one,two");
    assert_eq!(blob.get().header("range", "bytes=2-5").await.expect(206).text(), "e,tw");
    let head = blob.head().await.expect(200);
    assert_eq!((head.header("x-ms-blob-type"), head.header("x-ms-blob-committed-block-count")), ("AppendBlob", "2"));
    assert_eq!((head.header("content-length"), head.header("content-type")), ("7", "text/plain"));
    assert_eq!((head.header("x-ms-meta-by"), head.etag()), ("ann", second.etag()));
    assert!(head.headers.get("x-ms-blob-sealed").is_none() && head.headers.get("x-ms-access-tier").is_none());

    let sealed = blob.seal().await.expect(200);
    assert_eq!(sealed.header("x-ms-blob-sealed"), "true");
    blob.append("three").await.refused(409, "BlobIsSealed");
    assert_eq!(blob.seal().header("x-ms-blob-condition-appendpos", "7").await.expect(200).etag(), sealed.etag());
    assert_eq!(blob.head().await.expect(200).header("x-ms-blob-sealed"), "true");
    assert_eq!(blob.get().await.expect(200).header("x-ms-blob-sealed"), "true");
    blob.set_metadata("by", "bob").await.expect(200);
    let listed = container.list("").await.expect(200).text();
    assert!(listed.contains("<BlobType>AppendBlob</BlobType><LeaseStatus>"), "{listed}");
    assert!(listed.contains("<ServerEncrypted>true</ServerEncrypted><Sealed>true</Sealed>"), "{listed}");

    blob.create_append().await.expect(201);
    let anew = blob.head().await.expect(200);
    assert_eq!((anew.header("content-length"), anew.header("x-ms-blob-committed-block-count")), ("0", "0"));
    assert!(anew.headers.get("x-ms-blob-sealed").is_none());
    blob.get().header("range", "bytes=0-").await.refused(416, "InvalidRange");
}

#[tokio::test]
async fn every_documented_error_of_append_blobs() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("logs").await;
    let (blob, block, leased) = (container.blob("append"), container.blob("block"), container.blob("leased"));
    blob.create_append().await.expect(201);
    blob.append("1234").await.expect(201);
    block.put("1234").await.expect(201);
    leased.create_append().await.expect(201);
    leased.acquire_lease(-1).await.expect(201);
    let (absent, elsewhere) = (container.blob("absent"), lazuli.existing("nowhere").blob("b"));
    let before = blob.head().await.expect(200).etag();
    let id = "11111111-2222-3333-4444-555555555555";
    let other = "XrY7u+Ae7tCTyyK7j1rNww==";
    let at = "x-ms-blob-condition-appendpos";
    let max = "x-ms-blob-condition-maxsize";
    let old = "x-ms-version";
    let cases = [
        ("create with a body", blob.create_append().body("x"), 400, "InvalidHeaderValue"),
        ("create where none may be", blob.create_append().header("if-none-match", "*"), 409, "BlobAlreadyExists"),
        ("create over another version", blob.create_append().header("if-match", "\"0x1\""), 412, "ConditionNotMet"),
        ("create over a block blob", block.create_append(), 409, "InvalidBlobType"),
        ("a block blob over it", blob.put("x"), 409, "InvalidBlobType"),
        ("create in no container", elsewhere.create_append(), 404, "ContainerNotFound"),
        ("create without the lease", leased.create_append(), 412, "LeaseIdMissing"),
        ("append to nothing", absent.append("x"), 404, "BlobNotFound"),
        ("append in no container", elsewhere.append("x"), 404, "ContainerNotFound"),
        ("append to a block blob", block.append("x"), 409, "InvalidBlobType"),
        ("append nothing", blob.append(""), 400, "InvalidHeaderValue"),
        ("append elsewhere", blob.append("x").header(at, "3"), 412, "AppendPositionConditionNotMet"),
        ("append too much", blob.append("x").header(max, "4"), 412, "MaxBlobSizeConditionNotMet"),
        ("position is no number", blob.append("x").header(at, "-1"), 400, "InvalidHeaderValue"),
        ("size is no number", blob.append("x").header(max, "1e3"), 400, "InvalidHeaderValue"),
        ("append to another version", blob.append("x").header("if-match", "\"0x1\""), 412, "ConditionNotMet"),
        ("append to this version", blob.append("x").header("if-none-match", before.as_str()), 412, "ConditionNotMet"),
        (
            "two conditions that contradict",
            blob.append("x").header("if-match", "a").header("if-none-match", "b"),
            400,
            "MultipleConditionHeadersNotSupported",
        ),
        ("append without the lease", leased.append("x"), 412, "LeaseIdMissing"),
        ("another lease", leased.append("x").header("x-ms-lease-id", id), 412, "LeaseIdMismatchWithBlobOperation"),
        ("a lease on none", blob.append("x").header("x-ms-lease-id", id), 412, "LeaseNotPresentWithBlobOperation"),
        (
            "the lease before the kind",
            block.append("x").header("x-ms-lease-id", id),
            412,
            "LeaseNotPresentWithBlobOperation",
        ),
        ("the condition before the lease", leased.append("x").header("if-match", "\"0x1\""), 412, "ConditionNotMet"),
        ("the kind before the position", block.append("x").header(at, "9"), 409, "InvalidBlobType"),
        ("MD5 of another body", blob.append("x").header("content-md5", other), 400, "Md5Mismatch"),
        ("MD5 is none", blob.append("x").header("content-md5", "AAAA"), 400, "InvalidMd5"),
        ("CRC of another body", blob.append("x").header("x-ms-content-crc64", "AAAAAAAAAAA="), 400, "Crc64Mismatch"),
        (
            "two sums",
            blob.append("x").header("content-md5", other).header("x-ms-content-crc64", "AAAAAAAAAAA="),
            400,
            "BothCrc64AndMd5HeaderPresent",
        ),
        (
            "more than an old version takes",
            blob.append(vec![0; 4 * MIB + 1]).header(old, "2021-12-02"),
            413,
            "RequestBodyTooLarge",
        ),
        ("seal nothing", absent.seal(), 404, "BlobNotFound"),
        ("seal a block blob", block.seal(), 409, "InvalidBlobType"),
        ("seal elsewhere", blob.seal().header(at, "3"), 412, "AppendPositionConditionNotMet"),
        ("seal another version", blob.seal().header("if-match", "\"0x1\""), 412, "ConditionNotMet"),
        ("seal without the lease", leased.seal(), 412, "LeaseIdMissing"),
        ("a block for an append blob", blob.put_block("AAAA", "x"), 409, "InvalidBlobType"),
        ("a list for an append blob", blob.put_block_list(&[]), 409, "InvalidBlobType"),
        ("the list of an append blob", blob.block_list(), 409, "InvalidBlobType"),
    ];
    for (what, request, status, code) in cases {
        let answer = request.await;
        assert_eq!((answer.status.as_u16(), answer.code()), (status, code), "{what}");
    }
    let after = blob.get().await.expect(200);
    assert_eq!((after.etag(), after.text()), (before, "1234".to_owned()), "nothing of it is kept");
    blob.append(vec![0; 4 * MIB + 1]).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_append_at_once_lose_nothing_and_get_the_places_they_are_told() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("logs").await.blob("shared");
    blob.create_append().await.expect(201);
    let writers = (0..64_usize).map(|writer| {
        let blob = blob.clone();
        tokio::spawn(async move {
            let mut told = Vec::new();
            for round in 0..8 {
                // Up to 10 000 bytes: some are kept as rows, some are not.
                let content =
                    format!("{writer:02}.{round};").into_bytes().repeat(1 + (writer * 37 + round * 911) % 2000);
                let answer = blob.append(content.clone()).await.expect(201);
                let offset: usize = answer.header("x-ms-blob-append-offset").parse().unwrap();
                let count: u32 = answer.header("x-ms-blob-committed-block-count").parse().unwrap();
                told.push((offset, count, content));
            }
            told
        })
    });
    let told: Vec<_> = join_all(writers).await.into_iter().flat_map(Result::unwrap).collect();
    let by_offset: BTreeMap<usize, _> =
        told.iter().map(|(offset, count, content)| (*offset, (*count, content))).collect();
    assert_eq!(by_offset.len(), 64 * 8, "every place is given once");
    let mut expected = Vec::new();
    for (at, (offset, (count, content))) in by_offset.into_iter().enumerate() {
        assert_eq!((offset, count as usize), (expected.len(), at + 1), "places join, and the count follows them");
        expected.extend_from_slice(content);
    }
    assert!(blob.get().await.expect(200).body == expected, "every block is where its writer was told");
}
