//! Set Blob Tier. <https://learn.microsoft.com/rest/api/storageservices/set-blob-tier>

use lazuli_engine::blob::{OnBlob, tiering};

use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::wire::{condition, lease, part, tier};

/// The routes.
pub(super) const ROUTES: &[Route] = &[Route::blob(&[Verb::Put], "tier", &[], &SET_TIER)];

/// Set Blob Tier: <https://learn.microsoft.com/rest/api/storageservices/set-blob-tier>
static SET_TIER: Operation = Operation {
    name: "Blob_SetTier",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(set_tier(call)),
};

async fn set_tier(call: Call) -> Result<Answer, Problem> {
    let (to, high_priority) = (tier::required(&call.fields, call.version)?, tier::high_priority(&call.fields)?);
    let on = OnBlob {
        part: part::read(&call.fields)?,
        conditions: condition::tags_only(&call.fields)?,
        lease: lease::held(&call.fields)?,
        ..call.on()?
    };
    let set = tiering::set(&call.engine, on, to, high_priority).await?;
    Ok(if set.rehydration.is_some() { Answer::accepted() } else { Answer::ok() })
}
