//! What producers and consumers of one queue know of its messages, over any number of crashes: every put that was
//! answered must be found, a message belongs to one holder at a time, and only the last of them removes it.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::queues::{Message, Queue};
use crate::random::Random;
use crate::signed::Unanswered;

/// How long a consumer holds a message.
const HOLD: Duration = Duration::from_secs(2);

/// The books of one queue, which all its producers and consumers keep. Messages are told by the number in their text.
#[derive(Clone, Debug, Default)]
pub struct Books(Arc<Mutex<BTreeMap<u64, Entry>>>);

/// What is known of one message.
#[derive(Debug, Default)]
struct Entry {
    /// Whether its put was answered: then it must not be lost.
    put: bool,
    /// Its dequeue counts as they were seen.
    counts: BTreeSet<u64>,
    /// Before that nobody else can have it.
    free_from: Option<Instant>,
    /// The dequeue count under which a delete was answered with success, and when.
    removed: Option<(u64, Instant)>,
    /// Whether a delete was sent and not answered: nobody knows whether it is there.
    in_doubt: bool,
}

/// A message in the hands of a consumer.
#[derive(Clone, Debug)]
struct Hold {
    number: u64,
    count: u64,
    id: String,
    receipt: String,
    /// When it was asked for, or last updated.
    since: Instant,
}

impl Books {
    /// Puts messages until the connection breaks. The texts are of all sizes.
    pub async fn produce(self, queue: Queue, mut numbers: impl Iterator<Item = u64>, mut random: Random) {
        loop {
            let number = numbers.next().expect("numbers do not end");
            let length = if random.below(8) == 0 { random.between(15_000, 60_000) } else { random.between(0, 2000) };
            let text = format!("{number} {}", "x".repeat(usize::try_from(length).expect("short")));
            self.0.lock().insert(number, Entry::default());
            let Ok(answer) = queue.put(&text, "").attempt().await else { return };
            answer.expect(201);
            self.entry(number, |entry| entry.put = true);
        }
    }

    /// Takes messages until the connection breaks, and does with them what consumers do: most are deleted, some held
    /// longer, some given back, some forgotten.
    pub async fn consume(self, queue: Queue, mut random: Random) {
        while let Ok(holds) = self.take(&queue).await {
            for mut hold in holds {
                let done = match random.below(10) {
                    0 => Ok(()),
                    1 => self.update(&queue, &mut hold, Duration::ZERO).await,
                    2 | 3 => match self.update(&queue, &mut hold, HOLD).await {
                        Ok(()) => self.remove(&queue, &hold).await,
                        broken => broken,
                    },
                    _ => self.remove(&queue, &hold).await,
                };
                if done.is_err() {
                    return;
                }
            }
        }
    }

    /// Deletes what is left, until the queue says that it is empty.
    pub async fn drain(&self, queue: &Queue) -> Result<(), Unanswered> {
        loop {
            let holds = self.take(queue).await?;
            if holds.is_empty() {
                let shown = queue.metadata().attempt().await?.expect(200);
                if shown.header("x-ms-approximate-messages-count") == "0" {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(50)).await; // until what somebody held is visible again
            }
            for hold in holds {
                self.remove(queue, &hold).await?;
            }
        }
    }

    async fn take(&self, queue: &Queue) -> Result<Vec<Hold>, Unanswered> {
        let since = Instant::now();
        let query = format!("?numofmessages=4&visibilitytimeout={}", HOLD.as_secs());
        let answer = queue.get(&query).attempt().await?.expect(200);
        let answered = Instant::now();
        let messages = Message::all(&answer.text());
        Ok(messages.into_iter().map(|message| self.taken(message, since, answered)).collect())
    }

