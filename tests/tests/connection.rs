//! What goes on at one connection: where bodies end, who waits for whom, and that a refusal does not cost it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use lazuli_tests::client::{ACCOUNT, Credentials};
use lazuli_tests::process::{Start, within};
use lazuli_tests::queues::Queue;
use lazuli_tests::signed::{Client, Request};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

const MESSAGE: &str = "<QueueMessage><MessageText>one</MessageText></QueueMessage>";

/// A connection that is spoken to by hand.
struct Wire(BufReader<TcpStream>);

impl Wire {
    async fn to(client: &Client) -> Self {
        Self(BufReader::new(TcpStream::connect(client.address()).await.unwrap()))
    }

    async fn say(&mut self, text: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(text.as_ref()).await.unwrap();
    }

    /// The next answer: its status, its error code, and its body if it has one.
    async fn hear(&mut self, has_body: bool) -> (u16, String, String) {
        let (mut status, mut code, mut length) = (0, String::new(), 0);
        loop {
            let mut line = String::new();
            within("a line of the answer", self.0.read_line(&mut line)).await.unwrap();
            assert!(!line.is_empty(), "the connection ended");
            let line = line.trim_end().to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("x-ms-error-code", value)) => code = value.to_owned(),
                None if line.is_empty() => break,
                None if status == 0 => status = line.split(' ').nth(1).unwrap().parse().unwrap(),
                _ => {}
            }
        }
        let mut body = vec![0; if has_body { length } else { 0 }];
        within("the body", self.0.read_exact(&mut body)).await.unwrap();
        (status, code, String::from_utf8(body).unwrap())
    }

    /// Sends a whole request and gives status and code of the answer.
    async fn ask(&mut self, head: String, body: &str) -> (u16, String) {
        let has_body = !head.starts_with("HEAD ");
        self.say(head + body).await;
        let (status, code, _) = self.hear(has_body).await;
        (status, code)
    }
}

fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_ascii_lowercase())
}

/// The head of a request for which `length` bytes of body are announced.
fn announcing(request: Request, length: usize) -> String {
    request.header("content-length", length.to_string()).head()
}

/// The head of a request whose body comes in chunks.
fn chunked(request: &Request) -> String {
    request.head().replace("content-length: 0\r\n", "transfer-encoding: chunked\r\n")
}

