//! Blobs under keys that only their clients have, and encryption scopes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_engine::policy::AccountPolicy;
use lazuli_tests::harness::Lazuli;
use lazuli_tests::signed::Request;
use sha2::{Digest as _, Sha256};

/// The request with a key of this byte.
fn under(request: Request, key: u8) -> Request {
    let bytes = [key; 32];
    request
        .header("x-ms-encryption-key", STANDARD.encode(bytes))
        .header("x-ms-encryption-key-sha256", STANDARD.encode(Sha256::digest(bytes)))
        .header("x-ms-encryption-algorithm", "AES256")
}

/// The request with a key of this byte for the source of a copy.
fn from_under(request: Request, key: u8) -> Request {
    let bytes = [key; 32];
    request
        .header("x-ms-source-encryption-key", STANDARD.encode(bytes))
        .header("x-ms-source-encryption-key-sha256", STANDARD.encode(Sha256::digest(bytes)))
        .header("x-ms-source-encryption-algorithm", "AES256")
}

/// A request under a key, if there is one.
fn maybe(request: Request, key: Option<u8>, under: fn(Request, u8) -> Request) -> Request {
    match key {
        Some(key) => under(request, key),
        None => request,
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..=250u8).cycle().take(length).collect()
}

#[tokio::test]
async fn a_blob_under_a_key_is_read_with_that_key_alone() {
    const USES: &str = "BlobUsesCustomerSpecifiedEncryption";
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    // In a row, in one piece, in several pieces, and with a last frame that is not full.
    for length in [1, 4096, 4097, 65_536, 300_000, 9_000_001] {
        let blob = container.blob(&length.to_string());
        let content = pattern(length);
        let put = under(blob.put(content.clone()), 1).await.expect(201);
        assert_eq!(put.header("x-ms-encryption-key-sha256"), STANDARD.encode(Sha256::digest([1; 32])));
        let read = under(blob.get(), 1).await.expect(200);
        assert_eq!(read.body, content);
        assert_eq!(read.header("x-ms-encryption-key-sha256"), STANDARD.encode(Sha256::digest([1; 32])));
        let range = format!("bytes={}-{}", length / 3, length - 1);
        let part = under(blob.get(), 1).header("range", &range).await.expect(206);
        assert_eq!(part.body, content[length / 3..]);
        blob.get().await.refused(409, USES);
        under(blob.get(), 2).await.refused(409, USES);
        assert_eq!(blob.head().await.expect(409).header("x-ms-error-code"), USES);
        blob.set_metadata("a", "b").await.refused(409, USES);
        under(blob.set_metadata("a", "b"), 1).await.expect(200);
        blob.request("PUT", "?comp=snapshot").await.refused(409, USES);
        let snapshot = under(blob.request("PUT", "?comp=snapshot"), 1).await.expect(201);
        let snapshot = format!("?snapshot={}", snapshot.header("x-ms-snapshot"));
        blob.request("GET", &snapshot).await.refused(409, USES);
        assert_eq!(under(blob.request("GET", &snapshot), 1).await.expect(200).body, content);
    }
    let listing = container.list("&include=metadata").await.expect(200).text();
    assert!(listing.contains("<CustomerProvidedKeySha256>"), "{listing}");
    assert!(listing.contains("<Metadata Encrypted=\"true\"></Metadata>") && !listing.contains("<a>b</a>"), "{listing}");
    // What does not touch content and metadata needs no key.
    container.blob("1").acquire_lease(15).await.expect(201);
    container.blob("4096").request("PUT", "?comp=properties").header("x-ms-blob-content-type", "a/b").await.expect(200);
    container.blob("4097").delete().header("x-ms-delete-snapshots", "include").await.expect(202);
    container.blob("4096").put("plain again").await.expect(201);
    assert_eq!(container.blob("4096").get().await.expect(200).text(), "plain again");
    under(container.blob("4096").get(), 1).await.refused(409, "BlobDoesNotUseCustomerSpecifiedEncryption");
}

