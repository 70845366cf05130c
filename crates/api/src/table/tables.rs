//! Tables. <https://learn.microsoft.com/rest/api/storageservices/operations-on-tables>

use lazuli_engine::names::TableAddress;
use lazuli_engine::table::tables::{self, ListTables};
use lazuli_engine::{Error, Refusal};

use super::odata::format::{self, Echo, Metadata};
use super::odata::query::{self, Options};
use super::odata::write::Origin;
use super::odata::{document, path};
use super::{created, done, endpoint, json};
use crate::answer::Answer;
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::target::Level;
use crate::wire::acl;

/// Most bytes of a list of policies.
const ACL_BYTES_MAX: u64 = 64 * 1024;
const GET: &[Verb] = &[Verb::Get];

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::at(Level::Tables, GET, "", &[], &QUERY),
    Route::at(Level::Tables, &[Verb::Post], "", &[], &CREATE),
    Route::at(Level::TableEntry, GET, "", &[], &GET_TABLE),
    Route::at(Level::TableEntry, &[Verb::Delete], "", &[], &DELETE),
    Route::at(Level::Table, &[Verb::Get, Verb::Head], "acl", &[], &GET_ACL),
    Route::at(Level::Table, &[Verb::Put], "acl", &[], &SET_ACL),
];

/// Query Tables: <https://learn.microsoft.com/rest/api/storageservices/query-tables>
static QUERY: Operation =
    Operation { name: "Table_Query", needs: Permission::List, body: Body::None, run: |call| Box::pin(query(call)) };

async fn query(call: Call) -> Result<Answer, Problem> {
    let metadata = Metadata::asked(&call.fields, call.version)?;
    // Of the properties of a table there is one.
    let Options { filter, limit, select: _ } = Options::parse(&call.fields)?;
    let start = query::first_table(&call.fields)?;
    let request = ListTables { account: call.target.account.clone(), start, filter, limit };
    let page = tables::list(&call.engine, request).await?;
    let endpoint = endpoint(&call)?;
    let origin = Origin { metadata, endpoint: &endpoint, account: &call.target.account };
    let answer = json(Answer::ok(), metadata, origin.tables(&page.tables));
    Ok(query::tables_continued(answer, page.next.as_ref()))
}

/// Get Table: <https://learn.microsoft.com/rest/api/storageservices/query-tables>
static GET_TABLE: Operation =
    Operation { name: "Table_Get", needs: Permission::List, body: Body::None, run: |call| Box::pin(get_table(call)) };

async fn get_table(call: Call) -> Result<Answer, Problem> {
    let metadata = Metadata::asked(&call.fields, call.version)?;
    query::check_options(&call.fields)?;
    let view = tables::get(&call.engine, call.target.table()?).await.map_err(absent)?;
    let endpoint = endpoint(&call)?;
    let origin = Origin { metadata, endpoint: &endpoint, account: &call.target.account };
    Ok(json(Answer::ok(), metadata, origin.table(&view.name)))
}

/// Create Table: <https://learn.microsoft.com/rest/api/storageservices/create-table>
static CREATE: Operation = Operation {
    name: "Table_Create",
    needs: Permission::Create,
    body: Body::Document { bytes_max: document::BYTES_MAX },
    run: |call| Box::pin(create(call)),
};

async fn create(mut call: Call) -> Result<Answer, Problem> {
    format::check_content_type(&call.fields, call.version)?;
    let echo = Echo::asked(&call.fields, call.version)?;
    let name = document::table(&call.document().await?)?;
    let address = TableAddress { account: call.target.account.clone(), table: name.clone() };
    let (endpoint, location) = (endpoint(&call)?, format!("{}('{name}')", path::TABLES));
    tables::create(&call.engine, address).await?;
    Ok(created(echo, &endpoint, &call.target.account, &location, |origin| origin.table(&name)))
}

/// Delete Table: <https://learn.microsoft.com/rest/api/storageservices/delete-table>
static DELETE: Operation =
    Operation { name: "Table_Delete", needs: Permission::Delete, body: Body::None, run: |call| Box::pin(delete(call)) };

async fn delete(call: Call) -> Result<Answer, Problem> {
    tables::delete(&call.engine, call.target.table()?).await.map_err(absent)?;
    Ok(done())
}

/// Get Table ACL: <https://learn.microsoft.com/rest/api/storageservices/get-table-acl>
static GET_ACL: Operation = Operation {
    name: "Table_GetAccessPolicy",
    needs: Permission::Own,
    body: Body::None,
    run: |call| Box::pin(get_acl(call)),
};

async fn get_acl(call: Call) -> Result<Answer, Problem> {
    let view = tables::get(&call.engine, call.target.table()?).await?;
    Ok(Answer::ok().xml(acl::document(&view.policies)))
}

/// Set Table ACL: <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>
static SET_ACL: Operation = Operation {
    name: "Table_SetAccessPolicy",
    needs: Permission::Own,
    body: Body::Document { bytes_max: ACL_BYTES_MAX },
    run: |call| Box::pin(set_acl(call)),
};

async fn set_acl(mut call: Call) -> Result<Answer, Problem> {
    let policies = acl::parse(&call.document().await?, acl::TABLE_PERMISSIONS)?;
    tables::set_policies(&call.engine, call.target.table()?, policies).await?;
    Ok(done())
}

/// A table that is addressed as one of many and is not there is an absent resource, not an absent table.
fn absent(error: Error) -> Problem {
    match error {
        Error::Refused(Refusal::TableNotFound) => Problem::new(Code::ResourceNotFound),
        error => error.into(),
    }
}
