//! Tiers, immutability policies, legal holds and expiry, as clients see them.

use std::time::Duration;

use lazuli_engine::policy::AccountPolicy;
use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::{Blob, Container, Lazuli};
use lazuli_tests::signed::{Answer, Request};

const MINUTE: Duration = Duration::from_secs(60);
const LATER: &str = "Sun, 01 Aug 2100 00:00:00 GMT";
const LATEST: &str = "Mon, 01 Aug 2101 00:00:00 GMT";
const PAST: &str = "Wed, 01 Aug 2001 00:00:00 GMT";
const UNTIL: &str = "x-ms-immutability-policy-until-date";
const MODE: &str = "x-ms-immutability-policy-mode";

async fn protecting(versioning: bool) -> Lazuli {
    let lazuli = Lazuli::start().await;
    lazuli.set_policy(AccountPolicy { versioning, immutability: true, ..AccountPolicy::default() });
    lazuli
}

fn set_tier(blob: &Blob, tier: &str) -> Request {
    blob.request("PUT", "?comp=tier").header("x-ms-access-tier", tier)
}

fn set_policy(blob: &Blob, query: &str, until: &str, mode: &str) -> Request {
    blob.request("PUT", &format!("?comp=immutabilityPolicies{query}")).header(UNTIL, until).header(MODE, mode)
}

fn set_hold(blob: &Blob, hold: &str) -> Request {
    blob.request("PUT", "?comp=legalhold").header("x-ms-legal-hold", hold)
}

fn set_expiry(blob: &Blob, option: &str, time: &str) -> Request {
    blob.request("PUT", "?comp=expiry").header("x-ms-expiry-option", option).header("x-ms-expiry-time", time)
}

/// What a read says about the tier.
fn tier(answer: &Answer) -> [&str; 4] {
    ["x-ms-access-tier", "x-ms-access-tier-inferred", "x-ms-archive-status", "x-ms-rehydrate-priority"]
        .map(|name| answer.header(name))
}

async fn listed(container: &Container, include: &str) -> String {
    container.list(&format!("&include={include}")).await.expect(200).text()
}

#[tokio::test]
async fn a_tier_is_inferred_until_it_is_set() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let etag = blob.put("one").await.expect(201).etag();
    assert_eq!(tier(&blob.head().await.expect(200)), ["Hot", "true", "", ""]);
    lazuli.clock.advance(MINUTE);
    set_tier(&blob, "Cool").await.expect(200);
    let set = blob.get().await.expect(200);
    assert_eq!((tier(&set), set.etag()), (["Cool", "", "", ""], etag));
    assert_ne!(set.header("x-ms-access-tier-change-time"), set.header("last-modified"));
    assert!(listed(&container, "").await.contains("<AccessTier>Cool</AccessTier><AccessTierChangeTime>"));
    blob.put("two").header("x-ms-access-tier", "Cold").await.expect(201);
    assert_eq!(tier(&blob.head().await), ["Cold", "", "", ""]);
    blob.put_block("1", "three").await.expect(201);
    let smart = blob.put_block_list(&["1"]).header("x-ms-version", "2026-06-06");
    smart.header("x-ms-access-tier", "Smart").await.expect(201);
    let smart = blob.head().await.expect(200);
    assert_eq!((tier(&smart)[0], smart.header("x-ms-smart-access-tier")), ("Smart", "Hot"));
    blob.put("four").header("x-ms-access-tier", "Archive").await.expect(201);
    blob.get().await.refused(409, "BlobArchived");
}

