//! The seam: transactional ordered bytes.
//!
//! All domain code stands on [`Store`], [`Snapshot`] and [`Tx`]; nothing above this folder knows which engine lies
//! below. A store is done when it passes the suite in `conformance.rs`.
//!
//! # Contract
//!
//! - A [`Snapshot`] is one moment: every `get` and `scan` on it answers as of the same point between two commits.
//!   It sees only durable writes. It pins nothing on disk and may be refused later with [`StoreError::TooOld`], but
//!   is never wrong.
//! - A transaction is serializable, including the ranges it scans. Its reads and scans see its own writes.
//! - A body that answers [`Verdict::Abandon`] or an error writes nothing.
//! - `transact` returns, whatever the verdict, only once all that the body could have read is durable and visible: an
//!   answer, and a refusal too, never rests on a write that a crash could take back.
//! - A committed transaction is all there or not at all, also after a crash.
//! - Within one store, [`View::now`] of transactions that commit a write strictly increases, also across restarts,
//!   and [`Tx::id`] never gives the same number twice.
//! - [`Space::Meta`] belongs to the store: reading or writing it through a view is an error.

#[cfg(test)]
mod conformance;
pub mod embedded;
pub mod kv;
pub mod space;

use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

pub use space::Space;

use crate::clock::Timestamp;
use crate::error::Error;

/// Longest key that every store takes, in bytes.
pub const KEY_BYTES_MAX: usize = 8 * 1024;
/// Longest value that every store takes, in bytes. What is larger is split into rows or lies in the payload.
pub const VALUE_BYTES_MAX: usize = 16 * 1024;
/// Most keys that one transaction may write.
pub const TX_KEYS_MAX: usize = 10_000;
/// Most bytes of keys and values that one transaction may write.
pub const TX_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Keys after which a transaction is long: see [`Tx::is_long`].
pub const TX_KEYS_AMPLE: usize = 2_000;
/// Bytes after which a transaction is long.
pub const TX_BYTES_AMPLE: usize = 1024 * 1024;

/// A key and its value.
pub type Pair = (Bytes, Bytes);
/// Pairs in byte order (or its reverse), each read under the view's rules.
pub type Pairs<'a> = Box<dyn Iterator<Item = Result<Pair, StoreError>> + Send + 'a>;
/// Looks at a key and its value; says whether it wants to see more.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;
/// The two ends of a range.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);
/// What a transaction runs: pure but for `tx`, short, possibly more than once.
pub type TxBody = Box<dyn Fn(&mut dyn Tx) -> Result<Verdict, StoreError> + Send>;

/// Transactional ordered bytes. See the module for the contract.
pub trait Store: Send + Sync + 'static {
    /// A consistent view of the latest durable state. Cheap.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError>;

    /// Runs `body` serializably on the latest state, again on conflict; resolves once its writes are durable and
    /// visible. Asked for by the call itself: a transaction that nobody waits for any more still runs.
    fn transact(&self, purpose: Purpose, body: TxBody) -> BoxFuture<'_, Result<Verdict, StoreError>>;

    /// The sequence number up to which no snapshot is older: a row removed by a transaction with
    /// [`Tx::seq`] ` <= horizon()` can no longer be seen by any open or future snapshot.
    fn horizon(&self) -> u64;
}

/// Why a transaction writes; decides what happens when the disk is nearly full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Adds data: refused with [`StoreError::Full`] when free space is below the reserve.
    Grow,
    /// Frees data or keeps house: goes on until the reserve itself is nearly used up.
    Free,
}

/// What a transaction body decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Make the writes durable.
    Commit,
    /// Write nothing.
    Abandon,
}

/// Ordered reads. Shared by snapshots and transactions, so that a rule is written once.
pub trait View {
    /// The value at `key`.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// The pairs of `range` in byte order, or in reverse.
    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Pairs<'_>;

    /// Whether there is any pair in `range`.
    fn any(&self, space: Space, range: &KeyRange) -> Result<bool, StoreError> {
        Ok(self.scan(space, range.clone(), Direction::Forward).next().transpose()?.is_some())
    }

