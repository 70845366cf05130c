//! Snapshots, versions, soft delete and restoring, through the engine's public functions.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod support;

use lazuli_engine::blob::append::{self, AppendConditions};
use lazuli_engine::blob::blocks::{self, BlockSource};
use lazuli_engine::blob::object::{self, BlobView};
use lazuli_engine::blob::pages::{self, SequenceConditions};
use lazuli_engine::blob::removal::{self, Deleted, Snapshots};
use lazuli_engine::blob::snapshot::{self, Taken};
use lazuli_engine::blob::{OnBlob, Part, Stored, container};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::lease::{LeaseAction, LeaseDuration};
use lazuli_engine::names::AccountName;
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::properties::Metadata;
use lazuli_engine::service::properties::{Change, DeleteRetention};
use lazuli_engine::service::{self, ServiceKind};
use lazuli_engine::store::Space;
use lazuli_engine::{Engine, Error, Refusal};
use support::*;

const DAY: u64 = 24 * 60 * 60;

fn account() -> AccountName {
    AccountName::parse("dev").unwrap()
}

fn set_policy(engine: &Engine, policy: AccountPolicy) {
    engine.set_policies(Policies::default().with(account(), policy));
}

fn versioning(engine: &Engine, versioning: bool) {
    set_policy(engine, AccountPolicy { versioning, ..AccountPolicy::default() });
}

/// Sets the retention of deleted blobs, with permanent deletion allowed.
async fn retention(engine: &Engine, days: Option<u16>) {
    let delete_retention = Some(DeleteRetention { days, allow_permanent: true });
    let change = Change { delete_retention, ..Change::default() };
    service::set(engine, account(), ServiceKind::Blob, change).await.unwrap();
}

fn part(blob: &str, part: Part) -> OnBlob {
    OnBlob { part, ..on(blob) }
}

async fn take(engine: &Engine, blob: &str) -> Taken {
    snapshot::take(engine, on(blob), None).await.unwrap()
}

async fn get(engine: &Engine, blob: &str, of: Part) -> Result<BlobView, Error> {
    object::get(engine, part(blob, of)).await
}

async fn text(engine: &Engine, blob: &str, of: Part) -> String {
    String::from_utf8(read(engine, part(blob, of)).await.unwrap()).unwrap()
}

/// Nothing of blobs, of their layers and of their bytes is left.
async fn leaves_nothing(engine: &Engine) {
    engine.settle().await.unwrap();
    let mut left = engine.census().unwrap();
    left.retain(|(space, _)| !matches!(space, Space::Segments | Space::Containers | Space::Services));
    assert_eq!(left, []);
}

