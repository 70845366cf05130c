//! Described operations that are not built: each is routed and authorized like any other, then says so. The list only
//! shrinks.

use crate::error::Problem;
use crate::operation::Permission::Own;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};

const PUT: &[Verb] = &[Verb::Put];

macro_rules! missing {
    ($($constant:ident $name:literal $needs:expr;)*) => {
        $(static $constant: Operation = missing($name, $needs);)*
    };
}

missing! {
    RENAME_CONTAINER "Container_Rename" Own;
}

/// The routes.
pub(super) const ROUTES: &[Route] = &[Route::container(PUT, "rename", &[], &RENAME_CONTAINER)];

const fn missing(name: &'static str, needs: Permission) -> Operation {
    Operation {
        name,
        needs,
        body: Body::None,
        run: |call| Box::pin(std::future::ready(Err(Problem::not_implemented(call.operation.name)))),
    }
}
