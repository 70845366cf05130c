//! Blobs of other servers, read over HTTP: the sources of copies.
//! <https://learn.microsoft.com/rest/api/storageservices/copy-blob>
//!
//! Redirects are not followed. A reading that breaks off is taken up again where it broke, from the same version of the
//! blob or not at all.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HOST, IF_MATCH, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Collected, Empty, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::range::{ByteRange, RangeRequest};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::error::Elapsed;

use crate::code::Code;
use crate::error::Problem;
use crate::wire::date;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long an answer, or the next bytes of it, may take.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Largest body of Get Blob Tags.
const TAGS_BYTES_MAX: usize = 64 * 1024;
/// Ranges that one Get Page Ranges asks for, and the largest answer.
const PAGE_RANGES_MAX: usize = 1000;
const PAGE_LIST_BYTES_MAX: usize = 1024 * 1024;
/// How often a reading that broke off is taken up again before the next bytes come.
const ATTEMPTS_MAX: u32 = 4;
/// How long the first new attempt waits; each further one waits twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// What is said of a source that does not answer in time.
const LATE: &str = "Could not verify the copy source within the specified time.";
/// The version of the protocol that sources are asked in.
const VERSION: &str = "2024-11-04";

type Plain = Client<HttpConnector, Empty<Bytes>>;
type Tls = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// A client of other servers. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Remote {
    plain: Plain,
    /// Made for the first source that needs it: it reads the machine's certificates. None if there are none.
    tls: Arc<OnceLock<Option<Tls>>>,
}

impl Default for Remote {
    fn default() -> Self {
        Self { plain: client(connector()), tls: Arc::default() }
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_MAX));
    connector.set_nodelay(true);
    connector
}

fn client<C>(connector: C) -> Client<C, Empty<Bytes>>
where
    C: hyper_util::client::legacy::connect::Connect + Clone,
{
    Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector)
}

fn tls() -> Option<Tls> {
    let mut plain = connector();
    plain.enforce_http(false);
    let builder = HttpsConnectorBuilder::new().with_native_roots();
    match builder {
        Ok(builder) => Some(client(builder.https_only().enable_http1().wrap_connector(plain))),
        Err(error) => {
            tracing::warn!(%error, "no certificates were found: no source can be read over https");
            None
        }
    }
}

/// A blob to read, and what its server is told.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Where it is, with its signature.
    pub uri: Uri,
    /// The value of Authorization.
    pub authorization: Option<HeaderValue>,
    /// Conditions.
    pub conditions: HeaderMap,
    /// The headers that bring the key which it is stored under.
    pub key: HeaderMap,
}

/// What a server says about a blob.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its version; without one a reading cannot be taken up again.
    pub etag: Option<HeaderValue>,
    /// Bytes of the whole.
    pub length: u64,
    /// All its headers.
    pub headers: HeaderMap,
}

/// A blob, or a part of it, being read.
#[derive(Debug)]
pub struct Reading {
    /// The blob.
    pub described: Described,
    remote: Remote,
    ask: Ask,
    body: Option<Incoming>,
    /// The next byte.
    at: u64,
    end: u64,
}

impl Remote {
    /// Begins to read a blob, or a part of it.
    ///
    /// Refuses `CannotVerifyCopySource` with the status that its server gave, `SourceConditionNotMet`, and `InvalidRange`
    /// for a part that begins behind its end.
    pub async fn read(&self, ask: Ask, range: Option<RangeRequest>) -> Result<Reading, Problem> {
        let mut headers = ask.conditions.clone();
        headers.extend(ask.key.clone());
        if let Some(range) = range {
            headers.insert(RANGE, range_value(range));
        }
        let (head, body) = self.send(&ask, Method::GET, headers).await?.into_parts();
        let (part, length) = match head.status {
            StatusCode::PARTIAL_CONTENT => content_range(&head.headers)?,
            StatusCode::OK => {
                let length = content_length(&head.headers)?;
                (ByteRange { first: 0, length }, length)
            }
            status => return Err(refused(status, &head.headers)),
        };
        let wanted = match range {
            Some(range) => {
                range.within(length).map_err(|refusal| Problem::from(lazuli_engine::Error::from(refusal)))?
            }
            None => ByteRange { first: 0, length },
        };
        if part != wanted {
            return Err(unverified(StatusCode::CONFLICT, "The source does not answer a part of its bytes."));
        }
        let described = Described { etag: head.headers.get(ETAG).cloned(), length, headers: head.headers };
        let (remote, end) = (self.clone(), part.first + part.length);
        Ok(Reading { described, remote, ask, body: Some(body), at: part.first, end })
    }