#[tokio::test]
async fn tiers_that_cannot_be_are_refused() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let (block, append, page) = (container.blob("block"), container.blob("append"), container.blob("page"));
    block.put("one").await.expect(201);
    append.request("PUT", "").header("x-ms-blob-type", "AppendBlob").await.expect(201);
    let new_page = |tier| {
        let request = page.request("PUT", "").header("x-ms-blob-type", "PageBlob");
        request.header("x-ms-blob-content-length", "512").header("x-ms-access-tier", tier)
    };
    new_page("P10").await.expect(201);
    let not_for_kind = [
        set_tier(&block, "P10"),
        set_tier(&append, "Cool"),
        set_tier(&append, "P10"),
        set_tier(&page, "Cool"),
        block.put("two").header("x-ms-access-tier", "P10"),
        append.request("PUT", "").header("x-ms-blob-type", "AppendBlob").header("x-ms-access-tier", "Hot"),
        new_page("Hot"),
    ];
    for request in not_for_kind {
        request.await.refused(400, "AccessTierNotSupportedForBlobType");
    }
    assert_eq!(tier(&append.head().await.expect(200)), [""; 4]);
    assert_eq!(tier(&page.head().await.expect(200)), ["P10", "", "", ""]);
    set_tier(&page, "P20").await.expect(200);
    set_tier(&page, "P6").await.refused(409, "CannotChangeToLowerTier");
    let large = page.request("PUT", "").header("x-ms-blob-type", "PageBlob");
    let large = large.header("x-ms-blob-content-length", (33u64 << 30).to_string()).header("x-ms-access-tier", "P4");
    large.await.refused(409, "BlobTierInadequateForContentLength");
    for wrong in ["Lukewarm", "P5"] {
        let refused = set_tier(&block, wrong).await.refused(400, "InvalidHeaderValue");
        assert!(refused.text().contains("x-ms-access-tier"));
        block.put("two").header("x-ms-access-tier", wrong).await.refused(400, "InvalidHeaderValue");
    }
    set_tier(&block, "Cold").header("x-ms-version", "2021-10-04").await.refused(400, "InvalidHeaderValue");
    set_tier(&block, "Smart").header("x-ms-version", "2026-04-06").await.refused(400, "InvalidHeaderValue");
    block.request("PUT", "?comp=tier").await.refused(400, "MissingRequiredHeader");
    set_tier(&block, "Hot").header("x-ms-rehydrate-priority", "Now").await.refused(400, "InvalidHeaderValue");
    set_tier(&container.blob("none"), "Hot").await.refused(404, "BlobNotFound");
    set_tier(&lazuli.existing("none").blob("a"), "Hot").await.refused(404, "ContainerNotFound");
    set_tier(&block, "Hot").header("if-match", "*").await.refused(400, "ConditionHeadersNotSupported");
    set_tier(&block, "Hot").header("x-ms-if-tags", "\"a\" = 'b'").await.refused(412, "ConditionNotMet");
}

#[tokio::test]
async fn an_archived_blob_comes_back_after_a_while() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    blob.put_block("1", "one").await.expect(201);
    blob.put_block_list(&["1"]).await.expect(201);
    set_tier(&blob, "Archive").await.expect(200);
    assert_eq!(tier(&blob.head().await.expect(200)), ["Archive", "", "", ""]);
    let archived = [
        blob.get(),
        blob.get().header("x-ms-range", "bytes=0-0"),
        blob.set_metadata("k", "v"),
        blob.request("PUT", "?comp=properties").header("x-ms-blob-content-type", "text/plain"),
        blob.request("PUT", "?comp=snapshot"),
        blob.put_block_list(&["1"]),
    ];
    for request in archived {
        request.await.refused(409, "BlobArchived");
    }
    blob.request("GET", "?comp=metadata").await.expect(200);
    blob.request("PUT", "?comp=tags").body("<Tags><TagSet /></Tags>").await.expect(204);
    set_tier(&blob, "Cold").await.expect(202);
    let way = ["Archive", "", "rehydrate-pending-to-cold", "Standard"];
    assert_eq!(tier(&blob.head().await), way);
    let xml = listed(&container, "").await;
    let expected =
        "<ArchiveStatus>rehydrate-pending-to-cold</ArchiveStatus><RehydratePriority>Standard</RehydratePriority>";
    assert!(xml.contains(expected), "{xml}");
    blob.get().await.refused(409, "BlobArchived");
    set_tier(&blob, "Hot").await.refused(409, "BlobBeingRehydrated");
    set_tier(&blob, "Cold").header("x-ms-rehydrate-priority", "High").await.expect(202);
    assert_eq!(tier(&blob.head().await)[3], "High");
    set_tier(&blob, "Cold").header("x-ms-rehydrate-priority", "Standard").await.refused(409, "BlobBeingRehydrated");
    lazuli.clock.advance(MINUTE);
    assert_eq!(tier(&blob.head().await), ["Cold", "", "", ""]);
    assert_eq!(blob.get().await.expect(200).text(), "one");
    set_tier(&blob, "Archive").await.expect(200);
    blob.put("two").await.expect(201);
    set_tier(&blob, "Archive").await.expect(200);
    blob.delete().await.expect(202);
}

#[tokio::test]
async fn tiers_of_snapshots_and_versions_are_their_own() {
    let lazuli = protecting(true).await;
    let blob = lazuli.container("photos").await.blob("a");
    let first = blob.put("one").await.expect(201).header("x-ms-version-id").to_owned();
    blob.put("two").await.expect(201);
    let at = blob.request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned();
    for state in [format!("versionid={first}"), format!("snapshot={at}")] {
        let request = blob.request("PUT", &format!("?comp=tier&{state}"));
        request.header("x-ms-access-tier", "Archive").await.expect(200);
        blob.request("GET", &format!("?{state}")).await.refused(409, "BlobArchived");
        assert_eq!(tier(&blob.request("HEAD", &format!("?{state}")).await)[0], "Archive");
    }
    assert_eq!(tier(&blob.get().await.expect(200)), ["Hot", "true", "", ""]);
}

