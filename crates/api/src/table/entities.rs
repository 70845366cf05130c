//! Entities. <https://learn.microsoft.com/rest/api/storageservices/operations-on-entities>

use lazuli_engine::etag::Etag;
use lazuli_engine::names::TableAddress;
use lazuli_engine::table::entities::{self, Query};
use lazuli_engine::table::{Action, EntityView, Expected, Write};

use super::odata::document::{self, Described};
use super::odata::format::{self, Echo, Metadata};
use super::odata::path;
use super::odata::query::{self, Options, Select};
use super::odata::write::{self, Origin};
use super::{DATA_VERSION, created, done, endpoint, json, scope};
use crate::answer::Answer;
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{Header, NoHeader};
use crate::route::{Route, Verb};
use crate::target::{Level, Target};
use crate::version::Version;

const DOCUMENT: Body = Body::Document { bytes_max: document::BYTES_MAX };
const GET: &[Verb] = &[Verb::Get];
const PUT: &[Verb] = &[Verb::Put];
const MERGE: &[Verb] = &[Verb::Patch, Verb::Merge];
const IF_MATCH: &str = "if-match";

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::at(Level::Table, GET, "", &[], &QUERY),
    Route::at(Level::Entity, GET, "", &[], &GET_ENTITY),
    Route::at(Level::Table, &[Verb::Post], "", &[], &INSERT),
    Route::at(Level::Entity, PUT, "", &[Header(IF_MATCH)], &UPDATE),
    Route::at(Level::Entity, PUT, "", &[NoHeader(IF_MATCH)], &INSERT_OR_REPLACE),
    Route::at(Level::Entity, MERGE, "", &[Header(IF_MATCH)], &MERGE_ENTITY),
    Route::at(Level::Entity, MERGE, "", &[NoHeader(IF_MATCH)], &INSERT_OR_MERGE),
    Route::at(Level::Entity, &[Verb::Delete], "", &[Header(IF_MATCH)], &DELETE),
];

/// Query Entities: <https://learn.microsoft.com/rest/api/storageservices/query-entities>
static QUERY: Operation = Operation {
    name: "Table_QueryEntities",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(query(call)),
};

pub(super) async fn query(call: Call) -> Result<Answer, Problem> {
    let metadata = Metadata::asked(&call.fields, call.version)?;
    let Options { filter, limit, select } = Options::parse(&call.fields)?;
    let table = call.target.table()?;
    let name = table.table.clone();
    let (allowed, start) = (scope::bounds(&call.grant), query::start(&call.fields)?);
    let request = Query { table, filter, allowed, start, select: select.clone().names(), limit };
    let page = entities::query(&call.engine, request).await?;
    let endpoint = endpoint(&call)?;
    let origin = Origin { metadata, endpoint: &endpoint, account: &call.target.account };
    let answer = json(Answer::ok(), metadata, origin.entities(&name, &select, &page.entities));
    Ok(query::continued(answer, page.next.as_ref()))
}

/// Get Entity: <https://learn.microsoft.com/rest/api/storageservices/query-entities>
static GET_ENTITY: Operation = Operation {
    name: "Table_QueryEntityWithPartitionAndRowKey",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get(call)),
};

pub(super) async fn get(call: Call) -> Result<Answer, Problem> {
    let metadata = Metadata::asked(&call.fields, call.version)?;
    query::check_options(&call.fields)?;
    let select = Select::parse(&call.fields)?;
    let on = call.target.entity()?;
    scope::check_entity(&call.grant, &on.key)?;
    let table = on.table.table.clone();
    let view = entities::get(&call.engine, on, select.clone().names()).await?;
    let endpoint = endpoint(&call)?;
    let origin = Origin { metadata, endpoint: &endpoint, account: &call.target.account };
    let answer = json(Answer::ok(), metadata, origin.entity(&table, &select, &view));
    Ok(answer.header("etag", write::etag(view.etag)))
}

/// Insert Entity: <https://learn.microsoft.com/rest/api/storageservices/insert-entity>
static INSERT: Operation = writing("Table_InsertEntity", Permission::Add);
/// Update Entity: <https://learn.microsoft.com/rest/api/storageservices/update-entity2>
static UPDATE: Operation = writing("Table_UpdateEntity", Permission::Update);
/// Insert Or Replace Entity: <https://learn.microsoft.com/rest/api/storageservices/insert-or-replace-entity>
static INSERT_OR_REPLACE: Operation = writing("Table_InsertOrReplaceEntity", Permission::Upsert);
/// Merge Entity: <https://learn.microsoft.com/rest/api/storageservices/merge-entity>
static MERGE_ENTITY: Operation = writing("Table_MergeEntity", Permission::Update);
/// Insert Or Merge Entity: <https://learn.microsoft.com/rest/api/storageservices/insert-or-merge-entity>
static INSERT_OR_MERGE: Operation = writing("Table_InsertOrMergeEntity", Permission::Upsert);
/// Delete Entity: <https://learn.microsoft.com/rest/api/storageservices/delete-entity1>
static DELETE: Operation = Operation { body: Body::None, ..writing("Table_DeleteEntity", Permission::Delete) };

