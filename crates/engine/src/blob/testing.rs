//! What the tests of several kinds of blobs share.

use crate::blob::removal::{self, Snapshots};
use crate::blob::{OnBlob, container, object, state};
use crate::engine::Engine;
use crate::error::Error;
use crate::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};
use crate::payload::Staged;
use crate::range::RangeRequest;
use crate::refusal::Refusal;
use crate::rows;
use crate::store::{Purpose, Space};

pub(super) fn on(blob: &str) -> OnBlob {
    let container = ContainerAddress {
        account: AccountName::parse("dev").unwrap(),
        container: ContainerName::parse("photos").unwrap(),
    };
    OnBlob::at(BlobAddress { container, blob: BlobName::parse(blob).unwrap() })
}

/// Creates the container that [`on`] points into.
pub(super) async fn create_container(engine: &Engine) {
    let address = on("x").address.container;
    container::create(engine, address, container::NewContainer::default()).await.unwrap();
}

pub(super) async fn staged(engine: &Engine, bytes: Vec<u8>) -> Staged {
    let mut stage = engine.payloads().stage(false, None);
    stage.write(bytes.into()).await.unwrap();
    stage.finish().await.unwrap()
}

/// Makes `to` what `from` is, sharing its content: what a snapshot and a copy do.
pub(super) async fn fork(engine: &Engine, from: &str, to: &str) {
    let (from, to) = (on(from), on(to));
    let forked = engine.write(Purpose::Grow, move |tx| {
        let row = state::place(tx, &from)?.blob.ok_or(Refusal::BlobNotFound)?;
        let place = state::place(tx, &to)?;
        state::retain_content(tx, row.content)?;
        if let Some(old) = place.blob {
            state::release_content(tx, old.content)?;
        }
        Ok(rows::put(tx, Space::Blobs, place.key, &row)?)
    });
    forked.await.unwrap();
}

pub(super) async fn delete(engine: &Engine, blob: &str) {
    removal::delete(engine, on(blob), Snapshots::Refuse).await.unwrap();
}

pub(super) async fn read(engine: &Engine, blob: &str, range: Option<(u64, u64)>) -> Result<Vec<u8>, Error> {
    let range = range.map(|(first, last)| RangeRequest { first, last: Some(last) });
    let mut download = object::download(engine, on(blob), range).await?;
    let mut bytes = Vec::new();
    while let Some(part) = download.reader.next().await? {
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

pub(super) fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> Refusal {
    match answer {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}
