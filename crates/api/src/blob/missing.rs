//! Described operations that are not built: each is routed and authorized like any other, then says so. The list only
//! shrinks.

use crate::error::Problem;
use crate::operation::Permission::{Create, Own, Protect, Write};
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};

const PUT: &[Verb] = &[Verb::Put];
const DELETE: &[Verb] = &[Verb::Delete];

macro_rules! missing {
    ($($constant:ident $name:literal $needs:expr;)*) => {
        $(static $constant: Operation = missing($name, $needs);)*
    };
}

missing! {
    RENAME_CONTAINER "Container_Rename" Own;
    SET_TIER "Blob_SetTier" Write;
    SET_EXPIRY "Blob_SetExpiry" Write;
    SET_IMMUTABILITY "Blob_SetImmutabilityPolicy" Protect;
    DELETE_IMMUTABILITY "Blob_DeleteImmutabilityPolicy" Protect;
    SET_LEGAL_HOLD "Blob_SetLegalHold" Protect;
    COPY_INCREMENTAL "PageBlob_CopyIncremental" Create;
}

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::container(PUT, "rename", &[], &RENAME_CONTAINER),
    Route::blob(PUT, "tier", &[], &SET_TIER),
    Route::blob(PUT, "expiry", &[], &SET_EXPIRY),
    Route::blob(PUT, "immutabilityPolicies", &[], &SET_IMMUTABILITY),
    Route::blob(DELETE, "immutabilityPolicies", &[], &DELETE_IMMUTABILITY),
    Route::blob(PUT, "legalhold", &[], &SET_LEGAL_HOLD),
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