#[tokio::test]
async fn a_snapshot_shows_the_blob_as_it_was_and_shares_its_bytes() {
    let (engine, clock) = engine().await;
    for (blob, bytes) in [("small", 7), ("large", 500_000)] {
        let first = pattern(bytes, 1);
        let old = put(&engine, on(blob), first.clone()).await.unwrap();
        clock.advance(seconds(2));
        let taken = take(&engine, blob).await;
        assert_eq!(taken.written, old, "the base keeps its version, and the snapshot has it too");
        put(&engine, on(blob), pattern(bytes, 2)).await.unwrap();
        let snapshot = Part::Snapshot(taken.at);
        assert_eq!(read(&engine, part(blob, snapshot)).await.unwrap(), first);
        assert_eq!(get(&engine, blob, snapshot).await.unwrap().part, snapshot);
        removal::delete(&engine, on(blob), Snapshots::Include).await.unwrap();
        assert_eq!(refusal(get(&engine, blob, snapshot).await), Refusal::BlobNotFound);
    }
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_snapshot_of_blocks_outlives_the_list_it_was_taken_of() {
    let (engine, _) = engine().await;
    for id in ["a", "b"] {
        put_block(&engine, on("x"), id, pattern(9000, id.as_bytes()[0])).await.unwrap();
    }
    commit(&engine, on("x"), &[(BlockSource::Latest, "a"), (BlockSource::Latest, "b")]).await.unwrap();
    let taken = take(&engine, "x").await;
    commit(&engine, on("x"), &[(BlockSource::Committed, "b")]).await.unwrap();
    let lists = blocks::get_block_list(&engine, part("x", Part::Snapshot(taken.at)), true, true).await.unwrap();
    assert_eq!(lists.committed.len(), 2);
    engine.settle().await.unwrap();
    let whole = [pattern(9000, b'a'), pattern(9000, b'b')].concat();
    assert_eq!(read(&engine, part("x", Part::Snapshot(taken.at))).await.unwrap(), whole);
    assert_eq!(read(&engine, on("x")).await.unwrap(), pattern(9000, b'b'));
    removal::delete(&engine, on("x"), Snapshots::Include).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn layers_of_append_and_page_blobs_stay_while_the_blob_is_written() {
    let (engine, clock) = engine().await;
    append::create(&engine, on("log"), Stored::default()).await.unwrap();
    pages::create(&engine, on("disk"), Stored::default(), 1024, 0).await.unwrap();
    let mut taken = Vec::new();
    for seed in 0..4 {
        let block = staged(&engine, pattern(5000, seed)).await;
        append::append(&engine, on("log"), AppendConditions::default(), block).await.unwrap();
        let page = staged(&engine, pattern(512, seed)).await;
        pages::put(&engine, on("disk"), SequenceConditions::default(), 512, page).await.unwrap();
        for name in ["log", "disk"] {
            taken.push((name, take(&engine, name).await.at, read(&engine, on(name)).await.unwrap()));
        }
    }
    assert_eq!(taken[6].2.len(), 20_000);
    // Half of them go, in the order that they were not taken in; the others stay as they are, and so do the blobs.
    versioning(&engine, true);
    for (name, at, _) in [&taken[2], &taken[3], &taken[4], &taken[5]] {
        delete(&engine, part(name, Part::Snapshot(*at))).await.unwrap();
    }
    engine.settle().await.unwrap();
    for (name, at, bytes) in [&taken[0], &taken[1], &taken[6], &taken[7]] {
        assert_eq!(read(&engine, part(name, Part::Snapshot(*at))).await.unwrap(), *bytes);
    }
    let last = [("log", view(&engine, "log").await), ("disk", view(&engine, "disk").await)];
    let block = staged(&engine, pattern(5000, 9)).await;
    let version = append::append(&engine, on("log"), AppendConditions::default(), block).await.unwrap().written.version;
    assert_eq!(version, None, "an append makes no version");
    append::create(&engine, on("log"), Stored::default()).await.unwrap();
    pages::create(&engine, on("disk"), Stored::default(), 512, 0).await.unwrap();
    let kept = |name| part(name, Part::Version(last[usize::from(name == "disk")].1.etag.committed()));
    assert_eq!(read(&engine, kept("disk")).await.unwrap(), taken[7].2);
    assert_eq!(refusal(read(&engine, kept("log")).await), Refusal::BlobNotFound, "the append made another state");
    container::delete(&engine, on_container("photos")).await.unwrap();
    clock.advance(seconds(DAY));
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_snapshot_with_metadata_has_its_own_version() {
    let (engine, clock) = engine().await;
    let old = put(&engine, on("x"), "1").await.unwrap();
    clock.advance(seconds(2));
    let metadata = Metadata(vec![("a".into(), "b".into())]);
    let taken = snapshot::take(&engine, on("x"), Some(metadata.clone())).await.unwrap();
    assert_ne!(taken.written.etag, old.etag);
    let shown = get(&engine, "x", Part::Snapshot(taken.at)).await.unwrap();
    assert_eq!((shown.etag, shown.metadata), (taken.written.etag, metadata));
    assert_eq!(view(&engine, "x").await.etag, old.etag);
}

#[tokio::test]
async fn snapshots_have_no_lease_and_take_none() {
    let (engine, _) = engine().await;
    put(&engine, on("x"), "1").await.unwrap();
    let id = lease_id(1);
    let acquire = LeaseAction::Acquire { id, duration: LeaseDuration::Infinite };
    object::lease(&engine, on("x"), acquire).await.unwrap();
    assert_eq!(
        refusal(snapshot::take(&engine, with_lease(on("x"), lease_id(2)), None).await),
        Refusal::LeaseMismatchOnBlob
    );
    let taken = take(&engine, "x").await;
    let snapshot = part("x", Part::Snapshot(taken.at));
    assert_eq!(refusal(read(&engine, with_lease(snapshot.clone(), id)).await), Refusal::LeaseAbsentOnBlob);
    removal::delete(&engine, snapshot, Snapshots::Refuse).await.unwrap();
    assert_eq!(refusal(delete(&engine, on("x")).await), Refusal::LeaseIdMissing);
    delete(&engine, with_lease(on("x"), id)).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_blob_with_snapshots_is_deleted_only_with_them() {
    let (engine, _) = engine().await;
    put(&engine, on("x"), "1").await.unwrap();
    let (first, second) = (take(&engine, "x").await, take(&engine, "x").await);
    put(&engine, on("x/y"), "its key begins as that of a layer would").await.unwrap();
    assert_eq!(refusal(delete(&engine, on("x")).await), Refusal::SnapshotsPresent);
    delete(&engine, part("x", Part::Snapshot(first.at))).await.unwrap();
    assert_eq!(refusal(delete(&engine, part("x", Part::Snapshot(first.at))).await), Refusal::BlobNotFound);
    assert_eq!(refusal(delete(&engine, on("x")).await), Refusal::SnapshotsPresent);
    let gone = removal::delete(&engine, on("x"), Snapshots::Only).await.unwrap();
    assert_eq!(gone, Deleted { permanent: true });
    assert_eq!(refusal(get(&engine, "x", Part::Snapshot(second.at)).await), Refusal::BlobNotFound);
    delete(&engine, on("x")).await.unwrap();
    delete(&engine, on("x/y")).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn what_is_not_the_blob_itself_is_read_only() {
    let (engine, _) = engine().await;
    put(&engine, on("x"), "1").await.unwrap();
    let snapshot = part("x", Part::Snapshot(take(&engine, "x").await.at));
    assert_eq!(refusal(put(&engine, snapshot.clone(), "2").await), Refusal::PartReadOnly);
    assert_eq!(refusal(put_block(&engine, snapshot.clone(), "a", "2").await), Refusal::PartReadOnly);
    assert_eq!(refusal(commit(&engine, snapshot.clone(), &[]).await), Refusal::PartReadOnly);
    let metadata = object::set_metadata(&engine, snapshot.clone(), Metadata::default()).await;
    assert_eq!(refusal(metadata), Refusal::PartReadOnly);
    assert_eq!(refusal(object::set_http(&engine, snapshot.clone(), None).await), Refusal::PartReadOnly);
    assert_eq!(refusal(snapshot::take(&engine, snapshot.clone(), None).await), Refusal::PartReadOnly);
    assert_eq!(refusal(removal::undelete(&engine, snapshot).await), Refusal::PartReadOnly);
}

#[tokio::test]
async fn every_write_keeps_what_it_replaces_as_a_version() {
    let (engine, clock) = engine().await;
    put(&engine, on("x"), "before").await.unwrap();
    let before = view(&engine, "x").await.etag.committed();
    versioning(&engine, true);
    clock.advance(seconds(1));
    let first = put(&engine, on("x"), "first").await.unwrap().version.unwrap();
    clock.advance(seconds(1));
    let described = object::set_metadata(&engine, on("x"), Metadata(vec![("a".into(), "b".into())])).await.unwrap();
    let set = object::set_http(&engine, on("x"), None).await.unwrap();
    assert_eq!(set.written.version, described.version, "properties make no version");
    let second = described.version.unwrap();
    put_block(&engine, on("x"), "a", "third").await.unwrap();
    let third = commit(&engine, on("x"), &[(BlockSource::Latest, "a")]).await.unwrap().version.unwrap();
    let shown = [(before, "before"), (first, "first"), (second, "first"), (third, "third")];
    for (id, bytes) in shown {
        assert_eq!(text(&engine, "x", Part::Version(id)).await, bytes);
        let view = get(&engine, "x", Part::Version(id)).await.unwrap();
        assert_eq!(view.version, Some(id));
        assert_eq!(view.part, if id == third { Part::Base } else { Part::Version(id) });
    }
    assert_eq!(get(&engine, "x", Part::Version(first)).await.unwrap().metadata, Metadata::default());
    assert_eq!(refusal(delete(&engine, part("x", Part::Version(third))).await), Refusal::VersionIsCurrent);
    assert_eq!(delete(&engine, on("x")).await.unwrap(), Deleted { permanent: false });
    assert_eq!(refusal(read(&engine, on("x")).await), Refusal::BlobNotFound);
    for (id, bytes) in shown {
        assert_eq!(text(&engine, "x", Part::Version(id)).await, bytes);
        assert_eq!(delete(&engine, part("x", Part::Version(id))).await.unwrap(), Deleted { permanent: true });
    }
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_snapshot_makes_a_version_as_well() {
    let (engine, _) = engine().await;
    versioning(&engine, true);
    let first = put(&engine, on("x"), "1").await.unwrap();
    let taken = take(&engine, "x").await;
    assert_eq!(taken.written.version, Some(taken.at));
    assert_eq!(taken.written.etag, first.etag);
    let current = view(&engine, "x").await;
    assert_eq!((current.version, current.etag), (Some(taken.at), first.etag));
    assert_eq!(text(&engine, "x", Part::Version(first.version.unwrap())).await, "1");
    assert_eq!(get(&engine, "x", Part::Snapshot(taken.at)).await.unwrap().version, None);
    // The version and the snapshot of one instant are two things, deleted or not.
    retention(&engine, Some(1)).await;
    put(&engine, on("x"), "2").await.unwrap();
    for of in [Part::Snapshot(taken.at), Part::Version(taken.at)] {
        delete(&engine, part("x", of)).await.unwrap();
        assert_eq!(refusal(get(&engine, "x", of).await), Refusal::BlobNotFound);
    }
    removal::undelete(&engine, on("x")).await.unwrap();
    for of in [Part::Snapshot(taken.at), Part::Version(taken.at)] {
        assert_eq!(text(&engine, "x", of).await, "1");
    }
}

#[tokio::test]
async fn a_version_stays_one_after_versioning_is_switched_off() {
    let (engine, _) = engine().await;
    versioning(&engine, true);
    let first = put(&engine, on("x"), "first").await.unwrap().version.unwrap();
    versioning(&engine, false);
    assert_eq!(put(&engine, on("x"), "second").await.unwrap().version, None);
    let third = put(&engine, on("x"), "third").await.unwrap();
    assert_eq!(text(&engine, "x", Part::Version(first)).await, "first");
    assert_eq!(delete(&engine, on("x")).await.unwrap(), Deleted { permanent: true });
    assert_eq!(refusal(read(&engine, part("x", Part::Version(third.etag.committed()))).await), Refusal::BlobNotFound);
    delete(&engine, part("x", Part::Version(first))).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_deleted_blob_comes_back_with_its_snapshots_until_its_time_is_over() {
    let (engine, clock) = engine().await;
    retention(&engine, Some(2)).await;
    for end in ["restored", "expired"] {
        put(&engine, on("x"), "1").await.unwrap();
        let taken = take(&engine, "x").await;
        let deleted = removal::delete(&engine, on("x"), Snapshots::Include).await.unwrap();
        assert_eq!(deleted, Deleted { permanent: false });
        assert_eq!(refusal(read(&engine, on("x")).await), Refusal::BlobNotFound);
        assert_eq!(refusal(get(&engine, "x", Part::Snapshot(taken.at)).await), Refusal::BlobNotFound);
        engine.settle().await.unwrap();
        if end == "restored" {
            clock.advance(seconds(2 * DAY - 1));
            removal::undelete(&engine, on("x")).await.unwrap();
            removal::undelete(&engine, on("x")).await.unwrap();
            assert_eq!(text(&engine, "x", Part::Base).await, "1");
            assert_eq!(text(&engine, "x", Part::Snapshot(taken.at)).await, "1");
            clock.advance(seconds(3 * DAY));
            engine.settle().await.unwrap();
            assert_eq!(text(&engine, "x", Part::Snapshot(taken.at)).await, "1");
            removal::delete(&engine, on("x"), Snapshots::Include).await.unwrap();
        }
        clock.advance(seconds(2 * DAY + 1));
        assert_eq!(
            refusal(removal::undelete(&engine, on("x")).await),
            Refusal::BlobNotFound,
            "not even before the clockwork"
        );
        leaves_nothing(&engine).await;
    }
}

#[tokio::test]
async fn an_overwritten_blob_is_kept_as_a_deleted_snapshot() {
    let (engine, clock) = engine().await;
    retention(&engine, Some(1)).await;
    put(&engine, on("x"), "1").await.unwrap();
    clock.advance(seconds(1));
    let second = put(&engine, on("x"), "2").await.unwrap();
    let snapshot = Part::Snapshot(second.etag.committed());
    assert_eq!(refusal(get(&engine, "x", snapshot).await), Refusal::BlobNotFound);
    delete(&engine, on("x")).await.unwrap();
    // The deleted blob makes room for the new one, and becomes a deleted snapshot itself.
    let third = put(&engine, on("x"), "3").await.unwrap();
    let displaced = Part::Snapshot(third.etag.committed());
    removal::undelete(&engine, on("x")).await.unwrap();
    for (of, bytes) in [(snapshot, "1"), (displaced, "2"), (Part::Base, "3")] {
        assert_eq!(text(&engine, "x", of).await, bytes);
    }
    removal::delete(&engine, on("x"), Snapshots::Include).await.unwrap();
    clock.advance(seconds(DAY + 1));
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn permanent_deletion_needs_a_deletion_before_and_leave() {
    let (engine, _) = engine().await;
    put(&engine, on("x"), "1").await.unwrap();
    let at = take(&engine, "x").await.at;
    let snapshot = part("x", Part::Snapshot(at));
    let refused = |on: &OnBlob| removal::delete_for_good(&engine, on.clone());
    assert_eq!(refusal(refused(&snapshot).await), Refusal::PermanentDeletionOff);
    retention(&engine, Some(1)).await;
    assert_eq!(refusal(refused(&snapshot).await), Refusal::NotDeletedBefore);
    assert_eq!(refusal(refused(&on("x")).await), Refusal::NotDeletedBefore);
    delete(&engine, snapshot.clone()).await.unwrap();
    assert_eq!(refused(&snapshot).await.unwrap(), Deleted { permanent: true });
    assert_eq!(refusal(refused(&snapshot).await), Refusal::BlobNotFound);
    retention(&engine, None).await;
    delete(&engine, on("x")).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_thousand_snapshots_go_at_once_and_in_bounded_steps() {
    let (engine, clock) = engine().await;
    for days in [None, Some(1)] {
        retention(&engine, days).await;
        put(&engine, on("x"), pattern(9000, 1)).await.unwrap();
        let mut taken = Vec::new();
        for _ in 0..700 {
            taken.push(take(&engine, "x").await.at);
        }
        removal::delete(&engine, on("x"), Snapshots::Only).await.unwrap();
        for at in [taken[0], taken[699]] {
            assert_eq!(refusal(get(&engine, "x", Part::Snapshot(at)).await), Refusal::BlobNotFound);
        }
        let later = take(&engine, "x").await.at;
        assert_eq!(refusal(delete(&engine, on("x")).await), Refusal::SnapshotsPresent);
        if days.is_some() {
            removal::undelete(&engine, on("x")).await.unwrap();
            assert_eq!(read(&engine, part("x", Part::Snapshot(taken[350]))).await.unwrap(), pattern(9000, 1));
            removal::delete(&engine, on("x"), Snapshots::Only).await.unwrap();
        } else {
            // A second sweep waits for the end of the first.
            removal::delete(&engine, on("x"), Snapshots::Only).await.unwrap();
        }
        assert_eq!(refusal(get(&engine, "x", Part::Snapshot(later)).await), Refusal::BlobNotFound);
        delete(&engine, on("x")).await.unwrap();
        clock.advance(seconds(2 * DAY));
        leaves_nothing(&engine).await;
    }
}

#[tokio::test]
async fn a_deleted_container_takes_all_layers_along() {
    let (engine, clock) = engine().await;
    retention(&engine, Some(1)).await;
    for name in ["x", "y"] {
        put(&engine, on(name), pattern(9000, 1)).await.unwrap();
        take(&engine, name).await;
        put(&engine, on(name), pattern(9000, 2)).await.unwrap();
        versioning(&engine, true);
        put(&engine, on(name), "3").await.unwrap();
        put(&engine, on(name), "4").await.unwrap();
        versioning(&engine, false);
    }
    removal::delete(&engine, on("y"), Snapshots::Include).await.unwrap();
    for _ in 0..300 {
        take(&engine, "x").await;
    }
    removal::delete(&engine, on("x"), Snapshots::Only).await.unwrap();
    container::delete(&engine, on_container("photos")).await.unwrap();
    engine.settle().await.unwrap();
    clock.advance(seconds(DAY));
    leaves_nothing(&engine).await;
}

/// When the deleted containers were deleted that can be restored.
async fn deleted(engine: &Engine) -> Vec<Timestamp> {
    let request = container::ListContainers {
        account: account(),
        prefix: String::new(),
        start: None,
        limit: 10,
        deleted: true,
        system: false,
    };
    let page = container::list(engine, request).await.unwrap();
    page.containers.iter().filter_map(|view| view.deleted.map(|deletion| deletion.at)).collect()
}

#[tokio::test]
async fn a_deleted_container_is_restored_under_its_instant_and_expires() {
    let (engine, clock) = engine().await;
    set_policy(&engine, AccountPolicy { container_retention_days: Some(3), ..AccountPolicy::default() });
    put(&engine, on("x"), "1").await.unwrap();
    container::delete(&engine, on_container("photos")).await.unwrap();
    assert_eq!(refusal(read(&engine, on("x")).await), Refusal::ContainerNotFound);
    create(&engine, "photos").await.unwrap();
    put(&engine, on("x"), "2").await.unwrap();
    let first = deleted(&engine).await[0];
    assert_eq!(refusal(container::restore(&engine, at("photos"), first).await), Refusal::ContainerExists);
    clock.advance(seconds(1));
    container::delete(&engine, on_container("photos")).await.unwrap();
    let both = deleted(&engine).await;
    assert_eq!((both.len(), both[0]), (2, first));
    container::restore(&engine, at("photos"), first).await.unwrap();
    assert_eq!(text(&engine, "x", Part::Base).await, "1");
    assert_eq!(refusal(container::restore(&engine, at("photos"), first).await), Refusal::ContainerNotFound);
    clock.advance(seconds(3 * DAY));
    assert_eq!(deleted(&engine).await, []);
    assert_eq!(refusal(container::restore(&engine, at("photos"), both[1]).await), Refusal::ContainerNotFound);
    delete(&engine, on("x")).await.unwrap();
    leaves_nothing(&engine).await;
}
