//! What clients store beside the bytes.

use serde::{Deserialize, Serialize};

/// Name and value pairs of a client's own. Order and letter case of the names are kept; the protocol sees to
/// uniqueness and size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata(pub Vec<(String, String)>);

/// The stored HTTP properties of a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpProperties {
    /// Cache-Control.
    pub cache_control: Option<String>,
    /// Content-Type; none is answered as `application/octet-stream`, an empty one not at all: it was cleared.
    pub content_type: Option<String>,
    /// Content-Encoding.
    pub content_encoding: Option<String>,
    /// Content-Language.
    pub content_language: Option<String>,
    /// Content-Disposition.
    pub content_disposition: Option<String>,
    /// Content-MD5 of the whole content, as stored, not necessarily verified.
    pub content_md5: Option<[u8; 16]>,
}
