//! The suite that every [`Store`] passes; part of the seam.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join, join_all};
use parking_lot::Mutex;

use super::{
    Direction, KEY_BYTES_MAX, KeyRange, Purpose, Space, Store, StoreError, TX_BYTES_MAX, TX_KEYS_MAX, Tx,
    VALUE_BYTES_MAX, Verdict, View,
};
use crate::clock::{Clock, HeldClock, Timestamp};

/// Where a store keeps its data. Opened any number of times, one after the other.
pub(super) trait Place {
    /// The store, which reads `clock`.
    fn open(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store>;
}

/// Tries everything that the contract in [`super`] says, each case on a place of its own.
pub(super) fn run<P: Place>(place: impl Fn() -> P) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let places = Mutex::new(Vec::new());
    let store = || {
        let place = place();
        let store = place.open(clock());
        places.lock().push(place);
        store
    };
    runtime.block_on(async {
        pairs_come_in_byte_order_from_both_ends(&*store()).await;
        ranges_keep_their_bounds(&*store()).await;
        a_transaction_sees_its_own_writes(&*store()).await;
        what_is_not_committed_leaves_nothing(&*store()).await;
        a_snapshot_stays_one_moment(&*store()).await;
        a_visit_shows_one_moment(&*store()).await;
        the_horizon_is_the_oldest_snapshot(&*store()).await;
        bounds_are_kept_and_fail_alone(&*store()).await;
        what_was_scanned_or_read_cannot_change(&store()).await;
        a_refusal_sees_what_came_before(&store()).await;
        the_store_s_own_space_is_closed(&*store()).await;
        time_and_ids_increase_across_restarts(&place()).await;
    });
}

fn clock() -> Arc<HeldClock> {
    Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_000_000)))
}

async fn transact(
    store: &dyn Store,
    body: impl Fn(&mut dyn Tx) -> Result<Verdict, StoreError> + Send + 'static,
) -> Result<Verdict, StoreError> {
    store.transact(Purpose::Grow, Box::new(body)).await
}

async fn commit(store: &dyn Store, body: impl Fn(&mut dyn Tx) -> Result<Verdict, StoreError> + Send + 'static) {
    assert_eq!(transact(store, body).await.unwrap(), Verdict::Commit);
}

async fn put(store: &dyn Store, pairs: &[(&str, &str)]) {
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    let put = move |tx: &mut dyn Tx| {
        for (key, value) in &pairs {
            tx.put(Space::Blobs, key.clone(), value.clone())?;
        }
        Ok(Verdict::Commit)
    };
    commit(store, put).await;
}

