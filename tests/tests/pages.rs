//! Page blobs over a real socket.

use lazuli_tests::disk::payload_becomes;
use lazuli_tests::harness::{Blob, Lazuli};
use lazuli_tests::process::Start;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const TIB: u64 = 1024 * 1024 * MIB;
const SEQUENCE: &str = "x-ms-blob-sequence-number";

fn pages(number: u8, count: usize) -> Vec<u8> {
    vec![number; count * 512]
}

/// The page ranges of a blob, as pairs of first and last byte.
async fn listed(blob: &Blob, query: &str) -> String {
    let list = blob.page_list(query).await.expect(200).text();
    let list = list.split_once("<PageList>").map(|(_, list)| list.to_owned()).unwrap_or_default();
    let list = list.replace("<PageRange><Start>", "").replace("</Start><End>", "-").replace("</End></PageRange>", " ");
    list.replace("</PageList>", "").trim_end().to_owned()
}

#[tokio::test]
async fn a_page_blob_is_zeros_until_it_is_written_and_again_when_it_is_cleared() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("disks").await;
    let blob = container.blob("disk.vhd");
    let created = blob.create_pages(4 * KIB).header(SEQUENCE, "7").header("x-ms-meta-by", "ann").await.expect(201);
    assert_eq!(created.header("x-ms-request-server-encrypted"), "true");
    assert_eq!(blob.get().await.expect(200).body, vec![0; 4096]);
    assert_eq!(listed(&blob, "").await, "");

    let put = blob.put_pages(512, pages(1, 2)).await.expect(201);
    assert_eq!(put.header(SEQUENCE), "7");
    assert!(!put.header("x-ms-content-crc64").is_empty() && !put.header("last-modified").is_empty());
    assert_ne!(put.etag(), created.etag());
    blob.put_pages(1024, pages(2, 1)).header("if-match", put.etag()).await.expect(201);
    blob.put_pages(3584, pages(3, 1)).await.expect(201);
    let expected = [pages(0, 1), pages(1, 1), pages(2, 1), pages(0, 4), pages(3, 1)].concat();
    let whole = blob.get().await.expect(200);
    assert!(whole.body == expected);
    assert_eq!((whole.header("x-ms-blob-type"), whole.header(SEQUENCE)), ("PageBlob", "7"));
    assert_eq!(blob.get().header("range", "bytes=500-1100").await.expect(206).body, expected[500..=1100]);
    assert_eq!(listed(&blob, "").await, "512-1535 3584-4095");

    let cleared = blob.clear_pages(0, 1024).await.expect(201);
    assert_eq!(cleared.header(SEQUENCE), "7");
    assert_eq!(listed(&blob, "").await, "1024-1535 3584-4095");
    let list = blob.page_list("").await.expect(200);
    assert_eq!((list.etag(), list.header("x-ms-blob-content-length")), (cleared.etag(), "4096"));
    assert_eq!(list.header("content-type"), "application/xml");
    assert_eq!(listed(&blob, "&maxresults=1").await, "1024-1535 <NextMarker>3584</NextMarker>");
    assert_eq!(listed(&blob, "&maxresults=1&marker=3584").await, "3584-4095");
    assert_eq!(listed(&blob, &format!("&marker={}", u64::MAX)).await, "");
    let part = blob.page_list("").header("x-ms-range", "bytes=0-1100").await.expect(200).text();
    assert!(part.contains("<PageRange><Start>1024</Start><End>1535</End></PageRange></PageList>"), "{part}");

    let head = blob.head().await.expect(200);
    assert_eq!((head.header("x-ms-blob-type"), head.header(SEQUENCE)), ("PageBlob", "7"));
    assert_eq!((head.header("content-length"), head.header("x-ms-meta-by")), ("4096", "ann"));
    let shown = container.list("").await.expect(200).text();
    assert!(shown.contains("<x-ms-blob-sequence-number>7</x-ms-blob-sequence-number><BlobType>PageBlob</BlobType>"));
    blob.create_pages(1024).await.expect(201);
    assert_eq!(blob.get().await.expect(200).body, vec![0; 1024]);
    blob.create_pages(0).await.expect(201);
    assert_eq!(blob.get().await.expect(200).body, vec![0; 0]);
    assert_eq!(listed(&blob, "").await, "");
}

