//! Tables themselves. <https://learn.microsoft.com/rest/api/storageservices/operations-on-tables>

use crate::access::AccessPolicy;
use crate::engine::Engine;
use crate::error::Error;
use crate::names::{AccountName, TableAddress, TableName};
use crate::table::expression::Expression;

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
    todo!("{engine:p} {address:?}")
}

/// Get Table and its ACL in one.
///
/// Refuses `TableNotFound`.
pub async fn get(engine: &Engine, address: TableAddress) -> Result<TableView, Error> {
    todo!("{engine:p} {address:?}")
}

/// Delete Table: <https://learn.microsoft.com/rest/api/storageservices/delete-table>
///
/// Takes the same time however many entities it holds, and the name is free at once: they are erased in the background.
/// Refuses `TableNotFound`.
pub async fn delete(engine: &Engine, address: TableAddress) -> Result<(), Error> {
    todo!("{engine:p} {address:?}")
}

/// Set Table ACL: replaces the policies. <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>
///
/// Refuses `TableNotFound`.
pub async fn set_policies(engine: &Engine, address: TableAddress, policies: Vec<AccessPolicy>) -> Result<(), Error> {
    todo!("{engine:p} {address:?} {policies:?}")
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
    /// The tables.
    pub tables: Vec<TableName>,
    /// Where the next page begins, if there is one.
    pub next: Option<TableName>,
}

/// Query Tables: <https://learn.microsoft.com/rest/api/storageservices/query-tables>
pub async fn list(engine: &Engine, request: ListTables) -> Result<TablePage, Error> {
    todo!("{engine:p} {request:?}")
}
