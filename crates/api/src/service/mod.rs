//! What every service of an account has alike: its properties, its statistics, and its answers to browsers.
//! <https://learn.microsoft.com/rest/api/storageservices/set-blob-service-properties>

mod delegation;

use lazuli_engine::Engine;
use lazuli_engine::names::AccountName;
use lazuli_engine::service::properties::ServiceProperties;
use lazuli_engine::service::{self, ServiceKind};

use crate::answer::Answer;
use crate::call::Call;
use crate::cors;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Selector, Verb};
use crate::target::{Level, Service};
use crate::version::{VERSION_HEADER, Version};
use crate::wire::condition;
use crate::wire::service as wire;

/// Largest body of Set Service Properties.
const PROPERTIES_BYTES_MAX: u64 = 64 * 1024;

/// The routes of a service as a whole: every service mounts them beside its own.
pub(crate) const ROUTES: &[Route] = &[
    Route::service(&[Verb::Get], "service", "properties", &GET_PROPERTIES),
    Route::service(&[Verb::Put], "service", "properties", &SET_PROPERTIES),
    Route::service(&[Verb::Get], "service", "stats", &GET_STATISTICS),
    Route::service(&[Verb::Post], "service", "userdelegationkey", &delegation::GET_DELEGATION_KEY),
    preflight_at(Level::Service),
];

/// The route of preflight requests at `level`: whatever they ask for.
pub(crate) const fn preflight_at(level: Level) -> Route {
    const VERBS: &[Verb] = &[Verb::Options];
    Route { verbs: VERBS, level, restype: Selector::Any, comp: Selector::Any, markers: &[], operation: &PREFLIGHT }
}

/// What the owner of `account` has set for a service.
pub(crate) fn properties(
    engine: &Engine,
    account: &AccountName,
    service: Service,
) -> Result<ServiceProperties, Problem> {
    Ok(service::get(engine, account, kind(service))?)
}

/// The version of a request that names none and is signed with the account's key or not at all, where the service's
/// owner has set one. Tokens and shared access signatures decide by themselves.
pub(crate) fn default_version(properties: &ServiceProperties, fields: &Fields) -> Option<Version> {
    let credentials = fields.header_opt("authorization").ok().flatten();
    let by_key = credentials.is_some_and(|text| text.get(..9).is_some_and(|it| it.eq_ignore_ascii_case("SharedKey")));
    let otherwise = credentials.is_some() || ["sig", "api-version"].iter().any(|name| fields.query_opt(name).is_some());
    let decided = fields.has_header(VERSION_HEADER) || otherwise && !by_key;
    let text = properties.default_version.as_deref().filter(|_| !decided)?;
    Version::parse(text, false).ok()
}

const fn kind(service: Service) -> ServiceKind {
    match service {
        Service::Blob => ServiceKind::Blob,
        Service::Queue => ServiceKind::Queue,
        Service::Table => ServiceKind::Table,
    }
}

/// Get Blob (Queue, Table) Service Properties:
/// <https://learn.microsoft.com/rest/api/storageservices/get-blob-service-properties>
static GET_PROPERTIES: Operation = Operation {
    name: "Service_GetProperties",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get_properties(call)),
};

async fn get_properties(call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    let properties = properties(&call.engine, &call.target.account, call.service)?;
    Ok(Answer::ok().xml(wire::document(&properties, call.service, call.version)))
}

/// Set Blob (Queue, Table) Service Properties:
/// <https://learn.microsoft.com/rest/api/storageservices/set-blob-service-properties>
static SET_PROPERTIES: Operation = Operation {
    name: "Service_SetProperties",
    needs: Permission::Write,
    body: Body::Document { bytes_max: PROPERTIES_BYTES_MAX },
    run: |call| Box::pin(set_properties(call)),
};

async fn set_properties(mut call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    let change = wire::parse(&call.document().await?, call.service)?;
    service::set(&call.engine, call.target.account, kind(call.service), change).await?;
    Ok(Answer::accepted())
}

/// Get Blob (Queue, Table) Service Stats, which only the secondary endpoint has:
/// <https://learn.microsoft.com/rest/api/storageservices/get-blob-service-stats>
static GET_STATISTICS: Operation = Operation {
    name: "Service_GetStatistics",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get_statistics(call)),
};

async fn get_statistics(call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    if !call.target.secondary {
        return Err(Problem::query("comp", "stats", "Only the secondary endpoint has statistics."));
    }
    Ok(Answer::ok().xml(wire::statistics(service::synced(&call.engine)?)))
}

/// Preflight Blob (Queue, Table) Request:
/// <https://learn.microsoft.com/rest/api/storageservices/preflight-blob-request>
static PREFLIGHT: Operation = Operation {
    name: "Preflight",
    needs: Permission::Nothing,
    body: Body::None,
    run: |call| Box::pin(preflight(call)),
};

async fn preflight(call: Call) -> Result<Answer, Problem> {
    let properties = properties(&call.engine, &call.target.account, call.service)?;
    cors::preflight(&properties.cors, &call.fields)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::head::HeaderCase;

    #[test]
    fn the_default_version_is_for_requests_that_say_nothing_of_one() {
        let old = Version::parse("2015-02-21", true).ok();
        let cases = [
            ("host", "x", "", old),
            ("host", "x", "comp=list", old),
            (VERSION_HEADER, "2020-02-10", "", None),
            ("authorization", "SharedKey a:b", "", old),
            ("authorization", "sharedkeylite a:b", "comp=list", old),
            ("authorization", "Bearer a.b.c", "", None),
            ("authorization", "SharedKey a:b", "api-version=2020-02-10", old),
            ("host", "x", "sv=2020-02-10&sig=x", None),
            ("host", "x", "api-version=2020-02-10", None),
        ];
        for (name, value, query, expected) in cases {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
            let fields = Fields::parse(headers, Some(query), HeaderCase::default()).unwrap();
            let set = ServiceProperties { default_version: Some("2015-02-21".into()), ..ServiceProperties::default() };
            assert_eq!(default_version(&set, &fields), expected, "{name} {query}");
            assert_eq!(default_version(&ServiceProperties::default(), &fields), None, "{name} {query}");
        }
    }
}
