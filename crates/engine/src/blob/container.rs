//! Containers. <https://learn.microsoft.com/rest/api/storageservices/operations-on-containers>

use std::ops::Bound;

use crate::access::{AccessControl, PublicAccess};
use crate::blob::{LeaseAnswer, LeaseView, Marker, OnContainer, Written, state};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::etag::Etag;
use crate::lease::{LeaseAction, Leased};
use crate::names::{AccountName, ContainerAddress, ContainerName};
use crate::payload::refs::{self, Target};
use crate::properties::Metadata;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::codec;
use crate::rows::container::{self as row, ContainerRow};
use crate::store::{Direction, KeyRange, Purpose, Space, StoreError, Tx, View};

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
}

impl ContainerView {
    fn of(name: ContainerName, row: ContainerRow, now: Timestamp) -> Self {
        let lease = LeaseView::of(&row.lease, now);
        Self { name, etag: row.etag, lease, access: row.access, metadata: row.metadata }
    }
}

/// Create Container: <https://learn.microsoft.com/rest/api/storageservices/create-container>
///
/// Refuses `ContainerExists`.
pub async fn create(
    engine: &Engine,
    address: ContainerAddress,
    metadata: Metadata,
    public: PublicAccess,
) -> Result<Written, Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let key = row::key(&address);
            if tx.get(Space::Containers, &key)?.is_some() {
                return Err(Refusal::ContainerExists.into());
            }
            Ok(insert(tx, key, metadata.clone(), public)?)
        })
        .await
}

/// Creates the container, private, unless there is one.
pub(crate) fn ensure(tx: &mut dyn Tx, address: &ContainerAddress) -> Result<(), StoreError> {
    let key = row::key(address);
    if tx.get(Space::Containers, &key)?.is_none() {
        insert(tx, key, Metadata::default(), PublicAccess::Private)?;
    }
    Ok(())
}

fn insert(tx: &mut dyn Tx, key: Vec<u8>, metadata: Metadata, public: PublicAccess) -> Result<Written, StoreError> {
    let container = ContainerRow {
        incarnation: tx.id(),
        etag: Etag::at(tx.now()),
        lease: crate::lease::Lease::Available,
        access: AccessControl { public, policies: Vec::new() },
        metadata,
    };
    rows::put(tx, Space::Containers, key, &container)?;
    Ok(Written { etag: container.etag })
}

/// Get Container Properties, Metadata and ACL in one.
///
/// Refuses `ContainerNotFound`, and the lease refusals if a lease is named that is not held. Conditions are not used.
pub async fn get(engine: &Engine, on: OnContainer) -> Result<ContainerView, Error> {
    engine.read(|view| {
        let container = state::container(view, &on.address)?;
        container.lease.guard_read(view.now(), on.lease, Leased::Container)?;
        Ok(ContainerView::of(on.address.container.clone(), container, view.now()))
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
            Ok(Written { etag: container.etag })
        })
        .await
}

/// Delete Container. Takes the same time whatever lies in it; the name is free at once.
///
/// Refuses `ContainerNotFound`, `ConditionFailed` and the lease refusals.
pub async fn delete(engine: &Engine, on: OnContainer) -> Result<(), Error> {
    engine
        .write(Purpose::Free, move |tx| {
            let container = state::container(tx, &on.address)?;
            on.conditions.judge_write(container.etag)?;
            container.lease.guard_write(tx.now(), on.lease, Leased::Container)?;
            tx.delete(Space::Containers, &row::key(&on.address))?;
            Ok(refs::release(tx, Target::container(container.incarnation))?)
        })
        .await?;
    engine.wake();
    Ok(())
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
    /// Whether those of the system are listed as well.
    pub system: bool,
    /// Where to go on.
    pub start: Option<Marker>,
    /// Most containers to answer, at least 1.
    pub limit: usize,
}

/// One page of containers, in byte order of their names, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerPage {
    /// The containers.
    pub containers: Vec<ContainerView>,
    /// Where the next page begins, if there is one.
    pub next: Option<Marker>,
}

/// List Containers: <https://learn.microsoft.com/rest/api/storageservices/list-containers2>
pub async fn list(engine: &Engine, request: ListContainers) -> Result<ContainerPage, Error> {
    engine.scan(move |view| page(view, &request)).await
}

fn page(view: &dyn View, request: &ListContainers) -> Result<ContainerPage, Error> {
    let whole = row::prefix(&request.account, request.prefix.as_bytes());
    let mut range = KeyRange::prefix(&whole);
    if let Some(Marker(start)) = &request.start {
        let start = row::prefix(&request.account, start);
        if start > whole {
            range = range.starting(Bound::Included(start));
        }
    }
    let mut containers = Vec::new();
    for pair in view.scan(Space::Containers, range, Direction::Forward) {
        let (key, value) = pair?;
        let name = row::name(&key)?;
        if !request.system && name.is_system() {
            continue;
        }
        if containers.len() == request.limit {
            return Ok(ContainerPage { containers, next: Some(Marker(name.as_str().into())) });
        }
        let container = codec::decode(Space::Containers, &key, &value)?;
        containers.push(ContainerView::of(name, container, view.now()));
    }
    Ok(ContainerPage { containers, next: None })
}
