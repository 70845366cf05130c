//! Ordered bytes with atomic batches: all that the embedded store asks of a storage engine.

pub(crate) mod beginning;
pub mod fault;
pub mod memory;
pub mod sled;

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::store::{Direction, KeyRange, Pair, Space, StoreError, Visitor};

/// Pairs that are pulled at a time for a visitor, where an engine has nothing better.
const VISITED_AT_ONCE: usize = 128;

/// What is asked of a kv: the first `limit` pairs of `range`, in `direction`, whose keys are `wanted`.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "a closure has none")]
pub struct Ask<'a> {
    /// Where they lie.
    pub range: &'a KeyRange,
    /// Which come first.
    pub direction: Direction,
    /// How many at most.
    pub limit: usize,
    /// Whether a pair with this key counts.
    pub wanted: &'a dyn Fn(&[u8]) -> bool,
}

impl<'a> Ask<'a> {
    /// For the first pairs whatever their keys.
    pub fn first(range: &'a KeyRange, direction: Direction, limit: usize) -> Self {
        Self { range, direction, limit, wanted: &|_| true }
    }
}

/// Ordered bytes below the embedded store. Only its committer writes and syncs; anybody reads at any time.
///
/// - `apply` is all or nothing, also across a crash, over all spaces. Its writes are visible to reads at once and
///   durable only after `sync`.
/// - Reads are not isolated: a `chunk` may see some of a batch that is being applied meanwhile. The store above masks
///   that.
pub trait Kv: Send + Sync + 'static {
    /// The value at `key`.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// The pairs that are asked for; fewer than the limit only at the end of the range.
    fn chunk(&self, space: Space, ask: &Ask<'_>) -> Result<Vec<Pair>, StoreError>;

    /// Shows each pair of `range` in byte order to `each`, until that breaks. Holds no lock while it does.
    fn visit(&self, space: Space, range: &KeyRange, each: &mut Visitor<'_>) -> Result<(), StoreError> {
        let mut range = range.clone();
        loop {
            let pairs = self.chunk(space, &Ask::first(&range, Direction::Forward, VISITED_AT_ONCE))?;
            if pairs.iter().any(|(key, value)| each(key, value).is_break()) || pairs.len() < VISITED_AT_ONCE {
                return Ok(());
            }
            if let Some((last, _)) = pairs.last() {
                range.start = Bound::Excluded(last.to_vec());
            }
        }
    }

    /// Applies all of `writes`, or nothing.
    fn apply(&self, writes: &Writes) -> Result<(), StoreError>;

    /// Makes everything applied before the call survive power loss. After an error the state on disk is unknown.
    fn sync(&self) -> Result<(), StoreError>;

    /// Bytes that can still be written, if the engine is bounded.
    fn free_bytes(&self) -> Result<Option<u64>, StoreError>;
}

/// Final writes by space and key: a value, or none to remove.
#[derive(Clone, Debug, Default)]
pub struct Writes {
    spaces: BTreeMap<Space, BTreeMap<Bytes, Option<Bytes>>>,
}

impl Writes {
    /// What is written at `key`: not at all, removed, or a value.
    pub fn get(&self, space: Space, key: &[u8]) -> Option<&Option<Bytes>> {
        self.spaces.get(&space)?.get(key)
    }

    /// Writes `value`, or removes the key.
    pub fn set(&mut self, space: Space, key: Bytes, value: Option<Bytes>) {
        self.spaces.entry(space).or_default().insert(key, value);
    }

    /// The writes within `range`, in key order.
    pub fn range(&self, space: Space, range: &KeyRange) -> impl DoubleEndedIterator<Item = (&Bytes, &Option<Bytes>)> {
        let within = self.spaces.get(&space).zip(range.bounds());
        within.into_iter().flat_map(|(writes, bounds)| writes.range::<[u8], _>(bounds))
    }

    /// Adds everything that `later` writes, over what is here.
    pub fn absorb(&mut self, later: Self) {
        for (space, writes) in later.spaces {
            self.spaces.entry(space).or_default().extend(writes);
        }
    }

    /// The spaces written, each with its writes.
    pub fn spaces(&self) -> impl Iterator<Item = (Space, &BTreeMap<Bytes, Option<Bytes>>)> {
        self.spaces.iter().map(|(space, writes)| (*space, writes))
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.spaces.values().all(BTreeMap::is_empty)
    }
}