async fn delete(store: &dyn Store, keys: &'static [&'static str]) {
    let delete = |tx: &mut dyn Tx| {
        keys.iter().try_for_each(|key| tx.delete(Space::Blobs, key.as_bytes()))?;
        Ok(Verdict::Commit)
    };
    commit(store, delete).await;
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn scan<V: View + ?Sized>(view: &V, range: KeyRange, direction: Direction) -> Vec<String> {
    let visited = visit(view, &range);
    let any = view.any(Space::Blobs, &range).unwrap();
    let scanned: Vec<String> = view
        .scan(Space::Blobs, range, direction)
        .map(|pair| pair.map(|(key, value)| format!("{}={}", text(&key), text(&value))))
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(any, !scanned.is_empty(), "there is something in a range if a scan answers something");
    if direction == Direction::Forward {
        assert_eq!(visited, scanned, "a visit shows what a scan answers");
    }
    scanned
}

fn visit<V: View + ?Sized>(view: &V, range: &KeyRange) -> Vec<String> {
    let mut visited = Vec::new();
    view.visit(Space::Blobs, range, &mut |key, value| {
        visited.push(format!("{}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(value)));
        ControlFlow::Continue(())
    })
    .unwrap();
    visited
}

fn all<V: View + ?Sized>(view: &V) -> String {
    let forward = scan(view, KeyRange::all(), Direction::Forward);
    let mut backward = scan(view, KeyRange::all(), Direction::Backward);
    backward.reverse();
    assert_eq!(forward, backward, "both directions see the same");
    forward.join(" ")
}

async fn pairs_come_in_byte_order_from_both_ends(store: &dyn Store) {
    let insert = |tx: &mut dyn Tx| {
        for number in (0..1000_u16).rev() {
            tx.put(Space::Blobs, number.to_be_bytes().to_vec(), number.to_string().into_bytes())?;
        }
        tx.put(Space::Lists, vec![0], vec![])?;
        Ok(Verdict::Commit)
    };
    commit(store, insert).await;
    let snapshot = store.snapshot().unwrap();
    let values = |direction| -> Vec<u16> {
        let pairs = snapshot.scan(Space::Blobs, KeyRange::all(), direction);
        pairs.map(|pair| text(&pair.unwrap().1).parse().unwrap()).collect()
    };
    assert_eq!(values(Direction::Forward), (0..1000).collect::<Vec<_>>());
    assert_eq!(values(Direction::Backward), (0..1000).rev().collect::<Vec<_>>());
    for wanted in [1, 8, 9, 300, 1000, 1001] {
        let mut visited: Vec<u16> = Vec::new();
        let mut each = |_: &[u8], value: &[u8]| {
            visited.push(std::str::from_utf8(value).unwrap().parse().unwrap());
            if visited.len() == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        snapshot.visit(Space::Blobs, &KeyRange::all(), &mut each).unwrap();
        assert_eq!(visited, (0..1000).take(wanted).collect::<Vec<u16>>(), "a visit ends when it breaks");
    }
    assert_eq!(snapshot.get(Space::Lists, &[0]).unwrap(), Some(Bytes::new()), "an empty value is a value");
    assert_eq!(snapshot.get(Space::Blobs, &[0]).unwrap(), None);
}

async fn ranges_keep_their_bounds(store: &dyn Store) {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    put(store, &[("a", "1"), ("ab", "2"), ("b", "3"), ("c", "4")]).await;
    let bound = |key: &str| key.as_bytes().to_vec();
    let cases = [
        (KeyRange::all(), "a=1 ab=2 b=3 c=4"),
        (KeyRange::prefix(b"a"), "a=1 ab=2"),
        (KeyRange::prefix(b"x"), ""),
        (KeyRange { start: Included(bound("ab")), end: Included(bound("b")) }, "ab=2 b=3"),
        (KeyRange { start: Excluded(bound("ab")), end: Excluded(bound("c")) }, "b=3"),
        (KeyRange { start: Excluded(bound("b")), end: Unbounded }, "c=4"),
        (KeyRange { start: Included(bound("b")), end: Included(bound("b")) }, "b=3"),
        (KeyRange { start: Included(bound("b")), end: Excluded(bound("b")) }, ""),
        (KeyRange { start: Excluded(bound("b")), end: Excluded(bound("b")) }, ""),
        (KeyRange { start: Included(bound("c")), end: Included(bound("a")) }, ""),
    ];
    let check = move |view: &dyn View| {
        for (range, expected) in &cases {
            let mut forward = scan(view, range.clone(), Direction::Forward);
            assert_eq!(forward.join(" "), *expected, "{range:?}");
            forward.reverse();
            assert_eq!(scan(view, range.clone(), Direction::Backward), forward, "{range:?} backward");
        }
    };
    check(&*store.snapshot().unwrap() as &dyn View);
    let inside = move |tx: &mut dyn Tx| {
        check(tx as &dyn View);
        Ok(Verdict::Abandon)
    };
    assert_eq!(transact(store, inside).await.unwrap(), Verdict::Abandon);
}

async fn a_transaction_sees_its_own_writes(store: &dyn Store) {
    put(store, &[("a", "1"), ("b", "1"), ("c", "1")]).await;
    let body = |tx: &mut dyn Tx| {
        tx.put(Space::Blobs, b"b".to_vec(), b"2".to_vec())?;
        tx.delete(Space::Blobs, b"c")?;
        tx.put(Space::Blobs, b"d".to_vec(), b"2".to_vec())?;
        tx.delete(Space::Blobs, b"never there")?;
        assert_eq!(tx.get(Space::Blobs, b"b")?, Some(Bytes::from_static(b"2")));
        assert_eq!(tx.get(Space::Blobs, b"c")?, None);
        assert_eq!(all(tx), "a=1 b=2 d=2");
        Ok(Verdict::Commit)
    };
    commit(store, body).await;
    assert_eq!(all(&*store.snapshot().unwrap()), "a=1 b=2 d=2");
}

async fn what_is_not_committed_leaves_nothing(store: &dyn Store) {
    fn write(tx: &mut dyn Tx) -> Result<(), StoreError> {
        tx.put(Space::Blobs, b"new".to_vec(), vec![])?;
        tx.delete(Space::Blobs, b"old")
    }
    put(store, &[("old", "1")]).await;
    let abandoned = transact(store, |tx| write(tx).map(|()| Verdict::Abandon)).await;
    assert!(matches!(abandoned, Ok(Verdict::Abandon)));
    let failed = transact(store, |tx| write(tx).and(Err(StoreError::Busy))).await;
    assert!(matches!(failed, Err(StoreError::Busy)));
    let panicked = transact(store, |tx| write(tx).map(|()| panic!("on purpose"))).await;
    assert!(matches!(panicked, Err(StoreError::Backend(reason)) if reason.contains("on purpose")));
    assert_eq!(all(&*store.snapshot().unwrap()), "old=1");
    put(store, &[("old", "2")]).await;
    assert_eq!(all(&*store.snapshot().unwrap()), "old=2", "the store goes on");
}

async fn a_snapshot_stays_one_moment(store: &dyn Store) {
    let empty = store.snapshot().unwrap();
    put(store, &[("a", "1"), ("b", "1"), ("c", "1")]).await;
    let first = store.snapshot().unwrap();
    let mut under_way = first.scan(Space::Blobs, KeyRange::all(), Direction::Forward);
    assert_eq!(text(&under_way.next().unwrap().unwrap().0), "a");
    put(store, &[("b", "2"), ("bb", "2")]).await;
    let second = store.snapshot().unwrap();
    delete(store, &["a", "c"]).await;
    put(store, &[("c", "3")]).await;
    let rest: Vec<_> = under_way.map(|pair| text(&pair.unwrap().0)).collect();
    assert_eq!(rest, ["b", "c"]);
    assert_eq!(all(&*empty), "");
    assert_eq!(all(&*first), "a=1 b=1 c=1");
    assert_eq!(all(&*second), "a=1 b=2 bb=2 c=1");
    assert_eq!(all(&*store.snapshot().unwrap()), "b=2 bb=2 c=3");
    let at = |key: &str| first.get(Space::Blobs, key.as_bytes()).unwrap().map(|value| text(&value));
    assert_eq!((at("a"), at("b"), at("bb")), (Some("1".to_owned()), Some("1".to_owned()), None));
}

async fn a_visit_shows_one_moment(store: &dyn Store) {
    let write = |value: &'static str| {
        transact(store, move |tx| {
            for number in 0..2000 {
                match (value, number % 4) {
                    ("old", 3) => {}
                    ("new", 1) => tx.delete(Space::Blobs, format!("{number:04}").as_bytes())?,
                    _ => tx.put(Space::Blobs, format!("{number:04}").into(), value.into())?,
                }
            }
            Ok(Verdict::Commit)
        })
    };
    assert_eq!(write("old").await.unwrap(), Verdict::Commit);
    let snapshot = store.snapshot().unwrap();
    let (mut shown, mut begun) = (Vec::new(), false);
    let mut each = |key: &[u8], value: &[u8]| {
        if !std::mem::replace(&mut begun, true) {
            // Runs though nobody awaits it.
            drop(futures_util::FutureExt::now_or_never(write("new")));
            while store.snapshot().unwrap().get(Space::Blobs, b"0000").unwrap().unwrap() != "new" {
                std::thread::yield_now();
            }
        }
        assert_eq!(snapshot.get(Space::Blobs, key).unwrap().unwrap(), value, "a visitor may read the view");
        shown.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    snapshot.visit(Space::Blobs, &KeyRange::all(), &mut each).unwrap();
    let expected =
        (0..2000).filter(|number| number % 4 != 3).map(|number| (format!("{number:04}").into(), "old".into()));
    assert_eq!(shown, expected.collect::<Vec<_>>());
}

async fn the_horizon_is_the_oldest_snapshot(store: &dyn Store) {
    let seq = Arc::new(Mutex::new(0));
    let remove = || {
        let seq = Arc::clone(&seq);
        commit(store, move |tx| {
            *seq.lock() = tx.seq();
            tx.delete(Space::Blobs, b"a")?;
            Ok(Verdict::Commit)
        })
    };
    put(store, &[("a", "1")]).await;
    let (older, old) = (store.snapshot().unwrap(), store.snapshot().unwrap());
    remove().await;
    let removed = *seq.lock();
    let new = store.snapshot().unwrap();
    assert!(store.horizon() < removed, "an open snapshot still sees the row");
    drop(older);
    assert!(store.horizon() < removed, "another one too");
    drop(old);
    assert!(store.horizon() >= removed, "no snapshot sees it");
    drop(new);
    remove().await;
    assert!(store.horizon() >= *seq.lock() && *seq.lock() > removed, "without snapshots it follows the commits");
}

async fn bounds_are_kept_and_fail_alone(store: &dyn Store) {
    let with = |key_bytes: usize, value_bytes: usize, keys: usize| {
        transact(store, move |tx| {
            for number in 0..keys {
                let mut key = number.to_be_bytes().to_vec();
                key.resize(key_bytes, 7);
                let swallowed = tx.put(Space::Small, key, vec![0; value_bytes]);
                drop(swallowed); // a body that ignores the error does not commit either
            }
            Ok(Verdict::Commit)
        })
    };
    let fitting = TX_BYTES_MAX / (8 + VALUE_BYTES_MAX);
    let cases = [
        (KEY_BYTES_MAX, VALUE_BYTES_MAX, 1, true),
        (KEY_BYTES_MAX + 1, 1, 1, false),
        (8, VALUE_BYTES_MAX + 1, 1, false),
        (8, 1, TX_KEYS_MAX, true),
        (8, 1, TX_KEYS_MAX + 1, false),
        (8, VALUE_BYTES_MAX, fitting, true),
        (8, VALUE_BYTES_MAX, fitting + 1, false),
    ];
    for (key_bytes, value_bytes, keys, fits) in cases {
        let clear = |tx: &mut dyn Tx| {
            let keys: Vec<_> = tx.scan(Space::Small, KeyRange::all(), Direction::Forward).collect::<Result<_, _>>()?;
            keys.iter().try_for_each(|(key, _)| tx.delete(Space::Small, key))?;
            Ok(Verdict::Commit)
        };
        commit(store, clear).await;
        // Both wait together, so that they may share a group.
        let (answer, ()) = join(with(key_bytes, value_bytes, keys), put(store, &[("beside", "1")])).await;
        let case = format!("{keys} keys of {key_bytes} with {value_bytes}");
        let there = store.snapshot().unwrap().scan(Space::Small, KeyRange::all(), Direction::Forward).count();
        if fits {
            assert!(matches!(answer, Ok(Verdict::Commit)), "{case}: {answer:?}");
            assert_eq!(there, keys, "{case}");
        } else {
            assert!(matches!(answer, Err(StoreError::TooLarge { .. })), "{case}: {answer:?}");
            assert_eq!(there, 0, "{case}");
        }
        assert_eq!(all(&*store.snapshot().unwrap()), "beside=1");
        delete(store, &["beside"]).await;
    }
}

async fn what_was_scanned_or_read_cannot_change(store: &Arc<dyn Store>) {
    // Phantom: each adds a row named after how many it counted; two that counted the same would collide.
    let add = |_| {
        transact(&**store, |tx| {
            let count = tx.scan(Space::Blobs, KeyRange::all(), Direction::Forward).count();
            let key = format!("row {count:03}").into_bytes();
            assert_eq!(tx.get(Space::Blobs, &key)?, None);
            tx.put(Space::Blobs, key, vec![])?;
            Ok(Verdict::Commit)
        })
    };
    let answers = join_all((0..100).map(add)).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Verdict::Commit))), "{answers:?}");
    assert_eq!(store.snapshot().unwrap().scan(Space::Blobs, KeyRange::all(), Direction::Backward).count(), 100);
    // Write skew: of two that are on call, each may leave only if the other stays.
    let leave = |mine: &'static [u8], other: &'static [u8]| {
        transact(&**store, move |tx| {
            if tx.get(Space::Refs, other)?.is_none() {
                return Ok(Verdict::Abandon);
            }
            tx.delete(Space::Refs, mine)?;
            Ok(Verdict::Commit)
        })
    };
    let come = |tx: &mut dyn Tx| {
        tx.put(Space::Refs, b"one".to_vec(), vec![])?;
        tx.put(Space::Refs, b"two".to_vec(), vec![])?;
        Ok(Verdict::Commit)
    };
    commit(&**store, come).await;
    let (one, two) = join(leave(b"one", b"two"), leave(b"two", b"one")).await;
    assert_ne!(one.unwrap(), two.unwrap(), "one leaves, one stays");
    assert_eq!(store.snapshot().unwrap().scan(Space::Refs, KeyRange::all(), Direction::Forward).count(), 1);
}

