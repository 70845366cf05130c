//! Rows on sled 0.34.7. The settings are the outcome of measurements: see `docs/decisions/0003-sled.md`.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sled::Transactional;
use sled::transaction::ConflictableTransactionError;

use super::{Ask, Kv, Writes};
use crate::store::{Direction, KeyRange, OpenError, Pair, Space, StoreError, Visitor};

/// So large that no leaf of rows within the value bound is ever spilled into a side file, which sled would not sync.
const SEGMENT_BYTES: usize = 2 * 1024 * 1024;
/// How often sled reclaims space in the background, in milliseconds.
const HOUSEKEEPING_MS: u64 = 500;

/// How long a dropped database may take to let go of its files.
const RELEASE_MAX: Duration = Duration::from_secs(10);
/// How often it is looked whether it has.
const RELEASE_POLL: Duration = Duration::from_millis(1);

/// A sled database: one tree a space. Dropped, it can be opened again at once.
#[derive(Debug)]
pub struct SledKv {
    directory: PathBuf,
    trees: Vec<sled::Tree>,
    db: sled::Db,
    _release: Release,
}

/// Dropped after the database, waits until sled's threads have let go of the lock.
#[derive(Debug)]
struct Release(PathBuf);

impl Drop for Release {
    fn drop(&mut self) {
        let Ok(file) = File::open(&self.0) else { return };
        let begun = Instant::now();
        // Bounded: by now another process may hold the lock.
        while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && begun.elapsed() < RELEASE_MAX {
            std::thread::park_timeout(RELEASE_POLL);
        }
    }
}

impl SledKv {
    /// Opens or creates the database in `directory`, with `cache_bytes` of its pages in memory.
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Self, OpenError> {
        if !directory.try_exists().map_err(|error| named(directory, &error))? {
            Self::create(directory, cache_bytes)?;
        }
        Self::open_there(directory, cache_bytes)
    }

    /// Creates an empty database under another name and gives it its own once it is on the disk: half of sled's settings
    /// is a database that does not open.
    fn create(directory: &Path, cache_bytes: u64) -> Result<(), OpenError> {
        let new = directory.with_extension("new");
        match std::fs::remove_dir_all(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(named(&new, &error).into()),
            _ => {}
        }
        drop(Self::open_there(&new, cache_bytes)?);
        std::fs::rename(&new, directory).map_err(|error| named(directory, &error))?;
        Ok(sync_directory(directory.parent().unwrap_or(directory))?)
    }

    fn open_there(directory: &Path, cache_bytes: u64) -> Result<Self, OpenError> {
        remove_half_snapshots(directory)?;
        let db = sled::Config::new()
            .path(directory)
            .cache_capacity(cache_bytes)
            .segment_size(SEGMENT_BYTES)
            .flush_every_ms(Some(HOUSEKEEPING_MS))
            .use_compression(false)
            .open()
            .map_err(|error| open_error(directory, error))?;
        let kv = Self::over(db, directory)?;
        kv.check_for_side_files()?;
        Ok(kv)
    }

    fn over(db: sled::Db, directory: &Path) -> Result<Self, StoreError> {
        let trees =
            Space::ALL.iter().map(|space| db.open_tree(space.name()).map_err(backend)).collect::<Result<_, _>>()?;
        // sled writes its settings once and never syncs them; without them it does not open again.
        File::open(directory.join("conf"))
            .and_then(|settings| settings.sync_all())
            .map_err(|error| StoreError::Backend(format!("syncing sled's settings: {error}")))?;
        // Every time: the process that created them may have died before it came to this.
        sync_directory(directory)?;
        sync_directory(directory.parent().unwrap_or(directory))?;
        Ok(Self { directory: directory.to_owned(), trees, db, _release: Release(directory.join("db")) })
    }

