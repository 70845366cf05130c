//! Containers. <https://learn.microsoft.com/rest/api/storageservices/operations-on-containers>

use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use crate::access::{AccessControl, PublicAccess};
use crate::blob::{LeaseAnswer, LeaseView, Marker, OnContainer, Written, protecting, state};
use crate::clock::Timestamp;
use crate::encryption::DefaultScope;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::{Lease, LeaseAction, Leased};
use crate::names::{AccountName, ContainerAddress, ContainerName};
use crate::payload::refs::{self, Target};
use crate::policy::AccountPolicy;
use crate::properties::Metadata;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::codec;
use crate::rows::container::{self as row, ContainerRow, DeletedContainerRow};
use crate::rows::due::{self, DueKind, DueRow};
use crate::rows::layer::Deletion;
use crate::store::{Direction, KeyRange, Pair, Pairs, Purpose, Space, StoreError, Tx, View};

/// The end of every instant in a key.
const LAST_INSTANT: [u8; 8] = [0xFF; 8];

/// A container as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerView {
    /// Its name.
    pub name: ContainerName,
    /// Its version; the commit time is Last-Modified.
    pub etag: Etag,
    /// Its lease.
    pub lease: LeaseView,
    /// Public access and stored policies.
    pub access: AccessControl,
    /// Its metadata.
    pub metadata: Metadata,
    /// The encryption scope of its blobs.
    pub scope: DefaultScope,
    /// That it is soft-deleted, and until when. The instant of the deletion names it.
    pub deleted: Option<Deletion>,
}

impl ContainerView {
    fn of(name: ContainerName, row: ContainerRow, deleted: Option<Deletion>, now: Timestamp) -> Self {
        let lease = LeaseView::of(&row.lease, now);
        Self { name, etag: row.etag, lease, access: row.access, metadata: row.metadata, scope: row.scope, deleted }
    }
}

/// A container to create.
#[derive(Clone, Debug, Default)]
pub struct NewContainer {
    /// Its metadata.
    pub metadata: Metadata,
    /// What anonymous clients may read of it.
    pub public: PublicAccess,
    /// The encryption scope of its blobs.
    pub scope: DefaultScope,
}

/// Create Container: <https://learn.microsoft.com/rest/api/storageservices/create-container>
///
/// Refuses `ContainerExists`.
pub async fn create(engine: &Engine, address: ContainerAddress, new: NewContainer) -> Result<Written, Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let key = row::key(&address);
            if tx.get(Space::Containers, &key)?.is_some() {
                return Err(Refusal::ContainerExists.into());
            }
            Ok(insert(tx, key, new.clone())?)
        })
        .await
}

/// Creates the container, private, unless there is one.
pub(crate) fn ensure(tx: &mut dyn Tx, address: &ContainerAddress) -> Result<(), StoreError> {
    let key = row::key(address);
    if tx.get(Space::Containers, &key)?.is_none() {
        insert(tx, key, NewContainer::default())?;
    }
    Ok(())
}

fn insert(tx: &mut dyn Tx, key: Vec<u8>, new: NewContainer) -> Result<Written, StoreError> {
    let container = ContainerRow {
        incarnation: tx.id(),
        etag: Etag::at(tx.now()),
        lease: Lease::Available,
        access: AccessControl { public: new.public, policies: Vec::new() },
        metadata: new.metadata,
        scope: new.scope,
        protections: 0,
    };
    rows::put(tx, Space::Containers, key, &container)?;
    Ok(Written { etag: container.etag, version: None })
}

/// Get Container Properties, Metadata and ACL in one.
///
/// Refuses `ContainerNotFound`, and the lease refusals if a lease is named that is not held. Conditions are not used.
pub async fn get(engine: &Engine, on: OnContainer) -> Result<ContainerView, Error> {
    engine.read(|view| {
        let container = state::container(view, &on.address)?;
        container.lease.guard_read(view.now(), on.lease, Leased::Container)?;
        Ok(ContainerView::of(on.address.container.clone(), container, None, view.now()))
    })
}

/// Set Container Metadata: replaces all of it.
pub async fn set_metadata(engine: &Engine, on: OnContainer, metadata: Metadata) -> Result<Written, Error> {
    change(engine, on, move |container| container.metadata = metadata.clone()).await
}

/// Set Container ACL: replaces public access and policies.
pub async fn set_access(engine: &Engine, on: OnContainer, access: AccessControl) -> Result<Written, Error> {
    change(engine, on, move |container| container.access = access.clone()).await
}

