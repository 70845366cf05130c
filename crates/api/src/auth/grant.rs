//! The proof that a request was authorized, and what it allows.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use lazuli_engine::names::KeyText;
use lazuli_engine::table::EntityKey;

use crate::answer::Answer;
use crate::auth::bearer::{Identity, Issuer};
use crate::auth::rights::Kind;
use crate::auth::sas::Signature;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::Permission;
use crate::target::{Level, Service, Target};

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

    /// The same grant with the roles that its identity has for `target`: those for the whole request need not be.
    pub(super) fn at(self, issuer: Option<&Issuer>, service: Service, target: &Target) -> Self {
        let Some(issuer) = issuer else { return self };
        let principal = match self.principal {
            Principal::Identity(identity) => {
                Principal::Identity(Arc::new(issuer.with_roles(Arc::unwrap_or_clone(identity), service, target)))
            }
            Principal::Signature(signature) if signature.is_delegated() => {
                Principal::Signature(Arc::new(Arc::unwrap_or_clone(signature).at(issuer, service, target)))
            }
            other => other,
        };
        Self { principal, ..self }
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

/// A part of a table: entities between two keys, both included. Keys compare by their code units of UTF-16.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityRange {
    /// The first partition and row; no row stands for the partition's first.
    pub first: Option<(KeyText, Option<KeyText>)>,
    /// The last partition and row; no row stands for the partition's last.
    pub last: Option<(KeyText, Option<KeyText>)>,
}

impl EntityRange {
    /// Whether the entity lies in it.
    pub fn contains(&self, key: &EntityKey) -> bool {
        let compare = |partition: &KeyText, row: Option<&KeyText>, without_row| {
            let rows = row.map_or(without_row, |row| ordinal(&key.row, row));
            ordinal(&key.partition, partition).then(rows)
        };
        let begins = |(first, row): &(_, Option<_>)| compare(first, row.as_ref(), Ordering::Equal).is_ge();
        let ends = |(last, row): &(_, Option<_>)| compare(last, row.as_ref(), Ordering::Equal).is_le();
        self.first.as_ref().is_none_or(begins) && self.last.as_ref().is_none_or(ends)
    }

    /// Sees to it that the entity lies in it.
    ///
    /// Refuses `AuthorizationFailure`.
    pub fn admit(&self, key: &EntityKey) -> Result<(), Problem> {
        if self.contains(key) {
            return Ok(());
        }
        Err(Problem::new(Code::AuthorizationFailure).saying("The signature does not cover the entity."))
    }

    /// Its ends, for a query.
    pub fn bounds(&self) -> (Bound<EntityKey>, Bound<EntityKey>) {
        let bound = |end: &Option<(KeyText, Option<KeyText>)>, usual: fn() -> KeyText| match end {
            Some((partition, row)) => {
                let row = row.clone().unwrap_or_else(usual);
                Bound::Included(EntityKey { partition: partition.clone(), row })
            }
            None => Bound::Unbounded,
        };
        (bound(&self.first, KeyText::first), bound(&self.last, KeyText::last))
    }
}

fn ordinal(a: &KeyText, b: &KeyText) -> Ordering {
    a.as_str().encode_utf16().cmp(b.as_str().encode_utf16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_entities_includes_both_ends() {
        let text = |text: &str| KeyText::parse(text).unwrap();
        let end = |partition: &str, row: Option<&str>| Some((text(partition), row.map(text)));
        let cases = [
            (EntityRange::default(), "", "", true),
            (EntityRange { first: end("b", None), last: None }, "a", "z", false),
            (EntityRange { first: end("b", None), last: None }, "b", "", true),
            (EntityRange { first: end("b", Some("5")), last: None }, "b", "4", false),
            (EntityRange { first: end("b", Some("5")), last: None }, "b", "5", true),
            (EntityRange { first: end("b", Some("5")), last: None }, "c", "1", true),
            (EntityRange { first: None, last: end("b", None) }, "b", "\u{FFFF}z", true),
            (EntityRange { first: None, last: end("b", Some("5")) }, "b", "5", true),
            (EntityRange { first: None, last: end("b", Some("5")) }, "b", "50", false),
            (EntityRange { first: None, last: end("b", Some("5")) }, "a", "9", true),
            (EntityRange { first: end("a", None), last: end("b", None) }, "ba", "", false),
            // As code units of UTF-16 an emoji comes before this sign, as bytes behind it.
            (EntityRange { first: None, last: end("\u{FF5E}", None) }, "\u{1F600}", "", true),
            (EntityRange { first: end("\u{FF5E}", None), last: None }, "\u{1F600}", "", false),
        ];
        for (range, partition, row, expected) in cases {
            let key = EntityKey { partition: text(partition), row: text(row) };
            assert_eq!(range.contains(&key), expected, "{range:?} {key:?}");
            assert_eq!(range.admit(&key).is_ok(), expected);
            let (first, last) = range.bounds();
            let order =
                |a: &EntityKey, b: &EntityKey| ordinal(&a.partition, &b.partition).then(ordinal(&a.row, &b.row));
            let after = |bound| matches!(&bound, Bound::Included(end) if order(&key, end).is_lt());
            let before = |bound| matches!(&bound, Bound::Included(end) if order(&key, end).is_gt());
            assert_eq!(!after(first) && !before(last), expected, "{range:?} {key:?}");
        }
    }
}
