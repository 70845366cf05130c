//! Requests within a request, and their answers: `multipart/mixed` of `application/http`.
//! <https://learn.microsoft.com/rest/api/storageservices/blob-batch>
//!
//! Lines may end without a carriage return. What comes before the first and after the last boundary is passed over.

use std::borrow::Cow;
use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::code::Code;
use crate::error::Problem;
use crate::head::HeaderCase;

/// Longest boundary. <https://www.rfc-editor.org/rfc/rfc2046#section-5.1.1>
const BOUNDARY_BYTES_MAX: usize = 70;
/// Most header fields of a part, and of the request in it.
const HEADERS_MAX: usize = 64;

/// What stands between two boundaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The header fields, names in lower case.
    pub headers: HeaderMap,
    /// What follows them.
    pub content: &'a [u8],
}

/// A request in a part.
#[derive(Clone, Debug)]
pub struct PartRequest {
    /// The method.
    pub method: Method,
    /// The path as written, with its escapes; without scheme and host, if they were there.
    pub raw_path: String,
    /// The query as written, without its question mark.
    pub raw_query: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The letter case of their names.
    pub case: HeaderCase,
    /// The body.
    pub body: Bytes,
}

/// The boundary that a Content-Type names.
///
/// Refuses `InvalidHeaderValue` for another type than `multipart/mixed` and for no boundary.
pub fn boundary(content_type: &str) -> Result<&str, Problem> {
    let wrong = || Problem::header("Content-Type", content_type);
    let (kind, parameters) = content_type.split_once(';').ok_or_else(wrong)?;
    if !kind.trim().eq_ignore_ascii_case("multipart/mixed") {
        return Err(wrong());
    }
    let named = |parameter: &&str| parameter.trim_start().get(..9).is_some_and(|n| n.eq_ignore_ascii_case("boundary="));
    let parameter = parameters.split(';').find(named).ok_or_else(wrong)?;
    let value = parameter.trim().get(9..).unwrap_or_default();
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    let visible = value.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    if visible && (1..=BOUNDARY_BYTES_MAX).contains(&value.len()) { Ok(value) } else { Err(wrong()) }
}

/// The first parts of a body, in order, at most `parts_max`: of what comes behind them nothing is known.
///
/// Refuses `InvalidInput` for a body without a last boundary, or malformed header fields.
pub fn parts<'a>(body: &'a [u8], boundary: &str, parts_max: usize) -> Result<Vec<Part<'a>>, Problem> {
    let mut parts = Vec::new();
    let (mut begun, mut at) = (None, 0);
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let start = at;
        at += line.len();
        let Some(last) = delimiter(line, boundary) else { continue };
        if let Some(first) = begun {
            parts.push(part(body.get(first..start).unwrap_or_default())?);
        }
        if last || parts.len() == parts_max {
            return Ok(parts);
        }
        begun = Some(at);
    }
    Err(malformed("its last boundary is missing"))
}

/// Whether the line is the boundary, and if so, whether it is the last one.
fn delimiter(line: &[u8], boundary: &str) -> Option<bool> {
    let rest = line.trim_ascii_end().strip_prefix(b"--")?.strip_prefix(boundary.as_bytes())?;
    match rest {
        b"" => Some(false),
        b"--" => Some(true),
        _ => None,
    }
}

/// `text` is what lies between the lines of two boundaries; the end of its last line belongs to the boundary.
fn part(text: &[u8]) -> Result<Part<'_>, Problem> {
    let (head, content) = split_head(without_line_end(text));
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let head = ended(head);
    match httparse::parse_headers(&head, &mut fields) {
        Ok(httparse::Status::Complete((_, fields))) => Ok(Part { headers: headers(fields)?, content }),
        _ => Err(malformed("the header fields of a part are malformed")),
    }
}

impl Part<'_> {
    /// A header as text, if it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The request in the part.
    ///
    /// Refuses `InvalidInput` for what is none.
    pub fn request(&self) -> Result<PartRequest, Problem> {
        self.read_request(None)
    }

    /// The request in the part, whose target may be relative to `base`, a path with a slash at its end.
    ///
    /// Refuses `InvalidInput` for what is none.
    pub fn request_below(&self, base: &str) -> Result<PartRequest, Problem> {
        self.read_request(Some(base))
    }

    fn read_request(&self, base: Option<&str>) -> Result<PartRequest, Problem> {
        let kind = self.header("content-type").unwrap_or_default();
        if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/http")) {
            return Err(malformed("the Content-Type of a part is not application/http"));
        }
        let wrong = || malformed("a part is not an HTTP request");
        let (head, body) = split_head(self.content);
        let head = ended(head);
        let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        if !matches!(request.parse(&head), Ok(httparse::Status::Complete(_))) {
            return Err(wrong());
        }
        let method = request.method.and_then(|method| Method::from_bytes(method.as_bytes()).ok()).ok_or_else(wrong)?;
        let target = origin_form(request.path.unwrap_or_default(), base).ok_or_else(wrong)?;
        let (path, query) = target.split_once('?').map_or((&*target, None), |(path, query)| (path, Some(query)));
        Ok(PartRequest {
            method,
            raw_path: path.to_owned(),
            raw_query: query.filter(|query| !query.is_empty()).map(str::to_owned),
            case: HeaderCase(request.headers.iter().map(|field| field.name.to_owned()).collect()),
            headers: headers(request.headers)?,
            body: Bytes::copy_from_slice(body),
        })
    }
}

