//! Snapshots, versions, soft delete and listings of them, as clients see them.

use std::time::Duration;

use lazuli_engine::policy::AccountPolicy;
use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::{Blob, Container, Lazuli};
use lazuli_tests::signed::Answer;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const UNKNOWN: &str = "2026-08-01T00:00:00.0000000Z";

async fn versioned() -> Lazuli {
    let lazuli = Lazuli::start().await;
    lazuli.set_policy(AccountPolicy { versioning: true, ..AccountPolicy::default() });
    lazuli
}

/// Sets how long deleted blobs are kept.
async fn keep_deleted(lazuli: &Lazuli, days: u16, permanent: bool) {
    let body = format!(
        "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>{days}</Days>\
         <AllowPermanentDelete>{permanent}</AllowPermanentDelete></DeleteRetentionPolicy></StorageServiceProperties>"
    );
    let target = format!("/{ACCOUNT}?restype=service&comp=properties");
    lazuli.client().request("PUT", target).body(body).await.expect(202);
}

async fn take(blob: &Blob) -> String {
    blob.request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned()
}

fn version(answer: &Answer) -> String {
    answer.header("x-ms-version-id").to_owned()
}

/// What stands between the first `<element>` and its end.
fn element<'a>(xml: &'a str, element: &str) -> &'a str {
    let rest = xml.split_once(&format!("<{element}>")).map(|(_, rest)| rest).unwrap_or_default();
    rest.split_once(&format!("</{element}>")).map(|(text, _)| text).unwrap_or_default()
}

/// Name and state of every line of a listing.
async fn listed(container: &Container, query: &str) -> Vec<String> {
    let xml = container.list(query).await.expect(200).text();
    let blobs = xml.split("<Blob>").skip(1).map(|blob| {
        let blob = blob.split("</Blob>").next().unwrap_or_default();
        let states = ["Snapshot", "VersionId", "IsCurrentVersion", "Deleted", "HasVersionsOnly"];
        let shown: Vec<_> = states.into_iter().filter(|state| !element(blob, state).is_empty()).collect();
        [&[element(blob, "Name")], &shown[..]].concat().join(" ")
    });
    blobs.collect()
}

#[tokio::test]
async fn a_snapshot_is_taken_read_listed_and_deleted() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let put = blob.put("one").header("x-ms-meta-of", "base").await.expect(201);
    assert_eq!(version(&put), "");
    lazuli.clock.advance(Duration::from_secs(2));
    let plain = blob.request("PUT", "?comp=snapshot").await.expect(201);
    assert_eq!(plain.etag(), put.etag());
    assert_eq!(plain.header("last-modified"), put.header("last-modified"));
    assert_eq!(plain.header("x-ms-request-server-encrypted"), "true");
    let at = plain.header("x-ms-snapshot");
    assert_eq!(at.len(), UNKNOWN.len(), "{at}");
    let own = blob.request("PUT", "?comp=snapshot").header("x-ms-meta-own", "yes").await.expect(201);
    assert_ne!(own.etag(), put.etag());
    blob.put("two").await.expect(201);
    let query = format!("?snapshot={at}");
    let got = blob.request("GET", &query).await.expect(200);
    assert_eq!((got.text().as_str(), got.etag(), got.header("x-ms-meta-of")), ("one", put.etag(), "base"));
    for absent in ["x-ms-lease-state", "x-ms-lease-status", "x-ms-is-current-version", "x-ms-version-id"] {
        assert_eq!(got.header(absent), "", "{absent}");
    }
    let part = blob.request("GET", &query).header("x-ms-range", "bytes=1-1").await.expect(206);
    assert_eq!(part.text(), "n");
    assert_eq!(blob.request("HEAD", &query).await.expect(200).header("content-length"), "3");
    let own =
        blob.request("GET", &format!("?comp=metadata&snapshot={}", own.header("x-ms-snapshot"))).await.expect(200);
    assert_eq!((own.header("x-ms-meta-own"), own.header("x-ms-meta-of")), ("yes", ""));
    assert_eq!(listed(&container, "").await, ["a"]);
    assert_eq!(listed(&container, "&include=snapshots").await, ["a Snapshot", "a Snapshot", "a"]);
    blob.delete().await.refused(409, "SnapshotsPresent");
    let gone = blob.request("DELETE", &query).await.expect(202);
    assert_eq!(gone.header("x-ms-delete-type-permanent"), "true");
    blob.request("GET", &query).await.refused(404, "BlobNotFound");
    blob.delete().header("x-ms-delete-snapshots", "only").await.expect(202);
    assert_eq!(listed(&container, "&include=snapshots").await, ["a"]);
    blob.request("PUT", "?comp=snapshot").await.expect(201);
    blob.delete().header("x-ms-delete-snapshots", "include").await.expect(202);
    assert_eq!(listed(&container, "&include=snapshots").await, [""; 0]);
}

