use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use proptest::prelude::*;

use super::*;
use crate::clock::HeldClock;
use crate::store::kv::fault::FaultKv;
use crate::store::kv::memory::MemoryKv;
use crate::store::kv::{Ask, Writes};
use crate::store::{Direction, KeyRange, Pair, Tx};

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        clock: Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1))),
        overlay_bytes_max: 64 << 20,
        reserve_bytes: 0,
        group_jobs_max: GROUP_JOBS_MAX,
        on_poison: Arc::new(|_| {}),
        sync_probe: None,
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn body(body: impl Fn(&mut dyn Tx) -> Result<Verdict, StoreError> + Send + 'static) -> TxBody {
    Box::new(body)
}

fn put(key: u16, value: u8) -> TxBody {
    body(move |tx| {
        tx.put(Space::Blobs, key.to_be_bytes().to_vec(), vec![value])?;
        Ok(Verdict::Commit)
    })
}

type Model = BTreeMap<u16, u8>;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Every `stride`th key of `count` from `first` gets this value, or goes.
    Change { first: u16, count: u16, stride: u16, value: Option<u8> },
    /// A snapshot is taken.
    Open,
    /// One of those open is closed.
    Close(usize),
    /// One of those open is scanned, with a change after some pairs.
    Scan { which: usize, start: Bound<u16>, end: Bound<u16>, direction: Direction, before_change: usize, value: u8 },
    /// The store is closed and opened again.
    Restart,
}

fn bound() -> impl Strategy<Value = Bound<u16>> {
    prop_oneof![(0..700_u16).prop_map(Bound::Included), (0..700_u16).prop_map(Bound::Excluded), Just(Bound::Unbounded)]
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![2 => any::<u8>().prop_map(Some), 1 => Just(None)];
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Backward)];
    prop_oneof![
        4 => (0..700_u16, 1..700_u16, 1..4_u16, value)
            .prop_map(|(first, count, stride, value)| Step::Change { first, count, stride, value }),
        3 => Just(Step::Open),
        1 => any::<usize>().prop_map(Step::Close),
        4 => (any::<usize>(), bound(), bound(), direction, 0..400_usize, any::<u8>()).prop_map(
            |(which, start, end, direction, before_change, value)| {
                Step::Scan { which, start, end, direction, before_change, value }
            }
        ),
        1 => Just(Step::Restart),
    ]
}

fn expected(model: &Model, range: &KeyRange, direction: Direction) -> Vec<(u16, u8)> {
    let mut pairs: Vec<_> =
        model.iter().map(|(&key, &value)| (key, value)).filter(|(key, _)| range.contains(&key.to_be_bytes())).collect();
    if direction == Direction::Backward {
        pairs.reverse();
    }
    pairs
}

fn read(pair: Result<Pair, StoreError>) -> (u16, u8) {
    let (key, value) = pair.unwrap();
    (u16::from_be_bytes(key.as_ref().try_into().unwrap()), value[0])
}

/// A store beside what it should hold.
struct Run {
    kv: MemoryKv,
    store: Option<Embedded<MemoryKv>>,
    model: Model,
    open: Vec<(Box<dyn Snapshot>, Model)>,
}

impl Run {
    fn store(&self) -> &Embedded<MemoryKv> {
        self.store.as_ref().unwrap()
    }

