//! Copies from other servers: a blob that has no bytes yet, and a content that grows beside it until it has them all.
//! <https://learn.microsoft.com/rest/api/storageservices/copy-blob>
//!
//! Whoever can reach the other servers asks for the copies under way ([`under_way`]), puts what they read ([`put`]) and says
//! when a source cannot be read ([`fail`]). All that is known about a copy is in rows: after a restart it goes on where
//! the last part ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::futures::Notified;
use uuid::Uuid;

use crate::blob::copy::{CopyKind, CopyRequest, admit_target, kind_of_copy, remembered, stored, tier};
use crate::blob::copying::{CopyState, CopyStatus};
use crate::blob::feed::{Cause, Change};
use crate::blob::kind::BlobKind;
use crate::blob::pages::{self, ATTEMPTS_MAX, Owner};
use crate::blob::{OnBlob, Stored, Written, incremental, log, state};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::Leased;
use crate::names::{AccountName, BlobAddress, ContainerAddress, ContainerName};
use crate::payload::Staged;
use crate::policy::{AccountPolicy, Policies};
use crate::properties::{HttpProperties, Metadata};
use crate::range::ByteRange;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::codec;
use crate::rows::copy::{self, CopyRow, Follows};
use crate::rows::due::{self, DueKind, DueRow};
use crate::store::{Direction, KeyRange, Purpose, Space, StoreError, Tx, View};

/// How long a copy may take.
pub const COPY_TIME_MAX: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// What is said of one that took longer.
const TIMED_OUT: &str = "500 OperationCancelled \"The copy took longer than 14 days.\"";
/// The kind whose content is copied page by page.
const PAGES: BlobKind = BlobKind::Page { sequence: 0 };
/// Longest description of a failure; it lies in the blob's row.
const DESCRIPTION_CHARS_MAX: usize = 256;

/// A blob of another server, as it was described when the copy began.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is, with its signature.
    pub address: String,
    /// Its version, as its server calls it.
    pub version: String,
    /// Its kind.
    pub kind: BlobKind,
    /// Its bytes.
    pub length: u64,
    /// Its HTTP properties.
    pub http: HttpProperties,
    /// Its metadata.
    pub metadata: Metadata,
}

/// What beginning a copy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The version of the target.
    pub written: Written,
    /// How the copy stands: one of nothing is complete.
    pub status: CopyStatus,
}

/// Copy Blob of a source on another server: the target becomes a blob without bytes at which a copy is under way.
///
/// Refuses as `put`, `LeaseNotInfinite`, and `BlobArchived` over an archived blob.
pub async fn begin(engine: &Engine, target: OnBlob, request: CopyRequest, source: Source) -> Result<Begun, Error> {
    let policy = engine.policy(&target.address.container.account);
    let begun = engine.write(Purpose::Grow, move |tx| try_begin(tx, &policy, &target, &request, &source)).await?;
    engine.wake();
    engine.copies().notify_waiters();
    Ok(begun)
}

fn try_begin(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    target: &OnBlob,
    request: &CopyRequest,
    source: &Source,
) -> Result<Begun, Error> {
    let place = state::place(tx, target)?;
    let kind = kind_of_copy(request, source.kind);
    let lease = admit_target(tx, target, &place, CopyKind::Start, kind)?;
    let status = if source.length == 0 { CopyStatus::Success } else { CopyStatus::Pending };
    if status == CopyStatus::Pending {
        note(tx, request.id, target, &place.key, source, (Content::Empty, None))?;
    }
    let complete = remembered(request, source.length, tx.now());
    let copy = complete.map(|complete| match status {
        CopyStatus::Pending => CopyState { status, done: 0, ended: None, ..complete },
        _ => complete,
    });
    let tags = request.tags.clone().unwrap_or_default();
    // Pages are there from the beginning, and read as zeros.
    let length = if kind.is_like(PAGES) { source.length } else { 0 };
    let tier = tier(request, &place, (kind, length), tx.now());
    let stored = Stored { tier, ..stored(request, source.http.clone(), source.metadata.clone(), tags) };
    let encryption = place.scope.encryption(None, stored.scope.as_ref())?;
    let cause = if status == CopyStatus::Pending { Cause::CopyBegun } else { Cause::Copy };
    let new = state::New { kind, stored, length, content: Content::Empty, copy, encryption, cause };
    let written = state::replace(tx, policy, target, place, lease, new)?;
    Ok(Begun { written, status })
}

