//! Segment files: append-only, up to a bound; several take writes at once, so that uploads do not wait for each other.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

use parking_lot::Mutex;
use rustix::fs::FallocateFlags;

use super::blocking;
use crate::error::Error;
use crate::rows;
use crate::rows::segment::{self, SegmentRow};
use crate::store::kv::sled::sync_directory;
use crate::store::{Purpose, Space, Store, StoreError, transact};

/// Ranges begin at multiples of this: the unit in which file systems give space back.
pub(super) const ALIGNMENT: u64 = 4096;

/// Where segments lie.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Files of a directory.
    Directory(PathBuf),
    /// Anonymous files of the kernel: gone with the process.
    Memory,
}

impl Place {
    /// The file of a new segment, durably there.
    fn create(&self, id: u64) -> Result<File, StoreError> {
        match self {
            Self::Directory(directory) => {
                let path = directory.join(file_name(id));
                let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
                let file = file.map_err(|error| failed("a new segment", error))?;
                sync_directory(directory)?;
                Ok(file)
            }
            Self::Memory => rustix::fs::memfd_create("lazuli", rustix::fs::MemfdFlags::CLOEXEC)
                .map(File::from)
                .map_err(|error| failed("a segment in memory", error)),
        }
    }

    fn open(&self, id: u64) -> Result<Option<File>, StoreError> {
        let Self::Directory(directory) = self else { return Ok(None) };
        match OpenOptions::new().read(true).write(true).open(directory.join(file_name(id))) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&format!("segment {id:016x}"), error)),
        }
    }

    /// Bytes that can still be written.
    fn free_bytes(&self) -> Result<u64, StoreError> {
        let Self::Directory(directory) = self else { return Ok(u64::MAX) };
        let stat = rustix::fs::statvfs(directory).map_err(|error| failed("statvfs of the payload directory", error))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// A segment that is open in this process.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) id: u64,
    pub(super) file: File,
    /// Where the next range begins; above `limit` the segment is full.
    end: AtomicU64,
    limit: u64,
    /// Ranges given out and neither kept nor given back to the file system: while there are any, the segment is not
    /// sealed, because only segments that were not are healed.
    pending: AtomicUsize,
}

/// A range of a segment that one upload may write. Dropped before it is kept, it is given back.
#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) segment: Arc<Segment>,
    pub(super) offset: u64,
    pub(super) length: u64,
    kept: AtomicBool,
    promise: Promise,
    returns: mpsc::Sender<GivenUp>,
}

/// Bytes about to be written, which the file system still calls free. What is left of them when it is dropped never
/// comes.
#[derive(Debug)]
struct Promise {
    left: AtomicU64,
    /// Those of all ranges.
    all: Arc<AtomicU64>,
}

impl Promise {
    /// So many of them are written. One range is written by one upload, one part after the other.
    fn keep(&self, bytes: u64) {
        let left = self.left.load(Ordering::Acquire);
        let kept = left.min(bytes);
        self.left.store(left - kept, Ordering::Release);
        self.all.fetch_sub(kept, Ordering::AcqRel);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.keep(u64::MAX);
    }
}

/// A range that nobody writes and no row will name. It counts as pending until its hole is punched.
#[derive(Debug)]
pub(super) struct GivenUp {
    segment: Arc<Segment>,
    offset: u64,
    length: u64,
}

impl Reservation {
    /// So many of its bytes are written.
    pub(super) fn written(&self, bytes: u64) {
        self.promise.keep(bytes);
    }

    /// From here on rows own the range.
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Release);
    }

    /// Takes [`Self::keep`] back: the rows were not written.
    pub(super) fn unkeep(&self) {
        self.kept.store(false, Ordering::Release);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.kept.load(Ordering::Acquire) {
            self.segment.pending.fetch_sub(1, Ordering::AcqRel);
        } else {
            let segment = Arc::clone(&self.segment);
            // The receiver ends only with the engine; then healing gives the range back.
            let _ = self.returns.send(GivenUp { segment, offset: self.offset, length: self.length });
        }
    }
}

