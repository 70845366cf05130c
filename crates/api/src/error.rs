//! What goes wrong on the way of a request, and what is said about it.

use http::StatusCode;
use lazuli_engine::{Error, Refusal, store::StoreError};

use crate::code::Code;
use crate::wire::{date, etag, protection};

/// A request that is not answered with success: a code, and the details that help its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The code.
    pub code: Code,
    /// Another status than the code's, of a code that goes with several.
    pub status: Option<StatusCode>,
    /// Whether the status is 304: a read whose sender's copy is still good.
    pub not_modified: bool,
    /// Says more than the code's own message: names the header, parameter or field.
    pub message: Option<String>,
    /// Elements of the error body beside code and message, such as `HeaderName`.
    pub details: Vec<(&'static str, String)>,
    /// Headers of the answer beside the usual ones, such as `Content-Range` of a 416.
    pub headers: Vec<(&'static str, String)>,
}

impl Problem {
    /// A problem that its code describes well enough.
    pub const fn new(code: Code) -> Self {
        Self { code, status: None, not_modified: false, message: None, details: Vec::new(), headers: Vec::new() }
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        if self.not_modified { StatusCode::NOT_MODIFIED } else { self.status.unwrap_or(self.code.status()) }
    }

    /// A problem with words of its own.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// The same problem with one more element in its body.
    #[must_use]
    pub fn detail(mut self, element: &'static str, value: impl Into<String>) -> Self {
        self.details.push((element, value.into()));
        self
    }

    /// The same problem with one more header in its answer.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// A header whose value cannot be used.
    pub fn header(name: &str, value: &str) -> Self {
        Self::new(Code::InvalidHeaderValue)
            .saying(format!("The value of the header {name} is not in the correct format."))
            .detail("HeaderName", name)
            .detail("HeaderValue", value)
    }

    /// A header that must be there and is not.
    pub fn missing_header(name: &str) -> Self {
        Self::new(Code::MissingRequiredHeader)
            .saying(format!("The header {name} is mandatory for this request."))
            .detail("HeaderName", name)
    }

    /// A query parameter that must be there and is not.
    pub fn missing_query(name: &str) -> Self {
        Self::new(Code::MissingRequiredQueryParameter)
            .saying(format!("The query parameter {name} is mandatory for this request."))
            .detail("QueryParameterName", name)
    }

    /// A query parameter whose value cannot be used.
    pub fn query(name: &str, value: &str, reason: &str) -> Self {
        Self::new(Code::InvalidQueryParameterValue)
            .saying(format!("The value of the query parameter {name} is invalid: {reason}"))
            .detail("QueryParameterName", name)
            .detail("QueryParameterValue", value)
            .detail("Reason", reason)
    }

    /// A query parameter whose number is out of its range.
    pub fn query_range(name: &str, value: &str, least: i64, most: i64) -> Self {
        Self::new(Code::OutOfRangeQueryParameterValue)
            .saying(format!("The value of the query parameter {name} is outside the permissible range."))
            .detail("QueryParameterName", name)
            .detail("QueryParameterValue", value)
            .detail("MinimumAllowed", least.to_string())
            .detail("MaximumAllowed", most.to_string())
    }

    /// A feature of the protocol that is not built yet.
    pub fn not_implemented(what: &str) -> Self {
        Self::new(Code::NotImplemented).saying(format!("{what} is not implemented."))
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(Refusal::NotModified { etag: version }) => {
                let same = Self { not_modified: true, ..Self::new(Code::ConditionNotMet) };
                same.with_header("etag", etag::quoted(version))
                    .with_header("last-modified", date::rfc1123(version.committed()))
            }
            Error::Refused(Refusal::RangeOutside { length }) => {
                Self::new(Code::InvalidRange).with_header("content-range", format!("bytes */{length}"))
            }
            Error::Refused(refusal @ Refusal::VisibleAfterExpiry) => Self::new(refusal.into())
                .saying("The message would be invisible until after its end.")
                .detail("QueryParameterName", "visibilitytimeout"),
            Error::Refused(Refusal::AppendsTooMany) => Self::new(Code::BlockCountExceedsLimit)
                .saying("The committed block count cannot exceed the maximum limit of 50,000 blocks."),
            Error::Refused(Refusal::PageListTooLong) => Self::new(Code::OutOfRangeInput)
                .saying("The list of pages is too long for this version: ask for a part of the blob by x-ms-range."),
            Error::Refused(refusal @ Refusal::PolicyOver) => Self::new(refusal.into())
                .saying("The immutability policy would end in the past.")
                .detail("HeaderName", protection::UNTIL),
            Error::Refused(refusal @ Refusal::ExpiryOver) => Self::new(refusal.into())
                .saying("The blob would expire in the past.")
                .detail("HeaderName", "x-ms-expiry-time"),
            Error::Refused(refusal @ Refusal::ProtectionOff) => {
                Self::new(refusal.into()).saying("Immutable storage with versioning is not enabled for the account.")
            }
            Error::Refused(refusal) => Self::new(refusal.into()),
            Error::Busy => Self::new(Code::ServerBusy),
            Error::Storage(StoreError::Full) => Self::new(Code::InsufficientStorage),
            Error::Storage(error) => {
                tracing::error!(%error, "the engine failed");
                Self::new(Code::InternalError)
            }
        }
    }
}
