use std::os::unix::fs::FileExt as _;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::FutureExt as _;
use proptest::prelude::*;

use super::support::*;
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::{FRAME_BYTES, INLINE_BYTES_MAX, PIECE_BYTES_MAX, PayloadId};
use crate::refusal::Refusal;
use crate::store::{Purpose, Space, StoreError};

#[tokio::test]
async fn kept_bytes_survive_reopening_and_their_digests_are_right() {
    let world = World::new();
    let engine = world.open().await;
    let bytes = body(9 * MIB + 5, 0);
    let staged = staged(&engine, &bytes, 70_000, None).await.unwrap();
    assert_eq!(staged.length(), bytes.len() as u64);
    assert_eq!(staged.crc64(), super::super::stage::checksum(&bytes));
    assert_eq!(staged.md5(), Some(<md5::Md5 as md5::Digest>::digest(&bytes).into()));
    let id = engine.write_content(staged, |tx, staged| Ok(staged.keep(tx)?)).await.unwrap();
    drop(engine);
    assert_eq!(read_all(&world.open().await, id).await.unwrap(), bytes);
}

#[tokio::test]
async fn abandoned_uploads_give_their_space_back() {
    let world = World::new();
    let engine = world.open().await;
    let kept = keep(&engine, &body(300_000, 1)).await;
    let mut unfinished = engine.payloads().stage(false, None);
    unfinished.write(body(MIB, 2).into()).await.unwrap();
    let finished = staged(&engine, &body(MIB, 3), 70_000, None).await.unwrap();
    assert!(world.allocated() >= 2 * MIB);
    drop((unfinished, finished));
    engine.settle().await.unwrap();
    assert!(world.allocated() < 400_000);
    assert_eq!(read_all(&engine, kept).await.unwrap(), body(300_000, 1));
}

async fn refused_after_keep(engine: &Engine, error: impl Fn() -> Error + Send + 'static) {
    let staged = staged(engine, &body(MIB, 4), 70_000, None).await.unwrap();
    let outcome = engine.write_content::<PayloadId>(staged, move |tx, staged| {
        staged.keep(tx)?;
        Err(error())
    });
    outcome.await.unwrap_err();
}

#[tokio::test]
async fn bytes_kept_by_a_transaction_that_then_fails_give_their_space_back() {
    let world = World::new();
    let engine = world.open().await;
    let kept = keep(&engine, &body(300_000, 1)).await;
    refused_after_keep(&engine, || Refusal::BlobNotFound.into()).await;
    refused_after_keep(&engine, || StoreError::TooLarge { what: "a value", size: 2, bound: 1 }.into()).await;
    refused_after_keep(&engine, || panic!("a body may have bugs")).await;
    engine.settle().await.unwrap();
    assert!(world.allocated() < 400_000);
    assert_eq!(read_all(&engine, kept).await.unwrap(), body(300_000, 1));
}

#[tokio::test]
async fn kept_bytes_stay_though_nobody_waits_for_the_transaction() {
    let world = World::new();
    let engine = world.open().await;
    let staged = staged(&engine, &body(MIB, 5), 70_000, None).await.unwrap();
    let transaction = engine.write_content(staged, |tx, staged| Ok(staged.keep(tx)?));
    // Polled once, so that it is sent, and then given up.
    let _: Option<Result<PayloadId, Error>> = transaction.now_or_never();
    // Transactions are in order: when this one is answered, the other is over.
    keep(&engine, b"small").await;
    engine.settle().await.unwrap();
    let id = world.rows.all(Space::Payloads)[0].0[..8].try_into().map(u64::from_be_bytes).unwrap();
    assert_eq!(read_all(&engine, PayloadId(id)).await.unwrap(), body(MIB, 5));
}

#[test]
fn space_is_not_given_back_while_it_is_being_written() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let world = World::new();
        let engine = world.open().await;
        keep(&engine, &body(10_000, 0)).await;
        let mut stage = engine.payloads().stage(false, None);
        stage.write(body(256 * 1024, 1).into()).await.unwrap();
        // The only thread that may write is busy: the next write is sent to it and waits.
        let (free, busy) = std::sync::mpsc::channel::<()>();
        let blocker = tokio::task::spawn_blocking(move || busy.recv().unwrap_err());
        assert!(stage.write(body(256 * 1024, 2).into()).now_or_never().is_none());
        drop(stage);
        assert!(!engine.payloads().give_back().await.unwrap());
        drop(free);
        blocker.await.unwrap();
        while !engine.payloads().give_back().await.unwrap() {
            tokio::task::yield_now().await;
        }
        assert!(world.allocated() < 64 * 1024);
    });
}

