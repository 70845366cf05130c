//! Tables themselves. <https://learn.microsoft.com/rest/api/storageservices/operations-on-tables>

use std::ops::Bound;

use crate::access::AccessPolicy;
use crate::engine::Engine;
use crate::error::Error;
use crate::names::{AccountName, TableAddress, TableName};
use crate::payload::refs::{self, Target};
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::codec::{self, corrupt};
use crate::rows::entity::body::Malformed;
use crate::rows::table::{self as row, TableRow};
use crate::store::{Direction, KeyRange, Purpose, Space, View};
use crate::table::expression::{Expression, Matcher};
use crate::table::state;

/// Tables that one page looks at.
pub(super) const LOOKS_MAX: usize = 2000;

/// A table as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableView {
    /// Its name as it was created.
    pub name: TableName,
    /// Stored access policies.
    pub policies: Vec<AccessPolicy>,
}

/// Create Table: <https://learn.microsoft.com/rest/api/storageservices/create-table>
///
/// Refuses `TableExists`, whatever the letter case.
pub async fn create(engine: &Engine, address: TableAddress) -> Result<(), Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let key = row::key(&address);
            if tx.get(Space::Tables, &key)?.is_some() {
                return Err(Refusal::TableExists.into());
            }
            let table = TableRow::new(tx.id(), &address.table);
            Ok(rows::put(tx, Space::Tables, key, &table)?)
        })
        .await
}

/// Get Table and its ACL in one.
///
/// Refuses `TableNotFound`.
pub async fn get(engine: &Engine, address: TableAddress) -> Result<TableView, Error> {
    engine.read(|view| {
        let table = state::table(view, &address)?;
        Ok(TableView { name: table.name(&row::key(&address))?, policies: table.policies })
    })
}

/// Delete Table: <https://learn.microsoft.com/rest/api/storageservices/delete-table>
///
/// Takes the same time however many entities it holds, and the name is free at once: they are erased in the background.
/// Refuses `TableNotFound`.
pub async fn delete(engine: &Engine, address: TableAddress) -> Result<(), Error> {
    engine
        .write(Purpose::Free, move |tx| {
            let table = state::table(tx, &address)?;
            tx.delete(Space::Tables, &row::key(&address))?;
            Ok(refs::release(tx, Target::table(table.incarnation))?)
        })
        .await?;
    engine.wake();
    Ok(())
}

/// Set Table ACL: replaces the policies. <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>
///
/// Refuses `TableNotFound`.
pub async fn set_policies(engine: &Engine, address: TableAddress, policies: Vec<AccessPolicy>) -> Result<(), Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let mut table = state::table(tx, &address)?;
            table.policies.clone_from(&policies);
            Ok(rows::put(tx, Space::Tables, row::key(&address), &table)?)
        })
        .await
}

/// What Query Tables asks for.
#[derive(Clone, Debug)]
pub struct ListTables {
    /// The account.
    pub account: AccountName,
    /// The first table that may be answered, whatever the letter case.
    pub start: Option<TableName>,
    /// Only tables that it matches: their names, as they were created, are their property `TableName`.
    pub filter: Option<Expression>,
    /// Most tables to answer, at least 1.
    pub limit: usize,
}

/// One page of tables, in the order of their names in small letters, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePage {
    /// The tables; may be none though there are further pages, if the filter matched little of much.
    pub tables: Vec<TableName>,
    /// Where the next page begins, if there is one.
    pub next: Option<TableName>,
}

/// Query Tables: <https://learn.microsoft.com/rest/api/storageservices/query-tables>
pub async fn list(engine: &Engine, request: ListTables) -> Result<TablePage, Error> {
    engine.scan(move |view| page(view, &request)).await
}

fn page(view: &dyn View, request: &ListTables) -> Result<TablePage, Error> {
    let mut range = KeyRange::prefix(&row::of(&request.account));
    if let Some(start) = &request.start {
        let start = TableAddress { account: request.account.clone(), table: start.clone() };
        range = range.starting(Bound::Included(row::key(&start)));
    }
    let filter = request.filter.as_ref().map(Matcher::new);
    let mut tables = Vec::new();
    for (looks, pair) in view.scan(Space::Tables, range, Direction::Forward).enumerate() {
        let (key, value) = pair?;
        let name = codec::decode::<TableRow>(Space::Tables, &key, &value)?.name(&key)?;
        if tables.len() == request.limit || looks == LOOKS_MAX {
            return Ok(TablePage { tables, next: Some(name) });
        }
        let matches = filter.as_ref().map_or(Ok(true), |filter| filter.matches(&name));
        if matches.map_err(|Malformed(reason)| corrupt(Space::Tables, &key, reason))? {
            tables.push(name);
        }
    }
    Ok(TablePage { tables, next: None })
}
