//! The Azure Storage REST protocol over the engine: the only crate that knows HTTP, XML and signatures.

#![forbid(unsafe_code)]

pub mod answer;
pub mod auth;
pub mod blob;
pub mod body;
pub mod call;
pub mod code;
pub mod copier;
mod cors;
pub mod error;
pub mod fields;
pub mod head;
mod integrity;
pub mod operation;
pub mod queue;
pub mod remote;
pub mod route;
pub mod serve;
mod service;
mod stamp;
pub mod table;
pub mod target;
pub mod version;
mod website;
pub mod wire;