#[tokio::test]
async fn sequence_numbers_move_as_told_and_guard_writes() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("disks").await.blob("disk");
    blob.create_pages(1024).header("x-ms-blob-content-type", "disk/x").await.expect(201);
    let set = |action, number: &str| {
        let request = blob.request("PUT", "?comp=properties").header("x-ms-sequence-number-action", action);
        request.header(SEQUENCE, number)
    };
    for (action, number, expected) in
        [("update", "5", "5"), ("max", "3", "5"), ("max", "8", "8"), ("increment", "", "9"), ("update", "1", "1")]
    {
        assert_eq!(set(action, number).await.expect(200).header(SEQUENCE), expected, "{action} {number}");
    }
    assert_eq!(blob.head().await.expect(200).header("content-type"), "disk/x", "the properties stay");
    let guard = |name: &str, bound: &str| {
        let name = format!("x-ms-if-sequence-number-{name}");
        [blob.put_pages(0, pages(1, 1)).header(&name, bound), blob.clear_pages(512, 512).header(&name, bound)]
    };
    for (name, bound, holds) in [
        ("le", "1", true),
        ("le", "0", false),
        ("lt", "2", true),
        ("lt", "1", false),
        ("eq", "1", true),
        ("eq", "2", false),
    ] {
        for request in guard(name, bound) {
            let answer = request.await;
            if holds {
                answer.expect(201);
            } else {
                answer.refused(412, "SequenceNumberConditionNotMet");
            }
        }
    }
    set("update", "9223372036854775807").await.expect(200);
    set("increment", "").await.refused(409, "SequenceNumberIncrementTooLarge");
    let described = blob.request("PUT", "?comp=properties").header("x-ms-blob-content-type", "disk/y");
    assert_eq!(described.await.expect(200).header(SEQUENCE), "9223372036854775807");
    let both = blob.resize(2048).header("x-ms-sequence-number-action", "update").header(SEQUENCE, "2");
    assert_eq!(both.header("x-ms-blob-content-language", "de").await.expect(200).header(SEQUENCE), "2");
    let head = blob.head().await.expect(200);
    assert_eq!((head.header("content-length"), head.header("content-language")), ("2048", "de"));
    assert_eq!(head.header("content-type"), "", "one property set clears the others");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sparse_blob_costs_what_was_written_and_what_is_cut_off_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Start::at(directory.path()).ready().await;
    let container = server.service().container("disks").await;
    let blob = container.blob("sparse");
    blob.create_pages(TIB).await.expect(201);
    for (number, first) in [(1, 0), (2, TIB / 2 - 512), (3, TIB - MIB)] {
        blob.put_pages(first, vec![number; 1 << 20]).await.expect(201);
    }
    payload_becomes(directory.path(), 3 * MIB).await;
    let last = TIB - 1;
    let ends = format!("0-{} {}-{} {}-{last}", MIB - 1, TIB / 2 - 512, TIB / 2 - 513 + MIB, TIB - MIB);
    assert_eq!(listed(&blob, "").await, ends);
    let around = blob.get().header("range", format!("bytes={}-{}", TIB / 2 - 1024, TIB / 2)).await.expect(206);
    assert_eq!(around.body, [vec![0; 512], vec![2; 513]].concat());
    server.kill().await;
    server = Start::at(directory.path()).ready().await;
    let blob = server.service().existing("disks").blob("sparse");
    assert_eq!(listed(&blob, "").await, ends);

    blob.resize(MIB / 2).await.expect(200);
    assert_eq!(blob.get().await.expect(200).body, vec![1; 1 << 19]);
    blob.resize(TIB).await.expect(200);
    assert_eq!(listed(&blob, "").await, format!("0-{}", MIB / 2 - 1));
    let beyond = blob.get().header("range", format!("bytes={}-{}", MIB / 2 - 1, MIB / 2)).await.expect(206);
    assert_eq!(beyond.body, [1, 0].as_slice());
    payload_becomes(directory.path(), MIB).await;
    blob.clear_pages(0, TIB).await.expect(201);
    assert_eq!(listed(&blob, "").await, "");
    payload_becomes(directory.path(), 0).await;
    assert!(server.terminate().await.status.success());
}