/// What comes before the first empty line, and what after it. Clients leave the empty line out if nothing follows.
fn split_head(text: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let start = at;
        at += line.len();
        if matches!(line, b"\n" | b"\r\n") {
            return (text.get(..start).unwrap_or_default(), text.get(at..).unwrap_or_default());
        }
    }
    (text, &[])
}

fn without_line_end(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\r\n").or_else(|| text.strip_suffix(b"\n")).unwrap_or(text)
}

/// A head with the empty line that ends it.
fn ended(head: &[u8]) -> Vec<u8> {
    let end: &[u8] = if head.is_empty() || head.ends_with(b"\n") { b"\r\n" } else { b"\r\n\r\n" };
    [head, end].concat()
}

fn headers(fields: &[httparse::Header<'_>]) -> Result<HeaderMap, Problem> {
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields {
        match (HeaderName::from_bytes(field.name.as_bytes()), HeaderValue::from_bytes(field.value)) {
            (Ok(name), Ok(value)) => map.append(name, value),
            _ => return Err(malformed("a header field of a part is malformed")),
        };
    }
    Ok(map)
}

/// The target of a request from its path on; a relative one is put behind `base`.
fn origin_form<'a>(target: &'a str, base: Option<&str>) -> Option<Cow<'a, str>> {
    if target.starts_with('/') {
        return Some(Cow::Borrowed(target));
    }
    let absolute = target.split_once("://").filter(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let Some((scheme, rest)) = absolute else { return base.map(|base| Cow::Owned(format!("{base}{target}"))) };
    let known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    known.then(|| rest.get(rest.find('/')?..).map(Cow::Borrowed))?
}

/// A body of answers under way.
#[derive(Clone, Debug)]
pub struct Answers {
    boundary: String,
    text: Vec<u8>,
}

impl Answers {
    /// None yet. `boundary` is in none of their bodies.
    pub const fn begin(boundary: String) -> Self {
        Self { boundary, text: Vec::new() }
    }

    /// Adds the answer to the request whose part had this Content-ID.
    pub fn add(&mut self, content_id: Option<&str>, status: StatusCode, headers: &HeaderMap, body: &[u8]) {
        let mut head = format!("--{}\r\nContent-Type: application/http\r\n", self.boundary);
        let mut line = |text: std::fmt::Arguments<'_>| {
            let _ = head.write_fmt(text); // writing to a String cannot fail
            head.push_str("\r\n");
        };
        if let Some(id) = content_id {
            line(format_args!("Content-ID: {id}"));
        }
        line(format_args!(""));
        line(format_args!("HTTP/1.1 {} {}", status.as_u16(), status.canonical_reason().unwrap_or_default()));
        for (name, value) in headers {
            line(format_args!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
        }
        line(format_args!(""));
        self.text.extend_from_slice(head.as_bytes());
        self.text.extend_from_slice(body);
        if !body.is_empty() {
            self.text.extend_from_slice(b"\r\n");
        }
    }

    /// The Content-Type and the body.
    pub fn finish(mut self) -> (String, Vec<u8>) {
        self.text.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
        (format!("multipart/mixed; boundary={}", self.boundary), self.text)
    }
}