fn put(queue: &Queue) -> Request {
    queue.messages("POST", "")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_does_not_cost_the_connection() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let queue = server.queues().queue("jobs").await;
    let absent = server.queues().existing("absent");
    let forger =
        server.queues().client().clone().with_credentials(Credentials::new(ACCOUNT, "YW5vdGhlciBrZXk=").unwrap());
    let forged = forger.request("POST", format!("/{ACCOUNT}/jobs/messages"));
    let large = "x".repeat(2_000_000);
    let cases = [
        (announcing(put(&absent), MESSAGE.len()), MESSAGE, code(404, "QueueNotFound")),
        (announcing(put(&queue), 5), "hello", code(400, "InvalidXmlDocument")),
        (announcing(forged, MESSAGE.len()), MESSAGE, code(403, "AuthenticationFailed")),
        (announcing(put(&queue), large.len()), &large, code(413, "RequestBodyTooLarge")),
        (
            announcing(queue.request("PUT", "?comp=nonsense"), large.len()),
            &large,
            code(400, "InvalidQueryParameterValue"),
        ),
        (absent.request("HEAD", "?comp=metadata").head(), "", code(404, "QueueNotFound")),
        (queue.request("GET", "?comp=acl").unsigned().head(), "", code(401, "NoAuthenticationInformation")),
        (queue.request("DELETE", "?comp=acl").head(), "", code(405, "UnsupportedHttpVerb")),
    ];
    let mut wire = Wire::to(server.queues().client()).await;
    for (head, body, expected) in cases {
        let request = head.lines().next().unwrap().to_owned();
        assert_eq!(wire.ask(head, body).await, expected, "{request}");
        assert_eq!(wire.ask(queue.metadata().head(), "").await, code(200, ""), "after {request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_body_may_come_in_chunks_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let container = server.service().container("photos").await;
    let source = container.blob("source");
    source.put("one").await.expect(201);
    let address = format!("http://{}{}", server.service().client().address(), source.name());
    let copy = container.blob("target").request("PUT", "").header("x-ms-copy-source", address);
    let append = container.blob("log").request("PUT", "").header("x-ms-blob-type", "AppendBlob");
    let mut wire = Wire::to(server.service().client()).await;
    for (request, created) in [(copy, 202), (append, 201)] {
        assert_eq!(wire.ask(chunked(&request), "1\r\nx\r\n0\r\n\r\n").await, code(400, "InvalidHeaderValue"));
        assert_eq!(wire.ask(chunked(&request), "0\r\n\r\n").await, code(created, ""));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_first_whether_to_send_is_refused_without_having_sent() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let queue = server.queues().queue("jobs").await;
    let expecting = |request: Request, length| announcing(request.header("expect", "100-continue"), length);
    let refused = [
        (expecting(put(&queue).unsigned(), MESSAGE.len()), code(401, "NoAuthenticationInformation")),
        (expecting(put(&queue), 2_000_000), code(413, "RequestBodyTooLarge")),
        (expecting(queue.messages("POST", "?messagettl=0"), MESSAGE.len()), code(400, "OutOfRangeQueryParameterValue")),
    ];
    for (head, expected) in refused {
        let request = head.lines().next().unwrap().to_owned();
        assert_eq!(Wire::to(server.queues().client()).await.ask(head, "").await, expected, "{request}");
    }
    let mut wire = Wire::to(server.queues().client()).await;
    assert_eq!(wire.ask(expecting(put(&queue), MESSAGE.len()), "").await, code(100, ""));
    wire.say(MESSAGE).await;
    assert_eq!(wire.hear(true).await.0, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_a_length_or_comes_in_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let (queues, blobs, tables) = (server.queues(), server.service(), server.tables());
    let queue = queues.queue("jobs").await;
    let missing = code(411, "MissingContentLengthHeader");
    let endless = [
        (queues.client(), queues.existing("other").create()),
        (queues.client(), queue.request("PUT", "?comp=metadata")),
        (queues.client(), put(&queue)),
        (blobs.client(), blobs.existing("photos").create()),
        (blobs.client(), blobs.existing("photos").blob("a").put("")),
        (tables.client(), tables.request("POST", "/Tables")),
    ];
    for (client, request) in endless {
        let head = request.head().replace("content-length: 0\r\n", "");
        let what = head.lines().next().unwrap().to_owned();
        assert_eq!(Wire::to(client).await.ask(head, "").await, missing, "{what}");
    }
    let mut wire = Wire::to(queues.client()).await;
    assert_eq!(wire.ask(chunked(&queues.existing("other").create()), "0\r\n\r\n").await, code(201, ""));
    let chunks =
        format!("{:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", 20, &MESSAGE[..20], MESSAGE.len() - 20, &MESSAGE[20..]);
    assert_eq!(wire.ask(chunked(&put(&queue)), &chunks).await, code(201, ""));
    let endless = format!("{:x}\r\n{}\r\n0\r\n\r\n", 500_000, "x".repeat(500_000));
    assert_eq!(wire.ask(chunked(&put(&queue)), &endless).await, code(413, "RequestBodyTooLarge"));
    assert!(queue.peek("").await.expect(200).text().contains("<MessageText>one</MessageText>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_repeats_the_name_that_its_client_gave_the_request() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let queue = server.queues().queue("jobs").await;
    let named = |request: Request| request.header("x-ms-client-request-id", "mine-1");
    let requests = [
        (queue.metadata(), 200),
        (queue.request("HEAD", "?comp=nonsense"), 400),
        (queue.get("").unsigned(), 401),
        (queue.metadata().header("x-ms-version", "1999-01-01"), 400),
        (server.tables().request("GET", "/Absent"), 404),
        (server.service().existing("absent").list(""), 404),
    ];
    for (request, status) in requests {
        let answer = named(request).await.expect(status);
        assert_eq!(answer.header("x-ms-client-request-id"), "mine-1");
        assert_eq!(answer.code().is_empty(), status == 200, "{answer:?}");
    }
}