    /// Fails if sled has put a leaf into a side file, which it would never sync.
    pub fn check_for_side_files(&self) -> Result<(), OpenError> {
        let directory = self.directory.join("blobs");
        match std::fs::read_dir(&directory).map(|mut files| files.next().is_some()) {
            Ok(true) => Err(OpenError::SideFiles { directory }),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::Backend(format!("reading {}: {error}", directory.display())).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether there is no row in any space.
    pub(crate) fn is_empty(&self) -> bool {
        self.trees.iter().all(sled::Tree::is_empty)
    }

    fn tree(&self, space: Space) -> Result<&sled::Tree, StoreError> {
        self.trees.get(space.index()).ok_or_else(|| StoreError::Backend(format!("no tree for {space:?}")))
    }
}

impl Kv for SledKv {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.tree(space)?.get(key).map_err(backend)?.map(Bytes::from_owner))
    }

    fn chunk(&self, space: Space, ask: &Ask<'_>) -> Result<Vec<Pair>, StoreError> {
        let Some(bounds) = ask.range.bounds() else { return Ok(Vec::new()) };
        let rows = self.tree(space)?.range::<&[u8], _>(bounds);
        let rows = rows.filter(|row| row.as_ref().map_or(true, |(key, _)| (ask.wanted)(key)));
        let pair = |row: sled::Result<(sled::IVec, sled::IVec)>| {
            let (key, value) = row.map_err(backend)?;
            Ok((Bytes::from_owner(key), Bytes::from_owner(value)))
        };
        match ask.direction {
            Direction::Forward => rows.take(ask.limit).map(pair).collect(),
            Direction::Backward => rows.rev().take(ask.limit).map(pair).collect(),
        }
    }

