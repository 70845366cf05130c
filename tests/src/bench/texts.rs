//! Where the largest texts of messages lie: as rows, against the same bytes as bodies in segments.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{BoxFuture, try_join_all};
use lazuli_engine::Engine;
use lazuli_engine::blob::removal::{self, Snapshots};
use lazuli_engine::blob::{Stored, object};
use lazuli_engine::names::QueueAddress;
use lazuli_engine::queue::{NewMessage, OnMessage, messages};

use crate::bench::load::{Contender, Slice};
use crate::bench::{KIB, commit};
use crate::client::Failure;

/// Writers, each with one text at a time.
const WRITERS: usize = 32;
/// The largest text of a message.
const TEXT_BYTES: usize = 64 * KIB;

/// Writes, reads and deletes texts: messages of `queue`, or blobs if there is none.
pub(super) struct Texts {
    pub(super) engine: Engine,
    pub(super) queue: Option<QueueAddress>,
}

impl Contender for Texts {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        Box::pin(async move {
            let end = Instant::now() + length;
            let tasks = (0..WRITERS).map(|number| {
                let (engine, queue) = (self.engine.clone(), self.queue.clone());
                tokio::spawn(async move {
                    let (mut slice, begin) = (Slice::empty()?, Instant::now());
                    let mut before = begin;
                    while before < end {
                        match &queue {
                            Some(queue) => message(&engine, queue).await?,
                            None => blob(&engine, &format!("text-{number}")).await?,
                        }
                        let now = Instant::now();
                        slice.note(now - before);
                        before = now;
                    }
                    slice.elapsed = before - begin;
                    Ok::<_, Failure>(slice)
                })
            });
            let mut all = Slice::empty()?;
            for outcome in try_join_all(tasks.collect::<Vec<_>>()).await? {
                all.beside(&outcome?)?;
            }
            Ok(all)
        })
    }
}

async fn message(engine: &Engine, queue: &QueueAddress) -> Result<(), Failure> {
    let new = NewMessage { text: "x".repeat(TEXT_BYTES), invisible: Duration::ZERO, lifetime: None };
    messages::put(engine, queue.clone(), new).await?;
    let hour = Duration::from_secs(3600);
    let taken = messages::take(engine, queue.clone(), 1, hour).await?.pop().ok_or("a message was put")?;
    let on = OnMessage { queue: queue.clone(), id: Some(taken.message.id), receipt: taken.held.receipt };
    Ok(messages::delete(engine, on).await?)
}

async fn blob(engine: &Engine, name: &str) -> Result<(), Failure> {
    let mut stage = engine.payloads().stage(false, Some(TEXT_BYTES as u64));
    stage.write(Bytes::from(vec![b'x'; TEXT_BYTES])).await?;
    object::put(engine, commit::on(name)?, Stored::default(), stage.finish().await?).await?;
    let mut download = object::download(engine, commit::on(name)?, None).await?;
    while download.reader.next().await?.is_some() {}
    removal::delete(engine, commit::on(name)?, Snapshots::Refuse).await?;
    Ok(())
}
