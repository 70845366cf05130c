//! Page blobs: pages of 512 bytes, written anywhere. <https://learn.microsoft.com/rest/api/storageservices/put-page>
//!
//! What was never written, or was cleared, reads as zeros and takes no space. A large clear and a shrinking are one
//! row: the content remembers which range reads as zeros, and the pages there are erased afterwards in bounded steps.

mod cell;
mod map;
mod own;
mod ranges;
mod spans;

use std::sync::Arc;

use crate::blob::feed::{Cause, Change};
use crate::blob::kind::BlobKind;
use crate::blob::{OnBlob, Stored, Written, state};
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::payload::Staged;
use crate::payload::pins::Pins;
use crate::payload::refs::{self, Target};
use crate::properties::HttpProperties;
use crate::range::ByteRange;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::page::{CELL_BYTES, PageRun};
use crate::store::{Purpose, Space, StoreError, Tx, View};
use cell::Slots;
use map::{Stop, Walk, Writer};

pub(super) use map::erase;
pub(crate) use own::expire;
pub(super) use own::{Owner, tidy_up};
pub use ranges::{PageRanges, PagesAsked, Stretch, ranges};
pub(super) use spans::{look_up, spans};

pub use crate::rows::page::PAGE_BYTES;

/// Largest page blob: 8 TiB.
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024 * 1024;
/// Most bytes of one Put Page.
pub const PUT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Largest sequence number.
pub const SEQUENCE_MAX: u64 = i64::MAX as u64;
/// Cells that one transaction clears or copies. Few in tests, whose maps are small.
const CELLS_PER_TRANSACTION: usize = if cfg!(test) { 2 } else { 128 };
/// Rows that one transaction looks at for them.
const ROWS_PER_TRANSACTION: usize = if cfg!(test) { 16 } else { 2048 };
/// Runs after which it takes no more cells: each may be a body to keep or to give up, and a cell has up to 128.
const RUNS_PER_TRANSACTION: usize = 2048;
/// How often a write makes room for itself before it gives up.
pub(super) const ATTEMPTS_MAX: usize = 8;

/// Put Blob (page blob): <https://learn.microsoft.com/rest/api/storageservices/put-blob>. All of it is zeros. The
/// protocol sees to it that the length is in whole pages and at most [`PAGE_BLOB_BYTES_MAX`].
///
/// Refuses as [`crate::blob::object::put`].
pub async fn create(engine: &Engine, on: OnBlob, stored: Stored, length: u64, sequence: u64) -> Result<Written, Error> {
    let kind = BlobKind::Page { sequence };
    let policy = engine.policy(&on.address.container.account);
    let written = engine
        .write(Purpose::Grow, move |tx| {
            let place = state::place(tx, &on)?;
            let lease = state::admit_create(tx, &on, &place, kind)?;
            let encryption = place.scope.encryption(on.key.as_ref(), stored.scope.as_ref())?;
            let (stored, content) = (stored.clone(), Content::Empty);
            let new = state::New { kind, stored, length, content, copy: None, encryption, cause: Cause::Put };
            state::replace(tx, &policy, &on, place, lease, new)
        })
        .await?;
    engine.wake();
    Ok(written)
}

/// What a write of pages demands of the blob's sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceConditions {
    /// It is no more than this.
    pub at_most: Option<u64>,
    /// It is less than this.
    pub less_than: Option<u64>,
    /// It is this.
    pub equal: Option<u64>,
}

impl SequenceConditions {
    fn judge(self, sequence: u64) -> Result<(), Refusal> {
        let holds = self.at_most.is_none_or(|bound| sequence <= bound)
            && self.less_than.is_none_or(|bound| sequence < bound)
            && self.equal.is_none_or(|wanted| sequence == wanted);
        if holds { Ok(()) } else { Err(Refusal::SequenceConditionFailed) }
    }
}

/// What a write of pages answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesWritten {
    /// The version that it made.
    pub written: Written,
    /// The blob's sequence number.
    pub sequence: u64,
}

/// Put Page, before its body is read: whether it would be refused now. The answer is not binding.
pub fn check_put(engine: &Engine, on: &OnBlob) -> Result<(), Error> {
    engine.read(|view| {
        let (_, blob) = state::writable(view, on)?;
        sequence(&blob)?;
        state::opened(&blob, on)?;
        Ok(())
    })
}

