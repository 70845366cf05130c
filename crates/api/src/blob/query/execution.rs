//! A query at work: from records to results, as far as the bytes at hand allow and no further than a client reads.

use bytes::Bytes;

use super::frames::Frames;
use super::output::Sink;
use super::records::{Fault, Names, Next, Row, Source};
use super::sql::RowError;
use super::sql::aggregate::Aggregates;
use super::sql::evaluate::Scope;
use super::sql::moment::Moment;
use super::sql::syntax::{Select, Statement};
use super::sql::value::Value;

/// Bytes of the blob between two reports of progress.
const PROGRESS_BYTES: u64 = 4 * 1024 * 1024;

/// A query at work.
pub(super) struct Execution {
    statement: Statement,
    /// The names of the columns that have one; the others are called by their place.
    names: Vec<String>,
    now: Moment,
    source: Source,
    sink: Sink,
    frames: Frames,
    aggregates: Aggregates,
    /// Results that may still come.
    left: u64,
    /// Where the present batch of `sys.split` begins.
    batch: u64,
    /// Bytes of the blob that were given to the source.
    fed: u64,
    reported: u64,
    total: u64,
    done: bool,
}

/// What a query at work needs to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// The next bytes of the blob.
    Input,
    /// That what it wrote is taken.
    Output,
    /// Nothing: it is done.
    Nothing,
}

impl Execution {
    /// Begins a query over a blob of `total` bytes.
    pub(super) fn new(statement: Statement, source: Source, sink: Sink, now: Moment, total: u64) -> Self {
        let aggregates = match &statement.select {
            Select::Aggregates(columns) => Aggregates::of(columns),
            _ => Aggregates::of(&[]),
        };
        Self {
            names: names(&statement.select),
            left: statement.limit.unwrap_or(u64::MAX),
            statement,
            now,
            source,
            sink,
            frames: Frames::new(total),
            aggregates,
            batch: 0,
            fed: 0,
            reported: 0,
            total,
            done: false,
        }
    }

    /// Takes the next bytes of the blob; empty ones say that there are no more.
    pub(super) fn feed(&mut self, chunk: Bytes) {
        self.fed += chunk.len() as u64;
        self.source.feed(chunk);
    }

    /// What was written since it was last asked.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.frames.take()
    }

    /// Goes on as far as possible.
    pub(super) fn work(&mut self) -> Need {
        if self.done {
            return Need::Nothing;
        }
        loop {
            // Aggregates have their one result at the end.
            if self.left == 0 && !matches!(self.statement.select, Select::Aggregates(_)) {
                return self.finish();
            }
            if self.frames.is_full() {
                return Need::Output;
            }
            match self.source.next() {
                Next::Record => self.record(),
                Next::Input => {
                    if self.fed - self.reported >= PROGRESS_BYTES {
                        self.reported = self.fed;
                        self.frames.progress(self.fed);
                    }
                    return Need::Input;
                }
                Next::End => {
                    self.last();
                    return self.finish();
                }
                Next::Fault(fault) => {
                    self.frames.fault(&fault);
                    return self.finish();
                }
            }
        }
    }

    /// Makes of the present record what is to be made of it.
    fn record(&mut self) {
        let before = self.frames.data.len();
        match self.select() {
            Ok(true) => self.left = self.left.saturating_sub(1),
            Ok(false) => {}
            Err(error) => {
                self.frames.data.truncate(before);
                self.frames.fault(&Fault::of_row(&error, self.source.position()));
            }
        }
    }

    /// Writes the result of the present record, if it has one; answers whether it has.
    fn select(&mut self) -> Result<bool, RowError> {
        let row = self.source.record();
        let scope = Scope { record: &row, now: self.now };
        if let Some(filter) = &self.statement.filter
            && !scope.holds(filter)?
        {
            return Ok(false);
        }
        let out = &mut self.frames.data;
        match &self.statement.select {
            Select::All => {
                if let Row::Json { text: Some(text), value, .. } = &row
                    && value.is_object()
                    && self.sink.write_document(out, text)
                {
                    return Ok(true);
                }
                let (names, values) = row.all()?;
                self.sink.write(out, &names, &values)?;
            }
            Select::Columns(columns) => {
                let values: Result<Vec<_>, _> = columns.iter().map(|column| scope.value(&column.expression)).collect();
                self.sink.write(out, &Names::Given(&self.names), &values?)?;
            }
            Select::Aggregates(columns) => {
                self.aggregates.add(columns, scope)?;
                return Ok(false);
            }
            Select::Split(bytes) => {
                let end = self.source.scanned();
                if end - self.batch < *bytes {
                    return Ok(false);
                }
                let size = end - std::mem::replace(&mut self.batch, end);
                self.sink.write(out, &Names::Ordinals, &[size_value(size)])?;
            }
        }
        Ok(true)
    }

    /// Writes what is known only at the end of the blob.
    fn last(&mut self) {
        let out = &mut self.frames.data;
        let written = match &self.statement.select {
            Select::Aggregates(columns) if self.left > 0 => {
                let results = self.aggregates.results(columns);
                self.sink.write(out, &Names::Given(&self.names), &results)
            }
            Select::Split(_) if self.batch < self.total => {
                let size = self.total - self.batch;
                self.sink.write(out, &Names::Ordinals, &[size_value(size)])
            }
            _ => Ok(()),
        };
        if let Err(error) = written {
            self.frames.fault(&Fault::of_row(&error, self.source.position()));
        }
    }

    fn finish(&mut self) -> Need {
        self.sink.end(&mut self.frames.data);
        self.frames.progress(self.source.scanned());
        self.frames.end();
        self.done = true;
        Need::Nothing
    }
}

