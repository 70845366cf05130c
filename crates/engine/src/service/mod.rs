//! A service of an account as a whole: its properties.
//! <https://learn.microsoft.com/rest/api/storageservices/set-blob-service-properties>

pub mod properties;

use crate::blob::container;
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::names::{AccountName, ContainerAddress, ContainerName};
use crate::rows;
use crate::rows::service as row;
use crate::service::properties::{Change, ServiceProperties};
use crate::store::{Purpose, Space, StoreError, View};

/// A service of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceKind {
    /// Containers and blobs.
    Blob,
    /// Queues and messages.
    Queue,
    /// Tables and entities.
    Table,
}

/// How long deleted blobs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Days that they can be restored.
    pub days: u16,
    /// Whether deleted snapshots and versions may be deleted for good before that.
    pub allow_permanent: bool,
}

/// Get Service Properties, also of an account that has never been used.
pub fn get(engine: &Engine, account: &AccountName, kind: ServiceKind) -> Result<ServiceProperties, Error> {
    engine.read(|view| Ok(properties(view, account, kind)?))
}

/// Set Service Properties: what `change` leaves out stays as it is. To switch the website on makes the container that
/// is served, if there is none.
pub async fn set(engine: &Engine, account: AccountName, kind: ServiceKind, change: Change) -> Result<(), Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let new = change.onto(properties(tx, &account, kind)?);
            if change.website.as_ref().is_some_and(|website| website.enabled) {
                let address = ContainerAddress { account: account.clone(), container: ContainerName::web() };
                container::ensure(tx, &address)?;
            }
            Ok(rows::put(tx, Space::Services, row::key(&account, kind), &row::ServiceRow(new))?)
        })
        .await
}

/// Up to when the secondary endpoint shows all that was committed: it shows everything, at once.
pub fn synced(engine: &Engine) -> Result<Timestamp, Error> {
    engine.read(|view| Ok(view.now()))
}

/// How long the account keeps deleted blobs, as seen by `view`; none if it does not keep them.
pub fn blob_retention(view: &dyn View, account: &AccountName) -> Result<Option<Retention>, StoreError> {
    let retention = properties(view, account, ServiceKind::Blob)?.delete_retention;
    Ok(retention.days.map(|days| Retention { days, allow_permanent: retention.allow_permanent }))
}

fn properties(view: &dyn View, account: &AccountName, kind: ServiceKind) -> Result<ServiceProperties, StoreError> {
    let row: Option<row::ServiceRow> = rows::get(view, Space::Services, &row::key(account, kind))?;
    Ok(row.map(|row| row.0).unwrap_or_default())
}

#[cfg(test)]
mod tests;
