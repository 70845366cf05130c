//! What a page blob, or a copy of one that is under way, does between its writes, in bounded transactions: it gets a map
//! of its own once the one that it shares has gone on without it, and erases what was cleared. Nothing that a client sees
//! changes.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::map::{self, Stop, Walk, Writer};
use super::{
    CELLS_PER_TRANSACTION, ROWS_PER_TRANSACTION, RUNS_PER_TRANSACTION, cell, cleared_of, shown_runs, slots_of,
};
use crate::blob::{OnBlob, state};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::refs::{self, Target};
use crate::range::ByteRange;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::copy::{self as copies, CopyRow};
use crate::rows::due::{self, DueKind, DueRow};
use crate::rows::page::{self, CELL_BYTES, CellRow, PageRun};
use crate::store::{Purpose, Space, StoreError, Tx, View};

/// When a map that no blob came to name is let go.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);

/// Whose pages are written.
#[derive(Clone, Debug)]
pub(in crate::blob) enum Owner {
    /// A blob.
    Blob(Arc<OnBlob>),
    /// A copy from another server that is under way.
    Copy(Uuid),
}

impl Owner {
    /// The pages, and where they end.
    ///
    /// Refuses `ContainerNotFound`, `BlobNotFound` and `NoCopyPending`.
    fn pages(&self, view: &dyn View) -> Result<(Content, u64), Error> {
        match self {
            Self::Blob(on) => blob(view, on).map(|(_, blob)| (blob.content, blob.length)),
            Self::Copy(id) => copy_row(view, *id).map(|row| (row.content, row.total)),
        }
    }

    /// Puts other rows in place of those that say the same.
    fn put(&self, tx: &mut dyn Tx, content: Content) -> Result<(), Error> {
        match self {
            Self::Blob(on) => {
                let (key, blob) = blob(tx, on)?;
                rows::put(tx, Space::Blobs, key, &BlobRow { content, ..blob })?;
            }
            Self::Copy(id) => {
                let row = copy_row(tx, *id)?;
                rows::put(tx, Space::Copies, copies::key(*id), &CopyRow { content, ..row })?;
            }
        }
        Ok(())
    }
}

/// A map that is being filled.
#[derive(Clone, Copy)]
struct Building {
    epoch: u64,
    due: Timestamp,
    /// The next cell to copy.
    cell: u64,
}

impl Building {
    fn begin(tx: &mut dyn Tx) -> Result<Self, StoreError> {
        let building = Self { epoch: map::create(tx)?, due: tx.now().after(ABANDONED_AFTER), cell: 0 };
        rows::put(tx, Space::Due, building.appointment(), &DueRow::default())?;
        Ok(building)
    }

    fn appointment(self) -> Vec<u8> {
        due::key(self.due, DueKind::Pages, self.epoch)
    }
}

/// Where the building of a map stands.
enum Progress {
    Going(Building),
    Done,
    /// The pages have changed, or the map was let go meanwhile.
    Over,
}

/// Gives the owner a map of its own, of the same bodies.
///
/// Refuses `ContainerNotFound`, `BlobNotFound` and `NoCopyPending`.
pub(super) async fn build(engine: &Engine, owner: &Owner) -> Result<(), Error> {
    let old = engine.read(|view| owner.pages(view))?.0;
    let mut building = None;
    loop {
        let to = owner.clone();
        let step = engine.write(Purpose::Grow, move |tx| copy(tx, &to, old, building)).await;
        match step {
            Ok(Progress::Going(going)) => building = Some(going),
            Ok(Progress::Done) => {
                engine.wake();
                return Ok(());
            }
            Ok(Progress::Over) | Err(_) => {
                if let Some(Building { epoch, due, .. }) = building {
                    engine.write(Purpose::Free, move |tx| Ok(expire(tx, due, epoch)?)).await?;
                    engine.wake();
                }
                return step.map(|_| ());
            }
        }
    }
}

/// Copies some cells of what the owner shows; with the last ones it goes over to its own map.
fn copy(tx: &mut dyn Tx, owner: &Owner, old: Content, building: Option<Building>) -> Result<Progress, Error> {
    let (now, length) = owner.pages(tx)?;
    let Content::Pages { map, epoch, cleared } = old else { return Ok(Progress::Over) };
    if now != old {
        return Ok(Progress::Over);
    }
    let building = match building {
        Some(building) if tx.get(Space::Due, &building.appointment())?.is_none() => return Ok(Progress::Over),
        Some(building) => building,
        None => Building::begin(tx)?,
    };
    let (cells, next) = some(tx, map, epoch, building.cell, length.div_ceil(CELL_BYTES))?;
    for (cell, runs) in cells {
        let kept = shown_runs(cleared, cell, runs);
        if kept.is_empty() {
            continue;
        }
        for body in cell::bodies(&kept) {
            refs::retain(tx, Target::payload(body), 1)?;
        }
        rows::put(tx, Space::Pages, page::key(building.epoch, cell, building.epoch), &CellRow { runs: kept })?;
    }
    if let Some(cell) = next {
        return Ok(Progress::Going(Building { cell, ..building }));
    }
    tx.delete(Space::Due, &building.appointment())?;
    refs::release(tx, Target::pages(epoch))?;
    let content =
        Content::Pages { map: building.epoch, epoch: building.epoch, cleared: ByteRange { first: 0, length: 0 } };
    owner.put(tx, content)?;
    Ok(Progress::Done)
}

