use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::framing::Body;
use super::*;

/// Answers with the request's metadata names: as fields, in their case, and in the body.
async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let names = request.extensions().get::<HeaderCase>().map_or_else(Vec::new, |case| case.0.clone());
    let large = request.headers().contains_key("large");
    request.into_body().collect().await.unwrap();
    let mut response = Response::builder();
    for name in &names {
        response = response.header(name, "value");
    }
    // A body that looks like a head must pass unchanged.
    let body = format!(
        "HTTP/1.1 200 OK\r\nx-ms-meta-abc: {}\r\n\r\n{}",
        names.join(","),
        "y".repeat(usize::from(large) * 300_000)
    );
    Ok(response.extension(ResponseCase(names)).body(Full::new(Bytes::from(body))).unwrap())
}

/// A connection to [`echo`] whose buffers have `bytes` bytes.
fn connect(bytes: usize) -> DuplexStream {
    let (client, server) = duplex(bytes);
    let cases = Cases::default();
    let service = Cased::new(service_fn(echo), cases.clone());
    tokio::spawn(async move {
        http1::Builder::new()
            .half_close(true)
            .serve_connection(TokioIo::new(Tap::new(server, cases)), service)
            .await
            .unwrap();
    });
    client
}

/// What `input` is answered with, written in steps of `step` bytes, until the server closes.
async fn answers(buffer: usize, step: usize, input: &str) -> String {
    let (mut read, mut write) = tokio::io::split(connect(buffer));
    let input = input.to_owned();
    let writer = tokio::spawn(async move {
        for piece in input.as_bytes().chunks(step) {
            write.write_all(piece).await.unwrap();
        }
        write.shutdown().await.unwrap();
    });
    let mut output = String::new();
    read.read_to_string(&mut output).await.unwrap();
    writer.await.unwrap();
    output
}

const EXCHANGES: &str = "PUT /1 HTTP/1.1\r\nhost: h\r\nX-Ms-Meta-Abc: 1\r\nContent-Length: 25\r\n\r\n\
    x-ms-meta-BODY: no\r\n\r\nyes\
    PUT /2 HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\nx-ms-meta-dEf: 1\r\n\r\n\
    5;note=1\r\nab\r\n\r\r\n14\r\nx-ms-meta-BODY: no\n\r\r\n0\r\nx-ms-meta-trailer: no\r\n\r\n\
    HEAD /3 HTTP/1.1\r\nhost: h\r\nx-ms-meta-HEAD: 1\r\n\r\n\
    GET /4 HTTP/1.1\r\nhost: h\r\nlarge: 1\r\n\r\n\
    GET /5 HTTP/1.1\r\nhost: h\r\nx-ms-meta-Last: 1\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn metadata_names_keep_their_case_through_bodies_chunks_head_requests_and_pipelining() {
    for buffer in [1, 7, 64, 1 << 20] {
        for step in [1, 3, 1000] {
            let output = answers(buffer, step, EXCHANGES).await;
            for (name, count) in [
                ("X-Ms-Meta-Abc", 2),
                ("x-ms-meta-dEf", 2),
                ("x-ms-meta-HEAD", 1),
                ("x-ms-meta-Last", 2),
                ("x-ms-meta-abc: ", 4),
            ] {
                assert_eq!(output.matches(name).count(), count, "{name} with buffer {buffer}, step {step}");
            }
            assert!(
                !output.contains("BODY") && !output.contains("trailer"),
                "what is in a body is no name: {buffer}, {step}"
            );
            assert_eq!(output.matches('y').count(), 300_000);
        }
    }
}

#[tokio::test]
async fn an_interim_answer_does_not_take_the_place_of_the_final_one() {
    let mut client = connect(1 << 16);
    let head = "PUT / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\nconnection: close\r\nX-MS-META-A: 1\r\ncontent-length: 1\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    client.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"1").await.unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("\r\nX-MS-META-A: value\r\n"), "{rest}");
}

#[test]
fn a_body_ends_where_its_framing_says() {
    for (head, body, belongs) in [
        ("a: b", "GET", 0),
        ("Content-Length: 3", "abcGET", 3),
        ("content-length: nonsense", "abcGET", 6),
        ("Transfer-Encoding: gzip, chunked", "0\r\n\r\nGET", 5),
        ("transfer-encoding: chunked", "a\r\n0123456789\r\n0\r\n\r\nGET", 20),
        ("transfer-encoding: chunked", "1\nx\n0\na: b\n\nGET", 12),
        ("transfer-encoding: chunked", "nonsense\r\nGET", 13),
        ("transfer-encoding: chunked", "fffffffffffffffff\r\nGET", 22),
    ] {
        let mut framing = Body::announced(format!("PUT / HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).unwrap_or(Body::NONE);
        assert_eq!(framing.pass(body.as_bytes()), belongs, "{head:?} {body:?}");
    }
}
