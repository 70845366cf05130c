//! What survives: power cuts at every sync, failing disks, full disks, and load on a real one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(missing_docs, reason = "an integration test exports nothing")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use lazuli_engine::clock::{HeldClock, SystemClock, Timestamp};
use lazuli_engine::store::embedded::{Embedded, EmbeddedOptions, GROUP_JOBS_MAX, OnPoison};
use lazuli_engine::store::kv::fault::{FaultKv, Unsynced};
use lazuli_engine::store::kv::sled::SledKv;
use lazuli_engine::store::kv::{Ask, Kv};
use lazuli_engine::store::{Direction, KeyRange, OpenError, Purpose, Space, Store, StoreError, Tx, Verdict, View};
use parking_lot::Mutex;

const RESERVE_BYTES: u64 = 4000;

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        clock: Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1))),
        overlay_bytes_max: 256 << 20,
        reserve_bytes: RESERVE_BYTES,
        group_jobs_max: GROUP_JOBS_MAX,
        on_poison: Arc::new(|_| {}),
        sync_probe: None,
    }
}

async fn transact(
    store: &dyn Store,
    purpose: Purpose,
    body: impl Fn(&mut dyn Tx) -> Result<Verdict, StoreError> + Send + 'static,
) -> Result<Verdict, StoreError> {
    store.transact(purpose, Box::new(body)).await
}

fn keys<V: View + ?Sized>(view: &V, space: Space) -> BTreeSet<Vec<u8>> {
    let pairs = view.scan(space, KeyRange::all(), Direction::Forward);
    pairs.map(|pair| pair.unwrap().0.to_vec()).collect()
}

fn count<V: View + ?Sized>(view: &V) -> Result<u64, StoreError> {
    let value = view.get(Space::Refs, b"count")?;
    Ok(value.map_or(0, |value| u64::from_be_bytes(value.as_ref().try_into().unwrap())))
}

/// Adds `name` to two spaces and to a count; every third decides against it after having written, and a name that is
/// there already is refused.
async fn add(store: &dyn Store, name: u8, ids: &Mutex<Vec<u64>>) -> Result<Verdict, StoreError> {
    let seen = Arc::new(AtomicU64::new(0));
    let id = Arc::clone(&seen);
    let answer = transact(store, Purpose::Grow, move |tx| {
        id.store(tx.id(), Ordering::SeqCst);
        if tx.get(Space::Blobs, &[name])?.is_some() {
            return Ok(Verdict::Abandon);
        }
        tx.put(Space::Blobs, vec![name], tx.now().ticks().to_be_bytes().to_vec())?;
        tx.put(Space::Lists, vec![name], vec![])?;
        let count = count(tx)? + 1;
        tx.put(Space::Refs, b"count".to_vec(), count.to_be_bytes().to_vec())?;
        Ok(if name.is_multiple_of(3) { Verdict::Abandon } else { Verdict::Commit })
    });
    let answer = answer.await;
    if answer.is_ok() {
        ids.lock().push(seen.load(Ordering::SeqCst));
    }
    answer
}

/// What the workload was told.
#[derive(Default)]
struct Told {
    there: BTreeSet<Vec<u8>>,
    refused: BTreeSet<Vec<u8>>,
    ids: Mutex<Vec<u64>>,
}

