//! Page blobs. <https://learn.microsoft.com/rest/api/storageservices/put-page>

use lazuli_engine::blob::pages::{self, PUT_BYTES_MAX, PagesWritten, SetPages};

use super::blocks::received;
use super::object::{stored, to_read, to_write, written};
use super::{aside, bodiless};
use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{Header, HeaderIs, NoHeader, NoQuery};
use crate::route::{Route, Verb};
use crate::wire::{etag, page, properties};

const PUT: &[Verb] = &[Verb::Put];
const SOURCE: &str = "x-ms-copy-source";
const PAGE_WRITE: &str = "x-ms-page-write";
const LENGTH: &str = "x-ms-blob-content-length";

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::blob(PUT, "", &[HeaderIs("x-ms-blob-type", "PageBlob"), NoHeader(SOURCE)], &CREATE),
    Route::blob(PUT, "page", &[HeaderIs(PAGE_WRITE, "update"), NoHeader(SOURCE)], &PUT_PAGE),
    Route::blob(PUT, "page", &[HeaderIs(PAGE_WRITE, "clear")], &CLEAR_PAGE),
    Route::blob(
        &[Verb::Get],
        "pagelist",
        &[NoQuery("prevsnapshot"), NoHeader("x-ms-previous-snapshot-url")],
        &PAGE_RANGES,
    ),
    Route::blob(PUT, "properties", &[Header(LENGTH)], &RESIZE),
    Route::blob(PUT, "properties", &[NoHeader(LENGTH), Header("x-ms-sequence-number-action")], &SEQUENCE_NUMBER),
];

/// Put Blob (page blob): <https://learn.microsoft.com/rest/api/storageservices/put-blob>
static CREATE: Operation = Operation {
    name: "PageBlob_Create",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(create(call)),
};

async fn create(call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    bodiless(&call.fields)?;
    let (length, sequence) = (page::new_length(&call.fields)?, page::sequence(&call.fields)?.unwrap_or(0));
    let stored = stored(&call, properties::of_content(&call.fields)?)?;
    let put = pages::create(&call.engine, on, stored, length, sequence).await?;
    Ok(written(Answer::created(), put))
}

/// The answer to a write of pages.
pub(super) fn answer(answer: Answer, done: PagesWritten) -> Answer {
    written(answer, done.written).header("x-ms-blob-sequence-number", done.sequence.to_string())
}

/// Put Page: <https://learn.microsoft.com/rest/api/storageservices/put-page>
static PUT_PAGE: Operation = Operation {
    name: "PageBlob_UploadPages",
    needs: Permission::Write,
    body: Body::Stream { bytes_max: |_| PUT_BYTES_MAX },
    run: |call| Box::pin(put_page(call)),
};

async fn put_page(mut call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    let (range, conditions) = (page::pages(&call.fields)?, page::conditions(&call.fields)?);
    let as_long = |length: u64| {
        if length == range.length { Ok(()) } else { Err(Problem::header("Content-Length", &length.to_string())) }
    };
    call.body.announced().map_or(Ok(()), as_long)?;
    pages::check_put(&call.engine, &on)?;
    let content = call.stage_body(false).await?;
    as_long(content.length())?;
    let crc64 = content.crc64();
    let put = pages::put(&call.engine, on, conditions, range.first, content).await?;
    received(answer(Answer::created(), put), &call, crc64)
}

/// Clear Pages: <https://learn.microsoft.com/rest/api/storageservices/put-page>
static CLEAR_PAGE: Operation = Operation {
    name: "PageBlob_ClearPages",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(clear_page(call)),
};

async fn clear_page(call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    bodiless(&call.fields)?;
    let (range, conditions) = (page::pages(&call.fields)?, page::conditions(&call.fields)?);
    let cleared = pages::clear(&call.engine, on, conditions, range).await?;
    Ok(answer(Answer::created(), cleared))
}

/// Get Page Ranges: <https://learn.microsoft.com/rest/api/storageservices/get-page-ranges>
static PAGE_RANGES: Operation = Operation {
    name: "PageBlob_GetPageRanges",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(page_ranges(call)),
};

async fn page_ranges(call: Call) -> Result<Answer, Problem> {
    let (on, asked) = (to_read(&call)?, page::asked(&call.fields, call.version)?);
    let ranges = pages::ranges(&call.engine, on, asked, None).await?;
    let (length, version) = (ranges.length, ranges.written.etag);
    let xml = aside(move || page::document(&ranges)).await?;
    Ok(etag::onto(Answer::ok(), version).xml(xml).header("x-ms-blob-content-length", length.to_string()))
}

static RESIZE: Operation = set_operation("PageBlob_Resize");
static SEQUENCE_NUMBER: Operation = set_operation("PageBlob_UpdateSequenceNumber");

/// Set Blob Properties of a page blob: <https://learn.microsoft.com/rest/api/storageservices/set-blob-properties>
const fn set_operation(name: &'static str) -> Operation {
    Operation { name, needs: Permission::Write, body: Body::None, run: |call| Box::pin(set_properties(call)) }
}

async fn set_properties(call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    let change = SetPages {
        length: page::length(&call.fields)?,
        sequence: page::action(&call.fields)?,
        http: properties::to_set(&call.fields)?,
    };
    let set = pages::set(&call.engine, on, change).await?;
    Ok(etag::onto(Answer::ok(), set.written.etag).header("x-ms-blob-sequence-number", set.sequence.to_string()))
}
