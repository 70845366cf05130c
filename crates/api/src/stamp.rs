//! What every answer has, good or bad: request id, date, version, the client's own id; and the body of a refusal.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt, TryStreamExt};
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use lazuli_engine::Error;
use lazuli_engine::blob::content::Reader;
use lazuli_engine::clock::Timestamp;
use uuid::Uuid;
use warp::Reply;
use warp::reply::Response;

use crate::answer::{Answer, Content, Made};
use crate::cors::Cors;
use crate::error::Problem;
use crate::table;
use crate::table::odata::{format::Metadata, write};
use crate::target::Service;
use crate::version::{VERSION_HEADER, Version};
use crate::wire::date;
use crate::wire::structured::Encoder;
use crate::wire::xml::Writer;

const CLIENT_ID: &str = "x-ms-client-request-id";
/// Longest client request id that is echoed.
const CLIENT_ID_BYTES_MAX: usize = 1024;

/// What every answer of the Table service says to caches and browsers.
const NEITHER_STORED_NOR_GUESSED: [(&str, &str); 2] =
    [("cache-control", "no-cache"), ("x-content-type-options", "nosniff")];

/// What is known of a request before anything can fail.
#[derive(Debug)]
pub(crate) struct Stamp {
    /// Names the request in logs and answers.
    pub(crate) request_id: Uuid,
    /// When it came.
    pub(crate) now: Timestamp,
    /// The version that is spoken; the newest one until the request's own is known.
    pub(crate) version: Version,
    /// What the answer says to browsers, once it is known which service is asked.
    pub(crate) cors: Option<Cors>,
    /// The operation, once it is known; for the log.
    pub(crate) operation: &'static str,
    /// Of the Table service: how a refusal is to be written; none for XML.
    pub(crate) odata: Option<Metadata>,
    service: Service,
    is_head: bool,
    client_id: Option<HeaderValue>,
}