/// Rounds of concurrent additions, until the store fails or the work is done.
async fn work(store: &dyn Store) -> Told {
    let mut told = Told::default();
    for round in 0..6_u8 {
        // Overlapping names, so that some are refused for being there.
        let names: Vec<u8> = (round * 8..round * 8 + 12).collect();
        let answers = join_all(names.iter().map(|&name| add(store, name, &told.ids))).await;
        for (name, answer) in names.into_iter().zip(answers) {
            match answer {
                Ok(Verdict::Abandon) if name.is_multiple_of(3) => drop(told.refused.insert(vec![name])),
                // A refusal for a name that is there rests on that name.
                Ok(_) => drop(told.there.insert(vec![name])),
                Err(StoreError::Poisoned(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    told
}

#[tokio::test]
async fn a_power_cut_at_any_sync_loses_nothing_told_and_leaves_nothing_half() {
    for unsynced in [Unsynced::Lost, Unsynced::Kept] {
        for cut in 1.. {
            let disk = FaultKv::new();
            disk.cut_power(cut, unsynced);
            let told = match Embedded::open(disk.clone(), options()) {
                Ok(store) => work(&store).await,
                Err(_) => Told::default(),
            };
            let case = format!("cut at sync {cut}, unsynced {unsynced:?}");

            let after = Embedded::open(disk.image(), options()).unwrap();
            let snapshot = after.snapshot().unwrap();
            let there = keys(&*snapshot, Space::Blobs);
            assert!(told.there.is_subset(&there), "{case}: lost {:?}", told.there.difference(&there));
            assert!(told.refused.is_disjoint(&there), "{case}: refused but there");
            assert_eq!(there, keys(&*snapshot, Space::Lists), "{case}: half a transaction");
            assert_eq!(count(&*snapshot).unwrap(), there.len() as u64, "{case}: a group out of order");
            assert!(there.iter().all(|name| name.iter().all(|name| !name.is_multiple_of(3))), "{case}: abandoned");
            if unsynced == Unsynced::Lost {
                // In this workload everybody is answered, so nothing is there that nobody was told of.
                assert_eq!(there, told.there, "{case}");
            }
            goes_on_after(&after, &told, &case).await;
            if !disk.is_dead() {
                break;
            }
        }
    }
}

/// Ids and commit times stay unique and increasing after the crash.
async fn goes_on_after(store: &dyn Store, told: &Told, case: &str) {
    let times = |view: &dyn View| -> Vec<Vec<u8>> {
        view.scan(Space::Blobs, KeyRange::all(), Direction::Forward).map(|pair| pair.unwrap().1.to_vec()).collect()
    };
    let before = times(&*store.snapshot().unwrap() as &dyn View);
    let ids = Mutex::new(Vec::new());
    assert_eq!(add(store, 200, &ids).await.unwrap(), Verdict::Commit, "{case}");
    let given = told.ids.lock().iter().copied().max().unwrap_or(0);
    assert!(ids.lock().iter().all(|&id| id > given), "{case}: an id was given twice");
    let after = times(&*store.snapshot().unwrap() as &dyn View);
    assert!(before.iter().all(|time| after.last() > Some(time)), "{case}: time went back");
}

#[tokio::test]
async fn a_failed_write_or_sync_stops_all_further_writes_and_is_announced_once() {
    for case in ["sync", "apply"] {
        let disk = FaultKv::new();
        // The first is that of opening.
        if case == "sync" {
            disk.fail_sync(3);
        } else {
            disk.fail_apply(3);
        }
        let announced = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&announced);
        let on_poison: OnPoison = Arc::new(move |reason| heard.lock().push(reason.to_owned()));
        let store = Embedded::open(disk.clone(), EmbeddedOptions { on_poison, ..options() }).unwrap();
        let put = |key: u8| {
            transact(&store, Purpose::Grow, move |tx| {
                tx.put(Space::Blobs, vec![key], vec![])?;
                Ok(Verdict::Commit)
            })
        };
        assert!(matches!(put(1).await, Ok(Verdict::Commit)), "{case}");
        for key in 2..5 {
            assert!(matches!(put(key).await, Err(StoreError::Poisoned(_))), "{case} {key}");
        }
        let refused = transact(&store, Purpose::Free, |_| Ok(Verdict::Abandon)).await;
        assert!(matches!(refused, Err(StoreError::Poisoned(_))), "{case}: a refusal could rest on what is lost");
        assert_eq!(keys(&*store.snapshot().unwrap(), Space::Blobs), BTreeSet::from([vec![1]]), "{case}: reads go on");
        assert_eq!((disk.applies(), disk.syncs()), (3, if case == "sync" { 3 } else { 2 }), "nothing is tried again");
        drop(store);
        assert_eq!(
            announced.lock().as_slice(),
            [format!("the disk failed a {}", if case == "sync" { "sync" } else { "write" })]
        );
        let restarted = Embedded::open(disk.image(), options()).unwrap();
        assert_eq!(keys(&*restarted.snapshot().unwrap(), Space::Blobs), BTreeSet::from([vec![1]]), "{case}: restart");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_growth_lets_freeing_go_on_and_recovers() {
    let disk = FaultKv::new();
    let store = Embedded::open(disk.clone(), options()).unwrap();
    let write = |purpose| {
        transact(&store, purpose, |tx| {
            tx.put(Space::Blobs, vec![1], vec![])?;
            Ok(Verdict::Commit)
        })
    };
    let cases = [
        (None, true, true),
        (Some(RESERVE_BYTES), true, true),
        (Some(RESERVE_BYTES - 1), false, true),
        (Some(RESERVE_BYTES / 4), false, true),
        (Some(RESERVE_BYTES / 4 - 1), false, false),
        (Some(0), false, false),
        (Some(RESERVE_BYTES), true, true),
    ];
    for (free, grows, frees) in cases {
        disk.set_free_bytes(free);
        for (purpose, works) in [(Purpose::Grow, grows), (Purpose::Free, frees)] {
            let answer = write(purpose).await;
            let as_expected = if works { answer.is_ok() } else { matches!(answer, Err(StoreError::Full)) };
            assert!(as_expected, "{free:?} free, {purpose:?}: {answer:?}");
        }
        assert_eq!(keys(&*store.snapshot().unwrap(), Space::Blobs).len(), 1, "reads go on");
    }
}

#[test]
fn a_store_whose_sync_does_not_reach_the_disk_does_not_open() {
    static SYNCS: AtomicU64 = AtomicU64::new(0);
    let open = |sync_probe: fn() -> u64| {
        Embedded::open(FaultKv::new(), EmbeddedOptions { sync_probe: Some(sync_probe), ..options() })
    };
    assert!(matches!(open(|| 7), Err(OpenError::SyncNotInEffect)));
    assert!(open(|| SYNCS.fetch_add(1, Ordering::SeqCst)).is_ok());
}

#[tokio::test]
async fn the_largest_records_stay_in_the_log_and_are_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let open = || SledKv::open(directory.path(), 4 * 1024 * 1024).unwrap();
    let store = Embedded::open(open(), options()).unwrap();
    for round in 0..4_u8 {
        let fill = transact(&store, Purpose::Grow, move |tx| {
            for number in 0..200_u8 {
                tx.put(Space::Small, vec![number; 8 * 1024], vec![round; 16 * 1024])?;
            }
            Ok(Verdict::Commit)
        });
        // 200 records of 24 KiB are within the bound of a transaction.
        assert_eq!(fill.await.unwrap(), Verdict::Commit);
    }
    drop(store);
    let kv = open(); // refuses if there were side files
    assert_eq!(kv.chunk(Space::Small, &Ask::first(&KeyRange::all(), Direction::Forward, 1000)).unwrap().len(), 200);
    kv.check_for_side_files().unwrap();
}

/// Writers over three spaces beside readers in both directions on a small cache: nothing may stall, every scan must
/// agree with itself. A few seconds; longer with `LAZULI_LONG=1`.
#[test]
fn load_from_all_sides_never_stalls() {
    let long = std::env::var_os("LAZULI_LONG").is_some();
    let until = Instant::now() + Duration::from_secs(if long { 480 } else { 3 });
    let directory = tempfile::tempdir().unwrap();
    let kv = SledKv::open(directory.path(), 16 * 1024 * 1024).unwrap();
    let store = Arc::new(Embedded::open(kv, EmbeddedOptions { clock: Arc::new(SystemClock), ..options() }).unwrap());
    let stalled = Arc::new(AtomicBool::new(false));
    let (done, ended) = channel();
    for thread in 0..8_u64 {
        let (store, done, stalled) = (Arc::clone(&store), done.clone(), Arc::clone(&stalled));
        std::thread::spawn(move || {
            let mut rounds = 0_u64;
            while Instant::now() < until && !stalled.load(Ordering::SeqCst) {
                if thread < 4 {
                    write_three(&store, thread, rounds);
                } else {
                    read_three(&*store.snapshot().unwrap());
                }
                rounds += 1;
            }
            let _ = done.send(rounds); // nobody listens if the test has failed already
        });
    }
    drop(done);
    for _ in 0..8 {
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_secs(60);
        let Ok(rounds) = ended.recv_timeout(left) else {
            stalled.store(true, Ordering::SeqCst);
            panic!("a thread stalled or failed");
        };
        assert!(rounds > 0);
    }
}

/// Changes one key in three spaces at once; each third of the time removes it.
fn write_three(store: &Embedded<SledKv>, thread: u64, round: u64) {
    let key = (round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54 << 2 | thread).to_be_bytes();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let body = move |tx: &mut dyn Tx| {
        for space in [Space::Blobs, Space::Lists, Space::Refs] {
            if round.is_multiple_of(3) {
                tx.delete(space, &key)?;
            } else {
                tx.put(space, key.to_vec(), vec![0; 300])?;
            }
        }
        Ok(Verdict::Commit)
    };
    assert_eq!(runtime.block_on(transact(store, Purpose::Grow, body)).unwrap(), Verdict::Commit);
}

fn read_three<V: View + ?Sized>(view: &V) {
    let blobs = keys(view, Space::Blobs);
    assert_eq!(blobs, keys(view, Space::Lists));
    let backward = view.scan(Space::Refs, KeyRange::all(), Direction::Backward);
    assert!(backward.map(|pair| pair.unwrap().0.to_vec()).eq(blobs.iter().rev().cloned()));
    assert!(blobs.iter().all(|key| view.get(Space::Blobs, key).unwrap().is_some()));
}