    fn visit(&self, space: Space, range: &KeyRange, each: &mut Visitor<'_>) -> Result<(), StoreError> {
        let Some(bounds) = range.bounds() else { return Ok(()) };
        // One iterator for all: sled copies a leaf's index for each that begins in it.
        for row in self.tree(space)?.range::<&[u8], _>(bounds) {
            let (key, value) = row.map_err(backend)?;
            if each(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, writes: &Writes) -> Result<(), StoreError> {
        let mut trees = Vec::new();
        let mut batches = Vec::new();
        for (space, writes) in writes.spaces() {
            let mut batch = sled::Batch::default();
            for (key, value) in writes {
                match value {
                    Some(value) => batch.insert(&key[..], &value[..]),
                    None => batch.remove(&key[..]),
                }
            }
            trees.push(self.tree(space)?.clone());
            batches.push(batch);
        }
        trees
            .as_slice()
            .transaction(|trees| {
                for (tree, batch) in trees.iter().zip(&batches) {
                    tree.apply_batch(batch)?;
                }
                Ok::<(), ConflictableTransactionError<()>>(())
            })
            .map_err(|error| StoreError::Backend(format!("sled: {error:?}")))
    }

    #[expect(clippy::disallowed_methods, reason = "the committer's one way to sync")]
    fn sync(&self) -> Result<(), StoreError> {
        self.db.flush().map(|_| ()).map_err(backend)
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        let stat = rustix::fs::statvfs(&self.directory)
            .map_err(|error| StoreError::Backend(format!("statvfs of the data directory: {error}")))?;
        Ok(Some(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }
}

/// Makes the names in `directory` durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), StoreError> {
    let named = |error| StoreError::Backend(format!("sync of the directory {}: {error}", directory.display()));
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory).map_err(named)?.sync_all().map_err(named)
}

/// Removes what a crash during the last opening left of sled's summary of its log. sled writes it beside the one before,
/// under a name that the next opening takes for the latest.
fn remove_half_snapshots(directory: &Path) -> Result<(), StoreError> {
    let files = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        files => files.map_err(|error| named(directory, &error))?,
    };
    for file in files {
        let file = file.map_err(|error| named(directory, &error))?;
        let name = file.file_name();
        let is_half = name.to_str().is_some_and(|name| name.starts_with("snap.") && name.ends_with(".generating"));
        if is_half {
            std::fs::remove_file(file.path()).map_err(|error| named(&file.path(), &error))?;
        }
    }
    Ok(())
}

/// A failure of the operating system at `path`.
pub(super) fn named(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Backend(format!("{}: {error}", path.display()))
}

#[expect(clippy::needless_pass_by_value, reason = "shaped for map_err")]
fn backend(error: sled::Error) -> StoreError {
    StoreError::Backend(format!("sled: {error}"))
}

fn open_error(directory: &Path, error: sled::Error) -> OpenError {
    match &error {
        sled::Error::Io(io) if io.to_string().contains("could not acquire lock") => {
            OpenError::Locked { directory: directory.to_owned() }
        }
        _ => backend(error).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::VALUE_BYTES_MAX;

    #[test]
    fn leaves_of_the_largest_values_never_become_side_files() {
        let scratch = tempfile::tempdir().unwrap();
        let kv = SledKv::open(&scratch.path().join("rows"), 16 << 20).unwrap();
        for round in 0..40u8 {
            let mut writes = Writes::default();
            for key in 0..64u8 {
                let value = vec![round ^ key; VALUE_BYTES_MAX];
                writes.set(Space::Blobs, vec![key].into(), Some(value.into()));
            }
            kv.apply(&writes).unwrap();
            kv.sync().unwrap();
        }
        kv.check_for_side_files().unwrap();
    }

    #[test]
    fn what_a_crash_left_of_a_database_to_be_is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let (new, directory) = (scratch.path().join("rows.new"), scratch.path().join("rows"));
        std::fs::create_dir(&new).unwrap();
        for file in ["conf", "db"] {
            std::fs::write(new.join(file), "half").unwrap();
        }
        let kv = SledKv::open(&directory, 1 << 20).unwrap();
        assert!(kv.is_empty() && !new.exists());
        let mut writes = Writes::default();
        writes.set(Space::Blobs, vec![1].into(), Some(vec![2].into()));
        kv.apply(&writes).unwrap();
        kv.sync().unwrap();
        drop(kv);
        assert!(!SledKv::open(&directory, 1 << 20).unwrap().is_empty(), "what is there is not created anew");
    }

    #[test]
    fn half_a_summary_of_the_log_does_not_keep_it_from_opening() {
        let scratch = tempfile::tempdir().unwrap();
        let open = || SledKv::open(scratch.path(), 1 << 20).unwrap();
        let kv = open();
        let mut writes = Writes::default();
        writes.set(Space::Blobs, vec![1].into(), Some(vec![2].into()));
        kv.apply(&writes).unwrap();
        kv.sync().unwrap();
        drop(kv);
        std::fs::write(scratch.path().join("snap.00000000FFFFFFFF.generating"), "half").unwrap();
        assert!(!open().is_empty());
    }

    #[test]
    fn a_directory_with_side_files_is_not_opened() {
        let scratch = tempfile::tempdir().unwrap();
        drop(SledKv::open(scratch.path(), 1 << 20).unwrap());
        std::fs::create_dir_all(scratch.path().join("blobs")).unwrap();
        std::fs::write(scratch.path().join("blobs/1"), "a leaf").unwrap();
        let answer = SledKv::open(scratch.path(), 1 << 20).map(drop);
        assert!(
            matches!(&answer, Err(OpenError::SideFiles { directory }) if directory.ends_with("blobs")),
            "{answer:?}"
        );
    }

    #[test]
    fn a_directory_in_use_is_named_as_such_and_free_as_soon_as_it_is_dropped() {
        let scratch = tempfile::tempdir().unwrap();
        for round in 0..20u8 {
            let kv = SledKv::open(scratch.path(), 1 << 20).unwrap();
            let second = SledKv::open(scratch.path(), 1 << 20).map(drop);
            assert!(
                matches!(&second, Err(OpenError::Locked { directory }) if directory == scratch.path()),
                "{second:?}"
            );
            let mut writes = Writes::default();
            writes.set(Space::Blobs, vec![round].into(), Some(vec![round; VALUE_BYTES_MAX].into()));
            kv.apply(&writes).unwrap();
        }
    }
}
