//! Tiers, protection and expiry, through the engine's public functions.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod support;

use lazuli_engine::blob::blocks::BlockSource;
use lazuli_engine::blob::listing::{self, Entry, ListBlobs, Shown};
use lazuli_engine::blob::object::{self, BlobView};
use lazuli_engine::blob::removal::{self, Deleted, Snapshots};
use lazuli_engine::blob::tags::{self, FindBlobs};
use lazuli_engine::blob::{
    OnBlob, OnContainer, Part, Stored, Written, blocks, container, expiring, protecting, snapshot, tiering,
};
use lazuli_engine::clock::{Clock as _, HeldClock, Timestamp};
use lazuli_engine::expiry::ExpiryOption;
use lazuli_engine::lease::{LeaseAction, LeaseDuration};
use lazuli_engine::names::AccountName;
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::properties::{HttpProperties, Metadata};
use lazuli_engine::protection::{ImmutabilityPolicy, Protection};
use lazuli_engine::service::properties::{Change, DeleteRetention};
use lazuli_engine::service::{self, ServiceKind};
use lazuli_engine::store::Space;
use lazuli_engine::tags::{Comparison, Tags, Term};
use lazuli_engine::tier::{REHYDRATION, REHYDRATION_IN_HASTE, Tier, TierState};
use lazuli_engine::{Engine, Error, Options, Refusal};
use support::*;

const DAY: u64 = 24 * 60 * 60;

fn account() -> AccountName {
    AccountName::parse("dev").unwrap()
}

fn policies(versioning: bool) -> Policies {
    Policies::default().with(account(), AccountPolicy { versioning, immutability: true, ..AccountPolicy::default() })
}

/// An engine whose blobs can be protected.
async fn protecting_engine(versioning: bool) -> (Engine, std::sync::Arc<HeldClock>) {
    let (engine, clock) = engine().await;
    engine.set_policies(policies(versioning));
    (engine, clock)
}

/// Keeps deleted blobs for a day.
async fn retain(engine: &Engine) {
    let delete_retention = Some(DeleteRetention { days: Some(1), allow_permanent: true });
    let change = Change { delete_retention, ..Change::default() };
    service::set(engine, account(), ServiceKind::Blob, change).await.unwrap();
}

fn part(blob: &str, part: Part) -> OnBlob {
    OnBlob { part, ..on(blob) }
}

async fn set_tier(engine: &Engine, blob: &str, tier: Tier) -> Result<TierState, Error> {
    tiering::set(engine, on(blob), tier, false).await
}

async fn hold(engine: &Engine, on: OnBlob, held: bool) {
    protecting::set_hold(engine, on, held).await.unwrap();
}

async fn protect(engine: &Engine, on: OnBlob, until: Timestamp, locked: bool) -> Result<(), Error> {
    protecting::set_policy(engine, on, ImmutabilityPolicy { until, locked }).await
}

async fn put_as(engine: &Engine, blob: &str, stored: Stored) -> Result<Written, Error> {
    let content = staged(engine, "new").await;
    object::put(engine, on(blob), stored, content).await
}

async fn delete_all(engine: &Engine, blob: &str) -> Result<Deleted, Error> {
    removal::delete(engine, on(blob), Snapshots::Include).await
}

async fn set_metadata(engine: &Engine, blob: &str) -> Result<Written, Error> {
    object::set_metadata(engine, on(blob), Metadata(vec![("k".into(), "v".into())])).await
}

async fn set_http(engine: &Engine, blob: &str) -> Result<Written, Error> {
    object::set_http(engine, on(blob), Some(HttpProperties::default())).await.map(|set| set.written)
}

async fn take(engine: &Engine, blob: &str) -> Part {
    Part::Snapshot(snapshot::take(engine, on(blob), None).await.unwrap().at)
}

async fn delete_container(engine: &Engine) -> Result<(), Error> {
    container::delete(engine, on_container("photos")).await
}

