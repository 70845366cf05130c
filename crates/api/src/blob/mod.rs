//! The Blob service.

mod account;
mod blocks;
mod container;
mod listing;
mod missing;
mod object;
pub mod query;
mod removal;
mod service;
mod snapshot;
mod tags;

use crate::code::Code;
use crate::error::Problem;
use crate::route::Route;

/// Every route of the service, a table per family.
pub const ROUTES: &[&[Route]] = &[
    crate::service::ROUTES,
    account::ROUTES,
    service::ROUTES,
    container::ROUTES,
    listing::ROUTES,
    object::ROUTES,
    removal::ROUTES,
    snapshot::ROUTES,
    blocks::ROUTES,
    query::ROUTES,
    tags::ROUTES,
    missing::ROUTES,
];

/// Runs `work`, which may take milliseconds, where no other request waits for its end.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "work for a request died");
        Problem::new(Code::InternalError)
    })
}
