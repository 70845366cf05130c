//! Values as they were before recent groups: what lets a snapshot look into the past.
//!
//! The kv below holds only the latest value of a key. For every key that a group writes, the overlay keeps the value
//! *before* that group, as long as some snapshot could need it. It is memory only: snapshots never outlive the process.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::store::{KeyRange, Space, StoreError};

/// What a key and its pre-image cost beside their bytes.
const ENTRY_BYTES: usize = 96;

/// Pre-images by space, key and the group that replaced them.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    spaces: BTreeMap<Space, BTreeMap<Bytes, Vec<PreImage>>>,
    /// Every pre-image in the order of its group, for forgetting.
    order: VecDeque<(u64, Space, Bytes)>,
    bytes: usize,
    /// Snapshots of an earlier group than this are too old.
    floor: u64,
}

#[derive(Debug)]
struct PreImage {
    group: u64,
    value: Option<Bytes>,
}

impl Overlay {
    /// Keeps the value that `key` had before `group`.
    pub(super) fn keep(&mut self, space: Space, key: &Bytes, group: u64, value: Option<Bytes>) {
        self.bytes += cost(key, value.as_ref());
        let images = self.spaces.entry(space).or_default().entry(key.clone()).or_default();
        images.push(PreImage { group, value });
        self.order.push_back((group, space, key.clone()));
    }

    /// Forgets what no snapshot at or after `oldest` can need; and more, oldest first, until no more than `bytes_max`
    /// are kept, which makes older snapshots too old.
    pub(super) fn forget(&mut self, oldest: u64, bytes_max: usize) {
        while let Some((group, ..)) = self.order.front() {
            let group = *group;
            if group > oldest {
                if self.bytes <= bytes_max {
                    break;
                }
                self.floor = self.floor.max(group);
            }
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let Some((group, space, key)) = self.order.pop_front() else { return };
        let Some(keys) = self.spaces.get_mut(&space) else { return };
        let Some(images) = keys.get_mut(&key) else { return };
        images.retain(|image| {
            let kept = image.group != group;
            if !kept {
                self.bytes -= cost(&key, image.value.as_ref());
            }
            kept
        });
        if images.is_empty() {
            keys.remove(&key);
        }
    }

    /// What `key` was at `snapshot`, if it was replaced since: the pre-image of the first group after it.
    pub(super) fn at(&self, snapshot: u64, space: Space, key: &[u8]) -> Result<Option<&Option<Bytes>>, StoreError> {
        self.check(snapshot)?;
        Ok(self.spaces.get(&space).and_then(|keys| keys.get(key)).and_then(|images| first_after(snapshot, images)))
    }

    /// What the keys of `range` that were replaced since `snapshot` were then, in key order.
    pub(super) fn range_at(
        &self,
        snapshot: u64,
        space: Space,
        range: &KeyRange,
    ) -> Result<Vec<(Bytes, Option<Bytes>)>, StoreError> {
        self.check(snapshot)?;
        let (Some(keys), Some(bounds)) = (self.spaces.get(&space), range.bounds()) else { return Ok(Vec::new()) };
        let replaced = keys.range::<[u8], _>(bounds);
        Ok(replaced
            .filter_map(|(key, images)| first_after(snapshot, images).map(|value| (key.clone(), value.clone())))
            .collect())
    }

    fn check(&self, snapshot: u64) -> Result<(), StoreError> {
        if snapshot < self.floor { Err(StoreError::TooOld) } else { Ok(()) }
    }
}

fn first_after(snapshot: u64, images: &[PreImage]) -> Option<&Option<Bytes>> {
    images.iter().find(|image| image.group > snapshot).map(|image| &image.value)
}

fn cost(key: &Bytes, value: Option<&Bytes>) -> usize {
    ENTRY_BYTES + 2 * key.len() + value.map_or(0, Bytes::len)
}
