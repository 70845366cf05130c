//! Headers and bodies of the protocol, turned into the engine's types and back. Pure functions, no I/O.
//!
//! A module a thing: small field types, groups of headers, XML bodies, and what is refused because it is not built
//! ([`unbuilt`]).
//! In reading order: the small field types ([`date`], [`etag`], [`kind`], [`range`], [`digest`]), the groups of headers
//! ([`condition`], [`lease`], [`properties`], [`metadata`]), what is refused because it is not built ([`unbuilt`]), and
//! the XML bodies ([`xml`], [`acl`], [`block_list`], [`listing`], [`message`], [`service`]).
//! the XML bodies ([`xml`], [`acl`], [`block_list`], [`listing`]), and binary ones ([`avro`]).
//! A module a thing: small field types, groups of headers, XML bodies, bodies in parts ([`structured`], [`multipart`]),
//! and what is refused because it is not built ([`unbuilt`]).
//! the XML bodies ([`xml`], [`acl`], [`block_list`], [`listing`], [`service`]).
//! ([`condition`], [`lease`], [`properties`], [`metadata`], [`copy`]), what is refused because it is not built ([`unbuilt`]), and
//! the XML bodies ([`xml`], [`acl`], [`block_list`], [`listing`]).

pub mod acl;
pub mod avro;
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
pub mod range;
pub mod service;
pub mod structured;
pub mod tags;
pub mod unbuilt;
pub mod xml;
