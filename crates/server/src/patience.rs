//! Connections on which nothing moves are closed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::work::Work;

/// A socket that fails with `TimedOut` once it is waited for and no byte has moved in either direction for a while.
pub(crate) struct Patient<IO> {
    io: IO,
    idle: Duration,
    moved: Instant,
    /// Set behind, not with, each byte: it is only looked at when there is nothing else to do.
    alarm: Pin<Box<Sleep>>,
    /// What the other side has to wait for.
    work: Work,
}

impl<IO> Patient<IO> {
    /// `io`, given up after `idle` without a byte.
    pub(crate) fn new(io: IO, idle: Duration) -> Self {
        let alarm = Box::pin(tokio::time::sleep(idle));
        Self { io, idle, moved: Instant::now(), alarm, work: Work::default() }
    }

    /// The same, but not given up while `work` is unanswered.
    pub(crate) fn excused_by(self, work: Work) -> Self {
        Self { work, ..self }
    }

    /// What `answer` means for the patience: a moved byte renews it, waiting uses it up.
    fn watch<T>(&mut self, cx: &mut Context<'_>, answer: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if answer.is_ready() {
            self.moved = Instant::now();
            return answer;
        }
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            if self.work.is_unanswered() {
                self.moved = Instant::now();
            }
            let end = self.moved + self.idle;
            if end <= Instant::now() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.alarm.as_mut().reset(end);
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Patient<IO> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.io).poll_read(cx, buffer);
        self.watch(cx, answer)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Patient<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.io).poll_write(cx, data);
        self.watch(cx, answer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.io).poll_write_vectored(cx, pieces);
        self.watch(cx, answer)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_connection_on_which_nothing_moves_is_given_up() {
        let (mut client, server) = duplex(8);
        let mut patient = Patient::new(server, Duration::from_secs(10));
        for _ in 0..3 {
            let slow = async {
                tokio::time::sleep(Duration::from_secs(9)).await;
                client.write_all(b"x").await.unwrap();
            };
            let (read, ()) = tokio::join!(patient.read_u8(), slow);
            assert_eq!(read.unwrap(), b'x');
        }
        let start = Instant::now();
        assert_eq!(patient.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_given_up_who_waits_for_the_server() {
        let (_client, server) = duplex(8);
        let work = Work::default();
        let mut patient = Patient::new(server, Duration::from_secs(10)).excused_by(work.clone());
        let (start, unanswered) = (Instant::now(), work.begin());
        let answered = async {
            tokio::time::sleep(Duration::from_secs(25)).await;
            drop(unanswered);
        };
        let (read, ()) = tokio::join!(patient.read_u8(), answered);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 30);
    }
}
