//! Queues: what lies in one that nobody can have, many consumers of one, and the whole life of a message against
//! Azurite. The first two are measured on the engine in this process, without HTTP and without waiting for the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, try_join_all};
use lazuli_engine::clock::{Clock, SystemClock, Timestamp};
use lazuli_engine::names::{AccountName, QueueAddress, QueueName};
use lazuli_engine::properties::Metadata;
use lazuli_engine::queue::{NewMessage, OnMessage, messages, queues};
use lazuli_engine::{Engine, Options};
use lazuli_server::sync_override;

use crate::bench::cycles::Cycles;
use crate::bench::load::{Contender, Slice, Turns, duel};
use crate::bench::report::{Row, Target};
use crate::bench::server::{Program, Server, scratch};
use crate::bench::{Rows, Settings};
use crate::client::Failure;

const CONSUMERS: usize = 64;
/// Puts under way at a time while a queue is filled.
const FILLERS: u64 = 256;
/// Messages that can be had, beside those that cannot.
const VISIBLE: u64 = 1000;
/// Messages in the queue that the full one is compared with.
const FEW: u64 = 100;
const HOUR: Duration = Duration::from_secs(3600);
/// Connections of the duels against Azurite: of some clients, and of a busy team's, of whom more share each sync.
const CONNECTIONS: [usize; 2] = [32, 128];

pub(super) async fn run(settings: &Settings) -> Rows {
    let mut rows = Vec::new();
    if let Some(azurite) = settings.azurite.as_deref().and_then(entry_point) {
        rows.extend(life(settings, azurite).await?);
    }
    // The disk's pace would hide what the rest is about.
    sync_override::wait_for_disk(false);
    let unsynced = async {
        rows.push(consumers(settings).await?);
        rows.extend(fullness(settings).await?);
        Ok(rows)
    };
    let rows = unsynced.await;
    sync_override::wait_for_disk(true);
    rows
}

/// Azurite's queue server beside its blob server.
fn entry_point(blobs: &Path) -> Option<PathBuf> {
    Some(blobs.parent()?.parent()?.join("queue").join("main.js"))
}

/// Put, get and delete of messages of 1 KiB.
async fn life(settings: &Settings, azurite: PathBuf) -> Rows {
    let (here, there) = (scratch(&settings.directory)?, scratch(&settings.directory)?);
    let ours = Server::start(&Program::LazuliQueues(settings.lazuli.clone()), here.path()).await?;
    let other = Server::start(&Program::AzuriteQueues(azurite), there.path()).await?;
    let mut rows = Vec::new();
    for (queue, connections) in ["some", "many"].into_iter().zip(CONNECTIONS) {
        let mut first = Cycles::start(&ours, queue, connections).await?;
        let mut second = Cycles::start(&other, queue, connections).await?;
        let duel = duel(&mut first, &mut second, settings.turns()).await?;
        let cell = format!("Put, get and delete of 1 KiB messages, {connections} connections, against Azurite");
        rows.push(Row::of_duel(&cell, "Azurite", &duel, Target::AtLeast(10.0)));
    }
    Ok(rows)
}

/// A clock that can be moved on.
#[derive(Debug, Default)]
struct Moved(AtomicU64);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        SystemClock.now().after(Duration::from_secs(self.0.load(Ordering::Relaxed)))
    }
}

/// An engine of its own, with queues.
struct Store {
    engine: Engine,
    clock: Arc<Moved>,
    directory: tempfile::TempDir,
}

impl Store {
    async fn open(settings: &Settings) -> Result<Self, Failure> {
        let (directory, clock) = (scratch(&settings.directory)?, Arc::new(Moved::default()));
        let mut options = Options::new(directory.path(), Arc::clone(&clock) as Arc<dyn Clock>);
        options.sync_probe = Some(sync_override::calls);
        Ok(Self { engine: Engine::open(options).await?, clock, directory })
    }

