use std::time::Duration;

use super::setbacks::RETRY_AFTER;
use super::tick;
use crate::blob::kind::BlobKind;
use crate::clock::Clock as _;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::names::AccountName;
use crate::payload::refs::{Target, release as release_target};
use crate::payload::tests::support::*;
use crate::payload::{PayloadId, Piece};
use crate::policy::{AccountPolicy, Policies};
use crate::rows;
use crate::rows::change::{self, Cause, ChangeRow};
use crate::rows::due::{self, DueKind, DueRow};
use crate::rows::list::ListId;
use crate::rows::payload::{self, PieceChunk};
use crate::rows::refs;
use crate::store::kv::fault::FaultKv;
use crate::store::kv::{Ask, Kv as _};
use crate::store::{Direction, KeyRange, Purpose, Space, StoreError, Tx};

async fn dead_body(engine: &Engine, seed: u8) -> PayloadId {
    let id = keep(engine, &body(100_000, seed)).await;
    release(engine, id).await;
    id
}

#[tokio::test]
async fn the_dead_are_erased_with_their_space() {
    let world = World::new();
    let engine = world.open().await;
    dead_body(&engine, 1).await;
    let small = keep(&engine, b"small").await;
    release(&engine, small).await;
    engine.settle().await.unwrap();
    for space in [Space::Dead, Space::Extents, Space::Payloads, Space::Small] {
        assert_eq!(world.rows.count(space), 0, "{space:?}");
    }
    assert!(world.allocated() < 8192);
}

#[tokio::test]
async fn a_pinned_body_and_one_that_a_snapshot_shows_stay_until_nobody_looks() {
    let world = World::new();
    let engine = world.open().await;
    let pinned = dead_body(&engine, 1).await;
    let pins = [Target::payload(pinned); 2].map(|target| engine.payloads().pin(target));
    dead_body(&engine, 2).await;
    let snapshot = engine.snapshot().unwrap();
    dead_body(&engine, 3).await;
    engine.settle().await.unwrap();
    assert_eq!(world.rows.count(Space::Dead), 2, "behind the pinned one, only the old one goes");
    drop(snapshot);
    engine.settle().await.unwrap();
    assert_eq!(world.rows.count(Space::Dead), 1);
    let [one, other] = pins;
    drop(one);
    engine.settle().await.unwrap();
    assert_eq!(read_all(&engine, pinned).await.unwrap(), body(100_000, 1), "one reader is left");
    drop(other);
    engine.settle().await.unwrap();
    assert_eq!((world.rows.count(Space::Dead), world.rows.count(Space::Extents)), (0, 0));
}

#[tokio::test]
async fn thousands_of_pinned_dead_do_not_hide_those_behind_them() {
    let world = World::new();
    let engine = world.open().await;
    let targets = (0..5000).map(|number| Target::payload(PayloadId(1_000_000 + number)));
    let mut pins = Vec::new();
    for target in targets {
        pins.push(engine.payloads().pin(target));
        world.rows.set(Space::Dead, &refs::dead_key(0, target), b"");
    }
    dead_body(&engine, 1).await;
    engine.settle().await.unwrap();
    assert_eq!((world.rows.count(Space::Dead), world.rows.count(Space::Extents)), (pins.len(), 0));
}

#[tokio::test]
async fn a_dead_body_with_a_damaged_row_does_not_hold_up_the_others_and_is_tried_again() {
    let world = World::new();
    let engine = world.open().await;
    dead_body(&engine, 1).await;
    let (key, whole) = world.rows.all(Space::Payloads).remove(0);
    world.rows.set(Space::Payloads, &key, b"\x01damaged");
    dead_body(&engine, 2).await;
    world.rows.set(Space::Dead, b"\0not a dead row's key", b"");
    engine.settle().await.unwrap();
    assert_eq!((world.rows.count(Space::Dead), world.rows.count(Space::Extents)), (2, 1));
    assert!(!tick(&engine).await.unwrap(), "nothing more to do now");
    world.rows.set(Space::Payloads, &key, &whole);
    engine.settle().await.unwrap();
    assert_eq!(world.rows.count(Space::Extents), 1, "not yet");
    world.clock.advance(2 * RETRY_AFTER);
    engine.settle().await.unwrap();
    assert_eq!((world.rows.count(Space::Dead), world.rows.count(Space::Extents)), (1, 0));
}

#[tokio::test]
async fn an_appointment_that_fails_does_not_hold_up_the_others_and_is_tried_again() {
    let world = World::new();
    let engine = world.open().await;
    let at = world.clock.now();
    let (broken, good) = (due::key(at, DueKind::Staging, 1), due::key(at, DueKind::List, 2));
    world.rows.set(Space::Due, &broken, b"\x01damaged");
    world.rows.set(Space::Due, &good, &rows::codec::encode(&DueRow::default()).unwrap());
    world.rows.set(Space::Due, b"\0\0\0\0\0\0\0\0\x09", b"");
    dead_body(&engine, 1).await;
    engine.settle().await.unwrap();
    assert_eq!((world.rows.count(Space::Due), world.rows.count(Space::Dead)), (2, 0));
    world.rows.set(Space::Due, &broken, &rows::codec::encode(&DueRow::default()).unwrap());
    world.clock.advance(2 * RETRY_AFTER);
    engine.settle().await.unwrap();
    assert_eq!(world.rows.count(Space::Due), 1, "what cannot even be read stays");
}

