//! Shared access signatures. <https://learn.microsoft.com/rest/api/storageservices/delegate-access-with-shared-access-signature>

mod addresses;
mod delegated;
mod form;
mod policy;
mod text;

use std::net::IpAddr;

use lazuli_engine::Engine;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::names::KeyText;

use self::delegated::Delegated;
use self::form::{Form, Shape};
use super::accounts::Account;
use super::bearer::{Identity, Issuer};
use super::grant::EntityRange;
use super::peer::Peer;
use super::rights::{self, Kind, Letters};
use super::{Asked, failed, matches_any};
use crate::code::Code;
use crate::error::Problem;
use crate::operation::Permission;
use crate::target::{Service, Target};
use crate::version::Version;
use crate::wire::date;

/// What a shared access signature allows that was found right.
#[derive(Clone, Debug)]
pub struct Signature {
    reach: Reach,
    letters: Letters,
    entities: Option<EntityRange>,
    table: Option<String>,
    encryption_scope: Option<String>,
    overrides: Vec<(&'static str, String)>,
    /// Who signed, if it was not the account's owner: the signature allows nobody more than its signer may do.
    delegator: Option<Identity>,
}

/// How far a signature reaches.
#[derive(Clone, Debug)]
enum Reach {
    /// Over the account: letters of services and of resource types.
    Account { services: String, types: String },
    /// Over one resource, which the request addresses.
    Resource,
}

/// The version that a request with a signature speaks if it names none itself, and whether `sv` decides alone.
///
/// Refuses `AuthenticationFailed` for what is no version.
pub(super) fn version(text: Option<&str>, strict: bool) -> Result<(Version, bool), Problem> {
    let Some(text) = text else { return Ok((Version::ANONYMOUS_DEFAULT, false)) };
    let version = Version::parse(text, strict).map_err(|_| form::malformed("sv"))?;
    Ok((version, version <= Version::V2013_08_15))
}

/// Checks the signature in the query: its form, what it covers, when, how and from where it may be used. What it allows
/// is not judged yet.
///
/// Refuses `AuthenticationFailed`, `AuthorizationProtocolMismatch` and `AuthorizationSourceIPMismatch`.
pub(super) async fn verify(
    account: &Account,
    issuer: Option<&Issuer>,
    user: Option<&Identity>,
    engine: &Engine,
    asked: Asked<'_>,
) -> Result<Signature, Problem> {
    let mut form = Form::read(asked.fields, asked.service, asked.strict)?;
    let delegated = (form.shape == Shape::Delegated).then(|| Delegated::read(&form, asked.service)).transpose()?;
    let text = text::text(&form, asked)?;
    let matches = match &delegated {
        Some(delegated) => matches_any(&delegated.keys(account), std::slice::from_ref(&text), &form.signature),
        None => matches_any(account.keys(), std::slice::from_ref(&text), &form.signature),
    };
    if !matches {
        return Err(failed(&format!("Signature did not match. String to sign used was {text}")));
    }
    policy::complete(&mut form, engine, asked).await?;
    check_time(&form, asked.now)?;
    let delegator = match delegated {
        Some(delegated) => Some(delegated.delegator(issuer, user, engine, asked)?),
        None => None,
    };
    check_peer(&form, asked.peer)?;
    Ok(Signature { delegator, ..Signature::of(&form, asked.service) })
}

fn check_time(form: &Form<'_>, now: Timestamp) -> Result<(), Problem> {
    let expiry = form.expiry.ok_or_else(|| failed("se is mandatory. Cannot be empty."))?;
    if form.permissions.is_none() {
        return Err(failed("sp is mandatory. Cannot be empty."));
    }
    if form.start.is_none_or(|start| start <= now) && now < expiry {
        return Ok(());
    }
    let shown = |time: Option<Timestamp>| time.map(date::rfc1123).unwrap_or_default();
    Err(failed(&format!(
        "Signature not valid in the specified time frame: Start [{}] - Expiry [{}] - Current [{}]",
        shown(form.start),
        shown(Some(expiry)),
        shown(Some(now))
    )))
}

fn check_peer(form: &Form<'_>, peer: Peer) -> Result<(), Problem> {
    if form.secure_only && !peer.secure {
        return Err(Problem::new(Code::AuthorizationProtocolMismatch));
    }
    let Some(addresses) = form.addresses else { return Ok(()) };
    if peer.address.is_some_and(|address| addresses.contain(address)) {
        return Ok(());
    }
    let address = peer.address.as_ref().map(IpAddr::to_string).unwrap_or_default();
    Err(Problem::new(Code::AuthorizationSourceIPMismatch)
        .saying(format!("This request is not authorized to perform this operation using this source IP {address}."))
        .detail("SourceIP", address))
}

impl Signature {
    fn of(form: &Form<'_>, service: Service) -> Self {
        let reach = match form.shape {
            Shape::Account => Reach::Account { services: form.get("ss").into(), types: form.get("srt").into() },
            Shape::Service | Shape::Delegated => Reach::Resource,
        };
        let of_table = service == Service::Table && form.shape != Shape::Account;
        // Only where the signature covers them.
        let overridden = service == Service::Blob && form.shape != Shape::Account && form.since(Version::V2013_08_15);
        let overrides = text::OVERRIDES
            .iter()
            .filter(|_| overridden)
            .filter_map(|(parameter, header)| Some((*header, form.opt(parameter)?.to_owned())));
        Self {
            reach,
            letters: form.permissions.unwrap_or_default(),
            entities: of_table.then(|| entities(form)),
            table: of_table.then(|| form.get("tn").to_owned()),
            encryption_scope: form.opt("ses").filter(|_| form.since(Version::V2020_12_06)).map(str::to_owned),
            overrides: overrides.collect(),
            delegator: None,
        }
    }

