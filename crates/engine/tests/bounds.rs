//! Shapes that would not fit one transaction: long names with many tags, cells of pages that were each written by
//! itself. They are done in several, and nothing of them is left.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod support;

use futures_util::future::join_all;
use lazuli_engine::blob::pages::{self, PagesAsked, SequenceConditions};
use lazuli_engine::blob::removal::{self, Snapshots};
use lazuli_engine::blob::{OnBlob, Part, Stored, container, copy, object, snapshot};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::names::AccountName;
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::properties::{HttpProperties, Metadata};
use lazuli_engine::protection::Protection;
use lazuli_engine::range::ByteRange;
use lazuli_engine::service::properties::{Change, DeleteRetention};
use lazuli_engine::service::{self, ServiceKind};
use lazuli_engine::store::Space;
use lazuli_engine::tags::{TAGS_MAX, Tags};
use lazuli_engine::{Engine, Refusal};
use support::*;
use uuid::Uuid;

const DAY: u64 = 24 * 60 * 60;

/// Keeps deleted blobs for a day, and previous versions if it is said so.
async fn keep(engine: &Engine, versioning: bool) {
    let account = || AccountName::parse("dev").unwrap();
    engine.set_policies(Policies::default().with(account(), AccountPolicy { versioning, ..AccountPolicy::default() }));
    let delete_retention = Some(DeleteRetention { days: Some(1), allow_permanent: false });
    let change = Change { delete_retention, ..Change::default() };
    service::set(engine, account(), ServiceKind::Blob, change).await.unwrap();
}

/// A name of the most bytes that one can have.
fn longest(number: usize) -> String {
    format!("{number:04}{}", "\u{10FFFF}".repeat(1020))
}

/// As much as a client can say about a blob.
fn everything() -> Stored {
    let text = |length| Some("h".repeat(length));
    let tags = (0..TAGS_MAX).map(|tag| (format!("{tag:0>128}"), "v".repeat(256))).collect();
    Stored {
        http: HttpProperties { content_type: text(1024), content_disposition: text(1024), ..HttpProperties::default() },
        metadata: Metadata(vec![("m".into(), "x".repeat(8000))]),
        tags: Tags::new(tags).unwrap(),
        ..Stored::default()
    }
}

async fn put(engine: &Engine, name: &str) {
    let content = staged(engine, "text").await;
    object::put(engine, on(name), everything(), content).await.unwrap();
}

/// Rows that are left beside those which hang on no blob.
fn left(engine: &Engine) -> Vec<(Space, usize)> {
    let stays = |space| matches!(space, Space::Containers | Space::Services | Space::Segments);
    engine.census().unwrap().into_iter().filter(|(space, _)| !stays(*space)).collect()
}

#[tokio::test]
async fn a_container_of_the_longest_names_and_tags_is_erased() {
    let (engine, _) = engine().await;
    keep(&engine, true).await;
    for number in 0..200 {
        put(&engine, &longest(number)).await;
        put(&engine, &longest(number)).await;
    }
    container::delete(&engine, on_container("photos")).await.unwrap();
    engine.settle().await.unwrap();
    assert_eq!(left(&engine), []);
}

#[tokio::test]
async fn many_versions_of_the_longest_name_are_restored() {
    let (engine, clock) = engine().await;
    keep(&engine, true).await;
    let name = longest(0);
    let mut versions: Vec<Timestamp> = Vec::new();
    for _ in 0..200 {
        put(&engine, &name).await;
        versions.extend(object::get(&engine, on(&name)).await.unwrap().version);
    }
    delete(&engine, on(&name)).await.unwrap();
    let of = |version| OnBlob { part: Part::Version(version), ..on(&name) };
    for version in &versions {
        delete(&engine, of(*version)).await.unwrap();
    }
    assert_eq!(refusal(object::get(&engine, of(versions[0])).await), Refusal::BlobNotFound);
    removal::undelete(&engine, on(&name)).await.unwrap();
    for version in &versions {
        assert_eq!(object::get(&engine, of(*version)).await.unwrap().tags, 10);
        delete(&engine, of(*version)).await.unwrap();
    }
    clock.advance(seconds(2 * DAY));
    engine.settle().await.unwrap();
    assert_eq!(left(&engine), []);
}