#[tokio::test]
async fn a_block_list_is_read_of_a_snapshot() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a");
    blob.put_block("1", "one").await.expect(201);
    blob.put_block_list(&["1"]).await.expect(201);
    let at = take(&blob).await;
    blob.put("two").await.expect(201);
    let list = blob.request("GET", &format!("?comp=blocklist&blocklisttype=all&snapshot={at}")).await.expect(200);
    assert_eq!(list.header("x-ms-blob-content-length"), "3");
    assert_eq!(element(&list.text(), "Size"), "3");
    blob.request("GET", &format!("?comp=blocklist&snapshot={UNKNOWN}")).await.refused(404, "BlobNotFound");
}

#[tokio::test]
async fn snapshots_are_judged_by_conditions_and_leases() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a");
    blob.request("PUT", "?comp=snapshot").await.refused(404, "BlobNotFound");
    let etag = blob.put("one").await.expect(201).etag();
    let snapshot = || blob.request("PUT", "?comp=snapshot");
    snapshot().header("if-match", "\"0x1\"").await.refused(412, "ConditionNotMet");
    snapshot().header("if-none-match", &etag).await.refused(412, "ConditionNotMet");
    snapshot().header("x-ms-if-tags", "\"a\" = 'b'").await.refused(412, "ConditionNotMet");
    let at = snapshot().header("if-match", &etag).await.expect(201).header("x-ms-snapshot").to_owned();
    let query = format!("?snapshot={at}");
    blob.request("GET", &query).header("if-none-match", &etag).await.refused(304, "ConditionNotMet");
    blob.request("GET", &query).header("if-match", "\"0x1\"").await.refused(412, "ConditionNotMet");
    blob.request("DELETE", &query).header("if-match", "\"0x1\"").await.refused(412, "ConditionNotMet");
    let lease = blob.acquire_lease(-1).await.expect(201).header("x-ms-lease-id").to_owned();
    snapshot().await.expect(201);
    snapshot().header("x-ms-lease-id", &lease).await.expect(201);
    let other = "11111111-2222-3333-4444-555555555555";
    snapshot().header("x-ms-lease-id", other).await.refused(412, "LeaseIdMismatchWithBlobOperation");
    blob.request("GET", &query).header("x-ms-lease-id", &lease).await.refused(412, "LeaseNotPresentWithBlobOperation");
    blob.delete().header("x-ms-delete-snapshots", "only").await.refused(412, "LeaseIdMissing");
    blob.request("DELETE", &query).await.expect(202);
}

