//! Queues themselves. <https://learn.microsoft.com/rest/api/storageservices/operations-on-queues>

use std::ops::Bound;

use crate::access::AccessPolicy;
use crate::blob::Marker;
use crate::engine::Engine;
use crate::error::Error;
use crate::names::{AccountName, QueueAddress, QueueName};
use crate::payload::refs::{self, Target};
use crate::properties::Metadata;
use crate::queue::state;
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::codec;
use crate::rows::queue::{self as row, QueueRow};
use crate::store::{Direction, KeyRange, Purpose, Space, View};

/// A queue as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// How many messages it holds, visible or not; where very many have just expired, some of those among them.
    pub messages: u64,
    /// Stored access policies.
    pub policies: Vec<AccessPolicy>,
    /// Its metadata.
    pub metadata: Metadata,
}

/// What creating a queue came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It did not exist.
    New,
    /// It exists with the same metadata: nothing was changed.
    Same,
}

/// Create Queue: <https://learn.microsoft.com/rest/api/storageservices/create-queue4>
///
/// Refuses `QueueExists` if it exists with other metadata.
pub async fn create(engine: &Engine, address: QueueAddress, metadata: Metadata) -> Result<Created, Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let key = row::key(&address);
            match rows::get::<QueueRow>(tx, Space::Queues, &key)? {
                Some(queue) if same(&queue.metadata, &metadata) => Ok(Created::Same),
                Some(_) => Err(Refusal::QueueExists.into()),
                None => {
                    let queue = QueueRow { incarnation: tx.id(), policies: Vec::new(), metadata: metadata.clone() };
                    rows::put(tx, Space::Queues, key, &queue)?;
                    Ok(Created::New)
                }
            }
        })
        .await
}

/// Whether both say the same, in whatever order and letter case of the names.
fn same(one: &Metadata, other: &Metadata) -> bool {
    let sorted = |metadata: &Metadata| {
        let mut pairs: Vec<_> = metadata.0.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        pairs.sort_unstable();
        pairs
    };
    sorted(one) == sorted(other)
}

/// Get Queue Metadata and ACL in one.
///
/// Refuses `QueueNotFound`.
pub async fn get(engine: &Engine, address: QueueAddress) -> Result<QueueView, Error> {
    engine.read(|view| {
        let QueueRow { incarnation, policies, metadata } = state::queue(view, &address)?;
        Ok(QueueView { messages: state::counted(view, incarnation)?, policies, metadata })
    })
}

/// Set Queue Metadata: replaces all of it. <https://learn.microsoft.com/rest/api/storageservices/set-queue-metadata>
///
/// Refuses `QueueNotFound`.
pub async fn set_metadata(engine: &Engine, address: QueueAddress, metadata: Metadata) -> Result<(), Error> {
    change(engine, address, move |queue| queue.metadata = metadata.clone()).await
}

/// Set Queue ACL: replaces the policies. <https://learn.microsoft.com/rest/api/storageservices/set-queue-acl>
///
/// Refuses `QueueNotFound`.
pub async fn set_policies(engine: &Engine, address: QueueAddress, policies: Vec<AccessPolicy>) -> Result<(), Error> {
    change(engine, address, move |queue| queue.policies = policies.clone()).await
}

async fn change(
    engine: &Engine,
    address: QueueAddress,
    edit: impl Fn(&mut QueueRow) + Send + 'static,
) -> Result<(), Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let mut queue = state::queue(tx, &address)?;
            edit(&mut queue);
            Ok(rows::put(tx, Space::Queues, row::key(&address), &queue)?)
        })
        .await
}

/// Delete Queue: <https://learn.microsoft.com/rest/api/storageservices/delete-queue3>
///
/// Takes the same time however many messages it holds, and the name is free at once: they are erased in the background.
/// Refuses `QueueNotFound`.
pub async fn delete(engine: &Engine, address: QueueAddress) -> Result<(), Error> {
    engine
        .write(Purpose::Free, move |tx| {
            let queue = state::queue(tx, &address)?;
            tx.delete(Space::Queues, &row::key(&address))?;
            Ok(refs::release(tx, Target::queue(queue.incarnation))?)
        })
        .await?;
    engine.wake();
    Ok(())
}

/// What List Queues asks for.
#[derive(Clone, Debug)]
pub struct ListQueues {
    /// The account.
    pub account: AccountName,
    /// Only names that begin so.
    pub prefix: String,
    /// Where to go on.
    pub start: Option<Marker>,
    /// Most queues to answer, at least 1.
    pub limit: usize,
}

/// One page of queues, in byte order of their names, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePage {
    /// The queues and their metadata.
    pub queues: Vec<(QueueName, Metadata)>,
    /// Where the next page begins, if there is one.
    pub next: Option<Marker>,
}

/// List Queues: <https://learn.microsoft.com/rest/api/storageservices/list-queues1>
pub async fn list(engine: &Engine, request: ListQueues) -> Result<QueuePage, Error> {
    engine.scan(move |view| page(view, &request)).await
}

fn page(view: &dyn View, request: &ListQueues) -> Result<QueuePage, Error> {
    let whole = row::prefix(&request.account, request.prefix.as_bytes());
    let mut range = KeyRange::prefix(&whole);
    if let Some(Marker(start)) = &request.start {
        let start = row::prefix(&request.account, start);
        if start > whole {
            range = range.starting(Bound::Included(start));
        }
    }
    let mut queues = Vec::new();
    for pair in view.scan(Space::Queues, range, Direction::Forward) {
        let (key, value) = pair?;
        let name = row::name(&key)?;
        if queues.len() == request.limit {
            return Ok(QueuePage { queues, next: Some(Marker(name.as_str().into())) });
        }
        queues.push((name, codec::decode::<QueueRow>(Space::Queues, &key, &value)?.metadata));
    }
    Ok(QueuePage { queues, next: None })
}
