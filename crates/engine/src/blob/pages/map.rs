//! A map of pages and its epochs: what one epoch shows, and how the newest is written.
//!
//! A map is a sequence of epochs; whoever names an epoch sees, in each cell, the newest row that is not newer than it.
//! Sharing an epoch costs one reference. A blob writes in place while it alone names the newest epoch and nobody reads
//! that; else its first write makes a newer epoch, and what is written from then on is not seen through the older ones.

use std::ops::Bound;

use super::cell;
use crate::payload::pins::Pins;
use crate::payload::refs::{self, Target};
use crate::rows;
use crate::rows::blob::Content;
use crate::rows::codec;
use crate::rows::page::{self, CellRow, EpochRow, PageRun};
use crate::store::{Direction, KeyRange, Pairs, Space, StoreError, Tx, View, prefix_end};

/// Rows of one cell that a walk passes over one by one before it looks for the next cell.
const PASSED_MAX: usize = if cfg!(test) { 2 } else { 16 };

/// A cell as an epoch shows it.
pub(super) struct Shown {
    /// Which cell.
    pub(super) cell: u64,
    /// The epoch that wrote the row.
    pub(super) epoch: u64,
    /// What it says.
    pub(super) row: CellRow,
}

/// A walk over the cells that have a row in one epoch, in order.
pub(super) struct Walk<'a> {
    view: &'a dyn View,
    map: u64,
    epoch: u64,
    /// Cells from here on are not looked at.
    end: u64,
    rows: Pairs<'a>,
    /// The cell answered last, and rows passed over since.
    last: Option<u64>,
    passed: usize,
    /// Rows that may still be looked at.
    budget: usize,
}

/// What a walk comes to.
pub(super) enum Stop {
    /// A cell.
    At(Shown),
    /// No more cells.
    End,
    /// The budget is used up; this cell and those behind it are not known.
    Paused(u64),
}

impl<'a> Walk<'a> {
    /// Walks from `first` to before `end`, looking at no more than `budget` rows.
    pub(super) fn new(view: &'a dyn View, map: u64, epoch: u64, first: u64, end: u64, budget: usize) -> Self {
        let rows = Self::rows(view, map, page::cell_prefix(map, first), end);
        Self { view, map, epoch, end, rows, last: None, passed: 0, budget }
    }

    fn rows(view: &'a dyn View, map: u64, start: Vec<u8>, end: u64) -> Pairs<'a> {
        let range = KeyRange { start: Bound::Included(start), end: Bound::Excluded(page::cell_prefix(map, end)) };
        view.scan(Space::Pages, range, Direction::Forward)
    }

    pub(super) fn next(&mut self) -> Result<Stop, StoreError> {
        while let Some(pair) = self.rows.next() {
            let (key, value) = pair?;
            let (cell, epoch) = page::parse(&key)?;
            if self.budget == 0 {
                return Ok(Stop::Paused(cell.max(self.last.map_or(0, |last| last + 1))));
            }
            self.budget -= 1;
            let answered = self.last == Some(cell);
            if answered || epoch > self.epoch {
                self.passed += 1;
                if self.passed > PASSED_MAX {
                    let next = if answered {
                        page::cell_prefix(self.map, cell + 1)
                    } else {
                        page::key(self.map, cell, self.epoch)
                    };
                    self.rows = Self::rows(self.view, self.map, next, self.end);
                    self.passed = 0;
                }
                continue;
            }
            (self.last, self.passed) = (Some(cell), 0);
            return Ok(Stop::At(Shown { cell, epoch, row: page::decode_cell(&key, &value)? }));
        }
        Ok(Stop::End)
    }
}

/// The epoch's row.
pub(super) fn epoch(view: &dyn View, epoch: u64) -> Result<EpochRow, StoreError> {
    let key = page::epoch_key(epoch);
    rows::get(view, Space::Epochs, &key)?.ok_or_else(|| codec::corrupt(Space::Epochs, &key, "an epoch is missing"))
}

fn put_epoch(tx: &mut dyn Tx, epoch: u64, row: &EpochRow) -> Result<(), StoreError> {
    rows::put(tx, Space::Epochs, page::epoch_key(epoch), row)
}

/// A new map with one epoch, of the same number.
pub(super) fn create(tx: &mut dyn Tx) -> Result<u64, StoreError> {
    let map = tx.id();
    put_epoch(tx, map, &EpochRow { map, older: None, newer: None, erased: 0 })?;
    Ok(map)
}

/// The epochs next to one, on one side: as far as any cell has to look for one that is not erased there.
struct Neighbours(Vec<(u64, u64)>);

impl Neighbours {
    fn from(view: &dyn View, mut next: Option<u64>, step: fn(&EpochRow) -> Option<u64>) -> Result<Self, StoreError> {
        let mut found = Vec::new();
        while let Some(number) = next {
            let row = epoch(view, number)?;
            found.push((number, row.erased));
            if row.erased == 0 {
                break;
            }
            next = step(&row);
        }
        Ok(Self(found))
    }

