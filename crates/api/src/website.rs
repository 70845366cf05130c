//! Static websites: what lies in `$web`, for everybody to read.
//! <https://learn.microsoft.com/azure/storage/blobs/storage-blob-static-website>
//!
//! A website is not a part of the protocol: it knows no credentials, no operation and no version, and its refusals are
//! pages. So it does not go the way of a request, and reads `$web` whatever the container's own access is.

use std::net::IpAddr;

use http::header::HOST;
use http::{HeaderMap, Method, StatusCode};
use lazuli_engine::blob::OnBlob;
use lazuli_engine::blob::object::{self, Download};
use lazuli_engine::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};
use lazuli_engine::range::RangeRequest;
use lazuli_engine::service::properties::StaticWebsite;
use lazuli_engine::{Engine, Error, Refusal};

use crate::answer::Answer;
use crate::body::drained;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::{Fields, decode};
use crate::serve::{App, Request};
use crate::stamp::Stamp;
use crate::target::{Front, SECONDARY_SUFFIX, Service};
use crate::version::Version;
use crate::wire::{condition, date, digest, etag, properties, range};

/// The service that a request is for; none if it is for a website, by its port or by its host's name.
pub(crate) fn service(front: Front, headers: &HeaderMap, path_style_only: bool) -> Option<Service> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|_| !path_style_only);
    match front {
        Front::Web => None,
        Front::Service(Service::Blob) if host.is_some_and(|host| label(host).is_some()) => None,
        Front::Service(service) => Some(service),
    }
}

/// Answers a request for a website. Also what is wrong with it is an answer: a page, for people.
pub(crate) async fn answer(app: &App, request: Request, stamp: &mut Stamp) -> Answer {
    stamp.operation = "Website";
    match page(app, request).await {
        Ok(answer) => answer,
        Err(problem) => refusal(&problem, stamp),
    }
}

async fn page(app: &App, request: Request) -> Result<Answer, Problem> {
    let Request { method, raw_path, raw_query, headers, case, peer, chunks } = request;
    let _unread = drained(chunks, &headers);
    if !matches!(method, Method::GET | Method::HEAD) {
        return Err(Problem::new(Code::UnsupportedHttpVerb).with_header("allow", "GET, HEAD"));
    }
    let fields = Fields::parse(headers, raw_query.as_deref(), case)?;
    let host = if app.options.path_style_only { None } else { fields.header_opt("host")? };
    let (account, path) = address(host, &raw_path)?;
    app.accounts.get(&account).ok_or_else(not_found)?.rules().check_encrypted(peer)?;
    let site = Site { website: crate::service::properties(&app.engine, &account, Service::Blob)?.website, account };
    if !site.website.enabled {
        return Err(not_found());
    }
    let range = range::parse(fields.header_opt("range")?, None)?;
    let conditions = condition::read(&fields, Version::NEWEST)?;
    for name in site.pages(&path) {
        let on = OnBlob { conditions: conditions.clone(), ..OnBlob::at(site.blob(name)) };
        if let Some(download) = found(&app.engine, on, range).await? {
            return Ok(whole_or_part(download));
        }
    }
    site.error_page(&app.engine).await
}

/// The account whose website is addressed, and the decoded path in it.
///
/// Refuses `WebContentNotFound` for what cannot be an account, and `InvalidUri`.
fn address(host: Option<&str>, raw_path: &str) -> Result<(AccountName, String), Problem> {
    let rest = raw_path.strip_prefix('/').ok_or_else(|| Problem::new(Code::InvalidUri))?;
    let (account, path) = match host.and_then(|host| label(host).or_else(|| local_label(host))) {
        Some(account) => (account.to_ascii_lowercase(), rest),
        None => rest.split_once('/').map_or((rest.to_owned(), ""), |(account, path)| (account.to_owned(), path)),
    };
    let account = account.strip_suffix(SECONDARY_SUFFIX).unwrap_or(&account);
    Ok((AccountName::parse(account).map_err(|_| not_found())?, decode(path)?))
}

