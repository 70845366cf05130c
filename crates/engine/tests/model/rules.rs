//! Leases and conditions once more, told apart from the engine's own: the model's opinion.

use std::time::Duration;

use lazuli_engine::Refusal;
use lazuli_engine::blob::LeaseView;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::condition::{Conditions, EtagSet};
use lazuli_engine::etag::Etag;
use lazuli_engine::lease::{LeaseAction, LeaseDuration, LeaseId, LeaseState, Leased};

/// A lease: whose, until when, and whether somebody broke it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hold {
    pub(crate) id: Option<LeaseId>,
    asked: Option<LeaseDuration>,
    pub(crate) until: Option<Timestamp>,
    broken: bool,
}

impl Hold {
    fn state(&self, now: Timestamp) -> LeaseState {
        let over = self.until.is_some_and(|until| until <= now);
        match (self.id, self.broken) {
            (None, _) => LeaseState::Available,
            (_, true) if over || self.until.is_none() => LeaseState::Broken,
            (_, true) => LeaseState::Breaking,
            (_, false) if over => LeaseState::Expired,
            (_, false) => LeaseState::Leased,
        }
    }

    pub(crate) fn view(&self, now: Timestamp) -> LeaseView {
        let state = self.state(now);
        LeaseView { state, duration: self.asked.filter(|_| state == LeaseState::Leased) }
    }

    /// Seconds, rounded up, until a break is complete.
    pub(crate) fn left(&self, now: Timestamp) -> u64 {
        match (self.state(now), self.until) {
            (LeaseState::Breaking, Some(until)) => until.since(now).as_nanos().div_ceil(1_000_000_000) as u64,
            _ => 0,
        }
    }

    fn take(id: LeaseId, asked: LeaseDuration, now: Timestamp) -> Self {
        let until = match asked {
            LeaseDuration::Infinite => None,
            LeaseDuration::Seconds(count) => Some(now.after(Duration::from_secs(count.into()))),
        };
        Self { id: Some(id), asked: Some(asked), until, broken: false }
    }

    pub(crate) fn act(self, action: LeaseAction, now: Timestamp) -> Result<Self, Refusal> {
        use LeaseState::{Available, Breaking, Broken, Expired, Leased};
        let is = |id| self.id == Some(id);
        match (action, self.state(now)) {
            (LeaseAction::Acquire { id, duration }, Available | Broken | Expired) => Ok(Self::take(id, duration, now)),
            (LeaseAction::Acquire { id, duration }, Leased) if is(id) => Ok(Self::take(id, duration, now)),
            (LeaseAction::Acquire { id, .. }, Breaking) if is(id) => Err(Refusal::LeaseBreakingNoAcquire),
            (LeaseAction::Acquire { .. }, _) => Err(Refusal::LeasePresent),

            (LeaseAction::Renew { id } | LeaseAction::Release { id }, _) if !is(id) => Err(Refusal::LeaseMismatch),
            (LeaseAction::Renew { .. }, Breaking | Broken) => Err(Refusal::LeaseBrokenNoRenew),
            (LeaseAction::Renew { id }, _) => Ok(Self::take(id, self.asked.unwrap(), now)),
            (LeaseAction::Release { .. }, _) => Ok(Self::default()),

            (LeaseAction::Change { .. }, Available | Broken | Expired) => Err(Refusal::LeaseAbsent),
            (LeaseAction::Change { id, proposed }, Leased) if is(id) || is(proposed) => {
                Ok(Self { id: Some(proposed), ..self })
            }
            (LeaseAction::Change { id, .. }, Breaking) if is(id) => Err(Refusal::LeaseBreakingNoChange),
            (LeaseAction::Change { .. }, _) => Err(Refusal::LeaseMismatch),

            (LeaseAction::Break { .. }, Available) => Err(Refusal::LeaseAbsent),
            (LeaseAction::Break { .. }, Broken | Expired) => Ok(Self { broken: true, until: None, ..self }),
            (LeaseAction::Break { period }, Leased | Breaking) => {
                let asked = period.map(|count| now.after(Duration::from_secs(count.into())));
                let until = [self.until, asked].into_iter().flatten().min();
                Ok(Self { broken: true, until, ..self })
            }
        }
    }

    pub(crate) fn admits_read(&self, given: Option<LeaseId>, now: Timestamp, on: Leased) -> Result<(), Refusal> {
        let blob = on == Leased::Blob;
        match (given, self.state(now)) {
            (None, _) => Ok(()),
            (_, LeaseState::Available) if blob => Err(Refusal::LeaseAbsentOnBlob),
            (_, LeaseState::Available) => Err(Refusal::LeaseAbsentOnContainer),
            (_, LeaseState::Broken | LeaseState::Expired) => Err(Refusal::LeaseLost),
            (given, _) if given == self.id => Ok(()),
            _ if blob => Err(Refusal::LeaseMismatchOnBlob),
            _ => Err(Refusal::LeaseMismatchOnContainer),
        }
    }

    pub(crate) fn admits_write(&self, given: Option<LeaseId>, now: Timestamp, on: Leased) -> Result<Self, Refusal> {
        match (given, self.state(now)) {
            (None, LeaseState::Leased | LeaseState::Breaking) => Err(Refusal::LeaseIdMissing),
            (None, _) => Ok(Self::default()),
            _ => self.admits_read(given, now, on).map(|()| *self),
        }
    }
}

/// What a condition stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Write,
    Create,
}

/// Judges the only header that a request of the model carries.
pub(crate) fn judge(conditions: &Conditions, verb: Verb, current: Option<Etag>) -> Result<(), Refusal> {
    let Some(etag) = current else {
        return if conditions.if_match.is_some() { Err(Refusal::ConditionFailed) } else { Ok(()) };
    };
    let second = etag.committed().unix_seconds();
    let named = |set: &EtagSet| match set {
        EtagSet::Any => true,
        EtagSet::OneOf(texts) => texts.contains(&etag.to_string()),
    };
    let strict = conditions.if_match.as_ref().is_none_or(named)
        && conditions.if_unmodified_since.is_none_or(|time| second <= time.unix_seconds());
    let fresh = !conditions.if_none_match.as_ref().is_some_and(named)
        && conditions.if_modified_since.is_none_or(|time| second > time.unix_seconds());
    match verb {
        _ if !strict => Err(Refusal::ConditionFailed),
        _ if fresh => Ok(()),
        Verb::Read if conditions.if_none_match == Some(EtagSet::Any) => Err(Refusal::ConditionUnsatisfiable),
        Verb::Read => Err(Refusal::NotModified { etag }),
        Verb::Create if conditions.if_none_match == Some(EtagSet::Any) => Err(Refusal::BlobExists),
        Verb::Write | Verb::Create => Err(Refusal::ConditionFailed),
    }
}