/// Put Page: <https://learn.microsoft.com/rest/api/storageservices/put-page>. The protocol sees to it that `first` and
/// the content's length are in whole pages, and that it is 1 to [`PUT_BYTES_MAX`] bytes.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `ConditionFailed`, the lease refusals, `BlobKindMismatch`,
/// `PagesOutside`, `SequenceConditionFailed`.
pub async fn put(
    engine: &Engine,
    on: OnBlob,
    conditions: SequenceConditions,
    first: u64,
    content: Staged,
) -> Result<PagesWritten, Error> {
    let (on, content) = (Arc::new(on), Arc::new(content));
    let owner = Owner::Blob(Arc::clone(&on));
    let range = ByteRange { first, length: content.length() };
    for _ in 0..ATTEMPTS_MAX {
        let (to, pins) = (Arc::clone(&on), engine.payloads().pins().clone());
        let written = engine.write_content(Arc::clone(&content), move |tx, content| {
            let (key, blob) = admit(tx, &to, conditions, range)?;
            let put = put_pages(tx, &pins, blob.content, range, content)?;
            put.with(|content| save(tx, key, BlobRow { content, ..blob }))
        });
        if let Some(written) = written.await?.or_make_room(engine, &owner).await? {
            engine.wake();
            return Ok(written);
        }
    }
    Err(Error::Busy)
}

/// Clear Pages: <https://learn.microsoft.com/rest/api/storageservices/put-page>. As [`put`], of any number of pages.
///
/// Refuses as [`put`].
pub async fn clear(
    engine: &Engine,
    on: OnBlob,
    conditions: SequenceConditions,
    range: ByteRange,
) -> Result<PagesWritten, Error> {
    let on = Arc::new(on);
    let owner = Owner::Blob(Arc::clone(&on));
    for _ in 0..ATTEMPTS_MAX {
        let (to, pins) = (Arc::clone(&on), engine.payloads().pins().clone());
        let written = engine.write(Purpose::Free, move |tx| {
            let (key, blob) = admit(tx, &to, conditions, range)?;
            let cleared = clear_pages(tx, &pins, blob.content, range)?;
            cleared.with(|content| save(tx, key, BlobRow { content, ..blob }))
        });
        if let Some(written) = written.await?.or_make_room(engine, &owner).await? {
            tidy_up(engine, &owner).await;
            return Ok(written);
        }
    }
    Err(Error::Busy)
}

/// What Set Blob Properties makes of a page blob's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceAction {
    /// The larger of the two.
    Max(u64),
    /// This.
    Update(u64),
    /// One more.
    Increment,
}

/// What Set Blob Properties changes of a page blob; what is absent stays.
#[derive(Clone, Debug, Default)]
pub struct SetPages {
    /// Its length, in whole pages.
    pub length: Option<u64>,
    /// Its sequence number.
    pub sequence: Option<SequenceAction>,
    /// Its HTTP properties.
    pub http: Option<HttpProperties>,
}

/// Set Blob Properties of a page blob: <https://learn.microsoft.com/rest/api/storageservices/set-blob-properties>.
/// What is cut off is gone: should the blob grow again, it reads as zeros.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `ConditionFailed`, the lease refusals, `BlobKindMismatch`,
/// `SequenceTooLarge`.
pub async fn set(engine: &Engine, on: OnBlob, change: SetPages) -> Result<PagesWritten, Error> {
    let on = Arc::new(on);
    let owner = Owner::Blob(Arc::clone(&on));
    for _ in 0..ATTEMPTS_MAX {
        let (to, change, pins) = (Arc::clone(&on), change.clone(), engine.payloads().pins().clone());
        let policy = engine.policy(&on.address.container.account);
        let written = engine.write(Purpose::Grow, move |tx| {
            let (key, mut blob) = state::writable(tx, &to)?;
            let sequence = changed(sequence(&blob)?, change.sequence)?;
            blob.kind = BlobKind::Page { sequence };
            blob.http = change.http.clone().unwrap_or(blob.http);
            blob.copy = None;
            let old = blob.length;
            blob.length = change.length.unwrap_or(old);
            let cut = match old.checked_sub(blob.length) {
                Some(length @ 1..) => clear_pages(tx, &pins, blob.content, ByteRange { first: blob.length, length })?,
                _ => Step::Done(blob.content),
            };
            cut.with(|content| {
                let blob = BlobRow { content, etag: Etag::at(tx.now()), ..blob };
                Change::of(Cause::Properties, &blob).record(tx, &policy, &to)?;
                save(tx, key, blob)
            })
        });
        if let Some(written) = written.await?.or_make_room(engine, &owner).await? {
            tidy_up(engine, &owner).await;
            return Ok(written);
        }
    }
    Err(Error::Busy)
}

