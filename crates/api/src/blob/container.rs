//! Containers. <https://learn.microsoft.com/rest/api/storageservices/operations-on-containers>

use lazuli_engine::access::{AccessControl, PublicAccess};
use lazuli_engine::blob::OnContainer;
use lazuli_engine::blob::container::{self, NewContainer};
use lazuli_engine::condition::Conditions;

use crate::answer::Answer;
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::HeaderIs;
use crate::route::{Route, Verb};
use crate::wire::{acl, condition, deletion, encryption, etag, lease, metadata};

/// Most bytes of a list of policies.
const ACL_BYTES_MAX: u64 = 64 * 1024;
const LEASE_ACTION: &str = "x-ms-lease-action";
const GET_HEAD: &[Verb] = &[Verb::Get, Verb::Head];
const PUT: &[Verb] = &[Verb::Put];

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::container(PUT, "", &[], &CREATE),
    Route::container(GET_HEAD, "", &[], &GET_PROPERTIES),
    Route::container(&[Verb::Delete], "", &[], &DELETE),
    Route::container(GET_HEAD, "metadata", &[], &GET_METADATA),
    Route::container(PUT, "metadata", &[], &SET_METADATA),
    Route::container(GET_HEAD, "acl", &[], &GET_ACL),
    Route::container(PUT, "acl", &[], &SET_ACL),
    Route::container(PUT, "undelete", &[], &RESTORE),
    Route::container(PUT, "lease", &[HeaderIs(LEASE_ACTION, "acquire")], &ACQUIRE_LEASE),
    Route::container(PUT, "lease", &[HeaderIs(LEASE_ACTION, "renew")], &RENEW_LEASE),
    Route::container(PUT, "lease", &[HeaderIs(LEASE_ACTION, "change")], &CHANGE_LEASE),
    Route::container(PUT, "lease", &[HeaderIs(LEASE_ACTION, "release")], &RELEASE_LEASE),
    Route::container(PUT, "lease", &[HeaderIs(LEASE_ACTION, "break")], &BREAK_LEASE),
];

/// Create Container: <https://learn.microsoft.com/rest/api/storageservices/create-container>
static CREATE: Operation = Operation {
    name: "Container_Create",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(create(call)),
};

async fn create(call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    let scope = encryption::default_scope(&call.fields, &call.engine.policy(&call.target.account))?;
    let new = NewContainer { metadata: metadata::read(&call.fields)?, public: public_access(&call)?, scope };
    let address = call.target.container()?;
    refuse_system(address.container.as_str())?;
    let written = container::create(&call.engine, address, new).await?;
    Ok(etag::onto(Answer::created(), written.etag))
}

/// Get Container Properties: <https://learn.microsoft.com/rest/api/storageservices/get-container-properties>
static GET_PROPERTIES: Operation = Operation {
    name: "Container_GetProperties",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get_properties(call)),
};

async fn get_properties(call: Call) -> Result<Answer, Problem> {
    let view = container::get(&call.engine, on(&call, condition::none(&call.fields)?)?).await?;
    let immutability = call.engine.policy(&call.target.account).immutability;
    let answer = etag::onto(Answer::ok(), view.etag)
        .header_opt(acl::PUBLIC_ACCESS, acl::public_access_text(view.access.public))
        // Of the container as a whole, which only a management plane sets.
        .header("x-ms-has-immutability-policy", "false")
        .header("x-ms-has-legal-hold", "false")
        .header("x-ms-immutable-storage-with-versioning-enabled", if immutability { "true" } else { "false" })
        .header(encryption::DEFAULT_SCOPE, encryption::scope_text(&view.scope))
        .header(encryption::DENY_OVERRIDE, if view.scope.fixed { "true" } else { "false" });
    Ok(metadata::onto(lease::onto(answer, &view.lease), &view.metadata))
}

/// Get Container Metadata: <https://learn.microsoft.com/rest/api/storageservices/get-container-metadata>
static GET_METADATA: Operation = Operation {
    name: "Container_GetMetadata",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get_metadata(call)),
};

async fn get_metadata(call: Call) -> Result<Answer, Problem> {
    let view = container::get(&call.engine, on(&call, condition::none(&call.fields)?)?).await?;
    Ok(metadata::onto(etag::onto(Answer::ok(), view.etag), &view.metadata))
}

/// Set Container Metadata: <https://learn.microsoft.com/rest/api/storageservices/set-container-metadata>
static SET_METADATA: Operation = Operation {
    name: "Container_SetMetadata",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(set_metadata(call)),
};

async fn set_metadata(call: Call) -> Result<Answer, Problem> {
    let metadata = metadata::read(&call.fields)?;
    let on = on(&call, condition::modified_since(&call.fields)?)?;
    let written = container::set_metadata(&call.engine, on, metadata).await?;
    Ok(etag::onto(Answer::ok(), written.etag))
}