#[tokio::test]
async fn a_blob_of_the_longest_name_goes_with_many_snapshots() {
    let (engine, clock) = engine().await;
    keep(&engine, false).await;
    let name = longest(0);
    put(&engine, &name).await;
    let mut taken = Vec::new();
    for _ in 0..256 {
        taken.push(snapshot::take(&engine, on(&name), None).await.unwrap().at);
    }
    let deleted = removal::delete(&engine, on(&name), Snapshots::Include).await.unwrap();
    assert!(!deleted.permanent);
    let of = |snapshot| OnBlob { part: Part::Snapshot(snapshot), ..on(&name) };
    for snapshot in &taken {
        assert_eq!(refusal(object::get(&engine, of(*snapshot)).await), Refusal::BlobNotFound);
    }
    removal::undelete(&engine, on(&name)).await.unwrap();
    for snapshot in &taken {
        assert_eq!(object::get(&engine, of(*snapshot)).await.unwrap().length, 4);
    }
    removal::delete(&engine, on(&name), Snapshots::Include).await.unwrap();
    clock.advance(seconds(2 * DAY));
    engine.settle().await.unwrap();
    assert_eq!(left(&engine), []);
}

const PAGE: u64 = pages::PAGE_BYTES;
/// Pages of so many cells that all their bodies are more than a transaction takes.
const PAGES: u64 = 80 * 128;

async fn put_page(engine: &Engine, blob: &str, page: u64) {
    let content = staged(engine, vec![1; 512]).await;
    pages::put(engine, on(blob), SequenceConditions::default(), page * PAGE, content).await.unwrap();
}

async fn copied(engine: &Engine, from: &str, to: &str) {
    let request = copy::CopyRequest {
        kind: copy::CopyKind::Start,
        id: Uuid::from_u128(7),
        url: "http://here/dev/photos/a".into(),
        http: HttpProperties::default(),
        keep_http: true,
        metadata: None,
        tags: None,
        scope: None,
        tier: None,
        protection: Protection::default(),
        seal: None,
    };
    copy::copy(engine, on(from), on(to), request).await.unwrap();
}

/// How many bytes of a blob are written.
async fn written(engine: &Engine, blob: &str) -> u64 {
    let ranges = pages::ranges(engine, on(blob), PagesAsked::default(), None).await.unwrap();
    ranges.stretches.iter().map(|stretch| stretch.range.length).sum()
}

#[tokio::test]
async fn pages_written_one_by_one_are_copied_cleared_and_erased() {
    let (engine, _) = engine().await;
    pages::create(&engine, on("a"), Stored::default(), 2 * PAGES * PAGE, 0).await.unwrap();
    for first in (0..PAGES).step_by(256) {
        join_all((first..first + 256).map(|page| put_page(&engine, "a", page))).await;
    }
    for copy in ["b", "c"] {
        copied(&engine, "a", copy).await;
    }
    // The first to write goes on with the map that all share; the others get one of their own.
    for blob in ["a", "b", "c"] {
        put_page(&engine, blob, PAGES).await;
        assert_eq!(written(&engine, blob).await, (PAGES + 1) * PAGE);
    }
    let all = ByteRange { first: 0, length: PAGES * PAGE };
    pages::clear(&engine, on("b"), SequenceConditions::default(), all).await.unwrap();
    assert_eq!(written(&engine, "b").await, PAGE);
    put_page(&engine, "b", 5).await;
    assert_eq!((written(&engine, "b").await, written(&engine, "c").await), (2 * PAGE, (PAGES + 1) * PAGE));
    for blob in ["a", "b", "c"] {
        delete(&engine, on(blob)).await.unwrap();
    }
    engine.settle().await.unwrap();
    assert_eq!(left(&engine), []);
}

#[tokio::test]
async fn a_listing_of_pages_that_begins_beyond_all_blobs_is_empty() {
    let (engine, _) = engine().await;
    pages::create(&engine, on("a"), Stored::default(), 1024, 0).await.unwrap();
    put_page(&engine, "a", 0).await;
    for start in [512, 1024, u64::MAX - 512, u64::MAX - 511, u64::MAX] {
        let asked = PagesAsked { start, limit: Some(1), ..PagesAsked::default() };
        let listed = pages::ranges(&engine, on("a"), asked, None).await.unwrap();
        assert_eq!((listed.stretches, listed.next), (vec![], None), "{start}");
    }
}
