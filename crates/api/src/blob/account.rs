//! Get Account Information. <https://learn.microsoft.com/rest/api/storageservices/get-account-information>

use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Selector, Verb};
use crate::target::Level;
use crate::wire::condition;

/// The routes: the answer is the same wherever it is asked for.
pub(super) const ROUTES: &[Route] =
    &[route(Level::Service, &OF_SERVICE), route(Level::Container, &OF_CONTAINER), route(Level::Blob, &OF_BLOB)];

const fn route(level: Level, operation: &'static Operation) -> Route {
    const VERBS: &[Verb] = &[Verb::Get, Verb::Head];
    let (restype, comp) = (Selector::Is("account"), Selector::Is("properties"));
    Route { verbs: VERBS, level, restype, comp, markers: &[], operation }
}

static OF_SERVICE: Operation = operation("Service_GetAccountInfo");
static OF_CONTAINER: Operation = operation("Container_GetAccountInfo");
static OF_BLOB: Operation = operation("Blob_GetAccountInfo");

/// Get Account Information: <https://learn.microsoft.com/rest/api/storageservices/get-account-information>
///
/// Whether the container or the blob in its path exists does not matter.
const fn operation(name: &'static str) -> Operation {
    Operation { name, needs: Permission::Account, body: Body::None, run: |call| Box::pin(information(call)) }
}

async fn information(call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    let policy = call.engine.policy(&call.target.account);
    Ok(Answer::ok()
        .header("x-ms-sku-name", policy.sku.name())
        .header("x-ms-account-kind", policy.kind.name())
        .header("x-ms-is-hns-enabled", "false")
        .header("content-length", "0"))
}
