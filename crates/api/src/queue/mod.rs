//! The Queue service.

mod messages;
mod queues;
mod service;

use crate::route::Route;
use crate::service::preflight_at;
use crate::target::Level;

/// Every route of the service, a table per family.
pub const ROUTES: &[&[Route]] =
    &[crate::service::ROUTES, service::ROUTES, queues::ROUTES, messages::ROUTES, PREFLIGHTS];

const PREFLIGHTS: &[Route] = &[preflight_at(Level::Queue), preflight_at(Level::Messages), preflight_at(Level::Message)];