const fn writing(name: &'static str, needs: Permission) -> Operation {
    Operation { name, needs, body: DOCUMENT, run: |call| Box::pin(carry_out(call)) }
}

async fn carry_out(mut call: Call) -> Result<Answer, Problem> {
    let endpoint = endpoint(&call)?;
    let body = match call.operation.body {
        Body::None => Vec::new(),
        _ => call.document().await?,
    };
    let wish = Wish::read(&call.target, &call.fields, call.version, call.operation, &body)?;
    scope::check_entity(&call.grant, &wish.write.key)?;
    let etag = entities::write(&call.engine, wish.table.clone(), wish.write.clone()).await?;
    Ok(wish.answer(&endpoint, etag))
}

/// A write of one entity, as a request or a part of a batch asks for it.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) table: TableAddress,
    pub(super) write: Write,
    /// Of an insertion.
    echo: Option<Echo>,
}

impl Wish {
    /// Reads a request for `operation`.
    ///
    /// Refuses `InvalidInput` for an operation that writes no entity, for a version in a wrong form and for keys that
    /// differ from those of the address, and what [`Described::read`], [`format::check_content_type`] and
    /// [`Echo::asked`] refuse.
    pub(super) fn read(
        target: &Target,
        fields: &Fields,
        version: Version,
        operation: &Operation,
        body: &[u8],
    ) -> Result<Self, Problem> {
        let table = target.table()?;
        let write = |key, action| Write { key, action };
        if operation.name == DELETE.name {
            let expected = expected(fields)?.ok_or_else(|| Problem::missing_header("If-Match"))?;
            return Ok(Self { table, write: write(target.entity()?.key, Action::Delete(expected)), echo: None });
        }
        format::check_content_type(fields, version)?;
        let described = Described::read(body)?;
        if operation.name == INSERT.name {
            let echo = Some(Echo::asked(fields, version)?);
            return Ok(Self { table, write: write(described.keys()?, Action::Insert(described.properties)), echo });
        }
        let key = target.entity()?.key;
        described.check_keys(&key)?;
        let (properties, expected) = (described.properties, expected(fields)?);
        let action = if [UPDATE.name, INSERT_OR_REPLACE.name].contains(&operation.name) {
            Action::Replace(properties, expected)
        } else if [MERGE_ENTITY.name, INSERT_OR_MERGE.name].contains(&operation.name) {
            Action::Merge(properties, expected)
        } else {
            return Err(Problem::new(Code::InvalidInput).saying("The request writes no entity."));
        };
        Ok(Self { table, write: write(key, action), echo: None })
    }

    /// What is answered once it was done. `endpoint`: the address of the account, with a slash at its end.
    pub(super) fn answer(self, endpoint: &str, etag: Option<Etag>) -> Answer {
        let Some(etag) = etag else { return done() };
        let answer = match (self.write.action, self.echo) {
            (Action::Insert(properties), Some(echo)) => {
                let TableAddress { account, table } = self.table;
                let address = path::address(&table, &self.write.key);
                let view = EntityView { key: self.write.key, etag, properties };
                created(echo, endpoint, &account, &address, |origin| origin.entity(&table, &Select::All, &view))
            }
            _ => done().header(DATA_VERSION.0, DATA_VERSION.1),
        };
        answer.header("etag", write::etag(etag))
    }
}

/// The version that is expected, if one is.
///
/// Refuses `InvalidInput` for what has not the form of one.
fn expected(fields: &Fields) -> Result<Option<Expected>, Problem> {
    match fields.header_opt(IF_MATCH)? {
        None => Ok(None),
        Some("*") => Ok(Some(Expected::Any)),
        Some(text) => match write::parse_etag(text) {
            Some(etag) => Ok(Some(Expected::Version(etag))),
            None => Err(Problem::new(Code::InvalidInput)
                .saying("The value of the header If-Match is neither * nor of the form W/\"...\".")
                .detail("HeaderName", "If-Match")),
        },
    }
}