#[tokio::test]
async fn a_large_clear_and_a_large_read_go_over_many_cells() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("disks").await.blob("dense");
    let length = 64 * MIB;
    blob.create_pages(length).await.expect(201);
    for first in (0..length).step_by(4 << 20) {
        blob.put_pages(first, vec![7; 4 << 20]).await.expect(201);
    }
    assert_eq!(listed(&blob, "").await, format!("0-{}", length - 1));
    let whole = blob.get().await.expect(200);
    assert!(whole.body.len() as u64 == length && whole.body.iter().all(|byte| *byte == 7));
    blob.clear_pages(512, length - 1024).await.expect(201);
    assert_eq!(listed(&blob, "").await, format!("0-511 {}-{}", length - 512, length - 1));
    let whole = blob.get().await.expect(200).body;
    assert!(whole[512..whole.len() - 512].iter().all(|byte| *byte == 0) && whole[511] == 7);
    blob.put_pages(MIB, pages(9, 8)).await.expect(201);
    assert_eq!(listed(&blob, "").await, format!("0-511 {MIB}-{} {}-{}", MIB + 4095, length - 512, length - 1));
}

#[tokio::test]
async fn every_documented_error_of_page_blobs() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("disks").await;
    let (blob, block, leased) = (container.blob("page"), container.blob("block"), container.blob("leased"));
    blob.create_pages(2048).header(SEQUENCE, "4").await.expect(201);
    blob.put_pages(0, pages(1, 1)).await.expect(201);
    block.put("1234").await.expect(201);
    leased.create_pages(1024).await.expect(201);
    leased.acquire_lease(-1).await.expect(201);
    let (absent, elsewhere) = (container.blob("absent"), lazuli.existing("nowhere").blob("b"));
    let before = (blob.head().await.expect(200).etag(), blob.get().await.expect(200).body);
    let put = || blob.put_pages(512, pages(2, 1));
    let range = |text: &str| put().header("x-ms-range", text);
    let action = |action: &str, number: &str| {
        let set = blob.request("PUT", "?comp=properties").header("x-ms-sequence-number-action", action);
        set.header(SEQUENCE, number)
    };
    let on_block = block.request("PUT", "?comp=properties").header("x-ms-sequence-number-action", "increment");
    let stale = "\"0x1\"";
    let other = "XrY7u+Ae7tCTyyK7j1rNww==";
    let id = "11111111-2222-3333-4444-555555555555";
    let equal = "x-ms-if-sequence-number-eq";
    let cases = [
        ("create with a body", blob.create_pages(512).body("x"), 400, "InvalidHeaderValue"),
        (
            "create without a length",
            blob.create_pages(0).header("x-ms-blob-content-length", ""),
            400,
            "MissingRequiredHeader",
        ),
        ("create half a page", blob.create_pages(256), 400, "InvalidHeaderValue"),
        ("create more than 8 TiB", blob.create_pages(8 * TIB + 512), 400, "InvalidHeaderValue"),
        ("create with no sequence number", blob.create_pages(512).header(SEQUENCE, "-1"), 400, "InvalidHeaderValue"),
        ("create where none may be", blob.create_pages(512).header("if-none-match", "*"), 409, "BlobAlreadyExists"),
        ("create over a block blob", block.create_pages(512), 409, "InvalidBlobType"),
        ("an append blob over it", blob.create_append(), 409, "InvalidBlobType"),
        ("create without the lease", leased.create_pages(512), 412, "LeaseIdMissing"),
        ("a sequence number of a block blob", block.put("x").header(SEQUENCE, "1"), 400, "UnsupportedHeader"),
        ("put into nothing", absent.put_pages(0, pages(1, 1)), 404, "BlobNotFound"),
        ("put in no container", elsewhere.put_pages(0, pages(1, 1)), 404, "ContainerNotFound"),
        ("put into a block blob", block.put_pages(0, pages(1, 1)), 409, "InvalidBlobType"),
        ("put over the end", blob.put_pages(1536, pages(1, 2)), 416, "InvalidPageRange"),
        ("put beyond the end", blob.put_pages(2048, pages(1, 1)), 416, "InvalidPageRange"),
        ("put from the middle of a page", blob.put_pages(100, pages(1, 1)), 416, "InvalidPageRange"),
        ("put half a page", blob.put_pages(0, vec![1; 256]), 416, "InvalidPageRange"),
        ("put without a range", range(""), 400, "MissingRequiredHeader"),
        ("put to an open range", range("bytes=512-"), 400, "InvalidHeaderValue"),
        ("put to nonsense", range("pages=1"), 400, "InvalidHeaderValue"),
        ("put less than announced", range("bytes=512-1535"), 400, "InvalidHeaderValue"),
        ("put nothing", put().body(""), 400, "InvalidHeaderValue"),
        ("put more than 4 MiB", put().body(vec![0; (4 << 20) + 512]), 413, "RequestBodyTooLarge"),
        ("neither update nor clear", put().header("x-ms-page-write", "append"), 400, "InvalidHeaderValue"),
        ("nothing said", put().header("x-ms-page-write", ""), 400, "MissingRequiredHeader"),
        ("put to another version", put().header("if-match", stale), 412, "ConditionNotMet"),
        ("put without the lease", leased.put_pages(0, pages(1, 1)), 412, "LeaseIdMissing"),
        ("a lease on none", put().header("x-ms-lease-id", id), 412, "LeaseNotPresentWithBlobOperation"),
        ("another sequence number", put().header(equal, "3"), 412, "SequenceNumberConditionNotMet"),
        ("sequence number is none", put().header(equal, "many"), 400, "InvalidHeaderValue"),
        ("sequence number below zero", put().header(equal, "-1"), 400, "InvalidInput"),
        (
            "the kind before the sequence number",
            block.put_pages(0, pages(1, 1)).header(equal, "3"),
            409,
            "InvalidBlobType",
        ),
        ("MD5 of another body", put().header("content-md5", other), 400, "Md5Mismatch"),
        ("CRC of another body", put().header("x-ms-content-crc64", "AAAAAAAAAAA="), 400, "Crc64Mismatch"),
        ("clear with a body", blob.clear_pages(0, 512).body("x"), 400, "InvalidHeaderValue"),
        ("clear over the end", blob.clear_pages(0, 4096), 416, "InvalidPageRange"),
        ("clear half a page", blob.clear_pages(0, 100), 416, "InvalidPageRange"),
        ("clear nothing", absent.clear_pages(0, 512), 404, "BlobNotFound"),
        ("clear a block blob", block.clear_pages(0, 512), 409, "InvalidBlobType"),
        ("clear without the lease", leased.clear_pages(0, 512), 412, "LeaseIdMissing"),
        ("list nothing", absent.page_list(""), 404, "BlobNotFound"),
        ("list a block blob", block.page_list(""), 409, "InvalidBlobType"),
        ("list beyond the end", blob.page_list("").header("range", "bytes=2048-"), 416, "InvalidRange"),
        ("list none", blob.page_list("&maxresults=0"), 400, "OutOfRangeQueryParameterValue"),
        ("list from nowhere", blob.page_list("&marker=x"), 400, "InvalidQueryParameterValue"),
        ("list another version", blob.page_list("").header("if-match", stale), 412, "ConditionNotMet"),
        ("resize to half a page", blob.resize(100), 400, "InvalidHeaderValue"),
        ("resize a block blob", block.resize(512), 409, "InvalidBlobType"),
        ("resize nothing", absent.resize(512), 404, "BlobNotFound"),
        ("resize without the lease", leased.resize(512), 412, "LeaseIdMissing"),
        ("unknown action", action("decrement", ""), 400, "InvalidHeaderValue"),
        ("update without a number", action("update", ""), 400, "MissingRequiredHeader"),
        ("increment with a number", action("increment", "3"), 400, "InvalidHeaderValue"),
        ("a number without an action", blob.resize(512).header(SEQUENCE, "3"), 400, "MissingRequiredHeader"),
        ("an action on a block blob", on_block, 409, "InvalidBlobType"),
        ("a block for a page blob", blob.put_block("AAAA", "x"), 409, "InvalidBlobType"),
        ("a list for a page blob", blob.put_block_list(&[]), 409, "InvalidBlobType"),
        ("the list of a page blob", blob.block_list(), 409, "InvalidBlobType"),
        ("an append to a page blob", blob.append("x"), 409, "InvalidBlobType"),
        ("a block blob over a page blob", blob.put("x"), 409, "InvalidBlobType"),
    ];
    for (what, request, status, code) in cases {
        let answer = request.await;
        assert_eq!((answer.status.as_u16(), answer.code()), (status, code), "{what}");
    }
    assert_eq!((blob.head().await.expect(200).etag(), blob.get().await.expect(200).body), before, "nothing is kept");
}

