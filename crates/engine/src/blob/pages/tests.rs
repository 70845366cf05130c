#![allow(clippy::cast_possible_truncation, reason = "the numbers are small, or only tell contents apart")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::blob::object::{self, Download};
use crate::blob::testing::*;
use crate::blob::{OnContainer, container};
use crate::condition::Conditions;
use crate::payload::tests::support::World;

const PAGE: usize = PAGE_BYTES as usize;
const NAMES: [&str; 3] = ["a", "b", "c"];
/// Pages of the largest blob of the model: a little more than six cells.
const PAGES_MAX: usize = 800;

#[derive(Clone, Debug)]
enum Step {
    Write(usize, usize, usize),
    Clear(usize, usize, usize),
    Resize(usize, usize),
    Fork(usize, usize),
    Delete(usize),
    /// Begins to read the blob and goes on while others write.
    Open(usize),
    CloseAll,
    Differ(usize, usize, usize),
    Settle,
    Restart,
}

fn any_step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    let count = prop_oneof![1_usize..9, 9_usize..200];
    prop_oneof![
        9 => (name.clone(), 0..PAGES_MAX, count).prop_map(|(name, first, count)| Step::Write(name, first, count)),
        3 => (name.clone(), 0..PAGES_MAX, 1..PAGES_MAX).prop_map(|(name, first, count)| Step::Clear(name, first, count)),
        2 => (name.clone(), 0..=PAGES_MAX).prop_map(|(name, pages)| Step::Resize(name, pages)),
        3 => (name.clone(), name.clone()).prop_map(|(from, to)| Step::Fork(from, to)),
        1 => name.clone().prop_map(Step::Delete),
        1 => name.clone().prop_map(Step::Open),
        1 => Just(Step::CloseAll),
        2 => (name.clone(), name, 1_usize..4).prop_map(|(one, other, limit)| Step::Differ(one, other, limit)),
        2 => Just(Step::Settle),
        1 => Just(Step::Restart),
    ]
}

/// A page as the model has it: which write wrote it, and which page of that write it is.
type Page = Option<(u64, u64)>;

fn bytes_of(pages: &[Page]) -> Vec<u8> {
    let one = |page: &Page| match page {
        None => vec![0; PAGE],
        Some((write, page)) => (0..PAGE as u64).map(|at| (write * 31 + page * 7 + at % 251 + 1) as u8).collect(),
    };
    pages.iter().flat_map(one).collect()
}

/// The stretches that the model expects: where the pages differ from those before.
fn stretches(now: &[Page], before: Option<&[Page]>) -> Vec<Stretch> {
    let mut all: Vec<Stretch> = Vec::new();
    for (number, page) in now.iter().enumerate() {
        let changed = match before {
            None => page.is_some(),
            Some(before) => *page != before.get(number).copied().flatten(),
        };
        if !changed {
            continue;
        }
        let first = number as u64 * PAGE_BYTES;
        match all.last_mut() {
            Some(last) if last.range.first + last.range.length == first && last.cleared == page.is_none() => {
                last.range.length += PAGE_BYTES;
            }
            _ => all.push(Stretch { range: ByteRange { first, length: PAGE_BYTES }, cleared: page.is_none() }),
        }
    }
    all
}

struct Pair {
    world: World,
    engine: Option<Engine>,
    model: BTreeMap<&'static str, Vec<Page>>,
    open: Vec<(Download, Vec<Page>)>,
    writes: u64,
}

