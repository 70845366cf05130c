//! The record that `trace.c` makes: a sequence of
//!
//! ```text
//! kind u32, path bytes u32, a u64, b u64, mode u32, data bytes u32 (all in the machine's order), path, data
//! ```

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

const HEAD_BYTES: usize = 32;
const ACKNOWLEDGED: u32 = 100;

/// Something that happened to a file, or that a client was told.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// The file was opened; it is there from now on, and empty if `emptied`.
    Create { path: PathBuf, emptied: bool },
    /// Bytes were written.
    Write { path: PathBuf, offset: u64, data: Vec<u8> },
    /// A thread began to sync a file or directory.
    SyncBegin { path: PathBuf, thread: u64 },
    /// It has done so.
    SyncEnd { thread: u64 },
    /// The file got another length.
    Truncate { path: PathBuf, length: u64 },
    /// A file or directory got another name.
    Rename { from: PathBuf, to: PathBuf },
    /// A file or directory was removed.
    Unlink { path: PathBuf },
    /// `fallocate(2)`.
    Allocate { path: PathBuf, offset: u64, length: u64, mode: u32 },
    /// A directory was made.
    MakeDirectory { path: PathBuf },
    /// A client had the answer to `step` of `subject`.
    Acknowledged { subject: u64, step: u64 },
}

/// Appends to the record that a client had an answer. One write, so that it never mixes with others.
pub(crate) fn acknowledge(mut log: &File, subject: u64, step: u64) {
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    bytes.extend(ACKNOWLEDGED.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(subject.to_ne_bytes());
    bytes.extend(step.to_ne_bytes());
    bytes.extend([0; 8]);
    log.write_all(&bytes).expect("the record can be appended to");
}

/// All records of a log.
pub(crate) fn parse(mut rest: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(HEAD_BYTES);
        let u32_at = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().unwrap());
        let (path, tail) = tail.split_at(u32_at(4) as usize);
        let (data, tail) = tail.split_at(u32_at(28) as usize);
        let path = PathBuf::from(str::from_utf8(path).unwrap());
        let (a, b) = (u64_at(8), u64_at(16));
        records.push(match u32_at(0) {
            1 => Record::Create { path, emptied: a != 0 },
            2 => Record::Write { path, offset: a, data: data.to_vec() },
            3 => Record::SyncBegin { path, thread: a },
            4 => Record::SyncEnd { thread: a },
            5 => Record::Truncate { path, length: a },
            6 => Record::Rename { from: path, to: PathBuf::from(str::from_utf8(data).unwrap()) },
            7 => Record::Unlink { path },
            8 => Record::Allocate { path, offset: a, length: b, mode: u32_at(24) },
            9 => Record::MakeDirectory { path },
            ACKNOWLEDGED => Record::Acknowledged { subject: a, step: b },
            kind => panic!("unknown kind of record {kind}"),
        });
        rest = tail;
    }
    records
}
