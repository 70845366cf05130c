//! Encrypted connections: HTTP/1.1 and HTTP/2, beside plain ones at the same port, by certificates that are renewed.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Version};
use http_body_util::{BodyExt, Empty, StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::Service;
use lazuli_tests::process::{Server, Start, within};
use lazuli_tests::queues::Queues;
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::Client;
use lazuli_tests::tables::{MINIMAL, Tables};
use lazuli_tests::tls::{Authority, Http};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

/// A server with a certificate of `authority` in `directory`.
fn start(directory: &Path, authority: &Authority) -> Start {
    let (certificate, key) = authority.issue_into(directory);
    let free = ["--blobPort", "0", "--queuePort", "0", "--tablePort", "0"];
    let start = free.into_iter().fold(Start::bare(), Start::argument);
    let start = start.argument("--location").argument(directory.join("data"));
    start.argument("--cert").argument(certificate).argument("--key").argument(key)
}

fn secure(server: &Server, authority: &Authority, http: Http) -> Client {
    server.client().over_tls(authority.connector(http))
}

type Body = BoxBody<Bytes, std::convert::Infallible>;

/// A connection on which `protocol` is agreed.
async fn encrypted(address: SocketAddr, authority: &Authority, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut config = authority.trusted();
    config.alpn_protocols = vec![protocol.to_vec()];
    let socket = TcpStream::connect(address).await.expect("the server listens");
    let name = ServerName::try_from("localhost").expect("this is a name");
    TlsConnector::from(Arc::new(config)).connect(name, socket).await.expect("they agree")
}

/// One connection of HTTP/2, and its end.
async fn http2(
    address: SocketAddr,
    authority: &Authority,
) -> (SendRequest<Body>, JoinHandle<Result<(), hyper::Error>>) {
    let socket = TokioIo::new(encrypted(address, authority, b"h2").await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), socket).await.expect("they speak HTTP/2");
    (sender, tokio::spawn(connection))
}

/// A body without an announced length, made of what is sent.
fn streamed(pieces: mpsc::Receiver<Bytes>) -> Body {
    let frames = stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((Ok(Frame::data(piece)), pieces))
    });
    BodyExt::boxed(StreamBody::new(Box::pin(frames)))
}

fn put(address: SocketAddr, name: &str, body: Body) -> Request<Body> {
    let sas = Sas::account("rwc", "b", "sco").query();
    let uri = format!("https://{address}/{ACCOUNT}/photos/{name}?{sas}");
    let request = Request::put(uri).header("x-ms-version", "2024-11-04").header("x-ms-blob-type", "BlockBlob");
    request.body(body).expect("this is a request")
}

fn empty() -> Body {
    Empty::new().boxed()
}

#[tokio::test]
async fn http_and_https_are_served_at_one_port() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let server = start(directory.path(), &authority).argument("--https-only=false").ready().await;
    let container = server.service().container("photos").await;
    let clients = [
        (server.client(), Version::HTTP_11, "http"),
        (secure(&server, &authority, Http::One), Version::HTTP_11, "https"),
        (secure(&server, &authority, Http::Two), Version::HTTP_2, "https"),
    ];
    let large = vec![7; 3_000_000];
    for (index, (client, version, scheme)) in clients.into_iter().enumerate() {
        let service = Service::new(client.clone());
        let blob = service.existing("photos").blob(&format!("{index}"));
        blob.put(large.clone()).header("x-ms-meta-Owner", "ann").await.expect(201);
        let answer = blob.get().open().await.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), large);
        assert_eq!(blob.head().await.expect(200).header("x-ms-meta-owner"), "ann");
        let endpoint = format!("ServiceEndpoint=\"{scheme}://{}/{ACCOUNT}/\"", server.address());
        let listed = service.existing("photos").list("&include=metadata").await.expect(200).text();
        assert!(listed.contains(&endpoint), "{listed}");
    }
    // What HTTP/1.1 wrote, HTTP/2 reads, and the other way round.
    let two = Service::new(secure(&server, &authority, Http::Two)).existing("photos");
    assert_eq!(two.blob("0").get().await.expect(200).body, large);
    assert_eq!(container.blob("2").get().await.expect(200).body, large);
    container.blob("none").get().await.refused(404, "BlobNotFound");
    two.blob("none").get().await.refused(404, "BlobNotFound");
}