    async fn queue(&self, number: usize) -> Result<QueueAddress, Failure> {
        let wrong = |_| "not a name";
        let queue = QueueName::parse(&format!("queue-{number}")).map_err(wrong)?;
        let queue = QueueAddress { account: AccountName::parse("bench").map_err(wrong)?, queue };
        queues::create(&self.engine, queue.clone(), Metadata::default()).await?;
        Ok(queue)
    }

    /// Puts `count` messages of 100 bytes.
    async fn fill(
        &self,
        queue: &QueueAddress,
        count: u64,
        invisible: Duration,
        lifetime: Option<Duration>,
    ) -> Result<(), Failure> {
        let put = Arc::new(AtomicU64::new(0));
        let fillers = (0..FILLERS).map(|_| {
            let (engine, queue, put) = (self.engine.clone(), queue.clone(), Arc::clone(&put));
            tokio::spawn(async move {
                while put.fetch_add(1, Ordering::Relaxed) < count {
                    let message = NewMessage { text: "x".repeat(100), invisible, lifetime };
                    messages::put(&engine, queue.clone(), message).await?;
                }
                Ok::<_, Failure>(())
            })
        });
        for filler in try_join_all(fillers.collect::<Vec<_>>()).await? {
            filler?;
        }
        Ok(())
    }

