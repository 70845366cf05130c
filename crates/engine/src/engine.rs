//! The doors: open, close, read, write.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::future::Shared as SharedFuture;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::clock::{Clock, Timestamp};
use crate::clockwork::{self, Clockwork};
use crate::error::Error;
use crate::names::AccountName;
use crate::payload::{PayloadOptions, Payloads, SEGMENT_BYTES, Staged};
use crate::policy::{AccountPolicy, Policies};
use crate::store::embedded::{Embedded, EmbeddedOptions, GROUP_JOBS_MAX, OnPoison};
use crate::store::kv::beginning::Beginning;
use crate::store::kv::memory::MemoryKv;
use crate::store::kv::sled::SledKv;
use crate::store::{self, Direction, KeyRange, OpenError, Purpose, Snapshot, Space, Store, StoreError, Tx, View};

/// How often a read takes a new snapshot because the last one became too old.
const READ_ATTEMPTS_MAX: usize = 3;
/// Bytes of pre-images kept for snapshots.
const OVERLAY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How much an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: every commit waits for the disk.
    Sync,
    /// The death of the process, not of the machine.
    Process,
}

/// What [`Engine::open`] needs to know.
#[derive(Clone)]
pub struct Options {
    /// The data directory; created if absent. The caller sees to it that no other process uses it.
    pub directory: PathBuf,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Bytes of rows kept in memory.
    pub cache_bytes: u64,
    /// Free bytes below which writes that add data are refused.
    pub reserve_bytes: u64,
    /// Transactions that share a sync, at most.
    pub group_jobs_max: usize,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// What the accounts' owners decided.
    pub policies: Policies,
    /// Called once a failed write made the state on disk unknown: nothing can be written until a restart.
    pub on_poison: OnPoison,
    /// Counts the syncs that reached the disk: if the first commit makes none, the engine does not open. None skips
    /// the check, which is right only where nothing is synced.
    pub sync_probe: Option<fn() -> u64>,
}

impl Options {
    /// The defaults for `directory`: everything as durable as the disk allows.
    pub fn new(directory: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self {
            directory: directory.into(),
            durability: Durability::Sync,
            cache_bytes: 64 * 1024 * 1024,
            reserve_bytes: 64 * 1024 * 1024,
            group_jobs_max: GROUP_JOBS_MAX,
            clock,
            policies: Policies::default(),
            on_poison: Arc::new(|_| {}),
            sync_probe: None,
        }
    }
}

/// A storage engine over one data directory, or in memory. Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    store: Arc<dyn Store>,
    payloads: Payloads,
    clockwork: Arc<Clockwork>,
    background: Mutex<Option<JoinHandle<()>>>,
    policies: RwLock<Policies>,
    /// Told when a copy from another server begins or ends.
    copies: Notify,
    closed: SharedFuture<BoxFuture<'static, ()>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.clockwork.wake();
    }
}