    /// The nearest that still shows the cell.
    fn at(&self, cell: u64) -> Option<u64> {
        self.0.iter().find(|(_, erased)| *erased <= cell).map(|(epoch, _)| *epoch)
    }
}

/// Writes cells of the newest epoch of a map, which only one blob names.
pub(super) struct Writer {
    pub(super) map: u64,
    pub(super) epoch: u64,
    older: Neighbours,
}

impl Writer {
    /// For the pages of `content`, with a newer epoch if others see the present one. None: the map has newer epochs
    /// already, which others wrote.
    pub(super) fn of(tx: &mut dyn Tx, pins: &Pins, content: Content) -> Result<Option<Self>, StoreError> {
        let number = match content {
            Content::Empty => {
                let map = create(tx)?;
                return Ok(Some(Self { map, epoch: map, older: Neighbours(Vec::new()) }));
            }
            Content::Pages { epoch, .. } => epoch,
            Content::Whole(_) | Content::Blocks(_) | Content::Log(_) => {
                return Err(codec::corrupt(Space::Blobs, &[], "a page blob has no pages"));
            }
        };
        let row = epoch(tx, number)?;
        if row.newer.is_some() {
            return Ok(None);
        }
        let target = Target::pages(number);
        // A reader pins in a transaction: either it sees what is written here, or its pin is seen here.
        if refs::references(tx, target)? == 1 && !pins.holds(target) {
            let older = Neighbours::from(tx, row.older, |row| row.older)?;
            return Ok(Some(Self { map: row.map, epoch: number, older }));
        }
        let newest = tx.id();
        put_epoch(tx, newest, &EpochRow { map: row.map, older: Some(number), newer: None, erased: 0 })?;
        put_epoch(tx, number, &EpochRow { newer: Some(newest), ..row })?;
        refs::release(tx, target)?;
        let older = Neighbours::from(tx, Some(number), |row| row.older)?;
        Ok(Some(Self { map: row.map, epoch: newest, older }))
    }

    /// Changes one cell by `edit`. Of `born`, a body that no row names yet, the cell takes over no reference: who keeps
    /// it counts the cells.
    pub(super) fn edit(
        &self,
        tx: &mut dyn Tx,
        cell: u64,
        born: Option<crate::payload::PayloadId>,
        edit: impl Fn(&[PageRun]) -> Vec<PageRun>,
    ) -> Result<(), StoreError> {
        let (now, below) = self.look(tx, cell)?;
        let (from, old) = now.map_or((None, CellRow::default()), |shown| (Some(shown.epoch), shown.row));
        let new = CellRow { runs: edit(&old.runs) };
        if new == old {
            return Ok(());
        }
        let (had, has) = (cell::bodies(&old.runs), cell::bodies(&new.runs));
        let key = page::key(self.map, cell, self.epoch);
        // An older epoch may see the row that this one saw until now: then it stays, and this one gets its own.
        let shared =
            from.is_some_and(|from| from < self.epoch && self.older.at(cell).is_some_and(|older| older >= from));
        if shared {
            for body in has.iter().filter(|body| Some(**body) != born) {
                refs::retain(tx, Target::payload(*body), 1)?;
            }
        } else {
            for body in had.difference(&has) {
                refs::release(tx, Target::payload(*body))?;
            }
            if let Some(from) = from.filter(|from| *from != self.epoch) {
                tx.delete(Space::Pages, &page::key(self.map, cell, from))?;
            }
        }
        if new.runs.is_empty() && !shared && !below {
            return tx.delete(Space::Pages, &key);
        }
        rows::put(tx, Space::Pages, key, &new)
    }

