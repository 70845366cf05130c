//! Where the pages of a content lie, for who reads it.

use std::collections::VecDeque;

use super::map::{Stop, Walk};
use super::{cleared_of, overlap};
use crate::blob::content::spans::{Part, Span};
use crate::range::ByteRange;
use crate::rows::blob::Content;
use crate::rows::page::{CELL_BYTES, PAGE_BYTES};
use crate::store::{StoreError, View};

/// Cells and rows that one lookup looks at: those of a range of 4 MiB, with some to spare. Few in tests.
const CELLS_MAX: usize = if cfg!(test) { 2 } else { 72 };
const ROWS_MAX: usize = if cfg!(test) { 16 } else { 1024 };

/// All spans of `range`; none if there are too many to look up at once.
pub(in crate::blob) fn spans(
    view: &dyn View,
    content: Content,
    range: ByteRange,
) -> Result<Option<VecDeque<Span>>, StoreError> {
    let spans = look_up(view, content, range)?;
    let known = spans.back().map_or(range.first, Span::end);
    Ok((known >= range.first + range.length).then_some(spans))
}

/// The first spans of `range`, in order and without gaps.
pub(in crate::blob) fn look_up(
    view: &dyn View,
    content: Content,
    range: ByteRange,
) -> Result<VecDeque<Span>, StoreError> {
    let mut line = Line { spans: VecDeque::new(), at: range.first, range, cleared: cleared_of(content) };
    let Content::Pages { map, epoch, .. } = content else {
        line.zeros_to(range.first + range.length);
        return Ok(line.spans);
    };
    let end = range.first + range.length;
    let mut walk = Walk::new(view, map, epoch, range.first / CELL_BYTES, end.div_ceil(CELL_BYTES), ROWS_MAX);
    for _ in 0..CELLS_MAX {
        match walk.next()? {
            Stop::At(shown) => {
                for run in shown.row.runs {
                    let first = shown.cell * CELL_BYTES + u64::from(run.first) * PAGE_BYTES;
                    let part = Part { payload: run.payload, bytes: run.bytes, from: run.from };
                    line.push(Span { first, length: u64::from(run.count) * PAGE_BYTES, part: Some(part) });
                }
                line.zeros_to(((shown.cell + 1) * CELL_BYTES).min(end));
            }
            Stop::Paused(cell) => {
                line.zeros_to((cell * CELL_BYTES).min(end));
                break;
            }
            Stop::End => {
                line.zeros_to(end);
                break;
            }
        }
    }
    Ok(line.spans)
}

/// Spans that follow each other from `at` on.
struct Line {
    spans: VecDeque<Span>,
    /// Where the last one ends.
    at: u64,
    range: ByteRange,
    /// What reads as zeros whatever lies there.
    cleared: ByteRange,
}

impl Line {
    /// Adds what of `span` lies in the range and was not cleared; zeros before it.
    fn push(&mut self, span: Span) {
        let whole = ByteRange { first: span.first, length: span.length };
        let cleared = overlap(self.cleared, whole);
        let (before, after) = match cleared {
            None => (whole.first + whole.length, whole.first + whole.length),
            Some(cleared) => (cleared.first, cleared.first + cleared.length),
        };
        for (first, end) in [(whole.first, before), (after, whole.first + whole.length)] {
            let piece = ByteRange { first, length: end.saturating_sub(first) };
            let Some(piece) = overlap(piece, self.range) else { continue };
            self.zeros_to(piece.first);
            let part = span.part.map(|part| Part { from: part.from + (piece.first - span.first), ..part });
            self.spans.push_back(Span { first: piece.first, length: piece.length, part });
            self.at = piece.first + piece.length;
        }
    }

    /// Zeros as far as `end`, joined to those before.
    fn zeros_to(&mut self, end: u64) {
        if end <= self.at {
            return;
        }
        match self.spans.back_mut() {
            Some(last) if last.part.is_none() => last.length += end - self.at,
            _ => self.spans.push_back(Span { first: self.at, length: end - self.at, part: None }),
        }
        self.at = end;
    }
}
