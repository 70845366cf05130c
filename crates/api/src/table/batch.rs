//! Many writes of one partition in one request, all of them or none; or one read.
//! <https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions>

use std::collections::HashSet;
use std::fmt::Write as _;

use http::header::HOST;
use http::{HeaderMap, Method};
use lazuli_engine::table::entities;
use uuid::Uuid;

use super::entities::Wish;
use super::odata::document;
use super::{endpoint, method, scope};
use crate::answer::{Answer, Content};
use crate::auth::{self, Grant};
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::{Body, Operation, Permission};
use crate::route::{self, Route, Verb};
use crate::stamp::Stamp;
use crate::target::{Level, Service, Target};
use crate::wire::multipart::{self, Part, PartRequest};

/// Most writes of a batch.
const WRITES_MAX: usize = 100;
/// What the boundary of the answers to a set of changes begins with.
const CHANGES: &str = "changesetresponse";
/// Headers of the parts of answers, as the service writes them: some clients look for them letter by letter.
const NAMES: [(&str, &str); 8] = [
    ("x-content-type-options", "X-Content-Type-Options"),
    ("cache-control", "Cache-Control"),
    ("content-type", "Content-Type"),
    ("preference-applied", "Preference-Applied"),
    ("dataserviceversion", "DataServiceVersion"),
    ("location", "Location"),
    ("dataserviceid", "DataServiceId"),
    ("etag", "ETag"),
];

/// The routes.
pub(super) const ROUTES: &[Route] = &[Route::at(Level::Batch, &[Verb::Post], "", &[], &SUBMIT)];

/// Entity Group Transaction:
/// <https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions>
static SUBMIT: Operation = Operation {
    name: "Table_Batch",
    needs: Permission::Any,
    body: Body::Document { bytes_max: document::BYTES_MAX },
    run: |call| Box::pin(submit(call)),
};

/// What is wrong with a part, and what is malformed as a whole, is said in the only part of the answer. Refused as a
/// whole is what cannot be read at all, and what the server is to blame for: clients send only that again.
async fn submit(mut call: Call) -> Result<Answer, Problem> {
    let boundary = multipart::boundary(call.fields.header("content-type")?)?.to_owned();
    let body = call.document().await?;
    let mut answers = Answers::begin("batchresponse");
    match Batch::read(&call, &body, &boundary) {
        Ok(Batch::Changes(changes)) => answers.nest(change(&call, &changes).await?),
        Ok(Batch::Query(query)) => {
            let (id, stamp) = (query.content_id(), stamp(&call, &query.request));
            match read(call, query.request).await {
                Err(problem) if is_ours(&problem) => return Err(problem),
                outcome => answers.add(id.as_deref(), &stamp.complete(outcome)),
            }
        }
        Err(refused) => answers.nest(refused.answers(&call, None)),
    }
    let (kind, text) = answers.finish();
    Ok(Answer { content: Content::Bytes(text.into()), ..Answer::accepted().header("content-type", kind) })
}

/// What a batch consists of.
enum Batch<'a> {
    /// Writes, all or none of which are to be done.
    Changes(Vec<Piece<'a>>),
    /// A read.
    Query(Box<Piece<'a>>),
}

/// A part and the request in it.
struct Piece<'a> {
    part: Part<'a>,
    request: PartRequest,
}

impl<'a> Batch<'a> {
    /// Refuses `InvalidInput`.
    fn read(call: &Call, body: &'a [u8], boundary: &str) -> Result<Self, Refused> {
        let refused = |index| move |problem| Refused { index, problem };
        let consists = || invalid("A batch consists of one set of changes or of one query.");
        let parts = multipart::parts(body, boundary, 2).map_err(refused(0))?;
        let [part] = <[Part<'_>; 1]>::try_from(parts).map_err(|_| consists()).map_err(refused(0))?;
        let kind = part.header("content-type").unwrap_or_default();
        if !kind.trim_start().get(..10).is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/")) {
            return Piece::read(call, part).map(|query| Self::Query(Box::new(query))).map_err(refused(0));
        }
        let malformed = |_| invalid("The Content-Type of the set of changes is not multipart/mixed with a boundary.");
        let boundary = multipart::boundary(kind).map_err(malformed).map_err(refused(0))?;
        // One more tells that there are too many.
        let parts =
            multipart::parts(part.content, boundary, WRITES_MAX + 1).map_err(refused(0))?.into_iter().enumerate();
        let pieces = parts.map(|(index, part)| Piece::read(call, part).map_err(refused(index)));
        Ok(Self::Changes(pieces.collect::<Result<_, _>>()?))
    }
}