    /// What the epoch shows of a cell, and whether there are still older rows of it.
    fn look(&self, view: &dyn View, cell: u64) -> Result<(Option<Shown>, bool), StoreError> {
        let prefix = page::cell_prefix(self.map, cell);
        let mut rows = view.scan(Space::Pages, KeyRange::prefix(&prefix), Direction::Forward);
        let Some((key, value)) = rows.next().transpose()? else { return Ok((None, false)) };
        let (_, epoch) = page::parse(&key)?;
        let row = page::decode_cell(&key, &value)?;
        Ok((Some(Shown { cell, epoch, row }), rows.next().transpose()?.is_some()))
    }
}

/// Erases of a dead epoch what no other one shows, at most about `count` rows looked at and bodies given up; answers
/// whether more is left.
pub(in crate::blob) fn erase(tx: &mut dyn Tx, number: u64, count: usize) -> Result<bool, StoreError> {
    let Some(row) = rows::get::<EpochRow>(tx, Space::Epochs, &page::epoch_key(number))? else { return Ok(false) };
    let older = Neighbours::from(tx, row.older, |row| row.older)?;
    let newer = Neighbours::from(tx, row.newer, |row| row.newer)?;
    let (dead, next) = unseen(tx, number, &row, (&older, &newer), count)?;
    for (key, cell) in dead {
        for body in cell::bodies(&cell.runs) {
            refs::release(tx, Target::payload(body))?;
        }
        tx.delete(Space::Pages, &key)?;
    }
    if let Some(erased) = next {
        put_epoch(tx, number, &EpochRow { erased, ..row })?;
        return Ok(true);
    }
    if let Some(older) = row.older {
        let neighbour = epoch(tx, older)?;
        put_epoch(tx, older, &EpochRow { newer: row.newer, ..neighbour })?;
    }
    if let Some(newer) = row.newer {
        let neighbour = epoch(tx, newer)?;
        put_epoch(tx, newer, &EpochRow { older: row.older, ..neighbour })?;
    }
    tx.delete(Space::Epochs, &page::epoch_key(number))?;
    Ok(false)
}

/// Rows with their keys.
type Rows = Vec<(bytes::Bytes, CellRow)>;

/// The rows that only the epoch `number` shows, from the cell on that it is erased to, and the cell to go on at.
fn unseen(
    view: &dyn View,
    number: u64,
    row: &EpochRow,
    (older, newer): (&Neighbours, &Neighbours),
    count: usize,
) -> Result<(Rows, Option<u64>), StoreError> {
    let range = KeyRange {
        start: Bound::Included(page::cell_prefix(row.map, row.erased)),
        end: prefix_end(&page::prefix(row.map)),
    };
    let (mut dead, mut looked, mut last) = (Rows::new(), 0, None);
    // Whether the next newer epoch has a row of its own in the cell, or was found to show the dead one's.
    let mut covered = false;
    for pair in view.scan(Space::Pages, range, Direction::Forward) {
        let (key, value) = pair?;
        let (cell, epoch) = page::parse(&key)?;
        if last != Some(cell) {
            if looked >= count {
                return Ok((dead, Some(cell)));
            }
            (last, covered) = (Some(cell), newer.at(cell).is_none());
        }
        looked += 1;
        if epoch > number {
            covered |= newer.at(cell).is_some_and(|newer| epoch <= newer);
        } else if older.at(cell).is_none_or(|older| epoch > older) {
            if covered {
                let row = page::decode_cell(&key, &value)?;
                // Each of its bodies costs a write, as many as it has pages.
                looked += row.runs.len();
                dead.push((key.clone(), row));
            }
            // Whatever is older than the row that the newer epoch shows is hidden from it.
            covered = true;
        }
    }
    Ok((dead, None))
}
