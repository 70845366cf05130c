//! Copies. <https://learn.microsoft.com/rest/api/storageservices/copy-blob>

mod incremental;
mod origin;
mod parts;

use http::StatusCode;
use lazuli_engine::Refusal;
use lazuli_engine::blob::copy::{self, CopyKind, CopyRequest, Fetched, SYNC_BYTES_MAX};
use lazuli_engine::blob::copying::CopyStatus;
use lazuli_engine::blob::kind::BlobKind;
use lazuli_engine::blob::{OnBlob, Written, pending};
use lazuli_engine::properties::HttpProperties;
use lazuli_engine::tags::Tags;
use uuid::Uuid;

use super::blocks::addressed;
use super::bodiless;
use super::object::{to_write, written};
use crate::answer::Answer;
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::integrity::Integrity;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{Header, HeaderIs, HeaderIsNot};
use crate::route::{Route, Verb};
use crate::wire::copy::status_text;
use crate::wire::{condition, digest, encryption, metadata, properties, protection, tags, tier};
use origin::{Origin, Place, SOURCE, origin, refused, unverified};

const PUT: &[Verb] = &[Verb::Put];
const SYNC: &str = "x-ms-requires-sync";
const KIND: &str = "x-ms-blob-type";
const PROPERTIES: &str = "x-ms-copy-source-blob-properties";
const TAG_OPTION: &str = "x-ms-copy-source-tag-option";
const SEAL: &str = "x-ms-seal-blob";
const MIB: u64 = 1024 * 1024;
/// Largest source of Put Blob From URL.
const PUT_BYTES_MAX: u64 = 5000 * MIB;

/// The routes. A copy says so by its source; only a new block blob may have both a source and a type.
pub(super) const ROUTES: &[Route] = &[
    Route::blob(PUT, "", &[Header(SOURCE), HeaderIs(KIND, "BlockBlob")], &PUT_FROM_URL),
    Route::blob(PUT, "", &[Header(SOURCE), HeaderIsNot(KIND, "BlockBlob"), HeaderIs(SYNC, "true")], &COPY_SYNC),
    Route::blob(PUT, "", &[Header(SOURCE), HeaderIsNot(KIND, "BlockBlob"), HeaderIsNot(SYNC, "true")], &COPY),
    Route::blob(PUT, "incrementalcopy", &[], &incremental::COPY),
    Route::blob(PUT, "copy", &[HeaderIs("x-ms-copy-action", "abort")], &ABORT),
    Route::blob(PUT, "block", &[Header(SOURCE)], &parts::PUT_BLOCK),
    Route::blob(PUT, "appendblock", &[Header(SOURCE)], &parts::APPEND_BLOCK),
    Route::blob(PUT, "page", &[HeaderIs("x-ms-page-write", "update"), Header(SOURCE)], &parts::PUT_PAGE),
];

/// Copy Blob: <https://learn.microsoft.com/rest/api/storageservices/copy-blob>
static COPY: Operation = Operation {
    name: "Blob_StartCopyFromURL",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(start(call)),
};

async fn start(mut call: Call) -> Result<Answer, Problem> {
    bodiless(&mut call).await?;
    encryption::none(&call.fields)?;
    let target = to_write(&call)?;
    let Origin { url, place, .. } = origin(&call).await?;
    let request = request(&call, CopyKind::Start, url)?;
    let id = request.id;
    match place {
        Place::Own(source) => {
            let copied = copy::copy(&call.engine, source, target, request).await.map_err(refused)?;
            Ok(copy_answer(copied, id, CopyStatus::Success))
        }
        Place::Remote(ask) => {
            copy::check(&call.engine, &target, CopyKind::Start).map_err(refused)?;
            let source = origin::describe(&call, ask).await?;
            let begun = pending::begin(&call.engine, target, request, source).await.map_err(refused)?;
            Ok(copy_answer(begun.written, id, begun.status))
        }
    }
}