impl Stamp {
    pub(crate) fn new(service: Service, method: &Method, headers: &HeaderMap, now: Timestamp) -> Self {
        let visible = |value: &&HeaderValue| {
            (1..=CLIENT_ID_BYTES_MAX).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic)
        };
        Self {
            request_id: Uuid::new_v4(),
            now,
            version: Version::NEWEST,
            cors: None,
            operation: "",
            odata: Metadata::of_refusal(headers),
            service,
            is_head: method == Method::HEAD,
            client_id: headers.get(CLIENT_ID).filter(visible).cloned(),
        }
    }

    /// The answer on its way out. To HEAD it has no body.
    pub(crate) fn onto(&self, outcome: Result<Answer, Problem>) -> Response {
        let answer = self.complete(outcome);
        let mut response = match answer.content {
            Content::Bytes(bytes) if !self.is_head => Response::new(bytes.into()),
            Content::Reader(reader) if !self.is_head => warp::reply::stream(Outgoing::of(*reader)).into_response(),
            Content::Structured(reader, encoder) if !self.is_head => {
                warp::reply::stream(Outgoing::structured(*reader, *encoder)).into_response()
            }
            Content::Stream(made) if !self.is_head => warp::reply::stream(Outgoing::made(made)).into_response(),
            _ => Response::new(Bytes::new().into()),
        };
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        response.extensions_mut().insert(answer.case);
        response
    }

    /// The answer with all its headers; of a refusal, with its body.
    pub(crate) fn complete(&self, outcome: Result<Answer, Problem>) -> Answer {
        let mut answer = outcome.unwrap_or_else(|problem| self.refusal(&problem));
        let length = match &answer.content {
            Content::Empty | Content::Stream(_) => None,
            Content::Bytes(bytes) => Some(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Content::Reader(reader) => Some(reader.remaining()),
            Content::Structured(_, encoder) => Some(encoder.message_length()),
        };
        if let Some(length) = length {
            announce(&mut answer.headers, length);
        }
        self.common(&mut answer.headers);
        if let Some(cors) = &self.cors {
            cors.onto(&mut answer.headers);
        }
        answer
    }

    fn common(&self, headers: &mut HeaderMap) {
        let own = [
            ("x-ms-request-id", self.request_id.to_string()),
            (VERSION_HEADER, self.version.to_string()),
            ("date", date::rfc1123(self.now)),
            ("server", format!("Lazuli-{}/{}", self.service.name(), env!("CARGO_PKG_VERSION"))),
        ];
        for (name, value) in own {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        if self.service == Service::Table {
            for (name, value) in NEITHER_STORED_NOR_GUESSED {
                headers.entry(name).or_insert(HeaderValue::from_static(value));
            }
        }
        if let Some(id) = &self.client_id {
            headers.insert(HeaderName::from_static(CLIENT_ID), id.clone());
        }
    }

    fn refusal(&self, problem: &Problem) -> Answer {
        let mut answer = Answer::new(problem.status()).header("x-ms-error-code", problem.code.name());
        for (name, value) in &problem.headers {
            answer = answer.header(name, value);
        }
        // A client that is told of an XML body reads it, even behind HEAD: some then fail on the nothing they find.
        let bare = problem.not_modified || self.is_head;
        match (bare, self.service, self.odata) {
            (true, ..) => answer,
            (false, Service::Table, odata) => self.odata_document(answer, odata, problem),
            (false, Service::Blob | Service::Queue, _) => answer.xml(self.document(problem)),
        }
    }

    /// The answer with a body as the Table service writes it: in JSON, if the client reads that.
    fn odata_document(&self, answer: Answer, odata: Option<Metadata>, problem: &Problem) -> Answer {
        let (code, message) = (problem.code.name(), self.message(problem));
        match odata {
            Some(metadata) => table::json(answer, metadata, write::refusal(code, &message)),
            None => answer.xml(write::refusal_xml(code, &printable(&message))),
        }
    }

    fn message(&self, problem: &Problem) -> String {
        let message = problem.message.as_deref().unwrap_or(problem.code.message());
        format!("{message}\nRequestId:{}\nTime:{}", self.request_id, date::iso8601(self.now))
    }

    fn document(&self, problem: &Problem) -> Vec<u8> {
        let mut xml = Writer::begin();
        xml.open("Error");
        xml.text("Code", problem.code.name());
        xml.text("Message", &printable(&self.message(problem)));
        for (element, value) in &problem.details {
            xml.text(element, &printable(value));
        }
        xml.close("Error");
        xml.finish()
    }
}

/// Details quote what clients sent, which may be characters that XML has no way to write.
fn printable(text: &str) -> String {
    let writable = |c: char| !matches!(c, '\0'..='\x08' | '\x0B' | '\x0C' | '\x0E'..='\x1F' | '\u{FFFE}' | '\u{FFFF}');
    text.chars().map(|c| if writable(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

fn announce(headers: &mut HeaderMap, length: u64) {
    headers.entry(http::header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
}

/// The bytes of a body. An error in them aborts the connection: the client must not take a part for the whole.
/// The lock is never waited for; it tells the compiler that nobody polls from two threads.
struct Outgoing(Mutex<BoxStream<'static, Result<Bytes, Error>>>);

impl Outgoing {
    fn of(reader: Reader) -> Self {
        Self(Mutex::new(bytes_of(reader).boxed()))
    }

    fn made(made: Made) -> Self {
        let bytes = made.0.inspect_err(|error| tracing::error!(%error, "an answer broke off"));
        Self(Mutex::new(bytes.boxed()))
    }

    fn structured(reader: Reader, mut encoder: Encoder) -> Self {
        let begin = stream::iter([Ok(encoder.begin())]);
        let rest = bytes_of(reader).map_ok(move |mut content| {
            let mut parts = Vec::new();
            while !content.is_empty() {
                let (part, after) = encoder.encode(&mut content);
                parts.extend([part, after].into_iter().filter(|bytes| !bytes.is_empty()).map(Ok));
            }
            stream::iter(parts)
        });
        Self(Mutex::new(begin.chain(rest.try_flatten()).boxed()))
    }
}

fn bytes_of(reader: Reader) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    stream::try_unfold(reader, |mut reader| async move {
        let next = reader.next().await;
        if let Err(error) = &next {
            tracing::error!(%error, "a download broke off");
        }
        Ok(next?.map(|bytes| (bytes, reader)))
    })
}

impl Stream for Outgoing {
    type Item = Result<Bytes, Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).poll_next_unpin(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http::StatusCode;
    use http_body_util::BodyExt;
    use lazuli_engine::Refusal;
    use lazuli_engine::etag::Etag;

    use super::*;
    use crate::code::Code;

    const CLIENT: (&str, &str) = (CLIENT_ID, "3f8e-1");

    fn stamp(method: &Method, (name, value): (&'static str, &str)) -> Stamp {
        let headers = [(HeaderName::from_static(name), value.parse().unwrap())].into_iter().collect();
        Stamp::new(Service::Blob, method, &headers, Timestamp::from_unix_seconds(1_785_542_400))
    }

    fn body(response: Response) -> String {
        let bytes = response.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn every_answer_is_stamped() {
        let stamp = stamp(&Method::PUT, CLIENT);
        for outcome in [Ok(Answer::created()), Err(Problem::new(Code::BlobNotFound))] {
            let response = stamp.onto(outcome);
            let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
            assert_eq!(header("x-ms-request-id"), stamp.request_id.to_string());
            assert_eq!(header("x-ms-version"), Version::NEWEST.to_string());
            assert_eq!(header("date"), "Sat, 01 Aug 2026 00:00:00 GMT");
            assert_eq!(header(CLIENT_ID), "3f8e-1");
            assert!(header("server").starts_with("Lazuli-Blob/"));
        }
    }

    #[test]
    fn a_client_id_is_echoed_if_it_is_short_and_visible() {
        for (id, echoed) in [("a".repeat(1024), true), ("a".repeat(1025), false), ("a b".into(), false)] {
            let response = stamp(&Method::GET, (CLIENT_ID, &id)).onto(Ok(Answer::ok()));
            assert_eq!(response.headers().contains_key(CLIENT_ID), echoed, "{}", id.len());
        }
    }

    #[test]
    fn a_refusal_has_its_code_in_header_and_body() {
        let stamp = stamp(&Method::GET, CLIENT);
        let problem = Problem::query("prefix", "a<\0", "because").with_header("www-authenticate", "Bearer x");
        let response = stamp.onto(Err(problem));
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(response.headers()["x-ms-error-code"], "InvalidQueryParameterValue");
        assert_eq!(response.headers()["content-type"], "application/xml");
        assert_eq!(response.headers()["www-authenticate"], "Bearer x");
        let expected = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>InvalidQueryParameterValue</Code><Message>The value \
             of the query parameter prefix is invalid: because\nRequestId:{}\nTime:2026-08-01T00:00:00.0000000Z</Message>\
             <QueryParameterName>prefix</QueryParameterName><QueryParameterValue>a&lt;\u{FFFD}</QueryParameterValue>\
             <Reason>because</Reason></Error>",
            stamp.request_id
        );
        assert_eq!(response.headers()["content-length"].to_str().unwrap(), expected.len().to_string());
        assert_eq!(body(response), expected);
    }

    #[test]
    fn an_answer_to_head_announces_a_body_and_has_none() {
        let response = stamp(&Method::HEAD, CLIENT).onto(Ok(Answer::ok().xml(b"12345".to_vec())));
        assert_eq!(response.headers()["content-length"], "5");
        assert_eq!(body(response), "");
    }

    #[test]
    fn a_refusal_of_head_is_in_the_headers_alone() {
        let response = stamp(&Method::HEAD, CLIENT).onto(Err(Problem::new(Code::BlobNotFound)));
        assert_eq!(response.headers()["x-ms-error-code"], "BlobNotFound");
        for name in ["content-type", "content-length"] {
            assert!(!response.headers().contains_key(name), "{name}");
        }
        assert_eq!(body(response), "");
    }

    #[test]
    fn not_modified_has_a_code_and_the_version_and_no_body() {
        let etag = Etag::at(Timestamp::from_unix_seconds(1_785_542_400));
        let problem = Problem::from(Error::Refused(Refusal::NotModified { etag }));
        let response = stamp(&Method::GET, CLIENT).onto(Err(problem));
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(response.headers()["x-ms-error-code"], "ConditionNotMet");
        assert_eq!(response.headers()["etag"], "\"0x8DEEF5FD48B0000\"");
        assert_eq!(response.headers()["last-modified"], "Sat, 01 Aug 2026 00:00:00 GMT");
        assert!(!response.headers().contains_key("content-type"));
        assert_eq!(body(response), "");
    }
}
