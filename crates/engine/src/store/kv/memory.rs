//! Rows in memory: for tests and for servers that keep nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use super::{Ask, Kv, Writes};
use crate::store::{Direction, Pair, Space, StoreError};

/// One ordered map a space. Nothing survives the process. Clones are handles on the same rows.
#[derive(Clone, Debug, Default)]
pub struct MemoryKv {
    spaces: Arc<RwLock<BTreeMap<Space, BTreeMap<Bytes, Bytes>>>>,
}

impl MemoryKv {
    /// The same rows once more; further writes to one do not reach the other.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { spaces: Arc::new(RwLock::new(self.spaces.read().clone())) }
    }
}

impl Kv for MemoryKv {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.spaces.read().get(&space).and_then(|rows| rows.get(key)).cloned())
    }

    fn chunk(&self, space: Space, ask: &Ask<'_>) -> Result<Vec<Pair>, StoreError> {
        let spaces = self.spaces.read();
        let (Some(rows), Some(bounds)) = (spaces.get(&space), ask.range.bounds()) else { return Ok(Vec::new()) };
        let pairs = rows
            .range::<[u8], _>(bounds)
            .filter(|(key, _)| (ask.wanted)(key))
            .map(|(key, value)| (key.clone(), value.clone()));
        Ok(match ask.direction {
            Direction::Forward => pairs.take(ask.limit).collect(),
            Direction::Backward => pairs.rev().take(ask.limit).collect(),
        })
    }

    fn apply(&self, writes: &Writes) -> Result<(), StoreError> {
        let mut spaces = self.spaces.write();
        for (space, writes) in writes.spaces() {
            let rows = spaces.entry(space).or_default();
            for (key, value) in writes {
                match value {
                    Some(value) => drop(rows.insert(key.clone(), value.clone())),
                    None => drop(rows.remove(key)),
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}