#[tokio::test]
async fn what_names_no_state_or_a_read_only_one_is_refused() {
    let lazuli = versioned().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let first = version(&blob.put("one").await.expect(201));
    let at = take(&blob).await;
    for state in [format!("snapshot={at}"), format!("versionid={first}")] {
        let writes = [
            blob.request("PUT", &format!("?{state}")).header("x-ms-blob-type", "BlockBlob").body("two"),
            blob.request("PUT", &format!("?comp=metadata&{state}")),
            blob.request("PUT", &format!("?comp=properties&{state}")),
            blob.request("PUT", &format!("?comp=snapshot&{state}")),
            blob.request("PUT", &format!("?comp=undelete&{state}")),
            blob.request("PUT", &format!("?comp=block&blockid=AAAA&{state}")).body("two"),
            blob.request("PUT", &format!("?comp=blocklist&{state}")).body("<BlockList/>"),
            blob.request("PUT", &format!("?comp=lease&{state}"))
                .header("x-ms-lease-action", "acquire")
                .header("x-ms-lease-duration", "-1"),
            blob.request("DELETE", &format!("?{state}")).header("x-ms-delete-snapshots", "include"),
        ];
        for write in writes {
            let text = write.await.refused(400, "InvalidQueryParameterValue").text();
            assert!(text.contains(state.split('=').next().unwrap_or_default()), "{text}");
        }
    }
    blob.request("PUT", &format!("?comp=tags&snapshot={at}"))
        .body("<Tags><TagSet /></Tags>")
        .await
        .refused(400, "InvalidQueryParameterValue");
    let bad = ["?snapshot=yesterday".into(), "?versionid=1".into(), format!("?snapshot={at}&versionid={first}")];
    for query in bad {
        for method in ["GET", "DELETE"] {
            blob.request(method, &query).await.refused(400, "InvalidQueryParameterValue");
        }
    }
    for query in [format!("?snapshot={UNKNOWN}"), format!("?versionid={UNKNOWN}")] {
        for method in ["GET", "HEAD", "DELETE"] {
            blob.request(method, &query).await.refused(404, "BlobNotFound");
        }
    }
    blob.delete().header("x-ms-delete-snapshots", "some").await.refused(400, "InvalidHeaderValue");
    blob.request("DELETE", "?deletetype=gentle").await.refused(400, "InvalidQueryParameterValue");
    container.list("&showonly=hidden").await.refused(400, "InvalidQueryParameterValue");
    container.list("&marker=!").await.refused(400, "InvalidQueryParameterValue");
}

#[tokio::test]
async fn versions_are_kept_read_listed_and_deleted() {
    let lazuli = versioned().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let first = version(&blob.put("one").header("x-ms-tags", "k=1").await.expect(201));
    lazuli.clock.advance(Duration::from_secs(2));
    let second = version(&blob.set_metadata("k", "v").await.expect(200));
    let third = version(&blob.put("three").await.expect(201));
    assert!(first < second && second < third, "{first} {second} {third}");
    let current = blob.get().await.expect(200);
    assert_eq!((version(&current), current.header("x-ms-is-current-version")), (third.clone(), "true"));
    let by_id = blob.request("GET", &format!("?versionid={third}")).await.expect(200);
    assert_eq!((by_id.text().as_str(), by_id.header("x-ms-is-current-version")), ("three", "true"));
    for (id, metadata) in [(&first, ""), (&second, "v")] {
        let got = blob.request("GET", &format!("?versionId={id}")).await.expect(200);
        assert_eq!(
            (got.text().as_str(), got.header("x-ms-meta-k"), got.header("x-ms-tag-count")),
            ("one", metadata, "1")
        );
        assert_eq!((version(&got), got.header("x-ms-is-current-version")), (id.clone(), ""));
        assert_eq!(got.header("x-ms-lease-state"), "");
        let tags = blob.request("GET", &format!("?comp=tags&versionid={id}")).await.expect(200).text();
        assert_eq!(element(&tags, "Value"), "1");
    }
    blob.request("PUT", "?comp=properties").header("x-ms-blob-content-type", "text/plain").await.expect(200);
    assert_eq!(version(&blob.head().await.expect(200)), third, "properties make no version");
    assert_eq!(listed(&container, "").await, ["a VersionId IsCurrentVersion"]);
    let all = ["a VersionId", "a VersionId", "a VersionId IsCurrentVersion"];
    assert_eq!(listed(&container, "&include=versions").await, all);
    blob.request("DELETE", &format!("?versionid={third}")).await.refused(403, "OperationNotAllowedOnRootBlob");
    let deleted = blob.delete().await.expect(202);
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), "false");
    blob.get().await.refused(404, "BlobNotFound");
    blob.request("PUT", "?comp=undelete").await.refused(404, "BlobNotFound");
    assert_eq!(listed(&container, "").await, [""; 0]);
    assert_eq!(listed(&container, "&include=versions").await, ["a VersionId"; 3]);
    assert_eq!(listed(&container, "&include=deletedwithversions").await, ["a HasVersionsOnly"]);
    assert_eq!(blob.request("GET", &format!("?versionid={third}")).await.expect(200).text(), "three");
    for id in [&first, &second, &third] {
        let gone = blob.request("DELETE", &format!("?versionid={id}")).await.expect(202);
        assert_eq!(gone.header("x-ms-delete-type-permanent"), "true");
    }
    assert_eq!(listed(&container, "&include=versions,deleted,deletedwithversions").await, [""; 0]);
}