fn changed(sequence: u64, action: Option<SequenceAction>) -> Result<u64, Refusal> {
    match action {
        None => Ok(sequence),
        Some(SequenceAction::Max(number)) => Ok(sequence.max(number)),
        Some(SequenceAction::Update(number)) => Ok(number),
        Some(SequenceAction::Increment) if sequence >= SEQUENCE_MAX => Err(Refusal::SequenceTooLarge),
        Some(SequenceAction::Increment) => Ok(sequence + 1),
    }
}

/// Whether a transaction found the pages as it can write them.
pub(super) enum Step<T> {
    Done(T),
    /// The map has gone on without this blob: it needs one of its own.
    NeedsOwnMap,
    /// What was cleared has to be erased first.
    Untidy,
}

impl<T> Step<T> {
    /// Goes on if the pages are written.
    pub(super) fn with<U>(self, next: impl FnOnce(T) -> Result<U, Error>) -> Result<Step<U>, Error> {
        Ok(match self {
            Self::Done(value) => Step::Done(next(value)?),
            Self::NeedsOwnMap => Step::NeedsOwnMap,
            Self::Untidy => Step::Untidy,
        })
    }

    /// What was done; or else does what has to be done before another try.
    pub(super) async fn or_make_room(self, engine: &Engine, owner: &Owner) -> Result<Option<T>, Error> {
        match self {
            Self::Done(value) => return Ok(Some(value)),
            Self::NeedsOwnMap => own::build(engine, owner).await?,
            Self::Untidy => own::tidy(engine, owner).await?,
        }
        Ok(None)
    }
}

/// The blob that a write of pages may change: conditions, lease, kind, range, sequence number.
fn admit(
    view: &dyn View,
    on: &OnBlob,
    conditions: SequenceConditions,
    range: ByteRange,
) -> Result<(Vec<u8>, BlobRow), Error> {
    let (key, blob) = state::writable(view, on)?;
    let sequence = sequence(&blob)?;
    state::opened(&blob, on)?;
    if range.first.checked_add(range.length).is_none_or(|end| end > blob.length) {
        return Err(Refusal::PagesOutside.into());
    }
    conditions.judge(sequence)?;
    Ok((key, blob))
}

/// A page blob's sequence number.
fn sequence(blob: &BlobRow) -> Result<u64, Refusal> {
    match blob.kind {
        BlobKind::Page { sequence } => Ok(sequence),
        BlobKind::Block | BlobKind::Append { .. } => Err(Refusal::BlobKindMismatch),
    }
}

/// Stores the blob as a new version.
fn save(tx: &mut dyn Tx, key: Vec<u8>, mut blob: BlobRow) -> Result<PagesWritten, Error> {
    blob.etag = Etag::at(tx.now());
    let sequence = sequence(&blob)?;
    rows::put(tx, Space::Blobs, key, &blob)?;
    Ok(PagesWritten { written: Written { etag: blob.etag, version: blob.version }, sequence })
}

/// Makes `content` the bytes of `range`; answers the new content.
pub(super) fn put_pages(
    tx: &mut dyn Tx,
    pins: &Pins,
    pages: Content,
    range: ByteRange,
    content: &Staged,
) -> Result<Step<Content>, StoreError> {
    let cleared = cleared_of(pages);
    if overlap(cleared, range).is_some() {
        return Ok(Step::Untidy);
    }
    let Some(writer) = Writer::of(tx, pins, pages)? else { return Ok(Step::NeedsOwnMap) };
    let (payload, bytes) = (content.keep(tx)?, content.length());
    let mut cells = 0;
    for (cell, slots, first) in cells_of(range) {
        let (first_slot, count) = (slots.first, slots.end - slots.first);
        let run = PageRun { first: first_slot, count, payload, bytes, from: first - range.first };
        writer.edit(tx, cell, Some(payload), |runs| cell::with(runs, run))?;
        cells += 1;
    }
    // The body was born with one reference.
    if cells > 1 {
        refs::retain(tx, Target::payload(payload), cells - 1)?;
    }
    Ok(Step::Done(Content::Pages { map: writer.map, epoch: writer.epoch, cleared }))
}