#[tokio::test]
async fn metadata_names_keep_their_case_over_tls() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let server = start(directory.path(), &authority).ready().await;
    let service = Service::new(secure(&server, &authority, Http::Two));
    let blob = service.container("photos").await.blob("a");
    let put = blob.put("").header("x-ms-meta-Owner", "ann").head();
    let head = blob.head().header("connection", "close").head();
    let mut socket = encrypted(server.address(), &authority, b"http/1.1").await;
    socket.write_all((put + &head).as_bytes()).await.unwrap();
    let mut said = String::new();
    within("the answers", socket.read_to_string(&mut said)).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 201") && said.contains("\r\nx-ms-meta-Owner: ann\r\n"), "{said}");
    // HTTP/2 has no upper case in names.
    assert_eq!(blob.head().await.expect(200).header("x-ms-meta-owner"), "ann");
    let listed = service.existing("photos").list("&include=metadata").await.expect(200).text();
    assert!(listed.contains("<Owner>ann</Owner>"), "{listed}");
}

#[tokio::test]
async fn with_a_certificate_what_is_not_encrypted_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let server = start(directory.path(), &authority).argument("--webPort").argument("0").ready().await;
    let client = secure(&server, &authority, Http::One);
    Service::new(client.clone()).container("photos").await.blob("a").put("one").await.expect(201);
    let queues = Queues::new(server.queue_client().over_tls(authority.connector(Http::Two)));
    queues.queue("jobs").await;
    let tables = server.tables();
    let secure_tables = Tables::new(tables.client().clone().over_tls(authority.connector(Http::Two)));
    secure_tables.table("people").await;
    let listed = secure_tables.list("").header("accept", MINIMAL).await.expect(200).text();
    assert!(listed.contains(&format!("https://{}/{ACCOUNT}/$metadata#Tables", tables.client().address())), "{listed}");

    let blob = server.service().existing("photos").blob("a");
    for request in [blob.get(), blob.put("two"), blob.get().unsigned(), blob.get().with_sas("sig=x")] {
        let refused = request.await.refused(400, "AccountRequiresHttps");
        assert!(refused.text().contains("<Code>AccountRequiresHttps</Code>"), "{}", refused.text());
    }
    let preflight =
        blob.request("OPTIONS", "").header("origin", "http://a").header("access-control-request-method", "GET");
    preflight.unsigned().await.refused(400, "AccountRequiresHttps");
    server.queues().list("").await.refused(400, "AccountRequiresHttps");
    let refused = tables.list("").header("accept", MINIMAL).await.refused(400, "AccountRequiresHttps").text();
    assert!(refused.contains(r#""code":"AccountRequiresHttps""#), "{refused}");
    let page = server.client().request("GET", "/").unsigned().header("host", format!("{ACCOUNT}.web.localhost"));
    assert!(page.await.refused(400, "AccountRequiresHttps").text().starts_with("<!DOCTYPE html>"));
    let batch = server.client().request("POST", format!("/{ACCOUNT}/?comp=batch"));
    batch.body("x").header("content-type", "multipart/mixed; boundary=b").await.refused(400, "AccountRequiresHttps");
    let other = server.client().request("GET", "/nobody/photos/a").unsigned().await;
    other.refused(404, "ResourceNotFound");
}

#[tokio::test]
async fn an_account_alone_may_be_closed_to_what_is_not_encrypted() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let config = directory.path().join("lazuli.toml");
    let (certificate, key) = authority.issue_into(directory.path());
    let text = format!(
        "[tls]\ncert = {certificate:?}\nkey = {key:?}\nhttps_only = false\n[accounts]\n{ACCOUNT} = {{}}\n\
         other = {{ keys = [\"{}\"], https_only = true }}\n",
        lazuli_tests::client::KEY
    );
    std::fs::write(&config, text).unwrap();
    let start = Start::at(&directory.path().join("data")).argument("--config").argument(&config);
    let server = start.ready().await;
    let source = server.service().container("photos").await.blob("a");
    source.put("one").await.expect(201);
    server.service().of_other().existing("photos").create().await.refused(400, "AccountRequiresHttps");
    let other = Service::new(secure(&server, &authority, Http::One)).of_other();
    let blob = other.container("photos").await.blob("a");
    blob.put("two").await.expect(201);
    // A source is addressed by http or by https, as the request itself.
    let sas = Sas::blob("photos", "a", "r").with("spr", "https").query();
    let copy = |scheme: &str| {
        let url = format!("{scheme}://{}{}?{sas}", server.address(), source.name());
        blob.put("").header("x-ms-copy-source", url)
    };
    copy("http").await.refused(403, "CannotVerifyCopySource");
    copy("https").await.expect(201);
    assert_eq!(blob.get().await.expect(200).text(), "one");
}

