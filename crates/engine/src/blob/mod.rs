//! Containers and blobs: the operations, each a function from a typed request to a typed answer.

pub mod blocks;
pub mod container;
pub mod content;
pub mod copying;
pub mod kind;
pub mod listing;
pub mod object;
pub mod tags;

mod assembly;
pub(crate) mod erase;
mod state;

pub(crate) use assembly::expire as expire_list;

use crate::clock::Timestamp;
use crate::condition::Conditions;
use crate::etag::Etag;
use crate::lease::{Lease, LeaseDuration, LeaseId, LeaseState};
use crate::names::{BlobAddress, ContainerAddress};
use crate::properties::{HttpProperties, Metadata};
use crate::tags::Tags;

/// A read or write of one blob, with all that decides whether it may happen.
#[derive(Clone, Debug)]
pub struct OnBlob {
    /// The blob.
    pub address: BlobAddress,
    /// Preconditions.
    pub conditions: Conditions,
    /// The lease that the caller says it holds.
    pub lease: Option<LeaseId>,
}

impl OnBlob {
    /// The blob at `address`, whatever its state.
    pub fn at(address: BlobAddress) -> Self {
        Self { address, conditions: Conditions::default(), lease: None }
    }
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
