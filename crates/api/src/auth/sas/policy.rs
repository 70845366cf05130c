//! Stored access policies, which a service SAS may name instead of saying everything itself.
//! <https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy>

use lazuli_engine::access::AccessPolicy;
use lazuli_engine::blob::{OnContainer, container};
use lazuli_engine::condition::Conditions;
use lazuli_engine::names::{TableAddress, TableName};
use lazuli_engine::queue::queues;
use lazuli_engine::table::tables;
use lazuli_engine::{Engine, Error, Refusal};

use super::form::{Form, malformed};
use crate::auth::rights::Letters;
use crate::auth::{Asked, failed};
use crate::error::Problem;
use crate::target::Service;
use crate::wire::date;

/// Puts what the policy says that the signature names into `form`, where the signature itself says nothing.
///
/// Refuses `AuthenticationFailed` for an unknown policy, and for what both say, but not the same.
pub(super) async fn complete(form: &mut Form<'_>, engine: &Engine, asked: Asked<'_>) -> Result<(), Problem> {
    let Some(id) = form.opt("si") else { return Ok(()) };
    let policies = stored(form, engine, asked).await?;
    let policy = policies.into_iter().find(|policy| policy.id == id);
    let policy = policy.ok_or_else(|| failed(&format!("The access policy {id} is not stored on the resource.")))?;
    // A policy may write instants in more ways than a signature.
    fill(&mut form.start, policy.start.as_deref(), "st", date::parse_iso8601)?;
    fill(&mut form.expiry, policy.expiry.as_deref(), "se", date::parse_iso8601)?;
    fill(&mut form.permissions, policy.permission.as_deref(), "sp", Letters::parse)
}

/// The policies stored on the container, queue or table that the request addresses; none if it does not exist.
async fn stored(form: &Form<'_>, engine: &Engine, asked: Asked<'_>) -> Result<Vec<AccessPolicy>, Problem> {
    match asked.service {
        Service::Blob => {
            let address = asked.target.container()?;
            let on = OnContainer { address, conditions: Conditions::default(), lease: None };
            match container::get(engine, on).await {
                Ok(view) => Ok(view.access.policies),
                Err(Error::Refused(Refusal::ContainerNotFound)) => Ok(Vec::new()),
                Err(error) => Err(error.into()),
            }
        }
        Service::Queue => match queues::get(engine, asked.target.queue()?).await {
            Ok(view) => Ok(view.policies),
            Err(Error::Refused(Refusal::QueueNotFound)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        },
        Service::Table => {
            // A batch addresses no table; the signature names it.
            let Ok(table) = TableName::parse(form.get("tn")) else { return Ok(Vec::new()) };
            let address = TableAddress { account: asked.target.account.clone(), table };
            match tables::get(engine, address).await {
                Ok(view) => Ok(view.policies),
                Err(Error::Refused(Refusal::TableNotFound)) => Ok(Vec::new()),
                Err(error) => Err(error.into()),
            }
        }
    }
}

fn fill<T: PartialEq>(
    own: &mut Option<T>,
    stored: Option<&str>,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<(), Problem> {
    let Some(stored) = stored.filter(|text| !text.is_empty()) else { return Ok(()) };
    let stored = parse(stored).ok_or_else(|| malformed(name))?;
    match own {
        Some(own) if *own != stored => Err(failed(&format!("{name} is both in the signature and in its policy."))),
        _ => {
            *own = Some(stored);
            Ok(())
        }
    }
}
