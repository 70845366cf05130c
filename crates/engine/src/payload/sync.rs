//! The sync worker: makes uploaded bytes durable. Uploads that wait together share a sync.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::segments::Segment;
use crate::engine::Durability;
use crate::error::Error;
use crate::store::StoreError;
use crate::store::embedded::OnPoison;

type Answer = oneshot::Sender<Result<(), StoreError>>;

struct Request {
    segments: Vec<Arc<Segment>>,
    answer: Answer,
}

/// A thread that syncs segments.
#[derive(Debug)]
pub(super) struct SyncWorker {
    inbox: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl SyncWorker {
    /// Starts the thread. It syncs nothing with [`Durability::Process`]: what was written survives the process anyway.
    pub(super) fn start(durability: Durability, on_poison: OnPoison) -> Result<Self, StoreError> {
        let (inbox, requests) = channel();
        let thread = std::thread::Builder::new()
            .name("payload-sync".into())
            .spawn(move || run(&requests, durability, &on_poison))
            .map_err(|error| StoreError::Backend(format!("the sync worker's thread: {error}")))?;
        Ok(Self { inbox: Some(inbox), thread: Some(thread) })
    }

    /// Resolves once everything written to `segments` before the call is durable.
    pub(super) async fn sync(&self, segments: Vec<Arc<Segment>>) -> Result<(), Error> {
        let ended = || Error::Storage(StoreError::Poisoned("the sync worker has ended".into()));
        let (answer, answered) = oneshot::channel();
        let inbox = self.inbox.as_ref().ok_or_else(ended)?;
        inbox.send(Request { segments, answer }).map_err(|_| ended())?;
        Ok(answered.await.map_err(|_| ended())??)
    }
}

impl Drop for SyncWorker {
    fn drop(&mut self) {
        drop(self.inbox.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the sync worker died");
        }
    }
}

fn run(requests: &Receiver<Request>, durability: Durability, on_poison: &OnPoison) {
    let mut poison: Option<String> = None;
    while let Ok(first) = requests.recv() {
        let mut waiting = vec![first];
        waiting.extend(requests.try_iter());
        if poison.is_none() && durability == Durability::Sync {
            poison = sync_all(&waiting).err();
            if let Some(reason) = &poison {
                // What the kernel did with the bytes is unknown from here on.
                on_poison(reason);
            }
        }
        for request in waiting {
            let outcome = poison.as_ref().map_or(Ok(()), |reason| Err(StoreError::Poisoned(reason.clone())));
            // The upload may have been given up.
            let _ = request.answer.send(outcome);
        }
    }
}

fn sync_all(waiting: &[Request]) -> Result<(), String> {
    let segments: BTreeMap<_, _> =
        waiting.iter().flat_map(|request| &request.segments).map(|segment| (segment.id, segment)).collect();
    for segment in segments.values() {
        segment.file.sync_data().map_err(|error| format!("sync of segment {:016x}: {error}", segment.id))?;
    }
    Ok(())
}
