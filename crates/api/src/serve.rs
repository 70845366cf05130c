//! The way of a request, from its head to its stamped answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Buf;
use futures_util::{StreamExt, TryStreamExt};
use http::{HeaderMap, Method};
use lazuli_engine::Engine;
use lazuli_engine::clock::Clock;
use lazuli_engine::names::ContainerName;
use tracing::Instrument;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::answer::Answer;
use crate::auth::accounts::Accounts;
use crate::auth::{self, Arrival, Asked, Peer};
use crate::blob;
use crate::body::{Chunks, Incoming, check_framing, drained};
use crate::call::Call;
use crate::code::Code;
use crate::cors::Cors;
use crate::error::Problem;
use crate::fields::Fields;
use crate::head::HeaderCase;
use crate::operation::{Body, Operation, Permission};
use crate::queue;
use crate::remote::Remote;
use crate::route::{self, Route, Verb};
use crate::service;
use crate::stamp::Stamp;
use crate::table::{self, method};
use crate::target::{Front, Level, Resource, Service, Target};
use crate::version::{VERSION_HEADER, Version};
use crate::website;
use crate::wire::{encryption, structured};

/// The encryption scope that a write uses.
const ENCRYPTION_SCOPE: &str = "x-ms-encryption-scope";

/// What the way of a request needs.
pub struct App {
    /// The storage.
    pub engine: Engine,
    /// Who may come.
    pub accounts: Accounts,
    /// Judges the dates of signatures. The engine judges leases and conditions by its own.
    pub clock: Arc<dyn Clock>,
    /// How strict and how patient to be.
    pub options: Options,
    /// Reads the sources of copies that other servers have.
    pub remote: Remote,
}

/// How strict and how patient to be.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether versions newer than all known are refused.
    pub strict_versions: bool,
    /// Whether the account is never taken from the host name.
    pub path_style_only: bool,
    /// How long the next bytes of a body may take.
    pub body_idle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { strict_versions: false, path_style_only: false, body_idle: Duration::from_secs(60) }
    }
}

/// A request as it comes from the network.
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path as received, with its escapes.
    pub raw_path: String,
    /// The query as received, without its question mark.
    pub raw_query: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The letter case of their names.
    pub case: HeaderCase,
    /// Who sent it.
    pub peer: Peer,
    /// The body. First polled when an operation wants it.
    pub chunks: Chunks,
}

/// Answers a request that came to `front`, and logs it: never with its query, which may carry a signature.
pub async fn serve(app: &Arc<App>, front: impl Into<Front>, request: Request) -> Response {
    let started = Instant::now();
    let service = website::service(front.into(), &request.headers, app.options.path_style_only);
    let mut stamp = Stamp::new(service.unwrap_or(Service::Blob), &request.method, &request.headers, app.clock.now());
    let span =
        tracing::info_span!("request", id = %stamp.request_id, method = %request.method, path = request.raw_path);
    async {
        let outcome = match service {
            Some(service) => match Routed::parse(app, service, request, &mut stamp, None) {
                Ok(routed) => carry_out(app, routed, &stamp).await,
                Err(problem) => Err(problem),
            },
            None => Ok(website::answer(app, request, &mut stamp).await),
        };
        let response = stamp.onto(outcome);
        let (status, micros) = (response.status().as_u16(), started.elapsed().as_micros());
        tracing::info!(operation = stamp.operation, status, micros, "answered");
        response
    }
    .instrument(span)
    .await
}

/// A request of which it is known what it addresses and what it asks for.
struct Routed {
    service: Service,
    method: Method,
    target: Target,
    fields: Fields,
    version: Version,
    operation: &'static Operation,
    peer: Peer,
    chunks: Chunks,
}

