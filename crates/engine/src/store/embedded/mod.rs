//! The embedded store: one committer, group commit, snapshots by an overlay – over any [`Kv`].
//!
//! A commit of group `c`: run the jobs' bodies one after the other on the latest state plus what the group wrote so
//! far; keep the pre-image of every key written; apply all final writes and the store's own state in one batch; sync;
//! publish `c`; answer every job, refusals included. A snapshot at `s` reads the kv first, then the overlay: the first
//! group after `s` that wrote the key has the answer.

mod committer;
mod meta;
mod overlay;
mod runs;
mod scan;
mod snapshot;
#[cfg(test)]
mod tests;
mod transaction;
mod visit;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{oneshot, watch};

use crate::clock::{Clock, Timestamp};
use crate::store::kv::Kv;
use crate::store::{OpenError, Purpose, Snapshot, Space, Store, StoreError, TxBody, Verdict};
use committer::{Committer, Job};
use overlay::Overlay;
use runs::Runs;

/// Transactions that may wait; one more is answered [`StoreError::Busy`].
const INBOX_JOBS: usize = 8192;
/// Jobs of one group.
pub const GROUP_JOBS_MAX: usize = 256;

/// Bytes of what was visited lately that are kept in memory.
const RUNS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What the server does when a failed write made the state on disk unknown: it gets the reason, once.
pub type OnPoison = Arc<dyn Fn(&str) + Send + Sync>;

/// How an [`Embedded`] store is opened.
#[derive(Clone)]
pub struct EmbeddedOptions {
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Bytes of pre-images kept for snapshots; beyond it the oldest snapshots become too old.
    pub overlay_bytes_max: usize,
    /// Free bytes below which [`Purpose::Grow`] is refused; below a quarter of it [`Purpose::Free`] too.
    pub reserve_bytes: u64,
    /// Jobs that share a sync, at most; [`GROUP_JOBS_MAX`] unless measured otherwise.
    pub group_jobs_max: usize,
    /// Called when the store is poisoned.
    pub on_poison: OnPoison,
    /// Counts the syncs that reached the disk; must grow with the first commit, else opening fails.
    pub sync_probe: Option<fn() -> u64>,
}

/// The embedded store over `K`.
#[derive(Debug)]
pub struct Embedded<K: Kv> {
    shared: Arc<Shared<K>>,
    /// Taken when the store is dropped, which ends the committer.
    inbox: Option<SyncSender<Job>>,
    committer: Option<JoinHandle<()>>,
    gone: watch::Receiver<()>,
}

/// What the committer and the readers share.
struct Shared<K> {
    kv: K,
    clock: Arc<dyn Clock>,
    overlay: RwLock<Overlay>,
    runs: Runs,
    published: Mutex<Published>,
    /// Goes last, when the kv is closed: see [`Embedded::closed`].
    _alive: watch::Sender<()>,
}

/// The latest durable state, and who still looks at an older one.
#[derive(Debug)]
struct Published {
    group: u64,
    time: Timestamp,
    /// Open snapshots by group.
    open: BTreeMap<u64, usize>,
}

impl Published {
    /// The oldest group that an open or future snapshot can be of.
    fn oldest(&self) -> u64 {
        self.open.keys().next().copied().unwrap_or(self.group)
    }
}

impl<K> std::fmt::Debug for Shared<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("published", &self.published).finish_non_exhaustive()
    }
}

impl<K: Kv> Embedded<K> {
    /// Opens the store in `kv`: checks its format, or gives it one, and starts the committer.
    pub fn open(kv: K, options: EmbeddedOptions) -> Result<Self, OpenError> {
        let (state, last_id) = meta::open(&kv, options.sync_probe)?;
        let (alive, gone) = watch::channel(());
        let shared = Arc::new(Shared {
            kv,
            clock: Arc::clone(&options.clock),
            overlay: RwLock::default(),
            runs: Runs::new(RUNS_BYTES_MAX),
            published: Mutex::new(Published { group: state.group, time: state.time, open: BTreeMap::new() }),
            _alive: alive,
        });
        let (inbox, jobs) = sync_channel(INBOX_JOBS);
        let committer = Committer::new(Arc::clone(&shared), options, state, last_id);
        let committer = std::thread::Builder::new()
            .name("committer".into())
            .spawn(move || committer.run(&jobs))
            .map_err(|error| OpenError::Store(StoreError::Backend(format!("the committer's thread: {error}"))))?;
        Ok(Self { shared, inbox: Some(inbox), committer: Some(committer), gone })
    }

    /// Resolves once the store and all its snapshots are dropped and the kv is closed, so that it can be opened again.
    pub fn closed(&self) -> BoxFuture<'static, ()> {
        let mut gone = self.gone.clone();
        // Nothing is ever sent: what ends the wait is that the sender is gone.
        async move { while gone.changed().await.is_ok() {} }.boxed()
    }

    /// The kv below: for tests that damage it.
    pub fn kv(&self) -> &K {
        &self.shared.kv
    }
}

impl<K: Kv> Store for Embedded<K> {
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        Ok(Box::new(snapshot::View::open(&self.shared)))
    }

    fn transact(&self, purpose: Purpose, body: TxBody) -> BoxFuture<'_, Result<Verdict, StoreError>> {
        let (answer, answered) = oneshot::channel();
        // Sent at once, not at the first poll: who stops waiting has still asked.
        let sent = match &self.inbox {
            Some(inbox) => inbox.try_send(Job { purpose, body, answer }).map_err(|error| match error {
                TrySendError::Full(_) => StoreError::Busy,
                TrySendError::Disconnected(_) => StoreError::Poisoned("the committer has ended".into()),
            }),
            None => Err(StoreError::Poisoned("the store is closed".into())),
        };
        async move {
            sent?;
            answered.await.unwrap_or_else(|_| Err(StoreError::Poisoned("the committer has ended".into())))
        }
        .boxed()
    }

    fn horizon(&self) -> u64 {
        self.shared.published.lock().oldest()
    }
}

/// The store's own space is no part of what it stores: no overlay keeps its past.
fn open_to_views(space: Space) -> Result<(), StoreError> {
    match space {
        Space::Meta => Err(StoreError::Backend("the space meta belongs to the store".into())),
        _ => Ok(()),
    }
}

impl<K: Kv> Drop for Embedded<K> {
    fn drop(&mut self) {
        drop(self.inbox.take());
        // A transaction may hold the last handle, and a thread cannot wait for itself.
        if let Some(committer) = self.committer.take()
            && committer.thread().id() != std::thread::current().id()
            && committer.join().is_err()
        {
            tracing::error!("the committer died");
        }
    }
}
