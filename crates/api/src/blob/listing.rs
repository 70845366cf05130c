//! List Blobs. <https://learn.microsoft.com/rest/api/storageservices/list-blobs>

use lazuli_engine::blob::listing::{self, ListBlobs};

use super::aside;
use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{NoQuery, Query};
use crate::route::{Route, Verb};
use crate::wire::condition;
use crate::wire::listing::{BlobsHead, Paging, blob_includes, blobs, service_endpoint};

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::container(&[Verb::Get], "list", &[NoQuery("delimiter")], &LIST_FLAT),
    Route::container(&[Verb::Get], "list", &[Query("delimiter")], &LIST_HIERARCHY),
];

static LIST_FLAT: Operation = list_operation("Container_ListBlobFlatSegment");
static LIST_HIERARCHY: Operation = list_operation("Container_ListBlobHierarchySegment");

/// List Blobs: <https://learn.microsoft.com/rest/api/storageservices/list-blobs>
const fn list_operation(name: &'static str) -> Operation {
    Operation { name, needs: Permission::List, body: Body::None, run: |call| Box::pin(list_blobs(call)) }
}

async fn list_blobs(call: Call) -> Result<Answer, Problem> {
    condition::none(&call.fields)?;
    let (paging, includes) = (Paging::parse(&call.fields)?, blob_includes(&call.fields)?);
    let request = ListBlobs {
        container: call.target.container()?,
        prefix: paging.prefix.clone(),
        delimiter: call.fields.query_opt("delimiter").map(str::to_owned),
        from: call.fields.query_opt("startfrom").map(str::to_owned),
        before: call.fields.query_opt("endbefore").map(str::to_owned),
        start: paging.start.clone(),
        limit: paging.limit,
        shown: includes.shown,
        tags: includes.tags,
    };
    let container = request.container.container.clone();
    let delimiter = request.delimiter.clone();
    let endpoint = service_endpoint(&call.fields, &call.target, call.arrival.peer)?;
    let page = listing::list(&call.engine, request).await?;
    // Thousands of lines take milliseconds to write: not on a thread that others' requests wait for.
    let xml = aside(move || {
        let head = BlobsHead {
            endpoint: &endpoint,
            container: container.as_str(),
            paging: &paging,
            delimiter: delimiter.as_deref(),
            metadata: includes.metadata,
            copy: includes.copy,
            protection: includes.protection,
            version: call.version,
        };
        blobs(&head, &page)
    });
    Ok(Answer::ok().xml(xml.await?))
}
