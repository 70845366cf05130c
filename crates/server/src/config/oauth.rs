//! Identities: whose tokens are accepted, and which roles they have.

use std::path::PathBuf;

use clap::ValueEnum;
use lazuli_api::auth::accounts::AccountError;
use lazuli_api::auth::bearer::Issuer;
use lazuli_api::auth::bearer::roles::{Assignment, Role};
use lazuli_api::target::Service;
use lazuli_engine::names::AccountName;
use serde::{Deserialize, Serialize};

use crate::start::StartError;

/// How bearer tokens are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OAuthMode {
    /// By form alone: for development.
    Basic,
    /// By the keys of their issuer.
    Full,
}

/// Whose tokens are accepted, and what for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OAuth {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<OAuthMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    audiences: Vec<String>,
    plain_http: bool,
    roles: Vec<RoleEntry>,
}

/// A role of somebody, somewhere.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RoleEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    role: RoleName,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum RoleName {
    Reader,
    Contributor,
    Owner,
    Delegator,
}

impl OAuth {
    /// The same, checked as a flag says.
    pub(super) fn checked(self, flag: Option<OAuthMode>) -> Self {
        let mode = flag.or(self.mode).or(self.issuer.is_some().then_some(OAuthMode::Full));
        Self { mode, ..self }
    }

    /// Whether tokens are accepted that everybody can make.
    pub(super) fn is_unchecked(&self) -> bool {
        self.mode == Some(OAuthMode::Basic)
    }

    /// The file beside the configuration that it rests on.
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.keys.as_ref().filter(|keys| self.mode == Some(OAuthMode::Full) && !is_address(keys)).map(PathBuf::from)
    }

    /// Whose tokens are accepted, if anybody's.
    pub(super) fn issuer(&self) -> Result<Option<Issuer>, StartError> {
        let issuer = match self.mode {
            None => return Ok(None),
            Some(OAuthMode::Basic) => Issuer::form_only(),
            Some(OAuthMode::Full) => signing(self)?,
        };
        let issuer = self.audiences.iter().fold(issuer, |issuer, audience| issuer.with_audience(audience));
        let issuer = self.tenant.iter().fold(issuer, |issuer, tenant| issuer.with_tenant(tenant));
        let issuer = if self.plain_http { issuer.over_plain_http() } else { issuer };
        let assignments = self.roles.iter().map(RoleEntry::assignment).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(assignments.into_iter().fold(issuer, Issuer::with_assignment)))
    }
}

fn signing(oauth: &OAuth) -> Result<Issuer, StartError> {
    let Some(issuer) = &oauth.issuer else {
        return Err(StartError::new(
            "bearer tokens are to be checked by their issuer, and [oauth] issuer is not given",
        ));
    };
    let Some(path) = oauth.keys.as_ref().filter(|keys| !is_address(keys)) else {
        let published = Issuer::publishing(issuer, oauth.keys.as_deref());
        return published.map_err(|error| StartError::new(format!("the keys of [oauth]: {error}")));
    };
    let failed = |error: &dyn std::fmt::Display| StartError::new(format!("the keys in {path}: {error}"));
    let keys = std::fs::read(path).map_err(|error| failed(&error))?;
    Issuer::signing(issuer, &keys).map_err(|error| failed(&error))
}

/// Whether keys lie at an address, not in a file.
fn is_address(keys: &str) -> bool {
    keys.contains("://")
}

impl RoleEntry {
    fn assignment(&self) -> Result<Assignment, StartError> {
        let account = self.account.as_deref().map(|name| {
            AccountName::parse(name).map_err(|_| StartError::new(AccountError::Name(name.to_owned()).to_string()))
        });
        let places = [(Service::Blob, &self.container), (Service::Queue, &self.queue), (Service::Table, &self.table)];
        let mut given = places.into_iter().filter_map(|(service, name)| Some((service, name.clone()?)));
        let place = given.next();
        if given.next().is_some() {
            return Err(StartError::new("a role of [oauth] is for a container, a queue or a table, not for several"));
        }
        Ok(Assignment {
            principal: self.principal.clone(),
            role: match self.role {
                RoleName::Reader => Role::Reader,
                RoleName::Contributor => Role::Contributor,
                RoleName::Owner => Role::Owner,
                RoleName::Delegator => Role::Delegator,
            },
            account: account.transpose()?,
            service: place.as_ref().map(|(service, _)| *service),
            resource: place.map(|(_, name)| name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    /// What a file of this text configures.
    fn load_file(text: &str, arguments: &[&str]) -> Result<crate::config::Config, StartError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        load(&[&["--config", file.path().to_str().unwrap()], arguments].concat())
    }

    #[test]
    fn tokens_are_accepted_if_it_is_said_how_they_are_checked() {
        let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/src/auth/bearer/fixtures/keys.json");
        let full = format!(
            "[oauth]\nissuer = \"https://issuer.example/\"\nkeys = {keys:?}\ntenant = \"t\"\naudiences = [\"a\"]\n\
             [[oauth.roles]]\nprincipal = \"ann\"\nrole = \"reader\"\naccount = \"mine\"\ncontainer = \"photos\"\n"
        );
        let accepts = |text: &str, arguments: &[&str]| {
            load_file(text, arguments)
                .map(|config| config.accounts.issuer().is_some())
                .map_err(|error| error.to_string())
        };
        assert_eq!(accepts("", &[]), Ok(false));
        assert_eq!(accepts("", &["--oauth", "basic"]), Ok(true));
        assert_eq!(accepts("[oauth]\nmode = \"basic\"\n", &[]), Ok(true));
        assert_eq!(accepts(&full, &[]), Ok(true));
        assert!(load_file(&full, &[]).unwrap().watched.iter().any(|path| path.ends_with("keys.json")));
        for elsewhere in ["https://issuer.example/keys", "http://127.0.0.1:1/keys", "http://localhost:1/"] {
            let config = load_file(&full.replace(keys, elsewhere), &[]).unwrap();
            assert_eq!((config.accounts.issuer().is_some(), config.watched.len()), (true, 1), "{elsewhere}");
        }
        assert_eq!(accepts(&full.replace("keys = ", "# keys = "), &[]), Ok(true), "the issuer tells where they are");
        let refused = [
            (full.replace("keys.json", "none.json"), "none.json"),
            (full.replace("issuer = ", "# issuer = ").replace("[oauth]", "[oauth]\nmode = \"full\""), "issuer"),
            (full.replace(keys, "http://issuer.example/keys"), "http://issuer.example/keys"),
            (full.replace("account = \"mine\"", "account = \"MINE\""), "MINE"),
            (full.replace("\"reader\"", "\"king\""), "king"),
            (format!("{full}queue = \"jobs\"\n"), "not for several"),
        ];
        for (text, named) in refused {
            let error = accepts(&text, &[]).unwrap_err();
            assert!(error.contains(named) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn unchecked_tokens_are_not_for_others() {
        let own = ["--accounts", "mine:c2VjcmV0", "--oauth", "basic", "--blobHost", "0.0.0.0"];
        assert!(load_file("", &own).is_err());
        assert!(load_file("", &[&own[..], &["--allow-development-account"]].concat()).is_ok());
    }
}
