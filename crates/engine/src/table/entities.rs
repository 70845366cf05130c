//! Entities. <https://learn.microsoft.com/rest/api/storageservices/operations-on-entities>

use std::ops::Bound;

use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::names::TableAddress;
use crate::table::expression::Expression;
use crate::table::{EntityKey, EntityView, OnEntity, Write};

/// Get Entity: <https://learn.microsoft.com/rest/api/storageservices/query-entities>
///
/// With `select` only the properties named there. Refuses `TableNotFound` and `EntityNotFound`.
pub async fn get(engine: &Engine, on: OnEntity, select: Option<Vec<String>>) -> Result<EntityView, Error> {
    todo!("{engine:p} {on:?} {select:?}")
}

/// Writes one entity; answers its new version, none of one that was deleted.
///
/// Refuses `TableNotFound`, what [`crate::table::Action`] says, and of what a merge makes `EntityTooLarge` and
/// `PropertiesTooMany`.
pub async fn write(engine: &Engine, table: TableAddress, write: Write) -> Result<Option<Etag>, Error> {
    todo!("{engine:p} {table:?} {write:?}")
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
/// That they are in one partition, at most 100 and no entity twice is checked by the protocol. Refuses as [`write`].
pub async fn apply(engine: &Engine, table: TableAddress, writes: Vec<Write>) -> Result<Vec<Option<Etag>>, Failed> {
    todo!("{engine:p} {table:?} {writes:?}")
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
    todo!("{engine:p} {query:?}")
}
