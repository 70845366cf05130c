//! Immutability policies and legal holds: setting them, and finding them before much is deleted at once.
//! <https://learn.microsoft.com/azure/storage/blobs/immutable-version-level-worm-policies>
//!
//! What deletes many blobs without looking at each – a container, all snapshots of a blob – must know that none of them
//! is protected. A container counts the protections that were ever set in it. None: nothing is to be looked at. Else
//! the blobs are looked through in a snapshot, and the deletion rests on the count being the same: what was not
//! protected then is not now.

use crate::blob::{OnBlob, Part, expiring, state};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::names::ContainerAddress;
use crate::policy::AccountPolicy;
use crate::protection::{ImmutabilityPolicy, Protection};
use crate::refusal::Refusal;
use crate::rows::blob::{self, BlobRow};
use crate::rows::container::{self, ContainerRow};
use crate::rows::{self, codec};
use crate::store::{Direction, KeyRange, Purpose, Space, StoreError, Tx, View};

/// Set Immutability Policy: <https://learn.microsoft.com/rest/api/storageservices/set-blob-immutability-policy>. The
/// blob's version stays; leases are not used.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `ConditionFailed`, `ProtectionOff`, `PolicyOver`, and `BlobImmutable`
/// for a locked policy that would be weaker.
pub async fn set_policy(engine: &Engine, on: OnBlob, policy: ImmutabilityPolicy) -> Result<(), Error> {
    change(engine, on, move |protection, now| protection.with_policy(policy, now)).await
}

/// Delete Immutability Policy: <https://learn.microsoft.com/rest/api/storageservices/delete-blob-immutability-policy>.
/// That there is none is no error. Conditions and leases are not used.
///
/// Refuses `ContainerNotFound`, `BlobNotFound`, `ProtectionOff` and `PolicyLocked`.
pub async fn delete_policy(engine: &Engine, on: OnBlob) -> Result<(), Error> {
    change(engine, on, |protection, _| protection.without_policy()).await
}

/// Set Legal Hold: <https://learn.microsoft.com/rest/api/storageservices/set-blob-legal-hold>. Conditions and leases are
/// not used.
///
/// Refuses `ContainerNotFound`, `BlobNotFound` and `ProtectionOff`.
pub async fn set_hold(engine: &Engine, on: OnBlob, hold: bool) -> Result<(), Error> {
    change(engine, on, move |protection, _| Ok(Protection { hold: Some(hold), ..protection })).await
}

async fn change(
    engine: &Engine,
    on: OnBlob,
    edit: impl Fn(Protection, Timestamp) -> Result<Protection, Refusal> + Send + 'static,
) -> Result<(), Error> {
    let policy = engine.policy(&on.address.container.account);
    engine
        .write(Purpose::Free, move |tx| {
            let mut found = state::find(tx, &on)?;
            state::own(found.part, &found.blob)?;
            on.conditions.judge_write(found.blob.etag)?;
            if !policy.immutability {
                return Err(Refusal::ProtectionOff.into());
            }
            found.blob.protection = edit(found.blob.protection, tx.now())?;
            found.save(tx)?;
            if let (Part::Base, Some(expiry)) = (found.part, found.blob.expires) {
                // It may have been passed over while it was protected.
                expiring::appoint(tx, &on.address.container, &found.base, expiry)?;
            }
            Ok(count(tx, &on.address.container)?)
        })
        .await
}

/// Whether a new blob may be protected so. Counts it, if it is.
///
/// Refuses [`Refusal::ProtectionOff`] and [`Refusal::PolicyOver`].
pub(super) fn admit_new(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    container: &ContainerAddress,
    protection: &Protection,
) -> Result<(), Error> {
    if *protection == Protection::default() {
        return Ok(());
    }
    if !policy.immutability {
        return Err(Refusal::ProtectionOff.into());
    }
    if protection.policy.is_some_and(|policy| policy.until <= tx.now()) {
        return Err(Refusal::PolicyOver.into());
    }
    Ok(count(tx, container)?)
}

/// Counts a protection that is set in a container.
fn count(tx: &mut dyn Tx, address: &ContainerAddress) -> Result<(), StoreError> {
    let key = container::key(address);
    let Some(mut row) = rows::get::<ContainerRow>(tx, Space::Containers, &key)? else { return Ok(()) };
    row.protections += 1;
    rows::put(tx, Space::Containers, key, &row)
}

/// That blobs of a container were looked through and none was protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    incarnation: u64,
    protections: u64,
}

impl Seen {
    fn of(container: &ContainerRow) -> Self {
        Self { incarnation: container.incarnation, protections: container.protections }
    }
}

/// Whether nothing is protected of what was looked through, or none ever was.
pub(super) fn is_free(container: &ContainerRow, seen: Option<Seen>) -> bool {
    container.protections == 0 || seen == Some(Seen::of(container))
}

/// Looks through all that lies in a container.
///
/// Refuses `ContainerNotFound`, and `ContainerProtected` if something is protected.
pub(super) async fn look_through(engine: &Engine, address: ContainerAddress) -> Result<Seen, Error> {
    engine
        .scan(move |view| {
            let container = state::container(view, &address)?;
            let all = blob::prefix(container.incarnation, b"");
            for space in [Space::Blobs, Space::Versions, Space::Snapshots] {
                if protection_in(view, space, &all)?.is_err() {
                    return Err(Refusal::ContainerProtected.into());
                }
            }
            Ok(Seen::of(&container))
        })
        .await
}

/// Looks through the snapshots of a blob.
///
/// Refuses `ContainerNotFound`, `BlobHeld` and `BlobImmutable`.
pub(super) async fn look_through_snapshots(engine: &Engine, on: OnBlob) -> Result<Seen, Error> {
    engine
        .scan(move |view| {
            let container = state::container(view, &on.address.container)?;
            protection_in(view, Space::Snapshots, &blob::key(container.incarnation, &on.address.blob))??;
            Ok(Seen::of(&container))
        })
        .await
}

/// The first protection of those whose keys begin with `prefix`, as a refusal.
fn protection_in(view: &dyn View, space: Space, prefix: &[u8]) -> Result<Result<(), Refusal>, StoreError> {
    for pair in view.scan(space, KeyRange::prefix(prefix), Direction::Forward) {
        let (key, value) = pair?;
        let row: BlobRow = codec::decode(space, &key, &value)?;
        if let Err(refusal) = row.protection.admit(view.now()) {
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(()))
}
