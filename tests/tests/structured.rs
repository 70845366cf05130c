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
async fn appended_blocks_and_pages_come_as_messages() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let (log, disk) = (container.blob("log"), container.blob("disk"));
    log.create_append().await.expect(201);
    disk.create_pages(8 * MIB as u64).await.expect(201);
    let mut appended = Vec::new();
    for (length, segment) in [(1, 1), (512, 100), (100_000, 1000), (4 * MIB, MIB)] {
        let content = content(length);
        let put = structured(log.append(""), length, message(&content, segment)).await.expect(201);
        assert_eq!((put.header(BODY), put.header("x-ms-blob-append-offset")), (FORM, &*appended.len().to_string()));
        appended.extend_from_slice(&content);
        assert!(log.get().await.expect(200).body == appended, "{length} bytes");
    }
    for (first, length, segment) in [(0, 512, 512), (512, MIB, 1000), (4 * MIB, 4 * MIB, MIB)] {
        let content = content(length);
        let put = disk.put_pages(first as u64, content.clone()).body("");
        let put = structured(put, length, message(&content, segment)).await.expect(201);
        assert_eq!(put.header(BODY), FORM);
        let range = format!("bytes={first}-{}", first + length - 1);
        assert!(disk.get().header("x-ms-range", range).await.expect(206).body == content, "{length} bytes");
    }

    let (etag, etag_of_pages) = (log.head().await.etag(), disk.head().await.etag());
    let whole = message(&[1; 512], 100);
    let damaged =
        |at: usize| whole.iter().enumerate().map(|(i, byte)| if i == at { byte ^ 1 } else { *byte }).collect();
    let wrong: [(&str, usize, Vec<u8>, &str); 4] = [
        ("another byte", 512, damaged(30), "Crc64Mismatch"),
        ("another sum", 512, damaged(whole.len() - 1), "Crc64Mismatch"),
        ("another length", 511, whole.clone(), "InvalidInput"),
        ("no end", 512, whole[..whole.len() - 8].to_vec(), "InvalidInput"),
    ];
    for (what, length, message, code) in wrong {
        for request in [log.append(""), disk.put_pages(0, vec![0; 512]).body("")] {
            let answer = structured(request, length, message.clone()).await;
            // Of pages the length is judged by their range first.
            let expected =
                if length == 511 && answer.code() == "InvalidHeaderValue" { "InvalidHeaderValue" } else { code };
            assert_eq!((answer.status.as_u16(), answer.code()), (400, expected), "{what}: {}", answer.text());
        }
    }
    assert_eq!((log.head().await.etag(), disk.head().await.etag()), (etag, etag_of_pages), "nothing is kept");
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
