//! What an operation answers.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use lazuli_engine::Error;
use lazuli_engine::blob::content::Reader;

use crate::head::ResponseCase;
use crate::wire::structured::{self, Encoder};

/// A successful answer, before it is stamped.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers beside those that every answer has.
    pub headers: HeaderMap,
    /// Names of headers whose letter case matters, as they are to be written.
    pub case: ResponseCase,
    /// The body.
    pub content: Content,
}

/// The body of an answer.
#[derive(Debug)]
pub enum Content {
    /// None. A Content-Length header, if any, is the handler's.
    Empty,
    /// These bytes.
    Bytes(Bytes),
    /// All that is left in a reader. Should it fail midway, the connection is aborted.
    Reader(Box<Reader>),
    /// The same as a structured message.
    Structured(Box<Reader>, Box<Encoder>),
    /// Bytes of a length that is not known before they are made. Should it fail midway, the connection is aborted.
    Stream(Made),
}

/// Bytes that are made while they are read.
pub struct Made(pub BoxStream<'static, Result<Bytes, Error>>);

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Made")
    }
}

impl Answer {
    /// An answer without headers and body.
    pub fn new(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), case: ResponseCase::default(), content: Content::Empty }
    }

    /// 200.
    pub fn ok() -> Self {
        Self::new(StatusCode::OK)
    }

    /// 201.
    pub fn created() -> Self {
        Self::new(StatusCode::CREATED)
    }

    /// 202.
    pub fn accepted() -> Self {
        Self::new(StatusCode::ACCEPTED)
    }

    /// The same answer with one more header. `name` is lower case. A value that a header cannot carry (it has control
    /// characters) is left out: values come from headers or are made here.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        match HeaderValue::from_bytes(value.as_ref()) {
            Ok(value) => {
                self.headers.insert(HeaderName::from_static(name), value);
            }
            Err(error) => tracing::error!(%error, name, "a header was left out"),
        }
        self
    }

    /// The same answer with a header, if there is a value.
    #[must_use]
    pub fn header_opt(self, name: &'static str, value: Option<impl AsRef<[u8]>>) -> Self {
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    /// The same answer with an XML body.
    #[must_use]
    pub fn xml(mut self, body: Vec<u8>) -> Self {
        self.content = Content::Bytes(body.into());
        self.header("content-type", "application/xml")
    }

    /// The same answer with a page as its body.
    #[must_use]
    pub fn html(mut self, page: String) -> Self {
        self.content = Content::Bytes(page.into());
        self.header("content-type", "text/html")
    }

    /// The same answer with the bytes of `reader` as its body.
    #[must_use]
    pub fn reader(mut self, reader: Reader) -> Self {
        self.content = Content::Reader(Box::new(reader));
        self
    }

    /// The same answer with the bytes of `reader` as its body, put into a structured message.
    #[must_use]
    pub fn structured(mut self, reader: Reader, encoder: Encoder) -> Self {
        let (content, message) = (reader.remaining().to_string(), encoder.message_length().to_string());
        self.content = Content::Structured(Box::new(reader), Box::new(encoder));
        self.header(structured::BODY, structured::FORM)
            .header(structured::CONTENT_LENGTH, content)
            .header("content-length", message)
    }

    /// The same answer with the bytes of `stream` as its body.
    #[must_use]
    pub fn stream(mut self, stream: impl Stream<Item = Result<Bytes, Error>> + Send + 'static) -> Self {
        self.content = Content::Stream(Made(stream.boxed()));
        self
    }
}
