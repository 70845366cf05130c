//! The accept loop: one per service, with the limits that `warp::serve` doesn't offer.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use warp::Filter;

use crate::connection::Reception;
use crate::tls::Tls;

/// How long the loop rests if the system has no socket to give (descriptors or memory are used up).
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// What a connection may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long the head of a request may take, or to agree on the encryption; and how long a connection may stay open
    /// between two requests.
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

    /// Serves `filter` until `stop` says so and what had begun has ended, or its time is up; also encrypted, if there is
    /// a certificate.
    ///
    /// A connection is accepted only once one of `places` is free; until then it waits in the system's queue.
    pub(crate) fn serve<F>(
        self,
        filter: F,
        limits: Limits,
        tls: Option<Tls>,
        places: Arc<Semaphore>,
        stop: watch::Receiver<bool>,
    ) -> JoinHandle<()>
    where
        F: Filter<Error = warp::Rejection> + Clone + Send + Sync + 'static,
        F::Extract: warp::Reply,
        F::Future: Send,
    {
        let service = TowerToHyperService::new(warp::service(filter));
        tokio::spawn(self.accept(Reception::new(service, limits, tls), limits.drain, places, stop))
    }

    async fn accept<S, B>(
        self,
        reception: Reception<S>,
        drain_max: Duration,
        places: Arc<Semaphore>,
        mut stop: watch::Receiver<bool>,
    ) where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
    {
        let reception = Arc::new(reception);
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
            let (reception, watcher, stop) = (Arc::clone(&reception), drain.watcher(), stop.clone());
            tokio::spawn(async move {
                reception.receive(socket, watcher, stop).await;
                drop(place);
            });
        }
        drop(self.listener);
        if tokio::time::timeout(drain_max, drain.shutdown()).await.is_err() {
            tracing::warn!("requests still running after {} s are cut off", drain_max.as_secs());
        }
    }
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