#[tokio::test]
async fn tags_of_versions_are_set_found_and_go_with_them() {
    let lazuli = versioned().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let first = version(&blob.put("one").header("x-ms-tags", "k=old").await.expect(201));
    let at = take(&blob).await;
    blob.put("two").header("x-ms-tags", "k=new").await.expect(201);
    let found = |value: &'static str, include: &'static str| {
        let query = format!("&comp=blobs&where=k%3D%27{value}%27{include}");
        let request = container.request("GET", &query);
        async move { request.await.expect(200).text().matches("<Blob>").count() }
    };
    assert_eq!(found("old", "").await, 0);
    assert_eq!(found("new", "").await, 1);
    assert_eq!(found("old", "&include=versions").await, 2, "the first version, and the one that the snapshot made");
    let set = "<Tags><TagSet><Tag><Key>k</Key><Value>other</Value></Tag></TagSet></Tags>";
    blob.request("PUT", &format!("?comp=tags&versionid={first}")).body(set).await.expect(204);
    assert_eq!(found("old", "&include=versions").await, 1);
    assert_eq!(found("other", "&include=versions").await, 1);
    let of_snapshot = blob.request("GET", &format!("?comp=tags&snapshot={at}")).await.expect(200).text();
    assert_eq!(element(&of_snapshot, "Value"), "old");
    keep_deleted(&lazuli, 1, false).await;
    blob.request("DELETE", &format!("?versionid={first}")).await.expect(202);
    assert_eq!(found("other", "&include=versions").await, 0, "what is deleted is not found");
    blob.request("PUT", "?comp=undelete").await.expect(200);
    assert_eq!(found("other", "&include=versions").await, 1);
}

#[tokio::test]
async fn a_deleted_blob_is_listed_restored_and_expires() {
    let lazuli = Lazuli::start().await;
    keep_deleted(&lazuli, 2, false).await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    blob.put("one").header("x-ms-tags", "k=1").await.expect(201);
    let at = take(&blob).await;
    let deleted = blob.delete().header("x-ms-delete-snapshots", "include").await.expect(202);
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), "false");
    for refused in [blob.get(), blob.head(), blob.delete(), blob.request("GET", &format!("?snapshot={at}"))] {
        refused.await.refused(404, "BlobNotFound");
    }
    assert_eq!(listed(&container, "&include=snapshots").await, [""; 0]);
    assert_eq!(listed(&container, "&include=deleted").await, ["a Deleted"]);
    assert_eq!(listed(&container, "&showonly=deleted").await, ["a Deleted"]);
    assert_eq!(listed(&container, "&include=deleted,snapshots").await, ["a Snapshot Deleted", "a Deleted"]);
    lazuli.clock.advance(DAY / 2);
    let xml = container.list("&include=deleted").await.expect(200).text();
    assert_eq!(element(&xml, "RemainingRetentionDays"), "1");
    assert!(element(&xml, "DeletedTime").ends_with("GMT"), "{xml}");
    let find = "&comp=blobs&where=k%3D%271%27";
    assert!(!container.request("GET", find).await.expect(200).text().contains("<Blob>"));
    blob.request("PUT", "?comp=undelete").await.expect(200);
    blob.request("PUT", "?comp=undelete").await.expect(200);
    assert!(container.request("GET", find).await.expect(200).text().contains("<Blob>"));
    assert_eq!(blob.get().await.expect(200).text(), "one");
    assert_eq!(listed(&container, "&include=deleted,snapshots").await, ["a Snapshot", "a"]);
    blob.put("two").await.expect(201);
    assert_eq!(listed(&container, "&include=deleted,snapshots").await, ["a Snapshot", "a Snapshot Deleted", "a"]);
    blob.delete().header("x-ms-delete-snapshots", "include").await.expect(202);
    lazuli.clock.advance(2 * DAY + Duration::from_secs(1));
    assert_eq!(listed(&container, "&include=deleted,snapshots").await, [""; 0]);
    blob.request("PUT", "?comp=undelete").await.refused(404, "BlobNotFound");
}