impl Routed {
    /// The first half of the way. A request without a version speaks `inherited`, if there is one.
    fn parse(
        app: &App,
        service: Service,
        request: Request,
        stamp: &mut Stamp,
        inherited: Option<Version>,
    ) -> Result<Self, Problem> {
        let Request { method, raw_path, raw_query, headers, case, peer, chunks } = request;
        let chunks = drained(chunks, &headers);
        let fields = Fields::parse(headers, raw_query.as_deref(), case)?;
        let version = match inherited {
            Some(version) if !fields.has_header(VERSION_HEADER) => version,
            _ => auth::version(&fields, app.options.strict_versions)?,
        };
        stamp.version = version;
        let host = if app.options.path_style_only { None } else { fields.header_opt("host")? };
        let target = Target::parse(service, host, &raw_path, &fields)?;
        let properties = service::properties(&app.engine, &target.account, service)?;
        stamp.cors = Some(Cors::of(&properties.cors, &method, fields.headers()));
        let default = service::default_version(&properties, &fields).filter(|_| inherited.is_none());
        let version = default.unwrap_or(version);
        stamp.version = version;
        let meant = if service == Service::Table {
            Some(method::meant(&method, fields.headers())?)
        } else {
            route::recognize(&method)?;
            None
        };
        let operation = route::find(routes(service), meant.as_ref().unwrap_or(&method), target.level(), &fields)?;
        stamp.operation = operation.name;
        if inherited.is_none() {
            check_framing(&method, &fields)?;
        }
        Ok(Self { service, method, target, fields, version, operation, peer, chunks })
    }
}

/// The second half of the way: whether the request may, and what comes of it.
async fn carry_out(app: &Arc<App>, routed: Routed, stamp: &Stamp) -> Result<Answer, Problem> {
    let Routed { service, method, target, mut fields, version, operation, peer, chunks } = routed;
    let asked = Asked {
        service,
        method: &method,
        target: &target,
        fields: &fields,
        needs: operation.needs,
        version,
        now: stamp.now,
        peer,
        strict: app.options.strict_versions,
    };
    let grant = auth::authorize(&app.accounts, &app.engine, asked).await?;

    // A query is a read, whatever its verb.
    let is_write = Verb::of(&method).is_some_and(|verb| !verb.is_read()) && operation.needs != Permission::Read;
    let stores = is_write && method != Method::DELETE;
    if let Some(scope) = grant.encryption_scope().filter(|_| stores) {
        fields.demand(ENCRYPTION_SCOPE, scope)?;
    }
    if is_write {
        refuse_feed(&target)?;
    }
    let sight = reads_blob(&target, operation, &fields).then(|| grant.sight());

    check_timeout(&fields)?;
    let body = Incoming::admit(chunks, &fields, operation.body, version, app.options.body_idle)?;
    let structured = match operation.body {
        Body::Stream { .. } => fields.header_opt(structured::BODY)?.map(str::to_owned),
        Body::None | Body::Document { .. } => None,
    };
    let encryption = if stores && service == Service::Blob {
        encryption::repeated(&fields, &app.engine.policy(&target.account))?
    } else {
        Vec::new()
    };
    let arrival = Arrival {
        accounts: app.accounts.clone(),
        now: stamp.now,
        peer,
        strict: app.options.strict_versions,
        path_style_only: app.options.path_style_only,
    };
    let (engine, app) = (app.engine.clone(), Arc::clone(app));
    let request_id = stamp.request_id;
    let call = Call { engine, service, target, fields, version, grant, request_id, operation, arrival, app, body };
    // Clients take an answer that does not repeat the header for one of a service that did not check.
    let answer = (operation.run)(call).await?.header_opt(structured::BODY, structured);
    let answer = encryption.into_iter().fold(answer, |answer, (name, value)| answer.header(name, value));
    Ok(match sight {
        Some(sight) => sight.onto(answer),
        None => answer,
    })
}

/// Whether the answer has a blob's content or properties: its headers are then those that the caller may see.
fn reads_blob(target: &Target, operation: &Operation, fields: &Fields) -> bool {
    let whole = fields.query_opt("comp").is_none() && fields.query_opt("restype").is_none();
    whole && target.level() == Level::Blob && operation.needs == Permission::Read
}

