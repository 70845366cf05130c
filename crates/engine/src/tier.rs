//! Access tiers. <https://learn.microsoft.com/azure/storage/blobs/access-tiers-overview>

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// How a blob is priced on Azure, and whether it can be read at once. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tier {
    /// Block blobs: read often.
    Hot,
    /// Block blobs: read seldom.
    Cool,
    /// Block blobs: read rarely.
    Cold,
    /// Block blobs: cannot be read until rehydrated.
    Archive,
    /// Block blobs: the service chooses.
    Smart,
    /// Premium page blobs: P4, P6, P10, P15, P20, P30, P40, P50, P60, P70, P80.
    Premium(u8),
}

/// The tier of a blob and how it came to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierState {
    /// The tier.
    pub tier: Tier,
    /// When it was set.
    pub changed: Timestamp,
    /// An archived blob on its way to another tier.
    pub rehydration: Option<Rehydration>,
}

/// The way of an archived blob to a tier that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehydration {
    /// Where it goes.
    pub target: Tier,
    /// Whether it was asked to hurry.
    pub high_priority: bool,
    /// When it will be there.
    pub ready: Timestamp,
}
