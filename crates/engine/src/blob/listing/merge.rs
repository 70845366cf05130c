//! The rows of a listing in order, of all spaces that it reads.

use std::iter::Peekable;
use std::ops::Bound;

use bytes::Bytes;

use super::{ListBlobs, Shown};
use crate::blob::{Marker, expiring, layers, state};
use crate::clock::Timestamp;
use crate::rows::blob::{self as row, BlobRow};
use crate::rows::codec;
use crate::rows::layer::{self, DeletedRow, LayerKind};
use crate::store::{Direction, KeyRange, Pairs, Space, StoreError, View, prefix_end};

/// Bytes of an instant in a key.
const INSTANT_BYTES: usize = 8;

/// Where an entry stands: by name, then by instant; what is not a layer comes last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The key of the base.
    base: Bytes,
    instant: u64,
    rank: u8,
}

/// A row on its way into a listing.
pub(super) struct Item {
    place: Place,
    pub(super) space: Space,
    pub(super) key: Bytes,
    pub(super) value: Bytes,
    /// The blob, of a row of `blobs`.
    pub(super) blob: Option<Box<BlobRow>>,
    /// Whether the listing shows it.
    pub(super) shown: bool,
    /// Whether it stands for all versions of its name.
    pub(super) newest: bool,
    /// When a sweep deleted it that has not come to it yet, and until when it can be restored.
    pub(super) swept: Option<(Timestamp, Timestamp)>,
}

impl Item {
    /// Lets a listing go on here: the key without its incarnation.
    pub(super) fn marker(&self) -> Marker {
        let name = self.place.base.get(INSTANT_BYTES..).unwrap_or_default();
        Marker([name, &self.place.instant.to_be_bytes(), &[self.place.rank]].concat())
    }
}

/// Where a marker points to; one that nobody gave out points somewhere.
fn marked(incarnation: u64, Marker(marker): &Marker) -> Place {
    let name = marker.windows(2).position(|pair| pair == [0, 1]).map_or(marker.len(), |end| end + 2);
    let (name, rest) = marker.split_at(name);
    let (instant, rank) = rest.split_first_chunk().unwrap_or((&[0; INSTANT_BYTES], &[]));
    Place {
        base: [&incarnation.to_be_bytes(), name].concat().into(),
        instant: u64::from_be_bytes(*instant),
        rank: rank.first().copied().unwrap_or_default(),
    }
}

/// The scan of one space.
struct Source<'a> {
    space: Space,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// Row by row.
    Rows(Peekable<Pairs<'a>>),
    /// The newest version of each name, from this key on.
    Newest(Vec<u8>, Option<Item>),
}

/// The rows of all sources in order.
pub(super) struct Merge<'a> {
    view: &'a dyn View,
    incarnation: u64,
    shown: Shown,
    range: KeyRange,
    start: Place,
    sources: Vec<Source<'a>>,
    /// Whether many snapshots of some blob were deleted by one write that is not carried out for each.
    sweeping: bool,
    /// The last blob that came by and has not expired.
    blob: Bytes,
}

impl<'a> Merge<'a> {
    pub(super) fn begin(view: &'a dyn View, incarnation: u64, request: &ListBlobs) -> Result<Self, StoreError> {
        let name = |text: &Option<String>| text.as_ref().map(|text| row::prefix(incarnation, text.as_bytes()));
        let prefix = row::prefix(incarnation, request.prefix.as_bytes());
        let end = match (prefix_end(&prefix), name(&request.before)) {
            (Bound::Excluded(end), Some(before)) => Bound::Excluded(end.min(before)),
            (_, Some(before)) => Bound::Excluded(before),
            (end, None) => end,
        };
        let first = name(&request.from).unwrap_or_default().max(prefix);
        let marked = request.start.as_ref().map(|marker| marked(incarnation, marker));
        let least = Place { base: first.clone().into(), instant: 0, rank: 0 };
        let start = marked.map_or_else(|| least.clone(), |marked| marked.max(least.clone()));
        let sweeps = KeyRange::prefix(&layer::sweeps(incarnation));
        let sweeping = request.shown.snapshots && view.any(Space::Sweeps, &sweeps)?;
        let range = KeyRange { start: Bound::Included(first), end };
        let mut merge = Self {
            view,
            incarnation,
            shown: request.shown,
            range,
            start,
            sources: Vec::new(),
            sweeping,
            blob: Bytes::new(),
        };
        merge.open()?;
        Ok(merge)
    }

