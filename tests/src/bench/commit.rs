//! The numbers of the embedded store: what group commit is worth, what a row costs on disk, what a reader costs a
//! writer. Measured on the engine in this process, without HTTP, with the sync that the product has.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{BoxFuture, try_join_all};
use lazuli_engine::blob::listing::{self, ListBlobs, Shown};
use lazuli_engine::blob::{OnBlob, Stored, container, object};
use lazuli_engine::clock::SystemClock;
use lazuli_engine::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};
use lazuli_engine::properties::Metadata;
use lazuli_engine::{Engine, Options};
use lazuli_server::sync_override;

use crate::bench::load::{Contender, Slice, Turns, duel};
use crate::bench::report::{Row, Target};
use crate::bench::server::scratch;
use crate::bench::versus::body;
use crate::bench::{KIB, Rows, Settings};
use crate::client::Failure;

const WRITERS: usize = 64;
/// Blobs whose metadata is overwritten.
const DESCRIBED: u64 = 200_000;
/// Bytes of that metadata: with name and times a row of some 400 bytes.
const METADATA_BYTES: usize = 300;
/// Bytes of a described blob's row beside its metadata: key, times, version, length, lease and content.
const ROW_BYTES: usize = 60;

pub(super) async fn run(settings: &Settings) -> Rows {
    let (first, second) = (scratch(&settings.directory)?, scratch(&settings.directory)?);
    let groups = open(first.path(), usize::MAX).await?;
    let each = open(second.path(), 1).await?;
    let group = group_commit(&groups, &each, settings.turns()).await?;
    groups.close().await;
    each.close().await;
    // Of its own: what the others leave to the background is not to be counted.
    let third = scratch(&settings.directory)?;
    let described = open(third.path(), usize::MAX).await?;
    let amplification = amplification(&described, settings.turns()).await?;
    let beside = writer_beside_lister(&described, settings.turns()).await?;
    Ok(vec![group, amplification, beside])
}

/// An engine whose commits share a flush with at most `group` others, with one container.
async fn open(directory: &Path, group: usize) -> Result<Engine, Failure> {
    let mut options = Options::new(directory, Arc::new(SystemClock));
    options.group_jobs_max = options.group_jobs_max.min(group);
    options.sync_probe = Some(sync_override::calls);
    let engine = Engine::open(options).await?;
    container::create(&engine, address()?, container::NewContainer::default()).await?;
    Ok(engine)
}

pub(super) fn address() -> Result<ContainerAddress, Failure> {
    let wrong = |_| "not a name";
    let account = AccountName::parse("bench").map_err(wrong)?;
    Ok(ContainerAddress { account, container: ContainerName::parse("container").map_err(wrong)? })
}

pub(super) fn on(name: &str) -> Result<OnBlob, Failure> {
    let blob = BlobName::parse(name).map_err(|_| "not a name")?;
    let address = BlobAddress { container: address()?, blob };
    Ok(OnBlob::at(address))
}

/// 64 writers whose commits share flushes, against the same 64 writers where every commit has a flush of its own.
async fn group_commit(groups: &Engine, each: &Engine, turns: Turns) -> Result<Row, Failure> {
    let duel = duel(&mut Writers::puts(groups, WRITERS), &mut Writers::puts(each, WRITERS), turns).await?;
    let cell = "Commits of 64 writers (Put Blob 1 KiB), against one flush per commit";
    Ok(Row::of_duel(cell, "one flush each", &duel, Target::AtLeast(8.0)))
}

/// Bytes written to disk per byte of rows, while 64 writers overwrite the metadata of random blobs.
async fn amplification(engine: &Engine, turns: Turns) -> Result<Row, Failure> {
    let mut writers = Writers { work: Work::Describe, ..Writers::puts(engine, WRITERS) };
    let created = Arc::new(AtomicU64::new(0));
    let creators = (0..WRITERS).map(|_| tokio::spawn(create_described(engine.clone(), Arc::clone(&created))));
    for creator in try_join_all(creators).await? {
        creator?;
    }
    writers.slice(turns.slice).await?;
    let before = written()?;
    let mut all = Slice::empty()?;
    for _ in 0..turns.rounds {
        all.after(&writers.slice(turns.slice).await?)?;
    }
    let written = written()? - before;
    let rows = all.count * (METADATA_BYTES + described(0).len() + ROW_BYTES) as u64;
    Ok(Row {
        cell: "Bytes written to disk per byte of rows, 64 writers overwriting metadata at random".into(),
        value: written as f64 / rows as f64,
        unit: "×",
        target: Target::AtMost(2.5),
        detail: format!("{} MiB for {} MiB of rows, {:.0}/s", written >> 20, rows >> 20, all.rate()),
    })
}