    fn change(&mut self, keys: Vec<u16>, value: Option<u8>) {
        for &key in &keys {
            match value {
                Some(value) => self.model.insert(key, value),
                None => self.model.remove(&key),
            };
        }
        let change = body(move |tx| {
            for key in &keys {
                match value {
                    Some(value) => tx.put(Space::Blobs, key.to_be_bytes().to_vec(), vec![value])?,
                    None => tx.delete(Space::Blobs, &key.to_be_bytes())?,
                }
            }
            Ok(Verdict::Commit)
        });
        assert_eq!(runtime().block_on(self.store().transact(Purpose::Grow, change)).unwrap(), Verdict::Commit);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Change { first, count, stride, value } => {
                self.change((first..first + count).step_by(stride.into()).collect(), value);
            }
            Step::Open => self.open.push((self.store().snapshot().unwrap(), self.model.clone())),
            Step::Close(which) if !self.open.is_empty() => drop(self.open.remove(which % self.open.len())),
            Step::Scan { which, start, end, direction, before_change, value } if !self.open.is_empty() => {
                let (snapshot, then) = self.open.swap_remove(which % self.open.len());
                let bytes = |bound: Bound<u16>| bound.map(|key| key.to_be_bytes().to_vec());
                let range = KeyRange { start: bytes(start), end: bytes(end) };
                let mut scan = snapshot.scan(Space::Blobs, range.clone(), direction);
                let mut seen: Vec<_> = scan.by_ref().take(before_change).map(read).collect();
                self.change((0..700).step_by(3).collect(), (value > 99).then_some(value));
                seen.extend(scan.map(read));
                assert_eq!(seen, expected(&then, &range, direction));
                let mut shown = Vec::new();
                let mut each = |key: &[u8], value: &[u8]| {
                    if shown.len() == before_change {
                        self.change((0..700).step_by(5).collect(), (value[0] > 99).then_some(value[0]));
                    }
                    shown.push((u16::from_be_bytes(key.try_into().unwrap()), value[0]));
                    ControlFlow::Continue(())
                };
                snapshot.visit(Space::Blobs, &range, &mut each).unwrap();
                assert_eq!(shown, expected(&then, &range, Direction::Forward));
                for key in (0..1400).step_by(97) {
                    let value = snapshot.get(Space::Blobs, &u16::to_be_bytes(key)).unwrap();
                    assert_eq!(value.map(|value| value[0]), then.get(&key).copied(), "key {key}");
                }
                self.open.push((snapshot, then));
            }
            Step::Close(_) | Step::Scan { .. } => {}
            Step::Restart => {
                self.open.clear();
                drop(self.store.take());
                self.store = Some(Embedded::open(self.kv.clone(), options()).unwrap());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn snapshots_are_the_past_as_a_model_remembers_it(steps in prop::collection::vec(step(), 1..40)) {
        let kv = MemoryKv::default();
        let store = Some(Embedded::open(kv.clone(), options()).unwrap());
        let mut run = Run { kv, store, model: Model::new(), open: Vec::new() };
        for step in steps {
            run.step(step);
        }
        let now = run.store().snapshot().unwrap();
        let pairs: Vec<_> = now.scan(Space::Blobs, KeyRange::all(), Direction::Forward).map(read).collect();
        assert_eq!(pairs, expected(&run.model, &KeyRange::all(), Direction::Forward));
    }
}

#[test]
fn a_snapshot_beyond_the_bound_of_memory_is_too_old_and_never_wrong() {
    let store = Embedded::open(MemoryKv::default(), EmbeddedOptions { overlay_bytes_max: 1, ..options() }).unwrap();
    let runtime = runtime();
    let write =
        |value| assert_eq!(runtime.block_on(store.transact(Purpose::Grow, put(1, value))).unwrap(), Verdict::Commit);
    write(1);
    let old = store.snapshot().unwrap();
    let mut scan = old.scan(Space::Blobs, KeyRange::all(), Direction::Forward);
    write(2);
    assert_eq!(old.get(Space::Blobs, &[0, 1]).unwrap().as_deref(), Some(&[1][..]), "one group is always kept");
    write(3);
    assert!(matches!(old.get(Space::Blobs, &[0, 1]), Err(StoreError::TooOld)));
    assert!(matches!(scan.next(), Some(Err(StoreError::TooOld))));
    assert!(scan.next().is_none(), "a failed scan is over");
    let new = store.snapshot().unwrap();
    assert_eq!(new.get(Space::Blobs, &[0, 1]).unwrap().as_deref(), Some(&[3][..]));
    assert!(store.horizon() < 3, "the old one is still open, too old or not");
}

/// A store whose syncs, after that of opening, wait until the sender lets them go; without it they panic.
fn held(options: EmbeddedOptions) -> (std::sync::mpsc::Sender<()>, Embedded<FaultKv>) {
    let (sender, go) = channel();
    let (kv, go) = (FaultKv::new(), Mutex::new(go));
    kv.on_sync(move |nth| {
        if nth > 1 {
            go.lock().recv().expect("the engine lost its disk");
        }
    });
    (sender, Embedded::open(kv, options).unwrap())
}

#[test]
fn a_full_inbox_answers_busy_and_what_waits_shares_few_syncs() {
    let (go, store) = held(options());
    runtime().block_on(async {
        let mut waiting: Vec<_> = (0..9000).map(|key| store.transact(Purpose::Grow, put(key, 0))).collect();
        let mut busy = 0;
        waiting.retain_mut(|answer| match futures_util::FutureExt::now_or_never(answer) {
            Some(Err(StoreError::Busy)) => {
                busy += 1;
                false
            }
            Some(other) => panic!("{other:?}"),
            None => true,
        });
        // Those of the first group have left the inbox.
        assert!((8192..=8192 + 256).contains(&waiting.len()), "{} wait, {busy} were refused", waiting.len());
        for _ in 0..9000 {
            go.send(()).unwrap();
        }
        let total = waiting.len();
        assert!(join_all(waiting).await.into_iter().all(|answer| matches!(answer, Ok(Verdict::Commit))));
        let there = store.snapshot().unwrap().scan(Space::Blobs, KeyRange::all(), Direction::Forward).count();
        assert_eq!(there, total, "a refused one wrote nothing");
        let groups = store.horizon();
        assert!((32..=300).contains(&groups), "{groups} groups");
    });
}

#[test]
fn an_engine_that_panics_poisons_the_store_and_everybody_is_answered() {
    let announced = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&announced);
    let on_poison: OnPoison = Arc::new(move |reason| heard.lock().push(reason.to_owned()));
    let (go, store) = held(EmbeddedOptions { on_poison, ..options() });
    drop(go);
    for _ in 0..2 {
        let answers = runtime().block_on(join_all((0..3).map(|key| store.transact(Purpose::Grow, put(key, 0)))));
        let poisoned = |answer: &_| matches!(answer, Err(StoreError::Poisoned(reason)) if reason.contains("its disk"));
        assert!(answers.iter().all(poisoned), "{answers:?}");
    }
    assert_eq!(store.snapshot().unwrap().scan(Space::Blobs, KeyRange::all(), Direction::Forward).count(), 0);
    drop(store);
    assert_eq!(announced.lock().len(), 1, "{announced:?}");
}

#[test]
fn a_transaction_that_nobody_waits_for_still_runs() {
    let kv = MemoryKv::default();
    let store = Embedded::open(kv.clone(), options()).unwrap();
    drop(store.transact(Purpose::Grow, put(1, 7)));
    drop(store);
    let store = Embedded::open(kv, options()).unwrap();
    let value = store.snapshot().unwrap().get(Space::Blobs, &[0, 1]).unwrap();
    assert_eq!(value.as_deref(), Some(&[7][..]));
}

#[test]
fn the_last_handle_may_go_inside_a_transaction() {
    let store = Arc::new(Embedded::open(MemoryKv::default(), options()).unwrap());
    let shared = Arc::downgrade(&store.shared);
    let (handle, (go, only_one)) = (Mutex::new(Some(Arc::clone(&store))), channel());
    let only_one = Mutex::new(only_one);
    let last = body(move |_| {
        only_one.lock().recv().unwrap();
        drop(handle.lock().take());
        Ok(Verdict::Abandon)
    });
    drop(store.transact(Purpose::Grow, last));
    drop(store);
    go.send(()).unwrap();
    // The committer ends and lets go of everything.
    let deadline = Instant::now() + Duration::from_secs(30);
    while shared.strong_count() > 0 {
        assert!(Instant::now() < deadline, "the committer still runs");
        std::thread::yield_now();
    }
}

#[test]
fn ids_that_only_refusals_used_are_not_given_again() {
    let kv = MemoryKv::default();
    let highest = Arc::new(Mutex::new(0));
    for _ in 0..3 {
        let store = Embedded::open(kv.clone(), options()).unwrap();
        for _ in 0..3000 {
            let highest = Arc::clone(&highest);
            let refuse = body(move |tx| {
                let id = tx.id();
                assert!(id > std::mem::replace(&mut *highest.lock(), id));
                Ok(Verdict::Abandon)
            });
            assert_eq!(runtime().block_on(store.transact(Purpose::Grow, refuse)).unwrap(), Verdict::Abandon);
        }
    }
}

/// Waits until the committer syncs for the `nth` time: what is sent from then on is of a later group.
fn await_sync(store: &Embedded<FaultKv>, nth: u64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while store.kv().syncs() < nth {
        assert!(Instant::now() < deadline, "no sync");
        std::thread::yield_now();
    }
}

#[test]
fn a_refusal_of_a_group_that_fails_is_not_told() {
    let (go, store) = held(options());
    let first = store.transact(Purpose::Grow, put(1, 1));
    await_sync(&store, 2);
    let write = store.transact(Purpose::Grow, put(2, 2));
    let rest_on_it = body(|tx| {
        assert!(tx.get(Space::Blobs, &[0, 2])?.is_some());
        Ok(Verdict::Abandon)
    });
    let refused = store.transact(Purpose::Grow, rest_on_it);
    go.send(()).unwrap();
    drop(go);
    runtime().block_on(async {
        assert!(matches!(first.await, Ok(Verdict::Commit)));
        assert!(matches!(write.await, Err(StoreError::Poisoned(_))));
        assert!(matches!(refused.await, Err(StoreError::Poisoned(_))));
    });
}

#[test]
fn a_transaction_sees_its_own_writes_over_those_of_its_group() {
    let (go, store) = held(options());
    let first = store.transact(Purpose::Grow, put(1, 1));
    await_sync(&store, 2);
    let second = store.transact(Purpose::Grow, put(1, 2));
    let third = body(|tx| {
        let look =
            |tx: &dyn Tx| tx.scan(Space::Blobs, KeyRange::all(), Direction::Forward).map(read).collect::<Vec<_>>();
        assert_eq!(look(tx), [(1, 2)]);
        tx.put(Space::Blobs, vec![0, 1], vec![3])?;
        assert_eq!(look(tx), [(1, 3)]);
        tx.delete(Space::Blobs, &[0, 1])?;
        assert_eq!(look(tx), []);
        Ok(Verdict::Commit)
    });
    let third = store.transact(Purpose::Grow, third);
    for _ in 0..3 {
        go.send(()).unwrap();
    }
    runtime().block_on(async {
        for answer in [first, second, third] {
            assert!(matches!(answer.await, Ok(Verdict::Commit)));
        }
    });
    assert_eq!(store.snapshot().unwrap().scan(Space::Blobs, KeyRange::all(), Direction::Forward).count(), 0);
}

type Interlude = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// Before its next read, something else happens.
struct Interrupted(MemoryKv, Interlude);

impl Interrupted {
    fn interrupt(&self) {
        let interlude = self.1.lock().take();
        if let Some(interlude) = interlude {
            interlude();
        }
    }
}

impl Kv for Interrupted {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.interrupt();
        self.0.get(space, key)
    }
    fn chunk(&self, space: Space, ask: &Ask<'_>) -> Result<Vec<Pair>, StoreError> {
        self.interrupt();
        self.0.chunk(space, ask)
    }
    fn apply(&self, writes: &Writes) -> Result<(), StoreError> {
        self.0.apply(writes)
    }
    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}