/// All segments of an engine.
pub(super) struct Segments {
    place: Place,
    store: Arc<dyn Store>,
    segment_bytes: u64,
    reserve_bytes: u64,
    /// Bytes of ranges given out that are not written yet.
    promised: Arc<AtomicU64>,
    open: Mutex<HashMap<u64, Arc<Segment>>>,
    /// Those that take writes.
    active: Vec<tokio::sync::Mutex<Option<Arc<Segment>>>>,
    turn: AtomicUsize,
    /// Full ones whose last ranges may still be written.
    full: Mutex<Vec<Arc<Segment>>>,
    returns: mpsc::Sender<GivenUp>,
    cannot_punch: AtomicBool,
}

impl Segments {
    pub(super) fn new(
        place: Place,
        store: Arc<dyn Store>,
        segment_bytes: u64,
        writers: usize,
        reserve_bytes: u64,
        returns: mpsc::Sender<GivenUp>,
    ) -> Self {
        Self {
            place,
            store,
            segment_bytes,
            reserve_bytes,
            promised: Arc::default(),
            open: Mutex::default(),
            active: (0..writers.max(1)).map(|_| tokio::sync::Mutex::default()).collect(),
            turn: AtomicUsize::new(0),
            full: Mutex::default(),
            returns,
            cannot_punch: AtomicBool::new(false),
        }
    }

    /// A range of at least `length` bytes in a segment that takes writes.
    pub(super) async fn reserve(&self, length: u64) -> Result<Arc<Reservation>, Error> {
        let promise = self.promise(self.place.free_bytes()?, length)?;
        let length = length.next_multiple_of(ALIGNMENT);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.active.len();
        let Some(slot) = self.active.get(turn) else { return Err(Error::Busy) };
        let mut slot = slot.lock().await;
        loop {
            if let Some(segment) = &*slot {
                // Counted before the range is taken: who sees the segment full and no range pending may seal it.
                segment.pending.fetch_add(1, Ordering::AcqRel);
                let offset = segment.end.fetch_add(length, Ordering::AcqRel);
                if offset == 0 || offset + length <= segment.limit {
                    let (segment, returns) = (Arc::clone(segment), self.returns.clone());
                    return Ok(Arc::new(Reservation {
                        segment,
                        offset,
                        length,
                        kept: AtomicBool::new(false),
                        promise,
                        returns,
                    }));
                }
                segment.pending.fetch_sub(1, Ordering::AcqRel);
            }
            if let Some(full) = slot.replace(self.create().await?) {
                self.full.lock().push(full);
            }
        }
    }

    /// Refuses before the reserve is touched that commits and deletes need. Uploads that go on at the same time count
    /// with all that they may still write.
    fn promise(&self, free: u64, length: u64) -> Result<Promise, StoreError> {
        let others = self.promised.fetch_add(length, Ordering::AcqRel);
        let promise = Promise { left: AtomicU64::new(length), all: Arc::clone(&self.promised) };
        let needed = self.reserve_bytes.saturating_add(others).saturating_add(length);
        if free < needed { Err(StoreError::Full) } else { Ok(promise) }
    }

    /// A new segment: its row first, so that healing knows of it whatever happens next.
    async fn create(&self) -> Result<Arc<Segment>, Error> {
        let id = transact(&*self.store, Purpose::Grow, |tx| {
            let id = tx.id();
            rows::put(tx, Space::Segments, segment::key(id), &SegmentRow::Active)?;
            Ok::<_, StoreError>(id)
        })
        .await?;
        let place = self.place.clone();
        let file = blocking(move || place.create(id)).await?;
        let segment = Arc::new(Segment {
            id,
            file,
            end: AtomicU64::new(0),
            limit: self.segment_bytes,
            pending: AtomicUsize::new(0),
        });
        self.open.lock().insert(id, Arc::clone(&segment));
        Ok(segment)
    }

