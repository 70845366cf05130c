//! Bodies: bytes first, then the rows that name them.
//!
//! A body up to [`INLINE_BYTES_MAX`] becomes a row of its own. A larger one becomes *pieces*: runs of bytes in
//! append-only segment files, with a CRC-64 for every [`FRAME_BYTES`] so that a damaged byte is found and never served.
//! A piece belongs to one body; bodies and block lists are shared by counting references ([`refs`]). Offsets are never
//! used twice and nothing is moved: space comes back by punching holes, and with whole segments.

mod heal;
pub(crate) mod pins;
pub(crate) mod refs;
pub mod seal;
mod segments;
mod stage;
mod sync;
#[cfg(test)]
pub(crate) mod tests;

use std::io::IoSliceMut;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use rustix::io::ReadWriteFlags;
use serde::{Deserialize, Serialize};

use crate::encryption::CustomerKey;
use crate::engine::Durability;
use crate::error::Error;
use crate::store::embedded::OnPoison;
use crate::store::{Space, Store, StoreError, Tx};
use pins::{Pin, Pins};
use refs::Target;
use seal::{Seal, Sealer};
use segments::{GivenUp, Place, Segment, Segments};
use sync::SyncWorker;

pub use stage::{Stage, Staged};

/// Largest body that is kept as a row.
pub const INLINE_BYTES_MAX: usize = 4 * 1024;
/// Bytes under one checksum; the unit of a read.
pub const FRAME_BYTES: u32 = 64 * 1024;
/// Largest piece.
pub const PIECE_BYTES_MAX: u32 = 4 * 1024 * 1024;
/// Size at which a segment is full.
pub const SEGMENT_BYTES: u64 = 1024 * 1024 * 1024;
/// Segments that take writes at the same time.
const WRITERS: usize = 4;

/// Names a stored body for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PayloadId(pub u64);

/// A run of stored bytes in one segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The segment.
    pub segment: u64,
    /// First byte in the segment; a multiple of 4096.
    pub offset: u64,
    /// Bytes, 1 to [`PIECE_BYTES_MAX`].
    pub length: u32,
    /// CRC-64/NVME of each frame of [`FRAME_BYTES`], the last one shorter.
    pub frames: Vec<u64>,
    /// How the frames are sealed, of a body under a customer's key.
    pub seal: Option<Seal>,
}

/// How bodies are kept.
#[derive(Clone)]
pub(crate) struct PayloadOptions {
    /// Where segments lie; none: in memory.
    pub(crate) directory: Option<PathBuf>,
    /// Whether a finished upload waits for the disk.
    pub(crate) durability: Durability,
    /// Free bytes that uploads leave for commits and deletes.
    pub(crate) reserve_bytes: u64,
    /// Size at which a segment is full; [`SEGMENT_BYTES`] but in tests.
    pub(crate) segment_bytes: u64,
    /// Called when a sync failed.
    pub(crate) on_poison: OnPoison,
}

/// Keeps a body of at most [`INLINE_BYTES_MAX`] bytes, born with one reference.
pub(crate) fn keep_small(tx: &mut dyn Tx, bytes: Vec<u8>) -> Result<PayloadId, StoreError> {
    let id = PayloadId(tx.id());
    tx.put(Space::Small, crate::rows::payload::small_key(id), bytes)?;
    Ok(id)
}

/// The bodies of one engine. Cheap to clone.
#[derive(Clone)]
pub struct Payloads {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    segments: Segments,
    sync: SyncWorker,
    pins: Pins,
    /// Ranges of uploads that were given up.
    returned: parking_lot::Mutex<mpsc::Receiver<GivenUp>>,
}

impl Payloads {
    /// Opens the bodies that `store` names, after freeing what a crash left unnamed.
    pub(crate) async fn open(store: Arc<dyn Store>, options: PayloadOptions) -> Result<Self, Error> {
        let place = match &options.directory {
            Some(directory) => {
                heal::create(directory)?;
                Place::Directory(directory.clone())
            }
            None => Place::Memory,
        };
        let (returns, returned) = mpsc::channel();
        let (size, reserve) = (options.segment_bytes, options.reserve_bytes);
        let segments = Segments::new(place, Arc::clone(&store), size, WRITERS, reserve, returns);
        if let Some(directory) = &options.directory {
            heal::run(&store, &segments, directory).await?;
        }
        let sync = SyncWorker::start(options.durability, options.on_poison)?;
        let (pins, returned) = (Pins::default(), parking_lot::Mutex::new(returned));
        Ok(Self { shared: Arc::new(Shared { store, segments, sync, pins, returned }) })
    }

    /// Begins an upload. `md5`: whether the MD5 is wanted; CRC-64 is always computed. `expected`: bytes to come, if
    /// known. [`Stage::seal`] puts it under a key.
    pub fn stage(&self, md5: bool, expected: Option<u64>) -> Stage {
        Stage::new(self.clone(), md5, expected)
    }

    /// Keeps `target` from being erased while the pin lives.
    pub(crate) fn pin(&self, target: Target) -> Pin {
        self.shared.pins.pin(target)
    }

