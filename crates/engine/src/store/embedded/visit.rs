//! Visits: scans for whoever looks at many pairs and keeps few.
//!
//! What the kv holds is read some hundred pairs at a time, into one buffer or from a run that an earlier visit left;
//! then what overrides exactly the interval that they cover is looked up, once, and both are shown in order. No
//! allocation and no lock per pair.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::runs::{Found, Interval, Packed, Reading, Run, Runs, after};
use crate::store::kv::Kv;
use crate::store::{KeyRange, Space, StoreError, Visitor};

/// Pairs read at first; doubles up to [`PAIRS_MAX`], so that short visits stay cheap.
const PAIRS_FIRST: usize = 8;
/// Most pairs read at a time.
const PAIRS_MAX: usize = 256;
/// Bytes after which no more pairs are read.
const BYTES_MAX: usize = 256 * 1024;

/// Runs after which others have their turn: what is read from the kv takes about as long as so many.
const YIELD_AFTER: usize = 8;

/// What overrides the kv within a range, in key order; none removes the key.
type Override<'a> = dyn Fn(&KeyRange) -> Result<Vec<(Bytes, Option<Bytes>)>, StoreError> + 'a;

/// Shows each pair of `range`, the kv's or what overrides it, until `each` breaks.
pub(super) fn run(
    (kv, runs): (&impl Kv, &Runs),
    space: Space,
    range: &KeyRange,
    over: &Override<'_>,
    each: &mut Visitor<'_>,
) -> Result<(), StoreError> {
    let mut rest = Interval::of(range);
    let (mut full_at, mut busy) = (PAIRS_FIRST, 0);
    while !rest.is_empty() {
        if busy >= YIELD_AFTER {
            // A long scan lets threads run that have little to do: see [`super::scan`].
            std::thread::yield_now();
            busy = 0;
        }
        let found = match runs.find(space, &rest) {
            Found::Run(run) => {
                busy += 1;
                run
            }
            Found::Gap(reading) => {
                busy += if full_at >= PAIRS_MAX { YIELD_AFTER } else { 0 };
                read(kv, space, &reading, full_at)?
            }
        };
        full_at = (full_at * 2).min(PAIRS_MAX);
        let covered = rest.up_to(found.interval.to.as_deref());
        if merge(found.pairs.within(&covered), over(&covered.range())?, each).is_break() {
            break;
        }
        let Some(next) = covered.to else { break };
        rest.from = next;
    }
    Ok(())
}

/// Reads the next run, of so many pairs at most. It is kept if the visit is a long one.
fn read(kv: &impl Kv, space: Space, reading: &Reading<'_>, full_at: usize) -> Result<Arc<Run>, StoreError> {
    let mut pairs = Packed::default();
    let mut interval = reading.interval.clone();
    kv.visit(space, &interval.range(), &mut |key, value| {
        pairs.push(key, value);
        if pairs.len() < full_at && pairs.bytes() < BYTES_MAX {
            return ControlFlow::Continue(());
        }
        interval.to = Some(after(key));
        ControlFlow::Break(())
    })?;
    if full_at < PAIRS_MAX {
        return Ok(Arc::new(Run { interval, pairs }));
    }
    pairs.shrink();
    let run = Arc::new(Run { interval, pairs });
    reading.keep(Arc::clone(&run));
    Ok(run)
}

/// Shows both in order; where both have a key, the override.
fn merge<'a>(
    mut pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    over: Vec<(Bytes, Option<Bytes>)>,
    each: &mut Visitor<'_>,
) -> ControlFlow<()> {
    if over.is_empty() {
        return pairs.try_for_each(|(key, value)| each(key, value));
    }
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