/// What differs from an earlier snapshot: written ranges, and cleared ones in brackets.
async fn differing(blob: &Blob, query: &str) -> String {
    let list = listed(blob, query).await;
    list.replace("<ClearRange><Start>", "[").replace("</End></ClearRange>", "] ").trim_end().to_owned()
}

#[tokio::test]
async fn what_changed_since_a_snapshot_is_listed_and_the_snapshot_stays() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("disks").await;
    let blob = container.blob("disk one");
    blob.create_pages(MIB).await.expect(201);
    blob.put_pages(0, pages(1, 4)).await.expect(201);
    let snapshot = async || {
        let taken = blob.request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned();
        lazuli.clock.advance(std::time::Duration::from_secs(1));
        taken
    };
    let first = snapshot().await;
    assert_eq!(differing(&blob, &format!("&prevsnapshot={first}")).await, "");
    blob.clear_pages(0, 512).await.expect(201);
    blob.put_pages(512, pages(2, 1)).await.expect(201);
    blob.put_pages(100 * 512, pages(3, 60)).await.expect(201);
    let changes = "[0-511] 512-1023 51200-81919";
    assert_eq!(differing(&blob, &format!("&prevsnapshot={first}")).await, changes);
    let second = snapshot().await;
    blob.put_pages(2048, pages(4, 1)).await.expect(201);
    blob.resize(MIB / 2).await.expect(200);
    assert_eq!(differing(&blob, &format!("&prevsnapshot={second}")).await, "2048-2559");
    assert_eq!(differing(&blob, &format!("&snapshot={second}&prevsnapshot={first}")).await, changes);
    assert_eq!(
        differing(&blob, &format!("&prevsnapshot={first}&maxresults=1")).await,
        "[0-511] <NextMarker>512</NextMarker>"
    );
    let old = blob.request("GET", &format!("?snapshot={first}")).await.expect(200).body;
    assert!(old.len() as u64 == MIB && old[..2048] == pages(1, 4) && old[2048..].iter().all(|byte| *byte == 0));
    assert_eq!(listed(&blob, &format!("&snapshot={first}")).await, "0-2047");

    let url = |blob: &Blob, query: &str| format!("http://{}{}{query}", lazuli.client().address(), blob.name());
    let by_url = |url: String| blob.page_list("").header("x-ms-previous-snapshot-url", url);
    let list = by_url(url(&blob, &format!("?snapshot={second}"))).await.expect(200).text();
    assert!(list.contains("<PageList><PageRange><Start>2048</Start><End>2559</End></PageRange></PageList>"), "{list}");
    let plain = container.blob("block");
    plain.put("1").await.expect(201);
    let cases = [
        ("a snapshot of another blob", by_url(url(&plain, &format!("?snapshot={second}"))), 400, "InvalidHeaderValue"),
        ("a URL without a snapshot", by_url(url(&blob, "")), 400, "InvalidHeaderValue"),
        ("no URL", by_url("snapshot".into()), 400, "InvalidHeaderValue"),
        ("no instant", blob.page_list("&prevsnapshot=yesterday"), 400, "InvalidQueryParameterValue"),
        (
            "no such snapshot",
            blob.page_list("&prevsnapshot=2026-01-01T00:00:00.0000000Z"),
            409,
            "PreviousSnapshotNotFound",
        ),
        (
            "a newer one",
            blob.page_list(&format!("&snapshot={first}&prevsnapshot={second}")),
            400,
            "PreviousSnapshotCannotBeNewer",
        ),
        ("a block blob", plain.page_list(&format!("&prevsnapshot={first}")), 409, "InvalidBlobType"),
        (
            "a write to a snapshot",
            blob.request("PUT", &format!("?comp=page&snapshot={first}"))
                .header("x-ms-page-write", "clear")
                .header("range", "bytes=0-511"),
            400,
            "InvalidQueryParameterValue",
        ),
    ];
    for (what, request, status, code) in cases {
        let answer = request.await;
        assert_eq!((answer.status.as_u16(), answer.code()), (status, code), "{what}");
    }
    blob.delete().header("x-ms-delete-snapshots", "include").await.expect(202);
    blob.page_list("").await.refused(404, "BlobNotFound");
}

