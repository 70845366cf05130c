//! Tags of blobs, and finding blobs by them.
//! <https://learn.microsoft.com/azure/storage/blobs/storage-manage-find-blobs>

use lazuli_engine::blob::tags::{self, FindBlobs};
use lazuli_engine::blob::{OnBlob, Part};

use super::aside;
use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::wire::listing::{Paging, service_endpoint};
use crate::wire::tags::expression;
use crate::wire::{condition, lease, listing, part, tags as wire};

/// Most bytes of a body that carries ten tags of the longest kind, indented and escaped.
const TAGS_BYTES_MAX: u64 = 64 * 1024;

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::blob(&[Verb::Get], "tags", &[], &GET_TAGS),
    Route::blob(&[Verb::Put], "tags", &[], &SET_TAGS),
    Route::service(&[Verb::Get], "", "blobs", &FIND_IN_SERVICE),
    Route::container(&[Verb::Get], "blobs", &[], &FIND_IN_CONTAINER),
];

/// The blob whose tags a request is about.
fn tagged(call: &Call) -> Result<OnBlob, Problem> {
    Ok(OnBlob {
        part: part::read(&call.fields)?,
        conditions: condition::of_tags(&call.fields)?,
        lease: lease::held(&call.fields)?,
        ..call.on()?
    })
}

/// Get Blob Tags: <https://learn.microsoft.com/rest/api/storageservices/get-blob-tags>
static GET_TAGS: Operation =
    Operation { name: "Blob_GetTags", needs: Permission::Tag, body: Body::None, run: |call| Box::pin(get_tags(call)) };

async fn get_tags(call: Call) -> Result<Answer, Problem> {
    let tags = tags::get(&call.engine, tagged(&call)?).await?;
    Ok(Answer::ok().xml(wire::document(&tags)))
}

/// Set Blob Tags: <https://learn.microsoft.com/rest/api/storageservices/set-blob-tags>
static SET_TAGS: Operation = Operation {
    name: "Blob_SetTags",
    needs: Permission::Tag,
    body: Body::Document { bytes_max: TAGS_BYTES_MAX },
    run: |call| Box::pin(set_tags(call)),
};

async fn set_tags(mut call: Call) -> Result<Answer, Problem> {
    let on = tagged(&call)?;
    if let Part::Snapshot(_) = on.part {
        part::base(&call.fields)?;
    }
    let tags = wire::parse(&call.document().await?)?;
    tags::set(&call.engine, on, tags).await?;
    Ok(Answer::new(http::StatusCode::NO_CONTENT))
}

static FIND_IN_SERVICE: Operation = find_operation("Service_FilterBlobs");
static FIND_IN_CONTAINER: Operation = find_operation("Container_FilterBlobs");

/// Find Blobs by Tags: <https://learn.microsoft.com/rest/api/storageservices/find-blobs-by-tags>
const fn find_operation(name: &'static str) -> Operation {
    Operation { name, needs: Permission::Filter, body: Body::None, run: |call| Box::pin(find(call)) }
}

async fn find(call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    let text = call.fields.query("where")?;
    let search = expression::search(text).map_err(|reason| Problem::query("where", text, &reason))?;
    let paging = Paging::parse(&call.fields)?;
    let versions = listing::find_versions(&call.fields)?;
    let within = match call.target.level() {
        crate::target::Level::Service => search.container,
        _ => {
            let container = call.target.container()?.container;
            if search.container.is_some_and(|named| named != container) {
                return Err(Problem::query("where", text, "It names another container than the address."));
            }
            Some(container)
        }
    };
    let request = FindBlobs {
        account: call.target.account.clone(),
        container: within,
        terms: search.terms,
        versions,
        start: paging.start.clone(),
        limit: paging.limit,
    };
    let (endpoint, text) = (service_endpoint(&call.fields, &call.target, call.arrival.peer)?, text.to_owned());
    let page = tags::find(&call.engine, request).await?;
    let xml = aside(move || listing::found(&endpoint, &text, &page));
    Ok(Answer::ok().xml(xml.await?))
}