/// The account's label of a website's host, such as `account.web.localhost:10000` or `account.z6.web.core.windows.net`.
fn label(host: &str) -> Option<&str> {
    let (account, rest) = name(host)?.split_once('.')?;
    let is_zone = |label: &str| {
        label.strip_prefix(['z', 'Z']).is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut labels = rest.split('.');
    let first = labels.next()?;
    let service = if is_zone(first) { labels.next()? } else { first };
    (service.eq_ignore_ascii_case("web") && labels.next().is_some()).then_some(account)
}

/// The account's label of a host such as `account.localhost`.
fn local_label(host: &str) -> Option<&str> {
    let (account, rest) = name(host)?.split_once('.')?;
    rest.eq_ignore_ascii_case("localhost").then_some(account)
}

/// The name of a host without its port, if it has one.
fn name(host: &str) -> Option<&str> {
    let name = host.split(':').next().unwrap_or(host);
    (!host.starts_with('[') && name.parse::<IpAddr>().is_err()).then_some(name)
}

/// An account's website.
struct Site {
    account: AccountName,
    website: StaticWebsite,
}

impl Site {
    /// The pages that `path` may mean: what has that name, else what stands for the directory of that name.
    fn pages(&self, path: &str) -> impl Iterator<Item = BlobName> {
        let is_directory = path.is_empty() || path.ends_with('/');
        let index = |index: &String| if is_directory { format!("{path}{index}") } else { format!("{path}/{index}") };
        let default = self.website.default_index_path.as_deref().filter(|_| is_directory).map(trimmed);
        let pages = [
            (!is_directory).then(|| path.to_owned()),
            self.website.index_document.as_ref().map(index),
            default.map(str::to_owned),
        ];
        // What cannot be a name is the name of nothing.
        pages.into_iter().flatten().filter_map(|name| BlobName::parse(&name).ok())
    }

    fn blob(&self, blob: BlobName) -> BlobAddress {
        BlobAddress {
            container: ContainerAddress { account: self.account.clone(), container: ContainerName::web() },
            blob,
        }
    }

    /// The answer to a path at which there is nothing.
    async fn error_page(&self, engine: &Engine) -> Result<Answer, Problem> {
        let name = self.website.error_path.as_deref().and_then(|path| BlobName::parse(trimmed(path)).ok());
        let Some(name) = name else { return Err(not_found()) };
        match found(engine, OnBlob::at(self.blob(name)), None).await? {
            Some(download) => Ok(Answer { status: StatusCode::NOT_FOUND, ..whole_or_part(download) }
                .header("x-ms-error-code", Code::WebContentNotFound.name())),
            None => Err(not_found()),
        }
    }
}

/// A path in the website from its root, with or without the slash of the root.
fn trimmed(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

/// What is at `on`, if there is anything.
async fn found(engine: &Engine, on: OnBlob, range: Option<RangeRequest>) -> Result<Option<Download>, Problem> {
    match object::download(engine, on, range).await {
        Ok(download) => Ok(Some(download)),
        Err(Error::Refused(Refusal::BlobNotFound | Refusal::ContainerNotFound)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The answer with what was asked of a blob. Of what is known of it, it says what browsers ask for.
fn whole_or_part(download: Download) -> Answer {
    let Download { blob, range, reader } = download;
    let answer = match range {
        None => Answer::ok().header_opt("content-md5", blob.http.content_md5.map(digest::md5_text)),
        Some(range) => {
            let last = range.first + (range.length - 1);
            let range = format!("bytes {}-{last}/{}", range.first, blob.length);
            Answer::new(StatusCode::PARTIAL_CONTENT).header("content-range", range)
        }
    };
    etag::onto(properties::onto(answer, &blob.http), blob.etag).header("accept-ranges", "bytes").reader(reader)
}

fn not_found() -> Problem {
    Problem::new(Code::WebContentNotFound)
}

/// The page that says what is wrong.
fn refusal(problem: &Problem, stamp: &Stamp) -> Answer {
    let status = if problem.not_modified { StatusCode::NOT_MODIFIED } else { problem.code.status() };
    let mut answer = Answer::new(status).header("x-ms-error-code", problem.code.name());
    for (name, value) in &problem.headers {
        answer = answer.header(name, value);
    }
    if problem.not_modified {
        return answer;
    }
    // Neither a code nor its message nor what follows has a character that HTML would take for its own.
    let (code, message) = (problem.code.name(), problem.code.message());
    let (number, request, time) = (status.as_u16(), stamp.request_id, date::iso8601(stamp.now));
    answer.html(format!(
        "<!DOCTYPE html><html><head><title>{code}</title></head><body><h1>{message}</h1><ul><li>HttpStatusCode: \
         {number}</li><li>ErrorCode: {code}</li><li>RequestId: {request}</li><li>TimeStamp: {time}</li></ul></body></html>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_website_is_addressed_by_its_host_or_by_its_port() {
        let cases = [
            ("dev.web.localhost:10000", Some("dev")),
            ("dev.z6.web.core.windows.net", Some("dev")),
            ("dev.Z12.Web.localhost", Some("dev")),
            ("dev.web", None),
            ("dev.z.web.localhost", None),
            ("dev.zx.web.localhost", None),
            ("dev.blob.localhost", None),
            ("dev.localhost", None),
            ("web.localhost", None),
            ("localhost", None),
            ("127.0.0.1:1", None),
            ("[::1]:1", None),
        ];
        for (host, expected) in cases {
            assert_eq!(label(host), expected, "{host}");
            let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
            let of = |front, path_style_only| service(front, &headers, path_style_only);
            assert_eq!(of(Service::Blob.into(), false).is_none(), expected.is_some(), "{host}");
            assert_eq!(of(Service::Blob.into(), true), Some(Service::Blob), "{host}");
            assert_eq!(of(Service::Queue.into(), false), Some(Service::Queue), "{host}");
            assert_eq!(of(Front::Web, false), None, "{host}");
        }
    }

    #[test]
    fn the_account_is_in_the_host_or_in_the_path() {
        let cases = [
            (Some("dev.web.localhost"), "/a/b", Some(("dev", "a/b"))),
            (Some("dev-secondary.web.localhost"), "/a/b", Some(("dev", "a/b"))),
            (Some("dev.localhost:1"), "/", Some(("dev", ""))),
            (Some("Dev.web.localhost"), "/a", Some(("dev", "a"))),
            (Some("127.0.0.1"), "/dev/a%20b", Some(("dev", "a b"))),
            (Some("localhost"), "/dev", Some(("dev", ""))),
            (None, "/dev/", Some(("dev", ""))),
            (Some("localhost"), "/", None),
            (Some("localhost"), "/Dev/a", None),
            (Some("localhost"), "/dev/%ff", None),
            (Some("localhost"), "*", None),
        ];
        for (host, path, expected) in cases {
            let found = address(host, path).ok();
            let found = found.as_ref().map(|(account, path)| (account.as_str(), path.as_str()));
            assert_eq!(found, expected, "{host:?} {path}");
        }
    }

    #[test]
    fn a_path_means_a_page_or_the_index_of_a_directory() {
        let full = |index: &str, default: &str| StaticWebsite {
            enabled: true,
            index_document: Some(index.to_owned()).filter(|text| !text.is_empty()),
            default_index_path: Some(default.to_owned()).filter(|text| !text.is_empty()),
            error_path: None,
        };
        let cases: [(_, _, _, &[&str]); 9] = [
            ("i.html", "", "", &["i.html"]),
            ("i.html", "", "a", &["a", "a/i.html"]),
            ("i.html", "", "a/", &["a/i.html"]),
            ("i.html", "", "a/b.css", &["a/b.css", "a/b.css/i.html"]),
            ("", "/app/start.html", "", &["app/start.html"]),
            ("", "app/start.html", "a/", &["app/start.html"]),
            ("i.html", "app/start.html", "a/", &["a/i.html", "app/start.html"]),
            ("", "app/start.html", "a", &["a"]),
            ("", "", "", &[]),
        ];
        for (index, default, path, expected) in cases {
            let site = Site { account: AccountName::parse("dev").unwrap(), website: full(index, default) };
            let pages: Vec<_> = site.pages(path).map(|name| name.to_string()).collect();
            assert_eq!(pages, expected, "{index} {default} {path}");
        }
    }
}