/// Before it applies, something else happens.
struct InterruptedApply(MemoryKv, Interlude);

impl Kv for InterruptedApply {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.0.get(space, key)
    }
    fn chunk(&self, space: Space, ask: &Ask<'_>) -> Result<Vec<Pair>, StoreError> {
        self.0.chunk(space, ask)
    }
    fn apply(&self, writes: &Writes) -> Result<(), StoreError> {
        let interlude = self.1.lock().take();
        if let Some(interlude) = interlude {
            interlude();
        }
        self.0.apply(writes)
    }
    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}

#[test]
fn what_is_visited_just_before_a_commit_is_applied_is_visited_anew_after_it() {
    let interlude = Interlude::default();
    let store = Embedded::open(InterruptedApply(MemoryKv::default(), Arc::clone(&interlude)), options()).unwrap();
    let store = Arc::new(store);
    let values = |store: &Embedded<InterruptedApply>| {
        let (mut values, snapshot) = (Vec::new(), store.snapshot().unwrap());
        let mut each = |_: &[u8], value: &[u8]| {
            values.push(value[0]);
            ControlFlow::Continue(())
        };
        snapshot.visit(Space::Blobs, &KeyRange::all(), &mut each).unwrap();
        values
    };
    for round in 0..3 {
        let (known, before) = (Arc::clone(&store), vec![round; if round == 0 { 0 } else { 1000 }]);
        let between = Arc::clone(&interlude);
        let write = body(move |tx| {
            for key in 0..1000_u16 {
                tx.put(Space::Blobs, key.to_be_bytes().to_vec(), vec![round + 1])?;
            }
            let (known, before) = (Arc::clone(&known), before.clone());
            *between.lock() = Some(Box::new(move || assert_eq!(values(&known), before)));
            Ok(Verdict::Commit)
        });
        assert_eq!(runtime().block_on(store.transact(Purpose::Grow, write)).unwrap(), Verdict::Commit);
        assert!(interlude.lock().is_none(), "the visit came between");
        assert_eq!(values(&store), vec![round + 1; 1000]);
    }
}