    /// The body of Get Blob Tags.
    ///
    /// Refuses `CannotVerifyCopySource`.
    pub async fn tags(&self, ask: Ask) -> Result<Bytes, Problem> {
        let ask = Ask { conditions: HeaderMap::new(), key: HeaderMap::new(), ..ask };
        self.about_blob(ask, "comp=tags", HeaderMap::new(), TAGS_BYTES_MAX).await
    }

    /// The body of Get Page Ranges, from byte `first` to the end of the blob, where `marker` says; with the snapshot
    /// `since`, only what differs from that.
    ///
    /// Refuses as [`Self::read`].
    pub async fn page_list(
        &self,
        ask: Ask,
        first: u64,
        since: Option<Timestamp>,
        marker: Option<&str>,
    ) -> Result<Bytes, Problem> {
        let option = |name: &str, value: &str| format!("&{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
        let since = since.map(|since| option("prevsnapshot", &date::iso8601(since))).unwrap_or_default();
        let marker = marker.map(|marker| option("marker", marker)).unwrap_or_default();
        let query = format!("comp=pagelist&maxresults={PAGE_RANGES_MAX}{since}{marker}");
        let mut headers = ask.conditions.clone();
        headers.insert(RANGE, range_value(RangeRequest { first, last: None }));
        self.about_blob(ask, &query, headers, PAGE_LIST_BYTES_MAX).await
    }

    /// A small document about a blob.
    async fn about_blob(&self, ask: Ask, query: &str, headers: HeaderMap, bytes_max: usize) -> Result<Bytes, Problem> {
        let joint = if ask.uri.query().is_some() { '&' } else { '?' };
        let uri = format!("{}{joint}{query}", ask.uri).parse();
        let uri = uri.map_err(|_| unverified(StatusCode::CONFLICT, "The source has no address for what is asked."))?;
        let (head, body) = self.send(&Ask { uri, ..ask }, Method::GET, headers).await?.into_parts();
        if head.status != StatusCode::OK {
            return Err(refused(head.status, &head.headers));
        }
        match whole(body, bytes_max).await {
            Ok(body) => body.ok_or_else(broken),
            Err(_) => Err(late()),
        }
    }

    /// The document at `address`, at most `bytes_max` bytes; or what is wrong with it.
    pub(crate) async fn document(&self, address: &Uri, bytes_max: usize) -> Result<Bytes, String> {
        let answer = self.request(Method::GET, address, HeaderMap::new()).await;
        let answer = answer.map_err(|unreached| match unreached {
            Unreached::NoCertificates => "no certificates were found on this machine".to_owned(),
            Unreached::Broken | Unreached::Late => format!("{address} was not reached"),
        })?;
        let (head, body) = answer.into_parts();
        if head.status != StatusCode::OK {
            return Err(format!("{address} answers {}", head.status));
        }
        let body = whole(body, bytes_max).await.ok().flatten();
        body.ok_or_else(|| format!("{address} does not answer to the end, or more than {bytes_max} bytes"))
    }

    async fn send(
        &self,
        ask: &Ask,
        method: Method,
        mut headers: HeaderMap,
    ) -> Result<http::Response<Incoming>, Problem> {
        headers.insert("x-ms-version", HeaderValue::from_static(VERSION));
        if let Some(authorization) = &ask.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let sent = self.request(method, &ask.uri, headers).await;
        sent.map_err(|unreached| unverified(StatusCode::INTERNAL_SERVER_ERROR, unreached.message()))
    }

    async fn request(
        &self,
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
    ) -> Result<http::Response<Incoming>, Unreached> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = method;
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = headers;
        if let Some(host) = uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok()) {
            request.headers_mut().insert(HOST, host);
        }
        let sent = if uri.scheme_str() == Some("https") {
            self.tls.get_or_init(tls).as_ref().ok_or(Unreached::NoCertificates)?.request(request)
        } else {
            self.plain.request(request)
        };
        match tokio::time::timeout(IDLE_MAX, sent).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "another server was not reached");
                Err(Unreached::Broken)
            }
            Err(_) => Err(Unreached::Late),
        }
    }
}

