//! The pages of one cell: plain functions on runs.

use std::collections::BTreeSet;

use crate::payload::PayloadId;
use crate::rows::page::{CELL_PAGES, PAGE_BYTES, PageRun};

/// Pages of a cell, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    /// The first.
    pub(super) first: u8,
    /// The first behind them, at most [`CELL_PAGES`].
    pub(super) end: u8,
}

impl Slots {
    /// All of them.
    pub(super) const ALL: Self = Self { first: 0, end: CELL_PAGES };
}

/// The runs without what they say about `slots`.
pub(super) fn without(runs: &[PageRun], slots: Slots) -> Vec<PageRun> {
    let before = Slots { first: 0, end: slots.first };
    let after = Slots { first: slots.end, end: CELL_PAGES };
    runs.iter().flat_map(|run| [within(run, before), within(run, after)]).flatten().collect()
}

/// The part of a run that lies in `slots`.
pub(super) fn within(run: &PageRun, slots: Slots) -> Option<PageRun> {
    let first = run.first.max(slots.first);
    let end = (run.first + run.count).min(slots.end);
    (first < end).then(|| PageRun {
        first,
        count: end - first,
        from: run.from + u64::from(first - run.first) * PAGE_BYTES,
        ..*run
    })
}

/// The runs with `run` in place of what they said about its pages.
pub(super) fn with(runs: &[PageRun], run: PageRun) -> Vec<PageRun> {
    let mut all = without(runs, Slots { first: run.first, end: run.first + run.count });
    let at = all.partition_point(|other| other.first < run.first);
    all.insert(at, run);
    let mut joined: Vec<PageRun> = Vec::with_capacity(all.len());
    for run in all {
        match joined.last_mut() {
            Some(last) if goes_on(last, &run) => last.count += run.count,
            _ => joined.push(run),
        }
    }
    joined
}

/// Whether `next` is where `run` would go on.
fn goes_on(run: &PageRun, next: &PageRun) -> bool {
    run.payload == next.payload
        && run.first + run.count == next.first
        && run.from + u64::from(run.count) * PAGE_BYTES == next.from
}

/// The bodies that the runs name, each once.
pub(super) fn bodies(runs: &[PageRun]) -> BTreeSet<PayloadId> {
    runs.iter().map(|run| run.payload).collect()
}

/// What each page says: the body and where in it.
pub(super) fn by_page(runs: &[PageRun]) -> [Option<(PayloadId, u64)>; CELL_PAGES as usize] {
    let mut pages = [None; CELL_PAGES as usize];
    for run in runs {
        for (page, from) in (run.first..run.first + run.count).zip((run.from..).step_by(512)) {
            if let Some(slot) = pages.get_mut(usize::from(page)) {
                *slot = Some((run.payload, from));
            }
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_run() -> impl Strategy<Value = PageRun> {
        (0..CELL_PAGES, 1..=CELL_PAGES, 0..4_u64, 0..300_u64).prop_map(|(first, count, payload, page)| PageRun {
            first,
            count: count.min(CELL_PAGES - first),
            payload: PayloadId(payload),
            bytes: 1 << 22,
            from: page * PAGE_BYTES,
        })
    }

    proptest! {
        #[test]
        fn runs_say_what_was_written_last(
            steps in proptest::collection::vec((any_run(), proptest::bool::weighted(0.7)), 1..40),
        ) {
            let mut runs = Vec::new();
            let mut model = [None; CELL_PAGES as usize];
            for (run, writes) in steps {
                let slots = Slots { first: run.first, end: run.first + run.count };
                runs = if writes { with(&runs, run) } else { without(&runs, slots) };
                for page in slots.first..slots.end {
                    let from = run.from + u64::from(page - run.first) * PAGE_BYTES;
                    model[usize::from(page)] = writes.then_some((run.payload, from));
                }
                prop_assert_eq!(by_page(&runs), model);
                prop_assert!(runs.windows(2).all(|pair| pair[0].first + pair[0].count <= pair[1].first));
            }
            prop_assert!(without(&runs, Slots::ALL).is_empty());
        }
    }
}
