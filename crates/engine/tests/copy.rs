//! Copies inside the server: what they take along, what they share, what they refuse.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test ends where it fails"
)]

mod support;

use std::sync::Arc;

use lazuli_engine::blob::blocks::BlockSource::Latest;
use lazuli_engine::blob::copy::{self, CopyKind, CopyRequest};
use lazuli_engine::blob::copying::CopyStatus;
use lazuli_engine::blob::kind::BlobKind;
use lazuli_engine::blob::object::BlobView;
use lazuli_engine::blob::pending::{self, Source};
use lazuli_engine::blob::{OnBlob, Part, Stored, Written, blocks, container, object, snapshot};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::etag::Etag;
use lazuli_engine::lease::{LeaseAction, LeaseDuration};
use lazuli_engine::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::properties::{HttpProperties, Metadata};
use lazuli_engine::store::Space;
use lazuli_engine::tags::Tags;
use lazuli_engine::tier::Tier;
use lazuli_engine::{Engine, Error, Refusal};
use proptest::prelude::*;
use support::*;
use uuid::Uuid;

const KINDS: [CopyKind; 3] = [CopyKind::Start, CopyKind::Sync, CopyKind::Put];

fn request(kind: CopyKind) -> CopyRequest {
    CopyRequest {
        kind,
        id: Uuid::from_u128(7),
        url: "http://host/dev/photos/source".into(),
        http: HttpProperties::default(),
        keep_http: true,
        metadata: None,
        tags: Some(Tags::default()),
        scope: None,
        tier: None,
        protection: lazuli_engine::protection::Protection::default(),
        seal: None,
    }
}

async fn copied(engine: &Engine, source: OnBlob, target: OnBlob, kind: CopyKind) -> Result<Written, Error> {
    copy::copy(engine, source, target, request(kind)).await
}

fn rows(engine: &Engine, space: Space) -> usize {
    engine.census().unwrap().into_iter().find(|(name, _)| *name == space).map_or(0, |(_, rows)| rows)
}

/// A blob of two blocks, with properties and metadata.
async fn source(engine: &Engine) -> Written {
    put_block(engine, on("source"), "a", pattern(70_000, 1)).await.unwrap();
    put_block(engine, on("source"), "b", pattern(5_000, 2)).await.unwrap();
    let list = vec![(Latest, block("a")), (Latest, block("b")), (Latest, block("a"))];
    let http = HttpProperties { content_type: Some("text/plain".into()), ..HttpProperties::default() };
    let stored = Stored { http, metadata: metadata_of("owner", "ann"), tags: tags("a"), ..Stored::default() };
    blocks::put_block_list(engine, on("source"), list, stored).await.unwrap()
}

#[tokio::test]
async fn a_copy_takes_content_block_list_properties_and_metadata_and_remembers_where_from() {
    for kind in KINDS {
        let (engine, _) = engine().await;
        source(&engine).await;
        put_block(&engine, on("source"), "c", pattern(9, 3)).await.unwrap();
        let bodies = rows(&engine, Space::Payloads);
        let written = copied(&engine, on("source"), on("target"), kind).await.unwrap();
        let (from, to) = (view(&engine, "source").await, view(&engine, "target").await);
        assert_eq!((to.etag, to.created), (written.etag, written.etag.committed()), "{kind:?}");
        assert_eq!((to.kind, to.length, &to.http, &to.metadata), (from.kind, from.length, &from.http, &from.metadata));
        assert_eq!(read(&engine, on("target")).await.unwrap(), read(&engine, on("source")).await.unwrap());
        let lists = blocks::get_block_list(&engine, on("target"), true, true).await.unwrap();
        let ids: Vec<_> = lists.committed.iter().map(|block| (block.id.0.as_slice(), block.length)).collect();
        assert_eq!(ids, [(&b"a"[..], 70_000), (b"b", 5_000), (b"a", 70_000)]);
        assert!(lists.uncommitted.is_empty(), "uncommitted blocks of the source are not copied");
        assert_eq!(rows(&engine, Space::Payloads), bodies, "no byte is stored twice");
        match (kind, to.copy) {
            (CopyKind::Put, state) => assert_eq!(state, None),
            (_, Some(state)) => {
                assert_eq!((state.id, state.status), (Uuid::from_u128(7), CopyStatus::Success));
                assert_eq!((state.done, state.total, state.ended), (145_000, 145_000, Some(written.etag.committed())));
                assert_eq!(state.source, "http://host/dev/photos/source");
            }
            (_, None) => panic!("{kind:?} is not remembered"),
        }
    }
}