/// Changes a container if its conditions hold and a lease that is named is held: its lease guards only its deletion.
async fn change(
    engine: &Engine,
    on: OnContainer,
    edit: impl Fn(&mut ContainerRow) + Send + 'static,
) -> Result<Written, Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let mut container = state::container(tx, &on.address)?;
            on.conditions.judge_write(container.etag)?;
            container.lease.guard_read(tx.now(), on.lease, Leased::Container)?;
            edit(&mut container);
            container.etag = Etag::at(tx.now());
            rows::put(tx, Space::Containers, row::key(&on.address), &container)?;
            Ok(Written { etag: container.etag, version: None })
        })
        .await
}

/// Delete Container. Takes the same time whatever lies in it; the name is free at once. Where the account's policy says
/// so, it can be restored for some days. Only in a container in which blobs were ever protected, all are looked
/// through before.
///
/// Refuses `ContainerNotFound`, `ConditionFailed`, the lease refusals and `ContainerProtected`.
pub async fn delete(engine: &Engine, on: OnContainer) -> Result<(), Error> {
    let policy = engine.policy(&on.address.account);
    let mut seen = None;
    loop {
        let (policy, to) = (Arc::clone(&policy), on.clone());
        if engine.write(Purpose::Free, move |tx| try_delete(tx, &policy, &to, seen)).await? {
            break;
        }
        seen = Some(protecting::look_through(engine, on.address.clone()).await?);
    }
    engine.wake();
    Ok(())
}

/// Deletes the container unless it must be looked through before; answers whether it is deleted.
fn try_delete(
    tx: &mut dyn Tx,
    policy: &AccountPolicy,
    on: &OnContainer,
    seen: Option<protecting::Seen>,
) -> Result<bool, Error> {
    let container = state::container(tx, &on.address)?;
    on.conditions.judge_write(container.etag)?;
    container.lease.guard_write(tx.now(), on.lease, Leased::Container)?;
    if !protecting::is_free(&container, seen) {
        return Ok(false);
    }
    tx.delete(Space::Containers, &row::key(&on.address))?;
    let Some(days) = policy.container_retention_days else {
        refs::release(tx, Target::container(container.incarnation))?;
        return Ok(true);
    };
    let deletion = Deletion::for_days(tx, days);
    let key = row::deleted_key(&on.address, deletion.at);
    let appointment = due::key(deletion.until, DueKind::Container, deletion.id);
    rows::put(tx, Space::Due, appointment, &DueRow { key: key.clone() })?;
    let container = ContainerRow { lease: Lease::Available, ..container };
    rows::put(tx, Space::DeletedContainers, key, &DeletedContainerRow { container, deletion })?;
    Ok(true)
}

/// Restore Container: <https://learn.microsoft.com/rest/api/storageservices/restore-container>. It comes back with all
/// that lay in it, without a lease. `deleted` is the instant of its deletion.
///
/// Refuses `ContainerNotFound` if none of the name was deleted then and can still be restored, `ContainerExists`.
pub async fn restore(engine: &Engine, address: ContainerAddress, deleted: Timestamp) -> Result<(), Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let (key, deleted_key) = (row::key(&address), row::deleted_key(&address, deleted));
            let row: Option<DeletedContainerRow> = rows::get(tx, Space::DeletedContainers, &deleted_key)?;
            let row = row.filter(|row| row.deletion.until > tx.now()).ok_or(Refusal::ContainerNotFound)?;
            if tx.get(Space::Containers, &key)?.is_some() {
                return Err(Refusal::ContainerExists.into());
            }
            tx.delete(Space::DeletedContainers, &deleted_key)?;
            tx.delete(Space::Due, &due::key(row.deletion.until, DueKind::Container, row.deletion.id))?;
            Ok(rows::put(tx, Space::Containers, key, &row.container)?)
        })
        .await
}

/// Erases a soft-deleted container whose appointment has come, unless it was restored meanwhile.
pub(crate) fn expire(tx: &mut dyn Tx, at: Timestamp, id: u64, key: &[u8]) -> Result<(), StoreError> {
    tx.delete(Space::Due, &due::key(at, DueKind::Container, id))?;
    let row: Option<DeletedContainerRow> = rows::get(tx, Space::DeletedContainers, key)?;
    let Some(row) = row.filter(|row| row.deletion.id == id) else { return Ok(()) };
    tx.delete(Space::DeletedContainers, key)?;
    refs::release(tx, Target::container(row.container.incarnation))
}

/// Lease Container: <https://learn.microsoft.com/rest/api/storageservices/lease-container>. `on.lease` is not used.
pub async fn lease(engine: &Engine, on: OnContainer, action: LeaseAction) -> Result<LeaseAnswer, Error> {
    engine
        .write(Purpose::Free, move |tx: &mut dyn Tx| {
            let mut container = state::container(tx, &on.address)?;
            on.conditions.judge_write(container.etag)?;
            container.lease = container.lease.apply(action, tx.now())?;
            rows::put(tx, Space::Containers, row::key(&on.address), &container)?;
            Ok(LeaseAnswer::of(container.etag, &container.lease, tx.now()))
        })
        .await
}

