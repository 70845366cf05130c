//! Who asks, and whether they may. <https://learn.microsoft.com/rest/api/storageservices/authorize-requests-to-azure-storage>

pub mod accounts;
mod anonymous;
pub mod bearer;
mod delegation;
mod grant;
mod peer;
mod rights;
mod sas;
mod shared_key;
mod source;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::Method;
use lazuli_engine::Engine;
use lazuli_engine::clock::Timestamp;
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::auth::accounts::{Account, Accounts, Key};
use crate::auth::bearer::Issuer;
use crate::auth::shared_key::{Scheme, Signed};
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::Permission;
use crate::target::{Service, Target};
use crate::version::{VERSION_HEADER, Version};
use crate::wire::date;

pub use crate::auth::bearer::Identity;
pub(crate) use crate::auth::delegation::{Delegation, letter as delegation_letter};
pub use crate::auth::grant::{EntityRange, Grant, Principal};
pub use crate::auth::peer::Peer;
pub use crate::auth::sas::Signature;
pub use crate::auth::source::{Arrival, Source, authorize_url};

/// How far a signed request's date may be from the server's.
const SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// A request that asks to be authorized.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) service: Service,
    pub(crate) method: &'a Method,
    pub(crate) target: &'a Target,
    pub(crate) fields: &'a Fields,
    /// What its operation needs.
    pub(crate) needs: Permission,
    pub(crate) version: Version,
    pub(crate) now: Timestamp,
    pub(crate) peer: Peer,
    /// Whether versions newer than all known are refused.
    pub(crate) strict: bool,
}

/// The version that a request speaks: the one it names, else by its credentials. A shared access signature of a version
/// up to 2013-08-15 decides alone.
///
/// Refuses `InvalidHeaderValue`, `InvalidQueryParameterValue`, and `AuthenticationFailed` for a malformed `sv`.
pub(crate) fn version(fields: &Fields, strict: bool) -> Result<Version, Problem> {
    const PARAMETER: &str = "api-version";
    let signed_by_key = fields.has_header("authorization");
    let own = if signed_by_key {
        Version::NEWEST
    } else if fields.query_opt("sig").is_some() {
        match sas::version(fields.query_opt("sv"), strict)? {
            (version, true) => return Ok(version),
            (version, false) => version,
        }
    } else {
        Version::ANONYMOUS_DEFAULT
    };
    if let Some(text) = fields.header_opt(VERSION_HEADER)? {
        return Version::parse(text, strict);
    }
    match fields.query_opt(PARAMETER).filter(|_| !signed_by_key) {
        Some(text) => {
            Version::parse(text, strict).map_err(|_| Problem::query(PARAMETER, text, "It is no known version."))
        }
        None => Ok(own),
    }
}

/// Decides whether the request may go on: by its Authorization header, else by the shared access signature in its
/// query, else as anybody's.
///
/// Refuses `AccountRequiresHttps`, `AuthenticationFailed`, `InvalidAuthenticationInfo`, `NoAuthenticationInformation`,
/// `ResourceNotFound` for an account or container that is not there to be seen, the refusals of [`Grant::check`],
/// `AuthorizationProtocolMismatch`, `AuthorizationSourceIPMismatch`, and `InsufficientAccountPermissions` for a write
/// to the secondary endpoint.
pub(crate) async fn authorize(accounts: &Accounts, engine: &Engine, asked: Asked<'_>) -> Result<Grant, Problem> {
    let Some(account) = accounts.get(&asked.target.account) else {
        return Err(Problem::new(Code::ResourceNotFound));
    };
    account.rules().check_encrypted(asked.peer)?;
    if asked.needs == Permission::Nothing {
        return Ok(Grant::new(Principal::Anonymous));
    }
    let principal = identify(accounts, &account, engine, asked).await?;
    let by_key = match &principal {
        Principal::Owner => true,
        Principal::Signature(signature) => !signature.is_delegated(),
        Principal::Identity(_) | Principal::Anonymous => false,
    };
    if by_key && !account.rules().shared_key {
        return Err(Problem::new(Code::KeyBasedAuthenticationNotPermitted));
    }
    let grant = admit(Grant::new(principal), asked)?;
    // A query of a blob is posted, and reads all the same.
    let reads = matches!(*asked.method, Method::GET | Method::HEAD) || asked.needs == Permission::Read;
    if asked.target.secondary && !reads {
        return Err(Problem::new(Code::InsufficientAccountPermissions)
            .saying("Write operations are not allowed on the secondary endpoint."));
    }
    Ok(grant)
}

/// The grant of a request that came within `call` and has no credentials of its own, if those of the call allow what it
/// needs.
///
/// Refuses as [`Grant::check`].
pub(crate) fn within(call: &Call, target: &Target, needs: Permission) -> Result<Grant, Problem> {
    let issuer = call.arrival.accounts.issuer();
    let grant = call.grant.clone().at(issuer.as_deref(), call.service, target);
    grant.admit(needs, call.service, target.level())
}

/// The grant, if it allows all that the request needs.
fn admit(grant: Grant, asked: Asked<'_>) -> Result<Grant, Problem> {
    let level = asked.target.level();
    rights::needs(asked.needs, asked.method, asked.fields, asked.version)
        .try_fold(grant, |grant, needs| grant.admit(needs, asked.service, level))
}

