//! Page blobs. <https://learn.microsoft.com/rest/api/storageservices/put-page>

use http::HeaderMap;
use lazuli_engine::Engine;
use lazuli_engine::blob::pages::{self, PUT_BYTES_MAX, PagesAsked, PagesWritten, SetPages};
use lazuli_engine::blob::{OnBlob, Part};
use lazuli_engine::clock::Timestamp;

use super::blocks::received;
use super::object::{stored, to_read, to_write, written};
use super::{aside, bodiless};
use crate::answer::Answer;
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::head::HeaderCase;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{Header, HeaderIs, NoHeader, NoQuery, Query};
use crate::route::{Route, Verb};
use crate::target::{Service, Target};
use crate::wire::{date, etag, page, part, properties};

const GET: &[Verb] = &[Verb::Get];
const PUT: &[Verb] = &[Verb::Put];
const SOURCE: &str = "x-ms-copy-source";
const PAGE_WRITE: &str = "x-ms-page-write";
const PREVIOUS: &str = "prevsnapshot";
const PREVIOUS_URL: &str = "x-ms-previous-snapshot-url";
const LENGTH: &str = "x-ms-blob-content-length";

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::blob(PUT, "", &[HeaderIs("x-ms-blob-type", "PageBlob"), NoHeader(SOURCE)], &CREATE),
    Route::blob(PUT, "page", &[HeaderIs(PAGE_WRITE, "update"), NoHeader(SOURCE)], &PUT_PAGE),
    Route::blob(PUT, "page", &[HeaderIs(PAGE_WRITE, "clear")], &CLEAR_PAGE),
    Route::blob(GET, "pagelist", &[NoQuery(PREVIOUS), NoHeader(PREVIOUS_URL)], &PAGE_RANGES),
    Route::blob(GET, "pagelist", &[Query(PREVIOUS)], &PAGE_RANGES_DIFF),
    Route::blob(GET, "pagelist", &[NoQuery(PREVIOUS), Header(PREVIOUS_URL)], &PAGE_RANGES_DIFF),
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

async fn create(mut call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    bodiless(&mut call).await?;
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

async fn clear_page(mut call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    bodiless(&mut call).await?;
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
    listed(&call.engine, on, asked, None).await
}

/// Get Page Ranges against an earlier snapshot: <https://learn.microsoft.com/rest/api/storageservices/get-page-ranges>
static PAGE_RANGES_DIFF: Operation = Operation {
    name: "PageBlob_GetPageRangesDiff",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(page_ranges_diff(call)),
};

async fn page_ranges_diff(call: Call) -> Result<Answer, Problem> {
    let (on, asked) = (to_read(&call)?, page::asked(&call.fields, call.version)?);
    let previous = match call.fields.query_opt(PREVIOUS) {
        Some(text) => {
            date::parse_iso8601(text).ok_or_else(|| Problem::query(PREVIOUS, text, "It is not an instant."))?
        }
        None => previous_of_url(&call, call.fields.header(PREVIOUS_URL)?)?,
    };
    if matches!(on.part, Part::Snapshot(at) if previous > at) {
        return Err(Problem::new(Code::PreviousSnapshotCannotBeNewer));
    }
    let previous = OnBlob { part: Part::Snapshot(previous), ..OnBlob::at(on.address.clone()) };
    listed(&call.engine, on, asked, Some(previous)).await
}

/// The snapshot in the URL of a snapshot of the same blob.
///
/// Refuses `InvalidHeaderValue` for any other.
fn previous_of_url(call: &Call, url: &str) -> Result<Timestamp, Problem> {
    let other = |_| Problem::header(PREVIOUS_URL, url);
    let uri: http::Uri = url.parse().map_err(|_| Problem::header(PREVIOUS_URL, url))?;
    let fields = Fields::parse(HeaderMap::new(), uri.query(), HeaderCase::default()).map_err(other)?;
    let host = uri.host().filter(|_| !call.target.path_style);
    let target = Target::parse(Service::Blob, host, uri.path(), &fields).map_err(other)?;
    match (target.blob(), part::read(&fields)) {
        (Ok(blob), Ok(Part::Snapshot(at))) if blob == call.target.blob()? => Ok(at),
        _ => Err(Problem::header(PREVIOUS_URL, url)),
    }
}

async fn listed(engine: &Engine, on: OnBlob, asked: PagesAsked, previous: Option<OnBlob>) -> Result<Answer, Problem> {
    let ranges = pages::ranges(engine, on, asked, previous).await?;
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
