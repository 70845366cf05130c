//! Described operations that are not built: each is routed and authorized like any other, then says so. The list only
//! shrinks.

use crate::error::Problem;
use crate::operation::Permission::{Add, Create, Own, Protect, Write};
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{Header, HeaderIs, HeaderIsNot};
use crate::route::{Route, Verb};

const PUT: &[Verb] = &[Verb::Put];
const DELETE: &[Verb] = &[Verb::Delete];

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
    RENAME_CONTAINER "Container_Rename" Own;
    COPY "Blob_StartCopyFromURL" Create;
    COPY_SYNC "Blob_CopyFromURL" Create;
    COPY_ABORT "Blob_AbortCopyFromURL" Write;
    SET_TIER "Blob_SetTier" Write;
    SET_EXPIRY "Blob_SetExpiry" Write;
    SET_IMMUTABILITY "Blob_SetImmutabilityPolicy" Protect;
    DELETE_IMMUTABILITY "Blob_DeleteImmutabilityPolicy" Protect;
    SET_LEGAL_HOLD "Blob_SetLegalHold" Protect;
    PUT_FROM_URL "BlockBlob_PutBlobFromUrl" Create;
    PUT_BLOCK_FROM_URL "BlockBlob_StageBlockFromURL" Create;
    APPEND_FROM_URL "AppendBlob_AppendBlockFromUrl" Add;
    PUT_PAGE_FROM_URL "PageBlob_UploadPagesFromURL" Write;
    COPY_INCREMENTAL "PageBlob_CopyIncremental" Create;
}

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::container(PUT, "rename", &[], &RENAME_CONTAINER),
    // A copy says so by its source; only a new block blob may have both a source and a type.
    Route::blob(PUT, "", &[Header(SOURCE), HeaderIs(KIND, "BlockBlob")], &PUT_FROM_URL),
    Route::blob(PUT, "", &[Header(SOURCE), HeaderIsNot(KIND, "BlockBlob"), HeaderIs(SYNC, "true")], &COPY_SYNC),
    Route::blob(PUT, "", &[Header(SOURCE), HeaderIsNot(KIND, "BlockBlob"), HeaderIsNot(SYNC, "true")], &COPY),
    Route::blob(PUT, "copy", &[], &COPY_ABORT),
    Route::blob(PUT, "tier", &[], &SET_TIER),
    Route::blob(PUT, "expiry", &[], &SET_EXPIRY),
    Route::blob(PUT, "immutabilityPolicies", &[], &SET_IMMUTABILITY),
    Route::blob(DELETE, "immutabilityPolicies", &[], &DELETE_IMMUTABILITY),
    Route::blob(PUT, "legalhold", &[], &SET_LEGAL_HOLD),
    Route::blob(PUT, "block", &[Header(SOURCE)], &PUT_BLOCK_FROM_URL),
    Route::blob(PUT, "appendblock", &[Header(SOURCE)], &APPEND_FROM_URL),
    Route::blob(PUT, "page", &[HeaderIs(PAGE_WRITE, "update"), Header(SOURCE)], &PUT_PAGE_FROM_URL),
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
