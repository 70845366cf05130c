//! The Blob service.

mod account;
mod append;
mod batch;
mod blocks;
mod container;
mod copy;
mod expiring;
mod listing;
mod missing;
mod object;
mod pages;
mod protecting;
pub mod query;
mod removal;
mod service;
mod snapshot;
mod tags;
mod tiering;

use crate::call::Call;
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
    append::ROUTES,
    pages::ROUTES,
    tags::ROUTES,
    batch::ROUTES,
    copy::ROUTES,
    tiering::ROUTES,
    protecting::ROUTES,
    expiring::ROUTES,
    missing::ROUTES,
];

/// Of a request that makes or clears something and brings no content, however long it says that is.
///
/// Refuses `InvalidHeaderValue` if there is a body.
async fn bodiless(call: &mut Call) -> Result<(), Problem> {
    const LENGTH: &str = "Content-Length";
    match call.fields.header_opt(LENGTH)? {
        Some("0") => Ok(()),
        Some(length) => Err(Problem::header(LENGTH, length)),
        None => match call.body.next().await {
            Ok(None) => Ok(()),
            Err(problem) if problem.code != Code::RequestBodyTooLarge => Err(problem),
            _ => Err(Problem::header(
                "Transfer-Encoding",
                call.fields.header_opt("transfer-encoding")?.unwrap_or_default(),
            )),
        },
    }
}

/// Runs `work`, which may take milliseconds, where no other request waits for its end.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "work for a request died");
        Problem::new(Code::InternalError)
    })
}
