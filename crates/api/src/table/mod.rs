//! The Table service.

mod batch;
mod entities;
pub mod method;
pub mod odata;
mod scope;
mod tables;

use http::StatusCode;
use lazuli_engine::names::AccountName;

use crate::answer::{Answer, Content};
use crate::call::Call;
use crate::error::Problem;
use crate::route::Route;
use crate::service::preflight_at;
use crate::table::odata::format::{Echo, Metadata};
use crate::table::odata::write::Origin;
use crate::target::Level;
use crate::wire::listing;

/// The version of OData that answers are written in.
const DATA_VERSION: (&str, &str) = ("dataserviceversion", "3.0;");

/// Every route of the service, a table per family.
pub const ROUTES: &[&[Route]] = &[crate::service::ROUTES, tables::ROUTES, entities::ROUTES, batch::ROUTES, PREFLIGHTS];

const PREFLIGHTS: &[Route] = &[
    preflight_at(Level::Tables),
    preflight_at(Level::TableEntry),
    preflight_at(Level::Table),
    preflight_at(Level::Entity),
    preflight_at(Level::Batch),
];

/// The answer with a document.
pub(crate) fn json(answer: Answer, metadata: Metadata, document: Vec<u8>) -> Answer {
    let answer = Answer { content: Content::Bytes(document.into()), ..answer };
    answer.header("content-type", metadata.content_type()).header(DATA_VERSION.0, DATA_VERSION.1)
}

/// The address of the account as the client wrote it, with a slash at its end.
fn endpoint(call: &Call) -> Result<String, Problem> {
    listing::service_endpoint(&call.fields, &call.target, call.arrival.peer)
}

/// What an insertion is answered with: what was inserted, unless the client prefers nothing. `address`: its own, behind
/// that of the account.
fn created(
    echo: Echo,
    endpoint: &str,
    account: &AccountName,
    address: &str,
    document: impl FnOnce(Origin<'_>) -> Vec<u8>,
) -> Answer {
    let location = format!("{endpoint}{address}");
    let answer = match echo.metadata {
        Some(metadata) => json(Answer::created(), metadata, document(Origin { metadata, endpoint, account })),
        None => done().header(DATA_VERSION.0, DATA_VERSION.1).header("dataserviceid", &location),
    };
    answer.header("location", location).header_opt("preference-applied", echo.preference)
}

/// 204.
fn done() -> Answer {
    Answer::new(StatusCode::NO_CONTENT)
}
