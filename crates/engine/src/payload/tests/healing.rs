use std::os::unix::fs::FileExt as _;

use super::support::*;
use crate::error::Error;
use crate::store::kv::fault::FaultKv;
use crate::store::kv::{Ask, Kv as _};
use crate::store::{Direction, KeyRange, Space, StoreError};

#[tokio::test]
async fn healing_punches_what_no_row_names_keeps_the_rest_and_seals() {
    let world = World::new();
    let engine = world.open().await;
    let before = staged(&engine, &body(2 * MIB, 1), 100_000, None).await.unwrap();
    let id = keep(&engine, &body(300_000, 2)).await;
    drop(engine);
    // The upload that nobody finished still holds its range: nothing was given back. A stranger and a tail join it.
    let piece = world.pieces().remove(0);
    let file = std::fs::OpenOptions::new().write(true).open(world.segment(piece.segment)).unwrap();
    file.write_all_at(&body(2 * MIB, 3), piece.offset + MIB as u64).unwrap();
    std::fs::write(world.segment(0xFF), body(10_000, 4)).unwrap();
    std::fs::write(world.payloads().join("notes.txt"), "not ours").unwrap();
    drop(before);
    for _ in 0..3 {
        let engine = world.open().await;
        assert!(world.allocated() <= 320 * 1024, "{}", world.allocated());
        assert!(!world.segment(0xFF).exists() && world.payloads().join("notes.txt").exists());
        let segments = world.rows.all(Space::Segments);
        assert_eq!((segments.len(), &segments[0].1[..]), (1, &[1, 1][..]), "one, sealed");
        assert_eq!(read_all(&engine, id).await.unwrap(), body(300_000, 2));
    }
}

#[tokio::test]
async fn healing_removes_active_segments_without_named_bytes() {
    let world = World::new();
    let engine = world.open().await;
    drop(staged(&engine, &body(MIB, 1), 100_000, None).await.unwrap());
    drop(engine);
    assert_eq!(world.rows.count(Space::Segments), 1);
    // A row whose file was never created, too.
    world.rows.set(Space::Segments, &99_u64.to_be_bytes(), &[1, 0]);
    world.open().await;
    assert_eq!((world.rows.count(Space::Segments), files(&world.payloads()).len()), (0, 0));
}

#[tokio::test]
async fn healing_removes_a_sealed_segment_whose_last_body_was_erased_before_the_end() {
    let world = World::new();
    keep(&world.open().await, &body(300_000, 0)).await;
    drop(world.open().await);
    std::fs::write(world.segment(99), body(10_000, 4)).unwrap();
    world.rows.set(Space::Segments, &99_u64.to_be_bytes(), &[1, 1]);
    world.open().await;
    assert_eq!((world.rows.count(Space::Segments), files(&world.payloads()).len()), (1, 1));
    assert!(!world.segment(99).exists());
}

#[tokio::test]
async fn a_disk_too_full_to_seal_segments_does_not_keep_the_engine_from_opening() {
    let (mut world, kv) = (World::new(), FaultKv::new());
    let engine = world.open_with(kv.clone()).await;
    let before = staged(&engine, &body(2 * MIB, 1), 100_000, None).await.unwrap();
    let id = keep(&engine, &body(300_000, 2)).await;
    drop(engine);
    // It still holds its range: as after a crash, nothing was given back.
    drop(before);
    world.reserve_bytes = 4096;
    kv.set_free_bytes(Some(0));
    let segments =
        |kv: &FaultKv| kv.chunk(Space::Segments, &Ask::first(&KeyRange::all(), Direction::Forward, 9)).unwrap();
    let before = segments(&kv);
    let engine = world.open_with(kv.clone()).await;
    assert_eq!(read_all(&engine, id).await.unwrap(), body(300_000, 2));
    assert!(world.allocated() <= 320 * 1024, "the gaps are free all the same");
    assert_eq!(segments(&kv), before);
    drop(engine);
    kv.set_free_bytes(None);
    drop(world.open_with(kv.clone()).await);
    assert!(segments(&kv).iter().all(|(_, row)| row[..] == [1, 1]), "all sealed");
}

#[tokio::test]
async fn a_lost_segment_with_gaps_does_not_keep_the_engine_from_opening() {
    let world = World::new();
    let engine = world.open().await;
    let mut bodies = Vec::new();
    // More than there are segments that take writes: the first one's holds another.
    for seed in 0..6 {
        bodies.push(keep(&engine, &body(100_000, seed)).await);
    }
    let lost = world.pieces()[0].segment;
    release(&engine, bodies[0]).await;
    engine.settle().await.unwrap();
    drop(engine);
    std::fs::remove_file(world.segment(lost)).unwrap();
    let engine = world.open().await;
    let mut read = Vec::new();
    for (id, seed) in bodies.iter().zip(0..).skip(1) {
        match read_all(&engine, *id).await {
            Ok(bytes) => read.push(bytes == body(100_000, seed)),
            Err(error) => assert!(matches!(error, Error::Storage(StoreError::Backend(_))), "{error:?}"),
        }
    }
    assert_eq!(read, [true; 4], "only what lay in the lost file is lost");
}
