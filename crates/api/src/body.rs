//! The body of a request on its way in: bounded, timed, checked.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use http::{HeaderMap, Method};

use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::Body;
use crate::version::Version;
use crate::wire::structured;

/// The bytes of a body as they come from the network.
pub type Chunks = BoxStream<'static, Result<Bytes, ChunkError>>;

/// Why no more bytes come.
pub type ChunkError = Box<dyn std::error::Error + Send + Sync>;

/// Most bytes of an unread body that are read and thrown away.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long that may take.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);

/// The same body, read to its end by the server if the operation does not: many clients send all of it before they
/// listen, and would never hear why they are refused. A client that waits for `100 Continue` listens, and is spared.
pub(crate) fn drained(chunks: Chunks, headers: &HeaderMap) -> Chunks {
    let announced = headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
    let sent = announced || headers.contains_key(TRANSFER_ENCODING);
    if sent && !headers.contains_key(EXPECT) { Drained(Some(chunks)).boxed() } else { chunks }
}

/// Sees to it that a request which has a body says where the body ends, also an empty one.
///
/// Refuses `MissingContentLengthHeader`.
pub(crate) fn check_framing(method: &Method, fields: &Fields) -> Result<(), Problem> {
    let framed = fields.has_header("content-length") || fields.has_header("transfer-encoding");
    if matches!(*method, Method::PUT | Method::POST) && !framed {
        return Err(Problem::new(Code::MissingContentLengthHeader));
    }
    Ok(())
}

/// What is not read yet; none at the end.
struct Drained(Option<Chunks>);

impl Stream for Drained {
    type Item = Result<Bytes, ChunkError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(chunks) = &mut self.0 else { return Poll::Ready(None) };
        let next = ready!(chunks.poll_next_unpin(context));
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(next)
    }
}

impl Drop for Drained {
    fn drop(&mut self) {
        if let (Some(rest), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            // Whether it reaches the end does not matter: then the connection closes.
            drop(runtime.spawn(tokio::time::timeout(DRAIN_TIME_MAX, drain(rest))));
        }
    }
}

async fn drain(mut rest: Chunks) {
    let mut drained: usize = 0;
    while let Some(Ok(chunk)) = rest.next().await {
        drained = drained.saturating_add(chunk.len());
        if drained > DRAIN_BYTES_MAX {
            return;
        }
    }
}

/// A body that was admitted by its headers and not read yet: a client that waits for `100 Continue` still does.
pub(crate) struct Incoming {
    /// The lock is never waited for; it lets others look at the request between two polls.
    chunks: Mutex<Chunks>,
    announced: Option<u64>,
    bytes_max: u64,
    received: u64,
    idle: Duration,
    message: Option<Message>,
}

/// A body that is a structured message.
struct Message {
    /// Announced bytes of content.
    content: u64,
    decoder: structured::Decoder,
    /// Received, not yet taken apart.
    rest: Bytes,
}

impl Incoming {
    /// Judges the announced length, of a structured body that of its content.
    ///
    /// Refuses `MissingContentLengthHeader`, `RequestBodyTooLarge`, `InvalidHeaderValue` for a length that is none, and
    /// as [`structured::content_length`]; `UnsupportedHeader` for a structured document.
    pub(crate) fn admit(
        chunks: Chunks,
        fields: &Fields,
        body: Body,
        version: Version,
        idle: Duration,
    ) -> Result<Self, Problem> {
        let chunks = Mutex::new(chunks);
        let (bytes_max, content) = match body {
            Body::None => return Ok(Self { chunks, announced: None, bytes_max: 0, received: 0, idle, message: None }),
            Body::Document { .. } if fields.has_header(structured::BODY) => {
                return Err(Problem::new(Code::UnsupportedHeader).detail("HeaderName", structured::BODY));
            }
            Body::Document { bytes_max } => (bytes_max, None),
            Body::Stream { bytes_max } => (bytes_max(version), structured::content_length(fields)?),
        };
        let announced = match fields.header_opt("content-length")? {
            Some(text) => Some(text.parse().map_err(|_| Problem::header("Content-Length", text))?),
            None if fields.has_header("transfer-encoding") => None,
            None => return Err(Problem::new(Code::MissingContentLengthHeader)),
        };
        if content.or(announced).is_some_and(|length| length > bytes_max) {
            return Err(too_large(bytes_max));
        }
        let message = content.map(|content| Message {
            content,
            decoder: structured::Decoder::new(content, announced),
            rest: Bytes::new(),
        });
        // A message ends where its decoder says, whatever is around the content.
        let bytes_max = if message.is_some() { u64::MAX } else { bytes_max };
        Ok(Self { chunks, announced, bytes_max, received: 0, idle, message })
    }

    /// The length of the content that the client announced, in bytes.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.message.as_ref().map(|message| message.content).or(self.announced)
    }

    /// The next bytes of the content; none at the end.
    ///
    /// Refuses `RequestBodyTooLarge`, `OperationTimedOut` when nothing comes, `InvalidInput` for a body that ends
    /// before its announced length, and as [`structured::Decoder`].
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            if let Some(message) = &mut self.message
                && let Some(content) = message.decoder.decode(&mut message.rest)?
            {
                return Ok(Some(content));
            }
            let received = self.receive().await?;
            match (&mut self.message, received) {
                (None, received) => return Ok(received),
                (Some(message), Some(received)) => message.rest = received,
                (Some(message), None) => return message.decoder.finish().map(|()| None),
            }
        }
    }

    /// The next bytes as they were sent.
    async fn receive(&mut self) -> Result<Option<Bytes>, Problem> {
        let chunks = self.chunks.get_mut().unwrap_or_else(PoisonError::into_inner);
        let next = tokio::time::timeout(self.idle, chunks.next()).await;
        match next.map_err(|_| Problem::new(Code::OperationTimedOut))? {
            Some(Ok(chunk)) => {
                self.received = self.received.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
                if self.received > self.bytes_max {
                    return Err(too_large(self.bytes_max));
                }
                if self.announced.is_some_and(|length| self.received > length) {
                    return Err(wrong_length());
                }
                Ok(Some(chunk))
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "a request's body broke off");
                Err(wrong_length())
            }
            None if self.announced.is_some_and(|length| self.received < length) => Err(wrong_length()),
            None => Ok(None),
        }
    }
}

