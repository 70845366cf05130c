//! Get Page Ranges: what was written, and what has changed since an earlier state of the blob.
//! <https://learn.microsoft.com/rest/api/storageservices/get-page-ranges>

use std::cmp::Ordering;

use super::map::{Shown, Stop, Walk};
use super::{cell, cleared_of, overlap, sequence, shown_runs, slots_of};
use crate::blob::{OnBlob, Part, Written, state};
use crate::engine::Engine;
use crate::error::Error;
use crate::range::{ByteRange, RangeRequest};
use crate::refusal::Refusal;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::page::{CELL_BYTES, PAGE_BYTES, PageRun};
use crate::store::{StoreError, View};

/// Rows that a request looks at if its client can ask for the rest.
const ROWS_MAX: usize = 64 * 1024;
/// Rows and stretches of a request whose client cannot.
const UNPAGED_ROWS_MAX: usize = 4 * 1024 * 1024;
const UNPAGED_MAX: usize = 200_000;

/// What Get Page Ranges asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct PagesAsked {
    /// The part of the blob; none is all of it. It is rounded to whole pages.
    pub range: Option<RangeRequest>,
    /// Where to go on.
    pub start: u64,
    /// Most stretches to answer; none: all of them in one answer.
    pub limit: Option<usize>,
}

/// Consecutive pages of which the same is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where.
    pub range: ByteRange,
    /// Whether they were cleared since; else they are written.
    pub cleared: bool,
}

/// What Get Page Ranges answers, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRanges {
    /// The blob's version.
    pub written: Written,
    /// Its length.
    pub length: u64,
    /// In order.
    pub stretches: Vec<Stretch>,
    /// Where the rest begins, if there is any.
    pub next: Option<u64>,
}

/// Get Page Ranges; with `previous`, only what differs from that state.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `NotModified`, `ConditionFailed`, the lease refusals,
/// `BlobKindMismatch`, `RangeOutside`, `PreviousNotFound`, `PreviousReplaced`, `PageListTooLong`.
pub async fn ranges(
    engine: &Engine,
    on: OnBlob,
    asked: PagesAsked,
    previous: Option<OnBlob>,
) -> Result<PageRanges, Error> {
    engine.scan(move |view| list(view, &on, asked, previous.as_ref())).await
}

fn list(view: &dyn View, on: &OnBlob, asked: PagesAsked, previous: Option<&OnBlob>) -> Result<PageRanges, Error> {
    let state::Found { part, blob, .. } = state::readable(view, on)?;
    sequence(&blob)?;
    state::own(part, &blob)?;
    let previous = previous.map(|on| earlier(view, on, &blob)).transpose()?;
    let window = window(&blob, asked)?;
    let mut list = List { stretches: Vec::new(), limit: asked.limit.unwrap_or(UNPAGED_MAX), next: None };
    if let Some(window) = window {
        let budget = if asked.limit.is_some() { ROWS_MAX } else { UNPAGED_ROWS_MAX };
        let now = Side::of(view, &blob, window, budget)?;
        let then = previous.as_ref().map(|row| Side::of(view, row, window, budget)).transpose()?;
        walk(&mut list, now, then, window)?;
    }
    if asked.limit.is_none() && list.next.is_some() {
        return Err(Refusal::PageListTooLong.into());
    }
    let written = Written { etag: blob.etag, version: blob.version };
    Ok(PageRanges { written, length: blob.length, stretches: list.stretches, next: list.next })
}

/// The state that `now` is compared with.
fn earlier(view: &dyn View, on: &OnBlob, now: &BlobRow) -> Result<BlobRow, Error> {
    let found = state::find(view, on).map_err(|error| match error {
        Error::Refused(Refusal::BlobNotFound) => Refusal::PreviousNotFound.into(),
        other => other,
    })?;
    sequence(&found.blob)?;
    if found.part != Part::Base && found.blob.begun != now.begun {
        return Err(Refusal::PreviousReplaced.into());
    }
    Ok(found.blob)
}

/// The pages that are asked about; none if there are none.
fn window(blob: &BlobRow, asked: PagesAsked) -> Result<Option<ByteRange>, Refusal> {
    let range = match asked.range {
        Some(range) => range.within(blob.length)?,
        None => ByteRange { first: 0, length: blob.length },
    };
    // Where to go on is what a client says: it may be beyond every blob.
    let Some(start) = asked.start.checked_next_multiple_of(PAGE_BYTES) else { return Ok(None) };
    let first = (range.first / PAGE_BYTES * PAGE_BYTES).max(start);
    let end = (range.first + range.length).next_multiple_of(PAGE_BYTES);
    Ok((first < end).then(|| ByteRange { first, length: end - first }))
}

