//! From rows to files: a bounded step of an account's feed at a time.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::calendar::{self, SEGMENT_SECONDS};
use super::record;
use crate::avro::Container;
use crate::blob::kind::BlobKind;
use crate::blob::{OnBlob, container, log, state};
use crate::clock::{TICKS_PER_SECOND, Timestamp};
use crate::encryption::Encryption;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::Lease;
use crate::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};
use crate::payload::{self, Staged};
use crate::properties::{HttpProperties, Metadata};
use crate::protection::Protection;
use crate::rows;
use crate::rows::blob::{BlobRow, Content};
use crate::rows::change::{self, ChangeRow};
use crate::rows::codec;
use crate::rows::feed::{self, FeedRow, Segment};
use crate::store::{Direction, KeyRange, Purpose, Space, StoreError, Tx, View, prefix_end};

/// How long a change waits for others, so that they are appended together.
const WAIT: Duration = Duration::from_secs(1);
/// Changes that one step appends.
const CHANGES_PER_STEP: usize = 512;
/// Bytes of records after which a step takes no more changes.
const BYTES_PER_STEP: usize = 512 * 1024;
/// Steps that one file takes.
const BLOCKS_PER_FILE: u32 = 10_000;
/// How often a step is tried again because a client's copy of the file has taken over its list.
const ATTEMPTS_MAX: usize = 8;

/// The accounts of which changes wait.
pub(crate) fn waiting(view: &dyn View) -> Result<Vec<AccountName>, StoreError> {
    let mut accounts: Vec<AccountName> = Vec::new();
    let mut range = KeyRange::all();
    while let Some(pair) = view.scan(Space::Changes, range, Direction::Forward).next() {
        let (account, ..) = change::parse(&pair?.0)?;
        range = match prefix_end(&change::prefix(&account)) {
            Bound::Excluded(next) => KeyRange::all().starting(Bound::Included(next)),
            _ => return Ok(accounts),
        };
        accounts.push(account);
    }
    Ok(accounts)
}

/// What a feed needs next.
enum Next {
    Nothing,
    /// Its container, and to be told of.
    Begin,
    /// This segment takes no more changes.
    Close(Segment),
    /// These changes are to be appended.
    Append(Batch),
}

/// Changes about to be appended to a file.
struct Batch {
    /// How far the feed was.
    before: FeedRow,
    /// Where they go.
    segment: Segment,
    /// Whether the file is new.
    is_new: bool,
    /// Their keys.
    keys: Vec<Bytes>,
    /// What is appended.
    bytes: Vec<u8>,
}

/// Does some of what the account's feed waits for; answers whether there may be more to do now.
pub(crate) async fn publish(engine: &Engine, account: &AccountName) -> Result<bool, Error> {
    let next = engine.read(|view| look(view, account))?;
    let account = account.clone();
    match next {
        Next::Nothing => return Ok(false),
        Next::Begin => engine.write(Purpose::Grow, move |tx| begin(tx, &account)).await?,
        Next::Close(segment) => engine.write(Purpose::Grow, move |tx| close(tx, &account, segment)).await?,
        Next::Append(batch) => append(engine, account, batch).await?,
    }
    Ok(true)
}

fn look(view: &dyn View, account: &AccountName) -> Result<Next, Error> {
    let Some(before) = rows::get::<FeedRow>(view, Space::Feeds, &feed::key(account))? else { return Ok(Next::Begin) };
    let prefix = KeyRange::prefix(&change::prefix(account));
    let first = view.scan(Space::Changes, prefix, Direction::Forward).next().transpose()?;
    let first = first.map(|(key, _)| change::parse(&key)).transpose()?;
    let Some((_, at, _)) = first else {
        return Ok(before.open.filter(|open| end(*open) <= view.now()).map_or(Next::Nothing, Next::Close));
    };
    if at.after(WAIT) > view.now() {
        return Ok(Next::Nothing);
    }
    match before.open {
        Some(open) if end(open) <= at => Ok(Next::Close(open)),
        _ => Ok(Next::Append(batch(view, account, before, at)?)),
    }
}

/// When the segment's hour is over.
fn end(segment: Segment) -> Timestamp {
    segment.begin.after(Duration::from_secs(SEGMENT_SECONDS))
}

