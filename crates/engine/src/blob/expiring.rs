//! Set Blob Expiry, and what becomes of a blob at that instant.
//! <https://learn.microsoft.com/rest/api/storageservices/set-blob-expiry>
//!
//! From the instant on no read, write or listing finds the blob; the clockwork deletes it a little later, like any
//! other deletion, so that versions and soft delete apply. Whoever writes over it before that deletes it first. A
//! protected blob does not expire before its protection ends.

use crate::blob::{OnBlob, Written, keep, state};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::expiry::{Expiry, ExpiryOption};
use crate::names::AccountName;
use crate::policy::Policies;
use crate::protection::ImmutabilityPolicy;
use crate::rows;
use crate::rows::blob::BlobRow;
use crate::rows::codec::{self, KeyReader, KeyWriter};
use crate::rows::due::{self, DueKind, DueRow};
use crate::store::{Purpose, Space, StoreError, Tx};

/// Set Blob Expiry. Makes no version.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `PartReadOnly`, the lease refusals, `BlobHeld`, `BlobImmutable` and
/// `ExpiryOver`.
pub async fn set(engine: &Engine, on: OnBlob, option: ExpiryOption) -> Result<Written, Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let (key, mut blob) = state::writable(tx, &on)?;
            let at = option.instant(blob.created, tx.now())?;
            forget(tx, &blob)?;
            blob.expires = at.map(|at| Expiry { at, id: tx.id() });
            if let Some(expiry) = blob.expires {
                appoint(tx, &on.address.container.account, &key, expiry)?;
            }
            blob.etag = Etag::at(tx.now());
            rows::put(tx, Space::Blobs, key, &blob)?;
            Ok(Written { etag: blob.etag, version: blob.version })
        })
        .await
}

/// Whether the blob has expired: it lies there only until the clockwork comes by.
pub(super) fn is_over(blob: &BlobRow, now: Timestamp) -> bool {
    blob.expires.is_some_and(|expiry| expiry.at <= now) && !blob.protection.holds(now)
}

/// Writes the appointment at which the blob at `base` is deleted: now, if its instant has passed.
pub(super) fn appoint(tx: &mut dyn Tx, account: &AccountName, base: &[u8], expiry: Expiry) -> Result<(), StoreError> {
    let key = [&KeyWriter::new().text(account.as_str()).finish(), base].concat();
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
    let (account, base) = split(key)?;
    let blob: Option<BlobRow> = rows::get(tx, Space::Blobs, base)?;
    let Some(blob) = blob.filter(|blob| blob.expires.is_some_and(|expiry| expiry.id == id)) else { return Ok(()) };
    if is_over(&blob, tx.now()) {
        return keep::removed(tx, &policies.of(&account), &account, base, &blob).map(|_| ());
    }
    match blob.protection.policy {
        Some(ImmutabilityPolicy { until, .. }) if until > tx.now() => {
            appoint(tx, &account, base, Expiry { at: until, id })
        }
        _ => Ok(()),
    }
}

/// The account and the key of the blob that an appointment is about.
fn split(key: &[u8]) -> Result<(AccountName, &[u8]), StoreError> {
    let text = KeyReader::new(Space::Due, key).text()?;
    let account = AccountName::parse(&text).map_err(|_| codec::corrupt(Space::Due, key, "not an account's name"))?;
    // The name of an account needs no escapes.
    let end = KeyWriter::new().text(account.as_str()).finish().len();
    Ok((account, key.get(end..).unwrap_or_default()))
}