/// Makes `range` read as zeros; answers the new content.
pub(super) fn clear_pages(
    tx: &mut dyn Tx,
    pins: &Pins,
    pages: Content,
    range: ByteRange,
) -> Result<Step<Content>, StoreError> {
    let Content::Pages { map, epoch, cleared } = pages else { return Ok(Step::Done(pages)) };
    let Some(cells) = written_cells(tx, map, epoch, range)? else {
        // Too many for one transaction.
        return Ok(match joined(cleared, range) {
            Some(cleared) => Step::Done(Content::Pages { map, epoch, cleared }),
            None => Step::Untidy,
        });
    };
    if cells.is_empty() {
        return Ok(Step::Done(pages));
    }
    let Some(writer) = Writer::of(tx, pins, pages)? else { return Ok(Step::NeedsOwnMap) };
    for cell in cells {
        let slots = slots_of(cell, range);
        writer.edit(tx, cell, None, |runs| cell::without(runs, slots))?;
    }
    Ok(Step::Done(Content::Pages { map: writer.map, epoch: writer.epoch, cleared }))
}

/// The cells of `range` that have a row; none if they are too many to look at.
fn written_cells(view: &dyn View, map: u64, epoch: u64, range: ByteRange) -> Result<Option<Vec<u64>>, StoreError> {
    let end = (range.first + range.length).div_ceil(CELL_BYTES);
    let mut walk = Walk::new(view, map, epoch, range.first / CELL_BYTES, end, ROWS_PER_TRANSACTION);
    let (mut cells, mut runs) = (Vec::new(), 0);
    loop {
        match walk.next()? {
            Stop::At(_) if cells.len() == CELLS_PER_TRANSACTION || runs >= RUNS_PER_TRANSACTION => return Ok(None),
            Stop::At(shown) => {
                runs += shown.row.runs.len();
                cells.push(shown.cell);
            }
            Stop::Paused(_) => return Ok(None),
            Stop::End => return Ok(Some(cells)),
        }
    }
}

/// The cells of `range`, which is in whole pages: each with its pages and the first byte of these.
fn cells_of(range: ByteRange) -> impl Iterator<Item = (u64, Slots, u64)> {
    let end = range.first + range.length;
    (range.first / CELL_BYTES..end.div_ceil(CELL_BYTES))
        .map(move |cell| (cell, slots_of(cell, range), range.first.max(cell * CELL_BYTES)))
}

/// The pages of `cell` that lie in `range`, which touches it.
fn slots_of(cell: u64, range: ByteRange) -> Slots {
    let base = cell * CELL_BYTES;
    let first = range.first.saturating_sub(base) / PAGE_BYTES;
    let end = (range.first + range.length - base).min(CELL_BYTES).div_ceil(PAGE_BYTES);
    let slot = |page: u64| u8::try_from(page).unwrap_or(Slots::ALL.end);
    Slots { first: slot(first), end: slot(end) }
}

/// The range of a content that reads as zeros whatever its rows say.
fn cleared_of(content: Content) -> ByteRange {
    match content {
        Content::Pages { cleared, .. } => cleared,
        _ => ByteRange { first: 0, length: 0 },
    }
}

/// The runs of a cell without what of it was cleared.
fn shown_runs(cleared: ByteRange, cell: u64, runs: Vec<PageRun>) -> Vec<PageRun> {
    match overlap(cleared, ByteRange { first: cell * CELL_BYTES, length: CELL_BYTES }) {
        Some(gone) => cell::without(&runs, slots_of(cell, gone)),
        None => runs,
    }
}

/// What two ranges have in common.
fn overlap(one: ByteRange, other: ByteRange) -> Option<ByteRange> {
    let first = one.first.max(other.first);
    let end = (one.first + one.length).min(other.first + other.length);
    (first < end).then(|| ByteRange { first, length: end - first })
}

/// Both ranges as one, if nothing lies between them.
fn joined(one: ByteRange, other: ByteRange) -> Option<ByteRange> {
    if one.length == 0 {
        return Some(other);
    }
    let (first, end) = (one.first.min(other.first), (one.first + one.length).max(other.first + other.length));
    (end - first <= one.length + other.length).then(|| ByteRange { first, length: end - first })
}

#[cfg(test)]
mod tests;