#[test]
fn a_commit_just_before_the_engine_is_read_does_not_show_in_a_snapshot() {
    let interlude = Interlude::default();
    let store = Embedded::open(Interrupted(MemoryKv::default(), Arc::clone(&interlude)), options()).unwrap();
    let store = Arc::new(store);
    let commit = |value| {
        let store = Arc::clone(&store);
        move || {
            let verdict = runtime().block_on(store.transact(Purpose::Grow, put(1, value)));
            assert_eq!(verdict.unwrap(), Verdict::Commit);
        }
    };
    commit(1)();
    let snapshot = store.snapshot().unwrap();
    *interlude.lock() = Some(Box::new(commit(2)));
    assert_eq!(snapshot.get(Space::Blobs, &[0, 1]).unwrap().as_deref(), Some(&[1][..]));
    for direction in [Direction::Forward, Direction::Backward] {
        let snapshot = store.snapshot().unwrap();
        let before = snapshot.get(Space::Blobs, &[0, 1]).unwrap().unwrap()[0];
        *interlude.lock() = Some(Box::new(commit(before + 1)));
        let seen: Vec<_> = snapshot.scan(Space::Blobs, KeyRange::all(), direction).map(read).collect();
        assert_eq!(seen, [(1, before)], "{direction:?}");
        assert!(interlude.lock().is_none(), "the commit came between");
    }
    let snapshot = store.snapshot().unwrap();
    let before = snapshot.get(Space::Blobs, &[0, 1]).unwrap().unwrap()[0];
    *interlude.lock() = Some(Box::new(commit(before + 1)));
    assert_eq!(shown(&*snapshot), [(1, before)]);
    assert!(interlude.lock().is_none(), "the commit came between");
}

