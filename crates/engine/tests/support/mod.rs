//! What the engine's tests share: an engine in memory with a held clock, and requests in one line.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test ends where it fails")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::blob::blocks::{self, BlockId, BlockSource};
use lazuli_engine::blob::object::{self, BlobView};
use lazuli_engine::blob::removal::{self, Deleted, Snapshots};
use lazuli_engine::blob::{OnBlob, OnContainer, Stored, Written, container};
use lazuli_engine::clock::{HeldClock, Timestamp};
use lazuli_engine::condition::{Conditions, EtagSet};
use lazuli_engine::lease::LeaseId;
use lazuli_engine::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};
use lazuli_engine::payload::Staged;
use lazuli_engine::range::RangeRequest;
use lazuli_engine::{Engine, Error, Refusal};

pub fn clock() -> Arc<HeldClock> {
    Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400)))
}

/// An engine in memory, with one container `photos`.
pub async fn engine() -> (Engine, Arc<HeldClock>) {
    let clock = clock();
    let engine = Engine::memory(clock.clone()).await.unwrap();
    create(&engine, "photos").await.unwrap();
    (engine, clock)
}

/// A private container with nothing stored beside it.
pub async fn create(engine: &Engine, name: &str) -> Result<Written, Error> {
    container::create(engine, at(name), container::NewContainer::default()).await
}

pub fn at(container: &str) -> ContainerAddress {
    ContainerAddress {
        account: AccountName::parse("dev").unwrap(),
        container: ContainerName::parse(container).unwrap(),
    }
}

pub fn on(blob: &str) -> OnBlob {
    OnBlob::at(BlobAddress { container: at("photos"), blob: BlobName::parse(blob).unwrap() })
}

pub fn on_container(container: &str) -> OnContainer {
    OnContainer { address: at(container), conditions: Conditions::default(), lease: None }
}

pub fn if_match(mut on: OnBlob, written: Written) -> OnBlob {
    on.conditions.if_match = Some(EtagSet::OneOf(vec![written.etag.to_string()]));
    on
}

pub fn if_absent(mut on: OnBlob) -> OnBlob {
    on.conditions.if_none_match = Some(EtagSet::Any);
    on
}

pub fn with_lease(mut on: OnBlob, lease: LeaseId) -> OnBlob {
    on.lease = Some(lease);
    on
}

pub fn lease_id(number: u128) -> LeaseId {
    LeaseId(uuid::Uuid::from_u128(number))
}

pub async fn staged(engine: &Engine, bytes: impl Into<Bytes>) -> Staged {
    let mut stage = engine.payloads().stage(false, None);
    stage.write(bytes.into()).await.unwrap();
    stage.finish().await.unwrap()
}

pub async fn put(engine: &Engine, on: OnBlob, bytes: impl Into<Bytes>) -> Result<Written, Error> {
    let content = staged(engine, bytes).await;
    object::put(engine, on, Stored::default(), content).await
}

pub async fn delete(engine: &Engine, on: OnBlob) -> Result<Deleted, Error> {
    removal::delete(engine, on, Snapshots::Refuse).await
}

pub async fn put_block(engine: &Engine, on: OnBlob, id: &str, bytes: impl Into<Bytes>) -> Result<(), Error> {
    let content = staged(engine, bytes).await;
    blocks::put_block(engine, on, block(id), content).await
}

pub fn block(id: &str) -> BlockId {
    BlockId(id.as_bytes().to_vec())
}

pub async fn commit(engine: &Engine, on: OnBlob, list: &[(BlockSource, &str)]) -> Result<Written, Error> {
    let list = list.iter().map(|(source, id)| (*source, block(id))).collect();
    blocks::put_block_list(engine, on, list, Stored::default()).await
}

pub async fn read(engine: &Engine, on: OnBlob) -> Result<Vec<u8>, Error> {
    read_range(engine, on, None).await
}

pub async fn read_range(engine: &Engine, on: OnBlob, range: Option<(u64, u64)>) -> Result<Vec<u8>, Error> {
    let range = range.map(|(first, last)| RangeRequest { first, last: Some(last) });
    let mut download = object::download(engine, on, range).await?;
    let mut bytes = Vec::new();
    while let Some(part) = download.reader.next().await? {
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

pub async fn view(engine: &Engine, blob: &str) -> BlobView {
    object::get(engine, on(blob)).await.unwrap()
}

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> Refusal {
    match answer {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Bytes that are not all alike.
pub fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8 ^ (index / 251 % 256) as u8 ^ seed).collect()
}
