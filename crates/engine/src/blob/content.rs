//! Reading a content as it was at one moment.
//!
//! A reader pins what the blob names – one payload or one list – while the snapshot that found it is still open. Rows
//! of payloads and lists never change, so from then on any later snapshot shows the same ones, for as long as the pin
//! holds back the clockwork; no snapshot is held while a client reads slowly.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Bound;

use bytes::Bytes;

use crate::blob::state;
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::pins::Pin;
use crate::payload::{INLINE_BYTES_MAX, PayloadId, Piece};
use crate::range::ByteRange;
use crate::rows::blob::Content;
use crate::rows::codec::{self, Row};
use crate::rows::list::{self, ListChunk, ListEntry, ListId};
use crate::rows::payload::{self, PieceChunk};
use crate::store::{Direction, KeyRange, Space, StoreError, View};

/// Most bytes that a reader hands out at a time.
pub const READ_BYTES_MAX: u32 = 256 * 1024;

/// A pinned content and a place in it. While it lives, the bytes stay, whatever is written or deleted meanwhile.
pub struct Reader {
    engine: Engine,
    content: Content,
    /// Bytes of the whole content.
    length: u64,
    /// Next byte of the content.
    at: u64,
    end: u64,
    /// Blocks from `at` on, of a content that is a list.
    blocks: VecDeque<(u64, ListEntry)>,
    /// Pieces from `at` on, with the byte of the content at which each begins.
    pieces: VecDeque<(u64, Piece)>,
    _pin: Option<Pin>,
}

/// Some bytes of the content that lie together.
enum Run {
    Inline(Bytes),
    Piece(Piece, u32),
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
            blocks: VecDeque::new(),
            pieces: VecDeque::new(),
            _pin: target.map(|target| engine.payloads().pin(target)),
            engine: engine.clone(),
        }
    }

    /// Another reader of the same content, at the beginning of `range`, which is cut at the content's end.
    #[must_use]
    pub fn part(&self, range: ByteRange) -> Self {
        let first = range.first.min(self.length);
        let length = range.length.min(self.length - first);
        // The pin of this reader lives, so there is no gap before the other's.
        Self::open(&self.engine, self.content, self.length, ByteRange { first, length })
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
        let left = u32::try_from(self.remaining()).unwrap_or(u32::MAX).min(READ_BYTES_MAX);
        let bytes = match self.run()? {
            Run::Inline(bytes) => bytes.slice(..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))),
            Run::Piece(piece, from) => {
                // Reads end at frames, so that no frame is checked twice.
                let whole = READ_BYTES_MAX - from % crate::payload::FRAME_BYTES;
                self.engine.payloads().read(&piece, from, left.min(whole).min(piece.length - from)).await?
            }
        };
        if bytes.is_empty() {
            return Err(lost("a read answered nothing"));
        }
        self.at += bytes.len() as u64;
        Ok(Some(bytes))
    }

    /// Where the next bytes lie.
    fn run(&mut self) -> Result<Run, Error> {
        while let Some((first, piece)) = self.pieces.front() {
            let from = self.at.checked_sub(*first).ok_or_else(|| lost("a piece begins too late"))?;
            match u32::try_from(from) {
                Ok(from) if from < piece.length => return Ok(Run::Piece(piece.clone(), from)),
                _ => drop(self.pieces.pop_front()),
            }
        }
        let (base, payload, length) = self.body()?;
        let at = self.at - base;
        let engine = self.engine.clone();
        if length <= INLINE_BYTES_MAX as u64 {
            let bytes = engine.read(|view| Ok(small(view, payload)?))?;
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            if from >= bytes.len() {
                return Err(lost("a small body is too short"));
            }
            return Ok(Run::Inline(bytes.slice(from..)));
        }
        let (first, chunk) = engine.read(|view| Ok(pieces_at(view, payload, at)?))?;
        let mut begins = base + first;
        for piece in chunk.pieces {
            let length = u64::from(piece.length);
            if begins + length > self.at {
                self.pieces.push_back((begins, piece));
            }
            begins += length;
        }
        match self.pieces.front() {
            Some((first, piece)) if *first <= self.at => {
                let from = u32::try_from(self.at - first).map_err(|_| lost("a piece is too long"))?;
                Ok(Run::Piece(piece.clone(), from))
            }
            _ => Err(lost("no piece holds the next byte")),
        }
    }

    /// The body that holds the next byte: the byte of the content at which it begins, its id and its length.
    fn body(&mut self) -> Result<(u64, PayloadId, u64), Error> {
        let list = match self.content {
            Content::Empty => return Err(lost("an empty content has bytes")),
            Content::Whole(payload) => return Ok((0, payload, self.length)),
            Content::Blocks(list) | Content::Log(list) => list,
            Content::Pages { .. } => return Err(lost("pages are not in a list")),
        };
        for _ in 0..2 {
            while let Some((first, entry)) = self.blocks.front() {
                if first + entry.length > self.at {
                    return Ok((*first, entry.payload, entry.length));
                }
                self.blocks.pop_front();
            }
            let engine = self.engine.clone();
            let at = self.at;
            let (mut first, chunk) = engine.read(|view| Ok(entries_at(view, list, at)?))?;
            for entry in chunk.entries {
                let length = entry.length;
                self.blocks.push_back((first, entry));
                first += length;
            }
        }
        Err(lost("no block holds the next byte"))
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("content", &self.content).field("at", &self.at).field("end", &self.end).finish()
    }
}

/// The bytes of a small body.
fn small(view: &dyn View, payload: PayloadId) -> Result<Bytes, StoreError> {
    let key = payload::small_key(payload);
    let bytes = view.get(Space::Small, &key)?;
    bytes.ok_or_else(|| codec::corrupt(Space::Small, &key, "a small body is missing"))
}

/// The chunk of pieces that holds byte `at` of a body, and the byte at which it begins.
fn pieces_at(view: &dyn View, id: PayloadId, at: u64) -> Result<(u64, PieceChunk), StoreError> {
    let range = KeyRange { start: Bound::Included(payload::key(id, 0)), end: Bound::Included(payload::key(id, at)) };
    chunk_at(view, Space::Payloads, range, payload::first_byte)
}

/// The chunk of blocks that holds byte `at` of a list, and the byte at which it begins.
fn entries_at(view: &dyn View, id: ListId, at: u64) -> Result<(u64, ListChunk), StoreError> {
    let range = KeyRange { start: Bound::Included(list::key(id, 0)), end: Bound::Included(list::key(id, at)) };
    chunk_at(view, Space::Lists, range, list::first_byte)
}

fn chunk_at<R: Row>(
    view: &dyn View,
    space: Space,
    range: KeyRange,
    first_byte: fn(&[u8]) -> Result<u64, StoreError>,
) -> Result<(u64, R), StoreError> {
    let missing = || codec::corrupt(space, &[], "a chunk is missing");
    let (key, value) = view.scan(space, range, Direction::Backward).next().ok_or_else(missing)??;
    Ok((first_byte(&key)?, codec::decode(space, &key, &value)?))
}

fn lost(reason: &str) -> Error {
    Error::Storage(codec::corrupt(Space::Payloads, &[], reason))
}
