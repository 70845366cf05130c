//! Runs: stretches of the kv that were visited lately, their pairs packed into one buffer each.
//!
//! Going through sled costs more for each pair than anything that a visitor does with it. A run is what the kv holds of
//! an interval of keys, as long as nobody writes into it: the committer tells of every key before it is applied and once
//! more after. What is told of while a run is being read makes that run one that is not kept. A reader that still holds
//! a run that was dropped is no worse off than one that read the kv just before the write: the overlay has what its
//! snapshot must see instead.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::store::kv::Writes;
use crate::store::{KeyRange, Space};

/// What a run costs beside its bytes.
const RUN_BYTES: usize = 256;
/// What a pair costs beside its bytes.
const PAIR_BYTES: usize = size_of::<(usize, usize, usize)>();

/// Keys from one up to another: bounds of any kind are these, since nothing lies between a key and itself with a zero
/// byte behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interval {
    /// The first.
    pub(super) from: Vec<u8>,
    /// The first beyond it; none if it goes on to the end.
    pub(super) to: Option<Vec<u8>>,
}

impl Interval {
    /// The keys of `range`.
    pub(super) fn of(range: &KeyRange) -> Self {
        let from = match &range.start {
            Included(start) => start.clone(),
            Excluded(start) => after(start),
            Unbounded => Vec::new(),
        };
        let to = match &range.end {
            Included(end) => Some(after(end)),
            Excluded(end) => Some(end.clone()),
            Unbounded => None,
        };
        Self { from, to }
    }

    /// The keys as a range.
    pub(super) fn range(&self) -> KeyRange {
        KeyRange { start: Included(self.from.clone()), end: self.to.clone().map_or(Unbounded, Excluded) }
    }

    /// Whether no key lies in it.
    pub(super) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// The same without what lies at or beyond `end`.
    pub(super) fn up_to(&self, end: Option<&[u8]>) -> Self {
        let to = match (self.to.as_deref(), end) {
            (Some(to), Some(end)) => Some(to.min(end)),
            (to, end) => to.or(end),
        };
        Self { from: self.from.clone(), to: to.map(<[u8]>::to_vec) }
    }

    fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.to.as_deref().is_none_or(|to| key < to)
    }
}

/// The first key after `key`.
pub(super) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Pairs in byte order, in one buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    /// Where each key begins, where its value does, where that ends.
    pairs: Vec<(usize, usize, usize)>,
}

impl Packed {
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.pairs.push((start, start + key.len(), self.bytes.len()));
    }

    /// Gives back what was allocated beyond the pairs.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.pairs.shrink_to_fit();
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// How many bytes they have.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The pairs whose keys lie in `interval`.
    pub(super) fn within<'a>(&'a self, interval: &'a Interval) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let key = |place: &(usize, usize, usize)| self.bytes.get(place.0..place.1).unwrap_or_default();
        let before = |bound: &[u8]| match (self.pairs.first(), self.pairs.last()) {
            // Mostly an interval has all of it.
            (Some(first), _) if key(first) >= bound => 0,
            (_, Some(last)) if key(last) < bound => self.pairs.len(),
            _ => self.pairs.partition_point(|pair| key(pair) < bound),
        };
        let begin = before(&interval.from);
        let count = interval.to.as_deref().map_or(self.pairs.len(), before).saturating_sub(begin);
        let pairs = self.pairs.iter().skip(begin).take(count);
        pairs.filter_map(|(key, value, end)| self.bytes.get(*key..*value).zip(self.bytes.get(*value..*end)))
    }
}

/// What the kv holds of an interval.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) interval: Interval,
    pub(super) pairs: Packed,
}

impl Run {
    fn cost(&self) -> usize {
        RUN_BYTES + self.pairs.bytes() + self.pairs.len() * PAIR_BYTES
    }
}

/// Runs by space and first key. No two have a key in common.
#[derive(Debug)]
pub(super) struct Runs {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<Space, BTreeMap<Vec<u8>, Kept>>,
    bytes: usize,
    /// Runs that are being read.
    begun: BTreeMap<u64, Begun>,
    /// Grows with every look-up: says what was used when, and numbers what is begun.
    uses: u64,
}

#[derive(Debug)]
struct Kept {
    run: Arc<Run>,
    used: u64,
}

#[derive(Debug)]
struct Begun {
    space: Space,
    interval: Interval,
    /// Whether nobody wrote into it since.
    unchanged: bool,
}