/// Abort Copy Blob: <https://learn.microsoft.com/rest/api/storageservices/abort-copy-blob>
static ABORT: Operation = Operation {
    name: "Blob_AbortCopyFromURL",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(abort(call)),
};

async fn abort(call: Call) -> Result<Answer, Problem> {
    const ID: &str = "copyid";
    let target = OnBlob { conditions: condition::none(&call.fields)?, ..addressed(&call)? };
    let text = call.fields.query(ID)?;
    let id = Uuid::try_parse(text).map_err(|_| Problem::query(ID, text, "It is not a copy's id."))?;
    pending::abort(&call.engine, target, id).await?;
    Ok(Answer::new(StatusCode::NO_CONTENT))
}

/// Copy Blob From URL: <https://learn.microsoft.com/rest/api/storageservices/copy-blob-from-url>
static COPY_SYNC: Operation = Operation {
    name: "Blob_CopyFromURL",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(copy_sync(call)),
};

async fn copy_sync(mut call: Call) -> Result<Answer, Problem> {
    bodiless(&mut call).await?;
    encryption::none(&call.fields)?;
    let target = to_write(&call)?;
    let checks = [Integrity::of_source(&call.fields)?];
    let Origin { url, place, reads_tags } = origin(&call).await?;
    let request = request(&call, CopyKind::Sync, url)?;
    check_tags(&request, reads_tags)?;
    let id = request.id;
    let copied = copied(&call, target, place, request, &checks, SYNC_BYTES_MAX).await?;
    Ok(checked(copy_answer(copied.0, id, CopyStatus::Success), &checks, copied.1))
}

/// Put Blob From URL: <https://learn.microsoft.com/rest/api/storageservices/put-blob-from-url>
static PUT_FROM_URL: Operation = Operation {
    name: "BlockBlob_PutBlobFromUrl",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(put_from_url(call)),
};

async fn put_from_url(mut call: Call) -> Result<Answer, Problem> {
    bodiless(&mut call).await?;
    let target = to_write(&call)?;
    // Both mean the bytes of the new blob, which are those of the source.
    let checks = [Integrity::of_source(&call.fields)?, Integrity::given(&call.fields)?];
    let Origin { url, place, reads_tags } = origin(&call).await?;
    let request = CopyRequest {
        http: properties::of_blob(&call.fields)?,
        keep_http: keeps_properties(&call.fields)?,
        ..request(&call, CopyKind::Put, url)?
    };
    check_tags(&request, reads_tags)?;
    let (put, crc64) = copied(&call, target, place, request, &checks, PUT_BYTES_MAX).await?;
    Ok(checked(written(Answer::created(), put), &checks, crc64))
}

/// What the call says about the copy beside its two sides.
fn request(call: &Call, kind: CopyKind, url: String) -> Result<CopyRequest, Problem> {
    let fields = &call.fields;
    // An archived source is copied at once, whatever the hurry; the word must still be one.
    tier::high_priority(fields)?;
    let given = metadata::read(fields)?;
    Ok(CopyRequest {
        kind,
        id: Uuid::new_v4(),
        url,
        http: HttpProperties::default(),
        keep_http: true,
        metadata: (!given.0.is_empty()).then_some(given),
        tags: tags_of(fields, kind)?,
        scope: encryption::scope(fields, &call.engine.policy(&call.target.account))?,
        tier: tier::of_new(fields, call.version)?,
        protection: protection::of_new(fields)?,
        seal: flag(fields, SEAL)?,
    })
}

/// The tags of the new blob; none: the source's.
fn tags_of(fields: &Fields, kind: CopyKind) -> Result<Option<Tags>, Problem> {
    let given = tags::of_header(fields)?;
    match fields.header_opt(TAG_OPTION)? {
        None => Ok(Some(given)),
        Some(_) if kind == CopyKind::Start => {
            Err(Problem::new(Code::UnsupportedHeader).detail("HeaderName", TAG_OPTION))
        }
        Some(option) if option.eq_ignore_ascii_case("REPLACE") => Ok(Some(given)),
        Some(option) if option.eq_ignore_ascii_case("COPY") && given.is_empty() => Ok(None),
        Some(option) if option.eq_ignore_ascii_case("COPY") => {
            Err(Problem::new(Code::BothUserTagsAndSourceTagsCopyPresentException))
        }
        Some(option) => Err(Problem::header(TAG_OPTION, option)),
    }
}

