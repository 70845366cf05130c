//! Queues. <https://learn.microsoft.com/rest/api/storageservices/operations-on-queues>

use http::StatusCode;
use lazuli_engine::queue::queues::{self, Created};

use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::target::Level;
use crate::wire::{acl, metadata};

/// Most bytes of a list of policies.
const ACL_BYTES_MAX: u64 = 64 * 1024;
const COUNT: &str = "x-ms-approximate-messages-count";
const GET_HEAD: &[Verb] = &[Verb::Get, Verb::Head];
const PUT: &[Verb] = &[Verb::Put];

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::at(Level::Queue, PUT, "", &[], &CREATE),
    Route::at(Level::Queue, &[Verb::Delete], "", &[], &DELETE),
    Route::at(Level::Queue, GET_HEAD, "metadata", &[], &GET_METADATA),
    Route::at(Level::Queue, PUT, "metadata", &[], &SET_METADATA),
    Route::at(Level::Queue, GET_HEAD, "acl", &[], &GET_ACL),
    Route::at(Level::Queue, PUT, "acl", &[], &SET_ACL),
];

/// Create Queue: <https://learn.microsoft.com/rest/api/storageservices/create-queue4>
static CREATE: Operation =
    Operation { name: "Queue_Create", needs: Permission::Create, body: Body::None, run: |call| Box::pin(create(call)) };

async fn create(call: Call) -> Result<Answer, Problem> {
    let metadata = metadata::read(&call.fields)?;
    match queues::create(&call.engine, call.target.queue()?, metadata).await? {
        Created::New => Ok(Answer::created()),
        Created::Same => Ok(done()),
    }
}

/// Delete Queue: <https://learn.microsoft.com/rest/api/storageservices/delete-queue3>
static DELETE: Operation =
    Operation { name: "Queue_Delete", needs: Permission::Delete, body: Body::None, run: |call| Box::pin(delete(call)) };

async fn delete(call: Call) -> Result<Answer, Problem> {
    queues::delete(&call.engine, call.target.queue()?).await?;
    Ok(done())
}

/// Get Queue Metadata: <https://learn.microsoft.com/rest/api/storageservices/get-queue-metadata>
static GET_METADATA: Operation = Operation {
    name: "Queue_GetProperties",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get_metadata(call)),
};

async fn get_metadata(call: Call) -> Result<Answer, Problem> {
    let view = queues::get(&call.engine, call.target.queue()?).await?;
    Ok(metadata::onto(Answer::ok().header(COUNT, view.messages.to_string()), &view.metadata))
}

/// Set Queue Metadata: <https://learn.microsoft.com/rest/api/storageservices/set-queue-metadata>
static SET_METADATA: Operation = Operation {
    name: "Queue_SetMetadata",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(set_metadata(call)),
};

async fn set_metadata(call: Call) -> Result<Answer, Problem> {
    let metadata = metadata::read(&call.fields)?;
    queues::set_metadata(&call.engine, call.target.queue()?, metadata).await?;
    Ok(done())
}

/// Get Queue ACL: <https://learn.microsoft.com/rest/api/storageservices/get-queue-acl>
static GET_ACL: Operation = Operation {
    name: "Queue_GetAccessPolicy",
    needs: Permission::Own,
    body: Body::None,
    run: |call| Box::pin(get_acl(call)),
};

async fn get_acl(call: Call) -> Result<Answer, Problem> {
    let view = queues::get(&call.engine, call.target.queue()?).await?;
    Ok(Answer::ok().xml(acl::document(&view.policies)))
}

/// Set Queue ACL: <https://learn.microsoft.com/rest/api/storageservices/set-queue-acl>
static SET_ACL: Operation = Operation {
    name: "Queue_SetAccessPolicy",
    needs: Permission::Own,
    body: Body::Document { bytes_max: ACL_BYTES_MAX },
    run: |call| Box::pin(set_acl(call)),
};

async fn set_acl(mut call: Call) -> Result<Answer, Problem> {
    let policies = acl::parse(&call.document().await?, acl::QUEUE_PERMISSIONS)?;
    queues::set_policies(&call.engine, call.target.queue()?, policies).await?;
    Ok(done())
}

/// 204: what this service says where others say 200 or 202.
pub(super) fn done() -> Answer {
    Answer::new(StatusCode::NO_CONTENT)
}
