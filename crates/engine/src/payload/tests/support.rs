//! Engines over rows that outlive them and small segments, with no background task.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::clock::{HeldClock, Timestamp};
use crate::engine::{Durability, Engine};
use crate::error::Error;
use crate::payload::refs::{self, Target};
use crate::payload::{PayloadId, PayloadOptions, Piece, Staged};
use crate::rows::codec;
use crate::rows::payload::{self, PieceChunk};
use crate::store::embedded::{Embedded, EmbeddedOptions};
use crate::store::kv::memory::MemoryKv;
use crate::store::kv::{Ask, Kv, Writes};
use crate::store::{Direction, KeyRange, Pair, Purpose, Space, StoreError};

pub(crate) const MIB: usize = 1024 * 1024;

/// Rows that several engines use one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows(Arc<MemoryKv>);

impl Kv for Rows {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.0.get(space, key)
    }
    fn chunk(&self, space: Space, ask: &Ask<'_>) -> Result<Vec<Pair>, StoreError> {
        self.0.chunk(space, ask)
    }
    fn apply(&self, writes: &Writes) -> Result<(), StoreError> {
        self.0.apply(writes)
    }
    fn sync(&self) -> Result<(), StoreError> {
        self.0.sync()
    }
    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.0.free_bytes()
    }
}

impl Rows {
    pub(crate) fn all(&self, space: Space) -> Vec<Pair> {
        self.chunk(space, &Ask::first(&KeyRange::all(), Direction::Forward, usize::MAX)).unwrap()
    }

    pub(crate) fn count(&self, space: Space) -> usize {
        self.all(space).len()
    }

    /// Writes behind the store's back.
    pub(crate) fn set(&self, space: Space, key: &[u8], value: &[u8]) {
        let mut writes = Writes::default();
        writes.set(space, Bytes::copy_from_slice(key), Some(Bytes::copy_from_slice(value)));
        self.apply(&writes).unwrap();
    }

    pub(crate) fn copy(&self) -> Self {
        let copy = Self::default();
        for space in Space::ALL {
            self.all(*space).iter().for_each(|(key, value)| copy.set(*space, key, value));
        }
        copy
    }
}

/// A data directory and what is needed to open it.
pub(crate) struct World {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) rows: Rows,
    pub(crate) clock: Arc<HeldClock>,
    pub(crate) segment_bytes: u64,
    pub(crate) reserve_bytes: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::over(tempfile::tempdir().unwrap(), Rows::default())
    }

    pub(crate) fn over(directory: tempfile::TempDir, rows: Rows) -> Self {
        let clock = Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400)));
        Self { directory, rows, clock, segment_bytes: 16 * MIB as u64, reserve_bytes: 0 }
    }

    pub(crate) fn with_segments_of(segment_bytes: u64) -> Self {
        Self { segment_bytes, ..Self::new() }
    }

    pub(crate) async fn open(&self) -> Engine {
        self.open_with(self.rows.clone()).await
    }

    pub(crate) async fn open_with(&self, kv: impl Kv) -> Engine {
        let payloads = PayloadOptions {
            directory: Some(self.payloads()),
            durability: Durability::Process,
            reserve_bytes: self.reserve_bytes,
            segment_bytes: self.segment_bytes,
            on_poison: Arc::new(|_| {}),
        };
        let store = EmbeddedOptions {
            clock: Arc::clone(&self.clock) as _,
            overlay_bytes_max: 16 * MIB,
            reserve_bytes: self.reserve_bytes,
            group_jobs_max: 16,
            on_poison: Arc::new(|_| {}),
            sync_probe: None,
        };
        let store = Embedded::open(kv, store).unwrap();
        let closed = store.closed();
        Engine::idle(Arc::new(store), closed, payloads).await.unwrap()
    }

    pub(crate) fn payloads(&self) -> PathBuf {
        self.directory.path().join("payload")
    }

    pub(crate) fn segment(&self, id: u64) -> PathBuf {
        self.payloads().join(format!("{id:016x}.seg"))
    }

    /// Bytes that the segments take on disk.
    pub(crate) fn allocated(&self) -> usize {
        let blocks: u64 = files(&self.payloads()).iter().map(|path| path.metadata().unwrap().blocks()).sum();
        usize::try_from(blocks * 512).unwrap()
    }

    /// How many chunks of pieces the body has.
    pub(crate) fn chunks_of(&self, id: PayloadId) -> usize {
        self.rows.all(Space::Payloads).iter().filter(|(key, _)| key.starts_with(&id.0.to_be_bytes())).count()
    }

    /// The pieces that rows name, of all bodies.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let chunks = self.rows.all(Space::Payloads).into_iter();
        chunks.flat_map(|(key, value)| decode(&key, &value).pieces).collect()
    }
}

pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn decode(key: &[u8], value: &[u8]) -> PieceChunk {
    codec::decode(Space::Payloads, key, value).unwrap()
}

/// Bytes that are not all alike, and differ from those of another `seed`.
pub(crate) fn body(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 251).to_le_bytes()[0] ^ seed).collect()
}

pub(crate) async fn staged(engine: &Engine, bytes: &[u8], step: usize, expected: Option<u64>) -> Result<Staged, Error> {
    let mut stage = engine.payloads().stage(true, expected);
    for part in bytes.chunks(step) {
        stage.write(Bytes::copy_from_slice(part)).await?;
    }
    stage.finish().await
}

/// Uploads `bytes` and names them.
pub(crate) async fn keep(engine: &Engine, bytes: &[u8]) -> PayloadId {
    let staged = staged(engine, bytes, 100_000, Some(bytes.len() as u64)).await.unwrap();
    engine.write_content(staged, |tx, staged| Ok(staged.keep(tx)?)).await.unwrap()
}

pub(crate) async fn release(engine: &Engine, id: PayloadId) {
    engine.write(Purpose::Free, move |tx| Ok(refs::release(tx, Target::payload(id))?)).await.unwrap();
}

pub(crate) async fn read_all(engine: &Engine, id: PayloadId) -> Result<Vec<u8>, Error> {
    let (small, chunks) = engine.read(|view| {
        let small = view.get(Space::Small, &payload::small_key(id))?;
        let chunks = view.scan(Space::Payloads, KeyRange::prefix(&payload::prefix(id)), Direction::Forward);
        Ok((small, chunks.collect::<Result<Vec<_>, _>>()?))
    })?;
    let mut bytes = small.unwrap_or_default().to_vec();
    for (key, value) in chunks {
        assert_eq!(payload::first_byte(&key).unwrap(), bytes.len() as u64);
        for piece in decode(&key, &value).pieces {
            for from in (0..piece.length).step_by(256 * 1024) {
                bytes.extend(engine.payloads().read(&piece, from, 256 * 1024, None).await?);
            }
        }
    }
    Ok(bytes)
}
