//! The service itself.
//! <https://learn.microsoft.com/rest/api/storageservices/operations-on-the-account--blob-service->

use lazuli_engine::blob::container::{self, ListContainers};

use crate::answer::Answer;
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::service::preflight_at;
use crate::target::Level;
use crate::wire::condition;
use crate::wire::listing::{self, Paging};

/// Where a listing goes on.
const MARKER: &str = "marker";

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::service(&[Verb::Get], "", "list", &LIST_CONTAINERS),
    preflight_at(Level::Container),
    preflight_at(Level::Blob),
];

/// List Containers: <https://learn.microsoft.com/rest/api/storageservices/list-containers2>
static LIST_CONTAINERS: Operation = Operation {
    name: "Service_ListContainersSegment",
    needs: Permission::List,
    body: Body::None,
    run: |call| Box::pin(list_containers(call)),
};

async fn list_containers(call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    let paging = Paging::parse(&call.fields).map_err(of_marker)?;
    if let (Some(text), Some(start)) = (&paging.marker, &paging.start)
        && !container::is_marker(&call.target.account, start)
    {
        return Err(of_marker(Problem::query(MARKER, text, "It was not made by this service.")));
    }
    let includes = listing::container_includes(&call.fields)?;
    let endpoint = listing::service_endpoint(&call.fields, &call.target, call.arrival.peer)?;
    let request = ListContainers {
        account: call.target.account.clone(),
        prefix: paging.prefix.clone(),
        system: includes.system,
        start: paging.start.clone(),
        limit: paging.limit,
        deleted: includes.deleted,
    };
    let page = container::list(&call.engine, request).await?;
    let immutability = call.engine.policy(&call.target.account).immutability;
    let body = listing::containers(&endpoint, &paging, includes.metadata, immutability, call.version, &page);
    Ok(Answer::ok().xml(body))
}

/// The service has another code here for a marker that is none.
fn of_marker(problem: Problem) -> Problem {
    let marker = problem.details.contains(&("QueryParameterName", MARKER.to_owned()));
    if marker { Problem { code: Code::OutOfRangeInput, ..problem } } else { problem }
}
