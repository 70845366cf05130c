//! Power cuts at every sync of work that takes several transactions: what was acknowledged is there, what was under way
//! is there whole or not at all, and nothing else is left – no row, no byte – once all of it is deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use crate::blob::append::{self, AppendConditions};
use crate::blob::blocks::{self, BlockId, BlockSource};
use crate::blob::copy::{self, CopyKind, CopyRequest};
use crate::blob::pages::{self, SequenceConditions};
use crate::blob::removal::{self, Snapshots};
use crate::blob::testing::{create_container, on, read, refusal};
use crate::blob::{OnContainer, Stored, container, object, snapshot};
use crate::condition::Conditions;
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::Staged;
use crate::payload::tests::support::{World, body, files};
use crate::properties::HttpProperties;
use crate::protection::Protection;
use crate::range::ByteRange;
use crate::refusal::Refusal;
use crate::store::kv::fault::{FaultKv, Unsynced};

const PAGE: u64 = pages::PAGE_BYTES;

/// One request of the work.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Put(&'static str, usize),
    PutBlock(&'static str, u8),
    Commit(&'static str),
    Copy(&'static str, &'static str),
    Snapshot(&'static str),
    Delete(&'static str),
    CreateLog(&'static str),
    Append(&'static str),
    CreatePages(&'static str),
    PutPages(&'static str, u64, u64),
    ClearPages(&'static str, u64, u64),
    Settle,
}

const NAMES: [&str; 6] = ["a", "b", "log", "fork", "disk", "clone"];

/// What a list, a log and a map of pages go through when they are shared and then changed, and when they go.
const WORK: &[Deed] = &[
    Deed::Put("a", 70_000),
    Deed::Put("a", 3_000),
    Deed::PutBlock("b", 1),
    Deed::PutBlock("b", 2),
    Deed::PutBlock("b", 1),
    Deed::Commit("b"),
    Deed::Copy("b", "a"),
    Deed::Snapshot("b"),
    Deed::PutBlock("b", 2),
    Deed::Delete("b"),
    Deed::CreateLog("log"),
    Deed::Append("log"),
    Deed::Append("log"),
    Deed::Copy("log", "fork"),
    Deed::Append("log"),
    Deed::Append("fork"),
    Deed::Settle,
    Deed::CreatePages("disk"),
    Deed::PutPages("disk", 0, 600),
    Deed::PutPages("disk", 700, 9),
    Deed::Copy("disk", "clone"),
    Deed::PutPages("disk", 130, 200),
    Deed::PutPages("clone", 1, 1),
    Deed::ClearPages("clone", 0, 900),
    Deed::PutPages("clone", 300, 2),
    Deed::Settle,
    Deed::Delete("disk"),
    Deed::Put("a", 200_000),
    Deed::Delete("log"),
    Deed::Settle,
];

async fn staged(engine: &Engine, bytes: Vec<u8>) -> Result<Staged, Error> {
    let mut stage = engine.payloads().stage(false, Some(bytes.len() as u64));
    stage.write(bytes.into()).await?;
    stage.finish().await
}

fn copied() -> CopyRequest {
    CopyRequest {
        kind: CopyKind::Start,
        id: Uuid::from_u128(7),
        url: String::new(),
        http: HttpProperties::default(),
        keep_http: true,
        metadata: None,
        tags: None,
        scope: None,
        tier: None,
        protection: Protection::default(),
        seal: None,
    }
}

async fn do_it(engine: &Engine, deed: Deed, seed: u8) -> Result<(), Error> {
    let (stored, conditions) = (Stored::default(), SequenceConditions::default());
    let pages = |first: u64, count: u64| ByteRange { first: first * PAGE, length: count * PAGE };
    match deed {
        Deed::Put(blob, length) => {
            let content = staged(engine, body(length, seed)).await?;
            object::put(engine, on(blob), stored, content).await.map(drop)
        }
        Deed::PutBlock(blob, block) => {
            let content = staged(engine, body(10_000, seed)).await?;
            blocks::put_block(engine, on(blob), BlockId(vec![block]), content).await
        }
        Deed::Commit(blob) => {
            let list = [1, 2, 1].map(|block| (BlockSource::Latest, BlockId(vec![block]))).to_vec();
            blocks::put_block_list(engine, on(blob), list, stored).await.map(drop)
        }
        Deed::Copy(from, to) => copy::copy(engine, on(from), on(to), copied()).await.map(drop),
        Deed::Snapshot(blob) => snapshot::take(engine, on(blob), None).await.map(drop),
        Deed::Delete(blob) => removal::delete(engine, on(blob), Snapshots::Include).await.map(drop),
        Deed::CreateLog(blob) => append::create(engine, on(blob), stored).await.map(drop),
        Deed::Append(blob) => {
            let content = staged(engine, body(9_000, seed)).await?;
            append::append(engine, on(blob), AppendConditions::default(), content).await.map(drop)
        }
        Deed::CreatePages(blob) => pages::create(engine, on(blob), stored, 1000 * PAGE, 0).await.map(drop),
        Deed::PutPages(blob, first, count) => {
            let ByteRange { first, length } = pages(first, count);
            let content = staged(engine, body(usize::try_from(length).unwrap(), seed)).await?;
            pages::put(engine, on(blob), conditions, first, content).await.map(drop)
        }
        Deed::ClearPages(blob, first, count) => {
            pages::clear(engine, on(blob), conditions, pages(first, count)).await.map(drop)
        }
        Deed::Settle => engine.settle().await,
    }
}

/// Does the work as far as there is power; answers how much of it was acknowledged.
async fn work(engine: &Engine) -> usize {
    for (done, (deed, seed)) in WORK.iter().zip(1..).enumerate() {
        if let Err(error) = do_it(engine, *deed, seed).await {
            assert!(matches!(error, Error::Storage(_)), "{deed:?}: {error:?}");
            return done;
        }
    }
    WORK.len()
}

type State = BTreeMap<&'static str, Vec<u8>>;

/// The contents of all blobs.
async fn state(engine: &Engine) -> State {
    let mut state = State::new();
    for name in NAMES {
        match read(engine, name, None).await {
            Ok(bytes) => drop(state.insert(name, bytes)),
            absent => assert_eq!(refusal(absent), Refusal::BlobNotFound, "{name}"),
        }
    }
    state
}

/// The contents after each deed, and how many syncs there are before the first and after the last.
async fn healthy() -> (Vec<State>, u64, u64) {
    let (world, kv) = (World::new(), FaultKv::new());
    let engine = world.open_with(kv.clone()).await;
    create_container(&engine).await;
    let (first, mut states) = (kv.syncs(), vec![State::new()]);
    for (deed, seed) in WORK.iter().zip(1..) {
        do_it(&engine, *deed, seed).await.unwrap();
        states.push(state(&engine).await);
    }
    (states, first, kv.syncs())
}

async fn cut(nth: u64, unsynced: Unsynced, states: &[State]) {
    let (world, kv) = (World::new(), FaultKv::new());
    let engine = world.open_with(kv.clone()).await;
    create_container(&engine).await;
    kv.cut_power(nth, unsynced);
    let done = work(&engine).await;
    drop(engine);
    let engine = world.open_with(kv.image()).await;
    let found = state(&engine).await;
    let possible = &states[done..=(done + 1).min(WORK.len())];
    assert!(possible.contains(&found), "cut at sync {nth}, {unsynced:?}, after {done} of {WORK:?}");
    let on = OnContainer { address: on("a").address.container, conditions: Conditions::default(), lease: None };
    container::delete(&engine, on).await.unwrap();
    // Lists and maps that were being built have appointments.
    world.clock.advance(Duration::from_secs(2 * 60 * 60));
    engine.settle().await.unwrap();
    assert_eq!(engine.census().unwrap(), [], "cut at sync {nth}, {unsynced:?}, after {done}");
    assert_eq!(files(&world.payloads()).len(), 0, "cut at sync {nth}, {unsynced:?}, after {done}");
}

#[tokio::test]
async fn a_power_cut_at_any_sync_loses_nothing_acknowledged_and_leaves_nothing_behind() {
    let (states, first, last) = healthy().await;
    assert!(last - first > WORK.len() as u64, "some of it takes several transactions");
    for nth in first + 1..=last {
        for unsynced in [Unsynced::Lost, Unsynced::Kept] {
            cut(nth, unsynced, &states).await;
        }
    }
}