/// The files of the change feed are written by the server alone.
///
/// Refuses `SystemInUse`.
fn refuse_feed(target: &Target) -> Result<(), Problem> {
    match &target.resource {
        Resource::Blob(container, _) if *container == ContainerName::change_feed() => {
            Err(Problem::new(Code::SystemInUse))
        }
        _ => Ok(()),
    }
}

/// The routes of a service.
const fn routes(service: Service) -> &'static [&'static [Route]] {
    match service {
        Service::Blob => blob::ROUTES,
        Service::Queue => queue::ROUTES,
        Service::Table => table::ROUTES,
    }
}

/// A request within another one, such as a part of a batch. It goes the same way, with an authorization of its own;
/// whoever takes it out of the other looks at what it asks for before it does.
pub(crate) struct Inner {
    app: Arc<App>,
    stamp: Stamp,
    routed: Result<Routed, Problem>,
}

impl Inner {
    /// The request that came within `call`, whose version it speaks unless it names one.
    pub(crate) fn of(call: &Call, service: Service, request: Request) -> Self {
        let app = Arc::clone(&call.app);
        let mut stamp = Stamp::new(service, &request.method, &request.headers, app.clock.now());
        stamp.version = call.version;
        let routed = Routed::parse(&app, service, request, &mut stamp, Some(call.version));
        Self { app, stamp, routed }
    }

    /// What it addresses and asks for, unless it is to be refused.
    pub(crate) fn routed(&self) -> Option<(&Target, &'static Operation)> {
        self.routed.as_ref().ok().map(|routed| (&routed.target, routed.operation))
    }

    /// Its answer, stamped.
    pub(crate) async fn answer(self) -> Answer {
        let Self { app, stamp, routed } = self;
        let outcome = match routed {
            Ok(routed) => carry_out(&app, routed, &stamp).await,
            Err(problem) => Err(problem),
        };
        let answer = stamp.complete(outcome);
        let (operation, status) = (stamp.operation, answer.status.as_u16());
        tracing::info!(id = %stamp.request_id, operation, status, "answered within a batch");
        answer
    }
}

/// How long the client would wait is not ours to enforce, but it must say a number.
fn check_timeout(fields: &Fields) -> Result<(), Problem> {
    match fields.query_number("timeout")? {
        Some(0) => Err(Problem::query("timeout", "0", "It is less than one second.")),
        _ => Ok(()),
    }
}

/// The one filter of a port: it takes every request, raw. A [`HeaderCase`] extension of the request, if there
/// is one, tells how its header names were written, a [`Peer`] extension who sent it; a [`crate::head::ResponseCase`]
/// extension of the response, how its own names are to be.
pub fn filter(
    app: Arc<App>,
    front: impl Into<Front>,
) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone + Send + Sync + 'static {
    let front = front.into();
    let raw_query = warp::query::raw().map(Some).or(warp::any().map(|| None)).unify();
    warp::method()
        .and(warp::path::full())
        .and(raw_query)
        .and(warp::header::headers_cloned())
        .and(warp::ext::optional::<HeaderCase>())
        .and(warp::ext::optional::<Peer>())
        .and(warp::body::stream())
        .then(
            move |method,
                  path: warp::path::FullPath,
                  raw_query,
                  headers,
                  case: Option<HeaderCase>,
                  peer: Option<Peer>,
                  body| {
                let app = Arc::clone(&app);
                let request = Request {
                    method,
                    raw_path: path.as_str().to_owned(),
                    raw_query,
                    headers,
                    case: case.unwrap_or_default(),
                    peer: peer.unwrap_or_default(),
                    chunks: chunks(body),
                };
                async move { serve(&app, front, request).await }
            },
        )
}

fn chunks<B: Buf>(body: impl futures_util::Stream<Item = Result<B, warp::Error>> + Send + 'static) -> Chunks {
    body.map_ok(|mut data| data.copy_to_bytes(data.remaining())).map_err(Into::into).boxed()
}