#[tokio::test]
async fn uncommitted_blocks_are_deleted_with_their_blob_or_alone() {
    let lazuli = Lazuli::start().await;
    keep_deleted(&lazuli, 2, false).await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let names = async || listed(&container, "&include=uncommittedblobs").await;
    blob.put_block("1", "one").await.expect(201);
    assert_eq!(names().await, ["a"]);
    blob.delete().header("if-match", "*").await.refused(404, "BlobNotFound");
    let lease = "11111111-2222-3333-4444-555555555555";
    blob.delete().header("x-ms-lease-id", lease).await.refused(412, "LeaseNotPresentWithBlobOperation");
    assert_eq!(names().await, ["a"]);
    let deleted = blob.delete().await.expect(202);
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), "true");
    assert_eq!(names().await, [""; 0]);
    blob.delete().await.refused(404, "BlobNotFound");
    blob.put_block_list(&["1"]).await.refused(400, "InvalidBlockList");
    blob.put("two").await.expect(201);
    blob.put_block("1", "one").await.expect(201);
    let deleted = blob.delete().await.expect(202);
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), "false");
    assert_eq!(names().await, [""; 0]);
    blob.request("PUT", "?comp=undelete").await.expect(200);
    assert_eq!(blob.get().await.expect(200).text(), "two");
    blob.put_block_list(&["1"]).await.refused(400, "InvalidBlockList");
}

#[tokio::test]
async fn what_is_deleted_is_deleted_for_good_only_with_leave() {
    let lazuli = Lazuli::start().await;
    keep_deleted(&lazuli, 2, false).await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    blob.put("one").await.expect(201);
    let at = take(&blob).await;
    let permanent = || blob.request("DELETE", &format!("?snapshot={at}&deletetype=permanent"));
    permanent().await.refused(409, "PermanentDeleteNotEnabled");
    keep_deleted(&lazuli, 2, true).await;
    permanent().await.refused(409, "BlobSnapshotNotSoftDeleted");
    blob.request("DELETE", "?deletetype=permanent").await.refused(409, "BlobSnapshotNotSoftDeleted");
    blob.request("DELETE", &format!("?snapshot={at}")).await.expect(202);
    assert_eq!(permanent().await.expect(202).header("x-ms-delete-type-permanent"), "true");
    permanent().await.refused(404, "BlobNotFound");
    assert_eq!(listed(&container, "&include=deleted,snapshots").await, ["a"]);
}