/// Who asks.
async fn identify(
    accounts: &Accounts,
    account: &Account,
    engine: &Engine,
    asked: Asked<'_>,
) -> Result<Principal, Problem> {
    let issuer = accounts.issuer();
    let signature = asked.fields.query_opt("sig").is_some();
    let Some(authorization) = authorization(asked.fields)? else {
        if signature {
            return signed(account, issuer.as_deref(), None, engine, asked).await;
        }
        anonymous::admit(engine, account.rules(), issuer.as_deref(), asked).await?;
        return Ok(Principal::Anonymous);
    };
    let token = match Credential::parse(authorization)? {
        Credential::Key(scheme, credential) => {
            verify(account.keys(), scheme, credential, asked)?;
            return Ok(Principal::Owner);
        }
        Credential::Token(token) => token,
    };
    let issuer = issuer.ok_or_else(bearer::unknown)?;
    let identity = issuer.verify(token, asked).await?;
    if signature && asked.fields.query_opt("sduoid").is_some() {
        return signed(account, Some(&issuer), Some(&identity), engine, asked).await;
    }
    Ok(Principal::Identity(Arc::new(issuer.with_roles(identity, asked.service, asked.target))))
}

/// The Authorization header, if there is one.
///
/// Refuses `InvalidAuthenticationInfo` for several, and for one that is no text.
fn authorization(fields: &Fields) -> Result<Option<&str>, Problem> {
    const NAME: &str = "authorization";
    let malformed = || Problem::new(Code::InvalidAuthenticationInfo);
    if fields.headers().get_all(NAME).iter().count() > 1 {
        return Err(malformed());
    }
    fields.header_opt(NAME).map_err(|_| malformed())
}

/// What an Authorization header holds.
enum Credential<'a> {
    /// An account and a signature made with its key.
    Key(Scheme, &'a str),
    /// A bearer token.
    Token(&'a str),
}

impl<'a> Credential<'a> {
    /// Refuses `InvalidAuthenticationInfo`.
    fn parse(authorization: &'a str) -> Result<Self, Problem> {
        let malformed = || Problem::new(Code::InvalidAuthenticationInfo);
        let (scheme, credential) = authorization.split_once(' ').unwrap_or((authorization, ""));
        match scheme {
            _ if scheme.eq_ignore_ascii_case("SharedKey") => Ok(Self::Key(Scheme::SharedKey, credential)),
            _ if scheme.eq_ignore_ascii_case("SharedKeyLite") => Ok(Self::Key(Scheme::SharedKeyLite, credential)),
            _ if scheme.eq_ignore_ascii_case("Bearer") => Ok(Self::Token(credential.trim())),
            _ => Err(malformed()),
        }
    }
}

/// Whoever has the shared access signature in the query, if it is right. `user`: whom a token says has it.
async fn signed(
    account: &Account,
    issuer: Option<&Issuer>,
    user: Option<&Identity>,
    engine: &Engine,
    asked: Asked<'_>,
) -> Result<Principal, Problem> {
    let signature = sas::verify(account, issuer, user, engine, asked).await?;
    Ok(Principal::Signature(Arc::new(signature)))
}

/// Checks a credential made with the account's key.
fn verify(keys: &[Key], scheme: Scheme, credential: &str, asked: Asked<'_>) -> Result<(), Problem> {
    let malformed = || Problem::new(Code::InvalidAuthenticationInfo);
    let (account, signature) = credential.trim().split_once(':').ok_or_else(malformed)?;
    if account.is_empty() || signature.is_empty() {
        return Err(malformed());
    }
    if account != asked.target.account.as_str() {
        return Err(failed(&format!("The request addresses another account than {account}, which signed it.")));
    }
    check_date(asked.fields, asked.now)?;
    let signed = Signed {
        service: asked.service,
        method: asked.method,
        fields: asked.fields,
        account: &asked.target.account,
        raw_path: &asked.target.raw_path,
        secondary_in_path: asked.target.secondary && asked.target.path_style,
        version: asked.version,
    };
    let texts = signed.texts(scheme);
    let given = STANDARD.decode(signature).unwrap_or_default();
    if matches_any(keys, &texts, &given) {
        return Ok(());
    }
    let text = texts.first().map(String::as_str).unwrap_or_default();
    Err(failed(&format!(
        "The MAC signature found in the HTTP request '{signature}' is not the same as any computed signature. Server \
         used following string to sign: '{text}'."
    )))
}

/// Whether `given` is the signature of one of the texts with one of the keys. Takes the same time whichever it is.
fn matches_any(keys: &[Key], texts: &[String], given: &[u8]) -> bool {
    let pairs = keys.iter().flat_map(|key| texts.iter().map(move |text| (key, text)));
    let found = pairs.fold(Choice::from(0), |found, (key, text)| found | sign(key, text).ct_eq(given));
    found.into()
}

fn sign(key: &Key, text: &str) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(key.bytes()).expect("a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

fn check_date(fields: &Fields, now: Timestamp) -> Result<(), Problem> {
    let name = if fields.has_header("x-ms-date") { "x-ms-date" } else { "Date" };
    let Some(text) = fields.header_opt(name)? else {
        return Err(failed("A signed request needs a date: x-ms-date or Date."));
    };
    let date = date::parse_http(text).ok_or_else(|| Problem::header(name, text))?;
    if now.since(date).max(date.since(now)) > SKEW_MAX {
        return Err(failed(&format!(
            "The date header {name} in the request is too far from the server's time: {text}."
        )));
    }
    Ok(())
}

fn failed(detail: &str) -> Problem {
    Problem::new(Code::AuthenticationFailed).detail("AuthenticationErrorDetail", detail)
}

#[cfg(test)]
mod tests;
