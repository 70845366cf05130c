//! The tap on a connection's bytes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lazuli_api::head::HeaderCase;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::{Body, Collected, HEAD_BYTES_MAX, Head, fields};
use super::{Cases, METADATA_PREFIX, Outgoing};

/// How many of a response's pieces are handed to the socket in one call.
const SLICES_MAX: usize = 64;

/// A socket whose heads are watched as they pass.
pub(crate) struct Tap<IO> {
    io: IO,
    cases: Cases,
    reading: Direction,
    writing: Direction,
    /// Bytes of a response's head that were accepted and await the socket.
    held: Vec<u8>,
    /// How many of those it has taken.
    held_written: usize,
}

/// Where one direction of the stream is.
#[derive(Default)]
struct Direction {
    /// The head being collected, once `body` has ended.
    head: Head,
    body: Body,
}

impl Default for Body {
    fn default() -> Self {
        Self::NONE
    }
}

impl<IO> Tap<IO> {
    /// A tap on `io`.
    pub(crate) fn new(io: IO, cases: Cases) -> Self {
        let (reading, writing) = (Direction::default(), Direction::default());
        Self { io, cases, reading, writing, held: Vec::new(), held_written: 0 }
    }

    /// Looks at bytes that came in.
    fn came(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if !self.reading.body.ended() {
                let passed = self.reading.body.pass(data);
                data = data.get(passed..).unwrap_or_default();
                continue;
            }
            match self.reading.head.collect(data) {
                Collected::More => return,
                Collected::TooLong(_) => {
                    self.reading.head.clear();
                    self.reading.body = Body::Endless;
                }
                Collected::Complete(taken) => {
                    let head = self.reading.head.bytes();
                    self.reading.body = Body::announced(head).unwrap_or(Body::NONE);
                    self.cases.queues().requests.push_back(metadata_names(head));
                    self.reading.head.clear();
                    data = data.get(taken..).unwrap_or_default();
                }
            }
        }
    }

    /// Accepts bytes of a response's head, to be written with what follows them. Says how many.
    fn hold(&mut self, data: &[u8]) -> usize {
        let collected = self.writing.head.collect(data);
        let accepted = match collected {
            Collected::Complete(taken) => taken,
            Collected::More => data.len(),
            Collected::TooLong(taken) => {
                // Not a head that this server writes. Let it pass as it is.
                self.held.extend_from_slice(self.writing.head.bytes());
                self.writing.head.clear();
                self.writing.body = Body::Endless;
                return taken;
            }
        };
        if collected != Collected::More {
            let head = self.writing.head.bytes();
            let status = status(head);
            let informational = matches!(status, Some(100..=199));
            let about = if informational { None } else { self.cases.queues().responses.pop_front() };
            let Outgoing { names, to_head } = about.unwrap_or_default();
            self.writing.body = match status {
                _ if to_head || informational => Body::NONE,
                Some(204 | 304) => Body::NONE,
                _ => Body::announced(head).unwrap_or(Body::Endless),
            };
            let start = self.held.len();
            self.held.extend_from_slice(head);
            if let Some(head) = self.held.get_mut(start..) {
                restore(head, &names);
            }
            self.writing.head.clear();
        }
        accepted
    }
}

/// The metadata names in a head, as they were written.
fn metadata_names(head: &[u8]) -> HeaderCase {
    let is_metadata = |name: &&[u8]| {
        name.get(..METADATA_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(METADATA_PREFIX))
    };
    let names = fields(head).map(|(name, _)| name).filter(is_metadata);
    HeaderCase(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The status of a response's head.
fn status(head: &[u8]) -> Option<u16> {
    std::str::from_utf8(head.get(9..12)?).ok()?.parse().ok()
}

/// Writes those field names of a head that are among `names` as they are written there.
fn restore(head: &mut [u8], names: &[String]) {
    if names.is_empty() {
        return;
    }
    for line in head.split_mut(|&byte| byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let Some(name) = line.get_mut(..colon) else { continue };
        if let Some(wanted) = names.iter().find(|wanted| wanted.as_bytes().eq_ignore_ascii_case(name)) {
            name.copy_from_slice(wanted.as_bytes());
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Tap<IO> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut tap.io).poll_read(cx, buffer))?;
        tap.came(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> Tap<IO> {
    /// Writes what is held back.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.held.get(self.held_written..)
            && !rest.is_empty()
        {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held_written += written;
        }
        self.held.clear();
        self.held_written = 0;
        Poll::Ready(Ok(()))
    }

    /// Writes what is held back and the pieces behind it, in one call as far as they belong to the current body. Says
    /// how many bytes of the pieces were written; it may be that none were, and only what was held back.
    fn poll_body(&mut self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let held = self.held.get(self.held_written..).unwrap_or_default();
        let mut slices = Vec::with_capacity(pieces.len().min(SLICES_MAX) + 1);
        slices.push(IoSlice::new(held));
        let mut ahead = self.writing.body;
        for piece in pieces.iter().take(SLICES_MAX) {
            let inside = ahead.pass(piece);
            slices.push(IoSlice::new(piece.get(..inside).unwrap_or_default()));
            if inside < piece.len() {
                break;
            }
        }
        let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, &slices))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        let of_held = written.min(held.len());
        self.held_written += of_held;
        if self.held_written == self.held.len() {
            self.held.clear();
            self.held_written = 0;
        }
        let mut left = written - of_held;
        for piece in pieces {
            let part = piece.get(..left.min(piece.len())).unwrap_or_default();
            self.writing.body.pass(part);
            left -= part.len();
        }
        Poll::Ready(Ok(written - of_held))
    }

    /// Writes pieces of a response.
    fn poll_pieces(&mut self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let Some(first) = pieces.iter().find(|piece| !piece.is_empty()) else {
            return Poll::Ready(Ok(0));
        };
        if self.writing.body.ended() {
            if self.held.len() >= HEAD_BYTES_MAX {
                ready!(self.poll_held(cx))?;
            }
            let accepted = self.hold(first);
            if accepted > 0 {
                return Poll::Ready(Ok(accepted));
            }
        }
        loop {
            // Only the head may have fitted. None of the pieces written would read as a closed socket: go on.
            let written = ready!(self.poll_body(cx, pieces))?;
            if written > 0 {
                return Poll::Ready(Ok(written));
            }
        }
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Tap<IO> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_pieces(cx, &[IoSlice::new(data)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_pieces(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        ready!(tap.poll_held(cx))?;
        Pin::new(&mut tap.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        ready!(tap.poll_held(cx))?;
        Pin::new(&mut tap.io).poll_shutdown(cx)
    }
}
