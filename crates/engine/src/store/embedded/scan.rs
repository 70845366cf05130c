//! Scans over a kv and something that overrides it: older values for a snapshot, newer ones for a transaction.

use std::collections::VecDeque;
use std::ops::Bound;

use bytes::Bytes;

use crate::store::{Direction, KeyRange, Pair, StoreError};

/// Pairs pulled at first; four times as many each time, up to [`CHUNK_MAX`]. A listing by hierarchy begins a scan for
/// each prefix and wants one pair of it.
const CHUNK_FIRST: usize = 1;
/// Most pairs pulled at a time.
const CHUNK_MAX: usize = 256;

/// Pulls at most so many pairs of a range from the kv.
pub(super) type Pull<'a> = Box<dyn Fn(&KeyRange, Direction, usize) -> Result<Vec<Pair>, StoreError> + Send + 'a>;
/// What overrides the kv within a range, in key order; none removes the key.
pub(super) type Override<'a> = Box<dyn Fn(&KeyRange) -> Result<Vec<(Bytes, Option<Bytes>)>, StoreError> + Send + 'a>;

/// A scan under way. Holds no lock between pairs.
pub(super) struct Scan<'a> {
    pull: Pull<'a>,
    over: Override<'a>,
    /// What is still to be read.
    rest: Option<KeyRange>,
    direction: Direction,
    chunk: usize,
    ready: VecDeque<Pair>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(pull: Pull<'a>, over: Override<'a>, range: KeyRange, direction: Direction) -> Self {
        Self { pull, over, rest: Some(range), direction, chunk: CHUNK_FIRST, ready: VecDeque::new() }
    }

    /// Reads the next chunk: the kv first, then what overrides exactly the interval it covered.
    fn fill(&mut self) -> Result<(), StoreError> {
        let Some(range) = self.rest.take() else { return Ok(()) };
        if self.chunk >= CHUNK_MAX {
            // A long scan lets threads run that have little to do: a commit is a chain of them, and each would else
            // wait for the scan's slice of the processor to end.
            std::thread::yield_now();
        }
        let below = (self.pull)(&range, self.direction, self.chunk)?;
        let mut covered = range.clone();
        if let Some((last, _)) = below.last().filter(|_| below.len() >= self.chunk) {
            let mut rest = range;
            match self.direction {
                Direction::Forward => {
                    covered.end = Bound::Included(last.to_vec());
                    rest.start = Bound::Excluded(last.to_vec());
                }
                Direction::Backward => {
                    covered.start = Bound::Included(last.to_vec());
                    rest.end = Bound::Excluded(last.to_vec());
                }
            }
            self.rest = Some(rest);
        }
        self.chunk = (self.chunk * 4).min(CHUNK_MAX);
        let mut over = (self.over)(&covered)?;
        if self.direction == Direction::Backward {
            over.reverse();
        }
        self.ready = merge(below, over, self.direction);
        Ok(())
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Pair, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.ready.pop_front() {
                return Some(Ok(pair));
            }
            self.rest.as_ref()?;
            if let Err(error) = self.fill() {
                self.rest = None;
                return Some(Err(error));
            }
        }
    }
}

/// Both in scan order; where both have a key, the override wins.
fn merge(below: Vec<Pair>, over: Vec<(Bytes, Option<Bytes>)>, direction: Direction) -> VecDeque<Pair> {
    if over.is_empty() {
        return below.into();
    }
    let mut merged = VecDeque::with_capacity(below.len() + over.len());
    let mut below = below.into_iter().peekable();
    let comes_first = |key: &Bytes, other: &Bytes| match direction {
        Direction::Forward => key < other,
        Direction::Backward => key > other,
    };
    for (key, value) in over {
        while let Some(pair) = below.next_if(|(other, _)| comes_first(other, &key)) {
            merged.push_back(pair);
        }
        let _replaced = below.next_if(|(other, _)| *other == key);
        if let Some(value) = value {
            merged.push_back((key, value));
        }
    }
    merged.extend(below);
    merged
}