#[tokio::test]
async fn a_long_body_is_erased_in_several_steps() {
    let world = World::new();
    let engine = world.open().await;
    let kept = keep(&engine, &body(100_000, 1)).await;
    let segment = world.pieces()[0].segment;
    let id = PayloadId(1_000_000);
    let write = move |tx: &mut dyn Tx| {
        for number in 0..40 {
            let piece = Piece { segment, offset: (1000 + number) * 4096, length: 1, frames: vec![0], seal: None };
            let extent = payload::ExtentRow { length: 1, payload: id };
            rows::put(tx, Space::Extents, payload::extent_key(segment, piece.offset), &extent)?;
            rows::put(tx, Space::Payloads, payload::key(id, number), &PieceChunk { pieces: vec![piece] })?;
        }
        Ok(())
    };
    engine.write(Purpose::Grow, write).await.unwrap();
    release(&engine, id).await;
    for left in [24, 8, 0] {
        tick(&engine).await.unwrap();
        assert_eq!(world.rows.count(Space::Extents), left + 1);
        assert_eq!(world.rows.count(Space::Dead), usize::from(left > 0), "dead until its last row is gone");
    }
    assert_eq!(read_all(&engine, kept).await.unwrap(), body(100_000, 1));
}

#[tokio::test]
async fn a_damaged_change_holds_up_the_feed_of_its_account_alone_and_is_tried_again() {
    let world = World::new();
    let engine = world.open().await;
    let account = |name| AccountName::parse(name).unwrap();
    let policy = AccountPolicy { change_feed: true, ..AccountPolicy::default() };
    let policies = ["one", "two"]
        .map(account)
        .into_iter()
        .fold(Policies::default(), |policies, account| policies.with(account, policy.clone()));
    engine.set_policies(policies);
    let row = ChangeRow {
        cause: Cause::Put,
        container: "c".into(),
        blob: "b".into(),
        etag: Etag::at(world.clock.now()),
        kind: BlobKind::Block,
        length: 1,
        content_type: None,
        version: None,
        snapshot: None,
        tier: None,
        other_tier: None,
        copy: None,
        soft_deleted: false,
        request: None,
    };
    let whole = rows::codec::encode(&row).unwrap();
    let [broken, good] = ["one", "two"].map(|name| change::key(&account(name), world.clock.now(), 1));
    world.rows.set(Space::Changes, &broken, b"\x01damaged");
    world.rows.set(Space::Changes, &good, &whole);
    world.clock.advance(Duration::from_secs(2));
    dead_body(&engine, 1).await;
    engine.settle().await.unwrap();
    assert_eq!((world.rows.count(Space::Changes), world.rows.count(Space::Dead)), (1, 0));
    world.rows.set(Space::Changes, &broken, &whole);
    engine.settle().await.unwrap();
    assert_eq!(world.rows.count(Space::Changes), 1, "not yet");
    world.clock.advance(2 * RETRY_AFTER);
    engine.settle().await.unwrap();
    assert_eq!(world.rows.count(Space::Changes), 0);
}

#[tokio::test]
async fn on_a_full_disk_bytes_are_given_back_though_no_row_can_be_written() {
    let (mut world, kv) = (World::new(), FaultKv::new());
    world.reserve_bytes = 4096;
    let engine = world.open_with(kv.clone()).await;
    // More than one step erases.
    for id in 1..=40 {
        dead_body(&engine, id).await;
    }
    let at = world.clock.now();
    let appointment = move |tx: &mut dyn Tx| {
        release_target(tx, Target::list(ListId(7)))?;
        Ok(rows::put(tx, Space::Due, due::key(at, DueKind::List, 8), &DueRow::default())?)
    };
    engine.write(Purpose::Free, appointment).await.unwrap();
    assert!(world.allocated() >= 100_000);
    let left = |space| kv.chunk(space, &Ask::first(&KeyRange::all(), Direction::Forward, 99)).unwrap().len();
    kv.set_free_bytes(Some(0));
    assert!(matches!(tick(&engine).await, Err(Error::Storage(StoreError::Full))));
    assert!(world.allocated() < 8192, "{}", world.allocated());
    assert_eq!((left(Space::Dead), left(Space::Due), left(Space::Extents)), (41, 1, 40));
    kv.set_free_bytes(None);
    engine.settle().await.unwrap();
    assert_eq!((left(Space::Dead), left(Space::Due), left(Space::Extents)), (0, 0, 0));
}