/// The first changes that wait, those of one hour, as they are appended.
fn batch(view: &dyn View, account: &AccountName, before: FeedRow, first: Timestamp) -> Result<Batch, Error> {
    let mut segment = before.open.unwrap_or(Segment { begin: calendar::hour(first), file: 0 });
    let mut file = state::place(view, &OnBlob::at(log_file(account, segment)?))?.blob;
    if file.as_ref().is_some_and(|file| matches!(file.kind, BlobKind::Append { blocks: BLOCKS_PER_FILE.., .. })) {
        segment.file += 1;
        file = None;
    }
    let (mut keys, mut records) = (Vec::new(), Vec::new());
    for pair in view.scan(Space::Changes, KeyRange::prefix(&change::prefix(account)), Direction::Forward) {
        let (key, value) = pair?;
        let (_, at, id) = change::parse(&key)?;
        if keys.len() == CHANGES_PER_STEP || records.len() >= BYTES_PER_STEP || at >= end(segment) {
            break;
        }
        let row: ChangeRow = codec::decode(Space::Changes, &key, &value)?;
        record::write(&mut records, account, at, id, &row);
        keys.push(key);
    }
    let (avro, is_new) = (Container::new(marker(account, segment)), file.is_none());
    let mut bytes = Vec::with_capacity(records.len() + record::SCHEMA.len());
    if is_new {
        avro.header(&mut bytes, record::SCHEMA);
    }
    avro.block(&mut bytes, keys.len(), &records);
    Ok(Batch { before, segment, is_new, keys, bytes })
}

/// What ends the blocks of a file: the same for all of one, and not likely in what changed.
fn marker(account: &AccountName, segment: Segment) -> [u8; 16] {
    let name = format!("{account} {} {}", segment.begin.ticks(), segment.file);
    let mut marker = [0; 16];
    marker.iter_mut().zip(Sha256::digest(name)).for_each(|(to, from)| *to = from);
    marker
}

async fn append(engine: &Engine, account: AccountName, mut batch: Batch) -> Result<(), Error> {
    let mut stage = engine.payloads().stage(false, Some(batch.bytes.len() as u64));
    stage.write(std::mem::take(&mut batch.bytes).into()).await?;
    let (content, batch) = (Arc::new(stage.finish().await?), Arc::new(batch));
    let on = Arc::new(OnBlob::at(log_file(&account, batch.segment)?));
    for _ in 0..ATTEMPTS_MAX {
        let (account, batch, to) = (account.clone(), Arc::clone(&batch), Arc::clone(&on));
        let appended = engine
            .write_content(Arc::clone(&content), move |tx, content| try_append(tx, &account, &to, &batch, content));
        if appended.await? {
            return Ok(());
        }
        log::rebuild(engine, &on).await?;
    }
    Err(Error::Busy)
}

/// Appends the batch and removes its rows, unless that was done; answers false if the file needs a list of its own
/// first.
fn try_append(
    tx: &mut dyn Tx,
    account: &AccountName,
    on: &OnBlob,
    batch: &Batch,
    content: &Staged,
) -> Result<bool, Error> {
    let now: Option<FeedRow> = rows::get(tx, Space::Feeds, &feed::key(account))?;
    let waits = |key: Option<&Bytes>| key.map_or(Ok(None), |key| tx.get(Space::Changes, key));
    if now != Some(batch.before) || waits(batch.keys.first())?.is_none() || waits(batch.keys.last())?.is_none() {
        return Ok(true);
    }
    let state::Place { key, blob, .. } = state::place(tx, on)?;
    let new = file(tx.now(), BlobKind::Append { blocks: 0, sealed: false }, 0, Content::Empty);
    let mut blob = blob.filter(|_| !batch.is_new).unwrap_or(new);
    let Some(tail) = log::tail(tx, blob.content, blob.length)? else { return Ok(false) };
    blob.content = Content::Log(tail.push(tx, content)?);
    if let BlobKind::Append { blocks, .. } = &mut blob.kind {
        *blocks += 1;
    }
    blob.length += content.length();
    blob.etag = Etag::at(tx.now());
    rows::put(tx, Space::Blobs, key, &blob)?;
    if batch.before.open.is_none() {
        put_whole(tx, account, &segment_file(batch.segment), segment_text(batch.segment, "Publishing"))?;
    }
    for key in &batch.keys {
        tx.delete(Space::Changes, key)?;
    }
    rows::put(tx, Space::Feeds, feed::key(account), &FeedRow { open: Some(batch.segment) })?;
    Ok(true)
}

