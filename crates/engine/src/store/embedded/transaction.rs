//! A transaction under way in the committer.

use bytes::Bytes;

use super::open_to_views;
use super::scan::Scan;
use crate::clock::Timestamp;
use crate::store::kv::{Ask, Kv, Writes};
use crate::store::{
    Direction, KEY_BYTES_MAX, KeyRange, Pairs, Space, StoreError, TX_BYTES_AMPLE, TX_BYTES_MAX, TX_KEYS_AMPLE,
    TX_KEYS_MAX, Tx, VALUE_BYTES_MAX, View,
};

/// Reads the latest state, what earlier jobs of the group wrote, and what it wrote itself.
pub(super) struct Transaction<'a, K> {
    pub(super) kv: &'a K,
    pub(super) group: &'a Writes,
    pub(super) own: Writes,
    pub(super) now: Timestamp,
    pub(super) seq: u64,
    pub(super) last_id: &'a mut u64,
    pub(super) keys: usize,
    pub(super) bytes: usize,
    /// The first write that was refused: it fails the transaction whatever the body makes of it.
    pub(super) refused: Option<StoreError>,
}

impl<K: Kv> Transaction<'_, K> {
    /// What this transaction, or one before it in the group, wrote at `key`.
    fn written(&self, space: Space, key: &[u8]) -> Option<&Option<Bytes>> {
        self.own.get(space, key).or_else(|| self.group.get(space, key))
    }

    /// The values that they wrote in `range`, first theirs, then its own.
    fn added(&self, space: Space, range: &KeyRange) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        let earlier = self.group.range(space, range).filter(move |(key, _)| self.own.get(space, key).is_none());
        let written = earlier.chain(self.own.range(space, range));
        written.filter_map(|(key, value)| Some((key, value.as_ref()?)))
    }

    fn set(&mut self, space: Space, key: Bytes, value: Option<Bytes>) -> Result<(), StoreError> {
        let checked = self.check_and_set(space, key, value);
        if let Err(error) = &checked {
            self.refused.get_or_insert_with(|| error.clone());
        }
        checked
    }

    fn check_and_set(&mut self, space: Space, key: Bytes, value: Option<Bytes>) -> Result<(), StoreError> {
        open_to_views(space)?;
        within("a key", key.len(), KEY_BYTES_MAX)?;
        let value_bytes = value.as_ref().map_or(0, Bytes::len);
        within("a value", value_bytes, VALUE_BYTES_MAX)?;
        self.keys += 1;
        self.bytes += key.len() + value_bytes;
        within("a transaction's keys", self.keys, TX_KEYS_MAX)?;
        within("a transaction", self.bytes, TX_BYTES_MAX)?;
        self.own.set(space, key, value);
        Ok(())
    }
}

impl<K: Kv> View for Transaction<'_, K> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        open_to_views(space)?;
        match self.written(space, key) {
            Some(written) => Ok(written.clone()),
            None => self.kv.get(space, key),
        }
    }

    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Pairs<'_> {
        if let Err(error) = open_to_views(space) {
            return Box::new(std::iter::once(Err(error)));
        }
        // A kv's row that is written anew is passed over where it lies: of a queue that many consumers share, a group
        // takes the first message again and again.
        let untouched = move |key: &[u8]| self.written(space, key).is_none();
        Box::new(Scan::new(
            Box::new(move |range, direction, limit| {
                self.kv.chunk(space, &Ask { range, direction, limit, wanted: &untouched })
            }),
            Box::new(move |covered| {
                let pairs = self.added(space, covered).map(|(key, value)| (key.clone(), Some(value.clone())));
                let mut pairs: Vec<_> = pairs.collect();
                pairs.sort_by(|(key, _), (other, _)| key.cmp(other));
                Ok(pairs)
            }),
            range,
            direction,
        ))
    }

    fn any(&self, space: Space, range: &KeyRange) -> Result<bool, StoreError> {
        open_to_views(space)?;
        // From the end: what is read in order and removed goes from the beginning. Of removals a group may hold
        // thousands in the range; they are walked through only if there is nothing else.
        let last = [self.group, &self.own].map(|writes| writes.range(space, range).next_back());
        let is_there = |(key, _): (&Bytes, _)| self.written(space, key).is_some_and(Option::is_some);
        if last.into_iter().flatten().any(is_there) {
            return Ok(true);
        }
        let untouched = |key: &[u8]| self.written(space, key).is_none();
        let ask = Ask { range, direction: Direction::Backward, limit: 1, wanted: &untouched };
        Ok(!self.kv.chunk(space, &ask)?.is_empty() || self.added(space, range).next().is_some())
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

impl<K: Kv> Tx for Transaction<'_, K> {
    fn put(&mut self, space: Space, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError> {
        self.set(space, key.into(), Some(value.into()))
    }

    fn delete(&mut self, space: Space, key: &[u8]) -> Result<(), StoreError> {
        self.set(space, Bytes::copy_from_slice(key), None)
    }

    fn id(&mut self) -> u64 {
        *self.last_id += 1;
        *self.last_id
    }

    fn seq(&self) -> u64 {
        self.seq
    }

    fn is_long(&self) -> bool {
        self.keys >= TX_KEYS_AMPLE || self.bytes >= TX_BYTES_AMPLE
    }
}

fn within(what: &'static str, size: usize, bound: usize) -> Result<(), StoreError> {
    if size > bound { Err(StoreError::TooLarge { what, size, bound }) } else { Ok(()) }
}