/// The refusal is answered when what it rests on is durable, so that a snapshot taken then shows it.
async fn a_refusal_sees_what_came_before(store: &Arc<dyn Store>) {
    let create = |_| async {
        let answer = transact(&**store, |tx| {
            if tx.get(Space::Blobs, b"name")?.is_some() {
                return Ok(Verdict::Abandon);
            }
            tx.put(Space::Blobs, b"name".to_vec(), b"taken".to_vec())?;
            Ok(Verdict::Commit)
        });
        let verdict = answer.await.unwrap();
        assert_eq!(all(&*store.snapshot().unwrap()), "name=taken");
        verdict
    };
    let verdicts = join_all((0..50).map(create)).await;
    assert_eq!(verdicts.iter().filter(|&&verdict| verdict == Verdict::Commit).count(), 1);
}

async fn the_store_s_own_space_is_closed(store: &dyn Store) {
    let snapshot = store.snapshot().unwrap();
    assert!(snapshot.get(Space::Meta, b"state").is_err());
    assert!(snapshot.scan(Space::Meta, KeyRange::all(), Direction::Forward).all(|pair| pair.is_err()));
    let visited = snapshot.visit(Space::Meta, &KeyRange::all(), &mut |_, _| panic!("the store's own state is shown"));
    assert!(visited.is_err());
    let write = |tx: &mut dyn Tx| tx.put(Space::Meta, b"state".to_vec(), vec![]).map(|()| Verdict::Commit);
    assert!(transact(store, write).await.is_err());
}

