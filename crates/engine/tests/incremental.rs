//! Incremental copies: what they share, and what is left of them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test ends where it fails")]

mod support;

use lazuli_engine::blob::incremental::{self, IncrementalCopy};
use lazuli_engine::blob::pages::{self, SequenceConditions};
use lazuli_engine::blob::removal::{self, Snapshots};
use lazuli_engine::blob::{OnBlob, Part, Stored, Written, snapshot};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::store::Space;
use lazuli_engine::{Engine, Error};
use support::*;
use uuid::Uuid;

const MIB: u64 = 1024 * 1024;

async fn write(engine: &Engine, first: u64, seed: u8) {
    let content = staged(engine, pattern(100 * 512, seed)).await;
    pages::put(engine, on("source"), SequenceConditions::default(), first, content).await.unwrap();
}

async fn taken(engine: &Engine, blob: &str) -> Timestamp {
    snapshot::take(engine, on(blob), None).await.unwrap().at
}

fn part(blob: &str, at: Timestamp) -> OnBlob {
    OnBlob { part: Part::Snapshot(at), ..on(blob) }
}

async fn copied(engine: &Engine, of: Timestamp) -> Result<Written, Error> {
    let request = IncrementalCopy { id: Uuid::from_u128(7), url: "http://host/dev/photos/source".into() };
    incremental::copy(engine, part("source", of), on("target"), request).await
}

async fn made(engine: &Engine) -> Timestamp {
    view(engine, "target").await.copy.unwrap().incremental.unwrap().snapshot.unwrap()
}

fn rows(engine: &Engine, space: Space) -> usize {
    engine.census().unwrap().into_iter().find(|(name, _)| *name == space).map_or(0, |(_, rows)| rows)
}

#[tokio::test]
async fn copies_share_every_page_and_leave_nothing_behind() {
    for versioning in [false, true] {
        let (engine, _) = engine().await;
        let policy = AccountPolicy { versioning, ..AccountPolicy::default() };
        engine.set_policies(Policies::default().with(at("photos").account, policy));
        pages::create(&engine, on("source"), Stored::default(), 1024 * MIB, 3).await.unwrap();
        let mut generations = Vec::new();
        for seed in 0..4 {
            write(&engine, u64::from(seed % 3) * MIB, seed).await;
            let of = taken(&engine, "source").await;
            let before = (rows(&engine, Space::Pages), rows(&engine, Space::Payloads));
            copied(&engine, of).await.unwrap();
            assert_eq!((rows(&engine, Space::Pages), rows(&engine, Space::Payloads)), before, "no page is copied");
            generations.push((of, made(&engine).await));
        }
        write(&engine, 0, 9).await;
        for (of, made) in &generations {
            for first in [0, MIB, 2 * MIB] {
                let range = Some((first, first + 100 * 512));
                let (has, had) = (part("target", *made), part("source", *of));
                assert_eq!(
                    read_range(&engine, has, range).await.unwrap(),
                    read_range(&engine, had, range).await.unwrap()
                );
            }
        }
        // What stays of the target is read after its source is gone.
        removal::delete(&engine, on("source"), Snapshots::Include).await.unwrap();
        engine.settle().await.unwrap();
        let last = part("target", generations.last().unwrap().1);
        assert_eq!(read_range(&engine, last, Some((0, 100 * 512 - 1))).await.unwrap(), pattern(100 * 512, 3));
        removal::delete(&engine, on("target"), Snapshots::Include).await.unwrap();
        if versioning {
            continue;
        }
        engine.settle().await.unwrap();
        let left = engine.census().unwrap();
        let only = |(space, _): &(Space, usize)| matches!(space, Space::Containers | Space::Segments);
        assert!(left.iter().all(only), "{left:?}");
    }
}