#[tokio::test]
async fn what_was_put_as_a_whole_since_is_not_compared() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("disks").await.blob("disk");
    let snapshot = async || {
        lazuli.clock.advance(std::time::Duration::from_secs(1));
        blob.request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned()
    };
    blob.create_pages(2048).await.expect(201);
    let empty = snapshot().await;
    blob.put_pages(0, pages(1, 1)).await.expect(201);
    blob.set_metadata("a", "b").await.expect(200);
    blob.resize(1024).await.expect(200);
    assert_eq!(differing(&blob, &format!("&prevsnapshot={empty}")).await, "0-511");
    let first = snapshot().await;
    blob.create_pages(2048).await.expect(201);
    let second = snapshot().await;
    blob.put_pages(512, pages(2, 1)).await.expect(201);
    let source = format!("http://{}{}?snapshot={first}", lazuli.client().address(), blob.name());
    for previous in [&empty, &first] {
        for part in [String::new(), format!("&snapshot={second}")] {
            let query = format!("{part}&prevsnapshot={previous}");
            blob.page_list(&query).await.refused(409, "BlobOverwritten");
        }
    }
    assert_eq!(differing(&blob, &format!("&snapshot={first}&prevsnapshot={empty}")).await, "0-511");
    assert_eq!(differing(&blob, &format!("&prevsnapshot={second}")).await, "512-1023");
    blob.request("PUT", "").header("x-ms-copy-source", source).await.expect(202);
    blob.page_list(&format!("&prevsnapshot={second}")).await.refused(409, "BlobOverwritten");
}

