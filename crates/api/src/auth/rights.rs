//! Which letters of a shared access signature allow what.
//! <https://learn.microsoft.com/rest/api/storageservices/create-account-sas#account-sas-permissions-by-operation>

use http::Method;

use crate::fields::Fields;
use crate::operation::Permission;
use crate::target::{Level, Service};
use crate::version::Version;

/// Letters that stand for permissions.
const KNOWN: &str = "racwudpxyltfmeoi";

/// Permission letters, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Letters(u32);

impl Letters {
    /// Reads letters in any order; none if one is unknown or there twice.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.chars().try_fold(Self::default(), |letters, letter| {
            let one = Self::one(letter).filter(|one| KNOWN.contains(letter) && letters.0 & one.0 == 0)?;
            Some(Self(letters.0 | one.0))
        })
    }

    fn one(letter: char) -> Option<Self> {
        letter.is_ascii_lowercase().then(|| Self(1 << (u32::from(letter) - u32::from('a'))))
    }

    /// Whether all of `letters`, which are known, are in the set.
    fn has_all(self, letters: &str) -> bool {
        letters.chars().all(|letter| Self::one(letter).is_some_and(|one| self.0 & one.0 != 0))
    }

    /// Whether any of `sets` is whole in this set.
    pub(super) fn suffice(self, sets: &[&str]) -> bool {
        sets.iter().any(|set| self.has_all(set))
    }
}

/// What a shared access signature distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The service itself: `s`.
    Service,
    /// A container, queue or table: `c`.
    Container,
    /// A blob, message or entity: `o`.
    Object,
}

impl Kind {
    pub(super) const fn of(level: Level) -> Self {
        match level {
            Level::Service => Self::Service,
            Level::Container | Level::Queue | Level::Tables | Level::TableEntry => Self::Container,
            // A table is addressed for the sake of its entities; its policies are closed to every signature.
            Level::Blob | Level::Messages | Level::Message | Level::Table | Level::Entity | Level::Batch => {
                Self::Object
            }
        }
    }
}

/// What a shared access signature must say. Of `letters`, any set suffices, but whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Of an account SAS: resource types, any of which suffices.
    pub(super) types: &'static str,
    /// Of an account SAS.
    pub(super) account: &'static [&'static str],
    /// Of a service SAS and of a user delegation SAS; none if no such signature ever suffices.
    pub(super) service: Option<&'static [&'static str]>,
}

