//! Reading a content as it was at one moment.
//!
//! A reader pins what the blob names – one payload or one list – while the snapshot that found it is still open. A
//! payload never changes, and a list only ever grows beyond the blobs that share it: from then on any later snapshot
//! shows the same bytes, for as long as the pin holds back the clockwork, and no snapshot is held while a client reads
//! slowly.
//!
//! Pages are written in place. Of a range that is not large all bodies are looked up at once, and pinned themselves.
//! For a larger one the epoch is pinned inside a transaction: whoever writes later finds the pin and makes a new epoch.

pub(super) mod spans;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};

use crate::blob::{pages, state};
use crate::encryption::CustomerKey;
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::pins::{Pin, Pins};
use crate::payload::refs::Target;
use crate::payload::seal::open_small;
use crate::payload::{FRAME_BYTES, INLINE_BYTES_MAX, PayloadId, Piece};
use crate::range::ByteRange;
use crate::rows::blob::Content;
use crate::rows::codec;
use crate::store::{Space, StoreError, View};
use spans::{Part, Span};

/// Most bytes that a reader hands out at a time.
pub const READ_BYTES_MAX: u32 = 256 * 1024;

/// What is handed out where nothing was written.
static ZEROS: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(vec![0; READ_BYTES_MAX as usize]));

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
    /// The key that the bytes are sealed under.
    key: Option<CustomerKey>,
    /// Held for as long as a reader of the content lives.
    pins: Arc<Vec<Pin>>,
}

/// Some consecutive pieces of one body.
#[derive(Default)]
struct Pieces {
    of: Option<PayloadId>,
    ready: VecDeque<(u64, Piece)>,
}

/// Keeps a content as it is.
pub(super) struct Held(Vec<Pin>);

impl Held {
    /// Pins what the content names. Of pages: inside a transaction that has read it.
    pub(super) fn by(pins: &Pins, content: Content) -> Self {
        let target = state::content_target(content);
        Self(target.map(|target| pins.pin(target)).into_iter().collect())
    }
}

impl Reader {
    /// Pins a content of `length` bytes and stands at the beginning of `range`. `view` is the one that found the
    /// content. None: it has to be held first.
    pub(super) fn open(
        engine: &Engine,
        view: &dyn View,
        content: Content,
        length: u64,
        range: ByteRange,
    ) -> Result<Option<Self>, StoreError> {
        let Content::Pages { .. } = content else {
            let held = Held::by(engine.payloads().pins(), content);
            return Ok(Some(Self::over(engine, held, content, length, range)));
        };
        let Some(spans) = pages::spans(view, content, range)? else { return Ok(None) };
        let bodies = spans.iter().filter_map(|span| span.part).map(|part| part.payload);
        let bodies: BTreeSet<_> = bodies.collect();
        let pins = bodies.into_iter().map(|body| engine.payloads().pin(Target::payload(body))).collect();
        Ok(Some(Self { spans, ..Self::over(engine, Held(pins), content, length, range) }))
    }

    /// As [`Self::open`], of a content that is held.
    pub(super) fn over(engine: &Engine, held: Held, content: Content, length: u64, range: ByteRange) -> Self {
        Self {
            content,
            length,
            at: range.first,
            end: range.first + range.length,
            spans: match content {
                Content::Whole(payload) => spans::whole(payload, length),
                _ => VecDeque::new(),
            },
            pieces: Pieces::default(),
            key: None,
            pins: Arc::new(held.0),
            engine: engine.clone(),
        }
    }

    /// The same content, which is sealed under `key`.
    pub(super) fn under(self, key: Option<CustomerKey>) -> Self {
        Self { key, ..self }
    }

    /// Another reader of the same content, at the beginning of `range`, which is cut at the content's end. Of pages it
    /// reads only what this one has still to come.
    #[must_use]
    pub fn part(&self, range: ByteRange) -> Self {
        let first = range.first.min(self.length);
        let length = range.length.min(self.length - first);
        Self {
            engine: self.engine.clone(),
            content: self.content,
            length: self.length,
            at: first,
            end: first + length,
            spans: if matches!(self.content, Content::Pages { .. }) { self.spans.clone() } else { VecDeque::new() },
            pieces: Pieces::default(),
            key: self.key.clone(),
            pins: Arc::clone(&self.pins),
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
        let left = u32::try_from(span.end().min(self.end) - self.at).unwrap_or(u32::MAX).min(READ_BYTES_MAX);
        let bytes = match span.part {
            None => ZEROS.slice(..left as usize),
            Some(part) if part.is_inline() => {
                let engine = self.engine.clone();
                engine.read(|view| Ok(self.inline(view)?))?
            }
            Some(part) => self.piece(part, part.from + (self.at - span.first), left).await?,
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
            let Some(part) = span.part.filter(|part| part.is_inline()) else { break };
            if at >= self.end || bytes_max < INLINE_BYTES_MAX {
                break;
            }
            let mut body = spans::inline(view, part)?;
            if let Some(key) = &self.key {
                let opened = open_small(key, &body);
                let damaged = || codec::corrupt(Space::Small, &[], "a small body is not what was sealed");
                body = opened.ok_or_else(damaged)?.into();
            }
            let (from, length) = (part.from + (at - span.first), span.end().min(self.end) - at);
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
        let left = left.min(whole).min(piece.length - from);
        self.engine.payloads().read(&piece, from, left, self.key.as_ref()).await
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