/// Notes that a copy is under way, which begins as `content`, and makes its appointment.
pub(super) fn note(
    tx: &mut dyn Tx,
    id: Uuid,
    target: &OnBlob,
    blob: &[u8],
    source: &Source,
    (content, follows): (Content, Option<Follows>),
) -> Result<CopyRow, StoreError> {
    let (number, due) = (tx.id(), tx.now().after(COPY_TIME_MAX));
    let container = &target.address.container;
    let row = CopyRow {
        account: container.account.to_string(),
        container: container.container.to_string(),
        blob: blob.to_vec(),
        address: source.address.clone(),
        version: source.version.clone(),
        pages: source.kind.is_like(PAGES),
        total: source.length,
        done: 0,
        content,
        number,
        due,
        follows,
    };
    let key = copy::key(id);
    rows::put(tx, Space::Due, due::key(due, DueKind::Copy, number), &DueRow { key: key.clone() })?;
    rows::put(tx, Space::Copies, key, &row)?;
    Ok(row)
}

/// A copy under way, as whoever carries it on needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its id.
    pub id: Uuid,
    /// Where the source is, with its signature.
    pub address: String,
    /// The version of the source.
    pub version: String,
    /// Whether only the pages that were written are asked for, and put by [`put_pages`].
    pub pages: bool,
    /// Bytes to copy.
    pub total: u64,
    /// Bytes that are there, or of pages: up to which they are.
    pub done: u64,
    /// The snapshot of the source whose pages were there from the beginning: only what differs is asked for.
    pub since: Option<Timestamp>,
}

/// The copies under way, at most `limit`.
pub async fn under_way(engine: &Engine, limit: usize) -> Result<Vec<Pending>, Error> {
    engine
        .scan(move |view| {
            let mut pending = Vec::new();
            for pair in view.scan(Space::Copies, KeyRange::all(), Direction::Forward).take(limit) {
                let (key, value) = pair?;
                let row: CopyRow = codec::decode(Space::Copies, &key, &value)?;
                let id = copy::id(&key).ok_or_else(|| codec::corrupt(Space::Copies, &key, "not a copy's id"))?;
                let CopyRow { address, version, pages, total, done, follows, .. } = row;
                let since = follows.and_then(|follows| follows.since);
                pending.push(Pending { id, address, version, pages, total, done, since });
            }
            Ok(pending)
        })
        .await
}

/// Resolves when a copy has begun or ended since it was called.
pub fn changed(engine: &Engine) -> Notified<'_> {
    engine.copies().notified()
}

/// Puts the next bytes of a copy, which begin at byte `at` of the source; with the last of them the blob has its
/// content. Answers whether they were the last.
///
/// Refuses `NoCopyPending` if the copy ended meanwhile or has these bytes already.
pub async fn put(engine: &Engine, id: Uuid, at: u64, part: Staged) -> Result<bool, Error> {
    let policies = engine.policies();
    let complete = engine
        .write_content(part, move |tx, part| {
            let row = pending(tx, id)?.filter(|row| row.done == at && !row.pages).ok_or(Refusal::NoCopyPending)?;
            // Nobody shares the list of a copy that is under way.
            let tail = log::tail(tx, row.content, row.done)?;
            let tail = tail.ok_or_else(|| codec::corrupt(Space::Copies, &copy::key(id), "its list goes on"))?;
            let content = Content::Log(tail.push(tx, part)?);
            come(tx, &policies, id, CopyRow { content, done: at + part.length(), ..row })
        })
        .await?;
    Ok(complete)
}

/// Puts pages of a copy, which begin at byte `at` of the source. What lies before them and was not put is as it was in
/// the beginning. Answers whether they were the last that the blob has room for.
///
/// Refuses as [`put`].
pub async fn put_pages(engine: &Engine, id: Uuid, at: u64, part: Staged) -> Result<bool, Error> {
    let (owner, part) = (Owner::Copy(id), Arc::new(part));
    for _ in 0..ATTEMPTS_MAX {
        let (policies, pins) = (engine.policies(), engine.payloads().pins().clone());
        let put = engine.write_content(Arc::clone(&part), move |tx, part| {
            let row = pending(tx, id)?.filter(|row| row.done <= at && row.pages).ok_or(Refusal::NoCopyPending)?;
            let range = ByteRange { first: at, length: part.length() };
            let put = pages::put_pages(tx, &pins, row.content, range, part)?;
            put.with(|content| come(tx, &policies, id, CopyRow { content, done: at + range.length, ..row }))
        });
        if let Some(complete) = put.await?.or_make_room(engine, &owner).await? {
            engine.wake();
            return Ok(complete);
        }
    }
    Err(Error::Busy)
}