    /// Begins all scans at `start`.
    fn open(&mut self) -> Result<(), StoreError> {
        let shown = self.shown;
        let of_layer = |wanted| wanted && !shown.only_deleted;
        let spaces = [
            (Space::Snapshots, shown.snapshots),
            (Space::Versions, of_layer(shown.versions)),
            (Space::Deleted, shown.deleted && (shown.snapshots || shown.versions)),
            (Space::Removed, shown.deleted),
            (Space::Blobs, of_layer(true)),
            (Space::Stagings, of_layer(shown.uncommitted)),
        ];
        self.sources = spaces.into_iter().filter(|(_, wanted)| *wanted).map(|(space, _)| self.source(space)).collect();
        if of_layer(shown.versions_only) {
            let mut newest = Source { space: Space::Versions, kind: Kind::Newest(self.start.base.to_vec(), None) };
            newest.advance(self.view, &self.range)?;
            self.sources.push(newest);
        }
        Ok(())
    }

    fn source(&self, space: Space) -> Source<'a> {
        let base = self.start.base.to_vec();
        let first = match space {
            Space::Snapshots | Space::Versions | Space::Deleted => {
                layer::key(&base, Timestamp::from_ticks(self.start.instant))
            }
            _ => base,
        };
        let range = self.range.clone().starting(Bound::Included(first));
        Source { space, kind: Kind::Rows(self.view.scan(space, range, Direction::Forward).peekable()) }
    }

    /// The next row, shown or not.
    pub(super) fn next(&mut self) -> Result<Option<Item>, StoreError> {
        loop {
            let mut first: Option<(Place, usize)> = None;
            for (index, source) in self.sources.iter_mut().enumerate() {
                let Some(place) = source.place()? else { continue };
                if first.as_ref().is_none_or(|(least, _)| place < *least) {
                    first = Some((place, index));
                }
            }
            let Some((_, index)) = first else { return Ok(None) };
            let Some(source) = self.sources.get_mut(index) else { return Ok(None) };
            let Some(mut item) = source.take(self.view, &self.range)? else { return Ok(None) };
            if item.space == Space::Blobs {
                let blob: BlobRow = codec::decode(item.space, &item.key, &item.value)?;
                item.shown = !expiring::is_over(&blob, self.view.now());
                item.blob = Some(Box::new(blob));
                if item.shown {
                    self.blob = item.key.clone();
                }
            }
            if item.place >= self.start {
                self.judge(&mut item)?;
                return Ok(Some(item));
            }
        }
    }

    /// Decides whether a row is shown.
    fn judge(&self, item: &mut Item) -> Result<(), StoreError> {
        let now = self.view.now();
        match item.space {
            Space::Snapshots => {
                let sweep = if self.sweeping { layers::sweep(self.view, &item.place.base)? } else { None };
                let sweep = sweep.filter(|sweep| item.place.instant <= sweep.at.ticks());
                item.swept = sweep.and_then(|sweep| Some((sweep.at, sweep.until?)));
                item.shown = match (sweep, item.swept) {
                    (None, _) => !self.shown.only_deleted,
                    (Some(_), swept) => self.shown.deleted && swept.is_some_and(|(_, until)| until > now),
                };
            }
            Space::Deleted | Space::Removed => {
                let kind = layer::parse(Space::Deleted, &item.key).map(|at| at.kind);
                let wanted = match (item.space, kind) {
                    (Space::Removed, _) => true,
                    (_, Ok(LayerKind::Snapshot)) => self.shown.snapshots,
                    (_, Ok(LayerKind::Version)) => self.shown.versions,
                    (_, Err(error)) => return Err(error),
                };
                let row: DeletedRow = codec::decode(item.space, &item.key, &item.value)?;
                item.shown = wanted && row.deletion.until > now;
            }
            // A committed blob stands before its uncommitted blocks.
            Space::Stagings => item.shown = item.key != self.blob,
            _ => {}
        }
        Ok(())
    }

    /// Goes on behind every name that begins with `common`, without looking at them.
    pub(super) fn skip(&mut self, common: &[u8]) -> Result<(), StoreError> {
        let base = match prefix_end(common) {
            Bound::Excluded(end) => row::prefix(self.incarnation, &end),
            // No name is beyond a prefix of nothing but 0xFF; a valid name has none.
            Bound::Included(_) | Bound::Unbounded => {
                self.sources.clear();
                return Ok(());
            }
        };
        self.start = Place { base: base.into(), instant: 0, rank: 0 };
        self.open()
    }
}