/// Everything that a visit of the blobs shows.
fn shown(view: &dyn Snapshot) -> Vec<(u16, u8)> {
    let mut shown = Vec::new();
    let mut each = |key: &[u8], value: &[u8]| {
        shown.push((u16::from_be_bytes(key.try_into().unwrap()), value[0]));
        ControlFlow::Continue(())
    };
    view.visit(Space::Blobs, &KeyRange::all(), &mut each).unwrap();
    shown
}

#[test]
fn visits_of_one_moment_each_agree_while_all_of_it_changes() {
    const KEYS: u16 = 1500;
    const ROUNDS: u8 = 150;
    let store = Embedded::open(MemoryKv::default(), options()).unwrap();
    // Each round writes a third of the keys, the whole of it as one; what a round writes tells which it was.
    let write = |round: u8| {
        let job = body(move |tx| {
            for key in (0..KEYS).filter(|key| key % 3 == u16::from(round % 3)) {
                tx.put(Space::Blobs, key.to_be_bytes().to_vec(), vec![round])?;
            }
            Ok(Verdict::Commit)
        });
        assert_eq!(runtime().block_on(store.transact(Purpose::Grow, job)).unwrap(), Verdict::Commit);
    };
    (0..3).for_each(write);
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (3..ROUNDS).for_each(write);
            written.store(true, Ordering::SeqCst);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !written.load(Ordering::SeqCst) {
                    let shown = shown(&*store.snapshot().unwrap());
                    assert_eq!(shown.len(), usize::from(KEYS));
                    let latest = shown.iter().map(|(_, round)| *round).max().unwrap();
                    for (key, round) in shown {
                        let expected = (latest - 2..=latest).find(|round| u16::from(round % 3) == key % 3).unwrap();
                        assert_eq!(round, expected, "key {key} when {latest} was the latest");
                    }
                }
            });
        }
    });
}
