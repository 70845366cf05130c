//! A damaged byte is found and never served, and it harms nobody else.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails loudly")]
#![expect(clippy::indexing_slicing, reason = "positions that were just found")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use lazuli_tests::disk::segments;
use lazuli_tests::process::Start;
use lazuli_tests::witness;

const BYTES: usize = 300_000;

/// Flips one bit of the stored copy of `part`, which occurs once.
fn flip(directory: &Path, part: &[u8]) {
    for segment in segments(directory) {
        let stored = std::fs::read(&segment).unwrap();
        if let Some(at) = stored.windows(part.len()).position(|window| window == part) {
            let file = OpenOptions::new().write(true).open(segment).unwrap();
            file.write_all_at(&[stored[at] ^ 1], at as u64).unwrap();
            return;
        }
    }
    unreachable!("the bytes are nowhere in the payload");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_of_a_body_is_never_served() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Start::at(directory.path()).ready().await;
    let container = server.service().container("damage").await;
    let (bad, good) = (container.blob("bad"), container.blob("good"));
    let content = witness::content(1, BYTES);
    bad.put(content.clone()).await.expect(201);
    good.put(witness::content(2, BYTES)).await.expect(201);
    flip(directory.path(), &content[200_000..200_032]);
    // The head may be on its way already; then the connection breaks before the end.
    if let Ok(answer) = bad.get().attempt().await {
        answer.refused(500, "InternalError");
    }
    // Only the frame that is damaged is lost.
    let whole = bad.get().header("x-ms-range", "bytes=0-65535").await.expect(206).body;
    assert_eq!(whole, content[..65536]);
    assert_eq!(witness::seed_of(&good.get().await.expect(200).body), Ok(2));
    server.logged(&["ERROR"]).await;
    bad.put("mended").await.expect(201);
    assert_eq!(bad.get().await.expect(200).text(), "mended");
    assert!(server.is_alive());
}

/// Overwrites the value of the only key of `tree` that contains `part`.
fn garble_row(directory: &Path, tree: &str, part: &[u8]) -> String {
    // The segment size is the store's own; sled opens with no other.
    let db = sled::Config::new().path(directory.join("rows")).segment_size(2 * 1024 * 1024).open().unwrap();
    let rows = db.open_tree(tree).unwrap();
    let key = rows.iter().keys().map(Result::unwrap).find(|key| key.windows(part.len()).any(|window| window == part));
    let key = key.expect("the row is there");
    rows.insert(&key, &b"garbage"[..]).unwrap();
    drop(db); // writes what is buffered
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_is_named_in_the_log_and_harms_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let container = server.service().container("damage").await;
    container.blob("bad-row").put("one").await.expect(201);
    container.blob("good").put("two").await.expect(201);
    assert!(server.terminate().await.status.success());
    let key = garble_row(directory.path(), "blobs", b"bad-row");
    let mut server = Start::at(directory.path()).ready().await;
    let container = server.service().existing("damage");
    container.blob("bad-row").get().await.refused(500, "InternalError");
    server.logged(&["Blobs", &key]).await;
    assert_eq!(container.blob("good").get().await.expect(200).text(), "two");
    container.blob("new").put("three").await.expect(201);
    assert!(server.is_alive());
}