#[tokio::test]
async fn what_is_given_replaces_what_the_source_has() {
    let (engine, _) = engine().await;
    source(&engine).await;
    let metadata = Metadata(vec![("new".into(), "1".into())]);
    let http = HttpProperties { content_language: Some("de".into()), ..HttpProperties::default() };
    for (keep_http, content_type) in [(true, Some("text/plain")), (false, None)] {
        let (metadata, http) = (Some(metadata.clone()), http.clone());
        let request = CopyRequest { metadata, http, keep_http, ..request(CopyKind::Put) };
        copy::copy(&engine, on("source"), on("target"), request).await.unwrap();
        let target = view(&engine, "target").await;
        assert_eq!(target.http.content_type.as_deref(), content_type);
        assert_eq!(target.http.content_language.as_deref(), Some("de"));
        assert_eq!(target.metadata, metadata_of("new", "1"));
    }
}

fn metadata_of(name: &str, value: &str) -> Metadata {
    Metadata(vec![(name.into(), value.into())])
}

fn tags(value: &str) -> Tags {
    Tags::new(vec![("tag".into(), value.into())]).unwrap()
}

#[tokio::test]
async fn tags_are_those_that_are_given_or_the_source_s_if_asked_for() {
    let (engine, _) = engine().await;
    source(&engine).await;
    for kind in KINDS {
        for (given, expected) in
            [(None, tags("a")), (Some(Tags::default()), Tags::default()), (Some(tags("b")), tags("b"))]
        {
            let request = CopyRequest { tags: given, ..request(kind) };
            copy::copy(&engine, on("source"), on("target"), request).await.unwrap();
            assert_eq!(lazuli_engine::blob::tags::get(&engine, on("target")).await.unwrap(), expected, "{kind:?}");
            assert_eq!(view(&engine, "target").await.tags, expected.count());
        }
    }
}

#[tokio::test]
async fn an_overwrite_keeps_the_target_s_creation_and_lease_and_drops_its_uncommitted_blocks() {
    let (engine, clock) = engine().await;
    source(&engine).await;
    let first = put(&engine, on("target"), "old").await.unwrap();
    put_block(&engine, on("target"), "x", "y").await.unwrap();
    let acquire = LeaseAction::Acquire { id: lease_id(1), duration: LeaseDuration::Infinite };
    object::lease(&engine, on("target"), acquire).await.unwrap();
    clock.advance(seconds(5));
    let refused = copied(&engine, on("source"), on("target"), CopyKind::Start).await;
    assert_eq!(refusal(refused), Refusal::LeaseIdMissing);
    copied(&engine, on("source"), with_lease(on("target"), lease_id(1)), CopyKind::Start).await.unwrap();
    let target = view(&engine, "target").await;
    assert_eq!((target.created, target.length), (first.etag.committed(), 145_000));
    assert_eq!(target.lease.duration, Some(LeaseDuration::Infinite));
    assert!(blocks::get_block_list(&engine, on("target"), false, true).await.unwrap().uncommitted.is_empty());
}

