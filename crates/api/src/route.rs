//! Which operation a request asks for. Routes are data; [`find`] walks them and derives the refusal from them.

use http::Method;

use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::Operation;
use crate::target::Level;

/// A method of the Table service alone, older than PATCH.
const MERGE: &str = "MERGE";

/// The methods that operations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are the HTTP methods")]
pub enum Verb {
    Get,
    Head,
    Put,
    Post,
    Delete,
    Options,
    Patch,
    Merge,
}

impl Verb {
    /// The verb of an HTTP method, if any operation uses it.
    pub fn of(method: &Method) -> Option<Self> {
        Some(match *method {
            Method::GET => Self::Get,
            Method::HEAD => Self::Head,
            Method::PUT => Self::Put,
            Method::POST => Self::Post,
            Method::DELETE => Self::Delete,
            Method::OPTIONS => Self::Options,
            Method::PATCH => Self::Patch,
            _ if method.as_str() == MERGE => Self::Merge,
            _ => return None,
        })
    }

    /// Whether it changes nothing.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options)
    }
}

/// Sees to it that HTTP knows the method, or a service does.
///
/// Refuses `InvalidHttpVerb`.
pub fn recognize(method: &Method) -> Result<(), Problem> {
    if Verb::of(method).is_some() || matches!(*method, Method::CONNECT | Method::TRACE) {
        return Ok(());
    }
    Err(Problem::new(Code::InvalidHttpVerb))
}

/// What a route asks of a query parameter that selects operations. Values match without regard to letter case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// It is absent.
    Absent,
    /// It has this value.
    Is(&'static str),
    /// Whatever.
    Any,
}

