//! A disk that may lose power: what is surely on it, and what only the kernel knows yet.
//!
//! Content is durable once the file was synced after it was written. An entry of a directory (a created, renamed or
//! removed name) is durable once that directory was synced. The exception are names inside the row store's own
//! directory, which are taken as durable at once: sled 0.34 never syncs it and relies on the journal of the file
//! system to keep the order of names.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use lazuli_tests::random::Random;

use crate::log::Record;

const BLOCK_BYTES: u64 = 4096;
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;

/// What becomes of that which was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsynced {
    /// All of it is gone.
    Dropped,
    /// Each block of 4 KiB is as it was at some moment since the sync, each at another one. So are lengths and holes,
    /// and the names.
    Torn,
    /// All of it is there.
    Kept,
}

/// A disk below one directory.
pub(crate) struct Disk {
    root: PathBuf,
    /// Names in here are durable at once.
    journaled: PathBuf,
    files: Vec<Contents>,
    names: Names,
    durable_names: Names,
    /// Changes of names that are not durable yet, each with its number.
    pending_names: Vec<(u64, PathBuf, Option<Node>)>,
    name_changes: u64,
    /// Per thread: what it syncs and how much of that had happened when it began.
    syncs: BTreeMap<u64, (Option<Node>, PathBuf, u64)>,
}

type Names = BTreeMap<PathBuf, Node>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    File(usize),
}

impl Disk {
    /// An empty disk below `root`; names inside `journaled` are durable at once.
    pub(crate) fn new(root: &Path, journaled: &Path) -> Self {
        let names = Names::from([(root.to_owned(), Node::Directory)]);
        Self {
            root: root.to_owned(),
            journaled: journaled.to_owned(),
            files: Vec::new(),
            durable_names: names.clone(),
            names,
            pending_names: Vec::new(),
            name_changes: 0,
            syncs: BTreeMap::new(),
        }
    }

    /// Lets `record` happen.
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::Create { path, emptied } => self.create(path, *emptied),
            Record::MakeDirectory { path } => self.name(path, Some(Node::Directory)),
            Record::Unlink { path } => self.name(path, None),
            Record::Rename { from, to } => self.rename(from, to),
            Record::Write { path, offset, data } => {
                self.change(path, Change::Write { offset: *offset, data: data.clone() });
            }
            Record::Truncate { path, length } => self.change(path, Change::Truncate { length: *length }),
            Record::Allocate { path, offset, length, mode } => {
                let extend = mode & KEEP_SIZE == 0;
                let clear = mode & !KEEP_SIZE != 0;
                assert!(mode & !(KEEP_SIZE | PUNCH_HOLE) == 0, "fallocate mode {mode} is not modelled");
                self.change(path, Change::Allocate { offset: *offset, length: *length, extend, clear });
            }
            Record::SyncBegin { path, thread } => {
                let node = self.names.get(path).copied();
                let reached = match node {
                    Some(Node::File(file)) => self.files[file].happened(),
                    _ => self.name_changes,
                };
                self.syncs.insert(*thread, (node, path.clone(), reached));
            }
            Record::SyncEnd { thread } => match self.syncs.remove(thread).expect("a sync that ends has begun") {
                (Some(Node::File(file)), _, reached) => self.files[file].sync(reached),
                (Some(Node::Directory), path, reached) => self.sync_names(&path, reached),
                (None, ..) => {} // the file has lost its name meanwhile
            },
            Record::Acknowledged { .. } => {}
        }
    }

    fn create(&mut self, path: &Path, emptied: bool) {
        if !self.names.contains_key(path) {
            self.files.push(Contents::default());
            self.name(path, Some(Node::File(self.files.len() - 1)));
        } else if emptied {
            self.change(path, Change::Truncate { length: 0 });
        }
    }

    /// Gives `path` to `node`, or to nobody.
    fn name(&mut self, path: &Path, node: Option<Node>) {
        set(&mut self.names, path, node);
        self.name_changes += 1;
        if path.starts_with(&self.journaled) && path != self.journaled {
            set(&mut self.durable_names, path, node);
        } else {
            self.pending_names.push((self.name_changes, path.to_owned(), node));
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let below: Vec<_> = self.names.range(from.to_owned()..).map(|(path, node)| (path.clone(), *node)).collect();
        for (path, node) in below.into_iter().take_while(|(path, _)| path.starts_with(from)) {
            let rest = path.strip_prefix(from).expect("it starts so");
            let target = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            self.name(&target, Some(node));
            self.name(&path, None);
        }
    }

    fn change(&mut self, path: &Path, change: Change) {
        // A file without a name is of no use after a crash.
        if let Some(Node::File(file)) = self.names.get(path) {
            self.files[*file].pending.push_back(change);
        }
    }

    fn sync_names(&mut self, directory: &Path, reached: u64) {
        let Self { pending_names, durable_names, .. } = self;
        pending_names.retain(|(number, path, node)| {
            let synced = *number <= reached && path.parent() == Some(directory);
            if synced {
                set(durable_names, path, *node);
            }
            !synced
        });
    }

    /// Writes to `target` what a machine finds that lost power now.
    pub(crate) fn write_image(&self, target: &Path, unsynced: Unsynced, random: &mut Random) {
        let mut names = self.durable_names.clone();
        let kept = match unsynced {
            Unsynced::Dropped => 0,
            Unsynced::Torn => random.below(self.pending_names.len() as u64 + 1),
            Unsynced::Kept => self.pending_names.len() as u64,
        };
        for (_, path, node) in self.pending_names.iter().take(usize::try_from(kept).unwrap()) {
            set(&mut names, path, *node);
        }
        for (path, node) in &names {
            let image = target.join(path.strip_prefix(&self.root).expect("all names lie below the root"));
            match node {
                Node::Directory => std::fs::create_dir_all(image).unwrap(),
                // A name whose directory was lost is lost with it.
                Node::File(_) if !image.parent().is_some_and(Path::exists) => {}
                Node::File(file) => self.files[*file].after_power_loss(unsynced, random).write(&image),
            }
        }
    }
}

