//! Messages. <https://learn.microsoft.com/rest/api/storageservices/operations-on-messages>

use lazuli_engine::queue::messages;
use lazuli_engine::queue::{NewMessage, OnMessage};

use super::queues::done;
use crate::answer::Answer;
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{QueryIs, QueryIsNot};
use crate::route::{Route, Verb};
use crate::target::Level;
use crate::version::Version;
use crate::wire::{date, message};

const BODY: Body = Body::Document { bytes_max: message::DOCUMENT_BYTES_MAX };
const GET: &[Verb] = &[Verb::Get];
const DELETE: &[Verb] = &[Verb::Delete];
const PEEK_ONLY: &str = "peekonly";

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::at(Level::Messages, &[Verb::Post], "", &[], &PUT_MESSAGE),
    Route::at(Level::Messages, GET, "", &[QueryIsNot(PEEK_ONLY, "true")], &GET_MESSAGES),
    Route::at(Level::Messages, GET, "", &[QueryIs(PEEK_ONLY, "true")], &PEEK_MESSAGES),
    Route::at(Level::Messages, DELETE, "", &[], &CLEAR_MESSAGES),
    Route::at(Level::Message, DELETE, "", &[], &DELETE_MESSAGE),
    Route::at(Level::Message, &[Verb::Put], "", &[], &UPDATE_MESSAGE),
];

/// Put Message: <https://learn.microsoft.com/rest/api/storageservices/put-message>
static PUT_MESSAGE: Operation =
    Operation { name: "Messages_Enqueue", needs: Permission::Add, body: BODY, run: |call| Box::pin(put_message(call)) };

async fn put_message(mut call: Call) -> Result<Answer, Problem> {
    let (invisible, lifetime) = message::lifetime(&call.fields, call.version)?;
    let text = message::parse(&call.document().await?)?;
    let new = NewMessage { text, invisible, lifetime };
    let put = messages::put(&call.engine, call.target.queue()?, new).await?;
    let answer = Answer::created();
    Ok(if call.version < Version::V2016_05_31 { answer } else { answer.xml(message::put(&put)) })
}

/// Get Messages: <https://learn.microsoft.com/rest/api/storageservices/get-messages>
static GET_MESSAGES: Operation = Operation {
    name: "Messages_Dequeue",
    needs: Permission::Process,
    body: Body::None,
    run: |call| Box::pin(get_messages(call)),
};

async fn get_messages(call: Call) -> Result<Answer, Problem> {
    // A GET, but no read: it hides what it answers from everybody else.
    if call.target.secondary {
        return Err(Problem::new(Code::InsufficientAccountPermissions)
            .saying("Messages cannot be taken at the secondary endpoint. They can be peeked at."));
    }
    let (limit, invisible) = (message::limit(&call.fields)?, message::invisible_when_taken(&call.fields)?);
    let taken = messages::take(&call.engine, call.target.queue()?, limit, invisible).await?;
    Ok(Answer::ok().header("cache-control", "no-cache").xml(message::taken(&taken)))
}

/// Peek Messages: <https://learn.microsoft.com/rest/api/storageservices/peek-messages>
static PEEK_MESSAGES: Operation = Operation {
    name: "Messages_Peek",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(peek_messages(call)),
};

async fn peek_messages(call: Call) -> Result<Answer, Problem> {
    let limit = message::limit(&call.fields)?;
    let peeked = messages::peek(&call.engine, call.target.queue()?, limit).await?;
    Ok(Answer::ok().header("cache-control", "no-cache").xml(message::peeked(&peeked)))
}

/// Clear Messages: <https://learn.microsoft.com/rest/api/storageservices/clear-messages>
static CLEAR_MESSAGES: Operation = Operation {
    name: "Messages_Clear",
    needs: Permission::Delete,
    body: Body::None,
    run: |call| Box::pin(clear_messages(call)),
};

async fn clear_messages(call: Call) -> Result<Answer, Problem> {
    messages::clear(&call.engine, call.target.queue()?).await?;
    Ok(done())
}

/// Delete Message: <https://learn.microsoft.com/rest/api/storageservices/delete-message2>
static DELETE_MESSAGE: Operation = Operation {
    name: "MessageId_Delete",
    needs: Permission::Process,
    body: Body::None,
    run: |call| Box::pin(delete_message(call)),
};

async fn delete_message(call: Call) -> Result<Answer, Problem> {
    messages::delete(&call.engine, on(&call)?).await?;
    Ok(done())
}

/// Update Message: <https://learn.microsoft.com/rest/api/storageservices/update-message>
static UPDATE_MESSAGE: Operation = Operation {
    name: "MessageId_Update",
    needs: Permission::Update,
    body: BODY,
    run: |call| Box::pin(update_message(call)),
};

async fn update_message(mut call: Call) -> Result<Answer, Problem> {
    let (on, invisible) = (on(&call)?, message::invisible_when_updated(&call.fields)?);
    let text = message::parse_opt(&call.document().await?)?;
    let held = messages::update(&call.engine, on, invisible, text).await?;
    let answer = done().header("x-ms-popreceipt", message::receipt_text(held.receipt));
    Ok(answer.header("x-ms-time-next-visible", date::rfc1123(held.visible)))
}

/// The message that the call is about, with the receipt of its sender.
fn on(call: &Call) -> Result<OnMessage, Problem> {
    let receipt = message::receipt(&call.fields)?;
    Ok(OnMessage { queue: call.target.queue()?, id: call.target.message(), receipt })
}
