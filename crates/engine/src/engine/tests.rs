use std::path::Path;

use bytes::Bytes;

use super::*;
use crate::blob::removal::{self, Snapshots};
use crate::blob::{OnBlob, Stored, container, object};
use crate::clock::{HeldClock, Timestamp};
use crate::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};
use crate::rows;
use crate::rows::segment::{self, SegmentRow};

const SMALL_SEGMENT_BYTES: u64 = 256 * 1024;

fn rows_in_memory() -> Arc<dyn Store> {
    let options = EmbeddedOptions {
        clock: Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400))),
        overlay_bytes_max: OVERLAY_BYTES_MAX,
        reserve_bytes: 0,
        group_jobs_max: GROUP_JOBS_MAX,
        on_poison: Arc::new(|_| {}),
        sync_probe: None,
    };
    Arc::new(Embedded::open(MemoryKv::default(), options).unwrap())
}

/// An engine with small segments in `directory`.
async fn over(store: &Arc<dyn Store>, directory: &Path) -> Engine {
    let payloads = PayloadOptions {
        directory: Some(directory.join("payload")),
        durability: Durability::Process,
        reserve_bytes: 0,
        segment_bytes: SMALL_SEGMENT_BYTES,
        on_poison: Arc::new(|_| {}),
    };
    Engine::over(Arc::clone(store), Box::pin(std::future::ready(())), payloads).await.unwrap()
}

fn at() -> ContainerAddress {
    ContainerAddress { account: AccountName::parse("dev").unwrap(), container: ContainerName::parse("photos").unwrap() }
}

fn on(blob: &str) -> OnBlob {
    let address = BlobAddress { container: at(), blob: BlobName::parse(blob).unwrap() };
    OnBlob::at(address)
}

async fn put(engine: &Engine, blob: &str, bytes: Vec<u8>) {
    let mut stage = engine.payloads().stage(false, Some(bytes.len() as u64));
    stage.write(Bytes::from(bytes)).await.unwrap();
    let staged = stage.finish().await.unwrap();
    object::put(engine, on(blob), Stored::default(), staged).await.unwrap();
}

fn files(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("payload")).unwrap().count()
}

fn segments(engine: &Engine) -> usize {
    engine.census().unwrap().into_iter().find(|(space, _)| *space == Space::Segments).map_or(0, |(_, rows)| rows)
}

/// Puts, reads, gives up and deletes under a name of its own.
async fn live(engine: Engine, seed: usize) {
    let name = format!("blob-{seed}");
    for round in 0..40 {
        let length = 5000 + (seed * 7919 + round * 104_729) % 400_000;
        let bytes: Vec<u8> =
            (0..length).map(|at| u8::try_from(((at / 251) ^ at ^ seed ^ round) % 256).unwrap()).collect();
        put(&engine, &name, bytes.clone()).await;
        let mut given_up = engine.payloads().stage(false, None);
        given_up.write(Bytes::from(vec![1; 300_000])).await.unwrap();
        drop(given_up);
        let mut download = object::download(&engine, on(&name), None).await.unwrap();
        removal::delete(&engine, on(&name), Snapshots::Refuse).await.unwrap();
        let mut read = Vec::new();
        while let Some(part) = download.reader.next().await.unwrap() {
            read.extend_from_slice(&part);
            tokio::task::yield_now().await;
        }
        assert!(read == bytes, "{name} in round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn segments_come_and_go_under_uploads_and_readers_and_only_those_that_take_writes_remain() {
    let (store, directory) = (rows_in_memory(), tempfile::tempdir().unwrap());
    let engine = over(&store, directory.path()).await;
    container::create(&engine, at(), container::NewContainer::default()).await.unwrap();
    let lives: Vec<_> = (0..8).map(|seed| tokio::spawn(live(engine.clone(), seed))).collect();
    for life in lives {
        life.await.unwrap();
    }
    engine.settle().await.unwrap();
    let census = engine.census().unwrap();
    let left: Vec<_> = census.iter().map(|(space, _)| *space).collect();
    assert_eq!(left, [Space::Containers, Space::Segments], "{census:?}");
    assert!(segments(&engine) <= 4, "{census:?}");
    assert_eq!(files(directory.path()), segments(&engine));
}

#[tokio::test]
async fn a_sealed_segment_that_a_crash_left_empty_goes_at_the_next_start() {
    let (store, directory) = (rows_in_memory(), tempfile::tempdir().unwrap());
    let engine = over(&store, directory.path()).await;
    let sealed = |tx: &mut dyn Tx| rows::put(tx, Space::Segments, segment::key(9999), &SegmentRow::Sealed);
    store::transact(&*store, Purpose::Free, sealed).await.unwrap();
    std::fs::write(directory.path().join("payload").join(format!("{:016x}.seg", 9999)), [0; 4096]).unwrap();
    drop(engine);
    let engine = over(&store, directory.path()).await;
    assert_eq!((segments(&engine), files(directory.path())), (0, 0));
}

#[tokio::test]
async fn a_lost_segment_does_not_keep_the_bodies_of_others_from_being_erased() {
    let (store, directory) = (rows_in_memory(), tempfile::tempdir().unwrap());
    let engine = over(&store, directory.path()).await;
    container::create(&engine, at(), container::NewContainer::default()).await.unwrap();
    put(&engine, "lost", vec![1; 100_000]).await;
    let file = std::fs::read_dir(directory.path().join("payload")).unwrap().next().unwrap().unwrap();
    put(&engine, "other", vec![2; 100_000]).await;
    drop(engine);
    std::fs::remove_file(file.path()).unwrap();
    let engine = over(&store, directory.path()).await;
    removal::delete(&engine, on("lost"), Snapshots::Refuse).await.unwrap();
    removal::delete(&engine, on("other"), Snapshots::Refuse).await.unwrap();
    engine.settle().await.unwrap();
    let census = engine.census().unwrap();
    assert_eq!(census.iter().map(|(space, _)| *space).collect::<Vec<_>>(), [Space::Containers], "{census:?}");
}