impl<'a> Piece<'a> {
    /// Its target may be relative to that of the batch.
    ///
    /// Refuses `InvalidInput`.
    fn read(call: &Call, part: Part<'a>) -> Result<Self, Problem> {
        let path = call.target.raw_path.trim_end_matches('/');
        let base = path.rfind('/').and_then(|slash| path.get(..=slash)).unwrap_or("/");
        Ok(Self { request: part.request_below(base)?, part })
    }

    /// What the client calls it: clients say it before the request or in it.
    fn content_id(&self) -> Option<String> {
        let own = |headers: &HeaderMap| headers.get("content-id")?.to_str().ok().map(str::to_owned);
        own(&self.part.headers).or_else(|| own(&self.request.headers))
    }
}

/// Carries out the writes and answers each, or says which is refused.
async fn change(call: &Call, changes: &[Piece<'_>]) -> Result<Answers, Problem> {
    let outcome = match wishes(call, changes) {
        Ok(wishes) => apply(call, wishes).await,
        Err(refused) => Err(refused),
    };
    match outcome {
        Ok(done) => {
            let mut answers = Answers::begin(CHANGES);
            for (change, answer) in changes.iter().zip(done) {
                let answer = stamp(call, &change.request).complete(Ok(answer));
                answers.add(change.content_id().as_deref(), &answer);
            }
            Ok(answers)
        }
        Err(Refused { problem, .. }) if is_ours(&problem) => Err(problem),
        Err(refused) => {
            let change = changes.get(refused.index);
            Ok(refused.answers(call, change))
        }
    }
}

/// Whether the server, not the client, is to blame.
fn is_ours(problem: &Problem) -> bool {
    problem.status().is_server_error() && problem.code != Code::NotImplemented
}

/// Why nothing of a batch happened.
struct Refused {
    /// Which of its parts is refused.
    index: usize,
    problem: Problem,
}

impl Refused {
    /// The answer of a set of changes of which `change`, if it could be read, is refused.
    fn answers(self, call: &Call, change: Option<&Piece<'_>>) -> Answers {
        let Self { index, problem } = self;
        let message = format!("{index}:{}", problem.message.as_deref().unwrap_or(problem.code.message()));
        let stamp = change.map_or_else(|| of_batch(call), |change| stamp(call, &change.request));
        let mut answers = Answers::begin(CHANGES);
        let id = change.and_then(Piece::content_id);
        answers.add(id.as_deref(), &stamp.complete(Err(problem.saying(message))));
        answers
    }
}

/// All writes, if they may be done together.
///
/// Refuses `InvalidInput` for none and for more than [`WRITES_MAX`], `CommandsInBatchActOnDifferentPartitions`,
/// `InvalidDuplicateRow`, and for each part what it would be refused for alone.
fn wishes(call: &Call, changes: &[Piece<'_>]) -> Result<Vec<Wish>, Refused> {
    let refused = |index| move |problem| Refused { index, problem };
    if changes.is_empty() {
        return Err(invalid("A set of changes has at least one.")).map_err(refused(0));
    }
    if changes.len() > WRITES_MAX {
        let problem = invalid("The batch request operation exceeds the maximum 100 changes per change set.");
        return Err(problem).map_err(refused(WRITES_MAX - 1));
    }
    let mut wishes: Vec<Wish> = Vec::with_capacity(changes.len());
    let mut rows = HashSet::new();
    for (index, change) in changes.iter().enumerate() {
        let wish = wish(call, &change.request).map_err(refused(index))?;
        let key = &wish.write.key;
        if let Some(first) = wishes.first() {
            let same_table = first.table.table.folded() == wish.table.table.folded();
            if !same_table || first.write.key.partition != key.partition {
                return Err(Problem::new(Code::CommandsInBatchActOnDifferentPartitions)).map_err(refused(index));
            }
        }
        if !rows.insert(key.row.clone()) {
            return Err(Problem::new(Code::InvalidDuplicateRow)).map_err(refused(index));
        }
        wishes.push(wish);
    }
    Ok(wishes)
}

/// What a part asks for, if the caller may do that.
fn wish(call: &Call, request: &PartRequest) -> Result<Wish, Problem> {
    let Routed { target, fields, operation, grant } = routed(call, request)?;
    let wish = Wish::read(&target, &fields, call.version, operation, &request.body)?;
    scope::check_entity(&grant, &wish.write.key)?;
    Ok(wish)
}

async fn apply(call: &Call, wishes: Vec<Wish>) -> Result<Vec<Answer>, Refused> {
    let Some(first) = wishes.first() else { return Ok(Vec::new()) };
    let endpoint = endpoint(call).map_err(|problem| Refused { index: 0, problem })?;
    let (table, writes) = (first.table.clone(), wishes.iter().map(|wish| wish.write.clone()).collect());
    match entities::apply(&call.engine, table, writes).await {
        Ok(etags) => Ok(wishes.into_iter().zip(etags).map(|(wish, etag)| wish.answer(&endpoint, etag)).collect()),
        Err(entities::Failed { index, error }) => Err(Refused { index, problem: error.into() }),
    }
}

/// A query that came alone.
async fn read(call: Call, request: PartRequest) -> Result<Answer, Problem> {
    let Routed { target, fields, operation, grant } = routed(&call, &request)?;
    if request.method != Method::GET {
        return Err(invalid("What comes in no set of changes is a query of entities."));
    }
    (operation.run)(Call { target, fields, operation, grant, ..call }).await
}

/// A request of a batch, authorized.
struct Routed {
    target: Target,
    fields: Fields,
    operation: &'static Operation,
    grant: Grant,
}

/// It came by the way of the batch and has no credentials of its own: those of the batch must allow what it asks for.
fn routed(call: &Call, request: &PartRequest) -> Result<Routed, Problem> {
    let PartRequest { method, raw_path, raw_query, headers, case, .. } = request;
    let mut headers = headers.clone();
    if let Some(host) = call.fields.headers().get(HOST) {
        headers.insert(HOST, host.clone());
    }
    let fields = Fields::parse(headers, raw_query.as_deref(), case.clone())?;
    let host = if call.target.path_style { None } else { call.fields.header_opt("host")? };
    let target = Target::parse(Service::Table, host, raw_path, &fields)?;
    if target.account != call.target.account || target.secondary != call.target.secondary {
        return Err(invalid("The parts of a batch are all of its account, by the same address."));
    }
    let operation = route::find(super::ROUTES, &method::meant(method, fields.headers())?, target.level(), &fields)?;
    if !matches!(target.level(), Level::Table | Level::Entity) {
        return Err(invalid("A batch is of entities."));
    }
    let grant = auth::within(call, &target, operation.needs)?;
    if let Ok(table) = target.table() {
        scope::check_table(&grant, &table.table)?;
    }
    Ok(Routed { target, fields, operation, grant })
}

fn stamp(call: &Call, request: &PartRequest) -> Stamp {
    Stamp::new(Service::Table, &request.method, &request.headers, call.arrival.now)
}

/// For what is wrong with all of it.
fn of_batch(call: &Call) -> Stamp {
    Stamp::new(Service::Table, &Method::POST, call.fields.headers(), call.arrival.now)
}

fn invalid(reason: &str) -> Problem {
    Problem::new(Code::InvalidInput).saying(reason)
}

/// A body of answers under way.
struct Answers {
    boundary: String,
    text: Vec<u8>,
}

impl Answers {
    /// None yet.
    fn begin(name: &str) -> Self {
        Self { boundary: format!("{name}_{}", Uuid::new_v4()), text: Vec::new() }
    }

    fn add(&mut self, content_id: Option<&str>, answer: &Answer) {
        let status = answer.status;
        let mut head = format!(
            "--{}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 {} {}\r\n",
            self.boundary,
            status.as_u16(),
            status.canonical_reason().unwrap_or_default()
        );
        // Writing to a String cannot fail.
        if let Some(id) = content_id {
            let _ = write!(head, "Content-ID: {id}\r\n");
        }
        for (name, shown) in NAMES {
            if let Some(value) = answer.headers.get(name) {
                let _ = write!(head, "{shown}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
            }
        }
        head.push_str("\r\n");
        self.text.extend_from_slice(head.as_bytes());
        if let Content::Bytes(body) = &answer.content {
            self.text.extend_from_slice(body);
        }
        self.text.extend_from_slice(b"\r\n");
    }

    /// Adds answers as one part.
    fn nest(&mut self, answers: Self) {
        let (kind, text) = answers.finish();
        let head = format!("--{}\r\nContent-Type: {kind}\r\n\r\n", self.boundary);
        self.text.extend_from_slice(head.as_bytes());
        self.text.extend_from_slice(&text);
    }

    /// The Content-Type and the body.
    fn finish(mut self) -> (String, Vec<u8>) {
        self.text.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
        (format!("multipart/mixed; boundary={}", self.boundary), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_look_like_this() {
        let mut answers = Answers { boundary: "r".into(), text: Vec::new() };
        let answer = Answer::new(http::StatusCode::NO_CONTENT).header("etag", "W/\"x\"").header("date", "today");
        answers.add(Some("7"), &answer);
        let mut outer = Answers { boundary: "b".into(), text: Vec::new() };
        outer.nest(answers);
        let (kind, text) = outer.finish();
        assert_eq!(kind, "multipart/mixed; boundary=b");
        let expected = "--b\r\nContent-Type: multipart/mixed; boundary=r\r\n\r\n--r\r\nContent-Type: application/http\r\n\
                        Content-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nContent-ID: 7\r\n\
                        ETag: W/\"x\"\r\n\r\n\r\n--r--\r\n--b--\r\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
