//! Carries on the copies from other servers that are under way: reads their sources, part by part, until the engine has
//! all bytes or the source cannot be read.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::IF_MATCH;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use lazuli_engine::blob::pages::{PAGE_BYTES, PUT_BYTES_MAX};
use lazuli_engine::blob::pending::{self, Pending};
use lazuli_engine::payload::Staged;
use lazuli_engine::range::{ByteRange, RangeRequest};
use lazuli_engine::{Engine, Error, Refusal};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

use crate::code::Code;
use crate::error::Problem;
use crate::remote::{Ask, Reading, Remote, unverified};
use crate::wire::page;

/// Copies carried on at the same time.
const COPIES_MAX: usize = 4;
/// Copies that are looked at.
const LISTED_MAX: usize = 1000;
/// Bytes that are kept at a time: what a restart may have to read again.
const PART_BYTES: u64 = 8 * 1024 * 1024;
/// How often a source whose server fails or is not reached is tried again.
const ATTEMPTS_MAX: u32 = 8;
/// How long the first new attempt waits; each further one waits twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// When copies are looked at again though nothing was heard of.
const INTERVAL: Duration = Duration::from_secs(30);

/// Carries copies on in the background. Dropped, it stops; the copies stay as they are.
#[derive(Debug)]
pub struct Copier(JoinHandle<()>);

impl Copier {
    /// Starts with the copies that are under way, and goes on with those to come. Runs inside a tokio runtime.
    pub fn start(engine: Engine, remote: Remote) -> Self {
        Self(tokio::spawn(run(engine, remote)))
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn run(engine: Engine, remote: Remote) {
    let places = Arc::new(Semaphore::new(COPIES_MAX));
    let known: Arc<Mutex<HashSet<Uuid>>> = Arc::default();
    // Dropped with this task, it ends those that it holds.
    let mut tasks = JoinSet::new();
    loop {
        let changed = pending::changed(&engine);
        tokio::pin!(changed);
        // From here on no news is missed, though the list is read first.
        changed.as_mut().enable();
        match pending::under_way(&engine, LISTED_MAX).await {
            Ok(copies) => {
                for copy in copies.into_iter().filter(|copy| known.lock().insert(copy.id)) {
                    let (engine, remote) = (engine.clone(), remote.clone());
                    let (places, known) = (Arc::clone(&places), Arc::clone(&known));
                    tasks.spawn(async move {
                        let id = copy.id;
                        if let Ok(_place) = places.acquire_owned().await {
                            carry_on(&engine, &remote, copy).await;
                        }
                        known.lock().remove(&id);
                    });
                }
            }
            Err(error) => tracing::warn!(%error, "the copies under way cannot be listed; they are later"),
        }
        while tasks.try_join_next().is_some() {}
        let _ = tokio::time::timeout(INTERVAL, changed).await;
    }
}

/// Why a copy does not go on for now.
enum Stopped {
    /// It ended: somebody aborted it.
    Over,
    /// This server failed; the copy stays as it is and is taken up later.
    Ours(Error),
    /// Its source cannot be read.
    Source(Problem),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(Refusal::NoCopyPending) => Self::Over,
            error => Self::Ours(error),
        }
    }
}

/// Copies until the end, or until there is no sense in trying again.
async fn carry_on(engine: &Engine, remote: &Remote, mut copy: Pending) {
    for attempt in 0.. {
        let before = copy.done;
        let done = if copy.pages {
            read_pages(engine, remote, &mut copy).await
        } else {
            read(engine, remote, &mut copy).await
        };
        let stopped = match done {
            Ok(()) => return tracing::info!(copy = %copy.id, bytes = copy.total, "a copy is complete"),
            Err(stopped) => stopped,
        };
        let problem = match stopped {
            Stopped::Over => return tracing::info!(copy = %copy.id, "a copy ended before it was complete"),
            Stopped::Ours(error) => return tracing::warn!(copy = %copy.id, %error, "a copy is taken up later"),
            Stopped::Source(problem) => problem,
        };
        let passing = problem.status().is_server_error() && (attempt < ATTEMPTS_MAX || copy.done > before);
        if !passing {
            return give_up(engine, &copy, &problem).await;
        }
        tokio::time::sleep(PAUSE * 2_u32.pow(attempt.min(ATTEMPTS_MAX))).await;
    }
}

/// Reads the rest of the source; `copy` tells how far it came.
async fn read(engine: &Engine, remote: &Remote, copy: &mut Pending) -> Result<(), Stopped> {
    let rest = (copy.done > 0).then_some(RangeRequest { first: copy.done, last: None });
    let mut reading = open(remote, copy, rest).await.map_err(Stopped::Source)?;
    let mut rest = Bytes::new();
    while copy.done < copy.total {
        let length = PART_BYTES.min(copy.total - copy.done);
        let part = stage(engine, &mut reading, &mut rest, length).await?;
        pending::put(engine, copy.id, copy.done, part).await?;
        copy.done += length;
    }
    Ok(())
}

/// Reads the pages of the source: what differs from what the copy began as, if the source tells that.
async fn read_pages(engine: &Engine, remote: &Remote, copy: &mut Pending) -> Result<(), Stopped> {
    match read_listed(engine, remote, copy).await {
        Err(Stopped::Source(problem)) if copy.since.is_some() && is_untold(&problem) => {
            tracing::info!(copy = %copy.id, "a source does not tell what differs; it is read whole");
            pending::start_over(engine, copy.id).await?;
            (copy.done, copy.since) = (0, None);
            read_listed(engine, remote, copy).await
        }
        done => done,
    }
}

