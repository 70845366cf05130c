//! Immutability policies and legal holds.
//! <https://learn.microsoft.com/azure/storage/blobs/immutable-version-level-worm-policies>

use lazuli_engine::blob::{OnBlob, protecting};

use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::wire::{condition, part, protection};

const POLICIES: &str = "immutabilityPolicies";

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::blob(&[Verb::Put], POLICIES, &[], &SET_POLICY),
    Route::blob(&[Verb::Delete], POLICIES, &[], &DELETE_POLICY),
    Route::blob(&[Verb::Put], "legalhold", &[], &SET_HOLD),
];

/// The blob, snapshot or version that the call is about.
fn addressed(call: &Call) -> Result<OnBlob, Problem> {
    Ok(OnBlob { part: part::read(&call.fields)?, ..call.on()? })
}

/// Set Immutability Policy: <https://learn.microsoft.com/rest/api/storageservices/set-blob-immutability-policy>
static SET_POLICY: Operation = Operation {
    name: "Blob_SetImmutabilityPolicy",
    needs: Permission::Protect,
    body: Body::None,
    run: |call| Box::pin(set_policy(call)),
};

async fn set_policy(call: Call) -> Result<Answer, Problem> {
    let policy = protection::policy(&call.fields)?;
    let on = OnBlob { conditions: condition::unmodified_since(&call.fields)?, ..addressed(&call)? };
    protecting::set_policy(&call.engine, on, policy).await?;
    Ok(protection::policy_onto(Answer::ok(), policy))
}

/// Delete Immutability Policy: <https://learn.microsoft.com/rest/api/storageservices/delete-blob-immutability-policy>
static DELETE_POLICY: Operation = Operation {
    name: "Blob_DeleteImmutabilityPolicy",
    needs: Permission::Protect,
    body: Body::None,
    run: |call| Box::pin(delete_policy(call)),
};

async fn delete_policy(call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    protecting::delete_policy(&call.engine, addressed(&call)?).await?;
    Ok(Answer::ok())
}

/// Set Legal Hold: <https://learn.microsoft.com/rest/api/storageservices/set-blob-legal-hold>
static SET_HOLD: Operation = Operation {
    name: "Blob_SetLegalHold",
    needs: Permission::Protect,
    body: Body::None,
    run: |call| Box::pin(set_hold(call)),
};

async fn set_hold(call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    let hold = protection::hold(&call.fields)?;
    protecting::set_hold(&call.engine, addressed(&call)?, hold).await?;
    Ok(protection::hold_onto(Answer::ok(), hold))
}
