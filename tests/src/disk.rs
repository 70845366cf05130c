//! What lies in a data directory.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{SeekFrom, seek};

/// How long the background may take to give space back.
const PATIENCE: Duration = Duration::from_secs(60);

/// The payload segments of a data directory.
pub fn segments(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory.join("payload")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("the directory can be read").path());
    let mut segments: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "seg")).collect();
    segments.sort();
    segments
}

/// Bytes of data, without holes, in the payload segments.
pub fn payload_bytes(directory: &Path) -> u64 {
    segments(directory).iter().map(|segment| data_bytes(segment)).sum()
}

/// Bytes of `path` that are no hole, in whole pages. A file that has just been removed has none.
fn data_bytes(path: &Path) -> u64 {
    let Ok(file) = File::open(path) else { return 0 };
    let (mut at, mut sum) = (0, 0);
    while let Ok(data) = seek(&file, SeekFrom::Data(at)) {
        let hole = seek(&file, SeekFrom::Hole(data)).expect("data ends in a hole");
        sum += hole.next_multiple_of(4096) - data;
        at = hole;
    }
    sum
}

/// Waits until the payload holds no more than `needed` bytes; then it must hold exactly these.
pub async fn payload_becomes(directory: &Path, needed: u64) {
    let mut ticks = tokio::time::interval(Duration::from_millis(50)); // a file system tells nobody when it shrinks
    let shrunk = async {
        while payload_bytes(directory) > needed {
            ticks.tick().await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, shrunk).await;
    assert!(in_time.is_ok(), "{} bytes of payload leak", payload_bytes(directory) - needed);
    assert_eq!(payload_bytes(directory), needed, "bytes of payload are missing");
}
