//! Copies of page blobs from other servers: what is put is there, what is not put is zeros, and nothing is left of a
//! copy that ends early.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test ends where it fails")]

mod support;

use lazuli_engine::blob::copy::{CopyKind, CopyRequest};
use lazuli_engine::blob::copying::CopyStatus;
use lazuli_engine::blob::kind::BlobKind;
use lazuli_engine::blob::pages::{self, PagesAsked, SequenceConditions};
use lazuli_engine::blob::pending::{self, Source};
use lazuli_engine::properties::{HttpProperties, Metadata};
use lazuli_engine::protection::Protection;
use lazuli_engine::store::Space;
use lazuli_engine::tags::Tags;
use lazuli_engine::{Engine, Error, Refusal};
use support::*;
use uuid::Uuid;

const MIB: u64 = 1024 * 1024;
const ID: Uuid = Uuid::from_u128(7);

async fn begin(engine: &Engine) {
    let request = CopyRequest {
        kind: CopyKind::Start,
        id: ID,
        url: "http://elsewhere/dev/photos/a".into(),
        http: HttpProperties::default(),
        keep_http: true,
        metadata: None,
        tags: Some(Tags::default()),
        scope: None,
        tier: None,
        protection: Protection::default(),
        seal: None,
    };
    let source = Source {
        address: "http://elsewhere/dev/photos/a?sig=secret".into(),
        version: "\"1\"".into(),
        kind: BlobKind::Page { sequence: 3 },
        length: 1024 * MIB,
        http: HttpProperties::default(),
        metadata: Metadata::default(),
    };
    let begun = pending::begin(engine, on("target"), request, source).await.unwrap();
    assert_eq!(begun.status, CopyStatus::Pending);
}

async fn part(engine: &Engine, at: u64, bytes: Vec<u8>) -> Result<bool, Error> {
    let part = staged(engine, bytes).await;
    pending::put_pages(engine, ID, at, part).await
}

fn left(engine: &Engine) -> Vec<(Space, usize)> {
    let stays = |space| matches!(space, Space::Containers | Space::Segments);
    engine.census().unwrap().into_iter().filter(|(space, _)| !stays(*space)).collect()
}

#[tokio::test]
async fn pages_come_in_order_and_the_rest_is_zeros() {
    let (engine, _) = engine().await;
    begin(&engine).await;
    assert_eq!(view(&engine, "target").await.length, 1024 * MIB);
    assert!(!part(&engine, 512, pattern(1024, 1)).await.unwrap());
    assert!(!part(&engine, MIB, pattern(100 * 512, 2)).await.unwrap());
    let under_way = pending::under_way(&engine, 10).await.unwrap();
    assert_eq!(under_way.iter().map(|copy| (copy.pages, copy.done)).collect::<Vec<_>>(), [(true, MIB + 100 * 512)]);
    for (at, length) in [(0, 512), (MIB, 512), (MIB + 99 * 512, 512), (1024 * MIB - 512, 1024)] {
        assert_eq!(refusal(part(&engine, at, pattern(length, 3)).await), Refusal::NoCopyPending, "{at}");
    }
    let bytes = staged(&engine, pattern(512, 3)).await;
    let done = MIB + 100 * 512;
    assert_eq!(refusal(pending::put(&engine, ID, done, bytes).await), Refusal::NoCopyPending, "it is of pages");
    let bytes = staged(&engine, pattern(512, 3)).await;
    let write = pages::put(&engine, on("target"), SequenceConditions::default(), 0, bytes).await;
    assert_eq!(refusal(write), Refusal::CopyPending);
    pending::complete_pages(&engine, ID).await.unwrap();
    assert_eq!(refusal(pending::complete_pages(&engine, ID).await), Refusal::NoCopyPending);
    let copied = view(&engine, "target").await;
    let copy = copied.copy.unwrap();
    assert_eq!((copied.kind, copied.length), (BlobKind::Page { sequence: 3 }, 1024 * MIB));
    assert_eq!((copy.status, copy.done, copy.total), (CopyStatus::Success, 1024 * MIB, 1024 * MIB));
    let ranges = pages::ranges(&engine, on("target"), PagesAsked::default(), None).await.unwrap();
    let ranges: Vec<_> = ranges.stretches.iter().map(|stretch| (stretch.range.first, stretch.range.length)).collect();
    assert_eq!(ranges, [(512, 1024), (MIB, 100 * 512)]);
    let expected = [vec![0; 512], pattern(1024, 1), vec![0; 512]].concat();
    assert_eq!(read_range(&engine, on("target"), Some((0, 2047))).await.unwrap(), expected);
    delete(&engine, on("target")).await.unwrap();
    engine.settle().await.unwrap();
    assert_eq!(left(&engine), []);
}

#[tokio::test]
async fn the_last_page_ends_the_copy() {
    let (engine, _) = engine().await;
    begin(&engine).await;
    assert!(part(&engine, 1024 * MIB - 512, pattern(512, 1)).await.unwrap());
    assert_eq!(view(&engine, "target").await.copy.unwrap().status, CopyStatus::Success);
}

#[tokio::test]
async fn a_copy_of_pages_that_ends_early_leaves_an_empty_blob_and_no_bytes() {
    for way in ["abort", "fail", "time", "container"] {
        let (engine, clock) = engine().await;
        begin(&engine).await;
        part(&engine, 0, pattern(100 * 512, 1)).await.unwrap();
        part(&engine, MIB, pattern(512, 2)).await.unwrap();
        match way {
            "abort" => pending::abort(&engine, on("target"), ID).await.unwrap(),
            "fail" => pending::fail(&engine, ID, "404 BlobNotFound".into()).await.unwrap(),
            "time" => clock.advance(pending::COPY_TIME_MAX + seconds(1)),
            _ => lazuli_engine::blob::container::delete(&engine, on_container("photos")).await.unwrap(),
        }
        engine.settle().await.unwrap();
        if way == "container" {
            assert_eq!(left(&engine), []);
            continue;
        }
        assert_eq!(view(&engine, "target").await.length, 0, "{way}");
        assert_eq!(refusal(part(&engine, 2 * MIB, pattern(512, 3)).await), Refusal::NoCopyPending, "{way}");
        engine.settle().await.unwrap();
        assert_eq!(left(&engine), [(Space::Blobs, 1)], "{way}");
    }
}
