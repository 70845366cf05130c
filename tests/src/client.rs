//! A small client: signed requests (Shared Key) over one keep-alive HTTP/1.1 connection.
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key>

use std::error::Error;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::{Bytes, BytesMut};
use hmac::{Hmac, KeyInit, Mac};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, DATE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use lazuli_engine::clock::{Clock, SystemClock};
use percent_encoding::percent_decode_str;
use sha2::Sha256;
use tokio::net::TcpStream;

/// The account that every emulator knows.
pub const ACCOUNT: &str = "devstoreaccount1";
/// Its published key.
pub const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The `x-ms-version` of requests that name none.
pub const VERSION: &str = "2024-11-04";
const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
const X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");
/// The headers that stand in the string to sign by their place, not their name, before and after Content-Length.
const SIGNED_BEFORE_LENGTH: [&str; 2] = ["content-encoding", "content-language"];
const SIGNED_AFTER_DATE: [&str; 5] = ["if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"];

/// Why a request got no answer, or not the one it had to get.
pub type Failure = Box<dyn Error + Send + Sync>;

/// An account and its key. Cheap to clone.
#[derive(Clone)]
pub struct Credentials {
    account: Arc<str>,
    keyed: Hmac<Sha256>,
    /// Whether they sign as the table service has it.
    tables: bool,
}

impl Credentials {
    /// The credentials of `account`; `key` in Base64, as it is published.
    pub fn new(account: &str, key: &str) -> Result<Self, Failure> {
        Ok(Self { account: account.into(), keyed: Hmac::new_from_slice(&BASE64.decode(key)?)?, tables: false })
    }

    /// Those of [`ACCOUNT`].
    pub fn development() -> Result<Self, Failure> {
        Self::new(ACCOUNT, KEY)
    }

    /// The same account and key towards the table service, which has a shorter string to sign.
    #[must_use]
    pub fn for_tables(self) -> Self {
        Self { tables: true, ..self }
    }

    /// The signature of `text`, in Base64.
    pub fn sign(&self, text: &str) -> String {
        BASE64.encode(self.keyed.clone().chain_update(text.as_bytes()).finalize().into_bytes())
    }

    /// The `Authorization` of a request with these headers, `x-ms-date` among them, and `length` bytes of body.
    /// `target` is path and query as they go over the wire.
    pub fn authorization(
        &self,
        method: &Method,
        target: &str,
        headers: &HeaderMap,
        length: usize,
    ) -> Result<HeaderValue, Failure> {
        let mut text = String::with_capacity(512);
        text.push_str(method.as_str());
        text.push('\n');
        if self.tables {
            for name in ["content-md5", "content-type", "x-ms-date"] {
                push_line(&mut text, headers, name)?;
            }
            push_short_resource(&mut text, &self.account, target)?;
            return Ok(HeaderValue::try_from(format!("SharedKey {}:{}", self.account, self.sign(&text)))?);
        }
        for name in SIGNED_BEFORE_LENGTH {
            push_line(&mut text, headers, name)?;
        }
        if length > 0 {
            write!(text, "{length}")?;
        }
        text.push('\n');
        push_line(&mut text, headers, "content-md5")?;
        push_line(&mut text, headers, "content-type")?;
        // x-ms-date is always sent and takes the place of Date.
        text.push('\n');
        for name in SIGNED_AFTER_DATE {
            push_line(&mut text, headers, name)?;
        }
        push_service_headers(&mut text, headers)?;
        push_resource(&mut text, &self.account, target)?;
        let signature = self.keyed.clone().chain_update(text.as_bytes()).finalize().into_bytes();
        text.clear();
        write!(text, "SharedKey {}:", self.account)?;
        BASE64.encode_string(signature, &mut text);
        Ok(HeaderValue::try_from(text)?)
    }
}

fn push_line(text: &mut String, headers: &HeaderMap, name: &str) -> Result<(), Failure> {
    if let Some(value) = headers.get(name) {
        text.push_str(value.to_str()?);
    }
    text.push('\n');
    Ok(())
}

