//! The text that a Shared Key signature covers.
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key>

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use http::Method;
use lazuli_engine::names::AccountName;

use crate::fields::Fields;
use crate::target::Service;
use crate::version::Version;

/// Header names that carry a signature's text, in its order; the length, whose rule depends on the version, and the
/// date have their places between them.
const BEFORE_LENGTH: [&str; 2] = ["content-encoding", "content-language"];
const AFTER_LENGTH: [&str; 2] = ["content-md5", "content-type"];
const AFTER_DATE: [&str; 5] = ["if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"];

/// How a request is signed with the account's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    SharedKey,
    SharedKeyLite,
}

/// What of a request a signature covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    pub(crate) service: Service,
    pub(crate) method: &'a Method,
    pub(crate) fields: &'a Fields,
    pub(crate) account: &'a AccountName,
    /// The path as received.
    pub(crate) raw_path: &'a str,
    /// Whether the account is the path's first segment and is of the secondary endpoint: its suffix may be signed or
    /// not.
    pub(crate) secondary_in_path: bool,
    pub(crate) version: Version,
}

impl Signed<'_> {
    /// Every text that the client may have signed, the service's own first. Clients differ in the order of headers
    /// and in the path of the secondary endpoint.
    pub(crate) fn texts(&self, scheme: Scheme) -> Vec<String> {
        let mut orders = vec![self.canonical_headers(by_weight)];
        let by_bytes = self.canonical_headers(str::cmp);
        if self.service != Service::Table && !orders.contains(&by_bytes) {
            orders.push(by_bytes);
        }
        let paths = self.paths();
        let pairs = paths.iter().flat_map(|path| orders.iter().map(move |headers| (path, headers)));
        pairs.map(|(path, headers)| self.text(scheme, path, headers)).collect()
    }

    fn text(&self, scheme: Scheme, path: &str, headers: &str) -> String {
        let verb = self.method.as_str();
        match (self.service, scheme) {
            (Service::Table, Scheme::SharedKeyLite) => format!("{}\n{}", self.table_date(), self.lite_resource(path)),
            (Service::Table, Scheme::SharedKey) => {
                let [md5, kind] = AFTER_LENGTH.map(|name| self.raw(name));
                format!("{verb}\n{md5}\n{kind}\n{}\n{}", self.table_date(), self.lite_resource(path))
            }
            (_, Scheme::SharedKeyLite) => {
                let [md5, kind] = AFTER_LENGTH.map(|name| self.raw(name));
                format!("{verb}\n{md5}\n{kind}\n{}\n{headers}{}", self.date(), self.lite_resource(path))
            }
            (_, Scheme::SharedKey) => {
                let lines = [Cow::Borrowed(verb)]
                    .into_iter()
                    .chain(BEFORE_LENGTH.map(|name| self.raw(name)))
                    .chain([self.length()])
                    .chain(AFTER_LENGTH.map(|name| self.raw(name)))
                    .chain([self.date()])
                    .chain(AFTER_DATE.map(|name| self.raw(name)));
                let mut text: String = lines.flat_map(|line| [line, Cow::Borrowed("\n")]).collect();
                text.push_str(headers);
                text.push_str(&self.resource(path));
                text
            }
        }
    }

    fn raw(&self, name: &str) -> Cow<'_, str> {
        let value = self.fields.headers().get(name).map(|value| value.as_bytes().trim_ascii());
        String::from_utf8_lossy(value.unwrap_or_default())
    }

    fn length(&self) -> Cow<'_, str> {
        let length = self.raw("content-length");
        if length == "0" && self.version >= Version::V2015_02_21 { Cow::Borrowed("") } else { length }
    }

    fn date(&self) -> Cow<'_, str> {
        if self.fields.has_header("x-ms-date") { Cow::Borrowed("") } else { self.raw("date") }
    }

    fn table_date(&self) -> Cow<'_, str> {
        if self.fields.has_header("x-ms-date") { self.raw("x-ms-date") } else { self.raw("date") }
    }

    /// Blanks inside values stay: no client folds them, and the HTTP library knows no folded lines.
    fn canonical_headers(&self, order: impl Fn(&str, &str) -> Ordering) -> String {
        let mut lines: Vec<(&str, String)> = Vec::new();
        for name in self.fields.headers().keys().map(http::HeaderName::as_str) {
            if !name.starts_with("x-ms-") {
                continue;
            }
            let values = self.fields.headers().get_all(name).iter();
            let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes().trim_ascii())).collect();
            let value = values.join(",");
            if !value.is_empty() || self.version >= Version::V2016_05_31 {
                lines.push((name, value));
            }
        }
        lines.sort_by(|(a, _), (b, _)| order(a, b));
        lines.into_iter().map(|(name, value)| format!("{name}:{value}\n")).collect()
    }

    fn paths(&self) -> Vec<Cow<'_, str>> {
        let path = if self.raw_path.is_empty() { "/" } else { self.raw_path };
        let mut paths = vec![Cow::Borrowed(path)];
        if self.secondary_in_path {
            paths.push(Cow::Owned(path.replacen("-secondary", "", 1)));
        }
        paths
    }

    fn resource(&self, path: &str) -> String {
        let mut parameters: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (name, value) in self.fields.query_pairs() {
            parameters.entry(name.to_lowercase()).or_default().push(value);
        }
        let mut resource = format!("/{}{path}", self.account);
        for (name, mut values) in parameters {
            values.sort_unstable();
            resource.push_str(&format!("\n{name}:{}", values.join(",")));
        }
        resource
    }

    fn lite_resource(&self, path: &str) -> String {
        let comp = self.fields.query_pairs().iter().find(|(name, _)| name.eq_ignore_ascii_case("comp"));
        let comp = comp.map(|(_, value)| format!("?comp={value}")).unwrap_or_default();
        format!("/{}{path}{comp}", self.account)
    }
}

/// The service's order of names: hyphens and apostrophes do not count at first, punctuation comes before digits before
/// letters; among equals the one with the later hyphen comes first.
fn by_weight(a: &str, b: &str) -> Ordering {
    const ASCENDING: &str = "!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";
    let weights = |name: &str| name.chars().filter_map(|c| ASCENDING.find(c)).collect::<Vec<_>>();
    let hyphens = |name: &str| name.chars().map(|c| matches!(c, '-' | '\'')).collect::<Vec<_>>();
    weights(a).cmp(&weights(b)).then_with(|| hyphens(a).cmp(&hyphens(b)))
}

#[cfg(test)]
mod tests;
