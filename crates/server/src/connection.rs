//! A connection, from its first byte to its end: encrypted or not, HTTP/1.1 or HTTP/2.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::pin::pin;

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, Uri, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use lazuli_api::auth::Peer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

use crate::head::{Cased, Cases, Tap};
use crate::listen::Limits;
use crate::patience::Patient;
use crate::tls::{self, Tls};
use crate::work::Work;

/// Header fields of a request. Azure allows far fewer; a metadata-laden blob has some dozens.
const HEADERS_MAX: usize = 200;
/// Bytes that hyper buffers of a connection, and so the longest head.
const BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Requests of a connection of HTTP/2 at a time; more wait.
const STREAMS_MAX: u32 = 100;
/// Bytes of the header fields of a request of HTTP/2.
const FIELDS_BYTES_MAX: u32 = 64 * 1024;
/// Bytes of a request's body, and of all of a connection, that are ahead of what the server takes. That a body waits for
/// the disk does not hold up another one.
const WINDOW_BYTES: u32 = 1024 * 1024;
const WINDOWS_BYTES: u32 = 2 * WINDOW_BYTES;
/// Bytes of an answer that are ahead of what a client of HTTP/2 takes.
const AHEAD_BYTES_MAX: usize = 256 * 1024;

/// What serves the connections of a port.
pub(crate) struct Reception<S> {
    service: S,
    limits: Limits,
    tls: Option<Tls>,
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

/// A connection of which it is known how it goes on.
enum Begun {
    Plain(Patient<TcpStream>),
    Secure(Box<TlsStream<Patient<TcpStream>>>),
}

impl<S, B> Reception<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    /// Serves `service` within `limits`: encrypted, if there is a certificate and the client begins so.
    pub(crate) fn new(service: S, limits: Limits, tls: Option<Tls>) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_headers(HEADERS_MAX)
            .max_buf_size(BUFFER_BYTES_MAX)
            // A client may close its sending side and still wait for the answer.
            .half_close(true);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(FIELDS_BYTES_MAX)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOWS_BYTES)
            .max_send_buf_size(AHEAD_BYTES_MAX);
        Self { service, limits, tls, http1, http2 }
    }

    /// Serves a connection until its end, or until `stop` says so and the requests that had begun have ended.
    pub(crate) async fn receive(&self, socket: TcpStream, watcher: Watcher, mut stop: watch::Receiver<bool>) {
        let address = socket.peer_addr().map(|address| address.ip());
        let peer = |secure| address.as_ref().map_or_else(|_| Peer::default(), |&address| Peer::at(address, secure));
        let work = Work::default();
        let begun = tokio::select! {
            begun = self.begin(socket, work.clone()) => begun,
            // Nothing was asked for yet.
            _ = stop.wait_for(|&stop| stop) => return,
        };
        let ended: Result<(), Box<dyn Error + Send + Sync>> = match begun {
            Ok(Begun::Plain(socket)) => self.speak_http1(socket, peer(false), watcher).await,
            Ok(Begun::Secure(socket)) if socket.get_ref().1.alpn_protocol() == Some(tls::HTTP2) => {
                let ended = self.speak_http2(socket, peer(true), work, stop).await;
                drop(watcher);
                ended
            }
            Ok(Begun::Secure(socket)) => self.speak_http1(socket, peer(true), watcher).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = ended {
            tracing::debug!(error = &*error as &dyn Error, "a connection broke");
        }
    }

    /// Finds out whether the connection is to be encrypted, and agrees with the client on how. That takes no longer
    /// than the head of a request.
    async fn begin(&self, socket: TcpStream, work: Work) -> io::Result<Begun> {
        let patient = |socket| Patient::new(socket, self.limits.idle).excused_by(work);
        let Some(tls) = &self.tls else { return Ok(Begun::Plain(patient(socket))) };
        let handshake = async {
            let mut first = [0];
            socket.peek(&mut first).await?;
            if first != [tls::FIRST_BYTE] {
                return Ok(Begun::Plain(patient(socket)));
            }
            Ok(Begun::Secure(Box::new(tls.acceptor().accept(patient(socket)).await?)))
        };
        tokio::time::timeout(self.limits.head, handshake).await?
    }

    async fn speak_http1(
        &self,
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
        watcher: Watcher,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let inner = self.service.clone();
        let service = service_fn(move |request| inner.call(addressed(request, peer)));
        let cases = Cases::default();
        let socket = TokioIo::new(Tap::new(socket, cases.clone()));
        watcher.watch(self.http1.serve_connection(socket, Cased::new(service, cases))).await?;
        Ok(())
    }

    /// As [`Self::speak_http1`]. The case of names is nothing here: they are in lower case on the wire.
    async fn speak_http2(
        &self,
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
        work: Work,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (inner, began) = (self.service.clone(), work.clone());
        let service = service_fn(move |request| {
            let unanswered = began.begin();
            let answer = inner.call(addressed(as_http1(request), peer));
            async move { answer.await.map(|response| response.map(|body| unanswered.answered(body))) }
        });
        let mut connection = pin!(self.http2.serve_connection(TokioIo::new(socket), service));
        let mut stopping = false;
        let mut resting = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => return Ok(ended?),
                // The client is told, and what it sent meanwhile is still answered.
                () = work.rest(self.limits.head) => {
                    if resting {
                        return Err(io::Error::from(io::ErrorKind::TimedOut).into());
                    }
                    resting = true;
                    work.renew();
                }
                _ = stop.wait_for(|&stop| stop), if !stopping => stopping = true,
            }
            connection.as_mut().graceful_shutdown();
        }
    }
}

