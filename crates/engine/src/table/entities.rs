//! Entities. <https://learn.microsoft.com/rest/api/storageservices/operations-on-entities>

use std::borrow::Cow;
use std::ops::Bound;

use bytes::Bytes;

use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::names::TableAddress;
use crate::refusal::Refusal;
use crate::rows::entity::{self as row, EntityRow, Head, body};
use crate::store::{Purpose, StoreError, TX_BYTES_MAX, Tx, View};
use crate::table::expression::Expression;
use crate::table::query::Plan;
use crate::table::{Action, EntityKey, EntityView, Expected, OnEntity, Properties, Write, state};

/// Bytes of a row of an entity beside its key and its properties, at most.
const ROW_BYTES: usize = 16;

/// Get Entity: <https://learn.microsoft.com/rest/api/storageservices/query-entities>
///
/// With `select` only the properties named there. Refuses `TableNotFound` and `EntityNotFound`.
pub async fn get(engine: &Engine, on: OnEntity, select: Option<Vec<String>>) -> Result<EntityView, Error> {
    engine.read(|view| {
        let key = row::key(state::table(view, &on.table)?.incarnation, &on.key);
        let row = row::read(view, &key)?.ok_or(Refusal::EntityNotFound)?;
        let properties = match &select {
            Some(names) => body::select(&key, &row.body, |name| names.iter().any(|wanted| wanted == name))?,
            None => body::decode(&key, &row.body)?,
        };
        Ok(EntityView { key: on.key.clone(), etag: row.etag, properties })
    })
}

/// Writes one entity; answers its new version, none of one that was deleted.
///
/// Refuses `TableNotFound`, what [`crate::table::Action`] says, `EntityTooLarge` and `PropertiesTooMany`, of a merge for
/// what it makes.
pub async fn write(engine: &Engine, table: TableAddress, write: Write) -> Result<Option<Etag>, Error> {
    match apply(engine, table, vec![write]).await {
        Ok(etags) => Ok(etags.into_iter().next().flatten()),
        Err(Failed { error, .. }) => Err(error),
    }
}

/// Why a group of writes did not happen: none of it did.
#[derive(Clone, Debug, thiserror::Error)]
#[error("write {index} of a group: {error}")]
pub struct Failed {
    /// Which of the writes failed, from 0; 0 also for what is wrong with all of them.
    pub index: usize,
    /// What is wrong with it.
    pub error: Error,
}

/// Entity Group Transaction: all of the writes or none. Answers their new versions.
/// <https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions>
///
/// That they are in one partition, at most 100 and no entity twice is checked by the protocol. Refuses as [`write`],
/// and `GroupTooLarge` where merges make more of the writes than one transaction takes.
pub async fn apply(engine: &Engine, table: TableAddress, writes: Vec<Write>) -> Result<Vec<Option<Etag>>, Failed> {
    let frees = writes.iter().all(|write| matches!(write.action, Action::Delete(_)));
    let prepared = writes
        .into_iter()
        .enumerate()
        .map(|(index, write)| Prepared::of(write).map_err(|error| Failed { index, error }));
    let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
    engine
        .write(if frees { Purpose::Free } else { Purpose::Grow }, move |tx| attempt(tx, &table, &prepared))
        .await
        .unwrap_or_else(|error| Err(Failed { index: 0, error }))
}

/// A write, encoded as far as that can be done without knowing what it finds: the transactions of all tables run one
/// after the other.
struct Prepared {
    key: EntityKey,
    deed: Deed,
}

enum Deed {
    Insert(Bytes),
    Replace(Bytes, Option<Expected>),
    Merge(Properties, Option<Expected>),
    Delete(Expected),
}

impl Prepared {
    fn of(Write { key, action }: Write) -> Result<Self, Error> {
        let encode = |properties: Properties| {
            properties.check(&key)?;
            Ok::<_, Error>(Bytes::from(body::encode(&properties)?))
        };
        let deed = match action {
            Action::Insert(properties) => Deed::Insert(encode(properties)?),
            Action::Replace(properties, expected) => Deed::Replace(encode(properties)?, expected),
            Action::Merge(properties, expected) => Deed::Merge(properties, expected),
            Action::Delete(expected) => Deed::Delete(expected),
        };
        Ok(Self { key, deed })
    }

    /// What becomes of the entity, by what is there.
    fn judge(&self, view: &dyn View, incarnation: u64) -> Result<Change, Error> {
        let key = row::key(incarnation, &self.key);
        let old = row::head(view, &key)?;
        let new = match &self.deed {
            Deed::Insert(_) if old.is_some() => return Err(Refusal::EntityExists.into()),
            Deed::Insert(body) => Some(body.clone()),
            Deed::Replace(body, expected) => {
                meets(old.as_ref(), *expected)?;
                Some(body.clone())
            }
            Deed::Merge(properties, expected) => {
                meets(old.as_ref(), *expected)?;
                Some(self.merged(view, &key, old.clone(), properties)?)
            }
            Deed::Delete(expected) => {
                meets(old.as_ref(), Some(*expected))?;
                None
            }
        };
        Ok(Change { key, old_parts: old.map_or(0, |old| old.parts), new })
    }