#[tokio::test]
async fn all_blocks_of_a_blob_are_under_one_key() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a");
    let (first, second) = (pattern(100_000), pattern(50));
    under(blob.put_block("1", first.clone()), 1).await.expect(201);
    blob.put_block("2", second.clone()).await.refused(409, "BlobUsesCustomerSpecifiedEncryption");
    under(blob.put_block("2", second.clone()), 2).await.refused(409, "BlobUsesCustomerSpecifiedEncryption");
    under(blob.put_block("2", second.clone()), 1).await.expect(201);
    blob.put_block_list(&["1", "2"]).await.refused(409, "BlobUsesCustomerSpecifiedEncryption");
    under(blob.put_block_list(&["1", "2"]), 1).await.expect(201);
    assert_eq!(under(blob.get(), 1).await.expect(200).body, [first.clone(), second].concat());
    // The committed blocks go on under the same key only.
    under(blob.put_block_list(&["1"]), 2).await.refused(409, "BlobUsesCustomerSpecifiedEncryption");
    under(blob.put_block_list(&["1"]), 1).await.expect(201);
    assert_eq!(under(blob.get(), 1).await.expect(200).body, first);
    blob.request("PUT", "?comp=blocklist").body("<BlockList/>").await.expect(201);
    blob.get().await.expect(200);
}

#[tokio::test]
async fn a_key_is_whole_or_refused_and_never_repeated() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a");
    let key = STANDARD.encode([1; 32]);
    let hash = STANDARD.encode(Sha256::digest([1; 32]));
    let put = || blob.put("text");
    put().header("x-ms-encryption-key", &key).await.refused(400, "MissingRequiredHeader");
    put().header("x-ms-encryption-key-sha256", &hash).await.refused(400, "MissingRequiredHeader");
    let both = || put().header("x-ms-encryption-key", &key).header("x-ms-encryption-key-sha256", &hash);
    both().await.refused(400, "MissingRequiredHeader");
    both().header("x-ms-encryption-algorithm", "AES128").await.refused(400, "InvalidHeaderValue");
    let short = put().header("x-ms-encryption-key", STANDARD.encode([7; 31])).await;
    assert!(!short.text().contains(&STANDARD.encode([7; 31])));
    short.refused(400, "InvalidHeaderValue");
    let other = STANDARD.encode([2; 32]);
    let wrong = put().header("x-ms-encryption-key", &key).header("x-ms-encryption-key-sha256", &other);
    wrong.header("x-ms-encryption-algorithm", "AES256").await.refused(400, "InvalidHeaderValue");
    blob.get().await.refused(404, "BlobNotFound");
}

#[tokio::test]
async fn blobs_are_under_scopes_that_the_account_has() {
    const SCOPE: &str = "x-ms-encryption-scope";
    let lazuli = Lazuli::start().await;
    let scopes = vec!["one".to_owned(), "two".to_owned()];
    lazuli.set_policy(AccountPolicy { encryption_scopes: scopes, ..AccountPolicy::default() });

    let open = lazuli.existing("open");
    open.create().header("x-ms-default-encryption-scope", "one").await.expect(201);
    let blob = open.blob("a");
    blob.put("text").header(SCOPE, "three").await.refused(400, "InvalidHeaderValue");
    under(blob.put("text"), 1).header(SCOPE, "two").await.refused(400, "InvalidInput");
    blob.put("text").await.expect(201);
    assert_eq!(blob.head().await.expect(200).header(SCOPE), "one");
    for write in [blob.set_metadata("a", "b"), blob.request("PUT", "?comp=snapshot"), blob.put_block("1", "text")] {
        write.header(SCOPE, "three").await.refused(400, "InvalidHeaderValue");
    }
    assert_eq!(blob.put("text").header(SCOPE, "two").await.expect(201).header(SCOPE), "two");
    assert_eq!(blob.get().await.expect(200).header(SCOPE), "two");
    assert!(open.list("").await.expect(200).text().contains("<EncryptionScope>two</EncryptionScope>"));

    let fixed = lazuli.existing("fixed");
    let create = || fixed.create().header("x-ms-deny-encryption-scope-override", "true");
    create().await.refused(400, "MissingRequiredHeader");
    create().header("x-ms-default-encryption-scope", "three").await.refused(400, "InvalidHeaderValue");
    create().header("x-ms-default-encryption-scope", "one").await.expect(201);
    let read = fixed.request("GET", "").await.expect(200);
    assert_eq!(read.header("x-ms-default-encryption-scope"), "one");
    assert_eq!(read.header("x-ms-deny-encryption-scope-override"), "true");
    let denied = "RequestForbiddenByContainerEncryptionPolicy";
    fixed.blob("a").put("text").header(SCOPE, "two").await.refused(403, denied);
    under(fixed.blob("a").put("text"), 1).await.refused(403, denied);
    fixed.blob("a").put("text").header(SCOPE, "one").await.expect(201);
    fixed.blob("a").put("text").await.expect(201);
}