#[tokio::test]
async fn a_deletion_may_depend_on_when_the_tier_was_set() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a");
    blob.put("one").await.expect(201);
    lazuli.clock.advance(MINUTE);
    let between = lazuli.client().date();
    lazuli.clock.advance(MINUTE);
    set_tier(&blob, "Cool").await.expect(200);
    let (since, not_since) = ("x-ms-access-tier-if-modified-since", "x-ms-access-tier-if-unmodified-since");
    blob.delete().header(not_since, &between).await.refused(412, "ConditionNotMet");
    blob.delete().header(since, LATER).await.refused(412, "ConditionNotMet");
    blob.delete().header(since, "soon").await.refused(400, "InvalidHeaderValue");
    blob.delete().header(since, &between).header(not_since, LATER).await.expect(202);
}

#[tokio::test]
async fn a_policy_is_set_shown_extended_and_deleted() {
    let lazuli = protecting(false).await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let etag = blob.put("one").await.expect(201).etag();
    let set = set_policy(&blob, "", LATER, "Unlocked").await.expect(200);
    assert_eq!((set.header(UNTIL), set.header(MODE), set.header("etag")), (LATER, "unlocked", ""));
    let got = blob.get().await.expect(200);
    assert_eq!((got.header(UNTIL), got.header(MODE), got.etag()), (LATER, "unlocked", etag));
    let element = format!("<ImmutabilityPolicyUntilDate>{LATER}</ImmutabilityPolicyUntilDate>");
    assert!(listed(&container, "immutabilitypolicy").await.contains(&element));
    assert!(!listed(&container, "legalhold").await.contains(&element));
    blob.request("DELETE", "?comp=immutabilityPolicies").await.expect(200);
    assert_eq!(blob.head().await.expect(200).header(UNTIL), "");
    set_policy(&blob, "", LATER, "Locked").await.expect(200);
    assert_eq!(blob.head().await.expect(200).header(MODE), "locked");
    set_policy(&blob, "", LATEST, "Unlocked").await.refused(409, "BlobImmutableDueToPolicy");
    set_policy(&blob, "", LATEST, "Locked").await.expect(200);
    set_policy(&blob, "", LATER, "Locked").await.refused(409, "BlobImmutableDueToPolicy");
    let delete = blob.request("DELETE", "?comp=immutabilityPolicies");
    delete.await.refused(409, "ImmutabilityPolicyDeleteOnLockedPolicy");
}

#[tokio::test]
async fn policies_and_holds_that_cannot_be_are_refused() {
    let lazuli = protecting(false).await;
    let container = lazuli.container("photos").await;
    let (blob, none) = (container.blob("a"), container.blob("none"));
    blob.put("one").await.expect(201);
    let past = set_policy(&blob, "", PAST, "Unlocked").await.refused(400, "InvalidHeaderValue");
    assert!(past.text().contains(UNTIL), "{}", past.text());
    set_policy(&blob, "", "soon", "Unlocked").await.refused(400, "InvalidHeaderValue");
    set_policy(&blob, "", LATER, "Mutable").await.refused(400, "InvalidHeaderValue");
    set_policy(&blob, "", "", "Locked").await.refused(400, "MissingRequiredHeader");
    set_policy(&none, "", LATER, "Locked").await.refused(404, "BlobNotFound");
    let unmodified = set_policy(&blob, "", LATER, "Locked").header("if-unmodified-since", PAST);
    unmodified.await.refused(412, "ConditionNotMet");
    for condition in ["if-match", "if-none-match"] {
        let request = set_policy(&blob, "", LATER, "Locked").header(condition, "\"0x1\"");
        request.await.refused(400, "ConditionHeadersNotSupported");
    }
    let modified = set_policy(&blob, "", LATER, "Locked").header("if-modified-since", PAST);
    modified.await.refused(400, "ConditionHeadersNotSupported");
    set_hold(&blob, "maybe").await.refused(400, "InvalidHeaderValue");
    blob.request("PUT", "?comp=legalhold").await.refused(400, "MissingRequiredHeader");
    set_hold(&none, "true").await.refused(404, "BlobNotFound");
    none.request("DELETE", "?comp=immutabilityPolicies").await.refused(404, "BlobNotFound");
    let new = || blob.put("two");
    new().header(MODE, "Locked").await.refused(400, "MissingRequiredHeader");
    new().header(UNTIL, PAST).await.refused(400, "InvalidHeaderValue");
    new().header("x-ms-legal-hold", "maybe").await.refused(400, "InvalidHeaderValue");

    lazuli.set_policy(AccountPolicy::default());
    let refused = set_policy(&blob, "", LATER, "Locked").await.refused(400, "InvalidOperation");
    assert!(refused.text().contains("Immutable storage"), "{}", refused.text());
    set_hold(&blob, "true").await.refused(400, "InvalidOperation");
    blob.request("DELETE", "?comp=immutabilityPolicies").await.refused(400, "InvalidOperation");
    new().header(UNTIL, LATER).await.refused(400, "InvalidOperation");
    new().header("x-ms-legal-hold", "true").await.refused(400, "InvalidOperation");
}