#[tokio::test]
async fn a_signature_for_https_is_good_for_https() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let server = start(directory.path(), &authority).argument("--https-only=false").ready().await;
    let plain = server.service().container("photos").await.blob("a");
    plain.put("one").await.expect(201);
    let strict = Sas::blob("photos", "a", "r").with("spr", "https").query();
    let either = Sas::blob("photos", "a", "r").with("spr", "https,http").query();
    plain.get().with_sas(&strict).await.refused(403, "AuthorizationProtocolMismatch");
    plain.get().with_sas(&either).await.expect(200);
    for http in [Http::One, Http::Two] {
        let blob = Service::new(secure(&server, &authority, http)).existing("photos").blob("a");
        blob.get().with_sas(&strict).await.expect(200);
        blob.get().with_sas(&either).await.expect(200);
        blob.get().with_sas(&strict.replace("sig=", "sig=A")).await.refused(403, "AuthenticationFailed");
    }
}

#[tokio::test]
async fn a_certificate_is_renewed_without_a_connection_being_cut() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (Authority::default(), Authority::default());
    let server = start(directory.path(), &first).ready().await;
    // Both clients keep their connection.
    let kept = [Http::One, Http::Two].map(|http| secure(&server, &first, http));
    let container = Service::new(kept[0].clone()).container("photos").await;
    container.blob("a").put("one").await.expect(201);
    let read = async |client: &Client| {
        let read = Service::new(client.clone()).existing("photos").blob("a").get().attempt().await;
        read.map(|answer| answer.expect(200).text()).map_err(|_| ())
    };
    for client in &kept {
        assert_eq!(read(client).await, Ok("one".to_owned()));
    }
    let (mut sender, _connection) = http2(server.address(), &first).await;
    let (piece, pieces) = mpsc::channel(1);
    let upload = tokio::spawn(sender.send_request(put(server.address(), "slow", streamed(pieces))));
    piece.send(Bytes::from("be")).await.unwrap();

    // A new one is taken as soon as both of its files are there.
    second.issue_into(directory.path());
    let new = secure(&server, &second, Http::One);
    within("the new certificate", async { while read(&new).await.is_err() {} }).await;
    assert!(read(&secure(&server, &first, Http::One)).await.is_err());
    for client in &kept {
        assert_eq!(read(client).await, Ok("one".to_owned()));
    }
    piece.send(Bytes::from("fore")).await.unwrap();
    drop(piece);
    assert_eq!(upload.await.unwrap().unwrap().status(), 201);
    assert_eq!(container.blob("slow").get().await.expect(200).text(), "before");

    // A broken one changes nothing.
    std::fs::write(directory.path().join("key.pem"), "nothing").unwrap();
    let said = server.logged(&["the certificate stays as it is", "key.pem"]).await;
    assert!(said.contains("no private key"), "{said}");
    assert_eq!(read(&secure(&server, &second, Http::Two)).await, Ok("one".to_owned()));
    server.signal("-HUP").await;
    first.issue_into(directory.path());
    let old = secure(&server, &first, Http::One);
    within("the first authority again", async { while read(&old).await.is_err() {} }).await;
}

#[tokio::test]
async fn a_hangup_renews_the_certificate_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let server = start(directory.path(), &authority).ready().await;
    server.signal("-HUP").await;
    server.logged(&["the certificate was read again"]).await;
    Service::new(secure(&server, &authority, Http::Two)).container("photos").await;
}

#[tokio::test]
async fn a_slow_or_wrong_beginning_is_nobody_else_s_matter() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let start = start(directory.path(), &authority).argument("--https-only=false");
    let server = start.argument("--blobKeepAliveTimeout").argument("1").ready().await;
    let connected = async |begin: &[u8]| {
        let mut socket = TcpStream::connect(server.address()).await.unwrap();
        socket.write_all(begin).await.unwrap();
        socket
    };
    // Nothing, the first byte of an encrypted connection, and the head of its first record.
    let mut slow = Vec::new();
    for begin in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
        slow.push(connected(begin).await);
    }
    let mut wrong = Vec::new();
    for begin in
        [&b"\x16\x03\x01\xff\xff garbage"[..], b"\x16GET / HTTP/1.1\r\n\r\n", b"\x80\x2e\x01\x00\x02", b"\x00\r\n\r\n"]
    {
        wrong.push(connected(begin).await);
    }
    let container = Service::new(secure(&server, &authority, Http::Two)).container("photos").await;
    container.blob("a").put("one").await.expect(201);
    server.service().existing("photos").blob("a").get().await.expect(200);
    for mut socket in slow.into_iter().chain(wrong) {
        let mut said = Vec::new();
        // Closed or reset, both are an end.
        let _ = within("the connection to be closed", socket.read_to_end(&mut said)).await;
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(!said.contains("200 OK"), "{said}");
    }
    container.blob("a").get().await.expect(200);
}

