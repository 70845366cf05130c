//! Listings, through the engine's public functions.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod support;

use futures_util::future::join_all;
use lazuli_engine::blob::container::{self, ListContainers};
use lazuli_engine::blob::listing::{self, Entry, ListBlobs, Shown};
use lazuli_engine::blob::removal::{self, Snapshots};
use lazuli_engine::blob::{Marker, OnBlob, Part, snapshot};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::names::AccountName;
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::service::properties::{Change, DeleteRetention};
use lazuli_engine::service::{self, ServiceKind};
use lazuli_engine::store::Space;
use lazuli_engine::{Engine, Refusal};
use support::*;

fn request(prefix: &str, delimiter: Option<&str>, limit: usize) -> ListBlobs {
    ListBlobs {
        container: at("photos"),
        prefix: prefix.into(),
        delimiter: delimiter.map(Into::into),
        start: None,
        limit,
        from: None,
        before: None,
        shown: Shown::default(),
        tags: false,
    }
}

/// All lines of a listing, page by page.
async fn all(engine: &Engine, mut request: ListBlobs) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let page = listing::list(engine, request.clone()).await.unwrap();
        assert!(page.entries.len() <= request.limit);
        assert!(page.next.is_none() || page.entries.len() == request.limit, "only a full page has a next one");
        lines.extend(page.entries.into_iter().map(|entry| match entry {
            Entry::Blob(blob) => {
                let deleted = if blob.deleted.is_some() { "-" } else { "" };
                match blob.part {
                    Part::Base => format!("{}{deleted}", blob.name),
                    Part::Snapshot(at) => format!("{}@{}{deleted}", blob.name, at.ticks()),
                    Part::Version(id) => format!("{}#{}{deleted}", blob.name, id.ticks()),
                }
            }
            Entry::VersionsOnly(blob) => format!("{}+", blob.name),
            Entry::Uncommitted(name) => format!("~{name}"),
            Entry::Prefix(prefix) => format!("{prefix}*"),
        }));
        match page.next {
            Some(next) => request.start = Some(next),
            None => return lines,
        }
    }
}

#[tokio::test]
async fn every_prefix_delimiter_and_page_size_lists_each_name_once_in_order() {
    let (engine, _) = engine().await;
    let names = ["a", "a/", "a/b", "a/b/c", "a/c", "a0", "b", "b//x", "b/y", "c!/d", "é/1", "é/2", "\u{10FFFF}/z"];
    for name in names {
        put(&engine, on(name), name.to_owned()).await.unwrap();
    }
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    for prefix in ["", "a", "a/", "b/", "é", "z", "\u{10FFFF}"] {
        for delimiter in [None, Some("/"), Some("b"), Some("//")] {
            let mut expected: Vec<String> = Vec::new();
            for name in sorted.iter().filter(|name| name.starts_with(prefix)) {
                let line =
                    match delimiter.and_then(|delimiter| name[prefix.len()..].find(delimiter).zip(Some(delimiter))) {
                        Some((at, delimiter)) => format!("{}*", &name[..prefix.len() + at + delimiter.len()]),
                        None => (*name).to_string(),
                    };
                if expected.last() != Some(&line) {
                    expected.push(line);
                }
            }
            for limit in [1, 2, 3, 100] {
                let lines = all(&engine, request(prefix, delimiter, limit)).await;
                assert_eq!(lines, expected, "prefix {prefix:?} delimiter {delimiter:?} limit {limit}");
            }
        }
    }
}

#[tokio::test]
async fn uncommitted_names_are_listed_only_when_asked_for_and_only_without_a_blob() {
    let (engine, _) = engine().await;
    put(&engine, on("b"), "1").await.unwrap();
    for name in ["a", "b", "c/d"] {
        put_block(&engine, on(name), "i", "1").await.unwrap();
    }
    assert_eq!(all(&engine, request("", None, 10)).await, ["b"]);
    let asked = |delimiter, limit| ListBlobs {
        shown: Shown { uncommitted: true, ..Shown::default() },
        ..request("", delimiter, limit)
    };
    assert_eq!(all(&engine, asked(None, 1)).await, ["~a", "b", "~c/d"]);
    assert_eq!(all(&engine, asked(Some("/"), 2)).await, ["~a", "b", "c/*"]);
}

/// Shows every kind of line or not, by the bits of `flags`.
fn shown(flags: u8) -> Shown {
    let bit = |bit: u8| flags & (1 << bit) != 0;
    Shown {
        uncommitted: bit(0),
        snapshots: bit(1),
        versions: bit(2),
        deleted: bit(3) || bit(5),
        versions_only: bit(4),
        only_deleted: bit(5),
    }
}

/// What stands in a container: a line, and what must be shown for it.
type Lines = Vec<(String, fn(Shown) -> bool)>;