/// Makes what a feed has before its first change, unless that was done.
fn begin(tx: &mut dyn Tx, account: &AccountName) -> Result<(), Error> {
    if tx.get(Space::Feeds, &feed::key(account))?.is_some() {
        return Ok(());
    }
    container::ensure(tx, &feed_container(account))?;
    let before = calendar::hour(tx.now()).ticks().saturating_sub(SEGMENT_SECONDS * TICKS_PER_SECOND);
    put_whole(tx, account, "meta/segments.json", consumable_text(Timestamp::from_ticks(before)))?;
    Ok(rows::put(tx, Space::Feeds, feed::key(account), &FeedRow::default())?)
}

/// Says that a segment is complete, unless that was done.
fn close(tx: &mut dyn Tx, account: &AccountName, segment: Segment) -> Result<(), Error> {
    let now: Option<FeedRow> = rows::get(tx, Space::Feeds, &feed::key(account))?;
    let until = change::key(account, end(segment), 0);
    let prefix = KeyRange { end: Bound::Excluded(until), ..KeyRange::prefix(&change::prefix(account)) };
    let waits = tx.any(Space::Changes, &prefix)?;
    // What commits from now on is later than the segment.
    if waits || tx.now() < end(segment) || now != Some(FeedRow { open: Some(segment) }) {
        return Ok(());
    }
    put_whole(tx, account, &segment_file(segment), segment_text(segment, "Finalized"))?;
    put_whole(tx, account, "meta/segments.json", consumable_text(segment.begin))?;
    Ok(rows::put(tx, Space::Feeds, feed::key(account), &FeedRow::default())?)
}

fn segment_text(segment: Segment, status: &str) -> String {
    let (begin, path) = (calendar::to_the_second(segment.begin), calendar::path(segment.begin));
    format!(
        r#"{{"version":0,"begin":"{begin}","intervalSecs":{SEGMENT_SECONDS},"status":"{status}","config":{{"version":0,"configVersionEtag":"0x0","numShards":1,"recordsFormat":"avro","formatSchemaVersion":4,"shardDistFnVersion":1}},"chunkFilePaths":["$blobchangefeed/log/00/{path}/"]}}"#
    )
}

fn consumable_text(last: Timestamp) -> String {
    format!(r#"{{"version":0,"lastConsumable":"{}"}}"#, calendar::to_the_second(last))
}

fn segment_file(segment: Segment) -> String {
    format!("idx/segments/{}/meta.json", calendar::path(segment.begin))
}

/// Where the changes of a segment are appended.
fn log_file(account: &AccountName, segment: Segment) -> Result<BlobAddress, Error> {
    address(account, &format!("log/00/{}/{:05}.avro", calendar::path(segment.begin), segment.file))
}

fn feed_container(account: &AccountName) -> ContainerAddress {
    ContainerAddress { account: account.clone(), container: ContainerName::change_feed() }
}

fn address(account: &AccountName, name: &str) -> Result<BlobAddress, Error> {
    let blob = BlobName::parse(name).map_err(|_| StoreError::Backend(format!("{name} is no name of a file")))?;
    Ok(BlobAddress { container: feed_container(account), blob })
}

/// Writes a small file whole.
fn put_whole(tx: &mut dyn Tx, account: &AccountName, name: &str, text: String) -> Result<(), Error> {
    let state::Place { key, blob, .. } = state::place(tx, &OnBlob::at(address(account, name)?))?;
    let length = text.len() as u64;
    let content = Content::Whole(payload::keep_small(tx, text.into_bytes())?);
    let mut new = file(tx.now(), BlobKind::Block, length, content);
    if let Some(old) = blob {
        state::release_content(tx, old.content)?;
        new.created = old.created;
    }
    Ok(rows::put(tx, Space::Blobs, key, &new)?)
}

/// A file as it is when it is made.
fn file(now: Timestamp, kind: BlobKind, length: u64, content: Content) -> BlobRow {
    BlobRow {
        created: now,
        etag: Etag::at(now),
        version: None,
        kind,
        length,
        http: HttpProperties::default(),
        metadata: Metadata::default(),
        lease: Lease::Available,
        content,
        tags: 0,
        tier: None,
        copy: None,
        expires: None,
        protection: Protection::default(),
        encryption: Encryption::Account,
        begun: None,
    }
}