    /// Whether an identity signed it, not the account's owner.
    pub(super) const fn is_delegated(&self) -> bool {
        self.delegator.is_some()
    }

    /// The same signature with the roles that its signer has for `target`.
    pub(super) fn at(self, issuer: &Issuer, service: Service, target: &Target) -> Self {
        let delegator = self.delegator.map(|delegator| issuer.with_roles(delegator, service, target));
        Self { delegator, ..self }
    }

    /// What it allows.
    pub(super) const fn letters(&self) -> Letters {
        self.letters
    }

    /// The entities that it covers; none if it covers all of a table's.
    pub fn entities(&self) -> Option<&EntityRange> {
        self.entities.as_ref()
    }

    /// The only table that it covers, in any letter case; none if it covers all.
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// The encryption scope that writes have to use.
    pub fn encryption_scope(&self) -> Option<&str> {
        self.encryption_scope.as_deref()
    }

    /// Headers that an answer with a blob's content or properties has in place of the stored ones.
    pub fn overrides(&self) -> &[(&'static str, String)] {
        &self.overrides
    }

    /// Refuses `AuthorizationServiceMismatch`, `AuthorizationResourceTypeMismatch`, `AuthorizationPermissionMismatch`,
    /// and `AuthorizationFailure` for what such a signature never allows.
    pub(super) fn allows(&self, needs: Permission, service: Service, kind: Kind) -> Result<(), Problem> {
        let rule = rights::rule(needs, service, kind).ok_or_else(|| Problem::new(Code::AuthorizationFailure))?;
        let letters = match &self.reach {
            Reach::Account { services, types } => {
                let letter = match service {
                    Service::Blob => 'b',
                    Service::Queue => 'q',
                    Service::Table => 't',
                };
                if !services.contains(letter) {
                    return Err(Problem::new(Code::AuthorizationServiceMismatch));
                }
                if !rule.types.contains(|one| types.contains(one)) {
                    return Err(Problem::new(Code::AuthorizationResourceTypeMismatch));
                }
                rule.account
            }
            Reach::Resource => rule.service.ok_or_else(|| {
                Problem::new(Code::AuthorizationFailure)
                    .saying(format!("No shared access signature of this kind allows it at the level {kind:?}."))
            })?,
        };
        if !self.letters.suffice(letters) {
            return Err(Problem::new(Code::AuthorizationPermissionMismatch));
        }
        self.delegator.as_ref().map_or(Ok(()), |delegator| delegator.allows(needs, kind))
    }
}

fn entities(form: &Form<'_>) -> EntityRange {
    // That they can be keys was checked.
    let text = |name| form.opt(name).and_then(|text| KeyText::parse(text).ok());
    let key = |partition, row| Some((text(partition)?, text(row)));
    EntityRange { first: key("spk", "srk"), last: key("epk", "erk") }
}

#[cfg(test)]
mod tests;
