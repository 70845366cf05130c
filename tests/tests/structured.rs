//! Bodies that come and go as structured messages, with a CRC-64 for each segment.

use lazuli_api::wire::structured::{BODY, CONTENT_LENGTH, FORM};
use lazuli_tests::harness::Lazuli;
use lazuli_tests::structured::{message, structured};

const MIB: usize = 1024 * 1024;

/// Bytes that are not all the same.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at % 251).unwrap_or_default()).collect()
}

#[tokio::test]
async fn the_content_of_a_message_is_stored_without_its_frame() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    for (length, segment) in [(0, 1), (1, 1), (4096, 1000), (9 * MIB + 3, 4 * MIB), (100_000, 2)] {
        let content = content(length);
        let put = structured(blob.put(""), length, message(&content, segment)).await.expect(201);
        assert_eq!(put.header(BODY), FORM);
        let plain = blob.put(content.clone()).await.expect(201);
        for sum in ["content-md5", "x-ms-content-crc64"] {
            assert_eq!(put.header(sum), plain.header(sum), "{length} bytes");
        }
        assert_eq!(plain.header(BODY), "");
        assert_eq!(blob.get().await.expect(200).body, content);
    }
}

#[tokio::test]
async fn blocks_come_as_messages() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    for (id, text) in [("1", "hello "), ("2", "world")] {
        let put = structured(blob.put_block(id, ""), text.len(), message(text.as_bytes(), 4)).await.expect(201);
        assert_eq!(put.header(BODY), FORM);
    }
    let list = blob.put_block_list(&["1", "2"]);
    list.header(BODY, FORM).await.refused(400, "UnsupportedHeader");
    blob.put_block_list(&["1", "2"]).await.expect(201);
    assert_eq!(blob.get().await.expect(200).text(), "hello world");
    structured(blob.put_block("3", ""), 0, message(b"", 1)).await.refused(400, "InvalidHeaderValue");
}

#[tokio::test]
async fn a_download_is_a_message_if_asked_for() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    let content = content(9 * MIB + 3);
    blob.put(content.clone()).await.expect(201);
    let get = || blob.get().header(BODY, FORM);
    let whole = get().await.expect(200);
    assert_eq!(whole.body, message(&content, 4 * MIB));
    assert_eq!((whole.header(BODY), whole.header(CONTENT_LENGTH)), (FORM, &*content.len().to_string()));
    assert_eq!(whole.header("content-length"), whole.body.len().to_string());
    let part = get().header("x-ms-range", format!("bytes=7-{}", 5 * MIB)).await.expect(206);
    assert_eq!(part.body, message(&content[7..=5 * MIB], 4 * MIB));
    assert_eq!(part.header("content-range"), format!("bytes 7-{}/{}", 5 * MIB, content.len()));
    assert_eq!(part.header(CONTENT_LENGTH), (5 * MIB - 6).to_string());
    let head = blob.head().header(BODY, FORM).await.expect(200);
    assert_eq!((head.header(BODY), head.header("content-length")), ("", &*content.len().to_string()));

    blob.put("").await.expect(201);
    let empty = get().await.expect(200);
    assert_eq!((empty.header(CONTENT_LENGTH), empty.body.len()), ("0", 39), "one empty segment");
    get().header(BODY, "XSM/2.0").await.refused(400, "InvalidHeaderValue");
    let twice = get().header("x-ms-range", "bytes=0-1").header("x-ms-range-get-content-md5", "true");
    twice.await.refused(400, "InvalidHeaderValue");
}