#[tokio::test]
async fn protected_blobs_stay_as_they_are() {
    let lazuli = protecting(false).await;
    let container = lazuli.container("photos").await;
    let (block, append, page) = (container.blob("block"), container.blob("append"), container.blob("page"));
    let new_append = || append.request("PUT", "").header("x-ms-blob-type", "AppendBlob");
    let new_page =
        || page.request("PUT", "").header("x-ms-blob-type", "PageBlob").header("x-ms-blob-content-length", "512");
    block.put("one").header(UNTIL, LATER).header(MODE, "Unlocked").await.expect(201);
    new_append().header("x-ms-legal-hold", "true").await.expect(201);
    new_page().header(UNTIL, LATER).await.expect(201);
    let by_policy = [
        block.put("two"),
        block.put_block_list(&[]),
        block.delete(),
        block.delete().header("x-ms-delete-snapshots", "include"),
        block.set_metadata("k", "v"),
        block.request("PUT", "?comp=properties").header("x-ms-blob-content-type", "text/plain"),
        set_expiry(&block, "RelativeToNow", "1000"),
        new_page(),
        page.request("PUT", "?comp=page")
            .header("x-ms-page-write", "update")
            .header("x-ms-range", "bytes=0-511")
            .body(vec![1; 512]),
        page.request("PUT", "?comp=page").header("x-ms-page-write", "clear").header("x-ms-range", "bytes=0-511"),
        page.request("PUT", "?comp=properties").header("x-ms-blob-content-length", "1024"),
        page.request("PUT", "?comp=properties").header("x-ms-sequence-number-action", "increment"),
    ];
    for request in by_policy {
        request.await.refused(409, "BlobImmutableDueToPolicy");
    }
    let by_hold = [
        new_append(),
        append.request("PUT", "?comp=appendblock").body("more"),
        append.request("PUT", "?comp=seal"),
        append.delete(),
    ];
    for request in by_hold {
        request.await.refused(409, "BlobImmutableDueToLegalHold");
    }
    container.delete().await.refused(409, "ContainerImmutableStorageWithVersioningEnabled");
    assert_eq!(block.get().await.expect(200).text(), "one");
    let held = append.head().await.expect(200);
    assert_eq!((held.header("x-ms-legal-hold"), held.header("content-length")), ("true", "0"));
    assert!(listed(&container, "legalhold").await.contains("<LegalHold>true</LegalHold>"));
    assert_eq!(set_hold(&append, "false").await.expect(200).header("x-ms-legal-hold"), "false");
    assert_eq!(append.head().await.expect(200).header("x-ms-legal-hold"), "false");
    append.delete().await.expect(202);
    for blob in [&block, &page] {
        blob.request("DELETE", "?comp=immutabilityPolicies").await.expect(200);
        blob.delete().await.expect(202);
    }
    container.delete().await.expect(202);
}

#[tokio::test]
async fn a_version_is_kept_and_stays_protected() {
    let lazuli = protecting(true).await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let first = blob.put("one").await.expect(201).header("x-ms-version-id").to_owned();
    set_hold(&blob, "true").await.expect(200);
    blob.put("two").await.expect(201);
    assert_eq!(blob.head().await.expect(200).header("x-ms-legal-hold"), "");
    blob.delete().await.expect(202);
    let version = format!("?versionid={first}");
    blob.request("DELETE", &version).await.refused(409, "BlobImmutableDueToLegalHold");
    assert_eq!(blob.request("GET", &version).await.expect(200).text(), "one");
    let release = blob.request("PUT", &format!("?comp=legalhold&versionid={first}"));
    release.header("x-ms-legal-hold", "false").await.expect(200);
    set_policy(&blob, &format!("&versionid={first}"), LATER, "Unlocked").await.expect(200);
    blob.request("DELETE", &version).await.refused(409, "BlobImmutableDueToPolicy");
    blob.request("DELETE", &format!("?comp=immutabilityPolicies&versionid={first}")).await.expect(200);
    blob.request("DELETE", &version).await.expect(202);
}