/// What List Containers asks for.
#[derive(Clone, Debug)]
pub struct ListContainers {
    /// The account.
    pub account: AccountName,
    /// Only names that begin so.
    pub prefix: String,
    /// Where to go on.
    pub start: Option<Marker>,
    /// Most containers to answer, at least 1.
    pub limit: usize,
    /// Whether soft-deleted ones are listed.
    pub deleted: bool,
    /// Whether those are listed that the service itself makes.
    pub system: bool,
}

/// One page of containers, in byte order of their names, as of one moment. Of one name, the deleted ones come first, in
/// the order of their deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerPage {
    /// The containers.
    pub containers: Vec<ContainerView>,
    /// Where the next page begins, if there is one.
    pub next: Option<Marker>,
    /// The moment.
    pub now: Timestamp,
}

/// Whether a listing of the account's containers may have given out the marker.
pub fn is_marker(account: &AccountName, Marker(start): &Marker) -> bool {
    row::deleted_name(&[&row::prefix(account, b"")[..], start].concat()).is_ok()
}

/// List Containers: <https://learn.microsoft.com/rest/api/storageservices/list-containers2>
pub async fn list(engine: &Engine, request: ListContainers) -> Result<ContainerPage, Error> {
    engine.scan(move |view| page(view, &request)).await
}

fn page(view: &dyn View, request: &ListContainers) -> Result<ContainerPage, Error> {
    let whole = row::prefix(&request.account, request.prefix.as_bytes());
    let account = row::prefix(&request.account, b"");
    // A marker is the part of a key after the account: of a deleted container up to and with the instant.
    let start = request.start.as_ref().map_or_else(Vec::new, |Marker(start)| [&account[..], start].concat());
    let scan = |space, start: Vec<u8>| {
        let range = KeyRange::prefix(&whole).starting(Bound::Included(start.max(whole.clone())));
        view.scan(space, range, Direction::Forward).peekable()
    };
    let mut live = scan(Space::Containers, first_field_end(&account, &start));
    let mut deleted = request.deleted.then(|| scan(Space::DeletedContainers, start.clone()));
    let (mut containers, now) = (Vec::new(), view.now());
    loop {
        let of_deleted = match &mut deleted {
            Some(deleted) => earlier(deleted, &mut live)?,
            None => false,
        };
        let pair = if of_deleted { deleted.as_mut().and_then(Iterator::next) } else { live.next() };
        let Some((key, value)) = pair.transpose()? else { return Ok(ContainerPage { containers, next: None, now }) };
        let Some(found) = decode(now, request, of_deleted, &key, &value)? else { continue };
        if containers.len() == request.limit {
            let mut next = key.get(account.len()..).unwrap_or_default().to_vec();
            if !of_deleted {
                // Behind all deleted ones of the name.
                next.extend(LAST_INSTANT);
            }
            return Ok(ContainerPage { containers, next: Some(Marker(next)), now });
        }
        containers.push(found);
    }
}

/// `start` without what follows the name: the containers that were not deleted come last of their name.
fn first_field_end(account: &[u8], start: &[u8]) -> Vec<u8> {
    let name = start.get(account.len()..).unwrap_or_default();
    let end = name.windows(2).position(|pair| pair == [0, 1]).map_or(start.len(), |end| account.len() + end + 2);
    start.get(..end).unwrap_or_default().to_vec()
}

/// Whether the next deleted container comes before the next one that is not.
fn earlier(deleted: &mut Peekable<Pairs<'_>>, live: &mut Peekable<Pairs<'_>>) -> Result<bool, StoreError> {
    let error = |pair: Option<&Result<Pair, StoreError>>| pair.and_then(|pair| pair.as_ref().err().cloned());
    if let Some(error) = error(deleted.peek()).or(error(live.peek())) {
        return Err(error);
    }
    Ok(match (deleted.peek(), live.peek()) {
        (Some(Ok((deleted, _))), Some(Ok((live, _)))) => {
            deleted.get(..deleted.len().saturating_sub(8)) <= Some(&live[..])
        }
        (deleted, _) => deleted.is_some(),
    })
}

/// The container of a row, unless it is not to be shown.
fn decode(
    now: Timestamp,
    request: &ListContainers,
    deleted: bool,
    key: &[u8],
    value: &[u8],
) -> Result<Option<ContainerView>, Error> {
    let (name, row, deletion) = if deleted {
        let row: DeletedContainerRow = codec::decode(Space::DeletedContainers, key, value)?;
        (row::deleted_name(key)?.0, row.container, Some(row.deletion))
    } else {
        (row::name(key)?, codec::decode(Space::Containers, key, value)?, None)
    };
    let shown = (request.system || !name.is_system()) && deletion.is_none_or(|deletion| deletion.until > now);
    Ok(shown.then(|| ContainerView::of(name, row, deletion, now)))
}
