//! The anomalies that a serializable store with snapshots must not show, one test each, on every embedded engine.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(missing_docs, reason = "an integration test exports nothing")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

use bytes::Bytes;
use futures_util::future::{join, join_all};
use lazuli_engine::clock::SystemClock;
use lazuli_engine::store::embedded::{Embedded, EmbeddedOptions, GROUP_JOBS_MAX};
use lazuli_engine::store::kv::Kv;
use lazuli_engine::store::kv::fault::FaultKv;
use lazuli_engine::store::kv::memory::MemoryKv;
use lazuli_engine::store::kv::sled::SledKv;
use lazuli_engine::store::{Direction, KeyRange, Purpose, Space, Store, StoreError, Tx, Verdict, View};
use parking_lot::Mutex;

fn open<K: Kv>(kv: K) -> Arc<Embedded<K>> {
    let options = EmbeddedOptions {
        clock: Arc::new(SystemClock),
        overlay_bytes_max: 256 << 20,
        reserve_bytes: 0,
        group_jobs_max: GROUP_JOBS_MAX,
        on_poison: Arc::new(|reason| panic!("poisoned: {reason}")),
        sync_probe: None,
    };
    Arc::new(Embedded::open(kv, options).unwrap())
}

/// Runs `test` on every engine; sled must not have needed a side file.
async fn on_each_store(test: impl AsyncFn(Arc<dyn Store>)) {
    test(open(MemoryKv::default())).await;
    let directory = tempfile::tempdir().unwrap();
    let store = open(SledKv::open(directory.path(), 16 * 1024 * 1024).unwrap());
    test(Arc::clone(&store) as Arc<dyn Store>).await;
    store.kv().check_for_side_files().unwrap();
}

async fn transact(
    store: &dyn Store,
    body: impl Fn(&mut dyn Tx) -> Result<Verdict, StoreError> + Send + 'static,
) -> Verdict {
    store.transact(Purpose::Grow, Box::new(body)).await.unwrap()
}

fn number<V: View + ?Sized>(view: &V, key: &[u8]) -> Result<u64, StoreError> {
    Ok(view.get(Space::Blobs, key)?.map_or(0, |value| parse(&value)))
}

fn parse(value: &Bytes) -> u64 {
    u64::from_be_bytes(value.as_ref().try_into().unwrap())
}

fn set(tx: &mut dyn Tx, key: &[u8], value: u64) -> Result<(), StoreError> {
    tx.put(Space::Blobs, key.to_vec(), value.to_be_bytes().to_vec())
}

async fn set_all(store: &dyn Store, values: &'static [(&'static [u8], u64)]) {
    let verdict = transact(store, |tx| {
        values.iter().try_for_each(|&(key, value)| set(tx, key, value))?;
        Ok(Verdict::Commit)
    });
    assert_eq!(verdict.await, Verdict::Commit);
}

fn values<V: View + ?Sized>(view: &V, direction: Direction) -> Vec<u64> {
    view.scan(Space::Blobs, KeyRange::all(), direction).map(|pair| parse(&pair.unwrap().1)).collect()
}

