//! Leases of blobs and containers: one state machine, judged by comparing instants, so a restart changes nothing.
//! <https://learn.microsoft.com/rest/api/storageservices/lease-blob>

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::{TICKS_PER_SECOND, Timestamp};
use crate::refusal::Refusal;

/// A lease id. GUIDs compare by value, so letter case and braces do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseId(pub Uuid);

/// How long a lease is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseDuration {
    /// Until released or broken.
    Infinite,
    /// 15 to 60 seconds; the protocol checks the bounds.
    Seconds(u8),
}

/// The lease recorded on an object. What it amounts to depends on the time: see [`Lease::state`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lease {
    /// Never leased, released, or forgotten by a later write.
    #[default]
    Available,
    /// Taken. Expires at `ends`, if it has an end.
    Held {
        /// The holder's id.
        id: LeaseId,
        /// What was asked for; a renewal asks for the same again.
        duration: LeaseDuration,
        /// When it expires; none for an infinite lease.
        ends: Option<Timestamp>,
    },
    /// Broken with a period: holds until `ends`, then is broken.
    Breaking {
        /// The last holder's id.
        id: LeaseId,
        /// When the break is complete.
        ends: Timestamp,
    },
    /// Broken.
    Broken {
        /// The last holder's id.
        id: LeaseId,
    },
}

/// What a lease amounts to at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// No lease.
    Available,
    /// Locked by a holder.
    Leased,
    /// Was held, and its time ran out.
    Expired,
    /// Still locked, until the break period ends.
    Breaking,
    /// Was broken.
    Broken,
}

impl LeaseState {
    /// Whether writes need the lease id.
    pub const fn is_locked(self) -> bool {
        matches!(self, Self::Leased | Self::Breaking)
    }
}

/// What kind of object a lease guards; decides the words of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leased {
    /// A blob.
    Blob,
    /// A container.
    Container,
}

/// What a lease call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// Takes the lease, or extends it under the same id.
    Acquire {
        /// The id to hold it under.
        id: LeaseId,
        /// For how long.
        duration: LeaseDuration,
    },
    /// Starts the same duration again.
    Renew {
        /// The holder's id.
        id: LeaseId,
    },
    /// Goes on under another id.
    Change {
        /// The holder's id.
        id: LeaseId,
        /// The id from now on.
        proposed: LeaseId,
    },
    /// Gives the lease up.
    Release {
        /// The holder's id.
        id: LeaseId,
    },
    /// Ends somebody's lease, at once or after a period.
    Break {
        /// Seconds, 0 to 60; none: the rest of a fixed lease, nothing of an infinite one.
        period: Option<u8>,
    },
}

impl Lease {
    /// What the lease amounts to at `now`.
    pub fn state(&self, now: Timestamp) -> LeaseState {
        match *self {
            Self::Available => LeaseState::Available,
            Self::Held { ends: Some(ends), .. } if ends <= now => LeaseState::Expired,
            Self::Held { .. } => LeaseState::Leased,
            Self::Breaking { ends, .. } if ends <= now => LeaseState::Broken,
            Self::Breaking { .. } => LeaseState::Breaking,
            Self::Broken { .. } => LeaseState::Broken,
        }
    }

    /// What was asked for, while leased.
    pub fn duration(&self, now: Timestamp) -> Option<LeaseDuration> {
        match *self {
            Self::Held { duration, .. } if self.state(now) == LeaseState::Leased => Some(duration),
            _ => None,
        }
    }

    /// The lease after `action` at `now`, or why it is refused.
    pub fn apply(self, action: LeaseAction, now: Timestamp) -> Result<Self, Refusal> {
        match action {
            LeaseAction::Acquire { id, duration } => self.acquire(id, duration, now),
            LeaseAction::Renew { id } => self.renew(id, now),
            LeaseAction::Change { id, proposed } => self.change(id, proposed, now),
            LeaseAction::Release { id } => self.release(id),
            LeaseAction::Break { period } => self.break_after(period, now),
        }
    }

    fn acquire(self, id: LeaseId, duration: LeaseDuration, now: Timestamp) -> Result<Self, Refusal> {
        match self.state(now) {
            LeaseState::Leased if self.id() != Some(id) => Err(Refusal::LeasePresent),
            LeaseState::Breaking if self.id() == Some(id) => Err(Refusal::LeaseBreakingNoAcquire),
            LeaseState::Breaking => Err(Refusal::LeasePresent),
            _ => Ok(Self::held(id, duration, now)),
        }
    }