fn set(names: &mut Names, path: &Path, node: Option<Node>) {
    match node {
        Some(node) => names.insert(path.to_owned(), node),
        None => names.remove(path),
    };
}

/// A file: what is on the disk, and what has happened to it since.
#[derive(Default)]
struct Contents {
    durable: Bytes,
    synced: u64,
    pending: VecDeque<Change>,
}

enum Change {
    Write { offset: u64, data: Vec<u8> },
    Truncate { length: u64 },
    Allocate { offset: u64, length: u64, extend: bool, clear: bool },
}

impl Contents {
    /// How many changes there have been.
    fn happened(&self) -> u64 {
        self.synced + self.pending.len() as u64
    }

    /// Makes the first `reached` changes durable.
    fn sync(&mut self, reached: u64) {
        while self.synced < reached {
            let change = self.pending.pop_front().expect("what is synced has happened");
            self.durable.apply(&change);
            self.synced += 1;
        }
    }

    fn after_power_loss(&self, unsynced: Unsynced, random: &mut Random) -> Bytes {
        let mut bytes = self.durable.clone();
        // None stands for what is no block: lengths and holes.
        let mut moments: BTreeMap<Option<u64>, usize> = BTreeMap::new();
        let mut reached = |block| match unsynced {
            Unsynced::Dropped => 0,
            Unsynced::Kept => usize::MAX,
            Unsynced::Torn => *moments.entry(block).or_insert_with(|| moment(self.pending.len(), random)),
        };
        for (number, change) in self.pending.iter().enumerate() {
            match change {
                Change::Write { offset, data } => {
                    for (at, block) in blocks(*offset, data) {
                        if number < reached(Some(at / BLOCK_BYTES)) {
                            bytes.write_at(at, block);
                        }
                    }
                }
                change if number < reached(None) => bytes.apply(change),
                _ => {}
            }
        }
        bytes
    }
}

/// A moment between none and all of `changes`; both ends as likely as all that lies between.
fn moment(changes: usize, random: &mut Random) -> usize {
    match random.below(3) {
        0 => 0,
        1 => changes,
        _ => usize::try_from(random.below(changes as u64 + 1)).unwrap(),
    }
}

/// `data` at `offset`, cut where blocks of the disk end.
fn blocks(mut offset: u64, mut data: &[u8]) -> Vec<(u64, &[u8])> {
    let mut blocks = Vec::new();
    while !data.is_empty() {
        let room = usize::try_from(BLOCK_BYTES - offset % BLOCK_BYTES).unwrap();
        let (block, rest) = data.split_at(room.min(data.len()));
        blocks.push((offset, block));
        offset += block.len() as u64;
        data = rest;
    }
    blocks
}

