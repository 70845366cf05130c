//! One page of a query: the keys that the filter can match are read, the filter looks into each row as it lies, and
//! only what matches is decoded.
//!
//! A page ends when it has as many entities or bytes as it may have, or when it has looked at so much that others should
//! have their turn; then it says where to go on, whether or not it found anything.

use std::borrow::Cow;
use std::ops::{Bound, ControlFlow};

use crate::error::Error;
use crate::rows::entity::{self, body};
use crate::store::{KeyRange, Space, StoreError, View, prefix_end};
use crate::table::entities::{EntityPage, Query};
use crate::table::expression::{Matcher, StoredEntity, Stretch, bounds};
use crate::table::{EntityKey, EntityView};

/// Most entities that a page looks at, if its filter has few comparisons.
const EXAMINED_MAX: usize = 1 << 17;
/// Comparisons of a filter that make looking at an entity count as one more.
const COMPARISONS: usize = 8;
/// Most bytes of keys and rows that a page looks at; the entity that goes over it is the last.
const EXAMINED_BYTES_MAX: usize = 64 << 20;
/// Most bytes that a page answers, as they lie in rows; but always one entity.
const ANSWERED_BYTES_MAX: usize = 4 << 20;

/// A query made ready.
#[derive(Debug)]
pub(super) struct Plan {
    filter: Option<Matcher>,
    /// What has to be read.
    stretches: Vec<Stretch>,
    /// Which properties are answered, sorted; all if none are named.
    select: Option<Vec<String>>,
    limit: usize,
    /// How many entities one counts as.
    weight: usize,
    bounds: Work,
}

/// How much a page does at most.
#[derive(Clone, Copy, Debug)]
struct Work {
    examined: usize,
    examined_bytes: usize,
    answered_bytes: usize,
}

impl Plan {
    /// Makes `query` ready.
    pub(super) fn of(query: Query) -> Self {
        let within = allowed(&query);
        let stretches = match &query.filter {
            Some(filter) => bounds(filter),
            None => vec![Stretch::ALL],
        };
        let stretches = within.iter().flat_map(|within| stretches.iter().filter_map(|stretch| stretch.and(within)));
        let mut select = query.select;
        select.iter_mut().for_each(|names| names.sort_unstable());
        let filter = query.filter.as_ref().map(Matcher::new);
        Self {
            stretches: stretches.collect(),
            weight: 1 + filter.as_ref().map_or(0, Matcher::comparisons) / COMPARISONS,
            filter,
            select,
            limit: query.limit,
            bounds: Work {
                examined: EXAMINED_MAX,
                examined_bytes: EXAMINED_BYTES_MAX,
                answered_bytes: ANSWERED_BYTES_MAX,
            },
        }
    }

    /// Whether it reads single keys only.
    pub(super) fn is_points(&self) -> bool {
        self.stretches.iter().all(|stretch| stretch.point().is_some())
    }

    /// The page, of the table of this incarnation.
    pub(super) fn page(&self, view: &dyn View, incarnation: u64) -> Result<EntityPage, Error> {
        let mut page = Page { plan: self, view, work: self.bounds, entities: Vec::new(), next: None };
        for stretch in &self.stretches {
            if page.read(stretch, incarnation)?.is_break() {
                break;
            }
        }
        Ok(EntityPage { entities: page.entities, next: page.next })
    }
}

/// The keys that `query` may read whatever its filter says.
fn allowed(query: &Query) -> Option<Stretch> {
    let (from, to) = &query.allowed;
    let start = match from {
        Bound::Included(key) => fields(key),
        Bound::Excluded(key) => after(key),
        Bound::Unbounded => Vec::new(),
    };
    let end = match to {
        Bound::Included(key) => Some(after(key)),
        Bound::Excluded(key) => Some(fields(key)),
        Bound::Unbounded => None,
    };
    let rest = Stretch { start: query.start.as_ref().map(fields).unwrap_or_default(), end: None };
    Stretch { start, end }.and(&rest)
}

/// The key of an entity without the incarnation that begins it.
fn fields(key: &EntityKey) -> Vec<u8> {
    [entity::field(key.partition.as_str()), entity::field(key.row.as_str())].concat()
}

/// What comes right after that key.
fn after(key: &EntityKey) -> Vec<u8> {
    [fields(key), vec![0]].concat()
}

/// A page so far.
struct Page<'a> {
    plan: &'a Plan,
    view: &'a dyn View,
    /// What may still be done.
    work: Work,
    entities: Vec<EntityView>,
    next: Option<EntityKey>,
}

impl Page<'_> {
    /// Reads one stretch of keys; breaks when the page is at its end.
    fn read(&mut self, stretch: &Stretch, incarnation: u64) -> Result<ControlFlow<()>, StoreError> {
        let children = entity::children(incarnation);
        let key = |fields: &[u8]| [&children, fields].concat();
        if let Some(point) = stretch.point() {
            let key = key(point);
            return match self.view.get(Space::Entities, &key)? {
                Some(value) => self.take(&key, &value),
                None => Ok(ControlFlow::Continue(())),
            };
        }
        let end = stretch.end.as_ref().map_or_else(|| prefix_end(&children), |end| Bound::Excluded(key(end)));
        let range = KeyRange { start: Bound::Included(key(&stretch.start)), end };
        let mut taken = Ok(ControlFlow::Continue(()));
        self.view.visit(Space::Entities, &range, &mut |key, value| {
            taken = self.take(key, value);
            if matches!(taken, Ok(ControlFlow::Continue(()))) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        taken
    }

    /// Looks at the next entity; breaks if the page has no room for it.
    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<ControlFlow<()>, StoreError> {
        if self.entities.len() == self.plan.limit || self.work.examined == 0 || self.work.examined_bytes == 0 {
            return self.end(key);
        }
        let (etag, parts, first) = entity::split(key, value)?;
        let whole = match parts {
            0 => Cow::Borrowed(first),
            parts => Cow::Owned(entity::whole(self.view, key, parts, first)?),
        };
        self.work.examined = self.work.examined.saturating_sub(self.plan.weight);
        self.work.examined_bytes = self.work.examined_bytes.saturating_sub(key.len() + whole.len());
        if let Some(filter) = &self.plan.filter
            && !filter.matches(&StoredEntity::new(key, etag, &whole)?).map_err(|error| error.at(key))?
        {
            return Ok(ControlFlow::Continue(()));
        }
        let size = key.len() + whole.len();
        if size > self.work.answered_bytes && !self.entities.is_empty() {
            return self.end(key);
        }
        self.work.answered_bytes = self.work.answered_bytes.saturating_sub(size);
        let properties = match &self.plan.select {
            None => body::decode(key, &whole)?,
            Some(names) => {
                body::select(key, &whole, |name| names.binary_search_by(|other| other.as_str().cmp(name)).is_ok())?
            }
        };
        self.entities.push(EntityView { key: entity::parse_key(key)?, etag, properties });
        Ok(ControlFlow::Continue(()))
    }

    /// Ends the page before the entity at `key`.
    fn end(&mut self, key: &[u8]) -> Result<ControlFlow<()>, StoreError> {
        self.next = Some(entity::parse_key(key)?);
        Ok(ControlFlow::Break(()))
    }
}

#[cfg(test)]
mod tests;