/// Clears pages of a copy that did not begin as nothing. What lies before them and was not put is as it was in the
/// beginning. It does not end the copy.
///
/// Refuses as [`put`].
pub async fn clear_pages(engine: &Engine, id: Uuid, range: ByteRange) -> Result<(), Error> {
    let owner = Owner::Copy(id);
    for _ in 0..ATTEMPTS_MAX {
        let pins = engine.payloads().pins().clone();
        let cleared = engine.write(Purpose::Free, move |tx| {
            let admits = |row: &CopyRow| row.pages && row.done <= range.first;
            let row = pending(tx, id)?.filter(admits).ok_or(Refusal::NoCopyPending)?;
            let cleared = pages::clear_pages(tx, &pins, row.content, range)?;
            cleared.with(|content| advance(tx, id, CopyRow { content, done: range.first + range.length, ..row }))
        });
        if cleared.await?.or_make_room(engine, &owner).await?.is_some() {
            pages::tidy_up(engine, &owner).await;
            return Ok(());
        }
    }
    Err(Error::Busy)
}

/// Lets go of what an incremental copy began as, and what came since: its source does not tell the differences.
///
/// Refuses `NoCopyPending` if the copy ended meanwhile.
pub async fn start_over(engine: &Engine, id: Uuid) -> Result<(), Error> {
    engine
        .write(Purpose::Free, move |tx| {
            let row = pending(tx, id)?.ok_or(Refusal::NoCopyPending)?;
            state::release_content(tx, row.content)?;
            let follows = row.follows.map(|follows| Follows { since: None, ..follows });
            advance(tx, id, CopyRow { content: Content::Empty, done: 0, follows, ..row })
        })
        .await?;
    engine.wake();
    Ok(())
}

/// Ends a copy of pages: what was not put is as it was in the beginning.
///
/// Refuses as [`put`].
pub async fn complete_pages(engine: &Engine, id: Uuid) -> Result<(), Error> {
    let policies = engine.policies();
    engine
        .write(Purpose::Grow, move |tx| {
            let row = pending(tx, id)?.filter(|row| row.pages).ok_or(Refusal::NoCopyPending)?;
            come(tx, &policies, id, CopyRow { done: row.total, ..row }).map(|_| ())
        })
        .await?;
    engine.wake();
    Ok(())
}

/// The copy has come as far as `row` says; answers whether that is all.
pub(super) fn come(tx: &mut dyn Tx, policies: &Policies, id: Uuid, row: CopyRow) -> Result<bool, Error> {
    if row.done < row.total {
        return advance(tx, id, row).map(|()| false);
    }
    let mut blob = admitted(tx, id, &row)?;
    forget(tx, id, &row)?;
    state::release_content(tx, blob.content)?;
    (blob.content, blob.length) = (row.content, row.total);
    end(&mut blob, CopyStatus::Success, None, tx.now());
    if let Some(follows) = row.follows {
        incremental::complete(tx, &row.blob, &mut blob, follows)?;
    }
    record(tx, policies, &row, Cause::Copy, &blob)?;
    rows::put(tx, Space::Blobs, row.blob, &blob)?;
    Ok(true)
}

/// The copy is as `row` says, and goes on.
fn advance(tx: &mut dyn Tx, id: Uuid, row: CopyRow) -> Result<(), Error> {
    let blob = admitted(tx, id, &row)?;
    rows::put(tx, Space::Copies, copy::key(id), &row)?;
    Ok(rows::put(tx, Space::Blobs, row.blob, &blob)?)
}

/// The blob at which the copy is under way, which has come as far as `row` says.
fn admitted(view: &dyn View, id: Uuid, row: &CopyRow) -> Result<BlobRow, Error> {
    if row.done > row.total {
        return Err(Refusal::NoCopyPending.into());
    }
    let mut blob = target(view, id, row)?.ok_or(Refusal::NoCopyPending)?;
    if let Some(copy) = &mut blob.copy {
        copy.done = row.done;
    }
    Ok(blob)
}

/// Gives a copy up because its source cannot be read: what came so far goes, `description` says why.
///
/// Refuses `NoCopyPending` if it ended meanwhile.
pub async fn fail(engine: &Engine, id: Uuid, description: String) -> Result<(), Error> {
    let policies = engine.policies();
    engine
        .write(Purpose::Free, move |tx| {
            let row = pending(tx, id)?.ok_or(Refusal::NoCopyPending)?;
            Ok(give_up(tx, &policies, id, row, CopyStatus::Failed, Some(&description))?)
        })
        .await?;
    engine.wake();
    Ok(())
}