    /// Who reads what.
    pub(crate) fn pins(&self) -> &Pins {
        &self.shared.pins
    }

    /// Whether somebody reads `target`.
    pub(crate) fn is_pinned(&self, target: Target) -> bool {
        self.shared.pins.holds(target)
    }

    /// Reads `length` bytes of `piece` from `from` on, at most to the end of the piece, after checking every frame
    /// that they touch, and opening it with `key` if it is sealed. Callers ask for at most 256 KiB at a time.
    pub(crate) async fn read(
        &self,
        piece: &Piece,
        from: u32,
        length: u32,
        key: Option<&CustomerKey>,
    ) -> Result<Bytes, Error> {
        let segment = self.segment(piece.segment).await?;
        let first = from - from % FRAME_BYTES;
        let end = from.saturating_add(length).min(piece.length);
        let covered_end = end.next_multiple_of(FRAME_BYTES).min(piece.length);
        let at = piece.offset + u64::from(first);
        let size = (covered_end - first) as usize;
        let mut bytes = match read_cached(&segment, at, size) {
            Some(bytes) => bytes,
            None => blocking(move || read_blocking(&segment, at, size)).await?,
        };
        for (index, frame) in bytes.chunks(FRAME_BYTES as usize).enumerate() {
            let expected = piece.frames.get((first / FRAME_BYTES) as usize + index);
            if expected != Some(&stage::checksum(frame)) {
                let offset = at + index as u64 * u64::from(FRAME_BYTES);
                return Err(StoreError::Damaged { segment: piece.segment, offset }.into());
            }
        }
        if let Some(seal) = &piece.seal
            && !open(seal, first / FRAME_BYTES, &mut bytes, key)
        {
            return Err(StoreError::Damaged { segment: piece.segment, offset: at }.into());
        }
        Ok(Bytes::from(bytes).slice((from - first) as usize..(end - first) as usize))
    }

    async fn segment(&self, id: u64) -> Result<Arc<Segment>, Error> {
        match self.shared.segments.opened(id) {
            Some(segment) => Ok(segment),
            None => {
                let shared = Arc::clone(&self.shared);
                blocking(move || shared.segments.get(id)).await
            }
        }
    }

    /// Gives back what given-up uploads had reserved; answers whether any of it was.
    pub(crate) async fn give_back(&self) -> Result<bool, Error> {
        let ranges: Vec<_> = self.shared.returned.lock().try_iter().collect();
        if ranges.is_empty() {
            return Ok(false);
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || Ok(shared.segments.give_back(ranges))).await
    }

    /// Gives the bytes of `piece` back to the file system. Harmless when repeated: offsets are never used twice. Of a
    /// file that was lost there is nothing to give back, and other bodies wait their turn. May block.
    pub(crate) fn punch(&self, piece: &Piece) -> Result<(), Error> {
        match self.shared.segments.find(piece.segment)? {
            Some(segment) => Ok(self.shared.segments.punch(&segment, piece.offset, piece.length.into())?),
            None => Ok(()),
        }
    }

    /// Whether uploads may still write to the segment.
    pub(crate) async fn takes_writes(&self, segment: u64) -> bool {
        self.shared.segments.takes_writes(segment).await
    }

    /// Full segments whose last upload is over.
    pub(crate) fn quiet(&self) -> Vec<u64> {
        self.shared.segments.quiet()
    }

    /// The row says that the segment is sealed.
    pub(crate) fn sealed(&self, segment: u64) {
        self.shared.segments.sealed(segment);
    }

    /// Removes the file of a segment that no row names any more.
    pub(crate) async fn unlink(&self, segment: u64) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.segments.unlink(segment)).await
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }
}

/// Opens the frames of a piece from `number` on; answers whether they are what was sealed under `key`.
fn open(seal: &Seal, number: u32, bytes: &mut [u8], key: Option<&CustomerKey>) -> bool {
    let Some(key) = key else { return false };
    let sealer = Sealer::with(key, seal.salt);
    bytes
        .chunks_mut(FRAME_BYTES as usize)
        .zip(number..)
        .all(|(frame, number)| seal.tags.get(number as usize).is_some_and(|tag| sealer.open(number, frame, tag)))
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Error> {
    let outcome = tokio::task::spawn_blocking(work).await;
    Ok(outcome.map_err(|error| StoreError::Backend(format!("work on segments died: {error}")))??)
}

/// The bytes, if the kernel has them all in memory: then no other thread is needed.
fn read_cached(segment: &Segment, at: u64, size: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; size];
    let slices = &mut [IoSliceMut::new(&mut bytes)];
    match rustix::io::preadv2(&segment.file, slices, at, ReadWriteFlags::NOWAIT) {
        Ok(read) if read == size => Some(bytes),
        _ => None,
    }
}

fn read_blocking(segment: &Segment, at: u64, size: usize) -> Result<Vec<u8>, StoreError> {
    use std::os::unix::fs::FileExt as _;
    let mut bytes = vec![0; size];
    match segment.file.read_exact_at(&mut bytes, at) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(StoreError::Damaged { segment: segment.id, offset: at })
        }
        Err(error) => Err(segments::failed(&format!("reading segment {:016x}", segment.id), error)),
    }
}