/// Each `x-ms-` header once, in byte order of the names.
fn push_service_headers(text: &mut String, headers: &HeaderMap) -> Result<(), Failure> {
    let mut names: Vec<&str> =
        headers.keys().map(HeaderName::as_str).filter(|name| name.starts_with("x-ms-")).collect();
    names.sort_unstable();
    for name in names {
        text.push_str(name);
        for (index, value) in headers.get_all(name).iter().enumerate() {
            text.push(if index == 0 { ':' } else { ',' });
            text.push_str(value.to_str()?.trim());
        }
        text.push('\n');
    }
    Ok(())
}

/// The raw path behind the account, then the decoded parameters in order of their names.
fn push_resource(text: &mut String, account: &str, target: &str) -> Result<(), Failure> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    write!(text, "/{account}{path}")?;
    let mut parameters = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = percent_decode_str(name).decode_utf8()?.to_lowercase();
        parameters.push((name, percent_decode_str(value).decode_utf8()?));
    }
    parameters.sort_unstable();
    let mut last = None;
    for (name, value) in &parameters {
        if last == Some(name) {
            write!(text, ",{value}")?;
        } else {
            write!(text, "\n{name}:{value}")?;
        }
        last = Some(name);
    }
    Ok(())
}

/// The raw path behind the account, and of the query only `comp`.
fn push_short_resource(text: &mut String, account: &str, target: &str) -> Result<(), Failure> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    write!(text, "/{account}{path}")?;
    if let Some(comp) = query.split('&').find(|pair| pair.starts_with("comp=")) {
        write!(text, "?{comp}")?;
    }
    Ok(())
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Answer {
    /// The value of a header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as text, damaged bytes replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One connection to one server; opened with the first request and again after it was closed.
///
/// Paths are given below the account and percent-encoded: `container/blob?comp=metadata`.
pub struct Client {
    address: SocketAddr,
    account: Arc<str>,
    credentials: Option<Credentials>,
    host: HeaderValue,
    date: (u64, HeaderValue),
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// A client that signs as `credentials`.
    pub fn new(address: SocketAddr, credentials: Credentials) -> Result<Self, Failure> {
        Ok(Self {
            account: Arc::clone(&credentials.account),
            credentials: Some(credentials),
            ..Self::anonymous(address, ACCOUNT)?
        })
    }

    /// A client that does not sign.
    pub fn anonymous(address: SocketAddr, account: &str) -> Result<Self, Failure> {
        Ok(Self {
            address,
            account: account.into(),
            credentials: None,
            host: HeaderValue::try_from(address.to_string())?,
            date: (0, HeaderValue::from_static("")),
            connection: None,
        })
    }

    /// PUT with a body, which may be empty.
    pub async fn put(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, Failure> {
        self.send(Method::PUT, path, headers, body.into()).await
    }

    /// GET.
    pub async fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<Answer, Failure> {
        self.send(Method::GET, path, headers, Bytes::new()).await
    }

    /// HEAD.
    pub async fn head(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<Answer, Failure> {
        self.send(Method::HEAD, path, headers, Bytes::new()).await
    }

    /// DELETE.
    pub async fn delete(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<Answer, Failure> {
        self.send(Method::DELETE, path, headers, Bytes::new()).await
    }

    /// Any method; the answer's body is collected.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer, Failure> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name)?, HeaderValue::try_from(*value)?);
        }
        let (head, incoming) = self.exchange(method, path, map, body).await?.into_parts();
        let body = incoming.collect().await?.to_bytes();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// As [`Self::send`], but counts the bytes of a successful answer's body and forgets them. Any status but
    /// `expected` is a failure that tells the answer.
    pub async fn drain(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
        expected: StatusCode,
    ) -> Result<u64, Failure> {
        let (head, mut incoming) = self.exchange(method.clone(), path, headers, body).await?.into_parts();
        let mut kept = BytesMut::new();
        let mut count = 0;
        while let Some(frame) = incoming.frame().await {
            if let Some(data) = frame?.data_ref() {
                count += data.len() as u64;
                if head.status != expected {
                    kept.extend_from_slice(data);
                }
            }
        }
        if head.status != expected {
            return Err(format!("{method} {path}: {} {}", head.status, String::from_utf8_lossy(&kept)).into());
        }
        Ok(count)
    }

    async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<http::Response<Incoming>, Failure> {
        let target = format!("/{}/{path}", self.account);
        headers.insert(HOST, self.host.clone());
        if !headers.contains_key(X_MS_VERSION) {
            headers.insert(X_MS_VERSION, HeaderValue::from_static(VERSION));
        }
        if !headers.contains_key(X_MS_DATE) {
            headers.remove(DATE);
            headers.insert(X_MS_DATE, self.date()?);
        }
        if method == Method::PUT && !headers.contains_key(CONTENT_LENGTH) {
            // hyper announces no length for an empty body.
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        if let Some(credentials) = &self.credentials {
            let authorization = credentials.authorization(&method, &target, &headers, body.len())?;
            headers.insert(AUTHORIZATION, authorization);
        }
        let mut request = Request::builder().method(method).uri(target).body(Full::new(body))?;
        *request.headers_mut() = headers;
        let mut connection = self.connected().await?;
        let response = connection.send_request(request).await?;
        self.connection = Some(connection);
        Ok(response)
    }

    async fn connected(&mut self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        if let Some(mut connection) = self.connection.take()
            && connection.ready().await.is_ok()
        {
            return Ok(connection);
        }
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Its end shows as a failed request or as not ready.
        tokio::spawn(connection);
        Ok(sender)
    }

    /// Now; written anew only once a second.
    fn date(&mut self) -> Result<HeaderValue, Failure> {
        let second = SystemClock.now().unix_seconds();
        if self.date.0 != second {
            let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
            self.date = (second, HeaderValue::try_from(text)?);
        }
        Ok(self.date.1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signatures checked against an official client.
    /// Likewise.
    #[test]
    fn requests_to_the_table_service_are_signed_as_it_wants() {
        let credentials = Credentials::development().unwrap().for_tables();
        let mut headers = HeaderMap::new();
        headers.insert(X_MS_DATE, HeaderValue::from_static("Sat, 01 Aug 2026 00:00:00 GMT"));
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        for (target, signature) in [
            ("/devstoreaccount1/Tables", "zCBdn0AQTe7Nr/3cPyRFffOSaayxyBPj31hi6GPjxOs="),
            (
                "/devstoreaccount1/t(PartitionKey='p',RowKey='r%20s')?$select=a",
                "YYqWczcpiPPjrAx65d6eJA+Mq/tTBMkuPQJ6IvYtO1k=",
            ),
            ("/devstoreaccount1/t?timeout=20&comp=acl", "SBNidZk5hsROIx6n+fvXmKJUITYwH02Lw37u3q4nHqM="),
        ] {
            let made = credentials.authorization(&Method::POST, target, &headers, 7).unwrap();
            assert_eq!(made.to_str().unwrap(), format!("SharedKey {ACCOUNT}:{signature}"), "{target}");
        }
    }

    #[test]
    fn published_examples_are_signed_as_published() {
        let blob: &[(&'static str, &'static str)] = &[
            ("content-md5", "XrY7u+Ae7tCTyyK7j1rNww=="),
            ("content-type", "text/plain"),
            ("if-none-match", "*"),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-meta-owner", "ann"),
        ];
        let cases = [
            (
                Method::GET,
                "/devstoreaccount1/mycontainer?restype=container&comp=metadata&timeout=20",
                &[][..],
                0,
                "oAy94vaEtY9Pkgyb3U9tXYaqXcmGtlG89dpDg6nESFc=",
            ),
            (
                Method::PUT,
                "/devstoreaccount1/mycontainer/dir/my%20blob.txt",
                blob,
                11,
                "XTO+qqLm/uW8f3FTwUIZFUi4tQSgrb0fm4+voIHDGEM=",
            ),
            (
                Method::GET,
                "/devstoreaccount1/mycontainer?restype=container&comp=list&prefix=a%20b%2F&include=snapshots,metadata",
                &[],
                0,
                "Yklk3/8HtOgVTKXF3TqriaNg6N1NDbnF9yDwtRJMgRg=",
            ),
        ];
        let credentials = Credentials::development().unwrap();
        for (method, target, extra, length, signature) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(X_MS_DATE, HeaderValue::from_static("Sat, 01 Aug 2026 00:00:00 GMT"));
            headers.insert(X_MS_VERSION, HeaderValue::from_static("2026-04-06"));
            for (name, value) in extra {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            let made = credentials.authorization(&method, target, &headers, length).unwrap();
            assert_eq!(made.to_str().unwrap(), format!("SharedKey {ACCOUNT}:{signature}"), "{target}");
        }
    }
}
