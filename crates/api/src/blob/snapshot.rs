//! Snapshot Blob. <https://learn.microsoft.com/rest/api/storageservices/snapshot-blob>

use lazuli_engine::blob::snapshot;

use super::object::{to_write, written};
use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::wire::{date, metadata};

/// The routes.
pub(super) const ROUTES: &[Route] = &[Route::blob(&[Verb::Put], "snapshot", &[], &SNAPSHOT)];

/// Snapshot Blob: <https://learn.microsoft.com/rest/api/storageservices/snapshot-blob>
static SNAPSHOT: Operation = Operation {
    name: "Blob_CreateSnapshot",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(take(call)),
};

async fn take(call: Call) -> Result<Answer, Problem> {
    let (on, metadata) = (to_write(&call)?, metadata::read(&call.fields)?);
    let metadata = (!metadata.0.is_empty()).then_some(metadata);
    let taken = snapshot::take(&call.engine, on, metadata).await?;
    Ok(written(Answer::created(), taken.written).header("x-ms-snapshot", date::iso8601(taken.at)))
}
