//! Append blobs. <https://learn.microsoft.com/rest/api/storageservices/append-block>

use lazuli_engine::blob::append::{self, AppendConditions, Appended};

use super::blocks::received;
use super::bodiless;
use super::object::{stored, to_write, written};
use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{HeaderIs, NoHeader};
use crate::route::{Route, Verb};
use crate::version::Version;
use crate::wire::{etag, page, properties};

const PUT: &[Verb] = &[Verb::Put];
const MIB: u64 = 1024 * 1024;
const SOURCE: &str = "x-ms-copy-source";
const POSITION: &str = "x-ms-blob-condition-appendpos";
const LENGTH_MAX: &str = "x-ms-blob-condition-maxsize";

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::blob(PUT, "", &[HeaderIs("x-ms-blob-type", "AppendBlob"), NoHeader(SOURCE)], &CREATE),
    Route::blob(PUT, "appendblock", &[NoHeader(SOURCE)], &APPEND),
    Route::blob(PUT, "seal", &[], &SEAL),
];

/// Put Blob (append blob): <https://learn.microsoft.com/rest/api/storageservices/put-blob>
static CREATE: Operation = Operation {
    name: "AppendBlob_Create",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(create(call)),
};

async fn create(mut call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    bodiless(&mut call).await?;
    page::no_sequence(&call.fields)?;
    let stored = stored(&call, properties::of_content(&call.fields)?)?;
    let put = append::create(&call.engine, on, stored).await?;
    Ok(written(Answer::created(), put))
}

/// Append Block: <https://learn.microsoft.com/rest/api/storageservices/append-block>
static APPEND: Operation = Operation {
    name: "AppendBlob_AppendBlock",
    needs: Permission::Add,
    body: Body::Stream { bytes_max: block_bytes_max },
    run: |call| Box::pin(append_block(call)),
};

/// Largest block.
pub(super) fn block_bytes_max(version: Version) -> u64 {
    if version < Version::V2022_11_02 { 4 * MIB } else { 100 * MIB }
}

async fn append_block(mut call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    let conditions = conditions(&call.fields)?;
    append::check_append(&call.engine, &on)?;
    let content = call.stage_body(false).await?;
    if content.length() == 0 {
        return Err(Problem::header("Content-Length", "0"));
    }
    let crc64 = content.crc64();
    let appended = append::append(&call.engine, on, conditions, content).await?;
    received(answer(appended), &call, crc64)
}

/// What an append demands of the blob's length.
///
/// Refuses `InvalidHeaderValue`.
pub(super) fn conditions(fields: &Fields) -> Result<AppendConditions, Problem> {
    Ok(AppendConditions { position: fields.header_number(POSITION)?, length_max: fields.header_number(LENGTH_MAX)? })
}

/// The answer to an append, but for its digest.
pub(super) fn answer(appended: Appended) -> Answer {
    written(Answer::created(), appended.written)
        .header("x-ms-blob-append-offset", appended.offset.to_string())
        .header("x-ms-blob-committed-block-count", appended.blocks.to_string())
}

/// Append Blob Seal: <https://learn.microsoft.com/rest/api/storageservices/append-blob-seal>
static SEAL: Operation =
    Operation { name: "AppendBlob_Seal", needs: Permission::Write, body: Body::None, run: |call| Box::pin(seal(call)) };

async fn seal(call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    let position = call.fields.header_number(POSITION)?;
    let sealed = append::seal(&call.engine, on, position).await?;
    Ok(etag::onto(Answer::ok(), sealed.etag).header("x-ms-blob-sealed", "true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_may_grow_with_the_version() {
        for (version, limit) in [(Version::V2021_02_12, 4), (Version::V2022_11_02, 100), (Version::NEWEST, 100)] {
            assert_eq!(block_bytes_max(version), limit * MIB, "{version}");
        }
    }
}
