//! The Blob service.

mod blocks;
mod container;
mod listing;
mod missing;
mod object;
mod service;

use crate::route::Route;

/// Every route of the service, a table per family.
pub const ROUTES: &[&[Route]] =
    &[service::ROUTES, container::ROUTES, listing::ROUTES, object::ROUTES, blocks::ROUTES, missing::ROUTES];
