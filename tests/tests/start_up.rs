//! What stops the server from starting is said in one line, and the process ends with an error.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use lazuli_tests::process::{Ended, Start};

/// Checks that the process failed and that stderr is one line that names what is wrong.
#[track_caller]
fn assert_one_line(result: Result<lazuli_tests::process::Server, Ended>, named: &[&str]) {
    let ended = result.err().expect("it starts");
    assert!(!ended.status.success(), "{ended:?}");
    assert_eq!(ended.stderr.trim().lines().count(), 1, "{ended:?}");
    for part in named {
        assert!(ended.stderr.contains(part), "{part:?} is not named: {ended:?}");
    }
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let directory = tempfile::tempdir().unwrap();
    let free = ["--queuePort", "0", "--tablePort", "0", "--blobPort", &port];
    let start = Start::bare().argument("--location").argument(directory.path());
    assert_one_line(free.into_iter().fold(start, Start::argument).run().await, &[&port]);
}

#[tokio::test]
async fn a_directory_that_another_server_holds_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut holder = Start::at(directory.path()).ready().await;
    assert_one_line(Start::at(directory.path()).run().await, &[directory.path().to_str().unwrap()]);
    assert!(holder.is_alive());
    holder.service().container("held").await;
    holder.kill().await;
    Start::at(directory.path()).ready().await; // the lock dies with its holder
}

#[tokio::test]
async fn an_unknown_flag_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let ended = Start::at(directory.path()).argument("--nonsense").run().await.err().expect("it starts");
    assert!(!ended.status.success(), "{ended:?}");
    assert!(ended.stderr.contains("--nonsense"), "{ended:?}");
}

#[tokio::test]
async fn an_unknown_key_of_the_configuration_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("lazuli.toml");
    std::fs::write(&config, "nonsense = 1\n").unwrap();
    let start = Start::at(&directory.path().join("data")).argument("--config").argument(&config);
    assert_one_line(start.run().await, &["nonsense"]);
}

#[tokio::test]
async fn a_data_directory_that_is_a_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_one_line(Start::at(&file).run().await, &[file.to_str().unwrap()]);
}

#[tokio::test]
async fn a_server_that_is_asked_to_stop_ends_well_and_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let blob = server.service().container("stop").await.blob("blob");
    blob.put("kept").await.expect(201);
    let ended = server.terminate().await;
    assert!(ended.status.success(), "{ended:?}");
    let server = Start::at(directory.path()).ready().await;
    let blob = server.service().existing("stop").blob("blob");
    assert_eq!(blob.get().await.expect(200).text(), "kept");
}
