//! Parts of blobs whose bytes come from a URL: blocks, appended blocks and pages.

use lazuli_engine::blob::pages::PUT_BYTES_MAX;
use lazuli_engine::blob::{OnBlob, append, blocks, copy, pages};

use super::origin::{self, Origin, Place, origin, refused};
use super::{checked, to_write};
use crate::answer::Answer;
use crate::blob::blocks::{addressed, block_bytes_max};
use crate::blob::{append as appending, bodiless, pages as paging};
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::integrity::Integrity;
use crate::operation::{Body, Operation, Permission};
use crate::wire::{block_list, condition, page};

/// Put Block From URL: <https://learn.microsoft.com/rest/api/storageservices/put-block-from-url>
pub(super) static PUT_BLOCK: Operation = Operation {
    name: "BlockBlob_StageBlockFromURL",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(put_block(call)),
};

async fn put_block(mut call: Call) -> Result<Answer, Problem> {
    bodiless(&mut call).await?;
    let target = OnBlob { conditions: condition::none(&call.fields)?, ..addressed(&call)? };
    let id = block_list::parse_id(call.fields.query("blockid")?)?;
    let checks = [Integrity::of_source(&call.fields)?];
    let range = origin::source_range(&call.fields)?;
    blocks::check_block(&call.engine, &target, &id)?;
    let Origin { place, .. } = origin(&call).await?;
    let answer = Answer::created().header("x-ms-request-server-encrypted", "true");
    if let (Place::Own(source), [Integrity::Unstated]) = (&place, checks)
        && source.key.is_none()
        && target.key.is_none()
        && copy::put_block(&call.engine, source.clone(), range, target.clone(), id.clone()).await.map_err(refused)?
    {
        return Ok(answer);
    }
    let opened = origin::open(&call, &place, range, block_bytes_max(call.version)).await?;
    not_empty(opened.remaining())?;
    let content = opened.stage(&call, &checks, false).await?;
    let crc64 = content.crc64();
    blocks::put_block(&call.engine, target, id, content).await?;
    Ok(checked(answer, &checks, Some(crc64)))
}

fn not_empty(length: u64) -> Result<(), Problem> {
    if length == 0 {
        return Err(Problem::new(Code::InvalidInput).saying("A block has at least one byte; the source has none."));
    }
    Ok(())
}

/// Append Block From URL: <https://learn.microsoft.com/rest/api/storageservices/append-block-from-url>
pub(super) static APPEND_BLOCK: Operation = Operation {
    name: "AppendBlob_AppendBlockFromUrl",
    needs: Permission::Add,
    body: Body::None,
    run: |call| Box::pin(append_block(call)),
};

async fn append_block(mut call: Call) -> Result<Answer, Problem> {
    bodiless(&mut call).await?;
    let target = to_write(&call)?;
    let conditions = appending::conditions(&call.fields)?;
    let checks = [Integrity::of_source(&call.fields)?];
    let range = origin::source_range(&call.fields)?;
    append::check_append(&call.engine, &target)?;
    let Origin { place, .. } = origin(&call).await?;
    let opened = origin::open(&call, &place, range, appending::block_bytes_max(call.version)).await?;
    not_empty(opened.remaining())?;
    let content = opened.stage(&call, &checks, false).await?;
    let crc64 = content.crc64();
    let appended = append::append(&call.engine, target, conditions, content).await?;
    Ok(checked(appending::answer(appended), &checks, Some(crc64)))
}

/// Put Page From URL: <https://learn.microsoft.com/rest/api/storageservices/put-page-from-url>
pub(super) static PUT_PAGE: Operation = Operation {
    name: "PageBlob_UploadPagesFromURL",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(put_page(call)),
};

async fn put_page(mut call: Call) -> Result<Answer, Problem> {
    bodiless(&mut call).await?;
    let target = to_write(&call)?;
    let (pages, conditions) = (page::pages(&call.fields)?, page::conditions(&call.fields)?);
    let checks = [Integrity::of_source(&call.fields)?];
    let range = origin::source_range(&call.fields)?.ok_or_else(|| Problem::missing_header(origin::RANGE))?;
    pages::check_put(&call.engine, &target)?;
    let Origin { place, .. } = origin(&call).await?;
    let opened = origin::open(&call, &place, Some(range), PUT_BYTES_MAX).await?;
    if opened.remaining() != pages.length {
        let given = call.fields.header(origin::RANGE)?;
        return Err(
            Problem::header(origin::RANGE, given).saying("The range of the source is not as long as the pages.")
        );
    }
    let content = opened.stage(&call, &checks, false).await?;
    let crc64 = content.crc64();
    let put = pages::put(&call.engine, target, conditions, pages.first, content).await?;
    Ok(checked(paging::answer(Answer::created(), put), &checks, Some(crc64)))
}
