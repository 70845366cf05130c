//! The values that properties of entities have.
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model#property-types>

use uuid::Uuid;

use crate::clock::Timestamp;

/// A value and its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `Edm.Binary`: up to 64 KiB.
    Binary(Vec<u8>),
    /// `Edm.Boolean`.
    Boolean(bool),
    /// `Edm.DateTime`: from 1601 to 9999, in ticks.
    DateTime(Timestamp),
    /// `Edm.Double`.
    Double(f64),
    /// `Edm.Guid`.
    Guid(Uuid),
    /// `Edm.Int32`.
    Int32(i32),
    /// `Edm.Int64`.
    Int64(i64),
    /// `Edm.String`: up to 32 Ki code units of UTF-16.
    String(String),
}