    /// Waits until the background has left no more than `rest` messages. The count is asked for, not the rows: a
    /// reader of all of them would be measured too.
    async fn removed(&self, queue: &QueueAddress, rest: u64) -> Result<(), Failure> {
        while queues::get(&self.engine, queue.clone()).await?.messages > rest {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Bytes that the store takes on the disk.
    fn bytes(&self) -> Result<u64, Failure> {
        use std::os::unix::fs::MetadataExt as _;
        let mut bytes = 0;
        for file in std::fs::read_dir(self.directory.path().join("rows"))? {
            bytes += file?.metadata()?.blocks() * 512;
        }
        Ok(bytes)
    }
}

/// Consumers of queues: each takes from one of them, in turn, and does something with what it got.
struct Consumers {
    engine: Engine,
    queues: Vec<QueueAddress>,
    /// Whether they delete what they take; else it is visible again at once.
    delete: bool,
    /// Filled up before each slice.
    stock: Option<(Store, u64)>,
}

impl Contender for Consumers {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        Box::pin(async move {
            if let Some((store, stock)) = &self.stock {
                for queue in &self.queues {
                    let there = queues::get(&self.engine, queue.clone()).await?.messages;
                    store.fill(queue, stock.saturating_sub(there), Duration::ZERO, None).await?;
                }
            }
            let end = Instant::now() + length;
            let tasks = (0..CONSUMERS).map(|number| {
                let queue = self.queues.iter().cycle().nth(number).cloned();
                tokio::spawn(consume(self.engine.clone(), queue, self.delete, end))
            });
            let mut all = Slice::empty()?;
            for outcome in try_join_all(tasks.collect::<Vec<_>>()).await? {
                all.beside(&outcome?)?;
            }
            Ok(all)
        })
    }
}

async fn consume(engine: Engine, queue: Option<QueueAddress>, delete: bool, end: Instant) -> Result<Slice, Failure> {
    let queue = queue.ok_or("no queue")?;
    let mut slice = Slice::empty()?;
    let begin = Instant::now();
    let mut before = begin;
    while before < end {
        let invisible = if delete { HOUR } else { Duration::ZERO };
        let taken = messages::take(&engine, queue.clone(), 1, invisible).await?.pop().ok_or("a queue ran dry")?;
        if delete {
            let on = OnMessage { queue: queue.clone(), id: Some(taken.message.id), receipt: Some(taken.held.receipt) };
            messages::delete(&engine, on).await?;
        }
        let now = Instant::now();
        slice.note(now - before);
        before = now;
    }
    slice.elapsed = before - begin;
    Ok(slice)
}

/// Consumers of one queue, against as many that have a queue each.
async fn consumers(settings: &Settings) -> Result<Row, Failure> {
    let turns = settings.turns();
    // More than they can take in a slice, however quick the disk.
    let stock = 40_000 * u64::try_from(turns.slice.as_millis())? / 1000;
    let mut contenders = Vec::new();
    for count in [1, CONSUMERS] {
        let store = Store::open(settings).await?;
        let mut queues = Vec::new();
        for number in 0..count {
            queues.push(store.queue(number).await?);
        }
        let each = stock / u64::try_from(count)?;
        contenders.push(Consumers { engine: store.engine.clone(), queues, delete: true, stock: Some((store, each)) });
    }
    let [one, many] = contenders.as_mut_slice() else { return Err("two contenders".into()) };
    let duel = duel(one, many, turns).await?;
    let cell = format!("Deletes of {CONSUMERS} consumers of one queue, against {CONSUMERS} of {CONSUMERS} queues");
    Ok(Row::of_duel(&cell, "a queue each", &duel, Target::AtLeast(0.7)))
}

/// Get Messages with few and with many messages that cannot be had: invisible, then expired.
async fn fullness(settings: &Settings) -> Rows {
    let (turns, many) = (settings.turns(), settings.queued_messages());
    let few = store_with(settings, FEW, HOUR * 24, None).await?;
    let full = store_with(settings, many, HOUR * 24, None).await?;
    let cost = format!("Cost of Get Messages, {CONSUMERS} consumers, with {many}");
    let with_invisible = against(&few, &full, turns).await?;
    drop(full);
    let expired = store_with(settings, many, Duration::ZERO, Some(HOUR)).await?;
    let filled = expired.0.bytes()?;
    expired.0.clock.0.store(2 * HOUR.as_secs(), Ordering::Relaxed);
    let begin = Instant::now();
    let with_expired = against(&few, &expired, turns).await?;
    expired.0.removed(&expired.1, VISIBLE).await?;
    let removed = begin.elapsed();
    let mut rows = vec![
        Row::of_duel(
            &format!("{cost} invisible ones, per that with {FEW}"),
            "full",
            &with_invisible,
            Target::AtMost(1.5),
        ),
        Row::of_duel(
            &format!("{cost} just expired ones, per that with {FEW}"),
            "full",
            &with_expired,
            Target::AtMost(1.5),
        ),
    ];
    expired.0.fill(&expired.1, many, Duration::ZERO, Some(HOUR)).await?;
    let refilled = expired.0.bytes()?;
    rows.push(Row {
        cell: format!("Disk after {many} messages expired and as many were put, per disk before"),
        value: refilled as f64 / filled as f64,
        unit: "×",
        target: Target::AtMost(1.5),
        detail: format!("{} MiB before; removed in {:.0} s beside the consumers", filled >> 20, removed.as_secs_f64()),
    });
    Ok(rows)
}

/// A store with a queue of `count` messages and [`VISIBLE`] ones that can be had.
async fn store_with(
    settings: &Settings,
    count: u64,
    invisible: Duration,
    lifetime: Option<Duration>,
) -> Result<(Store, QueueAddress), Failure> {
    let store = Store::open(settings).await?;
    let queue = store.queue(0).await?;
    store.fill(&queue, count, invisible, lifetime).await?;
    store.fill(&queue, VISIBLE, Duration::ZERO, None).await?;
    Ok((store, queue))
}

async fn against(
    few: &(Store, QueueAddress),
    many: &(Store, QueueAddress),
    turns: Turns,
) -> Result<crate::bench::load::Duel, Failure> {
    let consumers = |(store, queue): &(Store, QueueAddress)| Consumers {
        engine: store.engine.clone(),
        queues: vec![queue.clone()],
        delete: false,
        stock: None,
    };
    duel(&mut consumers(few), &mut consumers(many), turns).await
}