#[tokio::test]
async fn a_container_says_whether_its_blobs_can_be_protected() {
    const ENABLED: &str = "x-ms-immutable-storage-with-versioning-enabled";
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    assert_eq!(container.request("GET", "").await.expect(200).header(ENABLED), "false");
    lazuli.set_policy(AccountPolicy { immutability: true, ..AccountPolicy::default() });
    let got = container.request("GET", "").await.expect(200);
    let headers = [ENABLED, "x-ms-has-legal-hold", "x-ms-has-immutability-policy"].map(|name| got.header(name));
    assert_eq!(headers, ["true", "false", "false"]);
    let list = lazuli.client().request("GET", format!("/{ACCOUNT}?comp=list")).await.expect(200).text();
    let element = "<ImmutableStorageWithVersioningEnabled>true</ImmutableStorageWithVersioningEnabled>";
    assert!(list.contains(element), "{list}");
}

#[tokio::test]
async fn a_blob_expires() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let created = blob.put("one").await.expect(201);
    let set = set_expiry(&blob, "RelativeToNow", "30000").await.expect(200);
    assert_ne!((set.etag(), set.header("last-modified")), (created.etag(), ""));
    let time = blob.get().await.expect(200).header("x-ms-expiry-time").to_owned();
    assert!(listed(&container, "").await.contains(&format!("<Expiry-Time>{time}</Expiry-Time>")));
    set_expiry(&blob, "NeverExpire", "").await.expect(200);
    assert_eq!(blob.head().await.expect(200).header("x-ms-expiry-time"), "");
    set_expiry(&blob, "Absolute", LATER).await.expect(200);
    assert_eq!(blob.head().await.expect(200).header("x-ms-expiry-time"), LATER);
    set_expiry(&blob, "RelativeToCreation", "30000").await.expect(200);
    lazuli.clock.advance(MINUTE);
    for request in [blob.get(), blob.head(), blob.delete(), blob.set_metadata("k", "v")] {
        assert_eq!(request.await.status, 404);
    }
    set_expiry(&blob, "RelativeToNow", "30000").await.refused(404, "BlobNotFound");
    assert!(!listed(&container, "").await.contains("<Blob>"));
    blob.put("two").header("if-none-match", "*").await.expect(201);
    lazuli.clock.advance(MINUTE);
    lazuli.settle().await;
    assert_eq!(blob.get().await.expect(200).text(), "two");
}

#[tokio::test]
async fn expiries_that_cannot_be_are_refused() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    blob.put("one").await.expect(201);
    let past = set_expiry(&blob, "Absolute", PAST).await.refused(400, "InvalidHeaderValue");
    assert!(past.text().contains("x-ms-expiry-time"), "{}", past.text());
    lazuli.clock.advance(MINUTE);
    set_expiry(&blob, "RelativeToCreation", "30000").await.refused(400, "InvalidHeaderValue");
    set_expiry(&blob, "RelativeToNow", "soon").await.refused(400, "InvalidHeaderValue");
    set_expiry(&blob, "NeverExpire", LATER).await.refused(400, "InvalidHeaderValue");
    set_expiry(&blob, "Someday", LATER).await.refused(400, "InvalidHeaderValue");
    set_expiry(&blob, "Absolute", "").await.refused(400, "MissingRequiredHeader");
    set_expiry(&blob, "", "").await.refused(400, "MissingRequiredHeader");
    set_expiry(&container.blob("none"), "NeverExpire", "").await.refused(404, "BlobNotFound");
    set_expiry(&blob, "NeverExpire", "").header("if-match", "*").await.refused(400, "ConditionHeadersNotSupported");
    let snapshot = blob.request("PUT", &format!("?comp=expiry&snapshot={}", "2026-08-01T00:00:00.0000000Z"));
    snapshot.header("x-ms-expiry-option", "NeverExpire").await.refused(400, "InvalidQueryParameterValue");
    let lease = blob.acquire_lease(-1).await.expect(201).header("x-ms-lease-id").to_owned();
    set_expiry(&blob, "NeverExpire", "").await.refused(412, "LeaseIdMissing");
    set_expiry(&blob, "NeverExpire", "").header("x-ms-lease-id", lease).await.expect(200);
}
