//! Many deletions or changes of tier in one request. <https://learn.microsoft.com/rest/api/storageservices/blob-batch>

use futures_util::{StreamExt, stream};
use http::header::HOST;
use lazuli_engine::names::ContainerName;
use uuid::Uuid;

use crate::answer::{Answer, Content};
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::serve::{Inner, Request};
use crate::target::{Resource, Service};
use crate::wire::multipart::{self, Answers, Part};

const POST: &[Verb] = &[Verb::Post];
/// Largest body of a batch.
const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most requests of a batch.
const PARTS_MAX: usize = 256;
/// Requests of one batch that are under way at once: enough to share the disk's syncs.
const PARTS_AT_ONCE: usize = 32;
/// What a batch may consist of, one kind a batch.
const KINDS: [&str; 2] = ["Blob_Delete", "Blob_SetTier"];

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::service(POST, "", "batch", &OF_SERVICE),
    // The JavaScript SDK takes the account in the path for a container.
    Route::service(POST, "container", "batch", &OF_SERVICE),
    Route::container(POST, "batch", &[], &OF_CONTAINER),
];

static OF_SERVICE: Operation = batch("Service_SubmitBatch");
static OF_CONTAINER: Operation = batch("Container_SubmitBatch");

/// Blob Batch: <https://learn.microsoft.com/rest/api/storageservices/blob-batch>
const fn batch(name: &'static str) -> Operation {
    Operation {
        name,
        needs: Permission::Any,
        body: Body::Document { bytes_max: BYTES_MAX },
        run: |call| Box::pin(submit(call)),
    }
}

/// A batch that is malformed is refused as a whole, before anything is done. Its parts succeed or fail each by itself.
async fn submit(mut call: Call) -> Result<Answer, Problem> {
    let boundary = multipart::boundary(call.fields.header("content-type")?)?.to_owned();
    let body = call.document().await?;
    let parts = multipart::parts(&body, &boundary, PARTS_MAX + 1)?;
    let inner = parts.iter().map(|part| inner(&call, part)).collect::<Result<Vec<_>, _>>()?;
    check(&call, &inner)?;

    let answers = stream::iter(inner).map(Inner::answer).buffered(PARTS_AT_ONCE).collect::<Vec<_>>().await;
    let mut composed = Answers::begin(format!("batchresponse_{}", Uuid::new_v4()));
    for (part, answer) in parts.iter().zip(answers) {
        let body = match &answer.content {
            Content::Bytes(bytes) => bytes.as_ref(),
            _ => &[],
        };
        composed.add(part.header("content-id"), answer.status, &answer.headers, body);
    }
    let (kind, text) = composed.finish();
    Ok(Answer { content: Content::Bytes(text.into()), ..Answer::accepted().header("content-type", kind) })
}

/// The request in a part. It came by the way of the batch: what tells the account's host stands there.
fn inner(call: &Call, part: &Part<'_>) -> Result<Inner, Problem> {
    let request = part.request()?;
    let mut headers = request.headers;
    if let Some(host) = call.fields.headers().get(HOST) {
        headers.insert(HOST, host.clone());
    }
    let request = Request {
        method: request.method,
        raw_path: request.raw_path,
        raw_query: request.raw_query,
        headers,
        case: request.case,
        peer: call.arrival.peer,
        chunks: stream::once(async { Ok(request.body) }).boxed(),
    };
    Ok(Inner::of(call, Service::Blob, request))
}

/// Sees to it that the parts are all of one kind, and of the account or container that the batch is of.
///
/// Refuses `InvalidInput`.
fn check(call: &Call, parts: &[Inner]) -> Result<(), Problem> {
    let refused = |reason| Err(Problem::new(Code::InvalidInput).saying(reason));
    if parts.is_empty() {
        return refused("A batch has at least one part.");
    }
    if parts.len() > PARTS_MAX {
        return refused("A batch has at most 256 parts.");
    }
    let mut kind = None;
    for (target, operation) in parts.iter().filter_map(Inner::routed) {
        if !KINDS.contains(&operation.name) {
            return refused("A batch consists of Delete Blob or of Set Blob Tier.");
        }
        if *kind.get_or_insert(operation.name) != operation.name {
            return refused("The parts of a batch are all of one kind.");
        }
        if target.account != call.target.account {
            return refused("The parts of a batch are all of its account.");
        }
        if container(&call.target.resource).is_some_and(|own| container(&target.resource) != Some(own)) {
            return refused("The parts of a container's batch are all of that container.");
        }
    }
    Ok(())
}

const fn container(resource: &Resource) -> Option<&ContainerName> {
    match resource {
        Resource::Container(container) | Resource::Blob(container, _) => Some(container),
        _ => None,
    }
}