#[tokio::test]
async fn a_flipped_byte_is_found_and_never_served() {
    let world = World::new();
    let engine = world.open().await;
    let bytes = body(200_000, 0);
    let id = keep(&engine, &bytes).await;
    let piece = world.pieces().remove(0);
    let file = std::fs::OpenOptions::new().write(true).open(world.segment(piece.segment)).unwrap();
    let frame = FRAME_BYTES as usize;
    for at in [0, frame - 1, frame, 3 * frame, 199_999] {
        file.write_all_at(&[!bytes[at]], piece.offset + at as u64).unwrap();
        let damaged =
            engine.payloads().read(&piece, u32::try_from(at / frame * frame).unwrap(), 10, None).await.unwrap_err();
        let expected = piece.offset + (at / frame * frame) as u64;
        assert!(matches!(damaged, Error::Storage(StoreError::Damaged { offset, .. }) if offset == expected));
        assert!(read_all(&engine, id).await.is_err());
        let other = if at < frame { 2 * FRAME_BYTES } else { 0 };
        let whole = &bytes[other as usize..other as usize + 10];
        assert_eq!(engine.payloads().read(&piece, other, 10, None).await.unwrap(), whole);
        file.write_all_at(&bytes[at..=at], piece.offset + at as u64).unwrap();
    }
    assert_eq!(read_all(&engine, id).await.unwrap(), bytes);
    file.set_len(1000).unwrap();
    engine.payloads().read(&piece, 10, 1000, None).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_uploads_roll_over_segments_and_stay_intact() {
    let world = World::with_segments_of(MIB as u64);
    let engine = world.open().await;
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (ticking, end) = (engine.clone(), std::sync::Arc::clone(&done));
    let clockwork = tokio::spawn(async move {
        while !end.load(Ordering::Acquire) {
            ticking.settle().await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    let uploads = (0..32_u8).map(|number| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let bytes = body(400_000 + usize::from(number) * 4097, number);
            drop(staged(&engine, &bytes, 90_000, None).await.unwrap());
            let id = keep(&engine, &bytes).await;
            if number % 3 == 0 {
                release(&engine, id).await;
                return None;
            }
            Some((id, bytes))
        })
    });
    let kept: Vec<_> = futures_util::future::join_all(uploads.collect::<Vec<_>>()).await;
    done.store(true, Ordering::Release);
    clockwork.await.unwrap();
    engine.settle().await.unwrap();
    assert!(world.rows.count(Space::Segments) > 4, "the segments were rolled over");
    for body in kept {
        if let Some((id, bytes)) = body.unwrap() {
            assert_eq!(read_all(&engine, id).await.unwrap(), bytes);
        }
    }
}

#[tokio::test]
async fn a_segment_is_sealed_only_when_nothing_in_it_is_pending() {
    let world = World::with_segments_of(8192);
    let engine = world.open().await;
    let held = staged(&engine, &body(8192, 0), 8192, Some(8192)).await.unwrap();
    // Each of the four writers gets two more segments.
    for seed in 0..8 {
        let id = keep(&engine, &body(8192, seed)).await;
        release(&engine, id).await;
    }
    engine.settle().await.unwrap();
    let first = world.rows.all(Space::Segments).remove(0);
    assert_eq!(first.1[..], [1, 0], "active");
    let id = engine.write_content(held, |tx, held| Ok(held.keep(tx)?)).await.unwrap();
    engine.settle().await.unwrap();
    let sealed = world.rows.all(Space::Segments).remove(0);
    assert_eq!((&sealed.0, &sealed.1[..]), (&first.0, &[1, 1][..]), "sealed");
    assert_eq!(read_all(&engine, id).await.unwrap(), body(8192, 0));
    release(&engine, id).await;
    engine.settle().await.unwrap();
    assert_ne!(world.rows.all(Space::Segments)[0].0, first.0, "an empty sealed segment is removed");
    assert_eq!(files(&world.payloads()).len(), world.rows.count(Space::Segments));
}

#[tokio::test]
async fn below_the_reserve_uploads_are_refused_but_small_bodies_are_not() {
    let mut world = World::new();
    world.reserve_bytes = u64::MAX / 2;
    let engine = world.open().await;
    let refused = staged(&engine, &body(10_000, 0), 10_000, None).await;
    assert!(matches!(refused, Err(Error::Storage(StoreError::Full))));
    assert!(staged(&engine, &body(4096, 0), 10_000, None).await.is_ok());
    drop(engine);
    world.reserve_bytes = 0;
    let engine = world.open().await;
    let id = keep(&engine, &body(10_000, 0)).await;
    assert_eq!(read_all(&engine, id).await.unwrap(), body(10_000, 0));
}

#[tokio::test]
async fn a_body_of_many_pieces_is_read_in_order() {
    let world = World::with_segments_of(64 * MIB as u64);
    let engine = world.open().await;
    // An expectation that is wrong makes pieces as small as the writes.
    let bytes = body(30 * 256 * 1024 + 77, 0);
    let staged = staged(&engine, &bytes, 256 * 1024, Some(0)).await.unwrap();
    let id = engine.write_content(staged, |tx, staged| Ok(staged.keep(tx)?)).await.unwrap();
    assert!(world.rows.count(Space::Payloads) > 1, "several chunks");
    assert_eq!(read_all(&engine, id).await.unwrap(), bytes);
}

#[tokio::test]
async fn a_body_of_known_length_lies_in_as_few_pieces_as_it_can() {
    for (length, pieces) in [(300_000, 1), (PIECE_BYTES_MAX as usize, 1), (PIECE_BYTES_MAX as usize + 1, 2)] {
        let world = World::new();
        keep(&world.open().await, &body(length, 0)).await;
        assert_eq!(world.pieces().len(), pieces, "{length}");
    }
}

#[tokio::test]
async fn references_count_and_only_the_last_that_goes_is_a_death() {
    use crate::payload::refs::{self, Target};
    let world = World::new();
    let engine = world.open().await;
    let id = keep(&engine, &body(10_000, 0)).await;
    let target = Target::payload(id);
    let counts = || (world.rows.count(Space::Refs), world.rows.count(Space::Dead));
    let retain =
        async |count| engine.write(Purpose::Grow, move |tx| Ok(refs::retain(tx, target, count)?)).await.unwrap();
    retain(2).await;
    retain(1).await;
    assert_eq!(counts(), (1, 0));
    // Several in one transaction: each sees what the ones before it wrote.
    let release_two = move |tx: &mut dyn crate::store::Tx| {
        refs::release(tx, target)?;
        Ok(refs::release(tx, target)?)
    };
    engine.write(Purpose::Free, release_two).await.unwrap();
    assert_eq!(counts(), (1, 0));
    release(&engine, id).await;
    assert_eq!(counts(), (0, 0), "one reference is no row");
    engine.settle().await.unwrap();
    assert_eq!(read_all(&engine, id).await.unwrap(), body(10_000, 0));
    let again_and_gone = move |tx: &mut dyn crate::store::Tx| {
        refs::retain(tx, target, 1)?;
        refs::release(tx, target)?;
        Ok(refs::release(tx, target)?)
    };
    engine.write(Purpose::Free, again_and_gone).await.unwrap();
    assert_eq!(counts(), (0, 1));
    engine.settle().await.unwrap();
    assert_eq!((counts(), world.rows.count(Space::Extents)), ((0, 0), 0));
}

fn lengths() -> impl Strategy<Value = usize> {
    let edges = [0, INLINE_BYTES_MAX, FRAME_BYTES as usize, 256 * 1024, PIECE_BYTES_MAX as usize];
    (prop::sample::select(edges.to_vec()), -3_i64..=3)
        .prop_map(|(edge, off)| usize::try_from(edge as i64 + off).unwrap_or(0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn bytes_written_are_those_read(length in lengths(), step in 1000_usize..600_000, off in prop::option::of(-9_i64..9)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let engine = world.open().await;
            let bytes = body(length, 0);
            let expected = off.map(|off| u64::try_from(length as i64 + off).unwrap_or(0));
            let staged = staged(&engine, &bytes, step, expected).await.unwrap();
            assert_eq!(staged.length(), length as u64);
            let id = engine.write_content(staged, |tx, staged| Ok(staged.keep(tx)?)).await.unwrap();
            assert_eq!(read_all(&engine, id).await.unwrap(), bytes);
        });
    }
}

#[tokio::test]
async fn an_upload_without_bytes_is_kept_as_nothing() {
    let world = World::new();
    let engine = world.open().await;
    let mut stage = engine.payloads().stage(true, None);
    stage.write(Bytes::new()).await.unwrap();
    let staged = stage.finish().await.unwrap();
    assert_eq!((staged.length(), staged.crc64()), (0, 0));
    let id = engine.write_content(staged, |tx, staged| Ok(staged.keep(tx)?)).await.unwrap();
    assert_eq!(read_all(&engine, id).await.unwrap(), b"");
    assert_eq!(world.rows.count(Space::Segments), 0);
}
