//! Which pages of other origins may use a service: the answer to a preflight, and what browsers must read in every other
//! answer before they hand it to a page.
//! <https://learn.microsoft.com/rest/api/storageservices/cross-origin-resource-sharing--cors--support-for-the-azure-storage-services>

use http::header::{HeaderMap, HeaderName, HeaderValue, ORIGIN};
use http::{Method, header};
use lazuli_engine::service::properties::CorsRule;

use crate::answer::Answer;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;

const REQUEST_METHOD: &str = "access-control-request-method";
const REQUEST_HEADERS: &str = "access-control-request-headers";
/// What stands for every origin or header.
const ALL: &str = "*";
/// Headers that every page which may read an answer may read of it, as the service names them: first and last.
const EXPOSED_FIRST: [&str; 3] = ["x-ms-request-id", "Server", "x-ms-version"];
const EXPOSED_LAST: [&str; 3] = ["Content-Length", "Date", "Transfer-Encoding"];

/// Answers a preflight request: whether a page may send the request that it describes. The first rule that allows all of
/// it decides.
///
/// Refuses `InvalidHeaderValue` if it names no origin or no method, as the service does, and `CorsPreflightFailure`.
pub(crate) fn preflight(rules: &[CorsRule], fields: &Fields) -> Result<Answer, Problem> {
    let given = |name: &'static str| match fields.header_opt(name)? {
        Some(value) => Ok(value),
        None => Err(Problem::header(name, "").saying(format!("A preflight request needs the header {name}."))),
    };
    let (origin, method) = (given("origin")?, given(REQUEST_METHOD)?);
    let headers = fields.header_opt(REQUEST_HEADERS)?;
    let names = || headers.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let allows = |rule: &&CorsRule| {
        allows(rule, origin, method) && names().all(|name| rule.allowed_headers.iter().any(|item| covers(item, name)))
    };
    let rule = rules.iter().find(allows).ok_or_else(|| Problem::new(Code::CorsPreflightFailure))?;
    let answer = Answer::ok()
        .header("access-control-allow-methods", method)
        .header_opt("access-control-allow-headers", headers)
        .header("access-control-max-age", rule.max_age_seconds.to_string());
    Ok(if for_all(rule) {
        answer.header("access-control-allow-origin", ALL)
    } else {
        answer.header("access-control-allow-origin", origin).header("access-control-allow-credentials", "true")
    })
}

/// What every answer to a request says to browsers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cors {
    /// The origin that may read the answer, and what of its headers; none if no rule fits.
    allowed: Option<Allowed>,
    /// Whether another origin might get another answer.
    varies: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowed {
    /// None for every origin.
    origin: Option<HeaderValue>,
    exposed: Vec<String>,
}

impl Cors {
    /// What `rules` say about a request: nothing about a preflight, whose answer says it all. A rule for all origins also speaks to a read that names none, so that caches
    /// may give its answer to every page.
    pub(crate) fn of(rules: &[CorsRule], method: &Method, headers: &HeaderMap) -> Self {
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        let origin = headers.get(ORIGIN);
        let rules = if *method == Method::OPTIONS { &[] } else { rules };
        let matches = |rule: &&CorsRule| match origin.map(HeaderValue::to_str) {
            Some(Ok(origin)) => allows(rule, origin, method.as_str()),
            Some(Err(_)) => false,
            None => is_read && for_all(rule) && allows(rule, ALL, method.as_str()),
        };
        let allowed = rules.iter().find(matches).map(|rule| Allowed {
            origin: origin.filter(|_| !for_all(rule)).cloned(),
            exposed: rule.exposed_headers.clone(),
        });
        let to_all = allowed.as_ref().is_some_and(|allowed| allowed.origin.is_none());
        Self { allowed, varies: is_read && !rules.is_empty() && !to_all }
    }