/// A container with names in every state, and its lines in order.
async fn every_state(engine: &Engine) -> Lines {
    let versioning = |versioning| {
        let policy = AccountPolicy { versioning, ..AccountPolicy::default() };
        engine.set_policies(Policies::default().with(AccountName::parse("dev").unwrap(), policy));
    };
    let change =
        |days| Change { delete_retention: Some(DeleteRetention { days, allow_permanent: false }), ..Change::default() };
    let retention = |days| service::set(engine, AccountName::parse("dev").unwrap(), ServiceKind::Blob, change(days));
    let snapshot = |name: &'static str| async move { snapshot::take(engine, on(name), None).await.unwrap().at.ticks() };
    let version = |name: &'static str| async move { put(engine, on(name), "v").await.unwrap().version.unwrap() };
    let removed = |name: &'static str| removal::delete(engine, on(name), Snapshots::Include);
    let mut lines: Lines = vec![("a".into(), |shown| !shown.only_deleted)];
    put(engine, on("a"), "1").await.unwrap();
    // Two snapshots, and uncommitted blocks behind the blob.
    put(engine, on("a/1"), "1").await.unwrap();
    for _ in 0..2 {
        let at = snapshot("a/1").await;
        lines.push((format!("a/1@{at}"), |shown| shown.snapshots && !shown.only_deleted));
    }
    put_block(engine, on("a/1"), "i", "1").await.unwrap();
    lines.push(("a/1".into(), |shown| !shown.only_deleted));
    // Two previous versions and a current one.
    versioning(true);
    for last in [false, false, true] {
        let id = version("a/2").await.ticks();
        if last {
            lines.push(("a/2".into(), |shown| !shown.only_deleted));
        } else {
            lines.push((format!("a/2#{id}"), |shown| shown.versions && !shown.only_deleted));
        }
    }
    versioning(false);
    // Deleted, with a snapshot of its own; and blocks for a new one.
    retention(Some(1)).await.unwrap();
    put(engine, on("b"), "1").await.unwrap();
    let at = snapshot("b").await;
    removed("b").await.unwrap();
    put_block(engine, on("b"), "i", "1").await.unwrap();
    lines.push((format!("b@{at}-"), |shown| shown.deleted && shown.snapshots));
    lines.push(("b-".into(), |shown| shown.deleted));
    lines.push(("~b".into(), |shown| shown.uncommitted && !shown.only_deleted));
    // Overwritten.
    put(engine, on("b/x"), "1").await.unwrap();
    let at = put(engine, on("b/x"), "2").await.unwrap().etag.committed().ticks();
    lines.push((format!("b/x@{at}-"), |shown| shown.deleted && shown.snapshots));
    lines.push(("b/x".into(), |shown| !shown.only_deleted));
    // Versions without a blob, one of them deleted.
    versioning(true);
    let (first, second) = (version("c/1").await, version("c/1").await);
    removed("c/1").await.unwrap();
    removed_version(engine, "c/1", first).await;
    versioning(false);
    lines.push((format!("c/1#{}-", first.ticks()), |shown| shown.deleted && shown.versions));
    lines.push((format!("c/1#{}", second.ticks()), |shown| shown.versions && !shown.only_deleted));
    lines.push(("c/1+".into(), |shown| shown.versions_only && !shown.only_deleted));
    put_block(engine, on("c/2"), "i", "1").await.unwrap();
    lines.push(("~c/2".into(), |shown| shown.uncommitted && !shown.only_deleted));
    // So many snapshots that they are deleted by a sweep, and one taken since.
    put(engine, on("d"), "1").await.unwrap();
    for _ in 0..258 {
        let at = snapshot("d").await;
        lines.push((format!("d@{at}-"), |shown| shown.deleted && shown.snapshots));
    }
    removal::delete(engine, on("d"), Snapshots::Only).await.unwrap();
    let at = snapshot("d").await;
    lines.push((format!("d@{at}"), |shown| shown.snapshots && !shown.only_deleted));
    lines.push(("d".into(), |shown| !shown.only_deleted));
    lines
}

async fn removed_version(engine: &Engine, name: &str, id: Timestamp) {
    let on = OnBlob { part: Part::Version(id), ..on(name) };
    removal::delete(engine, on, Snapshots::Refuse).await.unwrap();
}

/// The lines that a listing shows, those under a common prefix drawn together.
fn drawn(lines: &Lines, shown: Shown, prefix: &str, delimiter: Option<&str>) -> Vec<String> {
    let mut drawn: Vec<String> = Vec::new();
    for (line, _) in lines.iter().filter(|(_, needs)| needs(shown)) {
        let name = line.trim_start_matches('~').split(['@', '#', '+', '-']).next().unwrap();
        if !name.starts_with(prefix) {
            continue;
        }
        let cut = delimiter.and_then(|delimiter| Some(name[prefix.len()..].find(delimiter)? + delimiter.len()));
        let line = cut.map_or_else(|| line.clone(), |cut| format!("{}*", &name[..prefix.len() + cut]));
        if drawn.last() != Some(&line) {
            drawn.push(line);
        }
    }
    drawn
}

