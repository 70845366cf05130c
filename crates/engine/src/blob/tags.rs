//! Tags: kept beside a blob, found by an index.
//! <https://learn.microsoft.com/azure/storage/blobs/storage-manage-find-blobs>
//!
//! The index has a row per tag of every blob and version that can be found; it is written in the transaction that
//! writes the tags. Rows of a deleted container stay until it is erased: a search passes over them.

use std::collections::HashMap;
use std::ops::Bound;

use crate::blob::feed::{Cause, Change};
use crate::blob::{Marker, OnBlob, layers, state};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::names::{AccountName, BlobName, ContainerAddress, ContainerName};
use crate::refusal::Refusal;
use crate::rows::container::{self, ContainerRow};
use crate::rows::layer::LayerKind;
use crate::rows::tags::{self, Tagged, TaggedRow, TagsRow};
use crate::rows::{self, blob, codec};
use crate::store::{Direction, KeyRange, Purpose, Space, StoreError, Tx, View};
use crate::tags::{Comparison, Tags, Term};

/// Rows of the index that one page looks at.
const ROWS_PER_PAGE: usize = 10_000;

/// How a search can find the owner of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Not at all: a snapshot, or something deleted.
    Hidden,
    /// As a blob.
    Blob,
    /// As a version.
    Version(Timestamp),
}

/// The tags at `key`, that of a blob or of one of its layers.
pub(super) fn read(view: &dyn View, key: &[u8]) -> Result<Tags, StoreError> {
    let row: Option<TagsRow> = rows::get(view, Space::Tags, key)?;
    Ok(row.map(|row| row.tags).unwrap_or_default())
}

/// Puts tags at `key`, where there are none.
pub(super) fn put(
    tx: &mut dyn Tx,
    container: &ContainerAddress,
    key: &[u8],
    finding: Finding,
    tags: &Tags,
) -> Result<(), StoreError> {
    let (account, container) = (container.account.to_string(), container.container.to_string());
    put_row(tx, key, finding, &TagsRow { account, container, tags: tags.clone() })
}

fn put_row(tx: &mut dyn Tx, key: &[u8], finding: Finding, row: &TagsRow) -> Result<(), StoreError> {
    if row.tags.is_empty() {
        return Ok(());
    }
    for index in index(key, finding, row)? {
        rows::put(tx, Space::Tagged, index, &TaggedRow { container: row.container.clone() })?;
    }
    rows::put(tx, Space::Tags, key.to_vec(), row)
}

/// Takes away the tags at `key`.
pub(super) fn remove(tx: &mut dyn Tx, key: &[u8], finding: Finding) -> Result<Option<TagsRow>, StoreError> {
    let Some(row) = rows::get::<TagsRow>(tx, Space::Tags, key)? else { return Ok(None) };
    for index in index(key, finding, &row)? {
        tx.delete(Space::Tagged, &index)?;
    }
    tx.delete(Space::Tags, key)?;
    Ok(Some(row))
}

/// Moves the tags at `from` to `to`.
pub(super) fn shift(
    tx: &mut dyn Tx,
    (from, found): (&[u8], Finding),
    (to, finding): (&[u8], Finding),
) -> Result<(), StoreError> {
    match remove(tx, from, found)? {
        Some(row) => put_row(tx, to, finding, &row),
        None => Ok(()),
    }
}

/// Gives `to` the same tags as `from`.
pub(super) fn share(tx: &mut dyn Tx, from: &[u8], to: &[u8], finding: Finding) -> Result<(), StoreError> {
    match rows::get::<TagsRow>(tx, Space::Tags, from)? {
        Some(row) => put_row(tx, to, finding, &row),
        None => Ok(()),
    }
}

/// The keys of the index rows that find the owner of `key`.
fn index(key: &[u8], finding: Finding, row: &TagsRow) -> Result<Vec<Vec<u8>>, StoreError> {
    let version = match finding {
        Finding::Hidden => return Ok(Vec::new()),
        Finding::Blob => None,
        Finding::Version(version) => Some(version),
    };
    let (incarnation, blob) = blob::owner(Space::Tags, key)?;
    let tagged = |(tag, value): &(String, String)| {
        let found = Tagged { value: value.clone(), incarnation, blob: blob.clone(), version };
        tags::tagged_key(&row.account, tag, &found)
    };
    Ok(row.tags.pairs().iter().map(tagged).collect())
}