/// Get Container ACL: <https://learn.microsoft.com/rest/api/storageservices/get-container-acl>
static GET_ACL: Operation = Operation {
    name: "Container_GetAccessPolicy",
    needs: Permission::Own,
    body: Body::None,
    run: |call| Box::pin(get_acl(call)),
};

async fn get_acl(call: Call) -> Result<Answer, Problem> {
    let view = container::get(&call.engine, on(&call, condition::none(&call.fields)?)?).await?;
    acl::check_version(&view.access.policies, call.version)?;
    let answer =
        etag::onto(Answer::ok(), view.etag).header_opt(acl::PUBLIC_ACCESS, acl::public_access_text(view.access.public));
    Ok(answer.xml(acl::document(&view.access.policies)))
}

/// Set Container ACL: <https://learn.microsoft.com/rest/api/storageservices/set-container-acl>
static SET_ACL: Operation = Operation {
    name: "Container_SetAccessPolicy",
    needs: Permission::Own,
    body: Body::Document { bytes_max: ACL_BYTES_MAX },
    run: |call| Box::pin(set_acl(call)),
};

async fn set_acl(mut call: Call) -> Result<Answer, Problem> {
    let on = on(&call, condition::dates(&call.fields)?)?;
    let public = public_access(&call)?;
    let policies = acl::parse(&call.document().await?, acl::CONTAINER_PERMISSIONS)?;
    let written = container::set_access(&call.engine, on, AccessControl { public, policies }).await?;
    Ok(etag::onto(Answer::ok(), written.etag))
}

/// Delete Container: <https://learn.microsoft.com/rest/api/storageservices/delete-container>
static DELETE: Operation = Operation {
    name: "Container_Delete",
    needs: Permission::Delete,
    body: Body::None,
    run: |call| Box::pin(delete(call)),
};

async fn delete(call: Call) -> Result<Answer, Problem> {
    let on = on(&call, condition::dates(&call.fields)?)?;
    refuse_system(on.address.container.as_str())?;
    container::delete(&call.engine, on).await?;
    Ok(Answer::accepted())
}

/// Restore Container: <https://learn.microsoft.com/rest/api/storageservices/restore-container>
static RESTORE: Operation = Operation {
    name: "Container_Restore",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(restore(call)),
};

async fn restore(call: Call) -> Result<Answer, Problem> {
    const NAME: &str = "x-ms-deleted-container-name";
    const VERSION: &str = "x-ms-deleted-container-version";
    condition::none(&call.fields)?;
    let address = call.target.container()?;
    let name = call.fields.header(NAME)?;
    if name != address.container.as_str() {
        // Azure no longer restores under another name.
        return Err(Problem::header(NAME, name));
    }
    let text = call.fields.header(VERSION)?;
    let deleted = deletion::parse_version(text).ok_or_else(|| Problem::header(VERSION, text))?;
    container::restore(&call.engine, address, deleted).await?;
    Ok(Answer::created())
}

static ACQUIRE_LEASE: Operation = lease_operation("Container_AcquireLease", Permission::Write);
static RENEW_LEASE: Operation = lease_operation("Container_RenewLease", Permission::Write);
static CHANGE_LEASE: Operation = lease_operation("Container_ChangeLease", Permission::Write);
static RELEASE_LEASE: Operation = lease_operation("Container_ReleaseLease", Permission::Write);
static BREAK_LEASE: Operation = lease_operation("Container_BreakLease", Permission::BreakLease);

/// Lease Container: <https://learn.microsoft.com/rest/api/storageservices/lease-container>
const fn lease_operation(name: &'static str, needs: Permission) -> Operation {
    Operation { name, needs, body: Body::None, run: |call| Box::pin(lease_container(call)) }
}

async fn lease_container(call: Call) -> Result<Answer, Problem> {
    let (conditions, action) = (condition::dates(&call.fields)?, lease::action(&call.fields)?);
    let on = OnContainer { address: call.target.container()?, conditions, lease: None };
    let leased = container::lease(&call.engine, on, action).await?;
    Ok(etag::onto(lease::answer(action, &leased), leased.etag))
}

/// The container that the call is about, with the lease that its sender says to hold.
fn on(call: &Call, conditions: Conditions) -> Result<OnContainer, Problem> {
    Ok(OnContainer { address: call.target.container()?, conditions, lease: lease::held(&call.fields)? })
}

/// The public access that the container is to have, if its account allows it.
///
/// Refuses `InvalidHeaderValue` and `PublicAccessNotPermitted`.
fn public_access(call: &Call) -> Result<PublicAccess, Problem> {
    let public = acl::public_access(&call.fields)?;
    if public != PublicAccess::Private && !call.arrival.rules(&call.target.account).public_access {
        return Err(Problem::new(Code::PublicAccessNotPermitted));
    }
    Ok(public)
}

/// The service itself makes these; clients neither create nor delete them.
fn refuse_system(name: &str) -> Result<(), Problem> {
    if matches!(name, "$logs" | "$blobchangefeed") {
        return Err(Problem::new(Code::InvalidResourceName));
    }
    Ok(())
}
