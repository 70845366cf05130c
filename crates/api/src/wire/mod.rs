//! Headers and bodies of the protocol, turned into the engine's types and back. Pure functions, no I/O.
//!
//! A module a thing: small field types, groups of headers, and the documents that requests and answers carry.

pub mod acl;
pub mod block_list;
pub mod condition;
pub mod copy;
pub mod date;
pub mod deletion;
pub mod digest;
pub mod encryption;
pub mod etag;
pub mod kind;
pub mod lease;
pub mod listing;
pub mod message;
pub mod metadata;
pub mod multipart;
pub mod page;
pub mod part;
pub mod properties;
pub mod protection;
pub mod range;
pub mod service;
pub mod structured;
pub mod tags;
pub mod tier;
pub mod xml;