/// One state of a blob on the way through its cells.
struct Side<'a> {
    walk: Option<Walk<'a>>,
    ahead: Stop,
    content: Content,
    length: u64,
}

impl<'a> Side<'a> {
    fn of(view: &'a dyn View, blob: &BlobRow, window: ByteRange, budget: usize) -> Result<Self, StoreError> {
        let end = (window.first + window.length).div_ceil(CELL_BYTES);
        let walk = match blob.content {
            Content::Pages { map, epoch, .. } => {
                Some(Walk::new(view, map, epoch, window.first / CELL_BYTES, end, budget))
            }
            _ => None,
        };
        let mut side = Self { walk, ahead: Stop::End, content: blob.content, length: blob.length };
        side.step()?;
        Ok(side)
    }

    /// Answers the cell ahead and goes on.
    fn step(&mut self) -> Result<Stop, StoreError> {
        let next = self.walk.as_mut().map_or(Ok(Stop::End), Walk::next)?;
        Ok(std::mem::replace(&mut self.ahead, next))
    }

    /// The runs of the cell, if that is the next one.
    fn take(&mut self, cell: u64) -> Result<Vec<PageRun>, StoreError> {
        if !matches!(&self.ahead, Stop::At(Shown { cell: ahead, .. }) if *ahead == cell) {
            return Ok(Vec::new());
        }
        let Stop::At(shown) = self.step()? else { return Ok(Vec::new()) };
        let runs = shown_runs(cleared_of(self.content), cell, shown.row.runs);
        let beyond = ByteRange { first: self.length, length: u64::MAX - self.length };
        let whole = ByteRange { first: cell * CELL_BYTES, length: CELL_BYTES };
        Ok(overlap(beyond, whole).map_or_else(|| runs.clone(), |gone| cell::without(&runs, slots_of(cell, gone))))
    }

    /// The next cell, or where the walk pauses.
    fn at(&self) -> Option<(u64, bool)> {
        match &self.ahead {
            Stop::At(shown) => Some((shown.cell, false)),
            Stop::Paused(cell) => Some((*cell, true)),
            Stop::End => None,
        }
    }
}

/// Compares cell by cell, until the list is full or a walk pauses.
fn walk(list: &mut List, mut now: Side<'_>, mut then: Option<Side<'_>>, window: ByteRange) -> Result<(), StoreError> {
    loop {
        let (one, other) = (now.at(), then.as_ref().and_then(Side::at));
        let nearest = match (one, other) {
            (Some(one), Some(other)) => match one.0.cmp(&other.0) {
                Ordering::Less => one,
                Ordering::Greater => other,
                Ordering::Equal => (one.0, one.1 || other.1),
            },
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return Ok(()),
        };
        let (cell, paused) = nearest;
        if paused {
            list.next = Some((cell * CELL_BYTES).max(window.first));
            return Ok(());
        }
        let has = now.take(cell)?;
        match &mut then {
            None => {
                for run in has {
                    list.push(cell, run.first, run.count, false, window);
                }
            }
            Some(then) => compare(list, cell, &has, &then.take(cell)?, window),
        }
        if list.next.is_some() {
            return Ok(());
        }
    }
}

/// Lists the pages of one cell that differ.
fn compare(list: &mut List, cell: u64, has: &[PageRun], had: &[PageRun], window: ByteRange) {
    if has == had {
        return;
    }
    for ((page, has), had) in (0..).zip(cell::by_page(has)).zip(cell::by_page(had)) {
        if has != had {
            list.push(cell, page, 1, has.is_none(), window);
        }
    }
}

/// Stretches as they come, in order.
struct List {
    stretches: Vec<Stretch>,
    limit: usize,
    /// Set once the list is full.
    next: Option<u64>,
}

impl List {
    /// Adds what of the pages lies in the window, joined to the last stretch if it goes on.
    fn push(&mut self, cell: u64, page: u8, count: u8, cleared: bool, window: ByteRange) {
        let first = cell * CELL_BYTES + u64::from(page) * PAGE_BYTES;
        let Some(range) = overlap(ByteRange { first, length: u64::from(count) * PAGE_BYTES }, window) else { return };
        if self.next.is_some() {
            return;
        }
        let full = self.stretches.len() == self.limit;
        match self.stretches.last_mut() {
            Some(last) if last.cleared == cleared && last.range.first + last.range.length == range.first => {
                last.range.length += range.length;
            }
            _ if full => self.next = Some(range.first),
            _ => self.stretches.push(Stretch { range, cleared }),
        }
    }
}