/// Get Blob Tags: <https://learn.microsoft.com/rest/api/storageservices/get-blob-tags>
///
/// Refuses as a read of the blob.
pub async fn get(engine: &Engine, on: OnBlob) -> Result<Tags, Error> {
    engine.read(|view| {
        let found = state::readable(view, &on)?;
        Ok(read(view, &found.tags().0)?)
    })
}

/// Set Blob Tags: <https://learn.microsoft.com/rest/api/storageservices/set-blob-tags>. Replaces all of them; the
/// blob's version stays.
///
/// Refuses as a write of the blob.
pub async fn set(engine: &Engine, on: OnBlob, tags: Tags) -> Result<(), Error> {
    let policy = engine.policy(&on.address.container.account);
    engine
        .write(Purpose::Grow, move |tx| {
            let mut found = state::changeable(tx, &on)?;
            state::own(found.part, &found.blob)?;
            let (key, finding) = found.tags();
            remove(tx, &key, finding)?;
            put(tx, &on.address.container, &key, finding, &tags)?;
            found.blob.tags = tags.count();
            found.save(tx)?;
            Ok(Change::of(Cause::Tags, &found.blob).part(found.part).record(tx, &policy, &on)?)
        })
        .await
}

/// What Find Blobs by Tags asks for.
#[derive(Clone, Debug)]
pub struct FindBlobs {
    /// The account.
    pub account: AccountName,
    /// Only in this container.
    pub container: Option<ContainerName>,
    /// What must all hold, at least one; no `NotEqual`.
    pub terms: Vec<Term>,
    /// Whether versions are found too.
    pub versions: bool,
    /// Where to go on.
    pub start: Option<Marker>,
    /// Most blobs to answer, at least 1.
    pub limit: usize,
}

/// A blob or version that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its container.
    pub container: ContainerName,
    /// The blob.
    pub blob: BlobName,
    /// Its version, where versions are kept.
    pub version: Option<Timestamp>,
    /// Whether it is the blob itself.
    pub current: bool,
    /// The tags that were looked for.
    pub tags: Vec<(String, String)>,
}

/// A page of what was found, as of one moment. It may be empty and still not be the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPage {
    /// What was found, in the order of the index.
    pub found: Vec<Found>,
    /// Where the next page begins, if there is one.
    pub next: Option<Marker>,
}

/// Find Blobs by Tags: <https://learn.microsoft.com/rest/api/storageservices/find-blobs-by-tags>
///
/// Reads the part of the index that one of the terms bounds; the time grows with the blobs that meet that term.
///
/// Refuses `ContainerNotFound` for a search in a container that does not exist.
pub async fn find(engine: &Engine, request: FindBlobs) -> Result<FoundPage, Error> {
    engine.scan(move |view| page(view, &request)).await
}

fn page(view: &dyn View, request: &FindBlobs) -> Result<FoundPage, Error> {
    let within = match &request.container {
        None => None,
        Some(name) => Some(incarnation(view, &request.account, name)?.ok_or(Refusal::ContainerNotFound)?),
    };
    // A value is a smaller part of the index than a range.
    let bounding = request.terms.iter().find(|term| term.comparison == Comparison::Equal).or(request.terms.first());
    let Some(bounding) = bounding else { return Ok(FoundPage { found: Vec::new(), next: None }) };
    let mut search = Search { view, request, bounding, within, alive: HashMap::new(), left: ROWS_PER_PAGE };
    let mut found = Vec::new();
    let mut next = search.part(false, &mut found)?;
    if next.is_none() && request.versions {
        next = search.part(true, &mut found)?;
    }
    Ok(FoundPage { found, next })
}

/// The incarnation of a container, if it exists.
fn incarnation(view: &dyn View, account: &AccountName, name: &ContainerName) -> Result<Option<u64>, StoreError> {
    let address = ContainerAddress { account: account.clone(), container: name.clone() };
    let row: Option<ContainerRow> = rows::get(view, Space::Containers, &container::key(&address))?;
    Ok(row.map(|row| row.incarnation))
}

