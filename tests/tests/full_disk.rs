//! A full disk: reads go on, writes are refused by name, deletes make room, and the process lives.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use std::ops::Range;
use std::process::{Command, Stdio};

use lazuli_tests::harness::Container;
use lazuli_tests::process::Start;
use lazuli_tests::witness;

const BLOB_BYTES: usize = 1024 * 1024;

/// Room for the test.
const DISK_MIB: u64 = 256;
/// Room that the server keeps free.
const RESERVE_MIB: u64 = 64;

/// A disk that is soon full: a file system of its own, unmounted when dropped. Who may not mount one gets a directory
/// of which the server must leave free all but [`DISK_MIB`].
struct SmallDisk {
    directory: tempfile::TempDir,
    reserve_mib: u64,
}

impl SmallDisk {
    #[expect(clippy::print_stdout, reason = "the test runner shows it with a failure")]
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={DISK_MIB}m"), "tmpfs"]).arg(directory.path());
        if mount.status().is_ok_and(|status| status.success()) {
            return Self { directory, reserve_mib: RESERVE_MIB };
        }
        println!("no tmpfs can be mounted here: the server's reserve stands for the end of the disk");
        let disk = rustix::fs::statvfs(directory.path()).unwrap();
        let free_mib = disk.f_bavail * disk.f_frsize / (1024 * 1024);
        Self { directory, reserve_mib: free_mib.saturating_sub(DISK_MIB - RESERVE_MIB) }
    }

    fn start(&self) -> Start {
        Start::at(self.directory.path()).argument("--reserve-mib").argument(self.reserve_mib.to_string())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Fails where nothing was mounted, and then nothing needs to be unmounted.
        let _ = Command::new("umount").arg("--lazy").arg(self.directory.path()).stderr(Stdio::null()).status();
    }
}

/// Puts blobs of `bytes` until one is refused, by name; gives how many there are.
async fn fill(container: &Container, bytes: usize) -> u64 {
    for number in 0.. {
        let put = container.blob(&format!("{bytes}/{number}")).put(witness::content(number, bytes)).await;
        if put.status != 201 {
            put.refused(507, "InsufficientStorage");
            return number;
        }
    }
    unreachable!("a disk without end")
}

/// Checks that the blobs of [`BLOB_BYTES`] are there and whole.
async fn check(container: &Container, numbers: Range<u64>) {
    for number in numbers {
        let found = container.blob(&format!("{BLOB_BYTES}/{number}")).get().await.expect(200).body;
        assert_eq!(witness::seed_of(&found), Ok(number));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_and_nothing_else() {
    let disk = SmallDisk::new();
    let mut server = disk.start().ready().await;
    let container = server.service().container("full").await;
    let table = server.tables().table("Full").await;
    let count = fill(&container, BLOB_BYTES).await;
    assert!(count > 4, "only {count} blobs fit");
    for smaller in [64 * 1024, 8 * 1024, 1024] {
        fill(&container, smaller).await;
    }
    container.blob("staged").put_block("id", "x").await.refused(507, "InsufficientStorage");
    // No part of a batch is to blame.
    let batch = server.tables().batch(&[table.entity("p", "r").part("PUT", "", "{}")]);
    batch.await.refused(507, "InsufficientStorage");
    check(&container, 0..count).await;
    container.blob(&format!("{BLOB_BYTES}/{count}")).get().await.refused(404, "BlobNotFound");
    for number in 0..count / 2 {
        container.blob(&format!("{BLOB_BYTES}/{number}")).delete().await.expect(202);
    }
    written_once_there_is_room(&container).await;
    assert!(server.is_alive());
    server.kill().await;
    let server = disk.start().ready().await;
    let container = server.service().existing("full");
    check(&container, count / 2..count).await;
    assert_eq!(container.blob("after").get().await.expect(200).body.len(), BLOB_BYTES);
}

/// Space comes back in the background: tries until the write succeeds.
async fn written_once_there_is_room(container: &Container) {
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(50));
    let written = async {
        loop {
            ticks.tick().await;
            let put = container.blob("after").put(witness::content(7, BLOB_BYTES)).await;
            if put.status == 201 {
                break;
            }
            put.refused(507, "InsufficientStorage");
        }
    };
    lazuli_tests::process::within("deletes to make room", written).await;
}