impl Source<'_> {
    /// Where the next row stands.
    fn place(&mut self) -> Result<Option<Place>, StoreError> {
        match &mut self.kind {
            Kind::Newest(_, next) => Ok(next.as_ref().map(|item| item.place.clone())),
            Kind::Rows(pairs) => match pairs.peek() {
                Some(Ok((key, _))) => place(self.space, key).map(Some),
                Some(Err(error)) => Err(error.clone()),
                None => Ok(None),
            },
        }
    }

    /// Takes the next row out.
    fn take(&mut self, view: &dyn View, range: &KeyRange) -> Result<Option<Item>, StoreError> {
        match &mut self.kind {
            Kind::Newest(_, next) => {
                let item = next.take();
                self.advance(view, range)?;
                Ok(item)
            }
            Kind::Rows(pairs) => {
                let Some((key, value)) = pairs.next().transpose()? else { return Ok(None) };
                let place = place(self.space, &key)?;
                let (blob, shown, newest, swept) = (None, true, false, None);
                Ok(Some(Item { place, space: self.space, key, value, blob, shown, newest, swept }))
            }
        }
    }

    /// Finds the newest version of the next name.
    fn advance(&mut self, view: &dyn View, range: &KeyRange) -> Result<(), StoreError> {
        let Kind::Newest(from, next) = &mut self.kind else { return Ok(()) };
        let range = range.clone().starting(Bound::Included(from.clone()));
        let Some((key, _)) = view.scan(self.space, range, Direction::Forward).next().transpose()? else {
            return Ok(());
        };
        let base = place(self.space, &key)?.base;
        let Some((key, value)) =
            view.scan(self.space, KeyRange::prefix(&base), Direction::Backward).next().transpose()?
        else {
            return Ok(());
        };
        let shown = state::current(view, &base)?.is_none();
        if let Bound::Excluded(end) = prefix_end(&base) {
            *from = end;
        }
        let place = Place { base, instant: u64::MAX, rank: 3 };
        let (blob, newest, swept) = (None, true, None);
        *next = Some(Item { place, space: self.space, key, value, blob, shown, newest, swept });
        Ok(())
    }
}

/// Where the row at `key` stands.
fn place(space: Space, key: &Bytes) -> Result<Place, StoreError> {
    let (tail, rank) = match space {
        Space::Snapshots => (INSTANT_BYTES, 0),
        Space::Versions => (INSTANT_BYTES, 1),
        Space::Deleted => (INSTANT_BYTES + 1, u8::from(key.last() == Some(&(LayerKind::Version as u8)))),
        Space::Removed => (0, 2),
        Space::Blobs => (0, 4),
        _ => (0, 5),
    };
    let short = || codec::corrupt(space, key, "the key is too short");
    let end = key.len().checked_sub(tail).ok_or_else(short)?;
    let instant = key.get(end..).and_then(<[u8]>::first_chunk).map_or(u64::MAX, |instant| u64::from_be_bytes(*instant));
    Ok(Place { base: key.slice(..end), instant, rank })
}
