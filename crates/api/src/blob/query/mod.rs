//! Query Blob Contents: a statement over the records of a blob, answered as they are read.
//! <https://learn.microsoft.com/rest/api/storageservices/query-blob-contents>
//!
//! [`request`] is the body of the request, [`sql`] the language, `records` and `output` the formats, `frames` the
//! answer's framing, and `execution` what brings them together.

mod execution;
mod frames;
mod output;
mod records;
pub mod request;
pub mod sql;

use bytes::Bytes;
use execution::{Execution, Need};
use futures_util::stream;
use lazuli_engine::Error;
use lazuli_engine::blob::content::Reader;
use lazuli_engine::blob::kind::BlobKind;
use lazuli_engine::blob::object::{self, Download};
use lazuli_engine::store::StoreError;
use output::Sink;
use records::{DelimitedSource, JsonSource, Source};
use request::{Format, QueryRequest};
use sql::moment::Moment;
use sql::syntax::{Select, Statement};

use super::aside;
use super::object::{described, to_read};
use crate::answer::Answer;
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::{Route, Verb};
use crate::wire::date;

/// Largest body: the longest expression, escaped.
const BODY_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// The routes.
pub(super) const ROUTES: &[Route] = &[Route::blob(&[Verb::Post], "query", &[], &QUERY)];

/// Query Blob Contents: <https://learn.microsoft.com/rest/api/storageservices/query-blob-contents>
static QUERY: Operation = Operation {
    name: "Blob_Query",
    needs: Permission::Read,
    body: Body::Document { bytes_max: BODY_BYTES_MAX },
    run: |call| Box::pin(query(call)),
};

async fn query(mut call: Call) -> Result<Answer, Problem> {
    let on = to_read(&call)?;
    let body = call.document().await?;
    let (request, statement) = aside(move || understood(&body)).await??;
    let sink = Sink::of(request.output)?;
    let now = call.engine.now()?;
    let Download { blob, reader, .. } = object::download(&call.engine, on, None).await?;
    if blob.kind != BlobKind::Block {
        return Err(Problem::new(Code::InvalidBlobType));
    }
    let source = source(request.input, &statement, &reader)?;
    let execution = Execution::new(statement, source, sink, Moment::utc(date::instant(now)), blob.length);
    let mut answer = described(Answer::ok(), &blob);
    // What is said of the blob's own bytes does not hold for the answer.
    answer.headers.remove("content-encoding");
    if !call.grant.reads_tags() {
        answer.headers.remove("x-ms-tag-count");
    }
    Ok(answer
        .header("content-type", "avro/binary")
        .stream(stream::try_unfold(Running { reader, execution: Some(execution) }, Running::next)))
}

/// The request and its statement, of which its input has the fields.
fn understood(body: &[u8]) -> Result<(QueryRequest, Statement), Problem> {
    let request = request::parse(body)?;
    let statement = sql::parse(&request.expression).map_err(|error| unprocessable(&error.to_string()))?;
    suit(&request.input, &statement)?;
    Ok((request, statement))
}

/// Sees to it that records of this format have what the statement asks for.
fn suit(input: &Format, statement: &Statement) -> Result<(), Problem> {
    let fields = &statement.fields;
    if let Select::Split(_) = statement.select
        && !matches!(input, Format::Delimited(_))
    {
        return Err(unprocessable("sys.split is for delimited text"));
    }
    if !statement.from.is_empty() && !matches!(input, Format::Json { .. }) {
        return Err(unprocessable("only JSON has records below BlobStorage"));
    }
    let Format::Delimited(format) = input else { return Ok(()) };
    if fields.iter().any(|field| !field.rest.is_empty()) {
        return Err(unprocessable("fields of delimited text have no members"));
    }
    match fields.iter().find(|field| !format.headers && field.name.ordinal().is_none()) {
        Some(field) => {
            Err(unprocessable(&format!("there are no headers, so that nothing is called {}", field.name.text)))
        }
        None => Ok(()),
    }
}

fn unprocessable(reason: &str) -> Problem {
    Problem::new(Code::ErrorProcessingQueryExpression)
        .saying(format!("The query expression cannot be processed: {reason}."))
}

/// The source of the records of a blob.
#[cfg_attr(not(feature = "parquet"), expect(unused_variables, reason = "only Parquet is read from several places"))]
fn source(input: Format, statement: &Statement, reader: &Reader) -> Result<Source, Problem> {
    let (from, fields) = (statement.from.clone(), statement.fields.clone());
    match input {
        Format::Delimited(format) => Ok(Source::Delimited(Box::new(DelimitedSource::new(&format, fields)))),
        Format::Json { separator } => Ok(Source::Json(Box::new(JsonSource::new(&separator, from, fields)))),
        #[cfg(feature = "parquet")]
        Format::Parquet => {
            let all = matches!(statement.select, Select::All);
            Ok(Source::Parquet(Box::new(records::ParquetSource::new(reader, fields, all))))
        }
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(Problem::not_implemented("A query of Parquet, in this build,")),
        Format::Arrow(_) => Err(Problem::not_implemented("A query of Arrow")),
    }
}

/// A query whose answer is being read.
struct Running {
    reader: Reader,
    /// None when it is done.
    execution: Option<Execution>,
}

impl Running {
    /// The next bytes of the answer. The work is done aside, a piece for each piece that the client reads.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, Error> {
        while let Some(mut execution) = self.execution.take() {
            let worked = tokio::task::spawn_blocking(move || {
                let need = execution.work();
                (need, execution.take(), execution)
            });
            let (need, written, mut execution) =
                worked.await.map_err(|error| StoreError::Backend(format!("a query died: {error}")))?;
            match need {
                Need::Nothing => {}
                Need::Output => self.execution = Some(execution),
                Need::Input => {
                    execution.feed(self.reader.next().await?.unwrap_or_default());
                    self.execution = Some(execution);
                }
            }
            if !written.is_empty() {
                return Ok(Some((written.into(), self)));
            }
        }
        Ok(None)
    }
}