#[tokio::test]
async fn dirty_read_nobody_sees_or_is_refused_for_a_write_that_is_not_durable() {
    let (began_sender, began) = channel();
    let (end, may_end) = channel::<()>();
    let (kv, may_end) = (FaultKv::new(), Mutex::new(may_end));
    // Syncs after the first tell when they begin and wait until they may end.
    kv.on_sync(move |nth| {
        if nth > 1 {
            began_sender.send(()).unwrap();
            may_end.lock().recv().unwrap();
        }
    });
    let store = open(kv);
    let create = || {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            transact(&*store, |tx| {
                if number(tx, b"k")? == 1 {
                    return Ok(Verdict::Abandon);
                }
                set(tx, b"k", 1)?;
                Ok(Verdict::Commit)
            })
            .await
        })
    };
    let creation = create();
    let began = tokio::task::spawn_blocking(move || began.recv().map(|()| began)).await.unwrap().unwrap();
    // The write is applied and its sync is under way.
    let refusal = create();
    tokio::task::yield_now().await;
    let snapshot = store.snapshot().unwrap();
    assert_eq!(number(&*snapshot, b"k").unwrap(), 0);
    assert_eq!(values(&*snapshot, Direction::Forward), []);
    assert!(!creation.is_finished() && !refusal.is_finished());
    end.send(()).unwrap();
    assert_eq!(creation.await.unwrap(), Verdict::Commit);
    assert_eq!(refusal.await.unwrap(), Verdict::Abandon);
    assert_eq!(number(&*snapshot, b"k").unwrap(), 0, "the snapshot stays what it was");
    assert_eq!(number(&*store.snapshot().unwrap(), b"k").unwrap(), 1);
    assert!(began.try_recv().is_err(), "a group that writes nothing needs no sync");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_update_a_thousand_concurrent_increments_all_count() {
    on_each_store(async |store| {
        let increments = (0..1000).map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                transact(&*store, |tx| {
                    let value = number(tx, b"counter")?;
                    set(tx, b"counter", value + 1)?;
                    Ok(Verdict::Commit)
                })
                .await
            })
        });
        for done in join_all(increments).await {
            assert_eq!(done.unwrap(), Verdict::Commit);
        }
        assert_eq!(number(&*store.snapshot().unwrap(), b"counter").unwrap(), 1000);
    })
    .await;
}

#[tokio::test]
async fn read_skew_two_reads_of_a_snapshot_belong_to_one_moment() {
    on_each_store(async |store| {
        set_all(&*store, &[(b"x", 50), (b"y", 50)]).await;
        let snapshot = store.snapshot().unwrap();
        assert_eq!(number(&*snapshot, b"x").unwrap(), 50);
        set_all(&*store, &[(b"x", 25), (b"y", 75)]).await;
        assert_eq!(number(&*snapshot, b"y").unwrap(), 50);
        assert_eq!(number(&*store.snapshot().unwrap(), b"y").unwrap(), 75);
    })
    .await;
}

#[tokio::test]
async fn write_skew_a_rule_over_two_rows_holds_when_each_is_changed_by_another() {
    on_each_store(async |store| {
        set_all(&*store, &[(b"x", 50), (b"y", 50)]).await;
        // Together they may not fall below 50.
        let withdraw = |key: &'static [u8]| {
            transact(&*store, move |tx| {
                if number(tx, b"x")? + number(tx, b"y")? < 100 {
                    return Ok(Verdict::Abandon);
                }
                set(tx, key, 0)?;
                Ok(Verdict::Commit)
            })
        };
        let (x, y) = join(withdraw(b"x"), withdraw(b"y")).await;
        assert_ne!(x, y);
        assert_eq!(values(&*store.snapshot().unwrap(), Direction::Forward).iter().sum::<u64>(), 50);
    })
    .await;
}

#[tokio::test]
async fn phantom_a_row_that_a_scan_missed_cannot_be_added_beside_it() {
    on_each_store(async |store| {
        // At most three seats.
        let take = |seat: u8| {
            transact(&*store, move |tx| {
                if tx.scan(Space::Blobs, KeyRange::prefix(b"seat"), Direction::Backward).count() >= 3 {
                    return Ok(Verdict::Abandon);
                }
                set(tx, &[b"seat".as_slice(), &[seat]].concat(), 1)?;
                Ok(Verdict::Commit)
            })
        };
        let verdicts = join_all((0..20).map(take)).await;
        assert_eq!(verdicts.iter().filter(|&&verdict| verdict == Verdict::Commit).count(), 3);
        assert_eq!(values(&*store.snapshot().unwrap(), Direction::Forward).len(), 3);
    })
    .await;
}