#[tokio::test]
async fn a_blob_under_a_key_is_no_source_of_a_copy() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let (sealed, plain) = (container.blob("sealed"), container.blob("plain"));
    under(sealed.put(pattern(5000)), 1).await.expect(201);
    plain.put("text").await.expect(201);
    let address = |name: &str| format!("http://{}{}", lazuli.client().address(), name);
    let uses = "BlobUsesCustomerSpecifiedEncryption";
    let copy = |source: String| container.blob("copy").request("PUT", "").header("x-ms-copy-source", source);
    copy(address(sealed.name())).await.refused(409, uses);
    copy(address(sealed.name())).header("x-ms-requires-sync", "true").await.refused(409, uses);
    copy(address(sealed.name())).header("x-ms-blob-type", "BlockBlob").await.refused(409, uses);
    let block = container.blob("copy").request("PUT", "?comp=block&blockid=AAAA");
    block.header("x-ms-copy-source", address(sealed.name())).await.refused(409, uses);
    for header in [("x-ms-requires-sync", "true"), ("x-ms-requires-sync", "false")] {
        under(copy(address(plain.name())), 1).header(header.0, header.1).await.refused(400, "UnsupportedHeader");
        let from = from_under(copy(address(sealed.name())), 1).header(header.0, header.1);
        from.await.refused(400, "UnsupportedHeader");
    }
    container.blob("copy").get().await.refused(404, "BlobNotFound");
}

/// The keys of source and target.
const KEYS: [(Option<u8>, Option<u8>); 4] = [(None, Some(1)), (Some(1), None), (Some(1), Some(1)), (Some(1), Some(2))];

#[tokio::test]
async fn a_copy_within_the_request_goes_from_one_key_to_another() {
    let (lazuli, elsewhere) = (Lazuli::start().await, Lazuli::start().await);
    let (here, there) = (lazuli.container("photos").await, elsewhere.existing("photos"));
    there.create().header("x-ms-blob-public-access", "blob").await.expect(201);
    let target = here.blob("target");
    for (server, container) in [(&lazuli, &here), (&elsewhere, &there)] {
        for (from, to) in KEYS {
            for length in [5, 4096, 300_000] {
                let (source, content) = (container.blob("source"), pattern(length));
                maybe(source.put(content.clone()), from, under).await.expect(201);
                let url = format!("http://{}{}", server.client().address(), source.name());
                let put = target.request("PUT", "").header("x-ms-blob-type", "BlockBlob");
                let put = maybe(put.header("x-ms-copy-source", &url), from, from_under);
                let put = maybe(put, to, under).await.expect(201);
                let sha256 = to.map(|key| STANDARD.encode(Sha256::digest([key; 32]))).unwrap_or_default();
                assert_eq!(put.header("x-ms-encryption-key-sha256"), sha256);
                assert_eq!(maybe(target.get(), to, under).await.expect(200).body, content, "{from:?} {to:?}");
                if to.is_some() {
                    target.get().await.refused(409, "BlobUsesCustomerSpecifiedEncryption");
                }
            }
        }
    }
}

