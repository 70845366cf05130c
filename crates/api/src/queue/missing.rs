//! Described operations that are not built: each is routed and authorized like any other, then says so. The list only
//! shrinks.

use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};

/// The routes.
pub(super) const ROUTES: &[Route] =
    &[Route::service(&[Verb::Post], "service", "userdelegationkey", &GET_DELEGATION_KEY)];

static GET_DELEGATION_KEY: Operation = Operation {
    name: "Service_GetUserDelegationKey",
    needs: Permission::Own,
    body: Body::None,
    run: |call| Box::pin(std::future::ready(Err(Problem::not_implemented(call.operation.name)))),
};
