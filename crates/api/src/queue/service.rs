//! The service itself.
//! <https://learn.microsoft.com/rest/api/storageservices/operations-on-the-account--queue-service->

use lazuli_engine::queue::queues::{self, ListQueues};

use crate::answer::Answer;
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::wire::listing::{self, Paging};

/// The routes.
pub(super) const ROUTES: &[Route] = &[Route::service(&[Verb::Get], "", "list", &LIST_QUEUES)];

/// List Queues: <https://learn.microsoft.com/rest/api/storageservices/list-queues1>
static LIST_QUEUES: Operation = Operation {
    name: "Service_ListQueuesSegment",
    needs: Permission::List,
    body: Body::None,
    run: |call| Box::pin(list_queues(call)),
};

async fn list_queues(call: Call) -> Result<Answer, Problem> {
    let paging = Paging::parse(&call.fields).map_err(of_marker)?;
    let metadata = listing::queue_metadata(&call.fields)?;
    let endpoint = listing::service_endpoint(&call.fields, &call.target, call.arrival.peer)?;
    let request = ListQueues {
        account: call.target.account.clone(),
        prefix: paging.prefix.clone(),
        start: paging.start.clone(),
        limit: paging.limit,
    };
    let page = queues::list(&call.engine, request).await?;
    Ok(Answer::ok().xml(listing::queues(&endpoint, &paging, metadata, call.version, &page)))
}

/// This service has a code of its own for a marker that is none.
fn of_marker(problem: Problem) -> Problem {
    let marker = problem.details.contains(&("QueryParameterName", "marker".to_owned()));
    if marker { Problem { code: Code::InvalidMarker, ..problem } } else { problem }
}