    /// An existing segment, if it is open already.
    pub(super) fn opened(&self, id: u64) -> Option<Arc<Segment>> {
        self.open.lock().get(&id).cloned()
    }

    /// An existing segment. May block.
    pub(super) fn get(&self, id: u64) -> Result<Arc<Segment>, StoreError> {
        self.find(id)?.ok_or_else(|| StoreError::Backend(format!("segment {id:016x} is missing")))
    }

    /// A segment, if its file is there. May block.
    pub(super) fn find(&self, id: u64) -> Result<Option<Arc<Segment>>, StoreError> {
        if let Some(segment) = self.opened(id) {
            return Ok(Some(segment));
        }
        // Not under the lock: others go on meanwhile. Who comes second takes the first one's.
        let Some(file) = self.place.open(id)? else { return Ok(None) };
        let full = AtomicU64::new(u64::MAX / 2);
        let segment = Segment { id, file, end: full, limit: 0, pending: AtomicUsize::new(0) };
        Ok(Some(Arc::clone(self.open.lock().entry(id).or_insert_with(|| Arc::new(segment)))))
    }

    /// Punches the ranges; answers whether any was. One that fails is tried again next time. May block.
    pub(super) fn give_back(&self, ranges: Vec<GivenUp>) -> bool {
        let mut any = false;
        for range in ranges {
            match self.punch(&range.segment, range.offset, range.length) {
                Ok(()) => {
                    range.segment.pending.fetch_sub(1, Ordering::AcqRel);
                    any = true;
                }
                Err(error) => {
                    let segment = range.segment.id;
                    tracing::warn!(%error, segment, offset = range.offset, "an upload's space is not given back yet");
                    let _ = self.returns.send(range);
                }
            }
        }
        any
    }

    /// Gives bytes of a segment back to the file system.
    pub(super) fn punch(&self, segment: &Segment, offset: u64, length: u64) -> Result<(), StoreError> {
        let length = length.next_multiple_of(ALIGNMENT);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&segment.file, flags, offset, length) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP) => {
                if !self.cannot_punch.swap(true, Ordering::Relaxed) {
                    tracing::warn!("the file system cannot punch holes: space comes back only with whole segments");
                }
                Ok(())
            }
            Err(error) => Err(failed("giving space back", error)),
        }
    }

    /// Whether uploads may still write to the segment.
    pub(super) async fn takes_writes(&self, id: u64) -> bool {
        for slot in &self.active {
            if slot.lock().await.as_ref().is_some_and(|segment| segment.id == id) {
                return true;
            }
        }
        self.full.lock().iter().any(|segment| segment.id == id)
    }

    /// Full segments whose last upload is over: they can be sealed.
    pub(super) fn quiet(&self) -> Vec<u64> {
        let full = self.full.lock();
        full.iter().filter(|segment| segment.pending.load(Ordering::Acquire) == 0).map(|segment| segment.id).collect()
    }

    /// The segment is sealed.
    pub(super) fn sealed(&self, id: u64) {
        self.full.lock().retain(|segment| segment.id != id);
    }

    /// Removes the file of a segment that no row names any more. May block.
    pub(super) fn unlink(&self, id: u64) -> Result<(), StoreError> {
        self.open.lock().remove(&id);
        if let Place::Directory(directory) = &self.place {
            match std::fs::remove_file(directory.join(file_name(id))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("an empty segment", error)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The name of a segment's file.
pub(super) fn file_name(id: u64) -> String {
    format!("{id:016x}.seg")
}

/// The segment whose file is called `name`.
pub(super) fn parse_file_name(name: &str) -> Option<u64> {
    name.strip_suffix(".seg").filter(|hex| hex.len() == 16).and_then(|hex| u64::from_str_radix(hex, 16).ok())
}

/// The error for a failed call to the file system; a full disk is its own kind.
pub(super) fn failed(what: &str, error: impl Into<io::Error>) -> StoreError {
    let error = error.into();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => StoreError::Full,
        _ => StoreError::Backend(format!("{what}: {error}")),
    }
}

#[cfg(test)]
mod tests;
