//! A closed engine lets go of its directory, whoever was still busy with it.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test ends where it fails, and exports nothing")]

mod support;

use std::path::Path;

use futures_util::FutureExt as _;
use lazuli_engine::blob::{Stored, object};
use lazuli_engine::{Durability, Engine, Options};
use support::{clock, create, on, pattern, put, read};

async fn open(directory: &Path) -> Engine {
    let options = Options { durability: Durability::Process, reserve_bytes: 0, ..Options::new(directory, clock()) };
    Engine::open(options).await.unwrap()
}

#[tokio::test]
async fn a_closed_engine_opens_again_at_once_with_all_it_held() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path()).await;
    create(&engine, "photos").await.unwrap();
    engine.close().await;
    for round in 0..10 {
        let engine = open(directory.path()).await;
        if round > 0 {
            assert_eq!(read(&engine, on("blob")).await.unwrap(), pattern(300_000, round - 1));
        }
        // What this replaces is background work when the engine closes.
        put(&engine, on("blob"), pattern(300_000, round)).await.unwrap();
        engine.close().await;
    }
}

#[tokio::test]
async fn closing_waits_for_clones_uploads_and_downloads() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path()).await;
    create(&engine, "photos").await.unwrap();
    put(&engine, on("blob"), pattern(300_000, 1)).await.unwrap();
    let mut download = object::download(&engine, on("blob"), None).await.unwrap();
    let mut stage = engine.payloads().stage(false, None);
    let clone = engine.clone();
    let mut closing = Box::pin(engine.close());
    assert!(closing.as_mut().now_or_never().is_none());

    // Those under way go on to their end.
    stage.write(pattern(300_000, 2).into()).await.unwrap();
    object::put(&clone, on("late"), Stored::default(), stage.finish().await.unwrap()).await.unwrap();
    drop(clone);
    assert!(closing.as_mut().now_or_never().is_none());
    let mut bytes = Vec::new();
    while let Some(part) = download.reader.next().await.unwrap() {
        bytes.extend_from_slice(&part);
    }
    assert!(bytes == pattern(300_000, 1));
    drop(download);
    closing.await;
    assert_eq!(read(&open(directory.path()).await, on("late")).await.unwrap(), pattern(300_000, 2));
}
