//! The accept loop: one per service, with the limits that `warp::serve` doesn't offer.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Uri};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use lazuli_api::auth::Peer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use warp::Filter;

use crate::head::{Cased, Cases, Tap};
use crate::patience::Patient;

/// Header fields of a request. Azure allows far fewer; a metadata-laden blob has some dozens.
const HEADERS_MAX: usize = 200;
/// Bytes that hyper buffers of a connection, and so the longest head.
const BUFFER_BYTES_MAX: usize = 256 * 1024;
/// How long the loop rests if the system has no socket to give (descriptors or memory are used up).
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// What a connection may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long the head of a request may take, and how long a connection may stay open between two requests.
    pub(crate) head: Duration,
    /// How long a connection may go without a byte in either direction while a body is on its way.
    pub(crate) idle: Duration,
    /// How long requests may go on once the server was asked to stop.
    pub(crate) drain: Duration,
}

/// A bound port.
pub(crate) struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

impl Door {
    /// Binds `host` and `port`; 0 takes any free one. The error is one line that names both.
    pub(crate) async fn bind(host: &str, port: u16) -> Result<Self, String> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let explained = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => format!("port {port} of {host} is in use by another process"),
            io::ErrorKind::PermissionDenied => {
                format!("port {port} of {host} needs more permission than this process has")
            }
            io::ErrorKind::AddrNotAvailable => format!("{host} is no address of this machine"),
            _ => format!("cannot listen at {host}, port {port}: {error}"),
        };
        let listener = TcpListener::bind((bare, port)).await.map_err(explained)?;
        let address = listener.local_addr().map_err(explained)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `filter` until `stop` says so and what had begun has ended, or its time is up.
    ///
    /// A connection is accepted only once one of `places` is free; until then it waits in the system's queue.
    pub(crate) fn serve<F>(
        self,
        filter: F,
        limits: Limits,
        places: Arc<Semaphore>,
        stop: watch::Receiver<bool>,
    ) -> JoinHandle<()>
    where
        F: Filter<Error = warp::Rejection> + Clone + Send + Sync + 'static,
        F::Extract: warp::Reply,
        F::Future: Send,
    {
        tokio::spawn(self.accept(filter, limits, places, stop))
    }

    async fn accept<F>(self, filter: F, limits: Limits, places: Arc<Semaphore>, mut stop: watch::Receiver<bool>)
    where
        F: Filter<Error = warp::Rejection> + Clone + Send + Sync + 'static,
        F::Extract: warp::Reply,
        F::Future: Send,
    {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_headers(HEADERS_MAX)
            .max_buf_size(BUFFER_BYTES_MAX)
            // A client may close its sending side and still wait for the answer.
            .half_close(true);
        let drain = GracefulShutdown::new();
        loop {
            let admitted = async {
                let place = Arc::clone(&places).acquire_owned().await.ok();
                (place, self.listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                admitted = admitted => admitted,
                _ = stop.wait_for(|&stop| stop) => break,
            };
            let Some(socket) = usable(accepted).await else { continue };
            let cases = Cases::default();
            let inner = TowerToHyperService::new(warp::service(filter.clone()));
            let peer = socket.peer_addr().map_or_else(|_| Peer::default(), |address| Peer::at(address.ip(), false));
            let with_peer = move |mut request: Request<_>| {
                request.extensions_mut().insert(peer);
                inner.call(with_path(request))
            };
            let service = Cased::new(service_fn(with_peer), cases.clone());
            let socket = Tap::new(Patient::new(socket, limits.idle), cases);
            let connection = drain.watch(http.serve_connection(TokioIo::new(socket), service));
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(error = &error as &dyn std::error::Error, "a connection broke");
                }
                drop(place);
            });
        }
        drop(self.listener);
        if tokio::time::timeout(limits.drain, drain.shutdown()).await.is_err() {
            tracing::warn!("requests still running after {} s are cut off", limits.drain.as_secs());
        }
    }
}

/// The request, with a path whatever its first line says: warp panics on one that names nothing but a host and a port,
/// as `CONNECT` does. No service is at `*`, so that it is refused as any other address that is none.
fn with_path<B>(mut request: Request<B>) -> Request<B> {
    if request.uri().path_and_query().is_none() {
        *request.uri_mut() = Uri::from_static("*");
    }
    request
}

/// An accepted socket, ready for use; nothing if it broke at once.
async fn usable(accepted: io::Result<(TcpStream, SocketAddr)>) -> Option<TcpStream> {
    match accepted {
        Ok((socket, _)) => {
            // A socket that refuses this is dead already, and the next read says so.
            let _ = socket.set_nodelay(true);
            Some(socket)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => None,
        Err(error) => {
            tracing::warn!(%error, "no connection can be accepted for now");
            tokio::time::sleep(ACCEPT_REST).await;
            None
        }
    }
}