#[tokio::test]
async fn every_include_prefix_delimiter_and_page_size_lists_each_line_once_in_order() {
    let (engine, _) = engine().await;
    let lines = every_state(&engine).await;
    for flags in 0..64 {
        for (prefix, delimiter) in [("", None), ("", Some("/")), ("a/", Some("/")), ("b", None), ("c/", Some("/"))] {
            let expected = drawn(&lines, shown(flags), prefix, delimiter);
            for limit in [1, 3, 1000] {
                if limit == 1 && expected.len() > 100 {
                    continue;
                }
                let listed = all(&engine, ListBlobs { shown: shown(flags), ..request(prefix, delimiter, limit) }).await;
                assert_eq!(listed, expected, "{:?} {prefix} {delimiter:?} {limit}", shown(flags));
            }
        }
    }
    // What the sweep hid at once is carried out for each since.
    engine.settle().await.unwrap();
    for flags in [0b10, 0b1010, 0b10_1010] {
        let listed = all(&engine, ListBlobs { shown: shown(flags), ..request("", None, 7) }).await;
        assert_eq!(listed, drawn(&lines, shown(flags), "", None), "{:?}", shown(flags));
    }
}

#[tokio::test]
async fn a_page_ends_short_rather_than_pass_over_thousands_of_rows() {
    let (engine, _) = engine().await;
    let delete_retention = Some(DeleteRetention { days: Some(1), allow_permanent: false });
    let change = Change { delete_retention, ..Change::default() };
    service::set(&engine, AccountName::parse("dev").unwrap(), ServiceKind::Blob, change).await.unwrap();
    put(&engine, on("b"), "1").await.unwrap();
    // Each but the first makes a deleted snapshot, which a listing of deleted versions does not show.
    for _ in 0..20 {
        join_all((0..256).map(|_| put(&engine, on("a"), "1"))).await;
    }
    let shown = Shown { versions: true, deleted: true, ..Shown::default() };
    let mut request = ListBlobs { shown, ..request("", None, 10) };
    let first = listing::list(&engine, request.clone()).await.unwrap();
    assert_eq!(first.entries, []);
    request.start = first.next;
    let rest = listing::list(&engine, request).await.unwrap();
    assert_eq!((rest.entries.len(), rest.next), (2, None));
}

#[tokio::test]
async fn names_are_listed_from_one_and_before_another() {
    let (engine, _) = engine().await;
    for name in ["a", "a/b", "b", "b/c", "c"] {
        put(&engine, on(name), "1").await.unwrap();
    }
    let cases = [
        (Some("a/b"), None, "", None, &["a/b", "b", "b/c", "c"][..]),
        (Some("aa"), Some("c"), "", None, &["b", "b/c"]),
        (None, Some("b"), "", None, &["a", "a/b"]),
        (Some("a/b"), Some("b/c"), "", Some("/"), &["a/*", "b"]),
        (Some("a"), None, "b", None, &["b", "b/c"]),
        (Some("c"), Some("b"), "", None, &[]),
        (Some("z"), None, "", None, &[]),
    ];
    for (from, before, prefix, delimiter, expected) in cases {
        for limit in [1, 10] {
            let (from, before) = (from.map(str::to_owned), before.map(str::to_owned));
            let bounded = ListBlobs { from: from.clone(), before: before.clone(), ..request(prefix, delimiter, limit) };
            assert_eq!(all(&engine, bounded).await, expected, "{from:?} {before:?} {prefix}");
        }
    }
}

#[tokio::test]
async fn a_marker_that_nobody_gave_out_does_no_harm() {
    let (engine, _) = engine().await;
    put(&engine, on("b"), "1").await.unwrap();
    for (marker, expected) in [
        (&b""[..], &["b"][..]),
        (b"a", &["b"]),
        (b"b\x00\x01", &["b"]),
        (b"b\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff", &[]),
        (b"b\x00", &["b"]),
        (b"\xff\xff", &[]),
    ] {
        let start = Some(Marker(marker.to_vec()));
        for flags in [0, 63] {
            let listed =
                all(&engine, ListBlobs { start: start.clone(), shown: shown(flags & 31), ..request("", None, 9) });
            assert_eq!(listed.await, expected, "{marker:?} {flags}");
        }
    }
}

