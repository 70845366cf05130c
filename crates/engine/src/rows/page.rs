//! `pages`: map, cell, inverted epoch -> [`CellRow`]: the written pages of a cell, from that epoch on until the next
//! one that has a row there; `epochs`: epoch -> [`EpochRow`].

use serde::{Deserialize, Serialize};

use crate::payload::PayloadId;
use crate::rows::codec::{self, KeyReader, KeyWriter, Row};
use crate::store::{Space, StoreError};

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 512;
/// Pages of a cell.
pub const CELL_PAGES: u8 = 128;
/// Bytes of a cell.
pub const CELL_BYTES: u64 = PAGE_BYTES * CELL_PAGES as u64;

/// Consecutive pages of a cell whose bytes lie together in one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRun {
    /// The first of them, counted in the cell.
    pub first: u8,
    /// How many, at least one.
    pub count: u8,
    /// The body.
    pub payload: PayloadId,
    /// Bytes of all of it.
    pub bytes: u64,
    /// Where in it the first page begins.
    pub from: u64,
}

/// The written pages of a cell, in order. It holds one reference on each body that it names. Without any it says that
/// what older epochs wrote there is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRow {
    /// The runs.
    pub runs: Vec<PageRun>,
}

impl Row for CellRow {
    const VERSION: u8 = 1;
}

/// A state of a map that somebody names or lately named. A newer one is made when the newest is shared and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochRow {
    /// The map.
    pub map: u64,
    /// The next older epoch of the map that is not erased.
    pub older: Option<u64>,
    /// The next newer one. Only an epoch without one can be written.
    pub newer: Option<u64>,
    /// Cells below this are erased, of an epoch that is dead.
    pub erased: u64,
}

impl Row for EpochRow {
    const VERSION: u8 = 1;
}

/// The key of a cell as of `epoch`: newer epochs come first.
pub fn key(map: u64, cell: u64, epoch: u64) -> Vec<u8> {
    KeyWriter::new().u64(map).u64(cell).u64(!epoch).finish()
}

/// What the keys of the cell begin with, of all epochs.
pub fn cell_prefix(map: u64, cell: u64) -> Vec<u8> {
    KeyWriter::new().u64(map).u64(cell).finish()
}

/// What the keys of the map's cells begin with.
pub fn prefix(map: u64) -> Vec<u8> {
    KeyWriter::new().u64(map).finish()
}

/// The cell and the epoch in `key`.
pub fn parse(key: &[u8]) -> Result<(u64, u64), StoreError> {
    let mut reader = KeyReader::new(Space::Pages, key);
    reader.u64()?;
    let (cell, epoch) = (reader.u64()?, !reader.u64()?);
    reader.end()?;
    Ok((cell, epoch))
}

/// The cell in `value`, found at `key`: its runs lie inside it, one behind the other.
pub fn decode_cell(key: &[u8], value: &[u8]) -> Result<CellRow, StoreError> {
    let cell: CellRow = codec::decode(Space::Pages, key, value)?;
    let mut end = 0;
    for run in &cell.runs {
        if run.first < end || run.count == 0 || run.count > CELL_PAGES.saturating_sub(run.first) {
            return Err(codec::corrupt(Space::Pages, key, "a run of pages lies outside its cell or over another"));
        }
        end = run.first + run.count;
    }
    Ok(cell)
}

/// The key of an epoch.
pub fn epoch_key(epoch: u64) -> Vec<u8> {
    KeyWriter::new().u64(epoch).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};
    use crate::store::VALUE_BYTES_MAX;

    #[test]
    fn the_fullest_cell_fits_a_value() {
        let run = PageRun { first: 127, count: 1, payload: PayloadId(u64::MAX), bytes: u64::MAX, from: u64::MAX };
        let cell = CellRow { runs: vec![run; CELL_PAGES.into()] };
        assert!(encode(&cell).unwrap().len() <= VALUE_BYTES_MAX);
    }

    #[test]
    fn runs_that_cannot_be_are_reported() {
        let run = |first, count| PageRun { first, count, payload: PayloadId(1), bytes: 2, from: 3 };
        let decoded = |runs: &[PageRun]| decode_cell(b"k", &encode(&CellRow { runs: runs.to_vec() }).unwrap());
        for sound in [&[][..], &[run(0, 128)], &[run(127, 1)], &[run(0, 1), run(1, 127)], &[run(3, 2), run(9, 1)]] {
            assert_eq!(decoded(sound).unwrap().runs, sound);
        }
        for bad in [
            &[run(0, 129)][..],
            &[run(128, 1)],
            &[run(255, 255)],
            &[run(5, 0)],
            &[run(0, 2), run(1, 1)],
            &[run(9, 1), run(3, 2)],
        ] {
            assert!(matches!(decoded(bad), Err(StoreError::Corrupt { space: Space::Pages, .. })), "{bad:?}");
        }
    }

    #[test]
    fn rows_on_disk_look_like_this_for_ever() {
        let written = key(1, 2, 3);
        let inverted = [255, 255, 255, 255, 255, 255, 255, 252];
        assert_eq!(written, [&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2][..], &inverted].concat());
        assert_eq!(parse(&written).unwrap(), (2, 3));
        assert!(written.starts_with(&cell_prefix(1, 2)) && written.starts_with(&prefix(1)));
        assert!(key(1, 2, 4) < written && written < key(1, 3, 4), "the newest epoch of a cell comes first");
        let cell = CellRow { runs: vec![PageRun { first: 4, count: 5, payload: PayloadId(6), bytes: 7, from: 8 }] };
        assert_eq!(encode(&cell).unwrap(), [1, 1, 4, 5, 6, 7, 8]);
        assert_eq!(decode::<CellRow>(Space::Pages, b"k", &[1, 1, 4, 5, 6, 7, 8]).unwrap(), cell);
        let epoch = EpochRow { map: 1, older: None, newer: Some(2), erased: 3 };
        assert_eq!(encode(&epoch).unwrap(), [1, 1, 0, 1, 2, 3]);
        assert_eq!(epoch_key(5), [0, 0, 0, 0, 0, 0, 0, 5]);
    }
}
