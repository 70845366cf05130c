use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName};

use super::*;
use crate::blob::ROUTES;
use crate::head::HeaderCase;

const VERBS: [(Verb, Method); 7] = [
    (Verb::Get, Method::GET),
    (Verb::Head, Method::HEAD),
    (Verb::Put, Method::PUT),
    (Verb::Post, Method::POST),
    (Verb::Delete, Method::DELETE),
    (Verb::Options, Method::OPTIONS),
    (Verb::Patch, Method::PATCH),
];
type Pairs = Vec<(&'static str, &'static str)>;

/// A service and what its description names.
struct Described {
    tables: &'static [&'static [Route]],
    levels: &'static [Level],
    /// Names of the operations, and those that it has not: the preflight and, of blobs, the two reads of metadata.
    operations: &'static str,
}

const SERVICES: [Described; 3] = [
    Described {
        tables: ROUTES,
        levels: &[Level::Service, Level::Container, Level::Blob],
        operations: include_str!("operations.txt"),
    },
    Described {
        tables: crate::queue::ROUTES,
        levels: &[Level::Service, Level::Queue, Level::Messages, Level::Message],
        operations: include_str!("operations-queue.txt"),
    },
    Described {
        tables: crate::table::ROUTES,
        levels: &[Level::Service, Level::Tables, Level::TableEntry, Level::Table, Level::Entity, Level::Batch],
        operations: include_str!("operations-table.txt"),
    },
];

fn fields(headers: &[(&str, &str)], query: &[(&str, &str)]) -> Fields {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap()))
        .collect();
    let query: Vec<_> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Fields::parse(headers, Some(&query.join("&")), HeaderCase::default()).unwrap()
}

impl Described {
    fn routes(&self) -> impl Iterator<Item = &'static Route> {
        self.tables.iter().flat_map(|table| table.iter())
    }
}

/// Values of a selecting parameter that any route asks for, none, and one that no route asks for.
fn values(service: &Described, of: impl Fn(&Route) -> Selector) -> Vec<Option<&'static str>> {
    let asked: BTreeSet<_> = service
        .routes()
        .filter_map(|route| match of(route) {
            Selector::Is(value) => Some(value),
            Selector::Absent | Selector::Any => None,
        })
        .collect();
    asked.into_iter().map(Some).chain([None, Some("bogus")]).collect()
}

/// Every combination of the headers and parameters that tell the given routes apart.
fn combinations(routes: &[&Route]) -> Vec<(Pairs, Pairs)> {
    let mut headers: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut parameters: BTreeSet<(&str, &str)> = BTreeSet::new();
    for marker in routes.iter().flat_map(|route| route.markers) {
        match *marker {
            Marker::HeaderIs(name, value) | Marker::HeaderIsNot(name, value) => {
                headers.extend([(name, value), (name, "bogus")]);
            }
            Marker::Header(name) | Marker::NoHeader(name) => {
                headers.insert((name, "bogus"));
            }
            Marker::Query(name) | Marker::NoQuery(name) => {
                parameters.insert((name, "bogus"));
            }
            Marker::QueryIs(name, value) | Marker::QueryIsNot(name, value) => {
                parameters.extend([(name, value), (name, "bogus")]);
            }
        }
    }
    let mut all: Vec<(Pairs, Pairs)> = vec![(Vec::new(), Vec::new())];
    for (fields, into_headers) in [(&headers, true), (&parameters, false)] {
        for name in fields.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>() {
            let with = |mut chosen: (Pairs, Pairs), value| {
                if into_headers { &mut chosen.0 } else { &mut chosen.1 }.push((name, value));
                chosen
            };
            let values = fields.iter().filter(|(other, _)| *other == name).map(|(_, value)| *value);
            let more: Vec<_> = values.flat_map(|value| all.iter().cloned().map(move |one| with(one, value))).collect();
            all.extend(more);
        }
    }
    all
}