#[tokio::test]
async fn a_snapshot_of_an_append_blob_stays_as_long_as_it_was() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("logs").await.blob("log");
    blob.create_append().await.expect(201);
    blob.append("one,").await.expect(201);
    let taken = blob.request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned();
    blob.append("two").await.expect(201);
    let old = blob.request("GET", &format!("?snapshot={taken}")).await.expect(200);
    assert_eq!((old.text().as_str(), old.header("x-ms-blob-committed-block-count")), ("one,", "1"));
    assert_eq!(blob.get().await.expect(200).text(), "one,two");
    blob.request("PUT", &format!("?comp=appendblock&snapshot={taken}"))
        .body("x")
        .await
        .refused(400, "InvalidQueryParameterValue");
}

#[tokio::test]
async fn a_copy_leaves_a_tier_behind_that_is_too_small_for_it() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("disks").await;
    let (small, large) = (container.blob("small"), container.blob("large"));
    small.create_pages(512).await.expect(201);
    large.create_pages(64 * 1024 * 1024 * 1024).await.expect(201);
    small.request("PUT", "?comp=tier").header("x-ms-access-tier", "P4").await.expect(200);
    assert_eq!(small.head().await.header("x-ms-access-tier"), "P4");
    let address = format!("http://{}{}", lazuli.client().address(), large.name());
    let copy = || small.request("PUT", "").header("x-ms-copy-source", &*address);
    copy().header("x-ms-access-tier", "P4").await.refused(409, "BlobTierInadequateForContentLength");
    copy().await.expect(202);
    assert_ne!(small.head().await.header("x-ms-access-tier"), "P4");
}