    /// The body of what a merge makes of the entity that is there.
    fn merged(&self, view: &dyn View, key: &[u8], old: Option<Head>, properties: &Properties) -> Result<Bytes, Error> {
        let merged = match old {
            Some(old) => {
                let mut merged = body::decode(key, &old.whole(view, key)?.body)?;
                merged.merge(properties);
                Cow::Owned(merged)
            }
            None => Cow::Borrowed(properties),
        };
        merged.check(&self.key)?;
        Ok(body::encode(&merged)?.into())
    }
}

/// Whether the entity that is there, if any, is the one that is expected.
///
/// Refuses `EntityNotFound` and `EntityChanged`.
fn meets(old: Option<&Head>, expected: Option<Expected>) -> Result<(), Refusal> {
    match (expected, old) {
        (None, _) | (Some(Expected::Any), Some(_)) => Ok(()),
        (Some(_), None) => Err(Refusal::EntityNotFound),
        (Some(Expected::Version(etag)), Some(old)) if old.etag == etag => Ok(()),
        (Some(Expected::Version(_)), Some(_)) => Err(Refusal::EntityChanged),
    }
}

/// What a write does to the rows of its entity.
struct Change {
    key: Vec<u8>,
    /// Parts of what is there.
    old_parts: u8,
    /// The properties that it has from then on; none if it goes.
    new: Option<Bytes>,
}

impl Change {
    /// Bytes that it writes, a little more at most.
    fn bytes(&self) -> usize {
        let new = self.new.as_ref().map_or(0, Bytes::len);
        let rows = 2 + usize::from(self.old_parts).max(new / row::PART_BYTES_MAX);
        rows * (self.key.len() + ROW_BYTES) + new
    }

    fn make(self, tx: &mut dyn Tx) -> Result<Option<Etag>, StoreError> {
        let Self { key, old_parts, new } = self;
        match new {
            Some(body) => {
                let etag = Etag::at(tx.now());
                row::write(tx, key, &EntityRow { etag, body }, old_parts)?;
                Ok(Some(etag))
            }
            None => row::remove(tx, &key, old_parts).map(|()| None),
        }
    }
}

/// Judges all writes, then makes all of them. No entity is written twice, so that none is judged by another's outcome.
fn attempt(
    tx: &mut dyn Tx,
    table: &TableAddress,
    writes: &[Prepared],
) -> Result<Result<Vec<Option<Etag>>, Failed>, Error> {
    let incarnation = state::table(tx, table)?.incarnation;
    let (mut changes, mut bytes) = (Vec::with_capacity(writes.len()), 0);
    for (index, write) in writes.iter().enumerate() {
        match write.judge(tx, incarnation) {
            Ok(change) => {
                bytes += change.bytes();
                changes.push(change);
            }
            // Nothing has been written yet.
            Err(error @ Error::Refused(_)) => return Ok(Err(Failed { index, error })),
            Err(error) => return Err(error),
        }
        if bytes > TX_BYTES_MAX {
            return Ok(Err(Failed { index, error: Refusal::GroupTooLarge.into() }));
        }
    }
    let etags = changes.into_iter().map(|change| change.make(tx)).collect::<Result<_, _>>()?;
    Ok(Ok(etags))
}

/// What Query Entities asks for.
#[derive(Clone, Debug)]
pub struct Query {
    /// The table.
    pub table: TableAddress,
    /// Only entities that it matches.
    pub filter: Option<Expression>,
    /// Only keys between these, whatever the filter says: what a signature allows. Compares by partition, then row.
    pub allowed: (Bound<EntityKey>, Bound<EntityKey>),
    /// The first entity that may be answered.
    pub start: Option<EntityKey>,
    /// Only these properties.
    pub select: Option<Vec<String>>,
    /// Most entities to answer, 1 to 1000.
    pub limit: usize,
}

/// One page of entities, in the order of their keys, as of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityPage {
    /// The entities; may be none though there are further pages, if the filter matched little of much.
    pub entities: Vec<EntityView>,
    /// Where the next page begins, if there is one.
    pub next: Option<EntityKey>,
}

/// Query Entities: <https://learn.microsoft.com/rest/api/storageservices/query-entities>
///
/// Reads only keys that the filter can match, and stops after a bound of work. Refuses `TableNotFound`.
pub async fn query(engine: &Engine, query: Query) -> Result<EntityPage, Error> {
    let (table, plan) = (query.table.clone(), Plan::of(query));
    let points = plan.is_points();
    let page = move |view: &dyn View| plan.page(view, state::table(view, &table)?.incarnation);
    // Some keys are read as soon as another thread would have been found.
    if points { engine.read(page) } else { engine.scan(page).await }
}
