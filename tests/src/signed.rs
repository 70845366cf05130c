//! A thin signing client: one request, its answer, and what a test expects of it.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use std::fmt::Write as _;
use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use lazuli_engine::clock::Clock;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::client::{Credentials, VERSION};

/// What a path segment keeps as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A name as it stands in a URL; slashes stay.
pub fn encode(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// Where requests go: in the clear, or over TLS.
#[derive(Clone)]
enum Connections {
    Plain(Pool<HttpConnector>),
    Tls(Pool<HttpsConnector<HttpConnector>>),
}

type Pool<C> = legacy::Client<C, Full<Bytes>>;

/// Signs as `account` with `key` towards one address. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    http: Connections,
    address: SocketAddr,
    credentials: Credentials,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.address)
    }
}

impl Client {
    /// The development account at `address`, dating its requests by `clock`.
    pub fn new(address: SocketAddr, clock: Arc<dyn Clock>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self {
            http: Connections::Plain(legacy::Client::builder(TokioExecutor::new()).build(connector)),
            address,
            credentials: Credentials::development().expect("the published key is one"),
            clock,
        }
    }

    /// The same, over TLS.
    #[must_use]
    pub fn over_tls(mut self, connector: HttpsConnector<HttpConnector>) -> Self {
        self.http = Connections::Tls(legacy::Client::builder(TokioExecutor::new()).build(connector));
        self
    }

    /// The same connections, another account or key.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Where it sends to.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A request for `target`, a raw path and query that begins with a slash and the account.
    pub fn request(&self, method: &str, target: impl Into<String>) -> Request {
        let mut headers = vec![("x-ms-date".to_owned(), self.date()), ("x-ms-version".to_owned(), VERSION.to_owned())];
        headers.push(("host".to_owned(), self.address.to_string()));
        Request {
            client: self.clone(),
            method: method.to_owned(),
            target: target.into(),
            headers,
            body: Bytes::new(),
            signed: true,
        }
    }

    /// The present moment as a header has it.
    pub fn date(&self) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(self.clock.now().unix_seconds()))
    }
}

/// A request about to be sent. Awaited, it gives the answer and panics if there is none.
#[must_use]
pub struct Request {
    client: Client,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    signed: bool,
}

impl Request {
    /// Sets a header, in place of one of the same name. An empty `value` removes it.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            self.headers.push((name.to_owned(), value));
        }
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Signs as somebody else, or with another key.
    pub fn signed_by(mut self, credentials: Credentials) -> Self {
        self.client.credentials = credentials;
        self
    }

    /// Sends the request with a shared access signature in its query, and no other.
    pub fn with_sas(mut self, sas: &str) -> Self {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(sas);
        self.unsigned()
    }

    /// Sends the request with a bearer token, and no other credentials.
    pub fn with_token(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}")).unsigned()
    }

    /// Sends the request without an Authorization header, or with only the one set by hand.
    pub const fn unsigned(mut self) -> Self {
        self.signed = false;
        self
    }

    /// The headers to send, the signature among them.
    fn complete(&self) -> Vec<(String, String)> {
        let mut headers = self.headers.clone();
        if !has(&headers, "content-length") && (!self.body.is_empty() || matches!(&*self.method, "PUT" | "POST")) {
            headers.push(("content-length".to_owned(), self.body.len().to_string()));
        }
        if self.signed {
            headers.push(("authorization".to_owned(), self.authorization(&headers)));
        }
        headers
    }

    fn authorization(&self, headers: &[(String, String)]) -> String {
        let method = Method::from_bytes(self.method.as_bytes()).expect("a method is a token");
        let map: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::from_bytes(name.as_bytes()).expect("a header's name is a token");
                (name, HeaderValue::from_str(value).expect("a header's value is text"))
            })
            .collect();
        let length = map.get("content-length").and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or(0);
        let signed = self.client.credentials.authorization(&method, &self.target, &map, length);
        signed.expect("the request can be signed").to_str().expect("a signature is text").to_owned()
    }

    /// The head of the request as it goes over the wire, up to and with the empty line: for tests that misuse the
    /// connection itself.
    pub fn head(&self) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in self.complete() {
            let _ = write!(head, "{name}: {value}\r\n"); // writing to a String cannot fail
        }
        head + "\r\n"
    }

    /// Sends the request; the body of the response is still to be read.
    pub async fn open(self) -> Result<http::Response<Incoming>, Unanswered> {
        let scheme = if matches!(self.client.http, Connections::Tls(_)) { "https" } else { "http" };
        let uri = format!("{scheme}://{}{}", self.client.address, self.target);
        let mut request = http::Request::builder().method(&*self.method).uri(uri);
        for (name, value) in self.complete() {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(self.body)).map_err(|error| Unanswered(error.to_string()))?;
        let sent = match self.client.http {
            Connections::Plain(pool) => pool.request(request),
            Connections::Tls(pool) => pool.request(request),
        };
        sent.await.map_err(|error| Unanswered(format!("{error:?}")))
    }

    /// Sends the request and reads the answer; an error if the connection breaks before its end.
    pub async fn attempt(self) -> Result<Answer, Unanswered> {
        let what = format!("{} {}", self.method, self.target);
        let (head, body) = self.open().await?.into_parts();
        let body = body.collect().await.map_err(|error| Unanswered(format!("{what}: {error}")))?.to_bytes();
        Ok(Answer { what, status: head.status, headers: head.headers, body })
    }
}

impl IntoFuture for Request {
    type Output = Answer;
    type IntoFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.attempt().await.expect("an answer") })
    }
}

/// The connection broke before the answer was complete: what became of the request is unknown.
#[derive(Clone, Debug)]
pub struct Unanswered(pub String);

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Method and target, for failure messages.
    what: String,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// Checks the status and gives the answer on.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}: {}", self.what, self.text());
        self
    }

    /// Checks status and error code, and that every answer's usual headers are there.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status.as_u16(), self.code()), (status, code), "{}: {}", self.what, self.text());
        assert!(!self.header("x-ms-request-id").is_empty(), "{}: no request id", self.what);
        self
    }

    /// The error code; empty on success.
    pub fn code(&self) -> &str {
        self.header("x-ms-error-code")
    }

    /// A header as text; empty if absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The ETag.
    pub fn etag(&self) -> String {
        self.header("etag").to_owned()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn has(headers: &[(String, String)], name: &str) -> bool {
    headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}
