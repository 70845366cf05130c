//! Snapshots, versions and deletions that meet: what the answers say is what is there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use lazuli_engine::blob::listing::{self, Entry, ListBlobs, Shown};
use lazuli_engine::blob::removal::{self, Snapshots};
use lazuli_engine::blob::{OnBlob, Part, snapshot};
use lazuli_engine::names::AccountName;
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::service::properties::{Change, DeleteRetention};
use lazuli_engine::service::{self, ServiceKind};
use lazuli_engine::{Engine, Error, Refusal};
use support::*;

fn account() -> AccountName {
    AccountName::parse("dev").unwrap()
}

fn keep_versions(engine: &Engine) {
    let policy = AccountPolicy { versioning: true, ..AccountPolicy::default() };
    engine.set_policies(Policies::default().with(account(), policy));
}

async fn keep_deleted(engine: &Engine, days: u16) {
    let delete_retention = Some(DeleteRetention { days: Some(days), allow_permanent: false });
    let change = Change { delete_retention, ..Change::default() };
    service::set(engine, account(), ServiceKind::Blob, change).await.unwrap();
}

/// How many snapshots, deleted and not, one page shows.
async fn count(engine: &Engine) -> (usize, usize) {
    let request = ListBlobs {
        container: at("photos"),
        prefix: String::new(),
        delimiter: None,
        from: None,
        before: None,
        start: None,
        limit: 5000,
        shown: Shown { snapshots: true, deleted: true, ..Shown::default() },
        tags: false,
    };
    let page = listing::list(engine, request).await.unwrap();
    let (mut live, mut deleted) = (0, 0);
    for entry in page.entries {
        match entry {
            Entry::Blob(blob) if blob.part == Part::Base => {}
            Entry::Blob(blob) if blob.deleted.is_some() => deleted += 1,
            _ => live += 1,
        }
    }
    (live, deleted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_snapshots_are_deleted_all_or_none() {
    const TAKEN: usize = 600;
    let (engine, _) = engine().await;
    for days in [None, Some(1)] {
        put(&engine, on("x"), pattern(5000, 1)).await.unwrap();
        if let Some(days) = days {
            keep_deleted(&engine, days).await;
        }
        join_all((0..TAKEN).map(|_| snapshot::take(&engine, on("x"), None))).await;
        let (watched, done) = (engine.clone(), Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&done);
        let watcher = tokio::spawn(async move {
            let mut seen = Vec::new();
            while !over.load(Ordering::Acquire) {
                seen.push(count(&watched).await);
            }
            seen
        });
        removal::delete(&engine, on("x"), Snapshots::Only).await.unwrap();
        engine.settle().await.unwrap();
        done.store(true, Ordering::Release);
        let after = if days.is_some() { (0, TAKEN) } else { (0, 0) };
        assert_eq!(count(&engine).await, after);
        for seen in watcher.await.unwrap() {
            assert!([(TAKEN, 0), after].contains(&seen), "{seen:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_write_of_many_writers_is_kept_as_a_version() {
    let (engine, _) = engine().await;
    keep_versions(&engine);
    let writers = (0_u8..8).map(|writer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let mut written = Vec::new();
            for round in 0_u8..20 {
                let bytes = vec![writer, round];
                let version = put(&engine, on("x"), bytes.clone()).await.unwrap().version.unwrap();
                written.push((version, bytes));
            }
            written
        })
    });
    let written: HashMap<_, _> = join_all(writers).await.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(written.len(), 160, "no two versions have one id");
    for (version, bytes) in written {
        let on = OnBlob { part: Part::Version(version), ..on("x") };
        assert_eq!(read(&engine, on).await.unwrap(), bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_snapshot_taken_among_writes_is_one_of_them_whole() {
    let (engine, _) = engine().await;
    let first = put(&engine, on("x"), pattern(9000, 255)).await.unwrap();
    let writer = engine.clone();
    let writing = tokio::spawn(async move {
        let mut written = HashMap::from([(first.etag, 255)]);
        for seed in 0..50 {
            written.insert(put(&writer, on("x"), pattern(9000, seed)).await.unwrap().etag, seed);
        }
        written
    });
    let mut taken = Vec::new();
    for _ in 0..50 {
        taken.push(snapshot::take(&engine, on("x"), None).await.unwrap());
    }
    let written = writing.await.unwrap();
    engine.settle().await.unwrap();
    for taken in taken {
        let on = OnBlob { part: Part::Snapshot(taken.at), ..on("x") };
        assert_eq!(read(&engine, on).await.unwrap(), pattern(9000, written[&taken.written.etag]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_snapshot_is_taken_before_the_blob_goes_or_not_at_all() {
    let (engine, _) = engine().await;
    for round in 0..50 {
        let name = format!("x{round}");
        put(&engine, on(&name), "1").await.unwrap();
        let (taker, taken_of) = (engine.clone(), on(&name));
        let taking = tokio::spawn(async move { snapshot::take(&taker, taken_of, None).await });
        let gone = delete(&engine, on(&name)).await;
        match (taking.await.unwrap(), gone) {
            (Ok(taken), Err(Error::Refused(Refusal::SnapshotsPresent))) => {
                let snapshot = OnBlob { part: Part::Snapshot(taken.at), ..on(&name) };
                assert_eq!(read(&engine, snapshot).await.unwrap(), b"1");
            }
            (Err(Error::Refused(Refusal::BlobNotFound)), Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}
