//! The proof that a request was authorized, and what it allows.

use std::sync::Arc;

use crate::answer::Answer;
use crate::auth::bearer::Identity;
use crate::auth::rights::Kind;
use crate::auth::sas::Signature;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::Permission;
use crate::target::{Level, Service};

/// The header that counts tags.
const TAG_COUNT: &str = "x-ms-tag-count";

/// The proof that a request was authorized. Only authorization makes one.
#[derive(Clone, Debug)]
pub struct Grant {
    principal: Principal,
    creates_only: bool,
}

/// On whose behalf a request acts.
#[derive(Clone, Debug)]
pub enum Principal {
    /// The account's owner: the request is signed with its key.
    Owner,
    /// Anybody.
    Anonymous,
    /// Whoever has the shared access signature.
    Signature(Arc<Signature>),
    /// Whoever its token names.
    Identity(Arc<Identity>),
}

impl Grant {
    pub(super) const fn new(principal: Principal) -> Self {
        Self { principal, creates_only: false }
    }

    /// The same grant if it also allows `needs`.
    pub(super) fn admit(mut self, needs: Permission, service: Service, level: Level) -> Result<Self, Problem> {
        self.check(needs, service, level)?;
        if let Principal::Signature(signature) = &self.principal {
            self.creates_only |= needs == Permission::Create && !signature.letters().suffice(&["w"]);
        }
        Ok(self)
    }

    /// On whose behalf the request acts.
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Whether what exists may not be replaced: creations set [`lazuli_engine::condition::Conditions::only_new`].
    pub const fn creates_only(&self) -> bool {
        self.creates_only
    }

    /// Whether tags may be read, and so counted in answers.
    pub fn reads_tags(&self) -> bool {
        self.check(Permission::Tag, Service::Blob, Level::Blob).is_ok()
    }

    /// Sees to it that the caller is allowed `needs` on what lies as deep as `level`: for the pieces of a request whose
    /// operation needs [`Permission::Any`], such as the parts of a table batch.
    ///
    /// Refuses `AuthorizationPermissionMismatch`, `AuthorizationResourceTypeMismatch`, `AuthorizationServiceMismatch`,
    /// and `AuthorizationFailure` for what no such caller is ever allowed.
    pub fn check(&self, needs: Permission, service: Service, level: Level) -> Result<(), Problem> {
        match &self.principal {
            Principal::Owner if needs == Permission::Delegate => Err(super::failed("Only a bearer token is accepted.")),
            Principal::Owner => Ok(()),
            // Judged where the container's public access is known.
            Principal::Anonymous if matches!(needs, Permission::Nothing | Permission::Read | Permission::List) => {
                Ok(())
            }
            Principal::Anonymous => Err(Problem::new(Code::AuthorizationFailure)),
            Principal::Identity(identity) => identity.allows(needs, Kind::of(level)),
            Principal::Signature(signature) => signature.allows(needs, service, Kind::of(level)),
        }
    }

    /// The signature, if it is what the request came with.
    fn signature(&self) -> Option<&Signature> {
        match &self.principal {
            Principal::Signature(signature) => Some(signature),
            Principal::Owner | Principal::Identity(_) | Principal::Anonymous => None,
        }
    }

    /// The entities that the caller may see and touch; none if all of the table's.
    pub fn entities(&self) -> Option<&EntityRange> {
        self.signature().and_then(Signature::entities)
    }

    /// The only table that the caller may touch, in any letter case; none if all. The parts of a batch name theirs.
    pub fn table(&self) -> Option<&str> {
        self.signature().and_then(Signature::table)
    }

    /// The encryption scope that the caller's writes have to use.
    pub fn encryption_scope(&self) -> Option<&str> {
        self.signature().and_then(Signature::encryption_scope)
    }

    /// What the caller sees of a blob.
    pub(crate) fn sight(&self) -> Sight {
        Sight { overrides: self.overrides().to_vec(), tags: self.reads_tags() }
    }

    /// Headers that an answer with a blob's content or properties has in place of the stored ones.
    pub fn overrides(&self) -> &[(&'static str, String)] {
        self.signature().map_or(&[], Signature::overrides)
    }
}

/// What of a blob's headers a caller sees, and in which form.
#[derive(Debug)]
pub(crate) struct Sight {
    overrides: Vec<(&'static str, String)>,
    tags: bool,
}

impl Sight {
    /// The answer to a read of a blob, as the caller may see it.
    pub(crate) fn onto(self, mut answer: Answer) -> Answer {
        if !self.tags {
            answer.headers.remove(TAG_COUNT);
        }
        self.overrides.into_iter().fold(answer, |answer, (name, value)| answer.header(name, value))
    }
}

/// A part of a table: entities between two keys, both included. Keys compare by their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityRange {
    /// The first partition and row; no row stands for the partition's first.
    pub first: Option<(String, Option<String>)>,
    /// The last partition and row; no row stands for the partition's last.
    pub last: Option<(String, Option<String>)>,
}

impl EntityRange {
    /// Whether the entity lies in it.
    pub fn contains(&self, partition: &str, row: &str) -> bool {
        let after_first = self.first.as_ref().is_none_or(|(first, first_row)| {
            partition > first.as_str() || partition == first && first_row.as_deref().is_none_or(|first| row >= first)
        });
        let before_last = self.last.as_ref().is_none_or(|(last, last_row)| {
            partition < last.as_str() || partition == last && last_row.as_deref().is_none_or(|last| row <= last)
        });
        after_first && before_last
    }

    /// Sees to it that the entity lies in it.
    ///
    /// Refuses `AuthorizationFailure`.
    pub fn admit(&self, partition: &str, row: &str) -> Result<(), Problem> {
        if self.contains(partition, row) {
            return Ok(());
        }
        Err(Problem::new(Code::AuthorizationFailure).saying("The signature does not cover the entity."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_entities_includes_both_ends() {
        let key = |partition: &str, row: Option<&str>| Some((partition.to_owned(), row.map(str::to_owned)));
        let cases = [
            (EntityRange::default(), "", "", true),
            (EntityRange { first: key("b", None), last: None }, "a", "z", false),
            (EntityRange { first: key("b", None), last: None }, "b", "", true),
            (EntityRange { first: key("b", Some("5")), last: None }, "b", "4", false),
            (EntityRange { first: key("b", Some("5")), last: None }, "b", "5", true),
            (EntityRange { first: key("b", Some("5")), last: None }, "c", "1", true),
            (EntityRange { first: None, last: key("b", None) }, "b", "z", true),
            (EntityRange { first: None, last: key("b", Some("5")) }, "b", "5", true),
            (EntityRange { first: None, last: key("b", Some("5")) }, "b", "50", false),
            (EntityRange { first: None, last: key("b", Some("5")) }, "a", "9", true),
            (EntityRange { first: key("a", None), last: key("b", None) }, "ba", "", false),
        ];
        for (range, partition, row, expected) in cases {
            assert_eq!(range.contains(partition, row), expected, "{range:?} {partition} {row}");
            assert_eq!(range.admit(partition, row).is_ok(), expected);
        }
    }
}