impl From<Arc<Shared>> for Engine {
    fn from(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Engine {
    /// Opens or creates the data directory, frees what a crash left behind, and goes on with background work. Runs
    /// inside a tokio runtime.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let directory = &options.directory;
        std::fs::create_dir_all(directory)
            .map_err(|error| StoreError::Backend(format!("creating {}: {error}", directory.display())))?;
        let kv = SledKv::open(&directory.join("rows"), options.cache_bytes)?;
        let beginning = Beginning::of(directory);
        beginning.check(&kv)?;
        let payloads = PayloadOptions {
            directory: Some(directory.join("payload")),
            durability: options.durability,
            reserve_bytes: options.reserve_bytes,
            segment_bytes: SEGMENT_BYTES,
            on_poison: Arc::clone(&options.on_poison),
        };
        let store = EmbeddedOptions {
            clock: options.clock,
            overlay_bytes_max: OVERLAY_BYTES_MAX,
            reserve_bytes: options.reserve_bytes,
            group_jobs_max: options.group_jobs_max,
            on_poison: options.on_poison,
            sync_probe: options.sync_probe,
        };
        let store = Embedded::open(kv, store)?;
        beginning.note()?;
        let closed = store.closed();
        let engine = Self::over(Arc::new(store), closed, payloads).await?;
        engine.set_policies(options.policies);
        Ok(engine)
    }

    /// An engine that keeps everything in memory. Runs inside a tokio runtime.
    pub async fn memory(clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let on_poison: OnPoison = Arc::new(|_| {});
        let payloads = PayloadOptions {
            directory: None,
            durability: Durability::Process,
            reserve_bytes: 0,
            segment_bytes: SEGMENT_BYTES,
            on_poison: Arc::clone(&on_poison),
        };
        let store = EmbeddedOptions {
            clock,
            overlay_bytes_max: OVERLAY_BYTES_MAX,
            reserve_bytes: 0,
            group_jobs_max: GROUP_JOBS_MAX,
            on_poison,
            sync_probe: None,
        };
        let store = Embedded::open(MemoryKv::default(), store)?;
        let closed = store.closed();
        Self::over(Arc::new(store), closed, payloads).await
    }

    async fn over(
        store: Arc<dyn Store>,
        closed: BoxFuture<'static, ()>,
        payloads: PayloadOptions,
    ) -> Result<Self, OpenError> {
        let engine = Self::idle(store, closed, payloads).await?;
        let clockwork = Arc::clone(&engine.shared.clockwork);
        let task = tokio::spawn(clockwork::run(clockwork, Arc::downgrade(&engine.shared)));
        *engine.shared.background.lock() = Some(task);
        Ok(engine)
    }

    /// An engine that does no work in the background but what [`Self::settle`] does.
    pub(crate) async fn idle(
        store: Arc<dyn Store>,
        closed: BoxFuture<'static, ()>,
        payloads: PayloadOptions,
    ) -> Result<Self, OpenError> {
        let closed = closed.shared();
        let payloads = Payloads::open(Arc::clone(&store), payloads).await.map_err(|error| match error {
            Error::Storage(error) => error,
            other => StoreError::Backend(other.to_string()),
        })?;
        let clockwork = Arc::new(Clockwork::default());
        let (background, policies, copies) = (Mutex::default(), RwLock::default(), Notify::new());
        Ok(Self { shared: Arc::new(Shared { store, payloads, clockwork, background, policies, copies, closed }) })
    }

    /// Ends background work and waits until the data directory can be opened again: also for whoever still holds a
    /// clone of the engine, an upload or a download.
    pub async fn close(self) {
        let closed = self.shared.closed.clone();
        let background = self.shared.background.lock().take();
        self.shared.clockwork.stop();
        drop(self);
        if let Some(background) = background
            && let Err(error) = background.await
        {
            tracing::error!(%error, "the background work died");
        }
        closed.await;
    }

    /// Does all background work that is due now, and waits for it: for tests and for a tidy end.
    pub async fn settle(&self) -> Result<(), Error> {
        while clockwork::tick(self).await? {}
        Ok(())
    }

    /// How many rows lie in each space that has any, the store's own state left out. Reads everything: for tests and
    /// for checking a data directory.
    pub fn census(&self) -> Result<Vec<(Space, usize)>, Error> {
        self.read(|view| {
            let mut census = Vec::new();
            for space in Space::ALL.iter().copied().filter(|space| *space != Space::Meta) {
                let mut rows = 0;
                for pair in view.scan(space, KeyRange::all(), Direction::Forward) {
                    pair?;
                    rows += 1;
                }
                if rows > 0 {
                    census.push((space, rows));
                }
            }
            Ok(census)
        })
    }

    /// Replaces what the accounts' owners decided, for every operation that begins from now on.
    pub fn set_policies(&self, policies: Policies) {
        *self.shared.policies.write() = policies;
        self.shared.clockwork.expect_leftovers();
    }

    /// What the owner of `account` decided.
    pub fn policy(&self, account: &AccountName) -> Arc<AccountPolicy> {
        self.shared.policies.read().of(account)
    }

    /// The accounts whose changes are recorded.
    pub(crate) fn with_change_feed(&self) -> Vec<AccountName> {
        self.shared.policies.read().with_change_feed()
    }

    /// What all owners decided.
    pub(crate) fn policies(&self) -> Policies {
        self.shared.policies.read().clone()
    }

    pub(crate) fn clockwork(&self) -> &Clockwork {
        &self.shared.clockwork
    }

    pub(crate) fn copies(&self) -> &Notify {
        &self.shared.copies
    }

    /// Tells the background that there may be something to do.
    pub(crate) fn wake(&self) {
        self.shared.clockwork.wake();
    }

    /// The bodies.
    pub fn payloads(&self) -> &Payloads {
        &self.shared.payloads
    }

    /// The present moment, as a read begun now would judge by it.
    pub fn now(&self) -> Result<Timestamp, Error> {
        Ok(self.snapshot()?.now())
    }

    /// A view of the latest durable state.
    pub(crate) fn snapshot(&self) -> Result<Box<dyn Snapshot>, Error> {
        Ok(self.shared.store.snapshot()?)
    }

    /// Runs `body` on one snapshot; on a new one if that became too old. For point reads: it does not leave the
    /// caller's thread.
    pub(crate) fn read<T>(&self, body: impl Fn(&dyn View) -> Result<T, Error>) -> Result<T, Error> {
        let mut answer = Err(Error::Busy);
        for _ in 0..READ_ATTEMPTS_MAX {
            answer = body(&*self.snapshot()?);
            if !matches!(answer, Err(Error::Busy)) {
                break;
            }
        }
        answer
    }

    /// As [`Self::read`], on a thread that may block: for scans.
    pub(crate) async fn scan<T: Send + 'static>(
        &self,
        body: impl Fn(&dyn View) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.blocking(move |engine| engine.read(body)).await
    }

    /// Runs `work` on a thread that may block.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let engine = self.clone();
        tokio::task::spawn_blocking(move || work(&engine))
            .await
            .map_err(|error| Error::Storage(StoreError::Backend(format!("work in the background died: {error}"))))?
    }

    /// Runs `body` as one transaction; resolves once what it wrote is durable, or what it refused on is.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        purpose: Purpose,
        body: impl Fn(&mut dyn Tx) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        store::transact(&*self.shared.store, purpose, body).await
    }

    /// As [`Self::write`], for a body that may keep `content`. The transaction owns the staged bytes, alone or with a
    /// caller that may try again: whoever stops waiting for it cannot take them away, and if it writes nothing they are
    /// given back by the last owner.
    pub(crate) async fn write_content<T: Send + 'static>(
        &self,
        content: impl Into<Arc<Staged>>,
        body: impl Fn(&mut dyn Tx, &Staged) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let content = content.into();
        self.write(Purpose::Grow, move |tx| {
            let mut undo = Unkeep(Some(&content));
            let answer = body(tx, &content)?;
            undo.0 = None;
            Ok(answer)
        })
        .await
    }
}

/// Takes [`Staged::keep`] back when a body fails or panics: neither writes anything.
struct Unkeep<'a>(Option<&'a Staged>);

impl Drop for Unkeep<'_> {
    fn drop(&mut self) {
        if let Some(content) = self.0 {
            content.unkeep();
        }
    }
}

#[cfg(test)]
mod tests;
