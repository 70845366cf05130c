//! Requests without credentials.
//! <https://learn.microsoft.com/azure/storage/blobs/anonymous-read-access-overview>

use lazuli_engine::access::PublicAccess;
use lazuli_engine::blob::container::ContainerView;
use lazuli_engine::blob::{self, OnContainer};
use lazuli_engine::condition::Conditions;
use lazuli_engine::{Engine, Error, Refusal};

use crate::auth::accounts::Rules;
use crate::auth::bearer::{self, Issuer};
use crate::auth::{Asked, rights};
use crate::code::Code;
use crate::error::Problem;
use crate::operation::Permission;
use crate::target::{Level, Service};
use crate::version::Version;

/// Admits reads of what its container opens to everybody, unless the account forbids it.
///
/// Refuses `PublicAccessNotPermitted`, and `ResourceNotFound` or `NoAuthenticationInformation`, by version: whether the container exists stays hidden.
pub(super) async fn admit(
    engine: &Engine,
    rules: Rules,
    issuer: Option<&Issuer>,
    asked: Asked<'_>,
) -> Result<(), Problem> {
    let refusal = |version| refusal(version, bearer::challenge(issuer));
    let mut needs = rights::needs(asked.needs, asked.method, asked.fields, asked.version);
    let least = needs.next().and_then(|needs| least_access(needs, asked.target.level()));
    let (Some(least), None) = (least, needs.next()) else { return Err(refusal(asked.version)) };
    let view = if asked.service == Service::Blob { container(engine, asked).await? } else { None };
    match view {
        Some(view) if opens(view.access.public, least) && rules.public_access => Ok(()),
        // The account says so to everybody, whether the container exists or not.
        _ if !rules.public_access && asked.service == Service::Blob => {
            Err(Problem::new(Code::PublicAccessNotPermitted))
        }
        _ => Err(refusal(asked.version)),
    }
}

async fn container(engine: &Engine, asked: Asked<'_>) -> Result<Option<ContainerView>, Problem> {
    let on = OnContainer { address: asked.target.container()?, conditions: Conditions::default(), lease: None };
    match blob::container::get(engine, on).await {
        Ok(view) => Ok(Some(view)),
        Err(Error::Refused(Refusal::ContainerNotFound)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How public a container must be for anybody to do what needs `permission`; none if it never suffices.
fn least_access(permission: Permission, level: Level) -> Option<PublicAccess> {
    match (permission, level) {
        (Permission::Read, Level::Blob) => Some(PublicAccess::Blob),
        (Permission::Read | Permission::List, Level::Container) => Some(PublicAccess::Container),
        _ => None,
    }
}

fn opens(public: PublicAccess, least: PublicAccess) -> bool {
    match public {
        PublicAccess::Private => false,
        PublicAccess::Blob => least == PublicAccess::Blob,
        PublicAccess::Container => true,
    }
}

fn refusal(version: Version, challenge: String) -> Problem {
    if version < Version::V2019_12_12 {
        return Problem::new(Code::ResourceNotFound);
    }
    Problem::new(Code::NoAuthenticationInformation).with_header("www-authenticate", challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anybody_reads_blobs_of_public_containers_and_lists_fully_public_ones() {
        use PublicAccess::{Blob, Container, Private};
        let cases = [
            (Permission::Read, Level::Blob, [false, true, true]),
            (Permission::Read, Level::Container, [false, false, true]),
            (Permission::List, Level::Container, [false, false, true]),
            (Permission::List, Level::Service, [false, false, false]),
            (Permission::Read, Level::Service, [false, false, false]),
            (Permission::Write, Level::Blob, [false, false, false]),
            (Permission::Delete, Level::Blob, [false, false, false]),
            (Permission::Tag, Level::Blob, [false, false, false]),
            (Permission::Own, Level::Container, [false, false, false]),
        ];
        for (permission, level, expected) in cases {
            let least = least_access(permission, level);
            let answers = [Private, Blob, Container].map(|public| least.is_some_and(|least| opens(public, least)));
            assert_eq!(answers, expected, "{permission:?} {level:?}");
        }
    }

    #[test]
    fn new_versions_are_challenged_and_old_ones_see_nothing() {
        let challenge = || bearer::challenge(None);
        let old = refusal(Version::parse("2019-10-10", true).unwrap(), challenge());
        assert_eq!(old, Problem::new(Code::ResourceNotFound));
        let new = refusal(Version::V2019_12_12, challenge());
        assert_eq!(new.code, Code::NoAuthenticationInformation);
        assert!(new.headers.iter().any(|(name, value)| *name == "www-authenticate" && value.contains("resource_id=")));
    }
}
