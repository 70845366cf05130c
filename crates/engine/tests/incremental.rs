//! Incremental copies: what they share, what of those from other servers is there before they end, and what is left.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test ends where it fails")]

mod support;

use lazuli_engine::blob::copy::{CopyKind, CopyRequest};
use lazuli_engine::blob::copying::CopyStatus;
use lazuli_engine::blob::incremental::{self, Followed, IncrementalCopy};
use lazuli_engine::blob::kind::BlobKind;
use lazuli_engine::blob::pages::{self, PagesAsked, SequenceConditions};
use lazuli_engine::blob::pending::{self, Begun, Source};
use lazuli_engine::blob::removal::{self, Snapshots};
use lazuli_engine::blob::{OnBlob, Part, Stored, Written, snapshot};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::properties::{HttpProperties, Metadata};
use lazuli_engine::protection::Protection;
use lazuli_engine::range::ByteRange;
use lazuli_engine::store::Space;
use lazuli_engine::tags::Tags;
use lazuli_engine::{Durability, Engine, Error, Options, Refusal};
use support::*;
use uuid::Uuid;

const MIB: u64 = 1024 * 1024;

async fn write(engine: &Engine, first: u64, seed: u8) {
    let content = staged(engine, pattern(100 * 512, seed)).await;
    pages::put(engine, on("source"), SequenceConditions::default(), first, content).await.unwrap();
}

async fn taken(engine: &Engine, blob: &str) -> Timestamp {
    snapshot::take(engine, on(blob), None).await.unwrap().at
}

fn part(blob: &str, at: Timestamp) -> OnBlob {
    OnBlob { part: Part::Snapshot(at), ..on(blob) }
}

async fn copied(engine: &Engine, of: Timestamp) -> Result<Written, Error> {
    let request = IncrementalCopy { id: Uuid::from_u128(7), url: "http://host/dev/photos/source".into() };
    incremental::copy(engine, part("source", of), on("target"), request).await
}

async fn made(engine: &Engine) -> Timestamp {
    view(engine, "target").await.copy.unwrap().incremental.unwrap().snapshot.unwrap()
}

fn rows(engine: &Engine, space: Space) -> usize {
    engine.census().unwrap().into_iter().find(|(name, _)| *name == space).map_or(0, |(_, rows)| rows)
}

#[tokio::test]
async fn copies_share_every_page_and_leave_nothing_behind() {
    for versioning in [false, true] {
        let (engine, _) = engine().await;
        let policy = AccountPolicy { versioning, ..AccountPolicy::default() };
        engine.set_policies(Policies::default().with(at("photos").account, policy));
        pages::create(&engine, on("source"), Stored::default(), 1024 * MIB, 3).await.unwrap();
        let mut generations = Vec::new();
        for seed in 0..4 {
            write(&engine, u64::from(seed % 3) * MIB, seed).await;
            let of = taken(&engine, "source").await;
            let before = (rows(&engine, Space::Pages), rows(&engine, Space::Payloads));
            copied(&engine, of).await.unwrap();
            assert_eq!((rows(&engine, Space::Pages), rows(&engine, Space::Payloads)), before, "no page is copied");
            generations.push((of, made(&engine).await));
        }
        write(&engine, 0, 9).await;
        for (of, made) in &generations {
            for first in [0, MIB, 2 * MIB] {
                let range = Some((first, first + 100 * 512));
                let (has, had) = (part("target", *made), part("source", *of));
                assert_eq!(
                    read_range(&engine, has, range).await.unwrap(),
                    read_range(&engine, had, range).await.unwrap()
                );
            }
        }
        // What stays of the target is read after its source is gone.
        removal::delete(&engine, on("source"), Snapshots::Include).await.unwrap();
        engine.settle().await.unwrap();
        let last = part("target", generations.last().unwrap().1);
        assert_eq!(read_range(&engine, last, Some((0, 100 * 512 - 1))).await.unwrap(), pattern(100 * 512, 3));
        removal::delete(&engine, on("target"), Snapshots::Include).await.unwrap();
        if versioning {
            continue;
        }
        engine.settle().await.unwrap();
        let left = engine.census().unwrap();
        let only = |(space, _): &(Space, usize)| matches!(space, Space::Containers | Space::Segments);
        assert!(left.iter().all(only), "{left:?}");
    }
}