    /// Enters a message that was handed out between `since` and `answered`.
    fn taken(&self, message: Message, since: Instant, answered: Instant) -> Hold {
        let Message { id, receipt, dequeues, text, .. } = message;
        let (number, rest) = text.split_once(' ').expect("every text begins with its number");
        assert!(rest.bytes().all(|byte| byte == b'x'), "a torn text: {rest:.40}");
        let (number, count) = (number.parse().expect("a number"), dequeues.parse().expect("a count"));
        self.entry(number, |entry| {
            assert!(entry.counts.insert(count), "message {number} was handed out twice as the {count}th time");
            if let Some((_, when)) = entry.removed {
                assert!(since <= when, "message {number} was handed out after it was deleted");
            }
            // Answers may overtake each other; the count tells which hand-out was the later one.
            if entry.counts.last() == Some(&count) {
                let free = entry.free_from.is_none_or(|free_from| answered >= free_from);
                assert!(free, "message {number} was handed out while somebody held it");
                entry.free_from = Some(since + HOLD);
            }
        });
        Hold { number, count, id, receipt, since }
    }

    /// Update Message: holds the message `time` longer from now on.
    async fn update(&self, queue: &Queue, hold: &mut Hold, time: Duration) -> Result<(), Unanswered> {
        let sent = Instant::now();
        let seconds = u32::try_from(time.as_secs()).expect("seconds");
        let request = queue.update(&hold.id, &hold.receipt, seconds, None);
        // Whatever comes of it, from now on it can be visible that early.
        self.entry(hold.number, |entry| entry.free_from = entry.free_from.min(Some(sent + time)));
        let answer = request.attempt().await?;
        if answer.status == 204 {
            hold.receipt = answer.header("x-ms-popreceipt").to_owned();
            hold.since = sent;
            self.entry(hold.number, |entry| {
                if entry.counts.last() == Some(&hold.count) {
                    entry.free_from = Some(sent + time);
                }
            });
            return Ok(());
        }
        self.lost(hold, &answer)
    }

    async fn remove(&self, queue: &Queue, hold: &Hold) -> Result<(), Unanswered> {
        self.entry(hold.number, |entry| entry.in_doubt = true);
        let answer = queue.remove(&hold.id, &hold.receipt).attempt().await?;
        if answer.status != 204 {
            return self.lost(hold, &answer);
        }
        self.entry(hold.number, |entry| {
            let before = entry.removed.replace((hold.count, Instant::now()));
            assert_eq!(before, None, "message {} was deleted twice", hold.number);
        });
        Ok(())
    }

    /// A refusal: somebody else has the message, which needs its time to be up, or has deleted it.
    #[expect(clippy::unnecessary_wraps, reason = "stands at the end of requests that may break")]
    fn lost(&self, hold: &Hold, answer: &crate::signed::Answer) -> Result<(), Unanswered> {
        match (answer.status.as_u16(), answer.code()) {
            (400, "PopReceiptMismatch") => {
                assert!(hold.since.elapsed() >= HOLD, "message {} was taken from its holder", hold.number);
            }
            (404, "MessageNotFound") => self.entry(hold.number, |entry| {
                let deleted = entry.removed.is_some() || entry.in_doubt;
                assert!(deleted && hold.since.elapsed() >= HOLD, "message {} has gone", hold.number);
            }),
            other => assert_eq!(other, (204, ""), "{}", answer.text()),
        }
        Ok(())
    }

    fn entry(&self, number: u64, change: impl FnOnce(&mut Entry)) {
        change(self.0.lock().get_mut(&number).expect("only messages that were put are handed out"));
    }

    /// Checks the books of an empty queue; answers how many messages went through it.
    pub fn close(&self) -> usize {
        let books = self.0.lock();
        for (number, entry) in books.iter() {
            if let Some((count, _)) = entry.removed {
                assert_eq!(entry.counts.last(), Some(&count), "message {number} was not deleted by its last holder");
            } else {
                assert!(!entry.put || entry.in_doubt, "message {number} was lost");
            }
        }
        books.values().filter(|entry| entry.removed.is_some()).count()
    }
}
