//! Listings, through the engine's public functions.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod support;

use lazuli_engine::blob::container::{self, ListContainers};
use lazuli_engine::blob::listing::{self, Entry, ListBlobs, Shown};
use lazuli_engine::names::AccountName;
use lazuli_engine::properties::Metadata;
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
            Entry::Blob(blob) => blob.name.to_string(),
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
        container::create(&engine, at(name), Metadata::default(), Default::default()).await.unwrap();
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

#[tokio::test]
async fn containers_of_the_system_are_listed_only_on_request() {
    let (engine, _) = engine().await;
    for name in ["$blobchangefeed", "$logs", "$root", "$web"] {
        container::create(&engine, at(name), Metadata::default(), Default::default()).await.unwrap();
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
    container::create(&engine, at("photos"), Metadata::default(), Default::default()).await.unwrap();
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
