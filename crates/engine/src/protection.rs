//! Protection from overwriting and deleting: immutability policies and legal holds.
//! <https://learn.microsoft.com/azure/storage/blobs/immutable-storage-overview>
//!
//! It belongs to the one state of a blob that it was set on: a version keeps it when the blob is overwritten, a
//! snapshot does not take it over.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::refusal::Refusal;

/// What protects a blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// Until when, and how firmly.
    pub policy: Option<ImmutabilityPolicy>,
    /// Whether it is held until the hold is taken back; none if that was never said.
    pub hold: Option<bool>,
}

/// A time-based policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImmutabilityPolicy {
    /// When the protection ends.
    pub until: Timestamp,
    /// Whether it can only be extended.
    pub locked: bool,
}

impl Protection {
    /// Whether the blob may be changed or deleted at `now`.
    ///
    /// Refuses [`Refusal::BlobHeld`] and [`Refusal::BlobImmutable`].
    pub fn admit(&self, now: Timestamp) -> Result<(), Refusal> {
        if self.hold == Some(true) {
            return Err(Refusal::BlobHeld);
        }
        if self.policy.is_some_and(|policy| policy.until > now) {
            return Err(Refusal::BlobImmutable);
        }
        Ok(())
    }

    /// Whether the blob may neither be changed nor deleted at `now`.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.admit(now).is_err()
    }

    /// The same with another policy. One that is locked stays so and never ends earlier.
    ///
    /// Refuses [`Refusal::PolicyOver`] for an end that has passed, [`Refusal::BlobImmutable`] for a locked policy that
    /// would be weaker.
    pub fn with_policy(self, policy: ImmutabilityPolicy, now: Timestamp) -> Result<Self, Refusal> {
        if policy.until <= now {
            return Err(Refusal::PolicyOver);
        }
        if self.policy.is_some_and(|old| old.locked && (!policy.locked || policy.until < old.until)) {
            return Err(Refusal::BlobImmutable);
        }
        Ok(Self { policy: Some(policy), ..self })
    }

    /// The same without a policy.
    ///
    /// Refuses [`Refusal::PolicyLocked`].
    pub fn without_policy(self) -> Result<Self, Refusal> {
        match self.policy {
            Some(ImmutabilityPolicy { locked: true, .. }) => Err(Refusal::PolicyLocked),
            _ => Ok(Self { policy: None, ..self }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn policy(until: u64, locked: bool) -> Protection {
        Protection { policy: Some(ImmutabilityPolicy { until: at(until), locked }), hold: None }
    }

    #[test]
    fn a_policy_protects_until_its_end_and_a_hold_until_it_is_taken_back() {
        let cases = [
            (Protection::default(), Ok(())),
            (policy(101, false), Err(Refusal::BlobImmutable)),
            (policy(101, true), Err(Refusal::BlobImmutable)),
            (policy(100, true), Ok(())),
            (Protection { hold: Some(true), ..Protection::default() }, Err(Refusal::BlobHeld)),
            (Protection { hold: Some(false), ..Protection::default() }, Ok(())),
            (Protection { hold: Some(true), ..policy(99, false) }, Err(Refusal::BlobHeld)),
            (Protection { hold: Some(false), ..policy(101, false) }, Err(Refusal::BlobImmutable)),
        ];
        for (protection, expected) in cases {
            assert_eq!(protection.admit(at(100)), expected, "{protection:?}");
            assert_eq!(protection.holds(at(100)), expected.is_err());
        }
    }

    #[test]
    fn a_locked_policy_is_only_ever_extended() {
        let (none, over, weaker) = (Protection::default(), Refusal::PolicyOver, Refusal::BlobImmutable);
        let cases = [
            (none, policy(101, false), Ok(())),
            (none, policy(101, true), Ok(())),
            (none, policy(100, false), Err(over)),
            (policy(200, false), policy(150, false), Ok(())),
            (policy(200, false), policy(150, true), Ok(())),
            (policy(200, true), policy(200, true), Ok(())),
            (policy(200, true), policy(300, true), Ok(())),
            (policy(200, true), policy(199, true), Err(weaker)),
            (policy(200, true), policy(300, false), Err(weaker)),
            (policy(50, true), policy(300, false), Err(weaker)),
            (policy(50, true), policy(60, true), Err(over)),
        ];
        for (old, new, expected) in cases {
            let set = old.with_policy(new.policy.unwrap(), at(100));
            assert_eq!(set, expected.map(|()| new), "{old:?} {new:?}");
        }
        let held = Protection { hold: Some(true), ..none };
        assert_eq!(held.with_policy(policy(101, true).policy.unwrap(), at(100)).unwrap().hold, Some(true));
        assert_eq!(policy(200, false).without_policy(), Ok(none));
        assert_eq!(held.without_policy(), Ok(held));
        for until in [50, 200] {
            assert_eq!(policy(until, true).without_policy(), Err(Refusal::PolicyLocked));
        }
    }
}
