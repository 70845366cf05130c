//! Which entities a caller may see and touch.

use std::ops::Bound;

use lazuli_engine::names::TableName;
use lazuli_engine::table::EntityKey;

use crate::auth::{EntityRange, Grant};
use crate::code::Code;
use crate::error::Problem;

/// Sees to it that the caller may touch the table: for the parts of a batch, which itself names none.
///
/// Refuses `AuthorizationFailure`.
pub(super) fn check_table(grant: &Grant, table: &TableName) -> Result<(), Problem> {
    if grant.table().is_none_or(|own| own.eq_ignore_ascii_case(table.as_str())) {
        return Ok(());
    }
    Err(Problem::new(Code::AuthorizationFailure).saying("The signature is for another table."))
}

/// Sees to it that the caller may touch the entity.
///
/// Refuses `AuthorizationFailure`.
pub(super) fn check_entity(grant: &Grant, key: &EntityKey) -> Result<(), Problem> {
    grant.entities().map_or(Ok(()), |range| range.admit(key))
}

/// The keys between which the caller may see entities.
pub(super) fn bounds(grant: &Grant) -> (Bound<EntityKey>, Bound<EntityKey>) {
    grant.entities().map_or((Bound::Unbounded, Bound::Unbounded), EntityRange::bounds)
}
