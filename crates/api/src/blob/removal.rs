//! Delete Blob and Undelete Blob. <https://learn.microsoft.com/rest/api/storageservices/delete-blob>

use lazuli_engine::blob::Part;
use lazuli_engine::blob::removal::{self, Snapshots};

use super::object::to_change;
use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::version::Version;
use crate::wire::{condition, part};

const SNAPSHOTS: &str = "x-ms-delete-snapshots";
const DELETE_TYPE: &str = "deletetype";

/// The routes.
pub(super) const ROUTES: &[Route] =
    &[Route::blob(&[Verb::Delete], "", &[], &DELETE), Route::blob(&[Verb::Put], "undelete", &[], &UNDELETE)];

/// Delete Blob: <https://learn.microsoft.com/rest/api/storageservices/delete-blob>
static DELETE: Operation =
    Operation { name: "Blob_Delete", needs: Permission::Delete, body: Body::None, run: |call| Box::pin(delete(call)) };

async fn delete(call: Call) -> Result<Answer, Problem> {
    let mut on = to_change(&call)?;
    on.conditions = condition::with_tier(on.conditions, &call.fields)?;
    let snapshots = snapshots(&call.fields, on.part)?;
    let deleted = match call.fields.query_opt(DELETE_TYPE) {
        None => removal::delete(&call.engine, on, snapshots).await?,
        Some(text) if text.eq_ignore_ascii_case("permanent") => removal::delete_for_good(&call.engine, on).await?,
        Some(text) => return Err(Problem::query(DELETE_TYPE, text, "It is not known.")),
    };
    let permanent = (call.version >= Version::V2017_07_29).then(|| deleted.permanent.to_string());
    Ok(Answer::accepted().header_opt("x-ms-delete-type-permanent", permanent))
}

/// What becomes of the snapshots. A snapshot or version has none.
///
/// Refuses `InvalidHeaderValue`, and `InvalidQueryParameterValue` if it is said of a snapshot or version.
fn snapshots(fields: &Fields, part: Part) -> Result<Snapshots, Problem> {
    let Some(text) = fields.header_opt(SNAPSHOTS)? else { return Ok(Snapshots::Refuse) };
    if part != Part::Base {
        let (name, value) = match fields.query_opt("snapshot") {
            Some(value) => ("snapshot", value),
            None => ("versionid", fields.query_opt("versionid").unwrap_or_default()),
        };
        return Err(Problem::query(name, value, "A snapshot or version is deleted without x-ms-delete-snapshots."));
    }
    match text {
        _ if text.eq_ignore_ascii_case("include") => Ok(Snapshots::Include),
        _ if text.eq_ignore_ascii_case("only") => Ok(Snapshots::Only),
        _ => Err(Problem::header(SNAPSHOTS, text)),
    }
}

/// Undelete Blob: <https://learn.microsoft.com/rest/api/storageservices/undelete-blob>
static UNDELETE: Operation = Operation {
    name: "Blob_Undelete",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(undelete(call)),
};

async fn undelete(call: Call) -> Result<Answer, Problem> {
    part::base(&call.fields)?;
    condition::none(&call.fields)?;
    removal::undelete(&call.engine, call.on()?).await?;
    Ok(Answer::ok())
}
