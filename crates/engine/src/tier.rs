//! Access tiers. <https://learn.microsoft.com/azure/storage/blobs/access-tiers-overview>
//!
//! A tier changes what Azure charges and promises; here it changes what clients see, and that an archived blob cannot
//! be read. A rehydration is an instant: what is asked later than that finds the blob in its new tier.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::blob::kind::BlobKind;
use crate::clock::Timestamp;
use crate::refusal::Refusal;

/// How long a rehydration takes: long enough for clients to meet it under way. On Azure it is hours.
pub const REHYDRATION: Duration = Duration::from_secs(5);
/// How long one of high priority takes.
pub const REHYDRATION_IN_HASTE: Duration = Duration::from_secs(1);

const GIB: u64 = 1024 * 1024 * 1024;
/// The tiers of premium page blobs and the largest content of each.
/// <https://learn.microsoft.com/azure/storage/blobs/storage-blob-pageblob-overview>
const PREMIUM: [(u8, u64); 11] = [
    (4, 32 * GIB),
    (6, 64 * GIB),
    (10, 128 * GIB),
    (15, 256 * GIB),
    (20, 512 * GIB),
    (30, 1024 * GIB),
    (40, 2 * 1024 * GIB),
    (50, 4 * 1024 * GIB),
    (60, 8 * 1024 * GIB),
    (70, 16 * 1024 * GIB),
    (80, 32 * 1024 * GIB),
];

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

impl Tier {
    /// The premium tier of this number, if there is one.
    pub fn premium(number: u8) -> Option<Self> {
        PREMIUM.iter().any(|(known, _)| *known == number).then_some(Self::Premium(number))
    }

    /// Whether a blob of `kind` with `length` bytes can have it.
    ///
    /// Refuses [`Refusal::TierNotForKind`] and [`Refusal::TierTooSmall`].
    pub fn admit(self, kind: BlobKind, length: u64) -> Result<(), Refusal> {
        match (self, kind) {
            (Self::Premium(number), BlobKind::Page { .. }) => {
                let largest = PREMIUM.iter().find(|(known, _)| *known == number).map(|(_, bytes)| *bytes);
                if largest.is_some_and(|bytes| length <= bytes) { Ok(()) } else { Err(Refusal::TierTooSmall) }
            }
            (Self::Premium(_), _) | (_, BlobKind::Append { .. } | BlobKind::Page { .. }) => {
                Err(Refusal::TierNotForKind)
            }
            (Self::Hot | Self::Cool | Self::Cold | Self::Archive | Self::Smart, BlobKind::Block) => Ok(()),
        }
    }
}

/// The service's name of it.
impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hot => f.write_str("Hot"),
            Self::Cool => f.write_str("Cool"),
            Self::Cold => f.write_str("Cold"),
            Self::Archive => f.write_str("Archive"),
            Self::Smart => f.write_str("Smart"),
            Self::Premium(number) => write!(f, "P{number}"),
        }
    }
}

impl TierState {
    /// A tier that is there at once.
    pub const fn new(tier: Tier, now: Timestamp) -> Self {
        Self { tier, changed: now, rehydration: None }
    }