async fn list(engine: &Engine, delimiter: Option<&str>, shown: Shown) -> Vec<Entry> {
    let request = ListBlobs {
        container: at("photos"),
        prefix: String::new(),
        delimiter: delimiter.map(str::to_owned),
        from: None,
        before: None,
        start: None,
        limit: 100,
        shown,
        tags: false,
    };
    listing::list(engine, request).await.unwrap().entries
}

async fn names(engine: &Engine) -> Vec<String> {
    let name = |entry: &Entry| match entry {
        Entry::Blob(blob) | Entry::VersionsOnly(blob) => blob.name.to_string(),
        Entry::Uncommitted(name) => format!("{name} uncommitted"),
        Entry::Prefix(prefix) => prefix.clone(),
    };
    list(engine, None, Shown { uncommitted: true, ..Shown::default() }).await.iter().map(name).collect()
}

/// Nothing of blobs, of their layers and of their bytes is left.
async fn leaves_nothing(engine: &Engine) {
    engine.settle().await.unwrap();
    let mut left = engine.census().unwrap();
    left.retain(|(space, _)| !matches!(space, Space::Segments | Space::Containers | Space::Services));
    assert_eq!(left, []);
}

#[tokio::test]
async fn a_tier_changes_neither_version_nor_content() {
    let (engine, clock) = engine().await;
    let written = put(&engine, on("a"), "one").await.unwrap();
    assert_eq!(view(&engine, "a").await.tier, None);
    clock.advance(seconds(5));
    let set = set_tier(&engine, "a", Tier::Cool).await.unwrap();
    assert_eq!((set.tier, set.rehydration), (Tier::Cool, None));
    let blob = view(&engine, "a").await;
    assert_eq!((blob.etag, blob.tier), (written.etag, Some(set)));
    assert!(set.changed >= written.etag.committed().after(seconds(4)));
    assert_eq!(read(&engine, on("a")).await.unwrap(), b"one");
    let stored = Stored { tier: Some(Tier::Cold), ..Stored::default() };
    put_as(&engine, "a", stored).await.unwrap();
    assert_eq!(view(&engine, "a").await.tier.unwrap().tier, Tier::Cold);
    put(&engine, on("a"), "two").await.unwrap();
    assert_eq!(view(&engine, "a").await.tier, None, "a new blob has the account's default");
    let premium = Stored { tier: Some(Tier::Premium(10)), ..Stored::default() };
    assert_eq!(refusal(put_as(&engine, "a", premium).await), Refusal::TierNotForKind);
    assert_eq!(refusal(set_tier(&engine, "a", Tier::Premium(10)).await), Refusal::TierNotForKind);
    assert_eq!(refusal(set_tier(&engine, "b", Tier::Cool).await), Refusal::BlobNotFound);
}