#[tokio::test]
async fn a_container_that_is_not_there_has_no_listing() {
    let (engine, _) = engine().await;
    let elsewhere = ListBlobs { container: at("elsewhere"), ..request("", None, 1) };
    assert_eq!(refusal(listing::list(&engine, elsewhere).await), Refusal::ContainerNotFound);
}

#[tokio::test]
async fn containers_are_listed_by_account_prefix_and_page() {
    let (engine, _) = engine().await;
    for name in ["alpha", "beta", "beta2", "zeta"] {
        create(&engine, name).await.unwrap();
    }
    let account = |name| AccountName::parse(name).unwrap();
    for (name, prefix, expected) in [
        ("dev", "", &["alpha", "beta", "beta2", "photos", "zeta"][..]),
        ("dev", "beta", &["beta", "beta2"]),
        ("dev", "zz", &[]),
        ("dev2", "", &[]),
    ] {
        for limit in [1, 2, 10] {
            let mut names = Vec::new();
            let mut start = None;
            loop {
                let request = ListContainers {
                    account: account(name),
                    prefix: prefix.into(),
                    start,
                    limit,
                    deleted: false,
                    system: false,
                };
                let page = container::list(&engine, request).await.unwrap();
                names.extend(page.containers.into_iter().map(|container| container.name.to_string()));
                start = page.next;
                if start.is_none() {
                    break;
                }
            }
            assert_eq!(names, expected, "{name} {prefix} {limit}");
        }
    }
}

/// Found by the model: the page after the deleted ones of a name began with them again.
#[tokio::test]
async fn deleted_containers_are_listed_once_before_the_one_that_took_their_name() {
    let (engine, _) = engine().await;
    let policy = AccountPolicy { container_retention_days: Some(1), ..AccountPolicy::default() };
    engine.set_policies(Policies::default().with(AccountName::parse("dev").unwrap(), policy));
    for _ in 0..3 {
        container::delete(&engine, on_container("photos")).await.unwrap();
        create(&engine, "photos").await.unwrap();
    }
    create(&engine, "zeta").await.unwrap();
    for (deleted, expected) in
        [(true, &["photos-", "photos-", "photos-", "photos", "zeta"][..]), (false, &["photos", "zeta"])]
    {
        for limit in 1..=6 {
            let (mut names, mut start) = (Vec::new(), None);
            for _ in 0..=expected.len() {
                let account = AccountName::parse("dev").unwrap();
                let request = ListContainers { account, prefix: "".into(), start, limit, deleted, system: false };
                let page = container::list(&engine, request).await.unwrap();
                names.extend(page.containers.into_iter().map(|container| {
                    format!("{}{}", container.name, if container.deleted.is_some() { "-" } else { "" })
                }));
                start = page.next;
                if start.is_none() {
                    break;
                }
            }
            assert_eq!((names, start), (expected.iter().map(ToString::to_string).collect(), None), "{limit}");
        }
    }
}

#[tokio::test]
async fn containers_of_the_system_are_listed_only_on_request() {
    let (engine, _) = engine().await;
    for name in ["$blobchangefeed", "$logs", "$root", "$web"] {
        create(&engine, name).await.unwrap();
    }
    for (system, expected) in
        [(false, &["$root", "photos"][..]), (true, &["$blobchangefeed", "$logs", "$root", "$web", "photos"])]
    {
        for limit in [1, 2, 10] {
            let mut names = Vec::new();
            let mut start = None;
            loop {
                let account = AccountName::parse("dev").unwrap();
                let request = ListContainers { account, prefix: String::new(), system, deleted: false, start, limit };
                let page = container::list(&engine, request).await.unwrap();
                names.extend(page.containers.into_iter().map(|container| container.name.to_string()));
                start = page.next;
                if start.is_none() {
                    break;
                }
            }
            assert_eq!(names, expected, "{limit}");
        }
    }
}

#[tokio::test]
async fn a_deleted_container_takes_its_blobs_along_and_its_name_is_free_at_once() {
    let (engine, _) = engine().await;
    for index in 0..600 {
        put(&engine, on(&format!("{index:04}")), pattern(5000, 1)).await.unwrap();
    }
    put_block(&engine, on("staged"), "a", pattern(5000, 2)).await.unwrap();
    container::delete(&engine, on_container("photos")).await.unwrap();
    assert_eq!(refusal(read(&engine, on("0000")).await), Refusal::ContainerNotFound);
    create(&engine, "photos").await.unwrap();
    assert!(
        all(&engine, ListBlobs { shown: Shown { uncommitted: true, ..Shown::default() }, ..request("", None, 10) })
            .await
            .is_empty()
    );
    engine.settle().await.unwrap();
    let mut left = engine.census().unwrap();
    left.retain(|(space, _)| *space != Space::Segments);
    assert_eq!(left, [(Space::Containers, 1)], "nothing of the old container is left");
}