    /// How it stands at `now`: a rehydration whose instant has come is over.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        match self.rehydration {
            Some(Rehydration { target, ready, .. }) if ready <= now => Self::new(target, ready),
            _ => self,
        }
    }

    /// What becomes of it when the tier is set: another one at once, or an archived blob on its way there.
    ///
    /// Refuses [`Refusal::TierLower`], and [`Refusal::Rehydrating`] for an archived blob that is on its way to another
    /// tier, or is to hurry less.
    pub fn set(self, tier: Tier, high_priority: bool, now: Timestamp) -> Result<Self, Refusal> {
        let old = self.at(now);
        let ready = now.after(if high_priority { REHYDRATION_IN_HASTE } else { REHYDRATION });
        match (old.tier, old.rehydration) {
            (Tier::Premium(before), _) if matches!(tier, Tier::Premium(after) if after < before) => {
                Err(Refusal::TierLower)
            }
            (Tier::Archive, None) if tier == Tier::Archive => Ok(old),
            (Tier::Archive, None) => {
                Ok(Self { rehydration: Some(Rehydration { target: tier, high_priority, ready }), ..old })
            }
            (Tier::Archive, Some(way)) if way.target == tier && high_priority >= way.high_priority => {
                let way = Rehydration { high_priority, ready: way.ready.min(ready), ..way };
                Ok(Self { rehydration: Some(way), ..old })
            }
            (_, Some(_)) => Err(Refusal::Rehydrating),
            (_, None) => Ok(Self::new(tier, now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_seconds(1000);
    const BEFORE: Timestamp = Timestamp::from_unix_seconds(900);
    const BLOCK: BlobKind = BlobKind::Block;
    const PAGE: BlobKind = BlobKind::Page { sequence: 0 };
    const APPEND: BlobKind = BlobKind::Append { blocks: 0, sealed: false };

    fn way(target: Tier, high_priority: bool, ready: Timestamp) -> TierState {
        let rehydration = Some(Rehydration { target, high_priority, ready });
        TierState { rehydration, ..TierState::new(Tier::Archive, BEFORE) }
    }

    #[test]
    fn a_tier_is_for_one_kind_of_blob() {
        for tier in [Tier::Hot, Tier::Cool, Tier::Cold, Tier::Archive, Tier::Smart] {
            assert_eq!(tier.admit(BLOCK, u64::MAX), Ok(()));
            assert_eq!(tier.admit(PAGE, 0), Err(Refusal::TierNotForKind));
            assert_eq!(tier.admit(APPEND, 0), Err(Refusal::TierNotForKind));
        }
        for (number, bytes) in PREMIUM {
            let tier = Tier::premium(number).unwrap();
            assert_eq!(tier.admit(PAGE, bytes), Ok(()));
            assert_eq!(tier.admit(PAGE, bytes + 1), Err(Refusal::TierTooSmall));
            assert_eq!(tier.admit(BLOCK, 0), Err(Refusal::TierNotForKind));
            assert_eq!(tier.admit(APPEND, 0), Err(Refusal::TierNotForKind));
        }
        assert_eq!(Tier::premium(5), None);
    }

    #[test]
    fn setting_a_tier_follows_from_where_the_blob_is() {
        let (slow, fast) = (NOW.after(REHYDRATION), NOW.after(REHYDRATION_IN_HASTE));
        let old = |tier| TierState::new(tier, BEFORE);
        let new = |tier| Ok(TierState::new(tier, NOW));
        let cases = [
            (old(Tier::Hot), Tier::Cool, false, new(Tier::Cool)),
            (old(Tier::Cool), Tier::Cool, true, new(Tier::Cool)),
            (old(Tier::Cold), Tier::Archive, false, new(Tier::Archive)),
            (old(Tier::Archive), Tier::Archive, false, Ok(old(Tier::Archive))),
            (old(Tier::Archive), Tier::Hot, false, Ok(way(Tier::Hot, false, slow))),
            (old(Tier::Archive), Tier::Smart, true, Ok(way(Tier::Smart, true, fast))),
            (way(Tier::Hot, false, slow), Tier::Hot, false, Ok(way(Tier::Hot, false, slow))),
            (way(Tier::Hot, false, slow), Tier::Hot, true, Ok(way(Tier::Hot, true, fast))),
            (way(Tier::Hot, true, fast), Tier::Hot, true, Ok(way(Tier::Hot, true, fast))),
            (way(Tier::Hot, true, fast), Tier::Hot, false, Err(Refusal::Rehydrating)),
            (way(Tier::Hot, false, slow), Tier::Cool, false, Err(Refusal::Rehydrating)),
            (way(Tier::Hot, false, slow), Tier::Archive, true, Err(Refusal::Rehydrating)),
            (way(Tier::Hot, false, NOW), Tier::Cool, false, new(Tier::Cool)),
            (old(Tier::Premium(10)), Tier::Premium(20), false, new(Tier::Premium(20))),
            (old(Tier::Premium(10)), Tier::Premium(10), false, new(Tier::Premium(10))),
            (old(Tier::Premium(10)), Tier::Premium(6), false, Err(Refusal::TierLower)),
        ];
        for (state, tier, high_priority, expected) in cases {
            assert_eq!(state.set(tier, high_priority, NOW), expected, "{state:?} {tier:?} {high_priority}");
        }
    }

    #[test]
    fn a_rehydration_is_over_at_its_instant() {
        let pending = way(Tier::Cool, false, NOW);
        assert_eq!(pending.at(Timestamp::from_ticks(NOW.ticks() - 1)), pending);
        for later in [NOW, NOW.after(REHYDRATION)] {
            assert_eq!(pending.at(later), TierState::new(Tier::Cool, NOW));
        }
    }
}