/// A small body to its end, or none if it breaks or is over `bytes_max`.
async fn whole(body: Incoming, bytes_max: usize) -> Result<Option<Bytes>, Elapsed> {
    let collected = tokio::time::timeout(IDLE_MAX, Limited::new(body, bytes_max).collect()).await?;
    Ok(collected.ok().map(Collected::to_bytes))
}

/// Why there is no answer of another server.
#[derive(Clone, Copy, Debug)]
enum Unreached {
    NoCertificates,
    Broken,
    Late,
}

impl Unreached {
    const fn message(self) -> &'static str {
        match self {
            Self::NoCertificates => "This server has no certificates.",
            Self::Broken => "The server of the source was not reached.",
            Self::Late => LATE,
        }
    }
}

impl Described {
    /// The version, if it is one that tells every change of the bytes.
    pub fn version(&self) -> Option<&str> {
        self.etag.as_ref()?.to_str().ok().filter(|etag| !etag.starts_with("W/"))
    }
}

impl Reading {
    /// Bytes still to come.
    pub fn remaining(&self) -> u64 {
        self.end - self.at
    }

    /// The next bytes; none at the end.
    ///
    /// Refuses `CannotVerifyCopySource` for a source that cannot be read to its end, and `SourceConditionNotMet` for one
    /// that changed meanwhile.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let mut attempts = 0;
        while self.at < self.end {
            match self.frame().await {
                Some(bytes) => {
                    self.at += bytes.len() as u64;
                    if self.at > self.end {
                        return Err(broken());
                    }
                    if !bytes.is_empty() {
                        return Ok(Some(bytes));
                    }
                }
                None if attempts == ATTEMPTS_MAX => return Err(broken()),
                None => {
                    tokio::time::sleep(PAUSE * 2_u32.pow(attempts)).await;
                    attempts += 1;
                    self.take_up().await?;
                }
            }
        }
        Ok(None)
    }

    /// The next bytes of the answer under way; none if it broke off.
    async fn frame(&mut self) -> Option<Bytes> {
        let frame = tokio::time::timeout(IDLE_MAX, self.body.as_mut()?.frame()).await;
        match frame {
            Ok(Some(Ok(frame))) => Some(frame.into_data().unwrap_or_default()),
            _ => None,
        }
    }

    /// Asks for the rest of the same version. A server that cannot be reached now may be later.
    async fn take_up(&mut self) -> Result<(), Problem> {
        let Some(etag) = self.described.etag.clone().filter(|_| self.described.version().is_some()) else {
            return Err(broken());
        };
        let mut headers = self.ask.key.clone();
        headers.insert(IF_MATCH, etag);
        headers.insert(RANGE, range_value(RangeRequest { first: self.at, last: Some(self.end - 1) }));
        self.body = None;
        let Ok(response) = self.remote.send(&self.ask, Method::GET, headers).await else { return Ok(()) };
        let (head, body) = response.into_parts();
        match head.status {
            StatusCode::PARTIAL_CONTENT if content_range(&head.headers)?.0.first == self.at => self.body = Some(body),
            status if status.is_server_error() => {}
            status => return Err(refused(status, &head.headers)),
        }
        Ok(())
    }
}

fn range_value(range: RangeRequest) -> HeaderValue {
    let last = range.last.map(|last| last.to_string()).unwrap_or_default();
    // Digits and a hyphen are a header's value.
    HeaderValue::try_from(format!("bytes={}-{last}", range.first)).unwrap_or(HeaderValue::from_static("bytes=0-"))
}

fn content_length(headers: &HeaderMap) -> Result<u64, Problem> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    length.ok_or_else(|| unverified(StatusCode::CONFLICT, "The source does not say how long it is."))
}