#[tokio::test]
async fn torn_scan_rows_written_together_are_seen_together_while_writing_goes_on() {
    const ROWS: u64 = 700;
    on_each_store(async |store| {
        let rewrite = |generation: u64| {
            transact(&*store, move |tx| {
                // Every other row comes and goes.
                for row in (0..ROWS).filter(|row| row % 2 == 0 || generation.is_multiple_of(2)) {
                    set(tx, &row.to_be_bytes(), generation)?;
                }
                for row in (0..ROWS).filter(|row| row % 2 == 1 && !generation.is_multiple_of(2)) {
                    tx.delete(Space::Blobs, &row.to_be_bytes())?;
                }
                Ok(Verdict::Commit)
            })
        };
        assert_eq!(rewrite(0).await, Verdict::Commit);
        for generation in 0..20 {
            let snapshot = store.snapshot().unwrap();
            for direction in [Direction::Forward, Direction::Backward] {
                let mut scan = snapshot.scan(Space::Blobs, KeyRange::all(), direction);
                let mut seen: Vec<_> = scan.by_ref().take(100).map(|pair| parse(&pair.unwrap().1)).collect();
                if direction == Direction::Forward {
                    assert_eq!(rewrite(generation + 1).await, Verdict::Commit);
                }
                seen.extend(scan.map(|pair| parse(&pair.unwrap().1)));
                let rows = if generation.is_multiple_of(2) { ROWS } else { ROWS / 2 };
                assert_eq!(seen.len() as u64, rows, "{direction:?} {generation}");
                assert!(seen.iter().all(|&value| value == generation), "{direction:?} {generation}");
            }
        }
    })
    .await;
}

const ACCOUNTS: u64 = 400;
const START: u64 = 100;

/// Moves up to `amount`; an account that is empty has no row.
async fn transfer(store: &dyn Store, from: u64, to: u64, amount: u64) {
    let verdict = transact(store, move |tx| {
        let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
        let moved = number(tx, &from)?.min(amount);
        match number(tx, &from)? - moved {
            0 => tx.delete(Space::Blobs, &from)?,
            rest => set(tx, &from, rest)?,
        }
        let balance = number(tx, &to)? + moved;
        if balance > 0 {
            set(tx, &to, balance)?;
        }
        Ok(Verdict::Commit)
    });
    assert_eq!(verdict.await, Verdict::Commit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_keep_their_sum_under_full_scans_and_point_reads() {
    on_each_store(async |store| {
        let fill = transact(&*store, |tx| {
            (0..ACCOUNTS).try_for_each(|account| set(tx, &account.to_be_bytes(), START))?;
            Ok(Verdict::Commit)
        });
        assert_eq!(fill.await, Verdict::Commit);
        let (done, scans) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let reader = {
            let (store, done, scans) = (Arc::clone(&store), Arc::clone(&done), Arc::clone(&scans));
            tokio::task::spawn_blocking(move || {
                while !done.load(Ordering::SeqCst) || scans.load(Ordering::SeqCst) < 3 {
                    let snapshot = store.snapshot().unwrap();
                    for direction in [Direction::Forward, Direction::Backward] {
                        assert_eq!(values(&*snapshot, direction).iter().sum::<u64>(), ACCOUNTS * START);
                    }
                    let read = (0..ACCOUNTS).map(|account| number(&*snapshot, &account.to_be_bytes()).unwrap());
                    assert_eq!(read.sum::<u64>(), ACCOUNTS * START, "point by point");
                    scans.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        let writers = (0..16_u64).map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut draw = writer;
                for _ in 0..60 {
                    draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    transfer(&*store, (draw >> 16) % ACCOUNTS, (draw >> 32) % ACCOUNTS, (draw >> 48) % 150).await;
                }
            })
        });
        for written in join_all(writers).await {
            written.unwrap();
        }
        done.store(true, Ordering::SeqCst);
        reader.await.unwrap();
    })
    .await;
}
