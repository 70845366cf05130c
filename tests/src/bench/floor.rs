//! Against what the machine can do at all: nginx for reads, a bare loop over a file for writes.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use md5::{Digest, Md5};
use parking_lot::{Condvar, Mutex};

use crate::bench::load::{Contender, Load, Slice, duel, gets, puts};
use crate::bench::report::{Row, Target};
use crate::bench::server::{Program, Server, scratch};
use crate::bench::versus::body;
use crate::bench::{MIB, Rows, Settings};
use crate::client::{ACCOUNT, Failure};

const CONNECTIONS: usize = 8;
const FILES: u64 = 64;
/// Names that are written to in turn, so that the disk does not fill.
const NAMES: u64 = 256;

/// Get Blob 1 MiB against nginx that serves the same bytes under the same paths to the same requests.
pub(super) async fn run_nginx(settings: &Settings) -> Rows {
    let Some(nginx) = &settings.nginx else { return Ok(Vec::new()) };
    let (here, there) = (scratch(&settings.directory)?, scratch(&settings.directory)?);
    let ours = Server::start(&settings.lazuli(), here.path()).await?;
    let other = Server::start(&Program::Nginx(nginx.clone()), there.path()).await?;
    let bytes = body(MIB);
    ours.create_container("large").await?;
    Load::new(ours.address(), CONNECTIONS, puts("large", "r", bytes.clone(), u64::MAX))?.run_all(FILES).await?;
    let folder = other.data().join(ACCOUNT).join("large");
    fs::create_dir_all(&folder)?;
    for n in 0..FILES {
        fs::write(folder.join(format!("r{n:08}")), &bytes)?;
    }
    let work = gets("large", "r", FILES);
    let mut first = Load::new(ours.address(), CONNECTIONS, Arc::clone(&work))?;
    let mut second = Load::new(other.address(), CONNECTIONS, work)?;
    let duel = duel(&mut first, &mut second, settings.turns()).await?;
    let cell = "Get Blob 1 MiB, 8 connections, against nginx";
    Ok(vec![Row::of_duel(cell, "nginx", &duel, Target::AtLeast(0.7))])
}

/// Put Blob 1 MiB against the bare loop.
pub(super) async fn run_disk(settings: &Settings) -> Rows {
    let (here, there) = (scratch(&settings.directory)?, scratch(&settings.directory)?);
    let ours = Server::start(&settings.lazuli(), here.path()).await?;
    ours.create_container("large").await?;
    let bytes = body(MIB);
    let mut first = Load::new(ours.address(), CONNECTIONS, puts("large", "w", bytes.clone(), NAMES))?;
    let mut second = Bare { log: Arc::new(Log::create(there.path())?), bytes };
    let duel = duel(&mut first, &mut second, settings.turns()).await?;
    let cell = "Put Blob 1 MiB, 8 connections, against 8 threads that only hash, append and sync";
    Ok(vec![Row::of_duel(cell, "bare loop", &duel, Target::AtLeast(0.7))])
}

/// As many writers as the server has connections, in this process and without any protocol: each computes the MD5 of
/// its bytes, appends them to one file and waits for an `fdatasync` that began after its write. A writer that finds
/// no sync under way does it, for all that have written by then: the least work that gives the same promise.
struct Bare {
    log: Arc<Log>,
    bytes: Bytes,
}

impl Contender for Bare {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        let (log, bytes) = (Arc::clone(&self.log), self.bytes.clone());
        let end = Instant::now() + length;
        Box::pin(async move {
            let writers: Vec<_> = (0..CONNECTIONS)
                .map(|_| {
                    let (log, bytes) = (Arc::clone(&log), bytes.clone());
                    tokio::task::spawn_blocking(move || log.write_until(end, &bytes))
                })
                .collect();
            let mut all = Slice::empty()?;
            for writer in writers {
                all.beside(&writer.await??)?;
            }
            log.restart()?;
            Ok(all)
        })
    }
}

struct Log {
    file: File,
    end: AtomicU64,
    syncs: Mutex<Syncs>,
    ended: Condvar,
}

/// Syncs begun and syncs ended; at most one is under way.
#[derive(Default)]
struct Syncs {
    begun: u64,
    ended: u64,
}

impl Log {
    fn create(directory: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().write(true).create_new(true).open(directory.join("log"))?;
        Ok(Self { file, end: AtomicU64::new(0), syncs: Mutex::default(), ended: Condvar::new() })
    }

    fn write_until(&self, end: Instant, bytes: &[u8]) -> Result<Slice, Failure> {
        let mut slice = Slice::empty()?;
        let begin = Instant::now();
        let mut before = begin;
        while before < end {
            std::hint::black_box(Md5::digest(bytes));
            let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.file.write_all_at(bytes, offset)?;
            self.sync()?;
            let now = Instant::now();
            slice.note(now - before);
            before = now;
        }
        slice.elapsed = before - begin;
        Ok(slice)
    }

    fn sync(&self) -> Result<(), Failure> {
        let mut syncs = self.syncs.lock();
        let wanted = syncs.begun + 1;
        while syncs.ended < wanted {
            if syncs.begun > syncs.ended {
                self.ended.wait(&mut syncs);
                continue;
            }
            syncs.begun += 1;
            drop(syncs);
            let outcome = self.file.sync_data();
            syncs = self.syncs.lock();
            syncs.ended = syncs.begun;
            self.ended.notify_all();
            outcome?;
        }
        Ok(())
    }

    /// Gives the disk back what was written.
    fn restart(&self) -> Result<(), Failure> {
        self.end.store(0, Ordering::Relaxed);
        Ok(self.file.set_len(0)?)
    }
}
