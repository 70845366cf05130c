//! The change feed: what became of the blobs of an account, in files of the container `$blobchangefeed`.
//! <https://learn.microsoft.com/azure/storage/blobs/storage-blob-change-feed>
//!
//! A transaction that changes a blob writes one row about it, if its account wants that: an acknowledged change has its
//! row, and no row is of a change that did not happen. The clockwork appends the rows to files, in the order in which
//! they were committed. The transaction that appends them removes them, so that each is there once, whatever crashes.
//!
//! What Azure records is recorded: whole blobs, their properties, tags, tiers, snapshots and deletions; not appended
//! blocks and pages, not leases and protection, not what goes with a container, and of the snapshots that are deleted
//! with their blob only the blob.

mod calendar;
mod publish;
mod record;

use crate::blob::{OnBlob, Part};
use crate::policy::AccountPolicy;
use crate::rows;
use crate::rows::blob::BlobRow;
use crate::rows::change::{self, ChangeRow};
use crate::store::{Space, StoreError, Tx};
use crate::tier::Tier;

pub(crate) use crate::rows::change::Cause;
pub(crate) use publish::{publish, waiting};

/// Longest Content-Type that a row keeps, in characters.
const TYPE_CHARS_MAX: usize = 256;

/// A change about to be recorded.
pub(in crate::blob) struct Change<'a> {
    cause: Cause,
    blob: &'a BlobRow,
    part: Part,
    other_tier: Option<Tier>,
    soft_deleted: bool,
}

impl<'a> Change<'a> {
    /// Of a blob that is, or for a deletion was, `blob`.
    pub(in crate::blob) fn of(cause: Cause, blob: &'a BlobRow) -> Self {
        Self { cause, blob, part: Part::Base, other_tier: None, soft_deleted: false }
    }

    /// It is about this state of the blob.
    pub(in crate::blob) fn part(self, part: Part) -> Self {
        Self { part, ..self }
    }

    /// The tier that it had before, or is on its way to.
    pub(in crate::blob) fn other_tier(self, other_tier: Option<Tier>) -> Self {
        Self { other_tier, ..self }
    }

    /// Whether what was deleted can be restored.
    pub(in crate::blob) fn soft_deleted(self, soft_deleted: bool) -> Self {
        Self { soft_deleted, ..self }
    }

    /// Records it, if the account wants that.
    pub(in crate::blob) fn record(
        self,
        tx: &mut dyn Tx,
        policy: &AccountPolicy,
        on: &OnBlob,
    ) -> Result<(), StoreError> {
        if !policy.change_feed {
            return Ok(());
        }
        let blob = self.blob;
        let (snapshot, version) = match self.part {
            Part::Base => (None, blob.version),
            Part::Snapshot(at) => (Some(at), None),
            Part::Version(id) => (None, Some(id)),
        };
        let container = &on.address.container;
        let row = ChangeRow {
            cause: self.cause,
            container: container.container.to_string(),
            blob: on.address.blob.to_string(),
            etag: blob.etag,
            kind: blob.kind,
            length: blob.length,
            content_type: blob.http.content_type.as_ref().map(|text| text.chars().take(TYPE_CHARS_MAX).collect()),
            version,
            snapshot,
            tier: blob.tier.map(|tier| tier.at(tx.now()).tier),
            other_tier: self.other_tier,
            copy: blob.copy.as_ref().map(|copy| copy.id).filter(|_| self.cause == Cause::CopyBegun),
            soft_deleted: self.soft_deleted,
            request: on.request.clone(),
        };
        let key = change::key(&container.account, tx.now(), tx.id());
        rows::put(tx, Space::Changes, key, &row)
    }
}
