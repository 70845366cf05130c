//! Append blobs: content that only grows, by whoever comes first.
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-block-blobs--append-blobs--and-page-blobs>

use std::sync::Arc;

use crate::blob::feed::Cause;
use crate::blob::kind::BlobKind;
use crate::blob::{OnBlob, Stored, Written, log, state};
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::payload::Staged;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::blob::{BlobRow, Content};
use crate::store::{Purpose, Space, Tx};

/// Most blocks of an append blob.
pub const APPENDED_BLOCKS_MAX: u32 = 50_000;
/// How often an append is tried again because somebody else appended to what the blob shared.
const ATTEMPTS_MAX: usize = 8;

/// Put Blob (append blob): <https://learn.microsoft.com/rest/api/storageservices/put-blob>. It is empty and open.
///
/// Refuses as [`crate::blob::object::put`].
pub async fn create(engine: &Engine, on: OnBlob, stored: Stored) -> Result<Written, Error> {
    const KIND: BlobKind = BlobKind::Append { blocks: 0, sealed: false };
    let policy = engine.policy(&on.address.container.account);
    let written = engine
        .write(Purpose::Grow, move |tx| {
            let place = state::place(tx, &on)?;
            let lease = state::admit_create(tx, &on, &place, KIND)?;
            let encryption = place.scope.encryption(on.key.as_ref(), stored.scope.as_ref())?;
            let (stored, content) = (stored.clone(), Content::Empty);
            let new = state::New { kind: KIND, stored, length: 0, content, copy: None, encryption, cause: Cause::Put };
            state::replace(tx, &policy, &on, place, lease, new)
        })
        .await?;
    engine.wake();
    Ok(written)
}

/// What an append demands of the blob's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendConditions {
    /// It is this before the append.
    pub position: Option<u64>,
    /// It is no more than this after it.
    pub length_max: Option<u64>,
}

impl AppendConditions {
    fn judge(self, length: u64, appended: u64) -> Result<(), Refusal> {
        if self.position.is_some_and(|position| position != length) {
            return Err(Refusal::AppendPositionDiffers);
        }
        if self.length_max.is_some_and(|length_max| length.saturating_add(appended) > length_max) {
            return Err(Refusal::LengthOverMax);
        }
        Ok(())
    }
}

/// What an append answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The version that it made.
    pub written: Written,
    /// The byte of the content at which the block begins.
    pub offset: u64,
    /// How many blocks there are now.
    pub blocks: u32,
}

/// Append Block, before its body is read: whether it would be refused now. The answer is not binding.
pub fn check_append(engine: &Engine, on: &OnBlob) -> Result<(), Error> {
    engine.read(|view| {
        let (_, blob) = state::writable(view, on)?;
        growth(&blob)?;
        state::opened(&blob, on)?;
        Ok(())
    })
}

/// Append Block: <https://learn.microsoft.com/rest/api/storageservices/append-block>. The protocol sees to it that the
/// block is not empty.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `ConditionFailed`, the lease refusals, `BlobKindMismatch`,
/// `AppendPositionDiffers`, `LengthOverMax`, `BlobSealed`, `AppendsTooMany`.
pub async fn append(
    engine: &Engine,
    on: OnBlob,
    conditions: AppendConditions,
    content: Staged,
) -> Result<Appended, Error> {
    let (on, content) = (Arc::new(on), Arc::new(content));
    for _ in 0..ATTEMPTS_MAX {
        let to = Arc::clone(&on);
        let appended =
            engine.write_content(Arc::clone(&content), move |tx, content| try_append(tx, &to, conditions, content));
        match appended.await? {
            Some(appended) => return Ok(appended),
            None => log::rebuild(engine, &on).await?,
        }
    }
    Err(Error::Busy)
}

/// Appends, unless the blob's list has grown beyond it: then it needs one of its own first.
fn try_append(
    tx: &mut dyn Tx,
    on: &OnBlob,
    conditions: AppendConditions,
    content: &Staged,
) -> Result<Option<Appended>, Error> {
    let (key, mut blob) = state::writable(tx, on)?;
    let (blocks, sealed) = growth(&blob)?;
    state::opened(&blob, on)?;
    conditions.judge(blob.length, content.length())?;
    if sealed {
        return Err(Refusal::BlobSealed.into());
    }
    if blocks >= APPENDED_BLOCKS_MAX {
        return Err(Refusal::AppendsTooMany.into());
    }
    let Some(tail) = log::tail(tx, blob.content, blob.length)? else { return Ok(None) };
    let offset = blob.length;
    blob.content = Content::Log(tail.push(tx, content)?);
    blob.kind = BlobKind::Append { blocks: blocks + 1, sealed };
    blob.length += content.length();
    blob.etag = Etag::at(tx.now());
    rows::put(tx, Space::Blobs, key, &blob)?;
    Ok(Some(Appended { written: Written { etag: blob.etag, version: blob.version }, offset, blocks: blocks + 1 }))
}

/// Append Blob Seal: <https://learn.microsoft.com/rest/api/storageservices/append-blob-seal>. A blob that is sealed
/// already stays as it is.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `ConditionFailed`, the lease refusals, `BlobKindMismatch`,
/// `AppendPositionDiffers`.
pub async fn seal(engine: &Engine, on: OnBlob, position: Option<u64>) -> Result<Written, Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let (key, mut blob) = state::writable(tx, &on)?;
            let (blocks, sealed) = growth(&blob)?;
            AppendConditions { position, length_max: None }.judge(blob.length, 0)?;
            if !sealed {
                blob.kind = BlobKind::Append { blocks, sealed: true };
                blob.etag = Etag::at(tx.now());
                rows::put(tx, Space::Blobs, key, &blob)?;
            }
            Ok(Written { etag: blob.etag, version: blob.version })
        })
        .await
}

/// How many blocks an append blob has, and whether it is sealed.
fn growth(blob: &BlobRow) -> Result<(u32, bool), Refusal> {
    match blob.kind {
        BlobKind::Append { blocks, sealed } => Ok((blocks, sealed)),
        BlobKind::Block | BlobKind::Page { .. } => Err(Refusal::BlobKindMismatch),
    }
}
