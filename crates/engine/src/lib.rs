//! The engine of Lazuli: transactional storage of containers, blobs and leases on an embedded ordered store.
//!
//! It knows no HTTP type, no header name, no XML. It reads the wall clock only through [`clock::Clock`]. Domain code
//! ([`blob`]) stands on the [`store`] seam and on [`payload`]; the rules are plain functions beside them.

#![forbid(unsafe_code)]

pub mod access;
pub mod avro;
pub mod blob;
pub mod clock;
mod clockwork;
pub mod condition;
pub mod encryption;
pub mod engine;
pub mod error;
pub mod etag;
pub mod expiry;
pub mod identity;
pub mod lease;
pub mod names;
pub mod payload;
pub mod policy;
pub mod properties;
pub mod protection;
pub mod queue;
pub mod range;
pub mod refusal;
pub mod rows;
pub mod service;
pub mod store;
pub mod table;
pub mod tags;
pub mod tier;

pub use engine::{Durability, Engine, Options};
pub use error::Error;
pub use refusal::Refusal;