/// Sees to it that who wants the source's tags may read them.
fn check_tags(request: &CopyRequest, reads_tags: bool) -> Result<(), Problem> {
    if request.tags.is_some() || reads_tags {
        return Ok(());
    }
    Err(unverified(&Problem::new(Code::AuthorizationPermissionMismatch)))
}

fn keeps_properties(fields: &Fields) -> Result<bool, Problem> {
    Ok(flag(fields, PROPERTIES)?.unwrap_or(true))
}

fn flag(fields: &Fields, name: &str) -> Result<Option<bool>, Problem> {
    match fields.header_opt(name)? {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(Problem::header(name, text)),
    }
}

/// Copies within the request; answers the CRC-64 too if the bytes were read for it. Bytes of this server are shared,
/// after they were read if the call says what their digest is, unless they are or are to be under a customer's key.
async fn copied(
    call: &Call,
    target: OnBlob,
    place: Place,
    request: CopyRequest,
    checks: &[Integrity],
    bytes_max: u64,
) -> Result<(Written, Option<u64>), Problem> {
    let shares = match &place {
        Place::Own(source) => {
            let kind = copy::source(&call.engine, source).map_err(refused)?.kind;
            let keyed = target.key.is_some() || source.key.is_some();
            !keyed && (request.kind != CopyKind::Put || kind.is_like(BlobKind::Block))
        }
        Place::Remote(_) => false,
    };
    match place {
        Place::Own(mut source) if shares => {
            if checks.iter().any(|check| check.is_stated()) {
                let opened = origin::open(call, &Place::Own(source.clone()), None, bytes_max).await?;
                source.conditions = opened.own_version.clone().unwrap_or_default();
                opened.verify(checks).await?;
            }
            let copied = copy::copy(&call.engine, source, target, request).await;
            Ok((copied.map_err(refused)?, None))
        }
        place => {
            copy::check(&call.engine, &target, request.kind).map_err(refused)?;
            let opened = origin::open(call, &place, None, bytes_max).await;
            let mut opened = opened.map_err(|problem| match problem.code {
                Code::RequestBodyTooLarge if request.kind == CopyKind::Sync => refused(Refusal::SourceTooLarge.into()),
                _ => problem,
            })?;
            let (http, metadata) = (std::mem::take(&mut opened.http), std::mem::take(&mut opened.metadata));
            let content = opened.stage(call, checks, false).await?;
            let crc64 = content.crc64();
            let tags = if request.tags.is_none() { origin::tags(call, &place).await? } else { Tags::default() };
            let fetched = Fetched { http, metadata, tags, content };
            let put = copy::put(&call.engine, target, request, fetched).await.map_err(refused)?;
            Ok((put, Some(crc64)))
        }
    }
}

fn copy_answer(copied: Written, id: Uuid, status: CopyStatus) -> Answer {
    written(Answer::accepted(), copied)
        .header("x-ms-copy-id", id.to_string())
        .header("x-ms-copy-status", status_text(status))
}

/// The answer with the digest that was found right, else with the one that was computed.
fn checked(answer: Answer, checks: &[Integrity], crc64: Option<u64>) -> Answer {
    checks.iter().fold(answer.header_opt("x-ms-content-crc64", crc64.map(digest::crc64_text)), |answer, check| {
        match *check {
            Integrity::Md5(md5) => answer.header("content-md5", digest::md5_text(md5)),
            Integrity::Crc64(crc64) => answer.header("x-ms-content-crc64", digest::crc64_text(crc64)),
            Integrity::Unstated => answer,
        }
    })
}
