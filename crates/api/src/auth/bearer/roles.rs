//! What identities may do: a small mapping from whom a token names to the roles of the service.
//! <https://learn.microsoft.com/azure/storage/blobs/authorize-access-azure-active-directory#azure-built-in-roles-for-blobs>

use lazuli_engine::names::AccountName;

use crate::auth::rights::Kind;
use crate::operation::Permission;
use crate::target::{Resource, Service, Target};

/// A role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads and lists.
    Reader,
    /// Also writes and deletes.
    Contributor,
    /// Does everything, access control included.
    Owner,
    /// Gets keys with which to sign for others, and has no other right.
    Delegator,
}

impl Role {
    /// Whether the role allows `needs`.
    pub(super) const fn allows(self, needs: Permission, kind: Kind) -> bool {
        let reads = matches!(needs, Permission::Any | Permission::Account | Permission::Read | Permission::List);
        let writes = match needs {
            Permission::Write => !matches!(kind, Kind::Service),
            Permission::Create
            | Permission::Add
            | Permission::Update
            | Permission::Upsert
            | Permission::Process
            | Permission::Delete
            | Permission::BreakLease => true,
            _ => false,
        };
        match self {
            Self::Owner => true,
            _ if matches!(needs, Permission::Delegate) => true,
            Self::Reader => reads,
            Self::Contributor => reads || writes,
            Self::Delegator => false,
        }
    }
}

/// Gives a role to whoever a token names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The id of a subject, a group or an application; none for whoever has a token.
    pub principal: Option<String>,
    /// The role.
    pub role: Role,
    /// In this account only.
    pub account: Option<AccountName>,
    /// In this service only.
    pub service: Option<Service>,
    /// In this container, queue or table only.
    pub resource: Option<String>,
}

impl Assignment {
    /// `role` for everybody who has a token, everywhere.
    pub const fn everybody(role: Role) -> Self {
        Self { principal: None, role, account: None, service: None, resource: None }
    }

    /// Whether it is for one of `principals` and covers the target.
    pub(super) fn covers(&self, principals: &[String], service: Service, target: &Target) -> bool {
        self.principal.as_ref().is_none_or(|id| principals.iter().any(|other| other.eq_ignore_ascii_case(id)))
            && self.account.as_ref().is_none_or(|account| *account == target.account)
            && self.service.is_none_or(|own| own == service)
            && self.resource.as_deref().is_none_or(|own| match &target.resource {
                // Its parts name tables, and are judged one by one.
                Resource::Batch => true,
                Resource::TableEntry(table) | Resource::Table(table) | Resource::Entity(table, _) => {
                    table.as_str().eq_ignore_ascii_case(own)
                }
                _ => target.top() == Some(own),
            })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::fields::Fields;
    use crate::head::HeaderCase;

    #[test]
    fn roles_allow_what_they_are_named_for() {
        use Permission as P;
        let cases = [
            (P::Read, Kind::Object, [true, true, true, false]),
            (P::List, Kind::Service, [true, true, true, false]),
            (P::Write, Kind::Object, [false, true, true, false]),
            (P::Write, Kind::Service, [false, false, true, false]),
            (P::Create, Kind::Container, [false, true, true, false]),
            (P::Process, Kind::Object, [false, true, true, false]),
            (P::Tag, Kind::Object, [false, false, true, false]),
            (P::DeleteVersion, Kind::Object, [false, false, true, false]),
            (P::Own, Kind::Container, [false, false, true, false]),
            (P::Delegate, Kind::Service, [true, true, true, true]),
        ];
        for (needs, kind, expected) in cases {
            let roles = [Role::Reader, Role::Contributor, Role::Owner, Role::Delegator];
            assert_eq!(roles.map(|role| role.allows(needs, kind)), expected, "{needs:?} {kind:?}");
        }
    }

    #[test]
    fn an_assignment_covers_whom_and_what_it_names() {
        let target = |path: &str| {
            let fields = Fields::parse(HeaderMap::new(), None, HeaderCase::default()).unwrap();
            Target::parse(Service::Blob, None, path, &fields).unwrap()
        };
        let ann = ["ANN".to_owned(), "staff".to_owned()];
        let to =
            |principal: &str| Assignment { principal: Some(principal.into()), ..Assignment::everybody(Role::Reader) };
        let in_photos = Assignment { resource: Some("photos".into()), ..to("ann") };
        let in_mine = Assignment { account: AccountName::parse("mine").ok(), ..to("ann") };
        let in_queues = Assignment { service: Some(Service::Queue), ..to("ann") };
        let cases = [
            (to("ann"), "/mine/photos/a", true),
            (to("staff"), "/mine/", true),
            (to("bob"), "/mine/", false),
            (in_photos.clone(), "/mine/photos/a", true),
            (in_photos.clone(), "/mine/other/a", false),
            (in_photos, "/mine/", false),
            (in_mine.clone(), "/mine/photos/a", true),
            (in_mine, "/other/photos/a", false),
            (in_queues, "/mine/photos/a", false),
            (Assignment::everybody(Role::Owner), "/mine/photos/a", true),
        ];
        for (assignment, path, expected) in cases {
            assert_eq!(assignment.covers(&ann, Service::Blob, &target(path)), expected, "{assignment:?} {path}");
        }
    }
}
