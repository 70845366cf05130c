//! Incremental copies of page blobs.

use lazuli_engine::Refusal;
use lazuli_engine::blob::Part;
use lazuli_engine::blob::copying::CopyStatus;
use lazuli_engine::blob::incremental::{self, IncrementalCopy};
use uuid::Uuid;

use super::copy_answer;
use super::origin::{Origin, Place, origin, refused};
use crate::answer::Answer;
use crate::blob::object::to_write;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::wire::encryption;

/// Incremental Copy Blob: <https://learn.microsoft.com/rest/api/storageservices/incremental-copy-blob>
pub(super) static COPY: Operation = Operation {
    name: "PageBlob_CopyIncremental",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(copy(call)),
};

async fn copy(call: Call) -> Result<Answer, Problem> {
    encryption::none(&call.fields)?;
    let target = to_write(&call)?;
    let Origin { url, place, .. } = origin(&call).await?;
    let id = Uuid::new_v4();
    match place {
        Place::Own(source) if !matches!(source.part, Part::Snapshot(_)) => {
            Err(refused(Refusal::SourceNotSnapshot.into()))
        }
        Place::Own(source) => {
            let copied = incremental::copy(&call.engine, source, target, IncrementalCopy { id, url }).await;
            Ok(copy_answer(copied.map_err(refused)?, id, CopyStatus::Success))
        }
        Place::Remote(_) => Err(Problem::not_implemented("Incremental Copy Blob of a blob of another server")),
    }
}