/// What else tells one operation from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// The header is there.
    Header(&'static str),
    /// The header is not there.
    NoHeader(&'static str),
    /// The header has this value, in any letter case.
    HeaderIs(&'static str, &'static str),
    /// The header does not have this value.
    HeaderIsNot(&'static str, &'static str),
    /// The query parameter is there.
    Query(&'static str),
    /// The query parameter is not there.
    NoQuery(&'static str),
    /// The query parameter has this value, in any letter case.
    QueryIs(&'static str, &'static str),
    /// The query parameter does not have this value.
    QueryIsNot(&'static str, &'static str),
}

/// A shape of requests and the operation that serves it.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The methods.
    pub verbs: &'static [Verb],
    /// How deep the path goes.
    pub level: Level,
    /// `restype` in the query.
    pub restype: Selector,
    /// `comp` in the query.
    pub comp: Selector,
    /// What else must hold.
    pub markers: &'static [Marker],
    /// The operation.
    pub operation: &'static Operation,
}

impl Route {
    /// A route of the service itself; an empty `restype` or `comp` stands for its absence.
    pub const fn service(
        verbs: &'static [Verb],
        restype: &'static str,
        comp: &'static str,
        operation: &'static Operation,
    ) -> Self {
        let (restype, comp) = (selector(restype), selector(comp));
        Self { verbs, level: Level::Service, restype, comp, markers: &[], operation }
    }

    /// A route of a container; an empty `comp` stands for its absence.
    pub const fn container(
        verbs: &'static [Verb],
        comp: &'static str,
        markers: &'static [Marker],
        operation: &'static Operation,
    ) -> Self {
        let restype = Selector::Is("container");
        Self { verbs, level: Level::Container, restype, comp: selector(comp), markers, operation }
    }

    /// A route of a blob; an empty `comp` stands for its absence.
    pub const fn blob(
        verbs: &'static [Verb],
        comp: &'static str,
        markers: &'static [Marker],
        operation: &'static Operation,
    ) -> Self {
        Self { verbs, level: Level::Blob, restype: Selector::Absent, comp: selector(comp), markers, operation }
    }

    /// A route of a queue, of its messages or of one of them, or of a table or what is in it; an empty `comp` stands
    /// for its absence.
    pub const fn at(
        level: Level,
        verbs: &'static [Verb],
        comp: &'static str,
        markers: &'static [Marker],
        operation: &'static Operation,
    ) -> Self {
        Self { verbs, level, restype: Selector::Absent, comp: selector(comp), markers, operation }
    }
}

const fn selector(value: &'static str) -> Selector {
    if value.is_empty() { Selector::Absent } else { Selector::Is(value) }
}

impl Selector {
    fn fits(self, value: Option<&str>) -> bool {
        match self {
            Self::Absent => value.is_none(),
            Self::Is(wanted) => value.is_some_and(|value| value.eq_ignore_ascii_case(wanted)),
            Self::Any => true,
        }
    }
}

impl Marker {
    fn fits(self, fields: &Fields) -> bool {
        let header_is =
            |name, wanted| matches!(fields.header_opt(name), Ok(Some(value)) if value.eq_ignore_ascii_case(wanted));
        let query_is =
            |name, wanted| fields.query_opt(name).is_some_and(|value: &str| value.eq_ignore_ascii_case(wanted));
        match self {
            Self::Header(name) => fields.has_header(name),
            Self::NoHeader(name) => !fields.has_header(name),
            Self::HeaderIs(name, value) => header_is(name, value),
            Self::HeaderIsNot(name, value) => !header_is(name, value),
            Self::Query(name) => fields.query_opt(name).is_some(),
            Self::NoQuery(name) => fields.query_opt(name).is_none(),
            Self::QueryIs(name, value) => query_is(name, value),
            Self::QueryIsNot(name, value) => !query_is(name, value),
        }
    }

    /// What is wrong with a request that fits a route but for this marker.
    fn refusal(self, fields: &Fields) -> Option<Problem> {
        match self {
            Self::HeaderIs(name, _) | Self::Header(name) => Some(match fields.header(name) {
                Ok(value) => Problem::header(name, value),
                Err(problem) => problem,
            }),
            Self::Query(name) => Some(Problem::missing_query(name)),
            Self::NoHeader(_) | Self::HeaderIsNot(..) | Self::NoQuery(_) | Self::QueryIs(..) | Self::QueryIsNot(..) => {
                None
            }
        }
    }
}

/// The operation that a request asks for: exactly one route of `tables` fits it.
///
/// Refuses `UnsupportedHttpVerb`, `InvalidQueryParameterValue` for an unknown `restype` or `comp`, and
/// `MissingRequiredHeader` or `InvalidHeaderValue` for the header that tells operations apart.
pub fn find(
    tables: &[&'static [Route]],
    method: &Method,
    level: Level,
    fields: &Fields,
) -> Result<&'static Operation, Problem> {
    let (restype, comp) = (fields.query_opt("restype"), fields.query_opt("comp"));
    let at_level = || tables.iter().flat_map(|table| table.iter()).filter(move |route| route.level == level);
    let selected = || at_level().filter(|route| route.restype.fits(restype) && route.comp.fits(comp));
    let verb = Verb::of(method);
    let candidates = || selected().filter(|route| verb.is_some_and(|verb| route.verbs.contains(&verb)));

    if let Some(route) = candidates().find(|route| route.markers.iter().all(|marker| marker.fits(fields))) {
        return Ok(route.operation);
    }
    if candidates().next().is_some() {
        let missed = candidates().flat_map(|route| route.markers.iter()).filter(|marker| !marker.fits(fields));
        let refusal = missed.filter_map(|marker| marker.refusal(fields)).next();
        return Err(refusal.unwrap_or_else(|| Problem::new(Code::InvalidInput)));
    }
    // A preflight fits whatever is selected; it tells nothing about which selections exist.
    let exists = |route: &&Route| route.comp != Selector::Any;
    if verb.is_none() || selected().any(|route| exists(&route)) {
        return Err(Problem::new(Code::UnsupportedHttpVerb));
    }
    let known_restype = at_level().filter(exists).any(|route| route.restype.fits(restype));
    let (name, value) = if known_restype { ("comp", comp) } else { ("restype", restype) };
    Err(Problem::query(name, value.unwrap_or_default(), "No operation has this value here."))
}

#[cfg(test)]
mod tests;