#[tokio::test]
async fn a_lease_with_an_end_admits_only_copies_that_end_with_their_request() {
    let (engine, _) = engine().await;
    source(&engine).await;
    put(&engine, on("target"), "old").await.unwrap();
    let acquire = LeaseAction::Acquire { id: lease_id(1), duration: LeaseDuration::Seconds(60) };
    object::lease(&engine, on("target"), acquire).await.unwrap();
    let target = || with_lease(on("target"), lease_id(1));
    assert_eq!(refusal(copied(&engine, on("source"), target(), CopyKind::Start).await), Refusal::LeaseNotInfinite);
    copied(&engine, on("source"), target(), CopyKind::Sync).await.unwrap();
    copied(&engine, on("source"), target(), CopyKind::Put).await.unwrap();
}

#[tokio::test]
async fn both_sides_are_judged_and_a_refused_copy_changes_nothing() {
    let (engine, _) = engine().await;
    let written = source(&engine).await;
    let stale = || if_match(on("source"), Written { etag: Etag::at(Timestamp::from_unix_seconds(1)), version: None });
    put(&engine, on("target"), "old").await.unwrap();
    engine.settle().await.unwrap();
    let before = engine.census().unwrap();
    let elsewhere = |name: &str| OnBlob::at(BlobAddress { container: at(name), blob: BlobName::parse("x").unwrap() });
    let leased = |on| with_lease(on, lease_id(9));
    let cases: [(OnBlob, OnBlob, Refusal); 8] = [
        (on("absent"), on("target"), Refusal::SourceBlobNotFound),
        (elsewhere("absent"), on("target"), Refusal::SourceContainerNotFound),
        (on("source"), elsewhere("absent"), Refusal::ContainerNotFound),
        (stale(), on("target"), Refusal::SourceConditionFailed),
        (if_absent(on("source")), on("target"), Refusal::SourceConditionFailed),
        (if_match(on("source"), written), if_absent(on("target")), Refusal::BlobExists),
        (leased(on("source")), on("target"), Refusal::LeaseAbsentOnBlob),
        (on("source"), leased(on("target")), Refusal::LeaseAbsentOnBlob),
    ];
    for kind in KINDS {
        for (source, target, expected) in cases.clone() {
            let what = format!("{kind:?} {source:?} {target:?}");
            assert_eq!(refusal(copied(&engine, source, target, kind).await), expected, "{what}");
        }
    }
    assert_eq!(engine.census().unwrap(), before);
    assert_eq!(read(&engine, on("target")).await.unwrap(), b"old");
}

#[tokio::test]
async fn a_copy_onto_itself_keeps_the_bytes_and_changes_what_is_stored_beside_them() {
    let (engine, _) = engine().await;
    let first = source(&engine).await;
    let before = read(&engine, on("source")).await.unwrap();
    let request = CopyRequest { metadata: Some(metadata_of("a", "b")), ..request(CopyKind::Start) };
    let written = copy::copy(&engine, on("source"), on("source"), request).await.unwrap();
    engine.settle().await.unwrap();
    assert_ne!(written.etag, first.etag);
    assert_eq!(read(&engine, on("source")).await.unwrap(), before);
    assert_eq!(view(&engine, "source").await.metadata, metadata_of("a", "b"));
    delete(&engine, on("source")).await.unwrap();
    engine.settle().await.unwrap();
    assert_eq!(rows(&engine, Space::Payloads) + rows(&engine, Space::Lists) + rows(&engine, Space::Refs), 0);
}

#[tokio::test]
async fn accounts_share_bytes_and_lose_nothing_of_each_other() {
    let (engine, _) = engine().await;
    source(&engine).await;
    let other = ContainerAddress {
        account: AccountName::parse("other").unwrap(),
        container: ContainerName::parse("photos").unwrap(),
    };
    container::create(&engine, other.clone(), container::NewContainer::default()).await.unwrap();
    let target = OnBlob::at(BlobAddress { container: other, blob: BlobName::parse("copy").unwrap() });
    copied(&engine, on("source"), target.clone(), CopyKind::Start).await.unwrap();
    let bytes = read(&engine, on("source")).await.unwrap();
    container::delete(&engine, on_container("photos")).await.unwrap();
    engine.settle().await.unwrap();
    assert_eq!(read(&engine, target).await.unwrap(), bytes);
}

