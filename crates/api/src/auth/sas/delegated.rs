//! What a user delegation SAS says about its signer.
//! <https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas>

use lazuli_engine::Engine;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::identity::{self, IdentityId};

use super::form::{Form, malformed, parse_instant};
use crate::auth::accounts::{Account, Key};
use crate::auth::bearer::{Identity, Issuer};
use crate::auth::delegation::{Delegation, letter};
use crate::auth::{Asked, failed};
use crate::error::Problem;
use crate::target::Service;

/// The key that a signature was made with, and who may use the signature.
pub(super) struct Delegated<'a> {
    delegation: Delegation<'a>,
    /// The only one who may use it, if it is for one alone.
    user: Option<&'a str>,
}

impl<'a> Delegated<'a> {
    /// Refuses `AuthenticationFailed` for malformed instants and for the key of another service.
    pub(super) fn read(form: &Form<'a>, service: Service) -> Result<Self, Problem> {
        let instant = |name: &'static str| parse_instant(form.get(name)).ok_or_else(|| malformed(name));
        if form.get("sks") != letter(service) {
            return Err(failed("sks names another service than the one that is asked."));
        }
        let delegation = Delegation {
            object: form.get("skoid"),
            tenant: form.get("sktid"),
            start: instant("skt")?,
            expiry: instant("ske")?,
            service,
            version: form.get("skv"),
            for_tenant: form.get("skdutid"),
        };
        Ok(Self { delegation, user: form.opt("sduoid") })
    }

    /// The key, for each of the account's own.
    pub(super) fn keys(&self, account: &Account) -> Vec<Key> {
        account.keys().iter().map(|key| self.delegation.key(key)).collect()
    }

    /// Who signed, with the roles that it has now. `user`: whom the request's token says sent it.
    ///
    /// Refuses `AuthenticationFailed` before and after the key's time, and for who is not the one it was signed for.
    pub(super) fn delegator(
        self,
        issuer: Option<&Issuer>,
        user: Option<&Identity>,
        engine: &Engine,
        asked: Asked<'_>,
    ) -> Result<Identity, Problem> {
        self.check_time(asked.now)?;
        let Delegation { object, tenant, for_tenant, .. } = self.delegation;
        if let Some(only) = self.user {
            let of = if for_tenant.is_empty() { tenant } else { for_tenant };
            let same =
                |user: &&Identity| user.object().eq_ignore_ascii_case(only) && user.tenant().eq_ignore_ascii_case(of);
            user.filter(same).ok_or_else(|| failed("The token is not of the user whom the signature is for."))?;
        }
        let issuer = issuer.ok_or_else(|| failed("No identity is known here."))?;
        let id = IdentityId { tenant: tenant.to_ascii_lowercase(), object: object.to_ascii_lowercase() };
        let principals = identity::principals(engine, &id)?.unwrap_or_default();
        Ok(issuer.with_roles(Identity::known(id, principals), asked.service, asked.target))
    }

    fn check_time(&self, now: Timestamp) -> Result<(), Problem> {
        if self.delegation.start <= now && now < self.delegation.expiry {
            return Ok(());
        }
        Err(failed("The user delegation key does not hold now."))
    }
}
