//! Who may read a container without credentials, and the access policies stored on it.
//! <https://learn.microsoft.com/rest/api/storageservices/set-container-acl>

use serde::{Deserialize, Serialize};

/// What anonymous clients may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublicAccess {
    /// Nothing.
    #[default]
    Private,
    /// Blobs whose names they know.
    Blob,
    /// Blobs and listings.
    Container,
}

/// A stored access policy. The texts are kept as the client wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessPolicy {
    /// 1 to 64 characters, unique in its container.
    pub id: String,
    /// When it begins to hold.
    pub start: Option<String>,
    /// When it ceases to hold.
    pub expiry: Option<String>,
    /// Permission letters.
    pub permission: Option<String>,
}

/// Public access and the policies of a container: at most five, which the protocol checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessControl {
    /// What anonymous clients may read.
    pub public: PublicAccess,
    /// The stored policies, in the client's order.
    pub policies: Vec<AccessPolicy>,
}