struct Search<'a> {
    view: &'a dyn View,
    request: &'a FindBlobs,
    bounding: &'a Term,
    within: Option<u64>,
    /// The names of containers, of the incarnations that exist.
    alive: HashMap<u64, Option<ContainerName>>,
    /// Rows that this page may still look at.
    left: usize,
}

impl Search<'_> {
    /// Looks through the blobs, or the versions, of the index; answers where to go on if there is not enough room.
    fn part(&mut self, versions: bool, found: &mut Vec<Found>) -> Result<Option<Marker>, Error> {
        let range = self.range(versions);
        for pair in self.view.scan(Space::Tagged, range, Direction::Forward) {
            let (key, value) = pair?;
            let tagged = tags::parse_tagged(&key)?;
            if self.is_beyond(&tagged) {
                break;
            }
            if found.len() == self.request.limit || self.left == 0 {
                return Ok(Some(Marker(key.to_vec())));
            }
            self.left -= 1;
            let row: TaggedRow = codec::decode(Space::Tagged, &key, &value)?;
            found.extend(self.judge(tagged, &row)?);
        }
        Ok(None)
    }

    /// The part of the index in which the bounding term may hold.
    fn range(&self, versions: bool) -> KeyRange {
        let Term { key, comparison, value } = self.bounding;
        let account = &self.request.account;
        let of_value = || tags::tagged_value(account, versions, key, value);
        let (prefix, start) = match (comparison, self.within) {
            (Comparison::Equal, None) => (of_value(), Vec::new()),
            (Comparison::Equal, Some(incarnation)) => {
                ([of_value(), incarnation.to_be_bytes().to_vec()].concat(), Vec::new())
            }
            (Comparison::Greater | Comparison::GreaterOrEqual, _) => {
                (tags::tagged_prefix(account, versions, key), of_value())
            }
            _ => (tags::tagged_prefix(account, versions, key), Vec::new()),
        };
        let marker = self.request.start.as_ref().map(|Marker(key)| key.clone()).unwrap_or_default();
        KeyRange::prefix(&prefix).starting(Bound::Included(marker.max(start).max(prefix)))
    }

    /// Whether the index holds nothing more that the bounding term allows.
    fn is_beyond(&self, tagged: &Tagged) -> bool {
        let upper = self.request.terms.iter().filter(|term| term.key == self.bounding.key);
        upper
            .filter(|term| matches!(term.comparison, Comparison::Less | Comparison::LessOrEqual | Comparison::Equal))
            .any(|term| tagged.value > term.value)
    }

    /// Whether all terms hold of what the index found, in a container that exists.
    fn judge(&mut self, tagged: Tagged, row: &TaggedRow) -> Result<Option<Found>, Error> {
        if self.within.is_some_and(|within| within != tagged.incarnation) {
            return Ok(None);
        }
        let Some(container) = self.container(tagged.incarnation, row)? else { return Ok(None) };
        let base = blob::key(tagged.incarnation, &tagged.blob);
        let version = match tagged.version {
            Some(version) => Some(version),
            None => match state::current(self.view, &base)? {
                Some(blob) => blob.version,
                None => return Ok(None),
            },
        };
        let tags = match tagged.version {
            Some(id) => read(self.view, &layers::tags(&base, id, LayerKind::Version).0)?,
            None => read(self.view, &base)?,
        };
        let holds = |term: &Term| tags.get(&term.key).is_some_and(|value| term.comparison.holds(value, &term.value));
        if !self.request.terms.iter().all(holds) {
            return Ok(None);
        }
        let asked = |key: &str| self.request.terms.iter().any(|term| term.key == key);
        let tags = tags.pairs().iter().filter(|(key, _)| asked(key)).cloned().collect();
        Ok(Some(Found { container, blob: tagged.blob, version, current: tagged.version.is_none(), tags }))
    }

    /// The name of the container of this incarnation, if it still exists.
    fn container(&mut self, of: u64, row: &TaggedRow) -> Result<Option<ContainerName>, Error> {
        if let Some(known) = self.alive.get(&of) {
            return Ok(known.clone());
        }
        let name = ContainerName::parse(&row.container)
            .map_err(|_| codec::corrupt(Space::Tagged, row.container.as_bytes(), "not a container name"))?;
        let alive = (incarnation(self.view, &self.request.account, &name)? == Some(of)).then_some(name);
        self.alive.insert(of, alive.clone());
        Ok(alive)
    }
}
