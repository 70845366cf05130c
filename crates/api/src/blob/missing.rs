//! Described operations that are not built: each is routed and authorized like any other, then says so. The list only
//! shrinks.

use crate::error::Problem;
use crate::operation::Permission::{Add, Create, Delegate, Own, Read, Write};
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{Header, HeaderIs, HeaderIsNot, NoQuery, Query};
use crate::route::{Route, Verb};

const GET: &[Verb] = &[Verb::Get];
const PUT: &[Verb] = &[Verb::Put];
const POST: &[Verb] = &[Verb::Post];

const SOURCE: &str = "x-ms-copy-source";
const SYNC: &str = "x-ms-requires-sync";
const KIND: &str = "x-ms-blob-type";
const PAGE_WRITE: &str = "x-ms-page-write";

macro_rules! missing {
    ($($constant:ident $name:literal $needs:expr;)*) => {
        $(static $constant: Operation = missing($name, $needs);)*
    };
}

missing! {
    GET_DELEGATION_KEY "Service_GetUserDelegationKey" Delegate;
    RENAME_CONTAINER "Container_Rename" Own;
    COPY "Blob_StartCopyFromURL" Create;
    COPY_SYNC "Blob_CopyFromURL" Create;
    COPY_ABORT "Blob_AbortCopyFromURL" Write;
    PUT_FROM_URL "BlockBlob_PutBlobFromUrl" Create;
    PUT_BLOCK_FROM_URL "BlockBlob_StageBlockFromURL" Create;
    APPEND_FROM_URL "AppendBlob_AppendBlockFromUrl" Add;
    PUT_PAGE_FROM_URL "PageBlob_UploadPagesFromURL" Write;
    PAGE_RANGES_DIFF "PageBlob_GetPageRangesDiff" Read;
    COPY_INCREMENTAL "PageBlob_CopyIncremental" Create;
}

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::service(POST, "service", "userdelegationkey", &GET_DELEGATION_KEY),
    Route::container(PUT, "rename", &[], &RENAME_CONTAINER),
    // A copy says so by its source; only a new block blob may have both a source and a type.
    Route::blob(PUT, "", &[Header(SOURCE), HeaderIs(KIND, "BlockBlob")], &PUT_FROM_URL),
    Route::blob(PUT, "", &[Header(SOURCE), HeaderIsNot(KIND, "BlockBlob"), HeaderIs(SYNC, "true")], &COPY_SYNC),
    Route::blob(PUT, "", &[Header(SOURCE), HeaderIsNot(KIND, "BlockBlob"), HeaderIsNot(SYNC, "true")], &COPY),
    Route::blob(PUT, "copy", &[], &COPY_ABORT),
    Route::blob(PUT, "block", &[Header(SOURCE)], &PUT_BLOCK_FROM_URL),
    Route::blob(PUT, "appendblock", &[Header(SOURCE)], &APPEND_FROM_URL),
    Route::blob(PUT, "page", &[HeaderIs(PAGE_WRITE, "update"), Header(SOURCE)], &PUT_PAGE_FROM_URL),
    Route::blob(GET, "pagelist", &[Query("prevsnapshot")], &PAGE_RANGES_DIFF),
    Route::blob(GET, "pagelist", &[NoQuery("prevsnapshot"), Header("x-ms-previous-snapshot-url")], &PAGE_RANGES_DIFF),
    Route::blob(PUT, "incrementalcopy", &[], &COPY_INCREMENTAL),
];

const fn missing(name: &'static str, needs: Permission) -> Operation {
    Operation {
        name,
        needs,
        body: Body::None,
        run: |call| Box::pin(std::future::ready(Err(Problem::not_implemented(call.operation.name)))),
    }
}