#[tokio::test]
async fn who_does_not_finish_the_beginning_gives_the_place_back() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let limits = ["--connections-max", "1", "--blobKeepAliveTimeout", "1"];
    let server = limits.into_iter().fold(start(directory.path(), &authority), Start::argument).ready().await;
    let mut slow = TcpStream::connect(server.address()).await.unwrap();
    slow.write_all(b"\x16\x03\x01").await.unwrap();
    let served = Service::new(secure(&server, &authority, Http::One)).existing("photos").create().into_future();
    let mut said = Vec::new();
    let ended = slow.read_to_end(&mut said);
    let (served, _closed_or_reset) = within("a place", futures_util::future::join(served, ended)).await;
    served.expect(201);
}

#[tokio::test]
async fn http2_has_its_own_ways_of_saying_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let server = start(directory.path(), &authority).ready().await;
    let service = Service::new(secure(&server, &authority, Http::Two));
    let container = service.container("photos").await;
    let (mut sender, _connection) = http2(server.address(), &authority).await;

    // A body whose length is not announced.
    let (piece, pieces) = mpsc::channel(2);
    piece.send(Bytes::from("one ")).await.unwrap();
    piece.send(Bytes::from("two")).await.unwrap();
    drop(piece);
    let stored = sender.send_request(put(server.address(), "a", streamed(pieces))).await.unwrap();
    assert_eq!(stored.status(), 201);
    assert_eq!(container.blob("a").get().await.expect(200).text(), "one two");
    // No body at all.
    let stored = sender.send_request(put(server.address(), "empty", empty())).await.unwrap();
    assert_eq!(stored.status(), 201);
    assert_eq!(container.blob("empty").head().await.expect(200).header("content-length"), "0");

    // The host is in :authority, and the account in the host.
    let sas = Sas::account("rl", "b", "sco").query();
    let uri = format!("https://{ACCOUNT}.blob.localhost:{}/photos/a?{sas}", server.address().port());
    let get = Request::get(uri).header("x-ms-version", "2024-11-04").body(empty()).unwrap();
    let answer = sender.send_request(get).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "one two");

    // Many requests at a time, over one connection.
    let asked = (0..300).map(|_| container.blob("a").get().into_future());
    for answer in futures_util::future::join_all(asked).await {
        assert_eq!(answer.expect(200).text(), "one two");
    }
    // More header fields than are taken: refused, and the connection goes on.
    let large = Request::get(format!("https://{}/", server.address())).header("x-ms-meta-a", "x".repeat(100_000));
    let refused = sender.send_request(large.body(empty()).unwrap()).await;
    assert!(refused.is_err() || refused.is_ok_and(|answer| answer.status().is_client_error()));
    container.blob("a").get().await.expect(200);
}

#[tokio::test]
async fn connections_of_http2_that_rest_are_closed_and_those_that_work_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let server = start(directory.path(), &authority).argument("--blobKeepAliveTimeout").argument("1").ready().await;
    Service::new(secure(&server, &authority, Http::One)).container("photos").await;
    let (mut sender, resting) = http2(server.address(), &authority).await;
    let stored = sender.send_request(put(server.address(), "a", empty())).await.unwrap();
    assert_eq!(stored.status(), 201);
    drop(stored);
    let (mut other, _connection) = http2(server.address(), &authority).await;
    let (piece, pieces) = mpsc::channel(1);
    let upload = tokio::spawn(other.send_request(put(server.address(), "b", streamed(pieces))));
    piece.send(Bytes::from("one")).await.unwrap();
    // That the first one is closed takes longer than any rest may.
    let ended = within("the connection to be closed", resting).await.unwrap();
    assert!(ended.is_ok(), "it is told before: {ended:?}");
    drop(piece);
    assert_eq!(upload.await.unwrap().unwrap().status(), 201);
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_it_began_over_tls() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::default();
    let server = start(directory.path(), &authority).ready().await;
    let address = server.address();
    Service::new(secure(&server, &authority, Http::One)).container("photos").await;
    let (_resting, rested) = http2(address, &authority).await;
    let (mut sender, _connection) = http2(address, &authority).await;
    let mut shaking = TcpStream::connect(address).await.unwrap();
    shaking.write_all(b"\x16").await.unwrap();
    let (piece, pieces) = mpsc::channel(1);
    let upload = tokio::spawn(sender.send_request(put(address, "a", streamed(pieces))));
    piece.send(Bytes::from("one")).await.unwrap();
    // A piece is taken once the one before it is on its way: the request has begun.
    piece.send(Bytes::from(vec![b'x'; 100_000])).await.unwrap();
    let stopping = tokio::spawn(server.terminate());
    // The resting connection is told to go: the server is stopping.
    within("the resting connection to be closed", rested).await.unwrap().unwrap();
    drop(piece);
    assert_eq!(upload.await.unwrap().unwrap().status(), 201);
    let ended = stopping.await.unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stdout.contains("listening at https://") && !ended.stderr.contains("cut off"), "{ended:?}");
}