fn size_value(size: u64) -> Value<'static> {
    Value::Integer(i64::try_from(size).unwrap_or(i64::MAX))
}

/// What the columns are called.
fn names(select: &Select) -> Vec<String> {
    let given: Vec<Option<&String>> = match select {
        Select::Columns(columns) => columns.iter().map(|column| column.name.as_ref()).collect(),
        Select::Aggregates(columns) => columns.iter().map(|column| column.name.as_ref()).collect(),
        Select::All | Select::Split(_) => Vec::new(),
    };
    let called = |(index, name): (usize, Option<&String>)| name.cloned().unwrap_or_else(|| format!("_{}", index + 1));
    given.into_iter().enumerate().map(called).collect()
}

#[cfg(test)]
mod tests {
    use super::super::records::DelimitedSource;
    use super::super::request::{Delimited, Format};
    use super::*;

    fn execution(expression: &str) -> Execution {
        let statement = super::super::sql::parse(expression).unwrap();
        let format = Delimited::default();
        let source = Source::Delimited(Box::new(DelimitedSource::new(&format, statement.fields.clone())));
        let sink = Sink::of(Format::Delimited(format)).unwrap();
        Execution::new(statement, source, sink, Moment::utc(jiff::Timestamp::UNIX_EPOCH), 1_000_000)
    }

    #[test]
    fn nothing_more_is_done_before_what_was_written_is_taken() {
        let columns = ["_1"; 49].join(", ");
        let mut execution = execution(&format!("SELECT {columns} FROM BlobStorage"));
        let chunk = Bytes::from("0123456789\n".repeat(20_000));
        execution.feed(chunk);
        let (mut taken, mut pieces) = (0, 0);
        while execution.work() == Need::Output {
            assert_eq!(execution.work(), Need::Output);
            let piece = execution.take().len();
            // The first piece has the header of the container too.
            assert!((256 * 1024..258 * 1024).contains(&piece), "{piece}");
            taken += piece;
            pieces += 1;
        }
        assert_eq!((execution.work(), pieces), (Need::Input, 41));
        execution.feed(Bytes::new());
        assert_eq!((execution.work(), execution.work()), (Need::Nothing, Need::Nothing));
        taken += execution.take().len();
        assert!(taken > 20_000 * 49 * 11);
    }

    #[test]
    fn a_query_ends_as_soon_as_its_limit_is_reached() {
        let mut execution = execution("SELECT _1 FROM BlobStorage WHERE _1 <> '2' LIMIT 2");
        execution.feed(Bytes::from_static(b"1\n2\n3\n4\n"));
        assert_eq!(execution.work(), Need::Nothing);
        let answer = execution.take();
        assert!(answer.windows(4).any(|bytes| bytes == b"1\n3\n") && !answer.contains(&b'4'));
    }
}