    /// Adds what is said to the headers of an answer, which are complete but for it.
    pub(crate) fn onto(&self, headers: &mut HeaderMap) {
        if let Some(allowed) = &self.allowed {
            allowed.onto(headers);
        }
        if self.varies {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
    }
}

impl Allowed {
    fn onto(&self, headers: &mut HeaderMap) {
        if let Ok(exposed) = HeaderValue::try_from(exposed(&self.exposed, headers)) {
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
        if self.origin.is_some() {
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        let origin = self.origin.clone().unwrap_or(HeaderValue::from_static(ALL));
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
}

/// The headers of an answer that a page may read: the usual ones, those that the rule names, and those of the answer
/// that begin as the rule says.
fn exposed(rule: &[String], headers: &HeaderMap) -> String {
    let mut names: Vec<&str> = EXPOSED_FIRST.to_vec();
    let named = rule.iter().map(String::as_str).filter(|item| !item.ends_with(ALL));
    let begun = headers.keys().map(HeaderName::as_str).filter(|name| rule.iter().any(|item| covers(item, name)));
    for name in named.chain(begun).chain(EXPOSED_LAST) {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            names.push(name);
        }
    }
    names.join(",")
}

fn allows(rule: &CorsRule, origin: &str, method: &str) -> bool {
    let origin_fits = rule.allowed_origins.iter().any(|allowed| allowed == ALL || allowed == origin);
    origin_fits && rule.allowed_methods.iter().any(|allowed| allowed == method)
}

fn for_all(rule: &CorsRule) -> bool {
    rule.allowed_origins.iter().any(|origin| origin == ALL)
}

/// Whether an item of a list of headers, a name or the beginning of names and a star, covers `name`.
fn covers(item: &str, name: &str) -> bool {
    match item.strip_suffix(ALL) {
        Some(begin) => name.get(..begin.len()).is_some_and(|start| start.eq_ignore_ascii_case(begin)),
        None => item.eq_ignore_ascii_case(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::HeaderCase;

    const A: &str = "http://a.example";
    const B: &str = "http://b.example";

    fn rule(origins: &[&str], methods: &[&str], allowed: &[&str], exposed: &[&str]) -> CorsRule {
        let list = |items: &[&str]| items.iter().map(ToString::to_string).collect();
        CorsRule {
            allowed_origins: list(origins),
            allowed_methods: list(methods),
            allowed_headers: list(allowed),
            exposed_headers: list(exposed),
            max_age_seconds: 7,
        }
    }

    fn map(headers: &[(&'static str, &str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn shown(headers: &HeaderMap, name: &str) -> String {
        headers.get(name).map_or("-", |value| value.to_str().unwrap()).to_owned()
    }

    #[test]
    fn the_first_rule_that_allows_all_of_it_answers_a_preflight() {
        let rules = [
            rule(&[A], &["GET"], &["x-ms-*", "range"], &[]),
            rule(&[A, B], &["PUT"], &[], &[]),
            rule(&["*"], &["DELETE", "GET"], &["*"], &[]),
        ];
        // Origin, method, headers; the origin allowed (with a plus if with credentials), or nothing.
        let cases = [
            (A, "GET", "", Some("+http://a.example")),
            (A, "GET", "Range, X-MS-Date", Some("+http://a.example")),
            (A, "GET", "x-other", Some("*")),
            (A, "PUT", "", Some("+http://a.example")),
            (B, "PUT", "", Some("+http://b.example")),
            (B, "PUT", "x-ms-date", None),
            (B, "GET", "x-ms-date,anything", Some("*")),
            ("http://c.example", "DELETE", "", Some("*")),
            ("http://c.example", "PUT", "", None),
            ("HTTP://A.EXAMPLE", "PUT", "", None),
            (A, "put", "", None),
            (A, "POST", "", None),
        ];
        for (origin, method, headers, expected) in cases {
            let sent = map(&[("origin", origin), (REQUEST_METHOD, method), (REQUEST_HEADERS, headers)]);
            let fields = Fields::parse(sent, None, HeaderCase::default()).unwrap();
            match (preflight(&rules, &fields), expected) {
                (Ok(answer), Some(expected)) => {
                    let with =
                        if shown(&answer.headers, "access-control-allow-credentials") == "true" { "+" } else { "" };
                    let origin = shown(&answer.headers, "access-control-allow-origin");
                    assert_eq!(format!("{with}{origin}"), expected, "{method} {headers}");
                    assert_eq!(shown(&answer.headers, "access-control-allow-methods"), method);
                    assert_eq!(shown(&answer.headers, "access-control-max-age"), "7");
                    let allowed = shown(&answer.headers, "access-control-allow-headers");
                    assert_eq!(allowed, if headers.is_empty() { "-" } else { headers });
                }
                (Err(problem), None) => assert_eq!(problem.code, Code::CorsPreflightFailure, "{origin} {method}"),
                (found, expected) => panic!("{origin} {method} {headers}: {found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a_preflight_names_origin_and_method() {
        for headers in [&[("origin", A)][..], &[(REQUEST_METHOD, "GET")], &[]] {
            let fields = Fields::parse(map(headers), None, HeaderCase::default()).unwrap();
            let problem = preflight(&[rule(&["*"], &["GET"], &[], &[])], &fields).unwrap_err();
            assert_eq!(problem.code, Code::InvalidHeaderValue, "{headers:?}");
        }
    }

    #[test]
    fn answers_say_who_may_read_them_and_whether_they_vary() {
        let exact = rule(&[A], &["GET", "PUT"], &[], &[]);
        let all = rule(&["*"], &["GET"], &[], &[]);
        let options = rule(&["*"], &["OPTIONS"], &[], &[]);
        // Rules, method, origin; allowed origin, credentials, Vary.
        let cases = [
            (&[][..], Method::GET, Some(A), "-", "-", "-"),
            (&[], Method::GET, None, "-", "-", "-"),
            (std::slice::from_ref(&exact), Method::GET, Some(A), A, "true", "Origin"),
            (std::slice::from_ref(&exact), Method::HEAD, Some(A), "-", "-", "Origin"),
            (std::slice::from_ref(&exact), Method::PUT, Some(A), A, "true", "-"),
            (std::slice::from_ref(&exact), Method::GET, Some(B), "-", "-", "Origin"),
            (std::slice::from_ref(&exact), Method::GET, None, "-", "-", "Origin"),
            (std::slice::from_ref(&exact), Method::PUT, None, "-", "-", "-"),
            (std::slice::from_ref(&all), Method::GET, Some(B), "*", "-", "-"),
            (std::slice::from_ref(&all), Method::GET, None, "*", "-", "-"),
            (std::slice::from_ref(&all), Method::DELETE, Some(B), "-", "-", "-"),
            (std::slice::from_ref(&options), Method::OPTIONS, Some(B), "-", "-", "-"),
        ];
        for (rules, method, origin, allowed, credentials, vary) in cases {
            let sent = origin.map_or_else(HeaderMap::new, |origin| map(&[("origin", origin)]));
            let mut headers = HeaderMap::new();
            Cors::of(rules, &method, &sent).onto(&mut headers);
            let found = ["access-control-allow-origin", "access-control-allow-credentials", "vary"];
            let found = found.map(|name| shown(&headers, name));
            assert_eq!(found, [allowed, credentials, vary], "{rules:?} {method} {origin:?}");
        }
        let both = Cors::of(&[exact, all], &Method::GET, &map(&[("origin", A)]));
        let mut headers = HeaderMap::new();
        both.onto(&mut headers);
        assert_eq!(shown(&headers, "access-control-allow-origin"), A, "the first rule that fits decides");
    }

    #[test]
    fn a_page_may_read_the_usual_headers_and_those_of_the_rule() {
        let usual = "x-ms-request-id,Server,x-ms-version";
        let cases: [(&[&str], String); 4] = [
            (&[], format!("{usual},Content-Length,Date,Transfer-Encoding")),
            (&["ETag", "x-none"], format!("{usual},ETag,x-none,Content-Length,Date,Transfer-Encoding")),
            (&["x-ms-META-*"], format!("{usual},x-ms-meta-b,x-ms-meta-a,Content-Length,Date,Transfer-Encoding")),
            (&["*"], format!("{usual},etag,x-ms-meta-b,x-ms-meta-a,Content-Length,Date,Transfer-Encoding")),
        ];
        for (exposed, expected) in cases {
            let rules = [rule(&[A], &["GET"], &[], exposed)];
            let answer = [("etag", "1"), ("x-ms-meta-b", "1"), ("x-ms-meta-a", "1"), ("x-ms-version", "1")];
            let mut headers = map(&answer);
            let names: Vec<_> = headers.keys().map(ToString::to_string).collect();
            Cors::of(&rules, &Method::GET, &map(&[("origin", A)])).onto(&mut headers);
            assert_eq!(shown(&headers, "access-control-expose-headers"), expected, "{exposed:?} {names:?}");
        }
    }
}
