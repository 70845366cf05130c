//! HTTP-style preconditions, judged against the state of one object.
//! <https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations>

use crate::clock::Timestamp;
use crate::error::Error;
use crate::etag::Etag;
use crate::refusal::Refusal;
use crate::store::StoreError;
use crate::tags::{TagCondition, Tags};

/// One side of an ETag condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtagSet {
    /// `*`: any version.
    Any,
    /// Any of these, as the client wrote them.
    OneOf(Vec<String>),
}

/// The conditions of a request; absent ones always hold. Which combinations a request may carry is the
/// protocol's business and checked before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Holds if the object exists in one of these versions.
    pub if_match: Option<EtagSet>,
    /// Holds if the object exists in none of these versions; `*`: if it does not exist.
    pub if_none_match: Option<EtagSet>,
    /// Holds if the object was modified after this second.
    pub if_modified_since: Option<Timestamp>,
    /// Holds if the object was not modified after this second.
    pub if_unmodified_since: Option<Timestamp>,
    /// Holds for a blob with such tags.
    pub if_tags: Option<TagCondition>,
    /// Holds for a blob whose tier was set after this second.
    pub tier_modified_since: Option<Timestamp>,
    /// Holds for a blob whose tier was not set after this second.
    pub tier_unmodified_since: Option<Timestamp>,
    /// Whether a write that creates or replaces may only create: who asks is not allowed more.
    pub only_new: bool,
}

impl Conditions {
    /// Judges a read of an existing object: `IfM && IfUS && (IfNM || IfMS)`.
    ///
    /// Refuses [`Refusal::NotModified`], [`Refusal::ConditionFailed`], or [`Refusal::ConditionUnsatisfiable`] for a
    /// read that demands absence.
    pub fn judge_read(&self, etag: Etag) -> Result<(), Refusal> {
        if self.if_match.as_ref().is_some_and(|set| !set.contains(etag))
            || self.if_unmodified_since.is_some_and(|time| modified_after(etag, time))
        {
            return Err(Refusal::ConditionFailed);
        }
        if self.if_none_match == Some(EtagSet::Any) {
            return Err(Refusal::ConditionUnsatisfiable);
        }
        let changed = self.if_none_match.as_ref().map(|set| !set.contains(etag));
        let newer = self.if_modified_since.map(|time| modified_after(etag, time));
        match (changed, newer) {
            (None, None) | (Some(true), _) | (_, Some(true)) => Ok(()),
            _ => Err(Refusal::NotModified { etag }),
        }
    }

    /// Judges a write of an object that must exist.
    ///
    /// Refuses [`Refusal::ConditionFailed`].
    pub fn judge_write(&self, etag: Etag) -> Result<(), Refusal> {
        let holds = match (&self.if_match, &self.if_none_match) {
            (Some(set), _) => set.contains(etag),
            (None, Some(set)) => !set.contains(etag),
            (None, None) => {
                self.if_modified_since.is_none_or(|time| modified_after(etag, time))
                    && self.if_unmodified_since.is_none_or(|time| !modified_after(etag, time))
            }
        };
        if holds { Ok(()) } else { Err(Refusal::ConditionFailed) }
    }

    /// Judges a write that creates or replaces: `existing` is the version that would be replaced.
    ///
    /// Refuses [`Refusal::BlobExists`] for `If-None-Match: *` over an existing object, [`Refusal::ConditionFailed`],
    /// and [`Refusal::BlobKept`] where all conditions hold but nothing may be replaced.
    pub fn judge_create(&self, existing: Option<Etag>) -> Result<(), Refusal> {
        match existing {
            Some(_) if self.if_none_match == Some(EtagSet::Any) => Err(Refusal::BlobExists),
            Some(etag) => match self.judge_write(etag) {
                Ok(()) if self.only_new => Err(Refusal::BlobKept),
                judged => judged,
            },
            None if self.if_match.is_some() => Err(Refusal::ConditionFailed),
            None => Ok(()),
        }
    }

    /// Judges a write that creates what does not exist at `now`: nothing is newer than an instant to come.
    ///
    /// Refuses [`Refusal::ConditionFailed`].
    pub fn judge_absent(&self, now: Timestamp) -> Result<(), Refusal> {
        let to_come = self.if_modified_since.is_some_and(|time| time > now);
        if to_come && self.if_none_match.is_none() { Err(Refusal::ConditionFailed) } else { Ok(()) }
    }
}

impl Conditions {
    /// Judges the tags of a blob, which `read` fetches if they matter; of one that does not exist there are none.
    ///
    /// Refuses [`Refusal::ConditionFailed`].
    pub fn judge_tags(&self, read: impl FnOnce() -> Result<Tags, StoreError>) -> Result<(), Error> {
        match &self.if_tags {
            Some(condition) if !condition.holds(&read()?) => Err(Refusal::ConditionFailed.into()),
            _ => Ok(()),
        }
    }
}

impl Conditions {
    /// Judges when the tier of a blob was set: when the blob was created, if it never was.
    ///
    /// Refuses [`Refusal::ConditionFailed`].
    pub fn judge_tier(&self, changed: Timestamp) -> Result<(), Refusal> {
        let since = |time: Timestamp| changed.whole_second() > time.whole_second();
        if self.tier_modified_since.is_none_or(since) && self.tier_unmodified_since.is_none_or(|time| !since(time)) {
            return Ok(());
        }
        Err(Refusal::ConditionFailed)
    }
}

impl EtagSet {
    fn contains(&self, etag: Etag) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(texts) => texts.iter().any(|text| etag.matches(text)),
        }
    }
}

/// Whether the version was written in a later second than `time`: both have a second's resolution on the wire.
fn modified_after(etag: Etag, time: Timestamp) -> bool {
    etag.committed().whole_second() > time.whole_second()
}

#[cfg(test)]
mod tests;
