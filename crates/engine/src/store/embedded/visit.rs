//! Visits: scans for whoever looks at many pairs and keeps few.
//!
//! What the kv shows is copied into one buffer, some hundred pairs at a time; then what overrides exactly the interval
//! that they cover is looked up, once, and both are shown in order. No allocation and no lock per pair.

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use crate::store::kv::Kv;
use crate::store::{KeyRange, Space, StoreError, Visitor};

/// Pairs copied at first; doubles up to [`PAIRS_MAX`], so that short visits stay cheap.
const PAIRS_FIRST: usize = 8;
/// Most pairs copied at a time.
const PAIRS_MAX: usize = 256;
/// Bytes after which no more pairs are copied.
const BYTES_MAX: usize = 256 * 1024;

/// What overrides the kv within a range, in key order; none removes the key.
type Override<'a> = dyn Fn(&KeyRange) -> Result<Vec<(Bytes, Option<Bytes>)>, StoreError> + 'a;

/// Shows each pair of `range`, the kv's or what overrides it, until `each` breaks.
pub(super) fn run(
    kv: &impl Kv,
    space: Space,
    range: &KeyRange,
    over: &Override<'_>,
    each: &mut Visitor<'_>,
) -> Result<(), StoreError> {
    let mut batch = Batch { bytes: Vec::new(), pairs: Vec::new(), rest: range.clone(), full_at: PAIRS_FIRST };
    let mut state = Ok(ControlFlow::Continue(()));
    kv.visit(space, range, &mut |key, value| {
        batch.push(key, value);
        if !batch.is_full() {
            return ControlFlow::Continue(());
        }
        state = batch.show(Some(key), over, each);
        if matches!(state, Ok(ControlFlow::Continue(()))) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if state?.is_continue() {
        let _: ControlFlow<()> = batch.show(None, over, each)?;
    }
    Ok(())
}

/// Pairs of the kv that were not shown yet.
struct Batch {
    bytes: Vec<u8>,
    /// Where each key begins, where its value does, where that ends.
    pairs: Vec<(usize, usize, usize)>,
    /// What was not shown yet of the range.
    rest: KeyRange,
    /// How many pairs are shown together.
    full_at: usize,
}

impl Batch {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.pairs.push((start, start + key.len(), self.bytes.len()));
    }

    fn is_full(&self) -> bool {
        self.pairs.len() >= self.full_at || self.bytes.len() >= BYTES_MAX
    }

    /// Shows everything up to `last`, or to the end of the range, and is empty again.
    fn show(
        &mut self,
        last: Option<&[u8]>,
        over: &Override<'_>,
        each: &mut Visitor<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let mut covered = self.rest.clone();
        if let Some(last) = last {
            covered.end = Bound::Included(last.to_vec());
            self.rest.start = Bound::Excluded(last.to_vec());
        }
        let shown = merge(self.pairs(), over(&covered)?, each);
        self.bytes.clear();
        self.pairs.clear();
        if self.full_at >= PAIRS_MAX {
            // A long scan lets threads run that have little to do: see [`super::scan`].
            std::thread::yield_now();
        }
        self.full_at = (self.full_at * 2).min(PAIRS_MAX);
        Ok(shown)
    }

    fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().filter_map(|(key, value, end)| self.bytes.get(*key..*value).zip(self.bytes.get(*value..*end)))
    }
}

/// Shows both in order; where both have a key, the override.
fn merge<'a>(
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    over: Vec<(Bytes, Option<Bytes>)>,
    each: &mut Visitor<'_>,
) -> ControlFlow<()> {
    let mut pairs = pairs.peekable();
    for (key, value) in over {
        while let Some((other, value)) = pairs.next_if(|(other, _)| *other < &key[..]) {
            each(other, value)?;
        }
        let _replaced = pairs.next_if(|(other, _)| *other == &key[..]);
        if let Some(value) = value {
            each(&key, &value)?;
        }
    }
    pairs.try_for_each(|(key, value)| each(key, value))
}
