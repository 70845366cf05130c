//! A view of one published group.

use std::sync::Arc;

use bytes::Bytes;

use super::scan::Scan;
use super::{Shared, open_to_views, visit};
use crate::clock::Timestamp;
use crate::store::kv::{Ask, Kv};
use crate::store::{self, Direction, KeyRange, Pairs, Space, StoreError, Visitor};

/// The state as of `group`. While it is open, the overlay keeps what it needs.
pub(super) struct View<K: Kv> {
    shared: Arc<Shared<K>>,
    group: u64,
    now: Timestamp,
}

impl<K: Kv> View<K> {
    /// The latest published state.
    pub(super) fn open(shared: &Arc<Shared<K>>) -> Self {
        let now = shared.clock.now();
        let mut published = shared.published.lock();
        let group = published.group;
        *published.open.entry(group).or_default() += 1;
        Self { shared: Arc::clone(shared), group, now: now.max(published.time) }
    }
}

impl<K: Kv> Drop for View<K> {
    fn drop(&mut self) {
        let mut published = self.shared.published.lock();
        if let Some(count) = published.open.get_mut(&self.group) {
            *count -= 1;
            if *count == 0 {
                published.open.remove(&self.group);
            }
        }
    }
}

impl<K: Kv> store::View for View<K> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        open_to_views(space)?;
        // The kv first: if it already shows a later group's value, that group's pre-image is in the overlay by now.
        let latest = self.shared.kv.get(space, key)?;
        Ok(match self.shared.overlay.read().at(self.group, space, key)? {
            Some(image) => image.clone(),
            None => latest,
        })
    }

    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Pairs<'_> {
        if let Err(error) = open_to_views(space) {
            return Box::new(std::iter::once(Err(error)));
        }
        Box::new(Scan::new(
            Box::new(move |range, direction, limit| self.shared.kv.chunk(space, &Ask::first(range, direction, limit))),
            Box::new(move |covered| self.shared.overlay.read().range_at(self.group, space, covered)),
            range,
            direction,
        ))
    }

    fn visit(&self, space: Space, range: &KeyRange, each: &mut Visitor<'_>) -> Result<(), StoreError> {
        open_to_views(space)?;
        let over = |covered: &KeyRange| self.shared.overlay.read().range_at(self.group, space, covered);
        visit::run((&self.shared.kv, &self.shared.runs), space, range, &over, each)
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

impl<K: Kv> store::Snapshot for View<K> {}