/// Sparse bytes.
#[derive(Clone, Default)]
struct Bytes {
    length: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Bytes {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { offset, data } => self.write_at(*offset, data),
            Change::Truncate { length } => {
                self.clear(*length, u64::MAX - *length);
                self.length = *length;
            }
            Change::Allocate { offset, length, extend, clear } => {
                if *clear {
                    self.clear(*offset, *length);
                }
                if *extend {
                    self.length = self.length.max(offset + length);
                }
            }
        }
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) {
        for (at, part) in blocks(offset, data) {
            let block = self.blocks.entry(at / BLOCK_BYTES).or_insert_with(|| vec![0; 4096].into());
            let start = usize::try_from(at % BLOCK_BYTES).unwrap();
            block[start..start + part.len()].copy_from_slice(part);
        }
        self.length = self.length.max(offset + data.len() as u64);
    }

    fn clear(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        for (&number, block) in self.blocks.range_mut(offset / BLOCK_BYTES..=end / BLOCK_BYTES) {
            let start = number * BLOCK_BYTES;
            let from = usize::try_from(offset.saturating_sub(start).min(BLOCK_BYTES)).unwrap();
            let to = usize::try_from(end.saturating_sub(start).min(BLOCK_BYTES)).unwrap();
            block[from..to].fill(0);
        }
        self.blocks.retain(|&number, _| number * BLOCK_BYTES < offset || (number + 1) * BLOCK_BYTES > end);
    }

    fn write(&self, path: &Path) {
        let file = File::create(path).unwrap();
        file.set_len(self.length).unwrap();
        for (number, block) in &self.blocks {
            let at = number * BLOCK_BYTES;
            let inside = usize::try_from(self.length.saturating_sub(at).min(BLOCK_BYTES)).unwrap();
            file.write_all_at(&block[..inside], at).unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &str, offset: u64, data: &str) -> Record {
        Record::Write { path: path.into(), offset, data: data.into() }
    }

    fn sync(path: &str) -> [Record; 2] {
        [Record::SyncBegin { path: path.into(), thread: 1 }, Record::SyncEnd { thread: 1 }]
    }

    fn create(path: &str) -> Record {
        Record::Create { path: path.into(), emptied: false }
    }

    /// What a power loss leaves of `file` after `records`.
    fn left(records: &[Record], file: &str, unsynced: Unsynced) -> Option<String> {
        let mut disk = Disk::new(Path::new("/d"), Path::new("/d/store"));
        records.iter().for_each(|record| disk.apply(record));
        let target = tempfile::tempdir().unwrap();
        disk.write_image(target.path(), unsynced, &mut Random::seeded(1));
        std::fs::read_to_string(target.path().join(file)).ok()
    }

    #[test]
    fn only_what_was_written_before_a_sync_began_survives_it() {
        let [begin, end] = sync("/d/f");
        let records = [create("/d/f"), write("/d/f", 0, "old"), begin, write("/d/f", 0, "new"), end];
        let records: Vec<_> = records.into_iter().chain(sync("/d")).collect();
        assert_eq!(left(&records, "f", Unsynced::Dropped).as_deref(), Some("old"));
        assert_eq!(left(&records, "f", Unsynced::Kept).as_deref(), Some("new"));
    }

    #[test]
    fn a_name_survives_only_the_sync_of_its_directory_unless_it_is_journaled() {
        let made = Record::MakeDirectory { path: "/d/store".into() };
        let records = [create("/d/f"), made, create("/d/store/f")];
        let records: Vec<_> = records.into_iter().chain(sync("/d/f")).collect();
        assert_eq!(left(&records, "f", Unsynced::Dropped), None);
        assert_eq!(left(&records, "store/f", Unsynced::Dropped), None, "its directory is lost");
        let records: Vec<_> = records.into_iter().chain(sync("/d")).collect();
        assert_eq!(left(&records, "f", Unsynced::Dropped).as_deref(), Some(""));
        assert_eq!(left(&records, "store/f", Unsynced::Dropped).as_deref(), Some(""));
    }

    #[test]
    fn an_unlink_and_a_rename_that_were_not_synced_are_undone() {
        let mut records = vec![create("/d/a"), write("/d/a", 0, "a"), create("/d/b"), write("/d/b", 0, "b")];
        records.extend([sync("/d/a"), sync("/d/b"), sync("/d")].into_iter().flatten());
        records.push(Record::Unlink { path: "/d/a".into() });
        records.push(Record::Rename { from: "/d/b".into(), to: "/d/c".into() });
        for (file, dropped, kept) in [("a", Some("a"), None), ("b", Some("b"), None), ("c", None, Some("b"))] {
            assert_eq!(left(&records, file, Unsynced::Dropped).as_deref(), dropped, "{file}");
            assert_eq!(left(&records, file, Unsynced::Kept).as_deref(), kept, "{file}");
        }
    }

    #[test]
    fn truncation_and_holes_clear_exactly_their_bytes() {
        let mut bytes = Bytes::default();
        bytes.write_at(4000, &[7; 9000]);
        bytes.apply(&Change::Allocate { offset: 4096, length: 4096, extend: false, clear: true });
        bytes.apply(&Change::Truncate { length: 8200 });
        bytes.apply(&Change::Truncate { length: 8300 });
        let target = tempfile::tempdir().unwrap();
        bytes.write(&target.path().join("f"));
        let found = std::fs::read(target.path().join("f")).unwrap();
        let expected = [vec![0; 4000], vec![7; 96], vec![0; 4096], vec![7; 8], vec![0; 100]].concat();
        assert!(found == expected);
    }
}
