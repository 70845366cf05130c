//! The text that a shared access signature covers, by its version.
//! <https://learn.microsoft.com/rest/api/storageservices/create-service-sas#version-2020-12-06-and-later>

use super::form::{Form, Shape};
use crate::auth::Asked;
use crate::auth::failed;
use crate::error::Problem;
use crate::target::{Resource, Service};
use crate::version::Version;

/// Response headers that a signature may set, by their parameters.
pub(super) const OVERRIDES: [(&str, &str); 5] = [
    ("rscc", "cache-control"),
    ("rscd", "content-disposition"),
    ("rsce", "content-encoding"),
    ("rscl", "content-language"),
    ("rsct", "content-type"),
];
const DELEGATION_KEY: [&str; 6] = ["skoid", "sktid", "skt", "ske", "sks", "skv"];

/// The text that the signature must cover for this request.
///
/// Refuses `AuthenticationFailed` for a request of something that such a signature cannot name.
pub(super) fn text(form: &Form<'_>, asked: Asked<'_>) -> Result<String, Problem> {
    if form.shape == Shape::Account {
        return Ok(account_text(form, asked.target.account.as_str()));
    }
    let resource = resource(form, asked)?;
    let delegated = form.shape == Shape::Delegated;
    let blob = asked.service == Service::Blob;
    let mut lines = Lines::default();
    lines.add(form, &["sp", "st", "se"]);
    lines.push(resource);
    if delegated {
        lines.add(form, &DELEGATION_KEY);
        if blob && form.since(Version::V2020_02_10) {
            lines.add(form, &["saoid", "suoid", "scid"]);
        }
        if form.since(Version::V2025_07_05) {
            lines.add(form, &["skdutid", "sduoid"]);
        }
    } else {
        lines.add(form, &["si"]);
    }
    if form.since(Version::V2015_04_05) {
        lines.add(form, &["sip", "spr"]);
    }
    if form.version.is_some() {
        lines.add(form, &["sv"]);
    }
    match asked.service {
        Service::Blob => blob_lines(form, asked, &mut lines),
        Service::Queue => {}
        Service::Table => lines.add(form, &["spk", "srk", "epk", "erk"]),
    }
    Ok(lines.0.join("\n"))
}

fn account_text(form: &Form<'_>, account: &str) -> String {
    let mut lines = Lines(vec![account.to_owned()]);
    lines.add(form, &["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]);
    if form.since(Version::V2020_12_06) {
        lines.add(form, &["ses"]);
    }
    lines.push(String::new()); // each line has its end
    lines.0.join("\n")
}

fn blob_lines(form: &Form<'_>, asked: Asked<'_>, lines: &mut Lines) {
    if form.since(Version::V2018_11_09) {
        lines.add(form, &["sr"]);
        let moment = match form.get("sr") {
            "bs" => asked.fields.query_opt("snapshot"),
            "bv" => asked.fields.query_opt("versionid"),
            _ => None,
        };
        lines.push(moment.unwrap_or_default().to_owned());
    }
    if form.since(Version::V2020_12_06) {
        lines.add(form, &["ses"]);
    }
    if form.shape == Shape::Delegated && form.since(Version::V2026_04_06) {
        let header = |name: &str| asked.fields.header_opt(name).ok().flatten().unwrap_or_default().to_owned();
        let parameter = |name: &str| asked.fields.query_opt(name).unwrap_or_default().to_owned();
        lines.push(names(form.get("srh")).map(|name| format!("{name}:{}\n", header(name))).collect());
        lines.push(names(form.get("srq")).map(|name| format!("\n{name}:{}", parameter(name))).collect());
    }
    if form.since(Version::V2013_08_15) {
        lines.add(form, &OVERRIDES.map(|(parameter, _)| parameter));
    }
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// The lines of a text.
#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn push(&mut self, line: String) {
        self.0.push(line);
    }

    fn add(&mut self, form: &Form<'_>, names: &[&str]) {
        self.0.extend(names.iter().map(|name| form.get(name).to_owned()));
    }
}

/// What the signature is for, as this request would have it: a signature for something else doesn't match then.
fn resource(form: &Form<'_>, asked: Asked<'_>) -> Result<String, Problem> {
    let account = asked.target.account.as_str();
    let path = match asked.service {
        Service::Blob => blob_path(form, asked)?,
        Service::Queue => asked.target.top().map(str::to_owned).ok_or_else(elsewhere)?,
        Service::Table => {
            let table = form.get("tn");
            // A batch addresses the service; its parts say which table.
            if asked.target.top().is_some_and(|other| !other.eq_ignore_ascii_case(table)) {
                return Err(elsewhere());
            }
            table.to_ascii_lowercase()
        }
    };
    if form.since(Version::V2015_02_21) {
        return Ok(format!("/{}/{account}/{path}", asked.service.name().to_ascii_lowercase()));
    }
    Ok(format!("/{account}/{path}"))
}

fn blob_path(form: &Form<'_>, asked: Asked<'_>) -> Result<String, Problem> {
    let container = asked.target.top().ok_or_else(elsewhere)?;
    match (form.get("sr"), &asked.target.resource) {
        ("c", _) => Ok(container.to_owned()),
        ("b" | "bs" | "bv", Resource::Blob(_, blob)) => Ok(format!("{container}/{}", blob.as_str())),
        ("d", _) => directory(form, asked, container),
        _ => Err(elsewhere()),
    }
}

/// The directory of `sdd` segments that the request is within: that of its blob, or the one that it lists.
fn directory(form: &Form<'_>, asked: Asked<'_>, container: &str) -> Result<String, Problem> {
    let depth = form.depth()?;
    let whole = match &asked.target.resource {
        Resource::Blob(_, blob) => format!("{}/", blob.as_str()),
        _ => match asked.fields.query_opt("directory") {
            Some(directory) => format!("{}/", directory.trim_end_matches('/')),
            // `d1/d2` as a prefix is also that of `d1/d2x`, so only what a slash follows counts.
            None => asked.fields.query_opt("prefix").unwrap_or_default().to_owned(),
        },
    };
    let segments: Vec<_> = whole.split('/').collect();
    let (first, rest) = segments.split_at_checked(depth).ok_or_else(elsewhere)?;
    if rest.is_empty() {
        return Err(elsewhere());
    }
    Ok(std::iter::once(&container).chain(first).copied().collect::<Vec<_>>().join("/"))
}

fn elsewhere() -> Problem {
    failed("Signature did not match: the shared access signature is not for what the request addresses.")
}