    /// Shows each pair of `range` in byte order to `each`, until that breaks: what a scan answers, for whoever looks at
    /// many pairs and keeps few. It may be shown pairs that were read some hundred at a time; it may read the view.
    fn visit(&self, space: Space, range: &KeyRange, each: &mut Visitor<'_>) -> Result<(), StoreError> {
        for pair in self.scan(space, range.clone(), Direction::Forward) {
            let (key, value) = pair?;
            if each(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The one moment at which this view judges leases, conditions and expiry. Of a transaction it is also the
    /// commit time.
    fn now(&self) -> Timestamp;
}

/// A read view of one moment.
pub trait Snapshot: View + Send + Sync {}

/// A transaction under way.
pub trait Tx: View {
    /// Writes `value` at `key`. A value over [`VALUE_BYTES_MAX`] or a key over [`KEY_BYTES_MAX`] fails the
    /// transaction with [`StoreError::TooLarge`], also if the body passes over the error.
    fn put(&mut self, space: Space, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError>;

    /// Removes `key`, whether present or not.
    fn delete(&mut self, space: Space, key: &[u8]) -> Result<(), StoreError>;

    /// A number that this store has never given before and never will again. Starts at 1, increases.
    fn id(&mut self) -> u64;

    /// The position of this transaction in commit order, comparable with [`Store::horizon`].
    fn seq(&self) -> u64;

    /// Whether it has written [`TX_KEYS_AMPLE`] keys or [`TX_BYTES_AMPLE`] bytes: work that can be done in several
    /// transactions goes on in the next one. Names and tags may be long, so a count of rows alone is no bound.
    fn is_long(&self) -> bool;
}

/// Keys between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Lower bound.
    pub start: Bound<Vec<u8>>,
    /// Upper bound.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { start: Bound::Included(prefix.to_vec()), end: prefix_end(prefix) }
    }

    /// The same range without anything below `start`.
    #[must_use]
    pub fn starting(mut self, start: Bound<Vec<u8>>) -> Self {
        self.start = start;
        self
    }

    /// The bounds, borrowed; none if no key can lie between them.
    pub fn bounds(&self) -> Option<Bounds<'_>> {
        let empty = match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end) | Bound::Included(end)) => {
                start >= end
            }
            _ => false,
        };
        (!empty).then(|| (self.start.as_ref().map(Vec::as_slice), self.end.as_ref().map(Vec::as_slice)))
    }

    /// Whether `key` lies inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        let after = match &self.start {
            Bound::Included(start) => key >= start.as_slice(),
            Bound::Excluded(start) => key > start.as_slice(),
            Bound::Unbounded => true,
        };
        let before = match &self.end {
            Bound::Included(end) => key <= end.as_slice(),
            Bound::Excluded(end) => key < end.as_slice(),
            Bound::Unbounded => true,
        };
        after && before
    }
}

/// The first key after every key that begins with `prefix`.
pub fn prefix_end(prefix: &[u8]) -> Bound<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}

/// Which way a scan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending byte order.
    Forward,
    /// Descending byte order.
    Backward,
}

/// Runs `body` as one transaction of `store` and answers what it answered; see [`Store::transact`].
pub async fn transact<T: Send + 'static, E: Into<Error>>(
    store: &dyn Store,
    purpose: Purpose,
    body: impl Fn(&mut dyn Tx) -> Result<T, E> + Send + 'static,
) -> Result<T, Error> {
    let slot = Arc::new(parking_lot::Mutex::new(None));
    let answer = Arc::clone(&slot);
    let run = move |tx: &mut dyn Tx| {
        let (verdict, outcome) = match body(tx).map_err(Into::into) {
            Ok(value) => (Ok(Verdict::Commit), Ok(value)),
            Err(Error::Storage(error)) => (Err(error.clone()), Err(Error::Storage(error))),
            Err(error) => (Ok(Verdict::Abandon), Err(error)),
        };
        *answer.lock() = Some(outcome);
        verdict
    };
    let _: Verdict = store.transact(purpose, Box::new(run)).await?;
    let outcome = slot.lock().take();
    outcome.unwrap_or_else(|| Err(StoreError::Backend("a transaction ended without an answer".into()).into()))
}

/// Why a store could not do what was asked. Never the caller's doing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The snapshot outlived the memory kept for it; take a new one.
    #[error("the snapshot is too old")]
    TooOld,
    /// Too much is waiting already; nothing was done.
    #[error("too many transactions are waiting")]
    Busy,
    /// The disk has too little room left; nothing was written.
    #[error("the data directory is nearly full")]
    Full,
    /// A key, a value or a transaction is over its bound; nothing was written.
    #[error("{what} of {size} is over the bound of {bound}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// What is allowed.
        bound: usize,
    },
    /// A row does not decode.
    #[error("damaged row in {space:?} at key {key}: {reason}")]
    Corrupt {
        /// Where the row lies.
        space: Space,
        /// Its key in hexadecimal.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Stored bytes are not those that were written.
    #[error("damaged payload in segment {segment:016x} at byte {offset}")]
    Damaged {
        /// The segment.
        segment: u64,
        /// Where the damaged frame begins.
        offset: u64,
    },
    /// An earlier failure made the state on disk unknown; only a restart recovers.
    #[error("the store stopped after a failed write: {0}")]
    Poisoned(String),
    /// The engine below failed.
    #[error("{0}")]
    Backend(String),
}

/// Why a store does not open.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{} is in use by another process", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// There are files that sled never syncs; no row is large enough for one.
    #[error("{} is not empty: what it holds may be lost in a power cut", directory.display())]
    SideFiles {
        /// Where they lie.
        directory: PathBuf,
    },
    /// There were rows, and are none any more.
    #[error(
        "{} holds nothing that can be read, though it did once: restore the data directory from a copy, or begin with \
         an empty one",
        directory.display()
    )]
    RowsLost {
        /// Where they were.
        directory: PathBuf,
    },
    /// The data was written by another version.
    #[error("the data has format {found}, this version reads format {known}: run the version of lazuli that wrote it")]
    Format {
        /// What the data says.
        found: u32,
        /// What this version reads.
        known: u32,
    },
    /// A sync does not reach the disk.
    #[error(
        "syncs do not reach the disk on this system (the sync override is not in effect): \
         start with durability = \"process\" if surviving a power cut is not needed"
    )]
    SyncNotInEffect,
    /// The engine below failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