#[tokio::test]
async fn an_empty_blob_and_a_small_one_are_copied_too() {
    for bytes in [&b""[..], b"x"] {
        let (engine, _) = engine().await;
        put(&engine, on("source"), bytes.to_vec()).await.unwrap();
        for kind in KINDS {
            copied(&engine, on("source"), on("target"), kind).await.unwrap();
            assert_eq!(read(&engine, on("target")).await.unwrap(), bytes, "{kind:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_copies_that_demand_absence_one_wins() {
    let (engine, _) = engine().await;
    for racer in 0..32 {
        put(&engine, on(&format!("source {racer}")), pattern(100, racer)).await.unwrap();
    }
    let engine = Arc::new(engine);
    let racers: Vec<_> = (0..32u8)
        .map(|racer| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let source = on(&format!("source {racer}"));
                (racer, copied(&engine, source, if_absent(on("target")), CopyKind::Start).await)
            })
        })
        .collect();
    let mut winners = Vec::new();
    for racer in racers {
        match racer.await.unwrap() {
            (racer, Ok(_)) => winners.push(racer),
            (_, answer) => assert_eq!(refusal(answer), Refusal::BlobExists),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(read(&engine, on("target")).await.unwrap(), pattern(100, winners[0]));
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u16),
    Blocks(u8, u8),
    Copy(u8, u8),
    Delete(u8),
    Settle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let blob = 0..4u8;
    let step = prop_oneof![
        (blob.clone(), 0..9_000u16).prop_map(|(blob, length)| Step::Put(blob, length)),
        (blob.clone(), 1..4u8).prop_map(|(blob, count)| Step::Blocks(blob, count)),
        (blob.clone(), blob.clone()).prop_map(|(from, to)| Step::Copy(from, to)),
        (blob.clone(), blob.clone()).prop_map(|(from, to)| Step::Copy(from, to)),
        blob.prop_map(Step::Delete),
        Just(Step::Settle),
    ];
    proptest::collection::vec(step, 1..24)
}

async fn play(steps: Vec<Step>) {
    let (engine, _) = engine().await;
    let mut model: [Option<Vec<u8>>; 4] = [const { None }; 4];
    let name = |blob: u8| on(&format!("blob {blob}"));
    for (seed, step) in (0u8..).zip(steps) {
        match step {
            Step::Put(blob, length) => {
                let bytes = pattern(length.into(), seed);
                put(&engine, name(blob), bytes.clone()).await.unwrap();
                model[usize::from(blob)] = Some(bytes);
            }
            Step::Blocks(blob, count) => {
                let ids: Vec<_> = (0..count).map(|id| id.to_string()).collect();
                let mut whole = Vec::new();
                for id in &ids {
                    let bytes = pattern(5_000, seed);
                    put_block(&engine, name(blob), id, bytes.clone()).await.unwrap();
                    whole.extend(bytes);
                }
                let list: Vec<_> = ids.iter().map(|id| (Latest, id.as_str())).collect();
                commit(&engine, name(blob), &list).await.unwrap();
                model[usize::from(blob)] = Some(whole);
            }
            Step::Copy(from, to) => {
                let answer = copied(&engine, name(from), name(to), KINDS[usize::from(seed) % 3]).await;
                match model[usize::from(from)].clone() {
                    Some(bytes) => {
                        answer.unwrap();
                        model[usize::from(to)] = Some(bytes);
                    }
                    None => assert_eq!(refusal(answer), Refusal::SourceBlobNotFound),
                }
            }
            Step::Delete(blob) => {
                let gone = delete(&engine, name(blob)).await;
                assert_eq!(gone.is_ok(), model[usize::from(blob)].take().is_some());
            }
            Step::Settle => engine.settle().await.unwrap(),
        }
    }
    engine.settle().await.unwrap();
    for (blob, bytes) in (0u8..).zip(model) {
        match bytes {
            Some(bytes) => {
                assert_eq!(read(&engine, name(blob)).await.unwrap(), bytes);
                delete(&engine, name(blob)).await.unwrap();
            }
            None => assert_eq!(refusal(read(&engine, name(blob)).await), Refusal::BlobNotFound),
        }
    }
    engine.settle().await.unwrap();
    let stays = |space| matches!(space, Space::Containers | Space::Segments);
    let left: Vec<_> = engine.census().unwrap().into_iter().filter(|(space, _)| !stays(*space)).collect();
    assert!(left.is_empty(), "{left:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_copied_and_deleted_the_bytes_are_there_as_long_as_a_blob_has_them(steps in steps()) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(play(steps));
    }
}

const REMOTE: &str = "http://elsewhere/dev/photos/a?sig=secret";

fn remote(length: u64) -> Source {
    Source {
        address: REMOTE.into(),
        version: "\"1\"".into(),
        kind: BlobKind::Block,
        length,
        http: HttpProperties { content_type: Some("text/plain".into()), ..HttpProperties::default() },
        metadata: metadata_of("owner", "ann"),
    }
}

const ID: Uuid = Uuid::from_u128(7);

async fn begin(engine: &Engine, length: u64) {
    let begun = pending::begin(engine, on("target"), request(CopyKind::Start), remote(length)).await.unwrap();
    assert_eq!(begun.status, CopyStatus::Pending);
}

async fn part(engine: &Engine, at: u64, bytes: Vec<u8>) -> Result<bool, Error> {
    let part = staged(engine, bytes).await;
    pending::put(engine, ID, at, part).await
}

fn left(engine: &Engine) -> Vec<(Space, usize)> {
    let stays = |space| matches!(space, Space::Containers | Space::Segments);
    engine.census().unwrap().into_iter().filter(|(space, _)| !stays(*space)).collect()
}

#[tokio::test]
async fn a_copy_from_elsewhere_is_an_empty_blob_until_its_last_part_has_come() {
    let (engine, clock) = engine().await;
    put(&engine, on("target"), "old").await.unwrap();
    begin(&engine, 25_000).await;
    let first = view(&engine, "target").await;
    let progress = |view: &BlobView| view.copy.clone().map(|copy| (copy.status, copy.done, copy.total));
    assert_eq!((first.length, progress(&first)), (0, Some((CopyStatus::Pending, 0, 25_000))));
    assert_eq!(first.metadata, metadata_of("owner", "ann"));
    assert_eq!(read(&engine, on("target")).await.unwrap(), b"");
    clock.advance(seconds(60));
    assert!(!part(&engine, 0, pattern(10_000, 1)).await.unwrap());
    let middle = view(&engine, "target").await;
    assert_eq!(
        (middle.length, middle.etag, progress(&middle)),
        (0, first.etag, Some((CopyStatus::Pending, 10_000, 25_000)))
    );
    let under_way = pending::under_way(&engine, 10).await.unwrap();
    assert_eq!(
        under_way.iter().map(|copy| (copy.id, copy.done, copy.address.as_str())).collect::<Vec<_>>(),
        [(ID, 10_000, REMOTE)]
    );
    for wrong in [0, 9_999, 10_001] {
        assert_eq!(refusal(part(&engine, wrong, pattern(10, 1)).await), Refusal::NoCopyPending);
    }
    assert_eq!(refusal(part(&engine, 10_000, pattern(15_001, 2)).await), Refusal::NoCopyPending);
    assert!(part(&engine, 10_000, pattern(15_000, 2)).await.unwrap());
    let last = view(&engine, "target").await;
    assert_eq!((last.length, progress(&last)), (25_000, Some((CopyStatus::Success, 25_000, 25_000))));
    assert!(last.etag != first.etag && last.copy.unwrap().ended == Some(last.etag.committed()));
    assert_eq!(read(&engine, on("target")).await.unwrap(), [pattern(10_000, 1), pattern(15_000, 2)].concat());
    assert!(pending::under_way(&engine, 10).await.unwrap().is_empty());
    delete(&engine, on("target")).await.unwrap();
    engine.settle().await.unwrap();
    assert_eq!(left(&engine), []);
}

#[tokio::test]
async fn a_copy_of_nothing_is_complete_at_once() {
    let (engine, _) = engine().await;
    let begun = pending::begin(&engine, on("target"), request(CopyKind::Start), remote(0)).await.unwrap();
    assert_eq!(begun.status, CopyStatus::Success);
    assert_eq!(view(&engine, "target").await.copy.unwrap().status, CopyStatus::Success);
    assert!(pending::under_way(&engine, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn nothing_else_may_be_done_to_a_blob_that_a_copy_goes_to() {
    let (engine, _) = engine().await;
    begin(&engine, 10).await;
    let acquire = LeaseAction::Acquire { id: lease_id(1), duration: LeaseDuration::Infinite };
    let refusals = [
        refusal(put(&engine, on("target"), "x").await),
        refusal(object::set_metadata(&engine, on("target"), Metadata::default()).await),
        refusal(object::set_http(&engine, on("target"), None).await),
        refusal(object::lease(&engine, on("target"), acquire).await),
        refusal(delete(&engine, on("target")).await),
        refusal(snapshot::take(&engine, on("target"), None).await),
        refusal(lazuli_engine::blob::tags::set(&engine, on("target"), tags("a")).await),
        refusal(lazuli_engine::blob::tiering::set(&engine, on("target"), Tier::Cool, false).await),
        refusal(copied(&engine, on("target"), on("other"), CopyKind::Start).await),
        refusal(pending::begin(&engine, on("target"), request(CopyKind::Start), remote(9)).await),
    ];
    assert_eq!(refusals, [Refusal::CopyPending; 10]);
    assert_eq!(refusal(pending::abort(&engine, on("target"), Uuid::from_u128(8)).await), Refusal::CopyIdMismatch);
    assert_eq!(refusal(pending::abort(&engine, on("absent"), ID).await), Refusal::BlobNotFound);
}

#[tokio::test]
async fn a_copy_that_ends_early_leaves_an_empty_blob_and_no_bytes() {
    for way in ["abort", "fail", "time"] {
        let (engine, clock) = engine().await;
        begin(&engine, 20_000).await;
        part(&engine, 0, pattern(9_000, 1)).await.unwrap();
        let before = view(&engine, "target").await.etag;
        let expected = match way {
            "abort" => {
                pending::abort(&engine, on("target"), ID).await.unwrap();
                (CopyStatus::Aborted, None)
            }
            "fail" => {
                pending::fail(&engine, ID, "404 BlobNotFound".into()).await.unwrap();
                (CopyStatus::Failed, Some("404 BlobNotFound".to_owned()))
            }
            _ => {
                clock.advance(pending::COPY_TIME_MAX + seconds(1));
                engine.settle().await.unwrap();
                (CopyStatus::Failed, Some("500 OperationCancelled \"The copy took longer than 14 days.\"".to_owned()))
            }
        };
        let after = view(&engine, "target").await;
        let copy = after.copy.unwrap();
        assert_eq!((copy.status, copy.description), expected, "{way}");
        assert!(after.length == 0 && after.etag != before && copy.ended == Some(after.etag.committed()), "{way}");
        assert_eq!(refusal(part(&engine, 9_000, pattern(10, 1)).await), Refusal::NoCopyPending, "{way}");
        assert_eq!(refusal(pending::abort(&engine, on("target"), ID).await), Refusal::NoCopyPending, "{way}");
        assert_eq!(refusal(pending::fail(&engine, ID, String::new()).await), Refusal::NoCopyPending, "{way}");
        put(&engine, on("target"), "").await.unwrap();
        engine.settle().await.unwrap();
        assert_eq!(left(&engine), [(Space::Blobs, 1)], "{way}");
    }
}

#[tokio::test]
async fn a_copy_goes_with_the_container_that_it_goes_to() {
    let (engine, _) = engine().await;
    begin(&engine, 20_000).await;
    part(&engine, 0, pattern(9_000, 1)).await.unwrap();
    container::delete(&engine, on_container("photos")).await.unwrap();
    engine.settle().await.unwrap();
    assert_eq!(refusal(part(&engine, 9_000, pattern(10, 1)).await), Refusal::NoCopyPending);
    engine.settle().await.unwrap();
    assert_eq!(left(&engine), []);
}

#[tokio::test]
async fn parts_without_number_make_one_content() {
    let (engine, _) = engine().await;
    begin(&engine, 3000).await;
    for number in 0..300u64 {
        let complete = part(&engine, number * 10, pattern(10, number as u8)).await.unwrap();
        assert_eq!(complete, number == 299);
    }
    let expected: Vec<u8> = (0..300u64).flat_map(|number| pattern(10, number as u8)).collect();
    assert_eq!(read(&engine, on("target")).await.unwrap(), expected);
    let lists = blocks::get_block_list(&engine, on("target"), true, true).await.unwrap();
    assert!(lists.committed.is_empty() && lists.uncommitted.is_empty());
}

#[tokio::test]
async fn a_snapshot_copied_over_its_base_is_the_base_again() {
    let (engine, clock) = engine().await;
    source(&engine).await;
    let bytes = read(&engine, on("source")).await.unwrap();
    let taken = snapshot::take(&engine, on("source"), None).await.unwrap();
    clock.advance(seconds(1));
    put(&engine, on("source"), "newer").await.unwrap();
    let old = OnBlob { part: Part::Snapshot(taken.at), ..on("source") };
    copied(&engine, old.clone(), on("source"), CopyKind::Start).await.unwrap();
    assert_eq!(read(&engine, on("source")).await.unwrap(), bytes);
    assert_eq!(read(&engine, old.clone()).await.unwrap(), bytes);
    assert_eq!(refusal(copied(&engine, on("source"), old, CopyKind::Start).await), Refusal::PartReadOnly);
    let absent = OnBlob { part: Part::Snapshot(Timestamp::from_unix_seconds(1)), ..on("source") };
    assert_eq!(refusal(copied(&engine, absent, on("source"), CopyKind::Start).await), Refusal::SourceBlobNotFound);
}

#[tokio::test]
async fn a_version_is_promoted_by_copying_it_over_the_current_one() {
    let (engine, clock) = engine().await;
    let policy = AccountPolicy { versioning: true, ..AccountPolicy::default() };
    engine.set_policies(Policies::default().with(at("photos").account, policy));
    let first = put(&engine, on("target"), pattern(9_000, 1)).await.unwrap();
    clock.advance(seconds(1));
    put(&engine, on("target"), pattern(9_000, 2)).await.unwrap();
    clock.advance(seconds(1));
    let bodies = rows(&engine, Space::Payloads);
    let version = OnBlob { part: Part::Version(first.version.unwrap()), ..on("target") };
    let promoted = copied(&engine, version.clone(), on("target"), CopyKind::Start).await.unwrap();
    assert!(promoted.version.is_some() && promoted.version != first.version);
    assert_eq!(read(&engine, on("target")).await.unwrap(), pattern(9_000, 1));
    assert_eq!(read(&engine, version).await.unwrap(), pattern(9_000, 1));
    assert_eq!(rows(&engine, Space::Payloads), bodies);
}
