//! What stops the server from starting is said in one line, and the process ends with an error.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use lazuli_tests::client::Credentials;
use lazuli_tests::process::{Ended, Start, within};
use lazuli_tests::tls::Authority;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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
async fn a_flag_or_variable_that_is_wrong_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["--nonsense"], "--nonsense"),
        (&["--blobPort", "70000"], "70000"),
        (&["--queuePort", "http"], "--queuePort"),
        (&["--durability", "never"], "never"),
        (&["--inMemoryPersistence"], "--inMemoryPersistence"),
        (&["--idle-timeout", "0"], "idle_timeout"),
        (&["--log-level", "loud"], "loud"),
        (&["--accounts", "mine"], "mine"),
    ];
    for (arguments, named) in cases {
        let start = Start::bare().argument("--location").argument(directory.path());
        let start = arguments.iter().copied().fold(start, Start::argument);
        assert_one_line(start.run().await, &[named]);
    }
    let variables = [
        ("LAZULI_BLOB_PORT=http", "--blobPort"),
        ("LAZULI_ALLOW_DEVELOPMENT_ACCOUNT=perhaps", "perhaps"),
        ("LAZULI_ACCOUNTS=MINE:AAAA", "MINE"),
        ("AZURITE_ACCOUNTS=mine:%", "mine"),
    ];
    for (variable, named) in variables {
        assert_one_line(Start::bare().under("env", [variable.into()]).run().await, &[named]);
    }
}

#[tokio::test]
async fn variables_configure_as_flags_do() {
    let directory = tempfile::tempdir().unwrap();
    let variables = [
        "LAZULI_ACCOUNTS=",
        "AZURITE_ACCOUNTS=mine:AAAA",
        "LAZULI_ALLOW_DEVELOPMENT_ACCOUNT=1",
        "AZURITE_SKIP_API_VERSION_CHECK=1",
        "LAZULI_LOG_LEVEL=warn",
    ];
    let start = Start::at(directory.path()).under("env", variables.map(Into::into));
    let server = start.ready().await;
    let mine = server.client().with_credentials(Credentials::new("mine", "AAAA").unwrap());
    mine.request("GET", "/mine?comp=list").await.expect(200);
    server.client().request("GET", "/devstoreaccount1?comp=list").await.refused(404, "ResourceNotFound");
}

#[tokio::test]
async fn help_and_the_version_are_no_errors() {
    for (flag, said) in [("--help", "--blobPort"), ("--version", "lazuli "), ("-v", "lazuli "), ("-V", "lazuli ")] {
        let ended = Start::bare().argument(flag).run().await.err().expect("it starts");
        assert!(ended.status.success() && ended.stdout.contains(said) && ended.stderr.is_empty(), "{ended:?}");
    }
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
async fn a_certificate_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let ((certificate, key), (_, other)) = (Authority::default().issue(), Authority::default().issue());
    for (name, content) in [("cert.pem", &certificate), ("key.pem", &key), ("other.pem", &other)] {
        std::fs::write(path(name), content).unwrap();
    }
    std::fs::write(path("text.pfx"), "nothing").unwrap();
    let cases = [
        (vec![("--cert", "none.pem")], "none.pem"),
        (vec![("--cert", "cert.pem")], "no private key"),
        (vec![("--cert", "cert.pem"), ("--key", "other.pem")], "other.pem is not the certificate's"),
        (vec![("--cert", "cert.pem"), ("--key", "none.pem")], "none.pem"),
        (vec![("--cert", "text.pfx")], "text.pfx"),
        (vec![("--key", "key.pem")], "--cert"),
    ];
    for (flags, named) in cases {
        let with = |start: Start, (flag, file): &(&str, &str)| start.argument(*flag).argument(path(file));
        let start = flags.iter().fold(Start::at(&path("data")), with);
        assert_one_line(start.run().await, &[named]);
    }
    assert_one_line(Start::at(&path("data")).argument("--https-only").run().await, &["--cert"]);
    assert!(!path("data").exists(), "it is looked at before anything else");
}

#[tokio::test]
async fn rows_that_are_gone_or_garbage_are_not_taken_for_a_new_store() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    server.service().container("photos").await.blob("kept").put("one").await.expect(201);
    assert!(server.terminate().await.status.success());
    let log = directory.path().join("rows/db");
    let whole = std::fs::read(&log).unwrap();
    for garbage in
        [Vec::new(), vec![0; whole.len()], (0..whole.len()).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect()]
    {
        std::fs::write(&log, garbage).unwrap();
        assert_one_line(Start::at(directory.path()).run().await, &[&directory.path().to_string_lossy()]);
    }
    std::fs::write(&log, whole).unwrap();
    let server = Start::at(directory.path()).ready().await;
    assert_eq!(server.service().existing("photos").blob("kept").get().await.expect(200).text(), "one");
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

#[tokio::test]
async fn the_settings_of_an_account_are_in_effect() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("lazuli.toml");
    std::fs::write(&config, "[accounts.devstoreaccount1]\nsku = \"Premium_LRS\"\nkind = \"BlockBlobStorage\"\n")
        .unwrap();
    let start = Start::at(&directory.path().join("data")).argument("--config").argument(&config);
    let server = start.ready().await;
    let asked = server.client().request("GET", "/devstoreaccount1?restype=account&comp=properties");
    let answer = asked.await.expect(200);
    let told = (answer.header("x-ms-sku-name"), answer.header("x-ms-account-kind"));
    assert_eq!(told, ("Premium_LRS", "BlockBlobStorage"));
    std::fs::write(&config, "[accounts.devstoreaccount1]\nsku = \"Cheap\"\n").unwrap();
    let start = Start::at(&directory.path().join("other")).argument("--config").argument(&config);
    assert_one_line(start.run().await, &["accounts.devstoreaccount1", "\"Cheap\""]);
}

#[tokio::test]
async fn the_configuration_can_be_seen_without_its_keys() {
    let directory = tempfile::tempdir().unwrap();
    let start = ["config", "print", "--blobPort", "7", "--accounts", "mine:c2VjcmV0", "--location"];
    let start = start.into_iter().fold(Start::bare(), Start::argument).argument(directory.path());
    let ended = start.run().await.err().expect("it starts");
    assert!(ended.status.success(), "{ended:?}");
    for part in ["[blob]", "port = 7", directory.path().to_str().unwrap(), "keys = [\"(not shown)\"]"] {
        assert!(ended.stdout.contains(part), "{part} is not in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("c2VjcmV0"));
}

#[tokio::test]
async fn flags_of_the_field_are_taken() {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["--loose", "--skipApiVersionCheck", "--disableProductStyleUrl", "--blobKeepAliveTimeout", "1"];
    let flags = flags.into_iter().chain(["--queueKeepAliveTimeout", "5", "--tableKeepAliveTimeout", "5"]);
    let server = flags.fold(Start::at(directory.path()), Start::argument).ready().await;
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    let request = server.client().request("GET", "/devstoreaccount1?comp=list");
    socket.write_all(request.head().as_bytes()).await.unwrap();
    let mut received = Vec::new();
    within("the idle connection to be closed", socket.read_to_end(&mut received)).await.unwrap();
    let received = String::from_utf8_lossy(&received);
    assert!(received.starts_with("HTTP/1.1 200") && received.ends_with("</EnumerationResults>"), "{received}");
}