/// What lies at the beginning of an interval.
pub(super) enum Found<'a> {
    /// A run that begins there, or before it.
    Run(Arc<Run>),
    /// None: the interval up to the next run is to be read from the kv.
    Gap(Reading<'a>),
}

/// A run on its way. Dropped without [`Self::keep`], there is none.
pub(super) struct Reading<'a> {
    runs: &'a Runs,
    number: u64,
    /// What may be read for it.
    pub(super) interval: Interval,
}

impl Runs {
    /// None yet, and never more than `bytes_max`.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, state: Mutex::default() }
    }

    /// What there is at the beginning of `interval`.
    pub(super) fn find(&self, space: Space, interval: &Interval) -> Found<'_> {
        let mut state = self.state.lock();
        state.uses += 1;
        let number = state.uses;
        let mut gap = interval.clone();
        if let Some(runs) = state.runs.get_mut(&space) {
            let before = runs.range_mut::<[u8], _>((Unbounded, Included(interval.from.as_slice()))).next_back();
            if let Some((_, kept)) = before.filter(|(_, kept)| kept.run.interval.contains(&interval.from)) {
                kept.used = number;
                return Found::Run(Arc::clone(&kept.run));
            }
            let next = runs.range::<[u8], _>((Excluded(interval.from.as_slice()), Unbounded)).next();
            gap = interval.up_to(next.map(|(from, _)| from.as_slice()));
        }
        state.begun.insert(number, Begun { space, interval: gap.clone(), unchanged: true });
        Found::Gap(Reading { runs: self, number, interval: gap })
    }

    /// Forgets what `writes` are about to change, or have just changed.
    pub(super) fn forget(&self, writes: &Writes) {
        let mut state = self.state.lock();
        if state.runs.is_empty() && state.begun.is_empty() {
            return;
        }
        for (space, writes) in writes.spaces() {
            for key in writes.keys() {
                state.forget(space, key);
            }
        }
    }
}

impl State {
    fn forget(&mut self, space: Space, key: &[u8]) {
        for begun in self.begun.values_mut().filter(|begun| begun.space == space) {
            begun.unchanged &= !begun.interval.contains(key);
        }
        let Some(runs) = self.runs.get_mut(&space) else { return };
        let before = runs.range::<[u8], _>((Unbounded, Included(key))).next_back();
        if let Some((from, kept)) = before.filter(|(_, kept)| kept.run.interval.contains(key)) {
            let (from, cost) = (from.clone(), kept.run.cost());
            runs.remove(&from);
            self.bytes -= cost;
        }
    }

    /// Drops a quarter of the runs, those that were not used for the longest time.
    fn make_room(&mut self) {
        let mut used: Vec<u64> = self.runs.values().flat_map(BTreeMap::values).map(|kept| kept.used).collect();
        used.sort_unstable();
        let Some(bound) = used.get(used.len() / 4).copied() else { return };
        let mut freed = 0;
        for runs in self.runs.values_mut() {
            runs.retain(|_, kept| {
                let old = kept.used <= bound;
                freed += if old { kept.run.cost() } else { 0 };
                !old
            });
        }
        self.bytes -= freed;
    }
}

impl Reading<'_> {
    /// Keeps `run`, unless what it was read from has changed.
    pub(super) fn keep(&self, run: Arc<Run>) {
        let mut state = self.runs.state.lock();
        let Some(begun) = state.begun.remove(&self.number).filter(|begun| begun.unchanged) else { return };
        let cost = run.cost();
        if cost > self.runs.bytes_max {
            return;
        }
        while state.bytes + cost > self.runs.bytes_max {
            state.make_room();
        }
        let used = self.number;
        let runs = state.runs.entry(begun.space).or_default();
        // Another reader may have been quicker, with a run that is not of the same keys.
        let interval = &run.interval;
        let overlaps = match &interval.to {
            Some(to) => runs.range::<[u8], _>((Unbounded, Excluded(to.as_slice()))).next_back(),
            None => runs.last_key_value(),
        };
        if overlaps.is_none_or(|(_, kept)| kept.run.interval.to.as_ref().is_some_and(|to| *to <= interval.from)) {
            runs.insert(interval.from.clone(), Kept { run, used });
            state.bytes += cost;
        }
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.runs.state.lock().begun.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