async fn time_and_ids_increase_across_restarts(place: &impl Place) {
    let held = clock();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |store: &Arc<dyn Store>, verdict| {
        let (store, seen) = (Arc::clone(store), Arc::clone(&seen));
        async move {
            let body = move |tx: &mut dyn Tx| {
                let id = tx.id();
                assert!(tx.id() > id, "also within a transaction");
                tx.put(Space::Blobs, b"time".to_vec(), tx.now().ticks().to_string().into_bytes())?;
                seen.lock().push((id, (verdict == Verdict::Commit).then(|| tx.now())));
                Ok(verdict)
            };
            assert_eq!(transact(&*store, body).await.unwrap(), verdict);
        }
    };
    for restart in 0..3 {
        // The clock stands still, and after the first restart it has even gone back.
        let clock = if restart == 1 { Arc::new(HeldClock::at(Timestamp::from_unix_seconds(5))) } else { held.clone() };
        let store = place.open(clock);
        for _ in 0..3 {
            note(&store, Verdict::Commit).await;
            let time = all(&*store.snapshot().unwrap()).strip_prefix("time=").unwrap().parse().unwrap();
            assert!(
                store.snapshot().unwrap().now() >= Timestamp::from_ticks(time),
                "a snapshot is not before a commit"
            );
            note(&store, Verdict::Abandon).await;
        }
    }
    held.advance(Duration::from_secs(60));
    let store = place.open(held.clone());
    assert_eq!(store.snapshot().unwrap().now(), held.now());
    note(&store, Verdict::Commit).await;
    let (ids, times): (Vec<_>, Vec<_>) = seen.lock().iter().copied().unzip();
    assert_eq!(ids.first(), Some(&1));
    assert!(ids.is_sorted_by(|left, right| left < right), "{ids:?}");
    let times: Vec<_> = times.into_iter().flatten().collect();
    assert!(times.is_sorted_by(|left, right| left < right), "{times:?}");
    assert_eq!(times.last(), Some(&held.now()), "a clock that is ahead is believed");
}