/// The request, with who sent it, and with a path whatever its first line says: warp panics on one that names nothing
/// but a host and a port, as `CONNECT` does. No service is at `*`, so that it is refused as any other address that is
/// none.
fn addressed<B>(mut request: Request<B>, peer: Peer) -> Request<B> {
    if request.uri().path_and_query().is_none() {
        *request.uri_mut() = Uri::from_static("*");
    }
    request.extensions_mut().insert(peer);
    request
}

/// The request as it would be in HTTP/1.1: which host it is for, and whether it has a body, stands in its headers.
fn as_http1<B: Body>(mut request: Request<B>) -> Request<B> {
    debug_assert_eq!(request.version(), Version::HTTP_2, "what is agreed on is spoken");
    let host = request.uri().authority().and_then(|authority| {
        let host = authority.as_str().rsplit('@').next()?;
        HeaderValue::from_str(host).ok()
    });
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
    if !request.headers().contains_key(CONTENT_LENGTH) {
        if !request.body().is_end_stream() {
            request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        } else if matches!(*request.method(), Method::PUT | Method::POST) {
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{Empty, Full};

    use super::*;

    fn headers<B: Body>(request: http::request::Builder, body: B) -> Vec<String> {
        let request = as_http1(request.version(Version::HTTP_2).body(body).unwrap());
        request.headers().iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn what_http2_says_elsewhere_stands_in_headers() {
        let request = |method: &str, uri: &str| Request::builder().method(method).uri(uri);
        let uri = "https://mine.blob.localhost:10000/photos/a";
        let host = "host: mine.blob.localhost:10000";
        let empty = Empty::<Bytes>::new;
        assert_eq!(headers(request("GET", uri), empty()), [host]);
        assert_eq!(headers(request("GET", uri).header("host", "other"), empty()), [host]);
        assert_eq!(headers(request("GET", "https://user@h/a"), empty()), ["host: h"]);
        assert_eq!(headers(request("GET", "/a").header("host", "other"), empty()), ["host: other"]);
        assert_eq!(headers(request("PUT", "/a"), empty()), ["content-length: 0"]);
        assert_eq!(headers(request("PUT", "/a"), Full::new(Bytes::from("x"))), ["transfer-encoding: chunked"]);
        let known = request("PUT", "/a").header("content-length", "1");
        assert_eq!(headers(known, Full::new(Bytes::from("x"))), ["content-length: 1"]);
    }
}
