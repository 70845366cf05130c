//! Where the bytes of a content lie.

use std::collections::VecDeque;
use std::ops::Bound;

use bytes::Bytes;

use crate::blob::pages;
use crate::payload::{INLINE_BYTES_MAX, PayloadId, Piece};
use crate::range::ByteRange;
use crate::rows::blob::Content;
use crate::rows::codec::{self, Row};
use crate::rows::list::{self, ListChunk, ListId};
use crate::rows::payload::{self, PieceChunk};
use crate::store::{Direction, KeyRange, Space, StoreError, View};

/// Bytes of a content that lie in one body, or nowhere.
#[derive(Clone, Copy, Debug)]
pub(in crate::blob) struct Span {
    /// The first of them, counted in the content.
    pub(in crate::blob) first: u64,
    /// How many.
    pub(in crate::blob) length: u64,
    /// Where they are; none: they are zeros that nobody wrote.
    pub(in crate::blob) part: Option<Part>,
}

/// A place in a body.
#[derive(Clone, Copy, Debug)]
pub(in crate::blob) struct Part {
    /// The body.
    pub(in crate::blob) payload: PayloadId,
    /// Bytes of all of it.
    pub(in crate::blob) bytes: u64,
    /// Where in it.
    pub(in crate::blob) from: u64,
}

impl Span {
    pub(in crate::blob) fn end(&self) -> u64 {
        self.first + self.length
    }
}

impl Part {
    /// Whether the body is a row of its own.
    pub(super) fn is_inline(self) -> bool {
        self.bytes <= INLINE_BYTES_MAX as u64
    }
}

/// Some spans of a content of `length` bytes, in order; the first holds byte `at`.
pub(super) fn at(view: &dyn View, content: Content, length: u64, at: u64) -> Result<VecDeque<Span>, StoreError> {
    match content {
        Content::Whole(payload) => Ok(whole(payload, length)),
        Content::Blocks(list) | Content::Log(list) => blocks(view, list, at),
        // Of an empty content only a page blob has bytes.
        Content::Empty | Content::Pages { .. } => {
            pages::look_up(view, content, ByteRange { first: at, length: length - at })
        }
    }
}

/// The one span of a content that is one body.
pub(super) fn whole(payload: PayloadId, length: u64) -> VecDeque<Span> {
    [Span { first: 0, length, part: Some(Part { payload, bytes: length, from: 0 }) }].into()
}

fn blocks(view: &dyn View, list: ListId, at: u64) -> Result<VecDeque<Span>, StoreError> {
    let range = KeyRange { start: Bound::Included(list::key(list, 0)), end: Bound::Included(list::key(list, at)) };
    let (mut first, chunk): (_, ListChunk) = chunk_at(view, Space::Lists, range, list::first_byte)?;
    let mut spans = VecDeque::new();
    for entry in chunk.entries {
        if first + entry.length > at {
            let part = Some(Part { payload: entry.payload, bytes: entry.length, from: 0 });
            spans.push_back(Span { first, length: entry.length, part });
        }
        first += entry.length;
    }
    Ok(spans)
}

/// The bytes of a small body.
pub(super) fn inline(view: &dyn View, part: Part) -> Result<Bytes, StoreError> {
    let key = payload::small_key(part.payload);
    let bytes = view.get(Space::Small, &key)?;
    bytes.ok_or_else(|| codec::corrupt(Space::Small, &key, "a small body is missing"))
}

/// Some pieces of a body, each with the byte of the body at which it begins; byte `at` is among theirs.
pub(super) fn pieces_at(view: &dyn View, id: PayloadId, at: u64) -> Result<VecDeque<(u64, Piece)>, StoreError> {
    let range = KeyRange { start: Bound::Included(payload::key(id, 0)), end: Bound::Included(payload::key(id, at)) };
    let (mut first, chunk): (_, PieceChunk) = chunk_at(view, Space::Payloads, range, payload::first_byte)?;
    let mut pieces = VecDeque::new();
    for piece in chunk.pieces {
        let length = u64::from(piece.length);
        pieces.push_back((first, piece));
        first += length;
    }
    Ok(pieces)
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
