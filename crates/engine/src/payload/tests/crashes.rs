//! A crash before and after every commit: rows and files as they were at that instant are opened again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::support::*;
use crate::payload::PayloadId;
use crate::store::kv::{Ask, Kv, Writes};
use crate::store::{Pair, Space, StoreError};

/// Rows that copy themselves and the files before and after each batch.
struct Recorder {
    rows: Rows,
    payloads: PathBuf,
    instants: Arc<Mutex<Vec<World>>>,
}

impl Recorder {
    fn record(&self) {
        let directory = tempfile::tempdir().unwrap();
        copy_sparse(&self.payloads, &directory.path().join("payload"));
        self.instants.lock().push(World::over(directory, self.rows.copy()));
    }
}

impl Kv for Recorder {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.rows.get(space, key)
    }
    fn chunk(&self, space: Space, ask: &Ask<'_>) -> Result<Vec<Pair>, StoreError> {
        self.rows.chunk(space, ask)
    }
    fn apply(&self, writes: &Writes) -> Result<(), StoreError> {
        self.record();
        self.rows.apply(writes)?;
        self.record();
        Ok(())
    }
    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}

fn copy_sparse(from: &Path, to: &Path) {
    use std::os::unix::fs::FileExt as _;
    std::fs::create_dir_all(to).unwrap();
    if !from.exists() {
        return;
    }
    for path in files(from) {
        let bytes = std::fs::read(&path).unwrap();
        let file = std::fs::File::create(to.join(path.file_name().unwrap())).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        for (index, block) in bytes.chunks(4096).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0)) {
            file.write_all_at(block, index as u64 * 4096).unwrap();
        }
    }
}

#[tokio::test]
async fn a_crash_at_any_commit_loses_no_named_byte_and_leaves_no_other() {
    let mut world = World::with_segments_of(96 * 1024);
    let instants = Arc::new(Mutex::new(Vec::new()));
    let recorder = Recorder { rows: world.rows.clone(), payloads: world.payloads(), instants: Arc::clone(&instants) };
    let engine = world.open_with(recorder).await;
    let mut bodies = Vec::new();
    for seed in 1..=9_u8 {
        let bytes = body(20_000 + usize::from(seed) * 5000, seed);
        let abandoned = staged(&engine, &bytes, 9000, None).await.unwrap();
        let id = keep(&engine, &bytes).await;
        if seed % 3 == 0 {
            release(&engine, id).await;
        }
        if seed % 2 == 0 {
            drop(abandoned);
            engine.settle().await.unwrap();
        }
        bodies.push((id, bytes));
    }
    engine.settle().await.unwrap();
    for (id, _) in bodies.iter().filter(|(id, _)| world.chunks_of(*id) > 0) {
        release(&engine, *id).await;
        engine.settle().await.unwrap();
    }
    drop(engine);
    world.rows = Rows::default();
    let instants = std::mem::take(&mut *instants.lock());
    assert!(instants.len() > 40);
    for instant in instants {
        check(&instant, &bodies).await;
    }
}

async fn check(world: &World, bodies: &[(PayloadId, Vec<u8>)]) {
    let dead: Vec<_> = world.rows.all(Space::Dead).into_iter().map(|(key, _)| key[9..].to_vec()).collect();
    let engine = world.open().await;
    for (id, bytes) in bodies {
        let key = id.0.to_be_bytes();
        if world.chunks_of(*id) > 0 && !dead.iter().any(|dead| dead[..] == key) {
            assert_eq!(&read_all(&engine, *id).await.unwrap(), bytes);
        }
    }
    engine.settle().await.unwrap();
    assert_eq!(world.rows.count(Space::Dead), 0);
    let named: usize = world.pieces().iter().map(|piece| (piece.length as usize).next_multiple_of(4096)).sum();
    assert!(world.allocated() <= named, "{} allocated, {named} named", world.allocated());
    assert_eq!(world.rows.count(Space::Extents), world.pieces().len());
    let segments = world.rows.all(Space::Segments);
    assert_eq!(files(&world.payloads()).len(), segments.len());
    assert!(segments.iter().all(|(_, row)| row[..] == [1, 1]), "all sealed");
}
