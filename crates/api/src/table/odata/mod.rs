//! How the Table service writes and reads: addresses, JSON documents, values of the Entity Data Model, filters.
//! <https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations>

pub mod document;
pub mod edm;
pub mod filter;
pub mod format;
pub mod instant;
pub mod path;
pub mod query;
pub mod write;
