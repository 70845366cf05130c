//! Other servers, as copies meet them: real ones, ones that a test decides the answers of, and the way to them.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails loudly")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

use crate::harness::{Blob, Container, Lazuli};
use crate::process::within;
use crate::signed::Answer;

/// A server that copies and one that is copied from, each with a container.
pub async fn pair() -> ((Lazuli, Container), (Lazuli, Container)) {
    let (here, there) = (Lazuli::start().await, Lazuli::start().await);
    let (mine, theirs) = (here.container("photos").await, there.existing("photos"));
    theirs.create().header("x-ms-blob-public-access", "blob").await.expect(201);
    ((here, mine), (there, theirs))
}

/// The address of a blob.
pub fn url(server: &Lazuli, blob: &Blob) -> String {
    format!("http://{}{}", server.client().address(), blob.name())
}

/// The blob's properties once no copy into it is under way.
pub async fn settled(target: &Blob) -> Answer {
    let ended = async {
        loop {
            let head = target.head().await.expect(200);
            if head.header("x-ms-copy-status") != "pending" {
                return head;
            }
            tokio::task::yield_now().await;
        }
    };
    within("the copy to end", ended).await
}

/// A server whose answers the test decides, one a connection: what the request must hold, and what is answered.
#[derive(Debug)]
pub struct Scripted {
    /// A blob's.
    pub address: String,
    task: tokio::task::JoinHandle<()>,
}

impl Scripted {
    /// Answers one request after the other.
    pub async fn start(answers: Vec<(&'static str, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/photos/a", listener.local_addr().unwrap());
        let task = tokio::spawn(async move {
            for (expected, answer) in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let head = head(&mut socket).await.to_ascii_lowercase();
                assert!(head.contains(expected), "{head} lacks {expected}");
                socket.write_all(&answer).await.unwrap();
            }
        });
        Self { address, task }
    }

    /// Waits until every answer was asked for.
    pub async fn done(self) {
        within("all requests", self.task).await.unwrap();
    }
}

/// A server as [`Scripted`], which leaves every connection open, also of an answer that is not at its end.
#[derive(Debug)]
pub struct Silent {
    /// A blob's.
    pub address: String,
    answered: watch::Receiver<usize>,
    task: tokio::task::JoinHandle<()>,
}

impl Silent {
    /// Answers one request after the other.
    pub async fn start(answers: Vec<(&'static str, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/photos/a", listener.local_addr().unwrap());
        let (sender, answered) = watch::channel(0);
        let task = tokio::spawn(async move {
            let mut open = Vec::new();
            for (expected, answer) in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let head = head(&mut socket).await.to_ascii_lowercase();
                assert!(head.contains(expected), "{head} lacks {expected}");
                socket.write_all(&answer).await.unwrap();
                open.push(socket);
                sender.send_modify(|count| *count += 1);
            }
            std::future::pending::<()>().await;
        });
        Self { address, answered, task }
    }

    /// Waits until so many requests were answered.
    pub async fn answered(&self, count: usize) {
        let mut answered = self.answered.clone();
        within("the requests", answered.wait_for(|now| *now >= count)).await.unwrap();
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// An answer from its first line on.
pub fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n").as_bytes(), body].concat()
}

/// Gives everything that comes on to `to`, at most `bytes` of the answers; then it holds still until it is let go.
pub async fn narrow(to: SocketAddr, bytes: usize, open: Arc<Notify>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let left = Arc::new(AtomicUsize::new(bytes));
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(to).await.unwrap();
            tokio::spawn(pass(client, server, Arc::clone(&left), Arc::clone(&open)));
        }
    });
    address
}

async fn pass(client: TcpStream, server: TcpStream, left: Arc<AtomicUsize>, open: Arc<Notify>) {
    let ((mut asked, mut answered), (mut answer, mut ask)) = (client.into_split(), server.into_split());
    tokio::spawn(async move { tokio::io::copy(&mut asked, &mut ask).await });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = answer.read(&mut buffer).await {
        let fits = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(read));
        if fits.is_err() {
            open.notified().await;
            left.store(usize::MAX, Ordering::SeqCst);
        }
        if answered.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
}
