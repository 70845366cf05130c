//! Containers and blobs: the operations, each a function from a typed request to a typed answer.

pub mod append;
pub mod blocks;
pub mod container;
pub mod content;
pub mod copy;
pub mod copying;
pub mod expiring;
pub mod incremental;
pub mod kind;
pub mod listing;
pub mod object;
pub mod pages;
pub mod pending;
pub mod protecting;
pub mod removal;
pub mod snapshot;
pub mod tags;
pub mod tiering;

mod assembly;
#[cfg(test)]
mod crashes;
pub(crate) mod erase;
pub(crate) mod feed;
mod keep;
mod layers;
mod log;
mod state;
#[cfg(test)]
mod testing;

pub(crate) use assembly::expire as expire_list;
pub(crate) use expiring::expire as expire_blob;
pub(crate) use feed::{publish as publish_feed, waiting as waiting_feeds};
pub(crate) use layers::{expire as expire_deleted, expire_removed, sweep_on};

pub use crate::rows::layer::Deletion;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::condition::Conditions;
use crate::encryption::CustomerKey;
use crate::etag::Etag;
use crate::lease::{Lease, LeaseDuration, LeaseId, LeaseState};
use crate::names::{BlobAddress, ContainerAddress};
use crate::properties::{HttpProperties, Metadata};
use crate::protection::Protection;
use crate::tags::Tags;
use crate::tier::Tier;

/// A read or write of one blob, with all that decides whether it may happen.
#[derive(Clone, Debug)]
pub struct OnBlob {
    /// The blob.
    pub address: BlobAddress,
    /// Which of its states.
    pub part: Part,
    /// Preconditions.
    pub conditions: Conditions,
    /// The lease that the caller says it holds.
    pub lease: Option<LeaseId>,
    /// The key that the blob is, or is to be, stored under.
    pub key: Option<CustomerKey>,
    /// The request: the change feed names it.
    pub request: Option<Requested>,
}

/// A request as whoever sent it knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// The number that it was given.
    pub id: Uuid,
    /// The name that its sender gave it; may be empty.
    pub client: String,
}

impl OnBlob {
    /// The blob at `address`, whatever its state.
    pub fn at(address: BlobAddress) -> Self {
        Self { address, part: Part::Base, conditions: Conditions::default(), lease: None, key: None, request: None }
    }
}

/// Which state of a blob is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Part {
    /// The blob itself.
    #[default]
    Base,
    /// The snapshot that was taken then.
    Snapshot(Timestamp),
    /// The version of that id: a previous one, or the current one.
    Version(Timestamp),
}

/// What a client says about a whole new blob, beside its content.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// HTTP properties.
    pub http: HttpProperties,
    /// Metadata.
    pub metadata: Metadata,
    /// Tags.
    pub tags: Tags,
    /// The encryption scope; none for the container's default.
    pub scope: Option<String>,
    /// The access tier; none for the account's default.
    pub tier: Option<Tier>,
    /// What protects it from overwriting and deleting.
    pub protection: Protection,
}

/// A read or write of one container, with all that decides whether it may happen.
#[derive(Clone, Debug)]
pub struct OnContainer {
    /// The container.
    pub address: ContainerAddress,
    /// Preconditions.
    pub conditions: Conditions,
    /// The lease that the caller says it holds.
    pub lease: Option<LeaseId>,
}

/// What a write answers: the version it made (or, for a lease call, left).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The version. Its commit time is Last-Modified.
    pub etag: Etag,
    /// Its id as a version, where versions are kept.
    pub version: Option<Timestamp>,
}

/// A lease as a reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// What it amounts to now.
    pub state: LeaseState,
    /// What was asked for, while leased.
    pub duration: Option<LeaseDuration>,
}

impl LeaseView {
    pub(crate) fn of(lease: &Lease, now: Timestamp) -> Self {
        Self { state: lease.state(now), duration: lease.duration(now) }
    }
}

/// What a lease call answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseAnswer {
    /// The object's version, which lease calls do not change.
    pub etag: Etag,
    /// The id now recorded; none after a release.
    pub id: Option<LeaseId>,
    /// After a break: seconds until it is complete.
    pub break_seconds: u64,
}

impl LeaseAnswer {
    pub(crate) fn of(etag: Etag, lease: &Lease, now: Timestamp) -> Self {
        Self { etag, id: lease.id(), break_seconds: lease.break_seconds(now) }
    }
}

/// Where a listing goes on: bytes that sort like names. Opaque to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker(pub Vec<u8>);