/// Creates the described blobs, empty, together with whoever counts on the same counter.
async fn create_described(engine: Engine, next: Arc<AtomicU64>) -> Result<(), Failure> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= DESCRIBED {
            return Ok(());
        }
        let content = engine.payloads().stage(false, Some(0)).finish().await?;
        let on = on(&described(number))?;
        object::put(&engine, on, Stored::default(), content).await?;
    }
}

fn described(number: u64) -> String {
    format!("described/{number:08}")
}

/// What this process caused to be written, as the kernel counts it.
fn written() -> Result<u64, Failure> {
    let counters = std::fs::read_to_string("/proc/self/io")?;
    let bytes = counters.lines().find_map(|line| line.strip_prefix("write_bytes: ")).ok_or("no count of bytes")?;
    Ok(bytes.parse()?)
}

/// One writer beside a reader that pages through a listing without end, against the same writer alone.
async fn writer_beside_lister(engine: &Engine, turns: Turns) -> Result<Row, Failure> {
    let mut alone = Writers::puts(engine, 1);
    let mut beside = Beside { writer: Writers::puts(engine, 1), engine: engine.clone() };
    let duel = duel(&mut beside, &mut alone, turns).await?;
    let cell = "Commits of one writer beside an endless lister, against the same writer alone";
    Ok(Row::of_duel(cell, "alone", &duel, Target::AtLeast(0.7)))
}

/// What the writers write.
#[derive(Clone, Copy)]
enum Work {
    /// New blobs of 1 KiB.
    Put,
    /// Other metadata of random blobs.
    Describe,
}

/// Writers in a closed loop.
struct Writers {
    engine: Engine,
    count: usize,
    work: Work,
    next: Arc<AtomicU64>,
    body: Bytes,
}

impl Writers {
    fn puts(engine: &Engine, count: usize) -> Self {
        Self { engine: engine.clone(), count, work: Work::Put, next: Arc::default(), body: body(KIB) }
    }

    /// One write.
    async fn write(engine: &Engine, work: Work, number: u64, body: &Bytes) -> Result<(), Failure> {
        match work {
            Work::Put => {
                let mut stage = engine.payloads().stage(true, Some(body.len() as u64));
                stage.write(body.clone()).await?;
                let content = stage.finish().await?;
                let name = format!("put/{number:08}");
                object::put(engine, on(&name)?, Stored::default(), content).await?;
            }
            Work::Describe => {
                // A multiplier that is odd, so that all blobs have their turn in an order without order.
                let name = described((number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % DESCRIBED);
                let value = format!("{number:0METADATA_BYTES$}");
                object::set_metadata(engine, on(&name)?, Metadata(vec![("m".into(), value)])).await?;
            }
        }
        Ok(())
    }
}

impl Contender for Writers {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        Box::pin(async move {
            let begin = Instant::now();
            let tasks = (0..self.count).map(|_| {
                let (engine, next, body, work) =
                    (self.engine.clone(), Arc::clone(&self.next), self.body.clone(), self.work);
                tokio::spawn(async move {
                    let mut slice = Slice::empty()?;
                    while begin.elapsed() < length {
                        let asked = Instant::now();
                        Self::write(&engine, work, next.fetch_add(1, Ordering::Relaxed), &body).await?;
                        slice.note(asked.elapsed());
                    }
                    slice.elapsed = begin.elapsed();
                    Ok::<_, Failure>(slice)
                })
            });
            let mut all = Slice::empty()?;
            for slice in try_join_all(tasks).await? {
                all.beside(&slice?)?;
            }
            Ok(all)
        })
    }
}

struct Beside {
    writer: Writers,
    engine: Engine,
}

impl Contender for Beside {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        Box::pin(async move {
            let stop = Arc::new(AtomicBool::new(false));
            let listing = tokio::spawn(list_until(self.engine.clone(), Arc::clone(&stop)));
            let written = self.writer.slice(length).await?;
            stop.store(true, Ordering::Relaxed);
            if listing.await?? == 0 {
                return Err("the lister got no page".into());
            }
            Ok(written)
        })
    }
}

/// Lists page after page, from the beginning again at the end; answers how many pages.
async fn list_until(engine: Engine, stop: Arc<AtomicBool>) -> Result<u64, Failure> {
    let mut pages = 0;
    let mut start = None;
    while !stop.load(Ordering::Relaxed) {
        let request = ListBlobs {
            container: address()?,
            prefix: "described/".into(),
            delimiter: None,
            start,
            limit: 5000,
            from: None,
            before: None,
            shown: Shown::default(),
            tags: false,
        };
        start = listing::list(&engine, request).await?.next;
        pages += 1;
    }
    Ok(pages)
}