#[tokio::test]
async fn parts_come_from_a_url_under_the_keys_of_both_sides() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let (source, content) = (container.blob("source"), pattern(300_000));
    let url = format!("http://{}{}", lazuli.client().address(), source.name());
    for (from, to) in KEYS {
        maybe(source.put(content.clone()), from, under).await.expect(201);
        let part = |request: Request, range: &str| {
            let request = request.header("x-ms-copy-source", &url).header("x-ms-source-range", range);
            maybe(maybe(request, from, from_under), to, under)
        };
        let blob = container.blob("blocks");
        part(blob.request("PUT", "?comp=block&blockid=AAAA"), "bytes=0-299999").await.expect(201);
        part(blob.request("PUT", "?comp=block&blockid=BBBB"), "bytes=70000-70099").await.expect(201);
        let list = "<BlockList><Latest>BBBB</Latest><Latest>AAAA</Latest></BlockList>";
        maybe(blob.request("PUT", "?comp=blocklist").body(list), to, under).await.expect(201);
        let read = maybe(blob.get(), to, under).await.expect(200);
        assert!(read.body == [&content[70_000..70_100], &content].concat(), "{from:?} {to:?}");
        let log = container.blob("log");
        maybe(log.create_append(), to, under).await.expect(201);
        part(log.request("PUT", "?comp=appendblock"), "bytes=100-100099").await.expect(201);
        assert!(maybe(log.get(), to, under).await.expect(200).body == content[100..100_100]);
        let disk = container.blob("disk");
        maybe(disk.create_pages(1024), to, under).await.expect(201);
        let page = disk.request("PUT", "?comp=page").header("x-ms-page-write", "update");
        part(page.header("x-ms-range", "bytes=512-1023"), "bytes=512-1023").await.expect(201);
        let read = maybe(disk.get(), to, under).await.expect(200);
        assert!(read.body == [&[0; 512], &content[512..1024]].concat());
        for blob in [blob, log, disk] {
            blob.delete().await.expect(202);
        }
    }
}

#[tokio::test]
async fn a_source_is_read_with_its_own_key_alone() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let (sealed, plain) = (container.blob("sealed"), container.blob("plain"));
    under(sealed.put("text"), 1).await.expect(201);
    plain.put("text").await.expect(201);
    let target = container.blob("target");
    let put = |source: &lazuli_tests::harness::Blob| {
        let url = format!("http://{}{}", lazuli.client().address(), source.name());
        target.request("PUT", "").header("x-ms-blob-type", "BlockBlob").header("x-ms-copy-source", url)
    };
    put(&sealed).await.refused(409, "BlobUsesCustomerSpecifiedEncryption");
    under(put(&sealed), 1).await.refused(409, "BlobUsesCustomerSpecifiedEncryption");
    from_under(put(&sealed), 2).await.refused(409, "BlobUsesCustomerSpecifiedEncryption");
    from_under(put(&plain), 1).await.refused(409, "BlobDoesNotUseCustomerSpecifiedEncryption");
    let half = put(&sealed).header("x-ms-source-encryption-key", STANDARD.encode([1; 32]));
    half.await.refused(400, "MissingRequiredHeader");
    let wrong = from_under(put(&sealed), 1).header("x-ms-source-encryption-algorithm", "AES128");
    wrong.await.refused(400, "InvalidHeaderValue");
    target.head().await.expect(404);
    // The digest that the call states is of the bytes, not of what is stored.
    let stated = under(from_under(put(&sealed), 1), 2).header("x-ms-source-content-md5", STANDARD.encode([1; 16]));
    stated.await.refused(400, "Md5Mismatch");
    under(from_under(put(&sealed), 1), 2).await.expect(201);
}