fn too_large(bytes_max: u64) -> Problem {
    Problem::new(Code::RequestBodyTooLarge).detail("MaxLimit", bytes_max.to_string())
}

fn wrong_length() -> Problem {
    Problem::new(Code::InvalidInput).saying("The request's body is not as long as it was announced.")
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http::HeaderName;

    use super::*;
    use crate::head::HeaderCase;

    const IDLE: Duration = Duration::from_secs(60);
    const TEN: Body = Body::Stream { bytes_max: |_| 10 };

    fn admit(body: Body, header: Option<(&'static str, &str)>, chunks: Chunks) -> Result<Incoming, Problem> {
        let headers: HeaderMap =
            header.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect();
        let fields = Fields::parse(headers, None, HeaderCase::default()).unwrap();
        Incoming::admit(chunks, &fields, body, Version::NEWEST, IDLE)
    }

    fn chunks(texts: &'static [&'static str]) -> Chunks {
        stream::iter(texts).map(|text| Ok(Bytes::from_static(text.as_bytes()))).boxed()
    }

    async fn received(mut body: Incoming) -> Result<String, Code> {
        let mut text = String::new();
        while let Some(chunk) = body.next().await.map_err(|problem| problem.code)? {
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        Ok(text)
    }

    #[test]
    fn the_announced_length_is_judged_before_the_body() {
        let cases = [
            (TEN, Some(("content-length", "10")), Ok(Some(10))),
            (TEN, Some(("content-length", "0")), Ok(Some(0))),
            (TEN, Some(("transfer-encoding", "chunked")), Ok(None)),
            (TEN, Some(("content-length", "11")), Err(Code::RequestBodyTooLarge)),
            (TEN, Some(("content-length", "x")), Err(Code::InvalidHeaderValue)),
            (TEN, None, Err(Code::MissingContentLengthHeader)),
            (Body::Document { bytes_max: 5 }, Some(("content-length", "6")), Err(Code::RequestBodyTooLarge)),
            (Body::None, None, Ok(None)),
        ];
        for (body, header, expected) in cases {
            let outcome = admit(body, header, chunks(&[]));
            let outcome = outcome.map(|body| body.announced()).map_err(|problem| problem.code);
            assert_eq!(outcome, expected, "{header:?}");
        }
        let problem = admit(TEN, Some(("content-length", "11")), chunks(&[])).err().unwrap();
        assert_eq!(problem.details, [("MaxLimit", "10".to_owned())]);
    }

    #[tokio::test]
    async fn the_body_is_as_long_as_announced_or_as_allowed() {
        let announced = Some(("content-length", "6"));
        let chunked = Some(("transfer-encoding", "chunked"));
        let cases: [(_, &[&str], _); 7] = [
            (announced, &["abc", "def"], Ok("abcdef".to_owned())),
            (announced, &["abc"], Err(Code::InvalidInput)),
            (announced, &[], Err(Code::InvalidInput)),
            (announced, &["abc", "defg"], Err(Code::InvalidInput)),
            (chunked, &["abcdefgh", "ij"], Ok("abcdefghij".to_owned())),
            (chunked, &["abcdefgh", "ijk"], Err(Code::RequestBodyTooLarge)),
            (chunked, &[], Ok(String::new())),
        ];
        for (header, texts, expected) in cases {
            let body = admit(TEN, header, chunks(texts)).unwrap();
            assert_eq!(received(body).await, expected, "{header:?} {texts:?}");
        }
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_refused() {
        let broken: Chunks = stream::iter([Ok(Bytes::from_static(b"abc")), Err("reset".into())]).boxed();
        let body = admit(TEN, Some(("transfer-encoding", "chunked")), broken).unwrap();
        assert_eq!(received(body).await, Err(Code::InvalidInput));
    }

    #[tokio::test]
    async fn what_an_operation_leaves_unread_is_drained_unless_the_client_waits() {
        let length = (CONTENT_LENGTH, "6".parse().unwrap());
        let sending: HeaderMap = [length.clone()].into_iter().collect();
        let expecting: HeaderMap = [length, (EXPECT, "100-continue".parse().unwrap())].into_iter().collect();
        for (headers, read_to_its_end) in [(sending, true), (expecting, false), (HeaderMap::new(), false)] {
            let (ended, end) = tokio::sync::oneshot::channel::<&str>();
            let tail = stream::once(async move {
                ended.send("end").unwrap();
                Ok(Bytes::new())
            });
            let mut body = drained(chunks(&["abc", "def"]).chain(tail).boxed(), &headers);
            assert_eq!(body.next().await.unwrap().unwrap(), "abc");
            drop(body);
            // The sender is dropped with a body that is not read to its end.
            assert_eq!(end.await.is_ok(), read_to_its_end);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_not_waited_for() {
        let body = admit(TEN, Some(("content-length", "6")), stream::pending().boxed()).unwrap();
        let started = tokio::time::Instant::now();
        assert_eq!(received(body).await, Err(Code::OperationTimedOut));
        assert_eq!(started.elapsed().as_secs(), IDLE.as_secs());
    }
}