/// Abort Copy Blob: <https://learn.microsoft.com/rest/api/storageservices/abort-copy-blob>. The blob stays, without
/// bytes, or with those that an earlier incremental copy made. Conditions are not used.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, the lease refusals, `NoCopyPending` and `CopyIdMismatch`.
pub async fn abort(engine: &Engine, on: OnBlob, id: Uuid) -> Result<(), Error> {
    let policies = engine.policies();
    engine
        .write(Purpose::Free, move |tx| {
            let blob = state::place(tx, &on)?.blob.ok_or(Refusal::BlobNotFound)?;
            blob.lease.guard_write(tx.now(), on.lease, Leased::Blob)?;
            let under_way =
                blob.copy.filter(|copy| copy.status == CopyStatus::Pending).ok_or(Refusal::NoCopyPending)?;
            if under_way.id != id {
                return Err(Refusal::CopyIdMismatch.into());
            }
            let row = pending(tx, id)?.ok_or(Refusal::NoCopyPending)?;
            Ok(give_up(tx, &policies, id, row, CopyStatus::Aborted, None)?)
        })
        .await?;
    engine.wake();
    engine.copies().notify_waiters();
    Ok(())
}

/// Gives up a copy whose time is over, unless it ended before.
pub(crate) fn expire(
    tx: &mut dyn Tx,
    policies: &Policies,
    at: Timestamp,
    number: u64,
    key: &[u8],
) -> Result<(), StoreError> {
    tx.delete(Space::Due, &due::key(at, DueKind::Copy, number))?;
    let row: Option<CopyRow> = rows::get(tx, Space::Copies, key)?;
    match (row.filter(|row| row.number == number), copy::id(key)) {
        (Some(row), Some(id)) => give_up(tx, policies, id, row, CopyStatus::Failed, Some(TIMED_OUT)),
        _ => Ok(()),
    }
}

/// Forgets the copy under way at a blob that is erased.
pub(super) fn erase(tx: &mut dyn Tx, blob: &BlobRow) -> Result<(), StoreError> {
    let Some(under_way) = blob.copy.as_ref().filter(|copy| copy.status == CopyStatus::Pending) else { return Ok(()) };
    let Some(row) = pending(tx, under_way.id)? else { return Ok(()) };
    forget(tx, under_way.id, &row)?;
    state::release_content(tx, row.content)
}

fn pending(view: &dyn View, id: Uuid) -> Result<Option<CopyRow>, StoreError> {
    rows::get(view, Space::Copies, &copy::key(id))
}

/// The blob at which the copy is under way.
fn target(view: &dyn View, id: Uuid, row: &CopyRow) -> Result<Option<BlobRow>, StoreError> {
    let blob: Option<BlobRow> = rows::get(view, Space::Blobs, &row.blob)?;
    Ok(blob.filter(|blob| blob.copy.as_ref().is_some_and(|copy| copy.id == id)))
}

/// Removes the copy's row and its appointment.
fn forget(tx: &mut dyn Tx, id: Uuid, row: &CopyRow) -> Result<(), StoreError> {
    tx.delete(Space::Due, &due::key(row.due, DueKind::Copy, row.number))?;
    tx.delete(Space::Copies, &copy::key(id))
}

fn give_up(
    tx: &mut dyn Tx,
    policies: &Policies,
    id: Uuid,
    row: CopyRow,
    status: CopyStatus,
    description: Option<&str>,
) -> Result<(), StoreError> {
    forget(tx, id, &row)?;
    state::release_content(tx, row.content)?;
    if let Some(mut blob) = target(tx, id, &row)? {
        // What the last incremental copy made stays what the next one goes on from.
        if blob.copy.as_ref().and_then(|copy| copy.incremental?.snapshot).is_none() {
            blob.length = 0;
        }
        end(&mut blob, status, description, tx.now());
        record(tx, policies, &row, Cause::CopyGivenUp, &blob)?;
        rows::put(tx, Space::Blobs, row.blob, &blob)?;
    }
    Ok(())
}

/// Records for the change feed what became of the blob of a copy.
fn record(tx: &mut dyn Tx, policies: &Policies, row: &CopyRow, cause: Cause, blob: &BlobRow) -> Result<(), StoreError> {
    let wrong = |_| codec::corrupt(Space::Copies, &row.blob, "not a container's name");
    let account = AccountName::parse(&row.account).map_err(wrong)?;
    let container = ContainerAddress { account, container: ContainerName::parse(&row.container).map_err(wrong)? };
    let policy = policies.of(&container.account);
    let (_, name) = rows::blob::owner(Space::Copies, &row.blob)?;
    Change::of(cause, blob).record(tx, &policy, &OnBlob::at(BlobAddress { container, blob: name }))
}

/// The blob of a copy that is over is a new version.
fn end(blob: &mut BlobRow, status: CopyStatus, description: Option<&str>, now: Timestamp) {
    blob.etag = Etag::at(now);
    if let Some(copy) = &mut blob.copy {
        copy.status = status;
        copy.ended = Some(now);
        copy.description = description.map(|text| text.chars().take(DESCRIPTION_CHARS_MAX).collect());
    }
}