#[tokio::test]
async fn a_deleted_version_is_restored_as_a_version() {
    let lazuli = versioned().await;
    keep_deleted(&lazuli, 2, true).await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a");
    let first = version(&blob.put("one").await.expect(201));
    blob.put("two").await.expect(201);
    assert_eq!(listed(&container, "&include=deleted,snapshots").await, ["a VersionId IsCurrentVersion"], "no snapshot");
    let query = format!("?versionid={first}");
    let deleted = blob.request("DELETE", &query).await.expect(202);
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), "false");
    blob.request("GET", &query).await.refused(404, "BlobNotFound");
    let both = ["a VersionId Deleted", "a VersionId IsCurrentVersion"];
    assert_eq!(listed(&container, "&include=deleted,versions").await, both);
    blob.request("PUT", "?comp=undelete").await.expect(200);
    assert_eq!(blob.request("GET", &query).await.expect(200).text(), "one");
    blob.request("DELETE", &query).await.expect(202);
    blob.request("DELETE", &format!("{query}&deletetype=permanent")).await.expect(202);
    assert_eq!(listed(&container, "&include=deleted,versions").await, ["a VersionId IsCurrentVersion"]);
}

#[tokio::test]
async fn a_deleted_container_is_listed_and_restored() {
    let lazuli = Lazuli::start().await;
    lazuli.set_policy(AccountPolicy { container_retention_days: Some(7), ..AccountPolicy::default() });
    let container = lazuli.container("photos").await;
    container.blob("a").put("one").await.expect(201);
    container.delete().await.expect(202);
    container.blob("a").get().await.refused(404, "ContainerNotFound");
    let list = |query: &'static str| {
        let request = lazuli.client().request("GET", format!("/{ACCOUNT}?comp=list{query}"));
        async move { request.await.expect(200).text() }
    };
    assert!(!list("").await.contains("photos"));
    let xml = list("&include=deleted").await;
    assert_eq!((element(&xml, "Deleted"), element(&xml, "RemainingRetentionDays")), ("true", "7"));
    let version = element(&xml, "Version").to_owned();
    let restore = |name: &str, version: &str| {
        let request = container.request("PUT", "&comp=undelete").header("x-ms-deleted-container-name", name);
        request.header("x-ms-deleted-container-version", version)
    };
    restore("", &version).await.refused(400, "MissingRequiredHeader");
    restore("photos", "").await.refused(400, "MissingRequiredHeader");
    restore("photos", "yesterday").await.refused(400, "InvalidHeaderValue");
    restore("others", &version).await.refused(400, "InvalidHeaderValue");
    restore("photos", "01DB7228F6BEE6E7").await.refused(404, "ContainerNotFound");
    container.create().await.expect(201);
    restore("photos", &version).await.refused(409, "ContainerAlreadyExists");
    container.delete().await.expect(202);
    let restored = restore("photos", &version).await.expect(201);
    assert_eq!(restored.text(), "");
    assert_eq!(container.blob("a").get().await.expect(200).text(), "one");
    lazuli.clock.advance(8 * DAY);
    lazuli.settle().await;
    assert!(!list("&include=deleted").await.contains("<Deleted>"));
    assert_eq!(container.blob("a").get().await.expect(200).text(), "one");
}

#[tokio::test]
async fn a_listing_goes_on_inside_a_name_and_by_hierarchy() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    for name in ["a/1", "a/2", "b"] {
        let blob = container.blob(name);
        blob.put("one").await.expect(201);
        for _ in 0..3 {
            take(&blob).await;
        }
    }
    let whole = listed(&container, "&include=snapshots").await;
    assert_eq!(whole.len(), 12);
    let (mut paged, mut marker) = (Vec::new(), String::new());
    loop {
        let query = format!("&include=snapshots&maxresults=5&marker={marker}");
        paged.extend(listed(&container, &query).await);
        marker = element(&container.list(&query).await.expect(200).text(), "NextMarker").to_owned();
        if marker.is_empty() {
            break;
        }
    }
    assert_eq!(paged, whole);
    let xml = container.list("&include=snapshots&delimiter=/").await.expect(200).text();
    assert_eq!(xml.matches("<BlobPrefix>").count(), 1);
    assert_eq!(listed(&container, "&include=snapshots&delimiter=/").await.len(), 4);
    assert_eq!(listed(&container, "&startFrom=a/2&endBefore=b").await, ["a/2"]);
}
