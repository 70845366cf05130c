//! Tables and entities: the operations, each a function from a typed request to a typed answer.
//!
//! An entity is one row, or a row and its parts if it is large, keyed by its table's incarnation and its two keys in
//! the order of the service: by code units of UTF-16.

pub mod entities;
pub mod expression;
pub mod tables;
pub mod value;

pub(crate) mod erase;
mod properties;
mod query;
mod state;
#[cfg(test)]
mod tests;

use crate::etag::Etag;
use crate::names::{KeyText, TableAddress};
use crate::table::value::Value;

/// Most properties of an entity beside its keys and its timestamp.
pub const PROPERTIES_MAX: usize = 252;
/// Most bytes of an entity as the service counts them: see [`Properties::size`].
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;

/// The two keys of an entity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntityKey {
    /// Its partition.
    pub partition: KeyText,
    /// Its place in the partition.
    pub row: KeyText,
}

/// The properties of an entity beside its keys and its timestamp, in the client's order, no name twice (letter case
/// counts). Names, and the sizes of values, are checked by the protocol.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties(pub Vec<(String, Value)>);

/// Which entity a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// One, of whatever version: `If-Match: *`.
    Any,
    /// This version.
    Version(Etag),
}

/// A write of one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The entity.
    pub key: EntityKey,
    /// What becomes of it.
    pub action: Action,
}

/// What becomes of an entity.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Insert Entity: refuses `EntityExists`.
    Insert(Properties),
    /// Update Entity, or Insert Or Replace Entity if nothing is expected: refuses `EntityNotFound` and
    /// `EntityChanged` as expected.
    Replace(Properties, Option<Expected>),
    /// Merge Entity, or Insert Or Merge Entity if nothing is expected: what is named is overwritten, the rest stays.
    Merge(Properties, Option<Expected>),
    /// Delete Entity.
    Delete(Expected),
}

/// An entity as a reader sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityView {
    /// Its keys.
    pub key: EntityKey,
    /// Its version; it was committed at its timestamp.
    pub etag: Etag,
    /// Its properties, or those that were asked for.
    pub properties: Properties,
}

/// An entity of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OnEntity {
    /// The table.
    pub table: TableAddress,
    /// The entity in it.
    pub key: EntityKey,
}
