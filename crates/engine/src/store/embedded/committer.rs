//! The one thread that writes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::meta::{self, StateRow};
use super::transaction::Transaction;
use super::{EmbeddedOptions, Shared};
use crate::clock::Timestamp;
use crate::store::kv::{Kv, Writes};
use crate::store::{Purpose, Space, StoreError, TxBody, Verdict};

/// Bytes after which a group takes no more jobs: readers wait while a group is applied.
const GROUP_BYTES: usize = 1024 * 1024;

/// How long a group waits for the jobs that it expects: a small part of what it costs, and of a sync.
const GATHER_MAX: Duration = Duration::from_micros(600);
/// How long it lets the processor go meanwhile; to wake up for every job would cost what is to be saved.
const GATHER_STEP: Duration = Duration::from_micros(100);

/// A transaction that waits for its turn.
pub(super) struct Job {
    pub(super) purpose: Purpose,
    pub(super) body: TxBody,
    pub(super) answer: oneshot::Sender<Result<Verdict, StoreError>>,
}

type Answers = Vec<(oneshot::Sender<Result<Verdict, StoreError>>, Result<Verdict, StoreError>)>;

/// The committer's own state.
pub(super) struct Committer<K> {
    shared: Arc<Shared<K>>,
    options: EmbeddedOptions,
    /// As it is on disk.
    state: StateRow,
    last_id: u64,
    /// Jobs of the last group.
    expected: usize,
    /// Why nothing can be written any more.
    poison: Option<String>,
}

/// Jobs that share a sync.
struct Group {
    writes: Writes,
    bytes: usize,
    time: Timestamp,
    answers: Answers,
}

impl<K: Kv> Committer<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, options: EmbeddedOptions, state: StateRow, last_id: u64) -> Self {
        Self { shared, options, state, last_id, expected: 1, poison: None }
    }

    /// Commits groups until nobody can send any more: whoever waits already shares the sync.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut group =
                Group { writes: Writes::default(), bytes: 0, time: self.state.time, answers: Answers::new() };
            let free = self.shared.kv.free_bytes();
            self.execute(first, &free, &mut group);
            let begun = Instant::now();
            while group.answers.len() < self.options.group_jobs_max
                && group.bytes < GROUP_BYTES
                && let Some(job) = self.next(jobs, group.answers.len(), begun)
            {
                self.execute(job, &free, &mut group);
            }
            self.expected = group.answers.len();
            self.commit(group);
        }
    }

    /// The next job of a group that has `size` jobs and began at `begun`, if there is one. Whoever was answered with the
    /// last group is likely to send another job at once: a disk that syncs fast would else make a group, with all its
    /// costs, of every job or two.
    fn next(&self, jobs: &Receiver<Job>, size: usize, begun: Instant) -> Option<Job> {
        loop {
            if let Ok(job) = jobs.try_recv() {
                return Some(job);
            }
            if size >= self.expected || begun.elapsed() >= GATHER_MAX {
                return None;
            }
            std::thread::park_timeout(GATHER_STEP);
        }
    }

    /// Runs one job on the latest state plus what the group wrote so far.
    fn execute(&mut self, job: Job, free: &Result<Option<u64>, StoreError>, group: &mut Group) {
        let outcome = match self.admit(job.purpose, free) {
            Ok(()) => self.run_body(&job.body, group),
            Err(error) => Err(error),
        };
        group.answers.push((job.answer, outcome));
    }

    fn admit(&self, purpose: Purpose, free: &Result<Option<u64>, StoreError>) -> Result<(), StoreError> {
        if let Some(reason) = &self.poison {
            return Err(StoreError::Poisoned(reason.clone()));
        }
        let needed = match purpose {
            Purpose::Grow => self.options.reserve_bytes,
            Purpose::Free => self.options.reserve_bytes / 4,
        };
        match free {
            Ok(Some(free)) if *free < needed => Err(StoreError::Full),
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        }
    }

    fn run_body(&mut self, body: &TxBody, group: &mut Group) -> Result<Verdict, StoreError> {
        let now = self.options.clock.now().max(Timestamp::from_ticks(group.time.ticks() + 1));
        let mut tx = Transaction {
            kv: &self.shared.kv,
            group: &group.writes,
            own: Writes::default(),
            now,
            seq: self.state.group + 1,
            last_id: &mut self.last_id,
            keys: 0,
            bytes: 0,
            refused: None,
        };
        let verdict = catch_unwind(AssertUnwindSafe(|| body(&mut tx)))
            .unwrap_or_else(|panic| Err(panicked("a transaction", &*panic)))?;
        if let Some(error) = tx.refused {
            return Err(error);
        }
        if verdict == Verdict::Commit && !tx.own.is_empty() {
            let (own, bytes) = (tx.own, tx.bytes);
            group.bytes += bytes;
            group.writes.absorb(own);
            group.time = now;
        }
        Ok(verdict)
    }

    /// Makes the group durable, then visible, then answers it.
    fn commit(&mut self, mut group: Group) {
        // Nobody may be told of an id that a restart would give again.
        let ids_are_used_up = self.last_id > self.state.id;
        if self.poison.is_none() && (!group.writes.is_empty() || ids_are_used_up) {
            let next = StateRow { group: self.state.group + 1, time: group.time, id: meta::reserve_ids(self.last_id) };
            // A kv that panics half-way leaves as much unknown as one that fails.
            let written = catch_unwind(AssertUnwindSafe(|| self.write(&next, &mut group.writes)))
                .unwrap_or_else(|panic| Err(panicked("the storage engine", &*panic)));
            if let Err(error) = written {
                let reason = error.to_string();
                tracing::error!(%reason, "a commit failed; no more writes until a restart");
                for (_, outcome) in &mut group.answers {
                    *outcome = Err(StoreError::Poisoned(reason.clone()));
                }
                (self.options.on_poison)(&reason);
                self.poison = Some(reason);
            } else {
                self.state = next;
                let mut published = self.shared.published.lock();
                published.group = next.group;
                published.time = next.time;
            }
        }
        for (answer, outcome) in group.answers {
            // Nobody may be waiting any more.
            let _ = answer.send(outcome);
        }
    }

    fn write(&self, next: &StateRow, writes: &mut Writes) -> Result<(), StoreError> {
        let images = self.pre_images(writes)?;
        {
            let oldest = self.shared.published.lock().oldest();
            let mut overlay = self.shared.overlay.write();
            overlay.forget(oldest, self.options.overlay_bytes_max);
            for (space, key, value) in images {
                overlay.keep(space, &key, next.group, value);
            }
        }
        meta::write(next, writes)?;
        self.shared.runs.forget(writes);
        let applied = self.shared.kv.apply(writes);
        // Once more: of what was read meanwhile nobody knows whether it was before or after.
        self.shared.runs.forget(writes);
        applied?;
        self.shared.kv.sync()
    }

    /// The present value of every key that the group writes. Also warms the pages before the kv locks them.
    fn pre_images(&self, writes: &Writes) -> Result<Vec<(Space, Bytes, Option<Bytes>)>, StoreError> {
        let mut images = Vec::new();
        for (space, writes) in writes.spaces() {
            for key in writes.keys() {
                images.push((space, key.clone(), self.shared.kv.get(space, key)?));
            }
        }
        Ok(images)
    }
}

fn panicked(what: &str, panic: &(dyn Any + Send)) -> StoreError {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    StoreError::Backend(format!("{what} panicked: {}", message.unwrap_or("no message")))
}