mod stores {
    use super::*;
    use crate::store::embedded::{Embedded, EmbeddedOptions, GROUP_JOBS_MAX};
    use crate::store::kv::Kv;
    use crate::store::kv::fault::FaultKv;
    use crate::store::kv::memory::MemoryKv;
    use crate::store::kv::sled::SledKv;

    fn embedded(kv: impl Kv, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let options = EmbeddedOptions {
            clock,
            overlay_bytes_max: 64 << 20,
            reserve_bytes: 0,
            group_jobs_max: GROUP_JOBS_MAX,
            on_poison: Arc::new(|reason| panic!("poisoned: {reason}")),
            sync_probe: None,
        };
        Arc::new(Embedded::open(kv, options).unwrap())
    }

    impl Place for MemoryKv {
        fn open(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
            embedded(self.clone(), clock)
        }
    }

    struct FaultPlace(Mutex<FaultKv>);

    impl Place for FaultPlace {
        fn open(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
            let mut kv = self.0.lock();
            *kv = kv.image();
            embedded(kv.clone(), clock)
        }
    }

    impl Place for tempfile::TempDir {
        fn open(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
            embedded(SledKv::open(self.path(), 16 * 1024 * 1024).unwrap(), clock)
        }
    }

    #[test]
    fn memory_keeps_the_contract() {
        run(MemoryKv::default);
    }

    #[test]
    fn what_is_durable_keeps_the_contract() {
        run(|| FaultPlace(Mutex::new(FaultKv::new())));
    }

    #[test]
    fn sled_keeps_the_contract() {
        run(|| tempfile::tempdir().unwrap());
    }
}