/// Walks every shape of request that the service's routes can tell from another.
fn every_shape(service: &Described, mut visit: impl FnMut(&Method, Level, &Fields, &[&'static Route])) {
    for (verb, method) in VERBS {
        for &level in service.levels {
            for restype in values(service, |route| route.restype) {
                for comp in values(service, |route| route.comp) {
                    let selected: Vec<_> = service
                        .routes()
                        .filter(|route| route.verbs.contains(&verb) && route.level == level)
                        .filter(|route| route.restype.fits(restype) && route.comp.fits(comp))
                        .collect();
                    let selecting = [("restype", restype), ("comp", comp)];
                    for (headers, mut query) in combinations(&selected) {
                        query.extend(selecting.iter().filter_map(|(name, value)| Some((*name, (*value)?))));
                        visit(&method, level, &fields(&headers, &query), &selected);
                    }
                }
            }
        }
    }
}

#[test]
fn every_request_fits_exactly_one_route_or_is_refused_for_a_reason() {
    for service in &SERVICES {
        every_shape(service, |method, level, fields, selected| {
            let fitting: Vec<_> =
                selected.iter().filter(|route| route.markers.iter().all(|marker| marker.fits(fields))).collect();
            let found = find(service.tables, method, level, fields);
            match (fitting.as_slice(), found) {
                ([route], Ok(operation)) => assert_eq!(route.operation.name, operation.name),
                ([], Err(problem)) => {
                    let reasons = if selected.is_empty() {
                        [Code::UnsupportedHttpVerb, Code::InvalidQueryParameterValue]
                    } else {
                        [Code::MissingRequiredHeader, Code::InvalidHeaderValue]
                    };
                    assert!(reasons.contains(&problem.code), "{method} {level:?} {fields:?}: {problem:?}");
                }
                (fitting, found) => panic!("{method} {level:?} {fields:?}: {fitting:?} {found:?}"),
            }
        });
    }
}

#[test]
fn every_route_is_reached_and_every_described_operation_is_routed() {
    for service in &SERVICES {
        let mut reached = BTreeSet::new();
        every_shape(service, |method, level, fields, selected| {
            if let Ok(operation) = find(service.tables, method, level, fields) {
                reached.insert(operation.name);
                assert!(selected.iter().any(|route| route.operation.name == operation.name));
            }
        });
        let routed: BTreeSet<_> = service.routes().map(|route| route.operation.name).collect();
        assert_eq!(reached, routed);
        let described: BTreeSet<_> = service.operations.lines().collect();
        assert_eq!(routed, described);
    }
}

#[test]
fn a_bare_put_is_decided_by_its_headers() {
    let (kind, source, sync) = ("x-ms-blob-type", "x-ms-copy-source", "x-ms-requires-sync");
    let cases: [(&[(&str, &str)], _); 11] = [
        (&[(kind, "BlockBlob")], Ok("BlockBlob_Upload")),
        (&[(kind, "blockblob")], Ok("BlockBlob_Upload")),
        (&[(kind, "AppendBlob")], Ok("AppendBlob_Create")),
        (&[(kind, "PageBlob")], Ok("PageBlob_Create")),
        (&[(source, "http://x"), (kind, "BlockBlob")], Ok("BlockBlob_PutBlobFromUrl")),
        (&[(source, "http://x"), (kind, "BlockBlob"), (sync, "true")], Ok("BlockBlob_PutBlobFromUrl")),
        (&[(source, "http://x"), (sync, "true")], Ok("Blob_CopyFromURL")),
        (&[(source, "http://x"), (sync, "false")], Ok("Blob_StartCopyFromURL")),
        (&[(source, "http://x")], Ok("Blob_StartCopyFromURL")),
        (&[], Err((Code::MissingRequiredHeader, kind))),
        (&[(kind, "Blob")], Err((Code::InvalidHeaderValue, kind))),
    ];
    for (headers, expected) in cases {
        let found = find(ROUTES, &Method::PUT, Level::Blob, &fields(headers, &[]));
        match (found, expected) {
            (Ok(operation), Ok(name)) => assert_eq!(operation.name, name),
            (Err(problem), Err((code, header))) => {
                assert_eq!(problem.code, code, "{headers:?}");
                assert!(problem.details.contains(&("HeaderName", header.to_owned())), "{problem:?}");
            }
            (found, expected) => panic!("{headers:?}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn what_no_operation_serves_is_refused_precisely() {
    let patch = Method::PATCH;
    let cases: [(&Method, _, &[(&str, &str)], _); 10] = [
        (&Method::GET, Level::Service, &[], Code::InvalidQueryParameterValue),
        (&Method::GET, Level::Service, &[("comp", "bogus")], Code::InvalidQueryParameterValue),
        (&Method::GET, Level::Container, &[("restype", "share")], Code::InvalidQueryParameterValue),
        (&Method::GET, Level::Blob, &[("restype", "container")], Code::InvalidQueryParameterValue),
        (&Method::GET, Level::Blob, &[("comp", "list")], Code::InvalidQueryParameterValue),
        (&Method::DELETE, Level::Service, &[("comp", "list")], Code::UnsupportedHttpVerb),
        (&Method::POST, Level::Container, &[("restype", "container")], Code::UnsupportedHttpVerb),
        (&Method::POST, Level::Blob, &[], Code::UnsupportedHttpVerb),
        (&patch, Level::Blob, &[], Code::UnsupportedHttpVerb),
        (&Method::PUT, Level::Blob, &[("comp", "lease")], Code::MissingRequiredHeader),
    ];
    for (method, level, query, expected) in cases {
        let found = find(ROUTES, method, level, &fields(&[], query));
        assert_eq!(found.map(|operation| operation.name).map_err(|problem| problem.code), Err(expected), "{query:?}");
    }
}

#[test]
fn selecting_values_match_in_any_letter_case_and_other_parameters_do_not_matter() {
    let fields = fields(&[], &[("RESTYPE", "Container"), ("Comp", "LIST"), ("timeout", "30"), ("foo", "bar")]);
    assert_eq!(
        find(ROUTES, &Method::GET, Level::Container, &fields).map(|operation| operation.name).ok(),
        Some("Container_ListBlobFlatSegment")
    );
}

#[test]
fn messages_are_peeked_at_only_if_the_request_says_so() {
    let cases = [
        ("", "Messages_Dequeue"),
        ("true", "Messages_Peek"),
        ("True", "Messages_Peek"),
        ("false", "Messages_Dequeue"),
        ("yes", "Messages_Dequeue"),
    ];
    for (value, expected) in cases {
        let found = find(crate::queue::ROUTES, &Method::GET, Level::Messages, &fields(&[], &[("PeekOnly", value)]));
        assert_eq!(found.map(|operation| operation.name).ok(), Some(expected), "{value}");
    }
}
