//! Bearer tokens. <https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory>

mod keys;
pub mod roles;
mod token;

use std::sync::Arc;

use http::StatusCode;
use lazuli_engine::identity::IdentityId;

use self::keys::{Keys, Published};
use self::roles::{Assignment, Role};
use self::token::Claims;
use super::rights::Kind;
use super::{Asked, failed};
use crate::code::Code;
use crate::error::Problem;
use crate::operation::Permission;
use crate::target::{Service, Target};
use crate::version::Version;

/// For whom tokens for storage are meant, whatever the account.
const AUDIENCES: [&str; 2] = ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];
/// The tenant in challenges if none is configured.
const ANY_TENANT: &str = "common";

/// Whose tokens let clients in, and what for.
#[derive(Clone, Debug)]
pub struct Issuer {
    check: Check,
    audiences: Vec<String>,
    tenant: Option<String>,
    plain_http: bool,
    assignments: Vec<Assignment>,
}

/// How a token is told from a forged one.
#[derive(Clone, Debug)]
enum Check {
    /// Not at all: for development.
    Form,
    /// By who issued it and signed it.
    Signature { issuer: String, keys: KeySource },
}

/// Where the keys come from that tokens are signed with.
#[derive(Clone, Debug)]
enum KeySource {
    Given(Arc<Keys>),
    Published(Published),
}

/// Why no tokens can be accepted.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// It is no set of JSON web keys.
    #[error("the keys of the issuer are no JSON web key set")]
    Form(#[source] serde_json::Error),
    /// There are no keys for signatures in it.
    #[error("among the keys of the issuer there is none that signs by RS256 or ES256")]
    Empty,
    /// Keys cannot be fetched from there: on the way, others could be put in their place.
    #[error("{0:?} is neither an address over https nor one of this machine")]
    Address(String),
}

impl Issuer {
    /// Tokens of `issuer`, signed with a key of `jwks`, a JSON web key set.
    pub fn signing(issuer: &str, jwks: &[u8]) -> Result<Self, IssuerError> {
        Ok(Self::of_keys(issuer, KeySource::Given(Arc::new(keys::parse(jwks)?))))
    }

    /// Tokens of `issuer`, signed with a key that it publishes at `address`: a JSON web key set, or a discovery document
    /// that says where one is; without it, where discovery documents are. Nothing is fetched yet.
    pub fn publishing(issuer: &str, address: Option<&str>) -> Result<Self, IssuerError> {
        let discovery = || format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let published = Published::at(&address.map_or_else(discovery, str::to_owned))?;
        Ok(Self::of_keys(issuer, KeySource::Published(published)))
    }

    fn of_keys(issuer: &str, keys: KeySource) -> Self {
        Self::of(Check::Signature { issuer: issuer.to_owned(), keys }, Vec::new())
    }

    /// Tokens that look like the service's own: issuer, audience and times, but not whether they are signed. Everybody
    /// can make one, so this is for development alone. Who has one owns everything, unless roles are assigned.
    pub fn form_only() -> Self {
        Self::of(Check::Form, Vec::new())
    }

    fn of(check: Check, assignments: Vec<Assignment>) -> Self {
        Self { check, audiences: Vec::new(), tenant: None, plain_http: false, assignments }
    }

    /// Also tokens that are meant for `audience`.
    #[must_use]
    pub fn with_audience(mut self, audience: &str) -> Self {
        self.audiences.push(audience.to_owned());
        self
    }