#[tokio::test]
async fn an_archived_blob_can_be_seen_deleted_and_overwritten_but_neither_read_nor_changed() {
    let (engine, _) = engine().await;
    put_block(&engine, on("a"), "1", "one").await.unwrap();
    commit(&engine, on("a"), &[(BlockSource::Uncommitted, "1")]).await.unwrap();
    let at = take(&engine, "a").await;
    set_tier(&engine, "a", Tier::Archive).await.unwrap();
    let archived = Refusal::BlobArchived;
    assert_eq!(refusal(read(&engine, on("a")).await), archived);
    assert_eq!(refusal(set_metadata(&engine, "a").await), archived);
    assert_eq!(refusal(set_http(&engine, "a").await), archived);
    assert_eq!(refusal(snapshot::take(&engine, on("a"), None).await), archived);
    assert_eq!(refusal(commit(&engine, on("a"), &[(BlockSource::Committed, "1")]).await), archived);
    assert_eq!(refusal(commit(&engine, on("a"), &[(BlockSource::Latest, "1")]).await), archived);
    assert_eq!(view(&engine, "a").await.length, 3);
    assert_eq!(read(&engine, part("a", at)).await.unwrap(), b"one", "the snapshot stayed where it was");
    tags::set(&engine, on("a"), Tags::new(vec![("k".into(), "v".into())]).unwrap()).await.unwrap();
    assert_eq!(tags::get(&engine, on("a")).await.unwrap().get("k"), Some("v"));
    put_block(&engine, on("a"), "2", "two").await.unwrap();
    commit(&engine, on("a"), &[(BlockSource::Latest, "2")]).await.unwrap();
    assert_eq!(read(&engine, on("a")).await.unwrap(), b"two");
    tiering::set(&engine, part("a", at), Tier::Archive, false).await.unwrap();
    assert_eq!(refusal(read(&engine, part("a", at)).await), archived);
    set_tier(&engine, "a", Tier::Archive).await.unwrap();
    delete_all(&engine, "a").await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_rehydration_ends_at_its_instant_and_may_be_hurried() {
    let (engine, clock) = engine().await;
    for blob in ["slow", "fast"] {
        put(&engine, on(blob), "one").await.unwrap();
        set_tier(&engine, blob, Tier::Archive).await.unwrap();
        let way = set_tier(&engine, blob, Tier::Cool).await.unwrap();
        assert_eq!(way.tier, Tier::Archive);
        assert!(way.rehydration.is_some_and(|way| way.target == Tier::Cool && !way.high_priority));
        assert_eq!(refusal(set_tier(&engine, blob, Tier::Hot).await), Refusal::Rehydrating);
        assert_eq!(refusal(set_tier(&engine, blob, Tier::Archive).await), Refusal::Rehydrating);
    }
    tiering::set(&engine, on("fast"), Tier::Cool, true).await.unwrap();
    assert_eq!(refusal(set_tier(&engine, "fast", Tier::Cool).await), Refusal::Rehydrating);
    assert_eq!(refusal(read(&engine, on("fast")).await), Refusal::BlobArchived);
    clock.advance(REHYDRATION_IN_HASTE + seconds(1));
    assert_eq!(read(&engine, on("fast")).await.unwrap(), b"one");
    assert_eq!(refusal(read(&engine, on("slow")).await), Refusal::BlobArchived);
    clock.advance(REHYDRATION);
    let there = view(&engine, "slow").await.tier.unwrap();
    assert_eq!((there.tier, there.rehydration), (Tier::Cool, None));
    assert_eq!(read(&engine, on("slow")).await.unwrap(), b"one");
    assert_eq!(set_tier(&engine, "slow", Tier::Hot).await.unwrap().rehydration, None);
}

#[tokio::test]
async fn a_tier_needs_no_lease_but_a_named_one_is_held() {
    let (engine, _) = engine().await;
    put(&engine, on("a"), "one").await.unwrap();
    let lease = LeaseAction::Acquire { id: lease_id(1), duration: LeaseDuration::Infinite };
    object::lease(&engine, on("a"), lease).await.unwrap();
    set_tier(&engine, "a", Tier::Cool).await.unwrap();
    tiering::set(&engine, with_lease(on("a"), lease_id(1)), Tier::Hot, false).await.unwrap();
    let other = tiering::set(&engine, with_lease(on("a"), lease_id(2)), Tier::Hot, false).await;
    assert_eq!(refusal(other), Refusal::LeaseMismatchOnBlob);
}

#[tokio::test]
async fn a_deletion_is_judged_by_when_the_tier_was_set() {
    let (engine, clock) = engine().await;
    put(&engine, on("a"), "one").await.unwrap();
    clock.advance(seconds(10));
    let between = clock.now();
    clock.advance(seconds(10));
    let mut if_set = on("a");
    if_set.conditions.tier_modified_since = Some(between);
    assert_eq!(
        refusal(delete(&engine, if_set.clone()).await),
        Refusal::ConditionFailed,
        "never set: as old as the blob"
    );
    set_tier(&engine, "a", Tier::Cool).await.unwrap();
    let mut if_not = on("a");
    if_not.conditions.tier_unmodified_since = Some(between);
    assert_eq!(refusal(delete(&engine, if_not).await), Refusal::ConditionFailed);
    delete(&engine, if_set).await.unwrap();
}

#[tokio::test]
async fn what_is_protected_is_neither_overwritten_nor_changed_nor_deleted() {
    let (engine, clock) = protecting_engine(false).await;
    let soon = clock.now().after(seconds(100));
    let written = put(&engine, on("a"), "one").await.unwrap();
    put(&engine, on("b"), "one").await.unwrap();
    protect(&engine, on("a"), soon, false).await.unwrap();
    hold(&engine, on("b"), true).await;
    assert_eq!(view(&engine, "a").await.etag, written.etag);
    for soft_delete in [false, true] {
        if soft_delete {
            retain(&engine).await;
        }
        for (blob, expected) in [("a", Refusal::BlobImmutable), ("b", Refusal::BlobHeld)] {
            assert_eq!(refusal(put(&engine, on(blob), "two").await), expected);
            assert_eq!(refusal(object::check_put(&engine, &on(blob))), expected);
            assert_eq!(refusal(commit(&engine, on(blob), &[]).await), expected);
            assert_eq!(refusal(set_metadata(&engine, blob).await), expected);
            assert_eq!(refusal(set_http(&engine, blob).await), expected);
            assert_eq!(refusal(delete(&engine, on(blob)).await), expected);
            assert_eq!(refusal(delete_all(&engine, blob).await), expected);
            assert_eq!(refusal(expiring::set(&engine, on(blob), ExpiryOption::Never).await), expected);
            assert_eq!(refusal(delete_container(&engine).await), Refusal::ContainerProtected);
        }
    }
    set_tier(&engine, "a", Tier::Cool).await.unwrap();
    tags::set(&engine, on("a"), Tags::default()).await.unwrap();
    assert_eq!(read(&engine, on("a")).await.unwrap(), b"one");
    clock.advance(seconds(101));
    hold(&engine, on("b"), false).await;
    put(&engine, on("a"), "two").await.unwrap();
    assert_eq!(view(&engine, "a").await.protection, Protection::default());
    delete(&engine, on("b")).await.unwrap();
    delete_container(&engine).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn with_versions_the_protected_state_is_kept_and_stays_protected() {
    let (engine, clock) = protecting_engine(true).await;
    retain(&engine).await;
    let soon = clock.now().after(seconds(100));
    let first = put(&engine, on("a"), "one").await.unwrap().version.unwrap();
    protect(&engine, on("a"), soon, true).await.unwrap();
    assert_eq!(refusal(set_http(&engine, "a").await), Refusal::BlobImmutable, "which would make no version");
    let second = set_metadata(&engine, "a").await.unwrap().version.unwrap();
    put(&engine, on("a"), "two").await.unwrap();
    delete(&engine, on("a")).await.unwrap();
    for id in [first, second] {
        assert_eq!(refusal(delete(&engine, part("a", Part::Version(id))).await), Refusal::BlobImmutable);
        assert_eq!(read(&engine, part("a", Part::Version(id))).await.unwrap(), b"one");
    }
    assert_eq!(refusal(delete_container(&engine).await), Refusal::ContainerProtected);
    let weaker = protect(&engine, part("a", Part::Version(first)), soon, false).await;
    assert_eq!(refusal(weaker), Refusal::BlobImmutable);
    let locked = protecting::delete_policy(&engine, part("a", Part::Version(first))).await;
    assert_eq!(refusal(locked), Refusal::PolicyLocked);
    protect(&engine, part("a", Part::Version(first)), soon.after(seconds(100)), true).await.unwrap();
    clock.advance(seconds(101));
    delete(&engine, part("a", Part::Version(second))).await.unwrap();
    assert_eq!(refusal(delete(&engine, part("a", Part::Version(first))).await), Refusal::BlobImmutable);
    clock.advance(seconds(100));
    delete_container(&engine).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn snapshots_are_protected_by_themselves() {
    let (engine, clock) = protecting_engine(false).await;
    put(&engine, on("a"), "one").await.unwrap();
    hold(&engine, on("a"), true).await;
    let first = take(&engine, "a").await;
    let second = take(&engine, "a").await;
    hold(&engine, on("a"), false).await;
    delete(&engine, part("a", first)).await.unwrap();
    hold(&engine, part("a", second), true).await;
    assert_eq!(refusal(delete(&engine, part("a", second)).await), Refusal::BlobHeld);
    assert_eq!(refusal(delete_all(&engine, "a").await), Refusal::BlobHeld);
    let only = removal::delete(&engine, on("a"), Snapshots::Only).await;
    assert_eq!(refusal(only), Refusal::BlobHeld);
    assert_eq!(refusal(delete_container(&engine).await), Refusal::ContainerProtected);
    clock.advance(seconds(10 * DAY));
    assert_eq!(refusal(delete_all(&engine, "a").await), Refusal::BlobHeld);
    hold(&engine, part("a", second), false).await;
    hold(&engine, on("a"), true).await;
    removal::delete(&engine, on("a"), Snapshots::Only).await.unwrap();
    hold(&engine, on("a"), false).await;
    delete(&engine, on("a")).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn new_blobs_come_protected_only_where_the_account_says_so() {
    let (engine, clock) = engine().await;
    let until = clock.now().after(seconds(100));
    let policy = Some(ImmutabilityPolicy { until, locked: false });
    let held = || Stored { protection: Protection { policy, hold: Some(true) }, ..Stored::default() };
    assert_eq!(refusal(put_as(&engine, "a", held()).await), Refusal::ProtectionOff);
    put(&engine, on("a"), "one").await.unwrap();
    assert_eq!(refusal(protect(&engine, on("a"), until, false).await), Refusal::ProtectionOff);
    assert_eq!(refusal(protecting::set_hold(&engine, on("a"), true).await), Refusal::ProtectionOff);
    assert_eq!(refusal(protecting::delete_policy(&engine, on("a")).await), Refusal::ProtectionOff);
    engine.set_policies(policies(false));
    put_as(&engine, "b", held()).await.unwrap();
    assert_eq!(refusal(delete(&engine, on("b")).await), Refusal::BlobHeld);
    assert_eq!(refusal(delete_container(&engine).await), Refusal::ContainerProtected);
    protecting::delete_policy(&engine, on("b")).await.unwrap();
    hold(&engine, on("b"), false).await;
    delete(&engine, on("b")).await.unwrap();
    let past = Some(ImmutabilityPolicy { until: clock.now(), locked: false });
    let over = Stored { protection: Protection { policy: past, hold: None }, ..Stored::default() };
    assert_eq!(refusal(put_as(&engine, "b", over).await), Refusal::PolicyOver);
    assert_eq!(refusal(protect(&engine, on("a"), clock.now(), false).await), Refusal::PolicyOver);
    assert_eq!(refusal(protect(&engine, on("none"), until, false).await), Refusal::BlobNotFound);
    let mut unmodified = on("a");
    unmodified.conditions.if_unmodified_since = Some(Timestamp::from_unix_seconds(1));
    assert_eq!(refusal(protect(&engine, unmodified, until, false).await), Refusal::ConditionFailed);
    delete_container(&engine).await.unwrap();
}

async fn expire_after(engine: &Engine, blob: &str, time: u64) -> Result<Written, Error> {
    expiring::set(engine, on(blob), ExpiryOption::AfterNow(seconds(time))).await
}

/// A blob in a folder with a tag, that expires in ten seconds.
async fn expiring_blob(engine: &Engine) {
    let stored = Stored { tags: Tags::new(vec![("k".into(), "v".into())]).unwrap(), ..Stored::default() };
    put_as(engine, "dir/a", stored).await.unwrap();
    expire_after(engine, "dir/a", 10).await.unwrap();
}

#[tokio::test]
async fn an_expired_blob_is_gone_at_its_instant_and_erased_later() {
    let (engine, clock) = engine().await;
    let find = || FindBlobs {
        account: account(),
        container: None,
        terms: vec![Term { key: "k".into(), comparison: Comparison::Equal, value: "v".into() }],
        versions: false,
        start: None,
        limit: 10,
    };
    expiring_blob(&engine).await;
    put_block(&engine, on("dir/a"), "1", "block").await.unwrap();
    assert_eq!(tags::find(&engine, find()).await.unwrap().found.len(), 1);
    assert_eq!(names(&engine).await, ["dir/a"]);
    clock.advance(seconds(11));
    let gone = Refusal::BlobNotFound;
    assert_eq!(refusal(object::get(&engine, on("dir/a")).await), gone);
    assert_eq!(refusal(read(&engine, on("dir/a")).await), gone);
    assert_eq!(refusal(set_metadata(&engine, "dir/a").await), gone);
    assert_eq!(refusal(set_tier(&engine, "dir/a", Tier::Cool).await), gone);
    assert_eq!(refusal(tags::get(&engine, on("dir/a")).await), gone);
    assert_eq!(refusal(removal::undelete(&engine, on("dir/a")).await), gone);
    assert_eq!(refusal(expire_after(&engine, "dir/a", 10).await), gone);
    assert_eq!(refusal(commit(&engine, on("dir/a"), &[(BlockSource::Committed, "1")]).await), Refusal::BlockUnknown);
    assert_eq!(tags::find(&engine, find()).await.unwrap().found, []);
    assert_eq!(names(&engine).await, ["dir/a uncommitted"]);
    assert_eq!(list(&engine, Some("/"), Shown::default()).await, []);
    let lists = blocks::get_block_list(&engine, on("dir/a"), true, true).await.unwrap();
    assert_eq!((lists.blob, lists.uncommitted.len()), (None, 1));
    // The first deletion is of the uncommitted block.
    delete(&engine, on("dir/a")).await.unwrap();
    assert_eq!(refusal(delete(&engine, on("dir/a")).await), gone);
    assert_eq!(names(&engine).await, [""; 0]);
    engine.settle().await.unwrap();
    assert_eq!(engine.census().unwrap().iter().find(|(space, _)| *space == Space::Blobs), None);
    put(&engine, if_absent(on("dir/a")), "two").await.unwrap();
    delete(&engine, on("dir/a")).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_write_over_an_expired_blob_finds_none_and_lets_its_content_go() {
    let (engine, clock) = engine().await;
    expiring_blob(&engine).await;
    let created = view(&engine, "dir/a").await.created;
    clock.advance(seconds(11));
    put(&engine, if_absent(on("dir/a")), pattern(100_000, 1)).await.unwrap();
    let blob = view(&engine, "dir/a").await;
    assert!(blob.created > created);
    assert_eq!((blob.expires, blob.tags), (None, 0));
    engine.settle().await.unwrap();
    assert_eq!(names(&engine).await, ["dir/a"], "its own appointment went with the old blob");
    delete(&engine, on("dir/a")).await.unwrap();
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn an_expired_blob_is_deleted_like_any_other() {
    let (engine, clock) = engine().await;
    retain(&engine).await;
    for settled in [true, false] {
        expiring_blob(&engine).await;
        clock.advance(seconds(11));
        if settled {
            engine.settle().await.unwrap();
        }
        removal::undelete(&engine, on("dir/a")).await.unwrap();
        assert_eq!(view(&engine, "dir/a").await.expires, None, "what was restored stays");
        assert_eq!(read(&engine, on("dir/a")).await.unwrap(), b"new");
    }
    engine.set_policies(policies(true));
    let version = put(&engine, on("v"), "one").await.unwrap().version.unwrap();
    expire_after(&engine, "v", 10).await.unwrap();
    clock.advance(seconds(11));
    engine.settle().await.unwrap();
    assert_eq!(refusal(object::get(&engine, on("v")).await), Refusal::BlobNotFound);
    assert_eq!(read(&engine, part("v", Part::Version(version))).await.unwrap(), b"one");
}

#[tokio::test]
async fn an_expiry_can_be_moved_and_taken_back_and_makes_no_version() {
    let (engine, clock) = engine().await;
    engine.set_policies(policies(true));
    let written = put(&engine, on("a"), "one").await.unwrap();
    let set = expire_after(&engine, "a", 10).await.unwrap();
    assert_eq!(set.version, written.version);
    assert_ne!(set.etag, written.etag);
    let later = expiring::set(&engine, on("a"), ExpiryOption::AfterCreation(seconds(20))).await.unwrap();
    let BlobView { created, expires, .. } = view(&engine, "a").await;
    assert_eq!(expires, Some(created.after(seconds(20))));
    assert_ne!(later.etag, set.etag);
    clock.advance(seconds(15));
    engine.settle().await.unwrap();
    assert_eq!(read(&engine, on("a")).await.unwrap(), b"one");
    let past = expiring::set(&engine, on("a"), ExpiryOption::AfterCreation(seconds(1))).await;
    assert_eq!(refusal(past), Refusal::ExpiryOver);
    expiring::set(&engine, on("a"), ExpiryOption::Never).await.unwrap();
    assert_eq!(engine.census().unwrap().iter().find(|(space, _)| *space == Space::Due), None);
    clock.advance(seconds(100));
    engine.settle().await.unwrap();
    assert_eq!(view(&engine, "a").await.expires, None);
}

#[tokio::test]
async fn a_protected_blob_does_not_expire_before_its_protection_ends() {
    let (engine, clock) = protecting_engine(false).await;
    for blob in ["policy", "hold"] {
        put(&engine, on(blob), "one").await.unwrap();
        expire_after(&engine, blob, 10).await.unwrap();
    }
    protect(&engine, on("policy"), clock.now().after(seconds(50)), false).await.unwrap();
    hold(&engine, on("hold"), true).await;
    clock.advance(seconds(20));
    engine.settle().await.unwrap();
    assert_eq!(names(&engine).await, ["hold", "policy"]);
    clock.advance(seconds(31));
    assert_eq!(names(&engine).await, ["hold"]);
    hold(&engine, on("hold"), false).await;
    assert_eq!(names(&engine).await, [""; 0]);
    leaves_nothing(&engine).await;
}

#[tokio::test]
async fn a_container_goes_with_the_appointments_of_its_blobs() {
    let (engine, clock) = engine().await;
    expiring_blob(&engine).await;
    delete_container(&engine).await.unwrap();
    leaves_nothing(&engine).await;
    create(&engine, "photos").await.unwrap();
    put(&engine, on("dir/a"), "two").await.unwrap();
    clock.advance(seconds(11));
    engine.settle().await.unwrap();
    assert_eq!(names(&engine).await, ["dir/a"]);
}

#[tokio::test]
async fn a_restart_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let clock = clock();
    let open = || {
        let mut options = Options::new(directory.path(), clock.clone());
        (options.reserve_bytes, options.policies) = (0, policies(false));
        Engine::open(options)
    };
    let engine = open().await.unwrap();
    create(&engine, "photos").await.unwrap();
    for blob in ["archived", "expired", "held", "way"] {
        put(&engine, on(blob), "one").await.unwrap();
    }
    set_tier(&engine, "archived", Tier::Archive).await.unwrap();
    set_tier(&engine, "way", Tier::Archive).await.unwrap();
    set_tier(&engine, "way", Tier::Hot).await.unwrap();
    expire_after(&engine, "expired", 2).await.unwrap();
    hold(&engine, on("held"), true).await;
    engine.close().await;
    clock.advance(REHYDRATION + seconds(1));
    let engine = open().await.unwrap();
    assert_eq!(refusal(read(&engine, on("archived")).await), Refusal::BlobArchived);
    assert_eq!(read(&engine, on("way")).await.unwrap(), b"one");
    assert_eq!(refusal(read(&engine, on("expired")).await), Refusal::BlobNotFound);
    assert_eq!(refusal(delete(&engine, on("held")).await), Refusal::BlobHeld);
    engine.settle().await.unwrap();
    assert_eq!(names(&engine).await, ["archived", "held", "way"]);
    let on = OnContainer { ..on_container("photos") };
    assert_eq!(refusal(container::delete(&engine, on).await), Refusal::ContainerProtected);
    engine.close().await;
}