/// The part and the length of the whole in `bytes 0-4/10`.
fn content_range(headers: &HeaderMap) -> Result<(ByteRange, u64), Problem> {
    let parse = |text: &str| {
        let (part, length) = text.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
        let (first, last) = part.split_once('-')?;
        let (first, last, length): (u64, u64, u64) = (first.parse().ok()?, last.parse().ok()?, length.parse().ok()?);
        let count = last.checked_sub(first)?.checked_add(1)?;
        (last < length).then_some((ByteRange { first, length: count }, length))
    };
    let range = headers.get(CONTENT_RANGE).and_then(|value| parse(value.to_str().ok()?));
    range.ok_or_else(|| unverified(StatusCode::CONFLICT, "The source does not say which part it answers."))
}

/// What an answer other than success says about the source.
fn refused(status: StatusCode, headers: &HeaderMap) -> Problem {
    if matches!(status, StatusCode::PRECONDITION_FAILED | StatusCode::NOT_MODIFIED) {
        return Problem::new(Code::SourceConditionNotMet);
    }
    if status == StatusCode::RANGE_NOT_SATISFIABLE {
        return Problem::new(Code::InvalidRange);
    }
    let own = match status {
        status if status.is_client_error() => status,
        status if status.is_server_error() => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    };
    let code = headers.get(HeaderName::from_static("x-ms-error-code")).and_then(|code| code.to_str().ok());
    explained(own, status, code.unwrap_or_default(), status.canonical_reason().unwrap_or("It was refused."))
}

/// `CannotVerifyCopySource`, with what the source answered.
pub(crate) fn explained(own: StatusCode, status: StatusCode, code: &str, message: &str) -> Problem {
    let problem = unverified(own, message)
        .with_header("x-ms-copy-source-status-code", status.as_u16().to_string())
        .detail("CopySourceStatusCode", status.as_u16().to_string());
    let problem = if code.is_empty() {
        problem
    } else {
        problem.with_header("x-ms-copy-source-error-code", code).detail("CopySourceErrorCode", code)
    };
    problem.detail("CopySourceErrorMessage", message)
}

/// `CannotVerifyCopySource` of a source that did not even answer.
pub(crate) fn unverified(status: StatusCode, message: &str) -> Problem {
    Problem { status: Some(status), ..Problem::new(Code::CannotVerifyCopySource).saying(message) }
}

fn late() -> Problem {
    unverified(StatusCode::INTERNAL_SERVER_ERROR, LATE)
}

fn broken() -> Problem {
    unverified(StatusCode::INTERNAL_SERVER_ERROR, "The source could not be read to its end.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_its_header_says_or_none() {
        let headers = |text: &str| HeaderMap::from_iter([(CONTENT_RANGE, HeaderValue::from_str(text).unwrap())]);
        let part = |first, length, whole| Ok((ByteRange { first, length }, whole));
        assert_eq!(content_range(&headers("bytes 0-0/1")), part(0, 1, 1));
        assert_eq!(content_range(&headers("bytes 3-9/10")), part(3, 7, 10));
        for text in ["bytes */10", "bytes 3-9/*", "bytes 9-3/10", "bytes 3-10/10", "items 0-1/2", "", "bytes 0-1"] {
            let problem = content_range(&headers(text)).unwrap_err();
            assert_eq!(problem.code, Code::CannotVerifyCopySource, "{text}");
        }
    }

    #[test]
    fn what_the_source_answers_is_told_on() {
        let code = HeaderMap::from_iter([(
            HeaderName::from_static("x-ms-error-code"),
            HeaderValue::from_static("BlobNotFound"),
        )]);
        let cases = [
            (404, 404, Code::CannotVerifyCopySource),
            (403, 403, Code::CannotVerifyCopySource),
            (503, 500, Code::CannotVerifyCopySource),
            (301, 409, Code::CannotVerifyCopySource),
            (412, 412, Code::SourceConditionNotMet),
            (304, 412, Code::SourceConditionNotMet),
            (416, 416, Code::InvalidRange),
        ];
        for (status, expected, expected_code) in cases {
            let problem = refused(StatusCode::from_u16(status).unwrap(), &code);
            assert_eq!((problem.status().as_u16(), problem.code), (expected, expected_code), "{status}");
            if expected_code == Code::CannotVerifyCopySource {
                assert!(problem.headers.contains(&("x-ms-copy-source-error-code", "BlobNotFound".into())));
                assert!(problem.headers.contains(&("x-ms-copy-source-status-code", status.to_string())));
            }
        }
    }
}
