//! What one writer has done to one blob, what was acknowledged, and therefore what the blob may be after a crash.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails loudly")]

use crate::harness::Blob;
use crate::random::Random;
use crate::signed::{Answer, Unanswered};
use crate::witness;

/// A body up to this many bytes is kept as a row, a larger one in the payload.
pub const INLINE_BYTES_MAX: u64 = 4096;

/// What a blob is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Not there.
    Absent,
    /// There.
    Present {
        /// The version that wrote its content; the content is made of it.
        content: u64,
        /// The version that wrote its metadata.
        mark: u64,
    },
}

/// One write.
#[derive(Clone, Debug)]
pub enum Step {
    /// Put Blob.
    Put {
        /// Bytes.
        length: u64,
    },
    /// Put Block for each length; the blob does not change.
    Stage {
        /// Bytes of each block.
        lengths: Vec<u64>,
    },
    /// Put Block List of what was staged last.
    Commit,
    /// Set Blob Metadata.
    Mark,
    /// Delete Blob.
    Delete,
}

/// One blob, written by one writer alone, one step after the other.
#[derive(Debug)]
pub struct Ledger {
    blob: Blob,
    random: Random,
    /// Never the same twice, so that every content and every mark is recognised.
    version: u64,
    /// What the blob was after each step; the first is what it was before all.
    states: Vec<State>,
    /// The latest of `states` that was acknowledged. Later ones were tried and not answered.
    acknowledged: usize,
    /// Bytes of the pieces of each content that may be there, by its version.
    lengths: Vec<(u64, Vec<u64>)>,
    /// The version and the blocks whose staging was acknowledged and that nothing has used or dropped since.
    staged: Option<(u64, Vec<u64>)>,
}

impl Ledger {
    /// An empty ledger of `blob`, which does not exist.
    pub const fn new(blob: Blob, random: Random) -> Self {
        let states = Vec::new();
        Self { blob, random, version: 0, states, acknowledged: 0, lengths: Vec::new(), staged: None }
    }

    /// How many steps were tried.
    pub const fn tried(&self) -> usize {
        self.states.len()
    }

    /// Does one random step. An error: the connection broke, and nobody knows yet what became of it.
    pub async fn step(&mut self) -> Result<(), Unanswered> {
        let step = self.choose();
        self.perform(step).await
    }

    /// Does `step`, whose outcome is then known unless this fails.
    pub async fn perform(&mut self, step: Step) -> Result<(), Unanswered> {
        self.version += 1;
        let version = self.version;
        let after = self.after(&step);
        self.states.push(after);
        match step {
            Step::Put { length } => {
                self.staged = None;
                self.lengths.push((version, vec![length]));
                let content = witness::content(version, usize_of(length));
                let put = self.blob.put(content).header("x-ms-meta-mark", version.to_string());
                put.attempt().await?.expect(201);
            }
            Step::Stage { lengths } => {
                self.staged = None;
                self.stage(version, &lengths).await?;
                self.staged = Some((version, lengths));
            }
            Step::Commit => self.commit(version).await?,
            Step::Mark => {
                self.blob.set_metadata("mark", &version.to_string()).attempt().await?.expect(200);
            }
            Step::Delete => {
                self.staged = None;
                self.blob.delete().attempt().await?.expect(202);
            }
        }
        self.acknowledged = self.states.len();
        Ok(())
    }

    async fn stage(&self, version: u64, lengths: &[u64]) -> Result<(), Unanswered> {
        let content = witness::content(version, usize_of(lengths.iter().sum()));
        let mut rest = content;
        for (at, &length) in lengths.iter().enumerate() {
            let block = rest.split_to(usize_of(length));
            self.blob.put_block(&block_id(version, at), block).attempt().await?.expect(201);
        }
        Ok(())
    }

    async fn commit(&mut self, version: u64) -> Result<(), Unanswered> {
        let (content, lengths) = self.staged.take().expect("a commit follows a stage");
        let ids: Vec<_> = (0..lengths.len()).map(|at| block_id(content, at)).collect();
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        self.lengths.push((content, lengths));
        let commit = self.blob.put_block_list(&ids).header("x-ms-meta-mark", version.to_string());
        commit.attempt().await?.expect(201);
        Ok(())
    }