    fn renew(self, id: LeaseId, now: Timestamp) -> Result<Self, Refusal> {
        if self.id() != Some(id) {
            return Err(Refusal::LeaseMismatch);
        }
        match self {
            Self::Held { id, duration, .. } => Ok(Self::held(id, duration, now)),
            _ => Err(Refusal::LeaseBrokenNoRenew),
        }
    }

    fn change(self, id: LeaseId, proposed: LeaseId, now: Timestamp) -> Result<Self, Refusal> {
        match (self.state(now), self) {
            (LeaseState::Leased, Self::Held { id: held, duration, ends }) if held == id || held == proposed => {
                Ok(Self::Held { id: proposed, duration, ends })
            }
            (LeaseState::Leased, _) => Err(Refusal::LeaseMismatch),
            (LeaseState::Breaking, _) if self.id() == Some(id) => Err(Refusal::LeaseBreakingNoChange),
            (LeaseState::Breaking, _) => Err(Refusal::LeaseMismatch),
            _ => Err(Refusal::LeaseAbsent),
        }
    }

    fn release(self, id: LeaseId) -> Result<Self, Refusal> {
        if self.id() == Some(id) { Ok(Self::Available) } else { Err(Refusal::LeaseMismatch) }
    }

    fn break_after(self, period: Option<u8>, now: Timestamp) -> Result<Self, Refusal> {
        let Some(id) = self.id() else { return Err(Refusal::LeaseAbsent) };
        let remaining = match (self.state(now), self) {
            (LeaseState::Leased, Self::Held { ends, .. }) => ends,
            (LeaseState::Breaking, Self::Breaking { ends, .. }) => Some(ends),
            _ => return Ok(Self::Broken { id }),
        };
        let asked = period.map(|seconds| now.after(Duration::from_secs(seconds.into())));
        match (remaining, asked) {
            (None, None) => Ok(Self::Broken { id }),
            (Some(ends), None) | (None, Some(ends)) => Ok(Self::breaking(id, ends, now)),
            (Some(rest), Some(asked)) => Ok(Self::breaking(id, rest.min(asked), now)),
        }
    }

    /// Whole seconds, rounded up, until a break is complete: what the answer to a break carries.
    pub fn break_seconds(&self, now: Timestamp) -> u64 {
        match *self {
            Self::Breaking { ends, .. } => ends.ticks().saturating_sub(now.ticks()).div_ceil(TICKS_PER_SECOND),
            _ => 0,
        }
    }

    /// The id recorded, whatever the state.
    pub fn id(&self) -> Option<LeaseId> {
        match *self {
            Self::Available => None,
            Self::Held { id, .. } | Self::Breaking { id, .. } | Self::Broken { id } => Some(id),
        }
    }

    /// Judges a write or delete that names `given`; answers the lease to record with the write: an ended lease is
    /// forgotten.
    pub fn guard_write(self, now: Timestamp, given: Option<LeaseId>, on: Leased) -> Result<Self, Refusal> {
        if given.is_none() {
            return match self.state(now) {
                LeaseState::Leased | LeaseState::Breaking => Err(Refusal::LeaseIdMissing),
                _ => Ok(Self::Available),
            };
        }
        self.guard_read(now, given, on)?;
        Ok(self)
    }

    /// Judges a read, or a write that needs no lease: a given id must be the holder's.
    pub fn guard_read(&self, now: Timestamp, given: Option<LeaseId>, on: Leased) -> Result<(), Refusal> {
        let Some(given) = given else { return Ok(()) };
        match (self.state(now), on) {
            (LeaseState::Available, Leased::Blob) => Err(Refusal::LeaseAbsentOnBlob),
            (LeaseState::Available, Leased::Container) => Err(Refusal::LeaseAbsentOnContainer),
            (LeaseState::Expired | LeaseState::Broken, _) => Err(Refusal::LeaseLost),
            (LeaseState::Leased | LeaseState::Breaking, _) if self.id() == Some(given) => Ok(()),
            (LeaseState::Leased | LeaseState::Breaking, Leased::Blob) => Err(Refusal::LeaseMismatchOnBlob),
            (LeaseState::Leased | LeaseState::Breaking, Leased::Container) => Err(Refusal::LeaseMismatchOnContainer),
        }
    }

    fn held(id: LeaseId, duration: LeaseDuration, now: Timestamp) -> Self {
        let ends = match duration {
            LeaseDuration::Infinite => None,
            LeaseDuration::Seconds(seconds) => Some(now.after(Duration::from_secs(seconds.into()))),
        };
        Self::Held { id, duration, ends }
    }

    fn breaking(id: LeaseId, ends: Timestamp, now: Timestamp) -> Self {
        if ends <= now { Self::Broken { id } } else { Self::Breaking { id, ends } }
    }
}

#[cfg(test)]
mod tests;