fn malformed(reason: &str) -> Problem {
    Problem::new(Code::InvalidInput).saying(format!("The request's body is not a valid batch: {reason}."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &str = "\
        passed over\r\n\
        --b\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        Content-ID: 0\r\n\
        \r\n\
        DELETE /dev/c/a%20b?snapshot=1 HTTP/1.1\r\n\
        X-Ms-Date: Sat, 01 Aug 2026 00:00:00 GMT\r\n\
        Content-Length: 0\r\n\
        \r\n\
        --b\r\n\
        content-type: application/http; msgtype=request\r\n\
        \r\n\
        PUT http://127.0.0.1:10000/dev/t? HTTP/1.1\r\n\
        \r\n\
        {\"--b\":\r\n1}\r\n\
        --b--  \r\n\
        --b\r\n";

    fn requests(body: &str) -> Result<Vec<PartRequest>, String> {
        let parts = parts(body.as_bytes(), "b", 2).and_then(|parts| parts.iter().map(Part::request).collect());
        parts.map_err(|problem| problem.message.unwrap_or_default())
    }

    #[test]
    fn parts_are_requests() {
        for body in [BODY.to_owned(), BODY.replace('\r', "")] {
            let parts = parts(body.as_bytes(), "b", 2).unwrap();
            assert_eq!(parts.iter().map(|part| part.header("content-id")).collect::<Vec<_>>(), [Some("0"), None]);
            let requests = requests(&body).unwrap();
            let [delete, put] = &requests[..] else { panic!("{requests:?}") };
            assert_eq!((&delete.method, &*delete.raw_path), (&Method::DELETE, "/dev/c/a%20b"));
            assert_eq!((delete.raw_query.as_deref(), put.raw_query.as_deref()), (Some("snapshot=1"), None));
            assert_eq!(delete.headers["x-ms-date"], "Sat, 01 Aug 2026 00:00:00 GMT");
            assert_eq!(delete.case.original("x-ms-date"), "X-Ms-Date");
            assert_eq!((&put.method, &*put.raw_path), (&Method::PUT, "/dev/t"));
            assert_eq!(delete.body, "");
            assert_eq!(put.body, if body.contains('\r') { "{\"--b\":\r\n1}" } else { "{\"--b\":\n1}" });
        }
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        const PART: &str = "--b\r\nContent-Type: application/http\r\n\r\n";
        let cases = [
            ("", "last boundary"),
            ("--b\r\n", "last boundary"),
            ("--bc--\r\n", "last boundary"),
            ("--b\r\n\r\n--b--", "application/http"),
            ("--b\r\nContent-Type: text/plain\r\n\r\nDELETE / HTTP/1.1\r\n\r\n--b--", "application/http"),
            ("--b\r\nno header\r\n\r\n--b--", "header fields"),
            (&format!("{PART}--b--"), "not an HTTP request"),
            (&format!("{PART}DELETE /a\r\n--b--"), "not an HTTP request"),
            (&format!("{PART}DELETE a HTTP/1.1\r\n--b--"), "not an HTTP request"),
            (&format!("{PART}DELETE ftp://h/a HTTP/1.1\r\n--b--"), "not an HTTP request"),
            (&format!("{PART}DELETE /a HTTP/1.1\r\nno header\r\n--b--"), "not an HTTP request"),
            (&format!("{PART}DELETE /a HTTP/1.1\r\n{}--b--", "a: b\r\n".repeat(65)), "not an HTTP request"),
        ];
        for (body, reason) in cases {
            let message = requests(body).err().unwrap_or_default();
            assert!(message.contains(reason), "{body:?}: {message:?}");
        }
        assert!(requests("--b--").unwrap().is_empty());
        let many = format!("{PART}DELETE /a HTTP/1.1\r\n\r\n").repeat(3);
        assert_eq!(requests(&many).unwrap().len(), 2, "what comes behind is not looked at");
    }

    #[test]
    fn a_target_may_be_relative_where_there_is_a_base() {
        let cases = [
            ("/a/b", Some("/a/b"), Some("/a/b")),
            ("http://h:1/a?b", Some("/a?b"), Some("/a?b")),
            ("HTTPS://h/a", Some("/a"), Some("/a")),
            ("http://h", None, None),
            ("ftp://h/a", None, None),
            ("t(x='1')?a=b", None, Some("/dev/t(x='1')?a=b")),
            ("t()?$filter=a%20eq%20'http://h/'", None, Some("/dev/t()?$filter=a%20eq%20'http://h/'")),
        ];
        for (target, alone, below) in cases {
            assert_eq!(origin_form(target, None).as_deref(), alone, "{target}");
            assert_eq!(origin_form(target, Some("/dev/")).as_deref(), below, "{target}");
        }
    }

    #[test]
    fn a_boundary_is_named_by_the_type() {
        let long = format!("multipart/mixed; boundary={}", "b".repeat(71));
        let cases = [
            ("multipart/mixed; boundary=batch_1-2", Some("batch_1-2")),
            ("Multipart/Mixed;charset=utf-8; Boundary=\"batch:1\"", Some("batch:1")),
            ("multipart/mixed;boundary=a=b", Some("a=b")),
            ("multipart/mixed", None),
            ("multipart/mixed; boundary=", None),
            ("multipart/mixed; boundary=\"\"", None),
            ("multipart/mixed; boundary=a b", None),
            ("multipart/form-data; boundary=b", None),
            ("application/xml; boundary=b", None),
            (&long, None),
        ];
        for (text, expected) in cases {
            assert_eq!(boundary(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn answers_look_like_this() {
        let mut answers = Answers::begin("r".into());
        let headers = HeaderMap::from_iter([(HeaderName::from_static("x-ms-version"), "2026-04-06".parse().unwrap())]);
        answers.add(Some("0"), StatusCode::ACCEPTED, &headers, b"");
        answers.add(None, StatusCode::NOT_FOUND, &HeaderMap::new(), b"<Error/>");
        let expected = "--r\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\n\
                        x-ms-version: 2026-04-06\r\n\r\n--r\r\nContent-Type: application/http\r\n\r\n\
                        HTTP/1.1 404 Not Found\r\n\r\n<Error/>\r\n--r--\r\n";
        let (kind, text) = answers.finish();
        assert_eq!(kind, "multipart/mixed; boundary=r");
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(body in "(--b|--|\r|\n|\r\n|:| |a|/|HTTP/1.1|Content-Type: application/http)*") {
            let _ = requests(&body);
        }
    }
}
