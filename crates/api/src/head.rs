//! The letter case of header names. HTTP ignores it, the HTTP library forgets it, but the service gives metadata names
//! back as they were written. The accept loop remembers the raw head and restores it on the way out.

/// The names of a request's header fields as they were written, in their order. An extension of the request; without
/// it names are taken as lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderCase(pub Vec<String>);

impl HeaderCase {
    /// The name as it was written; `lower` itself if the head was not remembered.
    pub fn original<'a>(&'a self, lower: &'a str) -> &'a str {
        self.0.iter().find(|name| name.eq_ignore_ascii_case(lower)).map_or(lower, String::as_str)
    }
}

/// Names of an answer's header fields as they are to be written. An extension of the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseCase(pub Vec<String>);