/// Cells by number, each with its runs.
type Cells = Vec<(u64, Vec<PageRun>)>;

/// The cells of an epoch from `first` to before `end`, as many as one transaction takes, and where to go on.
fn some(view: &dyn View, map: u64, epoch: u64, first: u64, end: u64) -> Result<(Cells, Option<u64>), StoreError> {
    let mut walk = Walk::new(view, map, epoch, first, end, ROWS_PER_TRANSACTION);
    let (mut cells, mut runs) = (Cells::new(), 0);
    loop {
        match walk.next()? {
            Stop::At(shown) if cells.len() == CELLS_PER_TRANSACTION || runs >= RUNS_PER_TRANSACTION => {
                return Ok((cells, Some(shown.cell)));
            }
            Stop::At(shown) => {
                runs += shown.row.runs.len();
                cells.push((shown.cell, shown.row.runs));
            }
            Stop::Paused(cell) => return Ok((cells, Some(cell))),
            Stop::End => return Ok((cells, None)),
        }
    }
}

/// Erases the pages of what was cleared.
///
/// Refuses `ContainerNotFound`, `BlobNotFound` and `NoCopyPending`.
pub(super) async fn tidy(engine: &Engine, owner: &Owner) -> Result<(), Error> {
    loop {
        let (to, pins) = (owner.clone(), engine.payloads().pins().clone());
        let more = engine.write(Purpose::Free, move |tx| {
            let (pages, _) = to.pages(tx)?;
            let Content::Pages { cleared, .. } = pages else { return Ok(Some(false)) };
            if cleared.length == 0 {
                return Ok(Some(false));
            }
            let Some(writer) = Writer::of(tx, &pins, pages)? else { return Ok(None) };
            let end = cleared.first + cleared.length;
            let (cells, next) =
                some(tx, writer.map, writer.epoch, cleared.first / CELL_BYTES, end.div_ceil(CELL_BYTES))?;
            for (cell, _) in cells {
                writer.edit(tx, cell, None, |runs| cell::without(runs, slots_of(cell, cleared)))?;
            }
            let first = next.map_or(end, |cell| cleared.first.max(cell * CELL_BYTES));
            let left = if first < end { ByteRange { first, length: end - first } } else { cleared_of(Content::Empty) };
            let content = Content::Pages { map: writer.map, epoch: writer.epoch, cleared: left };
            to.put(tx, content)?;
            Ok(Some(next.is_some()))
        });
        match more.await? {
            Some(true) => {}
            Some(false) => break,
            None => return build(engine, owner).await,
        }
    }
    engine.wake();
    Ok(())
}

/// As [`tidy`], after a write that is done already: what fails now is done before the next write that needs it.
pub(in crate::blob) async fn tidy_up(engine: &Engine, owner: &Owner) {
    let untidy = engine.read(|view| Ok(cleared_of(owner.pages(view)?.0).length > 0));
    if matches!(untidy, Ok(true))
        && let Err(error) = tidy(engine, owner).await
    {
        tracing::debug!(%error, "cleared pages are erased later");
    }
    engine.wake();
}

/// Lets an unfinished map go, unless that was done already.
pub(crate) fn expire(tx: &mut dyn Tx, at: Timestamp, epoch: u64) -> Result<(), StoreError> {
    let key = due::key(at, DueKind::Pages, epoch);
    if tx.get(Space::Due, &key)?.is_none() {
        return Ok(());
    }
    tx.delete(Space::Due, &key)?;
    refs::release(tx, Target::pages(epoch))
}

fn blob(view: &dyn View, on: &OnBlob) -> Result<(Vec<u8>, BlobRow), Error> {
    let state::Place { key, blob, .. } = state::place(view, on)?;
    Ok((key, blob.ok_or(Refusal::BlobNotFound)?))
}

fn copy_row(view: &dyn View, id: Uuid) -> Result<CopyRow, Error> {
    rows::get(view, Space::Copies, &copies::key(id))?.ok_or(Refusal::NoCopyPending.into())
}
