//! What the operations on tables and entities share.

use crate::error::Error;
use crate::names::TableAddress;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::table::{self, TableRow};
use crate::store::{Space, View};

/// The table at `address`.
///
/// Refuses [`Refusal::TableNotFound`].
pub(super) fn table(view: &dyn View, address: &TableAddress) -> Result<TableRow, Error> {
    rows::get(view, Space::Tables, &table::key(address))?.ok_or(Refusal::TableNotFound.into())
}