    /// What the blob was after `state` steps that were tried.
    fn state(&self, steps: usize) -> State {
        steps.checked_sub(1).and_then(|at| self.states.get(at)).cloned().unwrap_or(State::Absent)
    }

    /// What the blob will be after `step`, which gets the present version.
    fn after(&self, step: &Step) -> State {
        let version = self.version;
        match (step, self.state(self.states.len())) {
            (Step::Put { .. }, _) => State::Present { content: version, mark: version },
            (Step::Commit, _) => {
                let (content, _) = self.staged.as_ref().expect("a commit follows a stage");
                State::Present { content: *content, mark: version }
            }
            (Step::Mark, State::Present { content, .. }) => State::Present { content, mark: version },
            (Step::Delete, _) => State::Absent,
            (Step::Stage { .. } | Step::Mark, before) => before,
        }
    }

    fn choose(&mut self) -> Step {
        if self.staged.is_some() {
            return Step::Commit;
        }
        let absent = self.state(self.states.len()) == State::Absent;
        match self.random.below(10) {
            0..=2 => Step::Put { length: self.random.between(24, INLINE_BYTES_MAX) },
            3 | 4 => Step::Put { length: self.random.between(INLINE_BYTES_MAX + 1, 40_000) },
            5 | 6 => {
                let blocks = self.random.between(1, 3);
                Step::Stage { lengths: (0..blocks).map(|_| self.random.between(24, 20_000)).collect() }
            }
            _ if absent => Step::Put { length: self.random.between(24, 9_000) },
            7 | 8 => Step::Mark,
            _ => Step::Delete,
        }
    }

    /// Reads the blob and checks that it is as it may be when the first `acknowledged` steps were answered: whole,
    /// and as after the last of these or after the next one. Says what it is.
    pub async fn check_at(&self, blob: &Blob, acknowledged: usize) -> State {
        let found = observe(blob.get().await);
        let allowed = [self.state(acknowledged), self.state((acknowledged + 1).min(self.states.len()))];
        assert!(
            allowed.contains(&found),
            "{}: found {found:?}, acknowledged {:?}, tried {:?}",
            blob.name(),
            allowed[0],
            allowed[1],
        );
        found
    }

    /// After a restart: checks the blob and takes what is found as known. Staged blocks that were acknowledged must
    /// still be there, which the next step, a commit, will show.
    pub async fn settle(&mut self, blob: Blob) {
        let found = self.check_at(&blob, self.acknowledged).await;
        if self.acknowledged < self.states.len() {
            self.staged = None; // the step in flight may have used or dropped them
        }
        self.lengths.retain(|(version, _)| matches!(found, State::Present { content, .. } if content == *version));
        self.states = vec![found];
        self.acknowledged = 1;
        self.blob = blob;
    }

    /// Does a last step after which no uncommitted block is left.
    pub async fn close(&mut self) -> Result<(), Unanswered> {
        let staged = self.staged.is_some();
        self.perform(if staged { Step::Commit } else { Step::Put { length: 10_000 } }).await
    }

    /// Whether the blob is there after the last step.
    pub fn is_present(&self) -> bool {
        self.state(self.states.len()) != State::Absent
    }

    /// Bytes that the blob's content occupies in the payload, in units of 4 KiB. Nothing may be in flight.
    pub fn payload_bytes(&self) -> u64 {
        let State::Present { content, .. } = self.state(self.states.len()) else { return 0 };
        let pieces = self.lengths.iter().find(|(version, _)| *version == content);
        let pieces = pieces.map(|(_, pieces)| &**pieces).unwrap_or_default();
        pieces.iter().filter(|&&length| length > INLINE_BYTES_MAX).map(|length| length.next_multiple_of(4096)).sum()
    }
}

/// What an answer to Get Blob shows; panics if the content is torn.
fn observe(answer: Answer) -> State {
    if answer.status == 404 {
        return State::Absent;
    }
    let answer = answer.expect(200);
    let content = witness::seed_of(&answer.body).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mark = answer.header("x-ms-meta-mark").parse().expect("every blob has a mark");
    State::Present { content, mark }
}

/// All ids of a blob have one length.
fn block_id(version: u64, at: usize) -> String {
    format!("{version:012}-{at:03}")
}

fn usize_of(length: u64) -> usize {
    usize::try_from(length).expect("test contents are small")
}