impl Pair {
    fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    async fn step(&mut self, step: Step) {
        if let Step::Restart = step {
            self.close_all().await;
            self.engine.take().unwrap().close().await;
            self.engine = Some(self.world.open().await);
            return;
        }
        let engine = &self.engine().clone();
        match step {
            Step::Write(name, first, count) => {
                self.ensure(NAMES[name]).await;
                let pages = self.model.get_mut(NAMES[name]).unwrap();
                let Some(count) = pages.len().checked_sub(first).map(|room| room.min(count)).filter(|count| *count > 0)
                else {
                    return;
                };
                self.writes += 1;
                let written: Vec<Page> = (0..count as u64).map(|page| Some((self.writes, page))).collect();
                let content = staged(engine, bytes_of(&written)).await;
                put(engine, on(NAMES[name]), SequenceConditions::default(), (first * PAGE) as u64, content)
                    .await
                    .unwrap();
                pages[first..first + count].copy_from_slice(&written);
            }
            Step::Clear(name, first, count) => {
                let Some(pages) = self.model.get_mut(NAMES[name]) else { return };
                let end = (first + count).min(pages.len());
                if first >= end {
                    return;
                }
                let range = ByteRange { first: (first * PAGE) as u64, length: ((end - first) * PAGE) as u64 };
                clear(engine, on(NAMES[name]), SequenceConditions::default(), range).await.unwrap();
                pages[first..end].fill(None);
            }
            Step::Resize(name, length) => {
                let Some(pages) = self.model.get_mut(NAMES[name]) else { return };
                let change = SetPages { length: Some((length * PAGE) as u64), ..SetPages::default() };
                set(engine, on(NAMES[name]), change).await.unwrap();
                pages.resize(length, None);
            }
            Step::Fork(from, to) => {
                let Some(forked) = self.model.get(NAMES[from]).cloned().filter(|_| from != to) else { return };
                fork(engine, NAMES[from], NAMES[to]).await;
                self.model.insert(NAMES[to], forked);
            }
            Step::Delete(name) => {
                if self.model.remove(NAMES[name]).is_some() {
                    delete(engine, NAMES[name]).await;
                }
            }
            Step::Open(name) => {
                if let Some(pages) = self.model.get(NAMES[name]) {
                    let download = object::download(engine, on(NAMES[name]), None).await.unwrap();
                    self.open.push((download, pages.clone()));
                }
            }
            Step::CloseAll => self.close_all().await,
            Step::Differ(one, other, limit) => self.differ(NAMES[one], NAMES[other], limit).await,
            Step::Settle => engine.settle().await.unwrap(),
            Step::Restart => {}
        }
    }

    async fn ensure(&mut self, name: &'static str) {
        if !self.model.contains_key(name) {
            let length = (PAGES_MAX * PAGE) as u64;
            create(self.engine(), on(name), Stored::default(), length, 0).await.unwrap();
            self.model.insert(name, vec![None; PAGES_MAX]);
        }
    }

    /// What was opened before is read to its end, as it was.
    async fn close_all(&mut self) {
        for (mut download, pages) in self.open.drain(..) {
            let mut bytes = Vec::new();
            while let Some(part) = download.reader.next().await.unwrap() {
                bytes.extend_from_slice(&part);
            }
            assert!(bytes == bytes_of(&pages), "a reader saw what was written after it began");
        }
    }

    /// Lists the pages of one blob, alone and against another.
    async fn differ(&self, one: &'static str, other: &'static str, limit: usize) {
        let (Some(now), Some(before)) = (self.model.get(one), self.model.get(other)) else { return };
        for before in [None, Some((other, before))] {
            let mut asked = PagesAsked { limit: Some(limit), ..PagesAsked::default() };
            let mut found: Vec<Stretch> = Vec::new();
            loop {
                let previous = before.map(|(name, _)| on(name));
                let page = ranges(self.engine(), on(one), asked, previous).await.unwrap();
                assert!(page.stretches.len() <= limit);
                found.extend(page.stretches);
                let Some(next) = page.next else { break };
                assert!(next > asked.start || asked.start == 0, "it goes on");
                asked.start = next;
            }
            assert_eq!(found, stretches(now, before.map(|(_, pages)| &**pages)), "{one} against {before:?}");
        }
    }

    async fn check(&self) {
        for (name, pages) in &self.model {
            let expected = bytes_of(pages);
            assert!(read(self.engine(), name, None).await.unwrap() == expected, "{name}");
            if let Some(last) = expected.len().checked_sub(1) {
                let (first, last) = (last / 3, last * 2 / 3);
                let part = read(self.engine(), name, Some((first as u64, last as u64))).await.unwrap();
                assert!(part == expected[first..=last], "{name} {first}-{last}");
            }
            self.differ(name, name, 1000).await;
        }
    }
}

async fn delete_container(engine: &Engine) {
    let address = on("x").address.container;
    container::delete(engine, OnContainer { address, conditions: Conditions::default(), lease: None }).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("LAZULI_LONG").is_some() { 1000 } else { 32 }))]

    #[test]
    fn pages_are_what_was_written_last_whoever_shares_them(steps in proptest::collection::vec(any_step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let engine = world.open().await;
            create_container(&engine).await;
            let mut pair = Pair { world, engine: Some(engine), model: BTreeMap::new(), open: Vec::new(), writes: 0 };
            for step in steps {
                pair.step(step).await;
            }
            pair.check().await;
            pair.close_all().await;
            pair.engine().settle().await.unwrap();
            pair.check().await;
            delete_container(pair.engine()).await;
            pair.engine().settle().await.unwrap();
            let left = pair.engine().census().unwrap();
            let left: Vec<_> = left.into_iter().filter(|(space, _)| *space != Space::Segments).collect();
            assert_eq!(left, [], "rows left over");
        });
    }
}