/// Whether another way of reading may succeed: the source is there and the same, but lacks its earlier snapshot, say.
fn is_untold(problem: &Problem) -> bool {
    problem.code != Code::SourceConditionNotMet && problem.status().is_client_error()
}

/// Reads the pages of the source that it lists, from where the copy stands; `copy` tells how far it came.
async fn read_listed(engine: &Engine, remote: &Remote, copy: &mut Pending) -> Result<(), Stopped> {
    let (from, mut marker) = (copy.done, None);
    while copy.done < copy.total {
        let ask = ask(copy).map_err(Stopped::Source)?;
        let list = remote.page_list(ask, from, copy.since, marker.as_deref()).await.map_err(Stopped::Source)?;
        let (mut stretches, next) = page::parse(&list).map_err(|_| Stopped::Source(unlisted()))?;
        // What is cleared may be listed behind what is written.
        stretches.sort_unstable_by_key(|stretch| stretch.range.first);
        for stretch in stretches {
            let Some(part) = rest_of(copy, stretch.range)? else { continue };
            if !stretch.cleared {
                if read_stretch(engine, remote, copy, part).await? {
                    return Ok(());
                }
            } else if copy.since.is_some() {
                pending::clear_pages(engine, copy.id, part).await?;
                copy.done = part.first + part.length;
            }
        }
        if next.is_none() {
            break;
        }
        marker = next;
    }
    Ok(pending::complete_pages(engine, copy.id).await?)
}

/// The part of some pages that is still to come.
fn rest_of(copy: &Pending, range: ByteRange) -> Result<Option<ByteRange>, Stopped> {
    let end = range.first.saturating_add(range.length);
    let first = range.first.max(copy.done);
    let whole = first.is_multiple_of(PAGE_BYTES) && end.is_multiple_of(PAGE_BYTES) && end <= copy.total;
    if !whole {
        return Err(Stopped::Source(unlisted()));
    }
    Ok((first < end).then(|| ByteRange { first, length: end - first }))
}

/// Reads some pages of the source. Answers whether they are the last that the copy has room for: then it is complete.
async fn read_stretch(engine: &Engine, remote: &Remote, copy: &mut Pending, range: ByteRange) -> Result<bool, Stopped> {
    let (mut at, end) = (range.first, range.first + range.length);
    let part = RangeRequest { first: at, last: Some(end - 1) };
    let mut reading = open(remote, copy, Some(part)).await.map_err(Stopped::Source)?;
    let (mut rest, mut complete) = (Bytes::new(), false);
    while at < end {
        let length = PUT_BYTES_MAX.min(end - at);
        let part = stage(engine, &mut reading, &mut rest, length).await?;
        complete = pending::put_pages(engine, copy.id, at, part).await?;
        at += length;
        copy.done = at;
    }
    Ok(complete)
}

/// Stores the next `length` bytes; `rest` has what was read beyond the last ones.
async fn stage(engine: &Engine, reading: &mut Reading, rest: &mut Bytes, length: u64) -> Result<Staged, Stopped> {
    let mut stage = engine.payloads().stage(false, Some(length));
    let mut left = length;
    while left > 0 {
        if rest.is_empty() {
            *rest = reading.next().await.and_then(|next| next.ok_or_else(changed)).map_err(Stopped::Source)?;
        }
        let taken = rest.split_to(rest.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
        left -= taken.len() as u64;
        stage.write(taken).await?;
    }
    Ok(stage.finish().await?)
}

/// Begins to read a part of the version of the source that the copy is of; none is all of it.
async fn open(remote: &Remote, copy: &Pending, range: Option<RangeRequest>) -> Result<Reading, Problem> {
    let reading = remote.read(ask(copy)?, range).await?;
    if reading.described.length != copy.total {
        return Err(changed());
    }
    Ok(reading)
}

/// The version of the source that the copy is of.
fn ask(copy: &Pending) -> Result<Ask, Problem> {
    let uri: Uri = copy.address.parse().map_err(|_| changed())?;
    let mut conditions = HeaderMap::new();
    match HeaderValue::from_str(&copy.version) {
        Ok(version) if !version.is_empty() => drop(conditions.insert(IF_MATCH, version)),
        // Whether the rest is of the same version is not to be known.
        _ if copy.done > 0 => return Err(changed()),
        _ => {}
    }
    Ok(Ask { uri, authorization: None, conditions, key: HeaderMap::new() })
}

/// The source cannot say which pages it has.
fn unlisted() -> Problem {
    unverified(StatusCode::CONFLICT, "The source does not list its pages as a page blob does.")
}

fn changed() -> Problem {
    Problem::new(Code::SourceConditionNotMet).saying("The source is not the same as when the copy began.")
}

async fn give_up(engine: &Engine, copy: &Pending, problem: &Problem) {
    let status = problem.status();
    let (code, message) = (problem.code.name(), problem.message.as_deref().unwrap_or(problem.code.message()));
    let description = format!("{} {code} \"{message}\"", status.as_u16());
    tracing::warn!(copy = %copy.id, %description, "a copy failed");
    match pending::fail(engine, copy.id, description).await {
        Ok(()) | Err(Error::Refused(Refusal::NoCopyPending)) => {}
        Err(error) => tracing::warn!(copy = %copy.id, %error, "a failed copy stays pending for now"),
    }
}
