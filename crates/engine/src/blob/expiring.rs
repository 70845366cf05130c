//! Set Blob Expiry, and what becomes of a blob at that instant.
//! <https://learn.microsoft.com/rest/api/storageservices/set-blob-expiry>
//!
//! From the instant on no read, write or listing finds the blob; the clockwork deletes it a little later, like any
//! other deletion, so that versions and soft delete apply. Whoever writes over it before that deletes it first. A
//! protected blob does not expire before its protection ends.

use crate::blob::feed::{Cause, Change};
use crate::blob::{OnBlob, Written, keep, state};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::expiry::{Expiry, ExpiryOption};
use crate::names::{AccountName, BlobAddress, ContainerAddress, ContainerName};
use crate::policy::Policies;
use crate::protection::ImmutabilityPolicy;
use crate::rows;
use crate::rows::blob::BlobRow;
use crate::rows::codec::{self, KeyReader};
use crate::rows::due::{self, DueKind, DueRow};
use crate::store::{Purpose, Space, StoreError, Tx};

/// Set Blob Expiry. Makes no version.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `PartReadOnly`, the lease refusals, `BlobHeld`, `BlobImmutable` and
/// `ExpiryOver`.
pub async fn set(engine: &Engine, on: OnBlob, option: ExpiryOption) -> Result<Written, Error> {
    let policy = engine.policy(&on.address.container.account);
    engine
        .write(Purpose::Grow, move |tx| {
            let (key, mut blob) = state::writable(tx, &on)?;
            let at = option.instant(blob.created, tx.now())?;
            forget(tx, &blob)?;
            blob.expires = at.map(|at| Expiry { at, id: tx.id() });
            if let Some(expiry) = blob.expires {
                appoint(tx, &on.address.container, &key, expiry)?;
            }
            blob.etag = Etag::at(tx.now());
            rows::put(tx, Space::Blobs, key, &blob)?;
            Change::of(Cause::Expiry, &blob).record(tx, &policy, &on)?;
            Ok(Written { etag: blob.etag, version: blob.version })
        })
        .await
}

/// Whether the blob has expired: it lies there only until the clockwork comes by.
pub(super) fn is_over(blob: &BlobRow, now: Timestamp) -> bool {
    blob.expires.is_some_and(|expiry| expiry.at <= now) && !blob.protection.holds(now)
}

/// Writes the appointment at which the blob at `base` is deleted: now, if its instant has passed.
pub(super) fn appoint(
    tx: &mut dyn Tx,
    container: &ContainerAddress,
    base: &[u8],
    expiry: Expiry,
) -> Result<(), StoreError> {
    let key = [&rows::container::key(container), base].concat();
    let appointment = due::key(expiry.at.max(tx.now()), DueKind::Expiry, expiry.id);
    rows::put(tx, Space::Due, appointment, &DueRow { key })
}

/// Takes the blob's appointment away. One that was put off stays, and finds nothing to do.
pub(super) fn forget(tx: &mut dyn Tx, blob: &BlobRow) -> Result<(), StoreError> {
    let Some(expiry) = blob.expires else { return Ok(()) };
    tx.delete(Space::Due, &due::key(expiry.at, DueKind::Expiry, expiry.id))
}

/// Deletes a blob whose appointment has come, unless it was changed meanwhile. One that a policy protects gets another
/// appointment; one that is held gets it when it is let go.
pub(crate) fn expire(
    tx: &mut dyn Tx,
    policies: &Policies,
    at: Timestamp,
    id: u64,
    key: &[u8],
) -> Result<(), StoreError> {
    tx.delete(Space::Due, &due::key(at, DueKind::Expiry, id))?;
    let (address, base) = split(key)?;
    let blob: Option<BlobRow> = rows::get(tx, Space::Blobs, base)?;
    let Some(blob) = blob.filter(|blob| blob.expires.is_some_and(|expiry| expiry.id == id)) else { return Ok(()) };
    if is_over(&blob, tx.now()) {
        let policy = policies.of(&address.container.account);
        return keep::removed(tx, &policy, &OnBlob::at(address), base, &blob).map(|_| ());
    }
    match blob.protection.policy {
        Some(ImmutabilityPolicy { until, .. }) if until > tx.now() => {
            appoint(tx, &address.container, base, Expiry { at: until, id })
        }
        _ => Ok(()),
    }
}

/// The blob that an appointment is about, and its key.
fn split(key: &[u8]) -> Result<(BlobAddress, &[u8]), StoreError> {
    let mut reader = KeyReader::new(Space::Due, key);
    let (account, container) = (reader.text()?, reader.text()?);
    let wrong = |_| codec::corrupt(Space::Due, key, "not a container's name");
    let account = AccountName::parse(&account).map_err(wrong)?;
    let container = ContainerAddress { account, container: ContainerName::parse(&container).map_err(wrong)? };
    let base = key.get(rows::container::key(&container).len()..).unwrap_or_default();
    let (_, blob) = rows::blob::owner(Space::Due, base)?;
    Ok((BlobAddress { container, blob }, base))
}