    /// Only tokens of this tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: &str) -> Self {
        self.tenant = Some(tenant.to_owned());
        self
    }

    /// Also over connections from elsewhere that are not encrypted, where a token can be overheard.
    #[must_use]
    pub const fn over_plain_http(mut self) -> Self {
        self.plain_http = true;
        self
    }

    /// And what the bearers of tokens may do: nothing that is not assigned.
    #[must_use]
    pub fn with_assignment(mut self, assignment: Assignment) -> Self {
        self.assignments.push(assignment);
        self
    }

    /// The same, with the keys that `before` has fetched from the same address.
    pub(super) fn after(mut self, before: &Self) -> Self {
        if let Check::Signature { keys: KeySource::Published(own), .. } = &mut self.check
            && let Check::Signature { keys: KeySource::Published(old), .. } = &before.check
            && own.is_of(old)
        {
            *own = old.clone();
        }
        self
    }

    /// Fetches its keys, if it publishes them. What is wrong is logged: it is tried again when a token comes.
    pub async fn prepare(&self) {
        if let Check::Signature { keys: KeySource::Published(published), .. } = &self.check {
            published.refresh().await;
        }
    }

    /// Checks a token: its form and signature, who issued it, for whom and when. What its bearer may do is not judged
    /// yet.
    ///
    /// Refuses `InvalidAuthenticationInfo` with a challenge, and `AuthenticationFailed` for a version that has no
    /// tokens, and for a connection over which they can be overheard; `ServerBusy` while the issuer's keys cannot be
    /// fetched.
    pub(super) async fn verify(&self, token: &str, asked: Asked<'_>) -> Result<Identity, Problem> {
        // The Table service documents a later version, but its own clients send tokens with 2019-02-02.
        if asked.version < Version::V2017_11_09 {
            return Err(failed("Authentication scheme Bearer is not supported in this version."));
        }
        let local = asked.peer.address.is_some_and(|address| address.is_loopback());
        if !asked.peer.secure && !local && !self.plain_http {
            return Err(failed("Authentication scheme Bearer is not allowed with HTTP."));
        }
        let claims = self.claims(token).await?;
        self.judge(&claims, asked).map_err(|reason| self.invalid(reason))?;
        let principals = claims.principals();
        let id = IdentityId { tenant: claims.tenant(), object: claims.object() };
        Ok(Identity::known(id, principals))
    }

    /// What the token says, if its form and signature are right.
    async fn claims(&self, token: &str) -> Result<Claims, Problem> {
        let Check::Signature { keys, .. } = &self.check else {
            return token::unchecked(token).map_err(|reason| self.invalid(reason));
        };
        let id = token::key_id(token).map_err(|reason| self.invalid(reason))?;
        let keys = match keys {
            KeySource::Given(keys) => Some(Arc::clone(keys)),
            KeySource::Published(published) => published.for_key(id.as_deref()).await,
        };
        let keys = keys.ok_or_else(|| {
            Problem::new(Code::ServerBusy).saying("The keys of the issuer of tokens cannot be fetched at present.")
        })?;
        token::signed(token, &keys).map_err(|reason| self.invalid(reason))
    }

    fn judge(&self, claims: &Claims, asked: Asked<'_>) -> Result<(), &'static str> {
        let issuer = match &self.check {
            Check::Form => None,
            Check::Signature { issuer, .. } => Some(issuer.as_str()),
        };
        claims.check_issuer(issuer)?;
        claims.check_tenant(self.tenant.as_deref())?;
        claims.check_time(asked.now)?;
        let endpoint = |name: &str| {
            let service = asked.service.name().to_ascii_lowercase();
            let own = format!("https://{}.{service}.core.windows.net", asked.target.account);
            name.trim_end_matches('/') == own
        };
        let meant = |name: &str| {
            let bare = name.trim_end_matches('/');
            AUDIENCES.contains(&bare) || self.audiences.iter().any(|own| own == name) || endpoint(name)
        };
        claims.check_audience(meant)
    }

    /// The identity with its roles for what is asked.
    pub(super) fn with_roles(&self, identity: Identity, service: Service, target: &Target) -> Identity {
        let roles = if self.assignments.is_empty() && matches!(self.check, Check::Form) {
            vec![Role::Owner]
        } else {
            let covering = self.assignments.iter().filter(|own| own.covers(&identity.principals, service, target));
            covering.map(|assignment| assignment.role).collect()
        };
        Identity { roles, ..identity }
    }

    /// A refusal that tells clients where to get a better token.
    fn invalid(&self, reason: &'static str) -> Problem {
        let problem =
            Problem { status: Some(StatusCode::UNAUTHORIZED), ..Problem::new(Code::InvalidAuthenticationInfo) };
        problem.detail("AuthenticationErrorDetail", reason).with_header("www-authenticate", challenge(Some(self)))
    }
}

/// Where clients get a token, as they want it with every 401.
pub(super) fn challenge(issuer: Option<&Issuer>) -> String {
    let tenant = issuer.and_then(|issuer| issuer.tenant.as_deref()).unwrap_or(ANY_TENANT);
    format!(
        "Bearer authorization_uri=https://login.microsoftonline.com/{tenant}/oauth2/authorize \
         resource_id=https://storage.azure.com"
    )
}

/// A token without anybody who would know it.
pub(super) fn unknown() -> Problem {
    let problem = Problem { status: Some(StatusCode::UNAUTHORIZED), ..Problem::new(Code::InvalidAuthenticationInfo) };
    problem
        .detail("AuthenticationErrorDetail", "Bearer tokens are not accepted here.")
        .with_header("www-authenticate", challenge(None))
}

/// Whoever a token names, and what it may do with what it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    object: String,
    tenant: String,
    principals: Vec<String>,
    roles: Vec<Role>,
}

impl Identity {
    /// Whoever is known by `id`, and by these ids in assignments.
    pub(super) fn known(id: IdentityId, principals: Vec<String>) -> Self {
        Self { object: id.object, tenant: id.tenant, principals, roles: Vec::new() }
    }

    /// What it is remembered by.
    pub(crate) fn id(&self) -> IdentityId {
        IdentityId { tenant: self.tenant.clone(), object: self.object.clone() }
    }

    /// All ids that roles may be assigned to.
    pub(crate) fn principals(&self) -> &[String] {
        &self.principals
    }

    /// Its object id.
    pub fn object(&self) -> &str {
        &self.object
    }

    /// The id of its tenant.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Refuses `AuthorizationPermissionMismatch`.
    pub(super) fn allows(&self, needs: Permission, kind: Kind) -> Result<(), Problem> {
        if self.roles.iter().any(|role| role.allows(needs, kind)) {
            return Ok(());
        }
        Err(Problem::new(Code::AuthorizationPermissionMismatch))
    }
}

#[cfg(test)]
mod tests;