/// A rule that is the same for both kinds of signature.
const fn both(types: &'static str, letters: &'static [&'static str]) -> Option<Rule> {
    Some(Rule { types, account: letters, service: Some(letters) })
}

/// A rule that only an account SAS can meet.
const fn account(types: &'static str, letters: &'static [&'static str]) -> Option<Rule> {
    Some(Rule { types, account: letters, service: None })
}

/// What a shared access signature must say for `needs`; none if none ever suffices.
pub(super) const fn rule(needs: Permission, service: Service, kind: Kind) -> Option<Rule> {
    use Kind::{Container, Object, Service as Whole};
    match (needs, kind) {
        (Permission::Any | Permission::Account, _) => both("sco", &[""]),
        (Permission::Read, Whole) => account("s", &["r"]),
        (Permission::Write, Whole) => account("s", &["w"]),
        (Permission::List, _) if matches!(service, Service::Table) => account("c", &["l"]),
        (Permission::List, Whole) => account("s", &["l"]),
        (Permission::Filter, Whole) => account("so", &["f"]),
        (Permission::Read, Container) if matches!(service, Service::Queue) => both("c", &["r"]),
        (Permission::Read, Container) => account("c", &["r"]),
        (Permission::List, Container) => both("c", &["l"]),
        (Permission::Filter, Container) => both("co", &["f"]),
        (Permission::Create, Container) => account("c", &["w", "c"]),
        (Permission::Write, Container) => account("c", &["w"]),
        (Permission::Delete, Container) => account("c", &["d"]),
        (Permission::BreakLease, Container) => account("c", &["w", "d"]),
        (Permission::Read, Object) => both("o", &["r"]),
        (Permission::Create, Object) => both("o", &["w", "c"]),
        (Permission::Add, Object) if matches!(service, Service::Blob) => both("o", &["a", "w"]),
        (Permission::Add, Object) => both("o", &["a"]),
        (Permission::Write, Object) => both("o", &["w"]),
        (Permission::Update, Object) => both("o", &["u"]),
        (Permission::Upsert, Object) => both("o", &["au"]),
        (Permission::Process, Object) => both("o", &["p"]),
        // Of messages all at once; one is deleted by who may process it.
        (Permission::Delete, Object) if matches!(service, Service::Queue) => account("o", &["d"]),
        (Permission::Delete, Object) => both("o", &["d"]),
        (Permission::DeleteVersion, Object) => both("o", &["x"]),
        (Permission::DeleteForGood, Object) => both("o", &["y"]),
        (Permission::BreakLease, Object) => both("o", &["w", "d"]),
        // Listings show tags.
        (Permission::Tag, Container) => both("co", &["t"]),
        (Permission::Tag, Object) => both("o", &["t"]),
        (Permission::Protect, Object) => both("o", &["i"]),
        _ => None,
    }
}

/// What a request needs, beginning with what its operation does: some headers and parameters ask for more than the
/// operation alone, or for something else.
pub(super) fn needs(
    operation: Permission,
    method: &Method,
    fields: &Fields,
    version: Version,
) -> impl Iterator<Item = Permission> {
    let first = match operation {
        Permission::Delete if says(fields, "deletetype", "permanent") => Permission::DeleteForGood,
        Permission::Delete if fields.query_opt("versionid").is_some() => Permission::DeleteVersion,
        Permission::BreakLease if version < Version::V2017_07_29 => Permission::Write,
        other => other,
    };
    let copied = fields.header_opt("x-ms-copy-source-tag-option").ok().flatten();
    let tags = fields.has_header("x-ms-tags") && *method == Method::PUT
        || copied.is_some_and(|option| option.eq_ignore_ascii_case("COPY"))
        || fields.has_header("x-ms-if-tags")
        || operation == Permission::List && says(fields, "include", "tags");
    let protects =
        ["x-ms-immutability-policy-until-date", "x-ms-legal-hold"].iter().any(|name| fields.has_header(name));
    [
        Some(first),
        (tags && first != Permission::Nothing).then_some(Permission::Tag),
        (protects && *method == Method::PUT).then_some(Permission::Protect),
    ]
    .into_iter()
    .flatten()
}

/// Whether the parameter names `value`, alone or in a list.
fn says(fields: &Fields, name: &str, value: &str) -> bool {
    fields.query_opt(name).is_some_and(|list| list.split(',').any(|item| item.trim().eq_ignore_ascii_case(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_those_of_the_service() {
        use Permission as P;
        let cases = [
            (P::Read, Service::Blob, Kind::Object, Some(("o", "r", Some("r")))),
            (P::Read, Service::Blob, Kind::Container, Some(("c", "r", None))),
            (P::Read, Service::Queue, Kind::Container, Some(("c", "r", Some("r")))),
            (P::Read, Service::Table, Kind::Service, Some(("s", "r", None))),
            (P::List, Service::Blob, Kind::Container, Some(("c", "l", Some("l")))),
            (P::List, Service::Blob, Kind::Service, Some(("s", "l", None))),
            (P::List, Service::Table, Kind::Service, Some(("c", "l", None))),
            (P::Create, Service::Blob, Kind::Object, Some(("o", "w|c", Some("w|c")))),
            (P::Create, Service::Queue, Kind::Container, Some(("c", "w|c", None))),
            (P::Add, Service::Blob, Kind::Object, Some(("o", "a|w", Some("a|w")))),
            (P::Add, Service::Queue, Kind::Object, Some(("o", "a", Some("a")))),
            (P::Upsert, Service::Table, Kind::Object, Some(("o", "au", Some("au")))),
            (P::Process, Service::Queue, Kind::Object, Some(("o", "p", Some("p")))),
            (P::Delete, Service::Queue, Kind::Object, Some(("o", "d", None))),
            (P::Delete, Service::Table, Kind::Object, Some(("o", "d", Some("d")))),
            (P::Delete, Service::Blob, Kind::Container, Some(("c", "d", None))),
            (P::Filter, Service::Blob, Kind::Service, Some(("so", "f", None))),
            (P::Tag, Service::Blob, Kind::Container, Some(("co", "t", Some("t")))),
            (P::Own, Service::Blob, Kind::Container, None),
            (P::Delegate, Service::Blob, Kind::Service, None),
            (P::Nothing, Service::Blob, Kind::Object, None),
        ];
        for (needs, service, kind, expected) in cases {
            let rule = rule(needs, service, kind);
            let given = rule.map(|rule| (rule.types, rule.account.join("|"), rule.service.map(|sets| sets.join("|"))));
            let expected = expected.map(|(types, account, service): (_, &str, Option<&str>)| {
                (types, account.into(), service.map(Into::into))
            });
            assert_eq!(given, expected, "{needs:?} {service:?} {kind:?}");
        }
    }

    #[test]
    fn one_whole_set_of_letters_suffices() {
        let cases = [
            ("r", &["r"][..], true),
            ("w", &["w", "c"], true),
            ("c", &["w", "c"], true),
            ("r", &["w", "c"], false),
            ("a", &["au"], false),
            ("uxa", &["au"], true),
            ("r", &[""], true),
            ("r", &[], false),
        ];
        for (letters, sets, expected) in cases {
            assert_eq!(Letters::parse(letters).unwrap().suffice(sets), expected, "{letters} {sets:?}");
        }
    }
}