const CELL: u64 = 64 * 1024;

/// The snapshot of a blob of another server that was taken so many seconds after others.
fn elsewhere(blob: &str, second: u64) -> Followed {
    Followed::elsewhere(&format!("http://elsewhere/dev/photos/{blob}"), instant(second))
}

fn instant(second: u64) -> Timestamp {
    Timestamp::from_unix_seconds(1_700_000_000 + second)
}

const fn id(second: u64) -> Uuid {
    Uuid::from_u128(second as u128)
}

fn described(length: u64) -> Source {
    Source {
        address: "http://elsewhere/dev/photos/source?sig=secret".into(),
        version: "\"1\"".into(),
        kind: BlobKind::Page { sequence: 3 },
        length,
        http: HttpProperties { content_type: Some(format!("of/{length}")), ..HttpProperties::default() },
        metadata: Metadata::default(),
    }
}

async fn begun_of(engine: &Engine, followed: Followed, number: u64, source: Source) -> Result<Begun, Error> {
    let request = IncrementalCopy { id: id(number), url: "http://elsewhere/dev/photos/source".into() };
    incremental::begin(engine, on("target"), request, followed, source).await
}

/// Begins to copy the snapshot of that second, under its number.
async fn begun(engine: &Engine, second: u64, length: u64) -> Result<Begun, Error> {
    begun_of(engine, elsewhere("source", second), second, described(length)).await
}

async fn come(engine: &Engine, second: u64, at: u64, seed: u8) -> Result<bool, Error> {
    let part = staged(engine, pattern(2 * 512, seed)).await;
    pending::put_pages(engine, id(second), at, part).await
}

async fn clear(engine: &Engine, second: u64, first: u64, length: u64) -> Result<(), Error> {
    pending::clear_pages(engine, id(second), ByteRange { first, length }).await
}

/// What a copy under way began as, and how far it came.
async fn under_way(engine: &Engine) -> Vec<(Option<Timestamp>, u64)> {
    pending::under_way(engine, 10).await.unwrap().iter().map(|copy| (copy.since, copy.done)).collect()
}

/// The seeds of the parts of a snapshot of the target; 0 where there are zeros.
async fn seeds(engine: &Engine, at: Timestamp, firsts: &[u64]) -> Vec<u8> {
    let mut seeds = Vec::new();
    for first in firsts {
        let bytes = read_range(engine, part("target", at), Some((*first, first + 2 * 512 - 1))).await.unwrap();
        let seed = (0..9).find(|seed| bytes == if *seed == 0 { vec![0; 2 * 512] } else { pattern(2 * 512, *seed) });
        seeds.push(seed.unwrap());
    }
    seeds
}

fn left(engine: &Engine) -> Vec<(Space, usize)> {
    let stays = |space| matches!(space, Space::Containers | Space::Segments);
    engine.census().unwrap().into_iter().filter(|(space, _)| !stays(*space)).collect()
}

async fn leaves_nothing(engine: &Engine) {
    removal::delete(engine, on("target"), Snapshots::Include).await.unwrap();
    engine.settle().await.unwrap();
    assert_eq!(left(engine), []);
}

