//! Reading a content as it was at one moment.
//!
//! A reader pins what the blob names – one payload or one list – while the snapshot that found it is still open. A
//! payload never changes, and a list only ever grows beyond the blobs that share it: from then on any later snapshot
//! shows the same bytes, for as long as the pin holds back the clockwork, and no snapshot is held while a client reads
//! slowly.

mod spans;

use std::collections::VecDeque;
use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::blob::state;
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::pins::Pin;
use crate::payload::{FRAME_BYTES, INLINE_BYTES_MAX, PayloadId, Piece};
use crate::range::ByteRange;
use crate::rows::blob::Content;
use crate::rows::codec;
use crate::store::{Space, StoreError, View};
use spans::{Part, Span};

/// Most bytes that a reader hands out at a time.
const READ_BYTES_MAX: u32 = 256 * 1024;

/// A pinned content and a place in it. While it lives, the bytes stay, whatever is written or deleted meanwhile.
pub struct Reader {
    engine: Engine,
    content: Content,
    /// Bytes of the whole content.
    length: u64,
    /// Next byte of the content.
    at: u64,
    end: u64,
    /// Where the bytes from `at` on are, as far as it was looked up.
    spans: VecDeque<Span>,
    /// Pieces of the body that `at` is in, each with the byte of the body at which it begins.
    pieces: Pieces,
    _pin: Option<Pin>,
}

/// Some consecutive pieces of one body.
#[derive(Default)]
struct Pieces {
    of: Option<PayloadId>,
    ready: VecDeque<(u64, Piece)>,
}

impl Reader {
    /// Pins a content of `length` bytes and stands at the beginning of `range`. The view that found the content must
    /// still be open.
    pub(super) fn open(engine: &Engine, content: Content, length: u64, range: ByteRange) -> Self {
        let target = state::content_target(content);
        Self {
            content,
            length,
            at: range.first,
            end: range.first + range.length,
            spans: VecDeque::new(),
            pieces: Pieces::default(),
            _pin: target.map(|target| engine.payloads().pin(target)),
            engine: engine.clone(),
        }
    }

    /// Bytes still to come.
    pub fn remaining(&self) -> u64 {
        self.end - self.at
    }

    /// The next bytes, at most 256 KiB; none at the end. Fails loudly on a damaged byte.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        if self.at >= self.end {
            return Ok(None);
        }
        let span = self.span()?;
        let bytes = if span.part.is_inline() {
            let engine = self.engine.clone();
            engine.read(|view| Ok(self.inline(view)?))?
        } else {
            let from = span.part.from + (self.at - span.first);
            let left = span.end().min(self.end) - self.at;
            self.piece(span.part, from, u32::try_from(left).unwrap_or(u32::MAX)).await?
        };
        if bytes.is_empty() {
            return Err(lost("a read answered nothing"));
        }
        self.at += bytes.len() as u64;
        Ok(Some(bytes))
    }

    /// The span that holds the next byte.
    fn span(&mut self) -> Result<Span, Error> {
        for _ in 0..2 {
            while let Some(span) = self.spans.front() {
                if self.at < span.first {
                    return Err(lost("a span begins too late"));
                }
                if self.at < span.end() {
                    return Ok(*span);
                }
                self.spans.pop_front();
            }
            let engine = self.engine.clone();
            self.spans = engine.read(|view| Ok(spans::at(view, self.content, self.length, self.at)?))?;
        }
        Err(lost("nothing holds the next byte"))
    }

    /// The bytes of small bodies from the next byte on: as many as lie together and were looked up.
    fn inline(&self, view: &dyn View) -> Result<Bytes, StoreError> {
        let mut gathered = BytesMut::new();
        let mut at = self.at;
        for span in &self.spans {
            let bytes_max = READ_BYTES_MAX as usize - gathered.len();
            if at >= self.end || !span.part.is_inline() || bytes_max < INLINE_BYTES_MAX {
                break;
            }
            let body = spans::inline(view, span.part)?;
            let (from, length) = (span.part.from + (at - span.first), span.end().min(self.end) - at);
            let bytes = usize::try_from(from).ok().zip(usize::try_from(from + length).ok());
            let bytes = bytes.and_then(|(from, to)| body.get(from..to));
            let bytes = bytes.ok_or_else(|| codec::corrupt(Space::Small, &[], "a small body is too short"))?;
            gathered.extend_from_slice(bytes);
            at = span.end();
        }
        Ok(gathered.freeze())
    }

    /// At most `left` bytes of a body, from its byte `from` on.
    async fn piece(&mut self, part: Part, from: u64, left: u32) -> Result<Bytes, Error> {
        let (piece, from) = match self.pieces.find(part.payload, from) {
            Some(found) => found,
            None => {
                let pieces = self.engine.read(|view| Ok(spans::pieces_at(view, part.payload, from)?))?;
                self.pieces = Pieces { of: Some(part.payload), ready: pieces };
                let found = self.pieces.find(part.payload, from);
                found.ok_or_else(|| lost("no piece holds the next byte"))?
            }
        };
        // Reads end at frames, so that no frame is checked twice.
        let whole = READ_BYTES_MAX - from % FRAME_BYTES;
        self.engine.payloads().read(&piece, from, left.min(whole).min(piece.length - from)).await
    }
}

impl Pieces {
    /// The piece that holds byte `at` of the body `of`, and where in it.
    fn find(&mut self, of: PayloadId, at: u64) -> Option<(Piece, u32)> {
        if self.of != Some(of) {
            return None;
        }
        while let Some((first, piece)) = self.ready.front() {
            let from = u32::try_from(at.checked_sub(*first)?).ok();
            if let Some(from) = from.filter(|from| *from < piece.length) {
                return Some((piece.clone(), from));
            }
            self.ready.pop_front();
        }
        None
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("content", &self.content).field("at", &self.at).field("end", &self.end).finish()
    }
}

fn lost(reason: &str) -> Error {
    Error::Storage(codec::corrupt(Space::Payloads, &[], reason))
}