#[tokio::test]
async fn a_copy_from_elsewhere_begins_as_what_the_last_one_made() {
    let (engine, _) = engine().await;
    let first = begun(&engine, 1, 64 * MIB).await.unwrap();
    assert_eq!(first.status, CopyStatus::Pending);
    let target = view(&engine, "target").await;
    assert_eq!((target.length, target.http.content_type), (64 * MIB, Some("of/67108864".into())));
    assert_eq!(target.copy.unwrap().incremental.unwrap().snapshot, None);
    assert_eq!(under_way(&engine).await, [(None, 0)]);
    for number in 0..200 {
        assert!(!come(&engine, 1, number * CELL, 1).await.unwrap());
    }
    pending::complete_pages(&engine, id(1)).await.unwrap();
    let made_first = made(&engine).await;
    assert_ne!(view(&engine, "target").await.etag, first.written.etag);
    let rows_before = (rows(&engine, Space::Pages), rows(&engine, Space::Small));
    assert_eq!(rows_before, (200, 200));

    begun(&engine, 2, 80 * MIB).await.unwrap();
    assert_eq!(under_way(&engine).await, [(Some(instant(1)), 0)]);
    assert_eq!(made(&engine).await, made_first, "the last one stays until this one is complete");
    assert_eq!(view(&engine, "target").await.length, 64 * MIB);
    assert!(!come(&engine, 2, 0, 2).await.unwrap());
    // More than one transaction clears, so that the next write has to wait for the rest of it.
    clear(&engine, 2, 2 * CELL, 198 * CELL).await.unwrap();
    assert_eq!(under_way(&engine).await, [(Some(instant(1)), 200 * CELL)]);
    assert_eq!(refusal(clear(&engine, 2, 199 * CELL, 512).await), Refusal::NoCopyPending);
    assert_eq!(refusal(come(&engine, 2, 0, 3).await), Refusal::NoCopyPending);
    assert_eq!(refusal(clear(&engine, 2, 80 * MIB - 512, 1024).await), Refusal::NoCopyPending);
    assert!(!come(&engine, 2, 70 * MIB, 3).await.unwrap());
    clear(&engine, 2, 80 * MIB - 512, 512).await.unwrap();
    pending::complete_pages(&engine, id(2)).await.unwrap();
    let made_second = made(&engine).await;
    assert_eq!(view(&engine, "target").await.length, 80 * MIB);
    let firsts = [0, CELL, 2 * CELL, 199 * CELL];
    assert_eq!(seeds(&engine, made_first, &firsts).await, [1, 1, 1, 1]);
    assert_eq!(seeds(&engine, made_second, &firsts).await, [2, 1, 0, 0]);
    assert_eq!(seeds(&engine, made_second, &[70 * MIB]).await, [3]);
    let previous = Some(part("target", made_first));
    let asked = pages::ranges(&engine, part("target", made_second), PagesAsked::default(), previous).await.unwrap();
    let differ: Vec<_> =
        asked.stretches.iter().filter(|stretch| !stretch.cleared).map(|stretch| stretch.range.first).collect();
    assert_eq!((differ, asked.stretches.len()), (vec![0, 70 * MIB], 200));

    // What is shared is not taken away with the snapshots that came before.
    removal::delete(&engine, part("target", made_first), Snapshots::Refuse).await.unwrap();
    engine.settle().await.unwrap();
    assert_eq!(seeds(&engine, made_second, &firsts).await, [2, 1, 0, 0]);
    assert_eq!((rows_before.1, rows(&engine, Space::Small)), (200, 3));
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_copy_that_ends_early_takes_no_snapshot_and_the_next_one_goes_on_from_the_last() {
    for way in ["abort", "fail", "time", "over", "container"] {
        let (engine, clock) = engine().await;
        let end = async |second: u64| match way {
            "abort" => pending::abort(&engine, on("target"), id(second)).await.unwrap(),
            "fail" => pending::fail(&engine, id(second), "404 BlobNotFound".into()).await.unwrap(),
            "time" => {
                clock.advance(pending::COPY_TIME_MAX + seconds(1));
                engine.settle().await.unwrap();
            }
            "over" => {
                pending::start_over(&engine, id(second)).await.unwrap();
                assert_eq!(under_way(&engine).await, [(None, 0)]);
                come(&engine, second, CELL, 4).await.unwrap();
                pending::abort(&engine, on("target"), id(second)).await.unwrap();
            }
            _ => lazuli_engine::blob::container::delete(&engine, on_container("photos")).await.unwrap(),
        };
        begun(&engine, 1, MIB).await.unwrap();
        come(&engine, 1, 0, 1).await.unwrap();
        if way != "container" {
            end(1).await;
            let failed = view(&engine, "target").await;
            assert_eq!((failed.length, failed.copy.unwrap().incremental.unwrap().snapshot), (0, None), "{way}");
            begun_of(&engine, elsewhere("source", 1), 2, described(MIB)).await.unwrap();
            assert_eq!(view(&engine, "target").await.length, MIB);
            come(&engine, 2, 0, 1).await.unwrap();
            pending::complete_pages(&engine, id(2)).await.unwrap();
        }
        let last = if way == "container" { None } else { Some(made(&engine).await) };
        if last.is_some() {
            begun(&engine, 3, MIB).await.unwrap();
            come(&engine, 3, 0, 3).await.unwrap();
            come(&engine, 3, CELL, 3).await.unwrap();
        }
        end(if last.is_some() { 3 } else { 1 }).await;
        let Some(last) = last else {
            engine.settle().await.unwrap();
            assert_eq!(left(&engine), []);
            continue;
        };
        assert_eq!(refusal(come(&engine, 3, MIB / 2, 3).await), Refusal::NoCopyPending, "{way}");
        let target = view(&engine, "target").await;
        assert_eq!((target.length, made(&engine).await), (MIB, last), "{way}");
        assert_ne!(target.copy.unwrap().status, CopyStatus::Success);
        assert_eq!(seeds(&engine, last, &[0, CELL]).await, [1, 0], "{way}");
        // Whatever is still to be erased of the one that ended.
        begun_of(&engine, elsewhere("source", 3), 4, described(MIB)).await.unwrap();
        assert_eq!(under_way(&engine).await, [(Some(instant(1)), 0)], "{way}");
        come(&engine, 4, CELL, 4).await.unwrap();
        assert!(come(&engine, 4, MIB - 1024, 4).await.unwrap(), "the last page ends it");
        assert_eq!(seeds(&engine, made(&engine).await, &[0, CELL, MIB - 1024]).await, [1, 4, 4], "{way}");
        assert_eq!(rows(&engine, Space::Snapshots), 2, "{way}");
        leaves_nothing(&engine).await;
    }
}

#[tokio::test]
async fn a_copy_goes_on_in_a_map_of_its_own_where_another_blob_wrote_into_the_shared_one() {
    let (engine, _) = engine().await;
    begun(&engine, 1, MIB).await.unwrap();
    for first in [0, CELL, 2 * CELL] {
        come(&engine, 1, first, 1).await.unwrap();
    }
    pending::complete_pages(&engine, id(1)).await.unwrap();
    let first = made(&engine).await;
    let request = CopyRequest {
        kind: CopyKind::Start,
        id: id(9),
        url: "http://host/dev/photos/target".into(),
        http: HttpProperties::default(),
        keep_http: true,
        metadata: None,
        tags: Some(Tags::default()),
        scope: None,
        tier: None,
        protection: Protection::default(),
        seal: None,
    };
    lazuli_engine::blob::copy::copy(&engine, part("target", first), on("source"), request).await.unwrap();
    write(&engine, 0, 8).await;
    begun(&engine, 2, MIB).await.unwrap();
    assert_eq!(under_way(&engine).await, [(Some(instant(1)), 0)]);
    clear(&engine, 2, 0, 1024).await.unwrap();
    come(&engine, 2, CELL, 2).await.unwrap();
    pending::complete_pages(&engine, id(2)).await.unwrap();
    let firsts = [0, CELL, 2 * CELL];
    assert_eq!(seeds(&engine, first, &firsts).await, [1, 1, 1]);
    assert_eq!(seeds(&engine, made(&engine).await, &firsts).await, [0, 2, 1]);
    assert_eq!(read_range(&engine, on("source"), Some((0, 100 * 512 - 1))).await.unwrap(), pattern(100 * 512, 8));
    delete(&engine, on("source")).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn only_what_follows_the_same_blob_and_is_newer_is_begun() {
    let (engine, _) = engine().await;
    let block = Source { kind: BlobKind::Block, ..described(512) };
    let refused = begun_of(&engine, elsewhere("source", 1), 1, block).await;
    assert_eq!(refusal(refused), Refusal::SourceKindMismatch);
    // Of nothing there is nothing to wait for.
    assert_eq!(begun(&engine, 5, 0).await.unwrap().status, CopyStatus::Success);
    assert_eq!((under_way(&engine).await, view(&engine, "target").await.length), (vec![], 0));
    begun(&engine, 6, 2 * MIB).await.unwrap();
    assert_eq!(under_way(&engine).await, [(Some(instant(5)), 0)]);
    for second in [6, 7] {
        assert_eq!(refusal(begun(&engine, second, MIB).await), Refusal::CopyPending);
    }
    come(&engine, 6, MIB, 6).await.unwrap();
    pending::complete_pages(&engine, id(6)).await.unwrap();
    put(&engine, on("block"), "x").await.unwrap();
    pages::create(&engine, on("disk"), Stored::default(), 512, 0).await.unwrap();
    let cases = [
        ("target", elsewhere("source", 6), Refusal::SourceEarlier),
        ("target", elsewhere("source", 5), Refusal::SourceEarlier),
        ("target", elsewhere("other", 7), Refusal::SourceDiffers),
        ("disk", elsewhere("source", 7), Refusal::SourceDiffers),
        ("block", elsewhere("source", 7), Refusal::BlobKindMismatch),
    ];
    for (target, followed, expected) in cases {
        let checked = incremental::check(&engine, &on(target), followed);
        assert_eq!(refusal(checked), expected, "{target} {followed:?}");
    }
    // Behind the end of a source that shrank nothing is told: it is read whole.
    begun(&engine, 7, MIB).await.unwrap();
    assert_eq!(under_way(&engine).await, [(None, 0)]);
    pending::complete_pages(&engine, id(7)).await.unwrap();
    begun(&engine, 8, 2 * MIB).await.unwrap();
    pending::complete_pages(&engine, id(8)).await.unwrap();
    assert_eq!(seeds(&engine, made(&engine).await, &[MIB]).await, [0]);
    for blob in ["block", "disk"] {
        delete(&engine, on(blob)).await.unwrap();
    }
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn an_engine_that_opens_again_has_the_copy_as_far_as_it_came() {
    let directory = tempfile::tempdir().unwrap();
    let open = async || {
        let options =
            Options { durability: Durability::Process, reserve_bytes: 0, ..Options::new(directory.path(), clock()) };
        Engine::open(options).await.unwrap()
    };
    let engine = open().await;
    create(&engine, "photos").await.unwrap();
    begun(&engine, 1, MIB).await.unwrap();
    come(&engine, 1, 0, 1).await.unwrap();
    engine.close().await;
    let engine = open().await;
    assert_eq!(under_way(&engine).await, [(None, 1024)]);
    come(&engine, 1, CELL, 1).await.unwrap();
    pending::complete_pages(&engine, id(1)).await.unwrap();
    begun(&engine, 2, MIB).await.unwrap();
    come(&engine, 2, 0, 2).await.unwrap();
    engine.close().await;
    let engine = open().await;
    assert_eq!(under_way(&engine).await, [(Some(instant(1)), 1024)]);
    let first = made(&engine).await;
    come(&engine, 2, 2 * CELL, 2).await.unwrap();
    pending::complete_pages(&engine, id(2)).await.unwrap();
    engine.close().await;
    let engine = open().await;
    let firsts = [0, CELL, 2 * CELL];
    assert_eq!(seeds(&engine, first, &firsts).await, [1, 1, 0]);
    assert_eq!(seeds(&engine, made(&engine).await, &firsts).await, [2, 1, 2]);
    leaves_nothing(&engine).await;
}
