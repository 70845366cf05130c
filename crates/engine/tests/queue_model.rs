//! Queues against a plain model: random steps from few messages, with every receipt that was ever given, a moving clock
//! and restarts. After every step the answers agree, after every restart and at the end everything stored does.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends where it fails; its numbers are small"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lazuli_engine::clock::{Clock, HeldClock, Timestamp};
use lazuli_engine::names::{AccountName, QueueAddress, QueueName};
use lazuli_engine::properties::Metadata;
use lazuli_engine::queue::queues::{self, Created};
use lazuli_engine::queue::{Held, MessageId, MessageView, NEVER, NewMessage, OnMessage, Receipt, messages};
use lazuli_engine::{Durability, Engine, Error, Options, Refusal};
use proptest::prelude::*;

type Name = &'static str;

const QUEUES: [Name; 2] = ["one", "two"];
/// Around the bounds between a message's row and the rows of a longer text.
const LENGTHS: [usize; 6] = [0, 5, 15_360, 15_361, 31_745, 65_536];
/// What passes before every step. Longer than all commits of a step need ticks, so that the clock stays ahead of them.
const MOMENT: Duration = Duration::from_millis(2);

/// How far the clock moves before a step. Never not at all: no two steps happen at the same instant.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Moment,
    Seconds(u64),
    /// Until just before some message becomes visible or expires.
    BeforeAnInstant,
    /// Until just after that.
    AfterAnInstant,
}

/// A text that is told by its length and a seed.
#[derive(Clone, Copy, Debug)]
struct Text(usize, u8);

impl Text {
    fn written(self) -> String {
        (0..self.0).map(|index| char::from(b' ' + (index as u8 ^ (index >> 8) as u8 ^ self.1) % 90)).collect()
    }
}

/// Which of the messages that there ever were, and which of the receipts that were given for it, counted from the
/// latest.
#[derive(Clone, Copy, Debug)]
struct Pick {
    message: usize,
    receipt: usize,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Create(Name, u8),
    DeleteQueue(Name),
    Describe(Name, u8),
    Put { queue: Name, text: Text, invisible: u64, lifetime: Option<u64> },
    Take { queue: Name, limit: usize, invisible: u64 },
    Peek { queue: Name, limit: usize },
    Delete(Name, Pick),
    Update { queue: Name, pick: Pick, invisible: u64, text: Option<Text> },
    Clear(Name),
    Settle,
    Restart,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    wait: Wait,
    deed: Deed,
}

fn any_step() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![
        8 => Just(Wait::Moment),
        2 => (1_u64..=40).prop_map(Wait::Seconds),
        2 => Just(Wait::BeforeAnInstant),
        2 => Just(Wait::AfterAnInstant),
    ];
    (wait, any_deed()).prop_map(|(wait, deed)| Step { wait, deed })
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let queue = || prop_oneof![6 => Just(QUEUES[0]), 1 => Just(QUEUES[1])];
    let text = || (proptest::sample::select(&LENGTHS[..]), any::<u8>()).prop_map(|(length, seed)| Text(length, seed));
    let pick = || {
        let receipt = prop_oneof![6 => Just(0_usize), 1 => Just(1), 1 => Just(2)];
        (0_usize..64, receipt).prop_map(|(message, receipt)| Pick { message, receipt })
    };
    let invisible = || prop_oneof![2 => Just(0_u64), 3 => 1_u64..30, 1 => Just(604_800)];
    let lifetime = prop_oneof![2 => Just(None), 3 => (1_u64..60).prop_map(Some)];
    prop_oneof![
        2 => (queue(), 0_u8..3).prop_map(|(queue, mark)| Deed::Create(queue, mark)),
        1 => queue().prop_map(Deed::DeleteQueue),
        1 => (queue(), 0_u8..3).prop_map(|(queue, mark)| Deed::Describe(queue, mark)),
        14 => (queue(), text(), invisible(), lifetime)
            .prop_map(|(queue, text, invisible, lifetime)| Deed::Put { queue, text, invisible, lifetime }),
        12 => (queue(), 1_usize..5, 1_u64..30)
            .prop_map(|(queue, limit, invisible)| Deed::Take { queue, limit, invisible }),
        4 => (queue(), 1_usize..5).prop_map(|(queue, limit)| Deed::Peek { queue, limit }),
        8 => (queue(), pick()).prop_map(|(queue, pick)| Deed::Delete(queue, pick)),
        8 => (queue(), pick(), invisible(), proptest::option::of(text()))
            .prop_map(|(queue, pick, invisible, text)| Deed::Update { queue, pick, invisible, text }),
        1 => queue().prop_map(Deed::Clear),
        2 => Just(Deed::Settle),
        1 => Just(Deed::Restart),
    ]
}

/// A message as the model has it.
#[derive(Clone, Debug)]
struct Message {
    view: MessageView,
    visible: Timestamp,
}

/// A queue as the model has it: its messages in the order of their age.
#[derive(Clone, Debug, Default)]
struct Queue {
    mark: u8,
    messages: Vec<Message>,
}

impl Queue {
    fn living(&mut self, now: Timestamp) -> &mut Vec<Message> {
        self.messages.retain(|message| message.view.expires > now);
        &mut self.messages
    }

    /// Positions of the visible messages, in order.
    fn visible(&mut self, now: Timestamp, limit: usize) -> Vec<usize> {
        let messages = self.living(now);
        let mut visible: Vec<_> = (0..messages.len()).filter(|&at| messages[at].visible <= now).collect();
        visible.sort_by_key(|&at| messages[at].visible);
        visible.truncate(limit);
        visible
    }
}

fn address(queue: Name) -> QueueAddress {
    QueueAddress { account: AccountName::parse("model").unwrap(), queue: QueueName::parse(queue).unwrap() }
}

fn metadata(mark: u8) -> Metadata {
    Metadata(vec![("Mark".into(), mark.to_string())])
}

async fn open(directory: &Path, clock: &Arc<HeldClock>) -> Engine {
    let mut options = Options::new(directory, Arc::clone(clock) as Arc<dyn Clock>);
    options.durability = Durability::Process;
    options.cache_bytes = 4 * 1024 * 1024;
    options.reserve_bytes = 0;
    Engine::open(options).await.unwrap()
}

/// The refusal, or what was answered; anything else ends the test.
fn answer<T>(result: Result<T, Error>) -> Result<T, Refusal> {
    result.map_err(|error| match error {
        Error::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    })
}

/// The engine and the model, side by side.
struct Pair {
    directory: tempfile::TempDir,
    clock: Arc<HeldClock>,
    engine: Option<Engine>,
    queues: BTreeMap<Name, Queue>,
    /// Every receipt ever given, by message, in order.
    receipts: Vec<(MessageId, Vec<Receipt>)>,
}

impl Pair {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400)));
        let engine = Some(open(directory.path(), &clock).await);
        Self { directory, clock, engine, queues: BTreeMap::new(), receipts: Vec::new() }
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn wait(&self, wait: Wait) {
        let now = self.now();
        let messages = self.queues.values().flat_map(|queue| &queue.messages);
        let instants = messages.flat_map(|message| [message.visible, message.view.expires]);
        let next = instants.filter(|at| *at < NEVER && at.since(now) > Duration::from_millis(10)).min();
        let moment = Duration::from_millis(1);
        self.clock.advance(match (wait, next.map(|next| next.since(now))) {
            (Wait::Seconds(count), _) => Duration::from_secs(count) + MOMENT,
            (Wait::BeforeAnInstant, Some(next)) => next - moment,
            (Wait::AfterAnInstant, Some(next)) => next + moment,
            _ => MOMENT,
        });
    }

    /// Notes what a message was given: a receipt unlike every one before, visible when it was asked for.
    fn given(&mut self, id: MessageId, held: Held, invisible: u64) -> Timestamp {
        let due = self.now().after(Duration::from_secs(invisible));
        assert!(due <= held.visible && held.visible < due.after(MOMENT), "{held:?}");
        match self.receipts.iter_mut().find(|(known, _)| *known == id) {
            Some((_, receipts)) => {
                assert!(!receipts.contains(&held.receipt), "{held:?}");
                receipts.push(held.receipt);
            }
            None => self.receipts.push((id, vec![held.receipt])),
        }
        held.visible
    }

    /// A message and a receipt of it, whether or not they are good for anything, and whether the receipt is the latest.
    fn pick(&self, queue: Name, pick: Pick) -> Option<(OnMessage, bool)> {
        let (id, receipts) = self.receipts.get(pick.message % self.receipts.len().max(1))?;
        let receipt = *receipts.iter().rev().nth(pick.receipt).unwrap_or(&receipts[0]);
        let latest = receipts.last() == Some(&receipt);
        Some((OnMessage { queue: address(queue), id: Some(*id), receipt: Some(receipt) }, latest))
    }

    fn queue(&mut self, name: Name) -> Result<&mut Queue, Refusal> {
        self.queues.get_mut(name).ok_or(Refusal::QueueNotFound)
    }

    /// Where the model has the message, if the receipt is good.
    fn held(&mut self, queue: Name, on: &OnMessage, latest: bool) -> Result<usize, Refusal> {
        let (now, id) = (self.now(), on.id);
        let messages = self.queue(queue)?.living(now);
        let at = messages.iter().position(|message| Some(message.view.id) == id).ok_or(Refusal::MessageNotFound)?;
        if latest { Ok(at) } else { Err(Refusal::ReceiptMismatch) }
    }

    async fn step(&mut self, step: Step) {
        self.wait(step.wait);
        match step.deed {
            Deed::Create(name, mark) => {
                let got = answer(queues::create(self.engine(), address(name), metadata(mark)).await);
                let expected = match self.queues.get(name) {
                    Some(queue) if queue.mark == mark => Ok(Created::Same),
                    Some(_) => Err(Refusal::QueueExists),
                    None => Ok(Created::New),
                };
                if expected == Ok(Created::New) {
                    self.queues.insert(name, Queue { mark, messages: Vec::new() });
                }
                assert_eq!(got, expected);
            }
            Deed::DeleteQueue(name) => {
                let got = answer(queues::delete(self.engine(), address(name)).await);
                assert_eq!(got, self.queues.remove(name).map(|_| ()).ok_or(Refusal::QueueNotFound));
            }
            Deed::Describe(name, mark) => {
                let got = answer(queues::set_metadata(self.engine(), address(name), metadata(mark)).await);
                assert_eq!(got, self.queue(name).map(|queue| queue.mark = mark));
            }
            Deed::Clear(name) => {
                let got = answer(messages::clear(self.engine(), address(name)).await);
                assert_eq!(got, self.queue(name).map(|queue| queue.messages.clear()));
            }
            Deed::Put { queue, text, invisible, lifetime } => self.put(queue, text, invisible, lifetime).await,
            Deed::Take { queue, limit, invisible } => self.take(queue, limit, invisible).await,
            Deed::Peek { queue, limit } => self.peek(queue, limit).await,
            Deed::Delete(queue, pick) => self.delete(queue, pick).await,
            Deed::Update { queue, pick, invisible, text } => self.update(queue, pick, invisible, text).await,
            Deed::Settle => self.compare().await,
            Deed::Restart => self.restart().await,
        }
    }

    async fn put(&mut self, name: Name, text: Text, invisible: u64, lifetime: Option<u64>) {
        // The protocol does not let a message expire before it is visible.
        let lifetime = lifetime.map(|lifetime| Duration::from_secs(lifetime + invisible));
        let message = NewMessage { text: text.written(), invisible: Duration::from_secs(invisible), lifetime };
        let got = answer(messages::put(self.engine(), address(name), message).await);
        assert_eq!(got.map(|_| ()), self.queue(name).map(|_| ()));
        let Ok(put) = got else { return };
        assert_eq!(put.expires, lifetime.map_or(NEVER, |lifetime| put.inserted.after(lifetime)));
        let visible = self.given(put.id, put.held, invisible);
        let (inserted, expires) = (put.inserted, put.expires);
        let view = MessageView { id: put.id, inserted, expires, dequeues: 0, text: text.written() };
        self.queue(name).unwrap().messages.push(Message { view, visible });
    }

    async fn take(&mut self, name: Name, limit: usize, invisible: u64) {
        let taken = messages::take(self.engine(), address(name), limit, Duration::from_secs(invisible)).await;
        let (got, now) = (answer(taken), self.now());
        assert_eq!(got.as_ref().map(|_| ()).map_err(|refusal| *refusal), self.queue(name).map(|_| ()));
        let Ok(taken) = got else { return };
        let expected = self.queue(name).unwrap().visible(now, limit);
        assert_eq!(taken.len(), expected.len());
        for (taken, at) in taken.into_iter().zip(expected) {
            let visible = self.given(taken.message.id, taken.held, invisible);
            let message = &mut self.queue(name).unwrap().messages[at];
            message.view.dequeues += 1;
            message.visible = visible;
            assert_eq!(taken.message, message.view);
        }
    }

    async fn peek(&mut self, name: Name, limit: usize) {
        let (got, now) = (answer(messages::peek(self.engine(), address(name), limit).await), self.now());
        let expected = self.queue(name).map(|queue| {
            let visible = queue.visible(now, limit);
            visible.into_iter().map(|at| queue.messages[at].view.clone()).collect::<Vec<_>>()
        });
        assert_eq!(got, expected);
    }

    async fn delete(&mut self, name: Name, pick: Pick) {
        let Some((on, latest)) = self.pick(name, pick) else { return };
        let got = answer(messages::delete(self.engine(), on.clone()).await);
        let expected = self.held(name, &on, latest);
        if let Ok(at) = expected {
            self.queue(name).unwrap().messages.remove(at);
        }
        assert_eq!(got, expected.map(|_| ()));
    }

    async fn update(&mut self, name: Name, pick: Pick, invisible: u64, text: Option<Text>) {
        let Some((on, latest)) = self.pick(name, pick) else { return };
        let (after, written) = (Duration::from_secs(invisible), text.map(Text::written));
        let got = answer(messages::update(self.engine(), on.clone(), after, written.clone()).await);
        let (now, mut expected) = (self.now(), self.held(name, &on, latest));
        if let Ok(at) = expected
            && now.after(after) > self.queues[name].messages[at].view.expires
        {
            expected = Err(Refusal::VisibleAfterExpiry);
        }
        assert_eq!(got.map(|_| ()), expected.map(|_| ()));
        if let (Ok(held), Ok(at)) = (got, expected) {
            let visible = self.given(on.id.unwrap(), held, invisible);
            let message = &mut self.queue(name).unwrap().messages[at];
            message.visible = visible;
            message.view.text = written.unwrap_or_else(|| message.view.text.clone());
        }
    }

    async fn restart(&mut self) {
        self.engine.take().unwrap().close().await;
        self.engine = Some(open(self.directory.path(), &self.clock).await);
        self.compare().await;
    }

    /// Compares everything that is stored, before and after the engine has tidied up.
    async fn compare(&mut self) {
        for tidy in [false, true] {
            if tidy {
                self.engine().settle().await.unwrap();
            }
            let now = self.now();
            for name in QUEUES {
                let got = answer(queues::get(self.engine(), address(name)).await);
                let got = got.map(|view| (view.messages, view.metadata));
                let expected = self.queue(name).map(|queue| (queue.living(now).len() as u64, metadata(queue.mark)));
                assert_eq!(got, expected, "{name}");
                self.peek(name, usize::MAX).await;
            }
        }
    }

    /// Deletes all queues and lets the engine tidy up: nothing may be left.
    async fn leave_nothing(&mut self) {
        for name in QUEUES {
            let _ = queues::delete(self.engine(), address(name)).await;
        }
        self.engine().settle().await.unwrap();
        assert_eq!(self.engine().census().unwrap(), [], "rows left over");
    }
}

/// More of them in the long run of the tests.
fn config() -> ProptestConfig {
    let cases = if std::env::var_os("LAZULI_LONG").is_some() { 1000 } else { 32 };
    ProptestConfig { cases, max_shrink_time: 60_000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn queues_do_what_the_model_does(steps in proptest::collection::vec(any_step(), 1..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut pair = Pair::new().await;
            for queue in QUEUES {
                pair.step(Step { wait: Wait::Moment, deed: Deed::Create(queue, 0) }).await;
            }
            for (number, step) in steps.iter().enumerate() {
                let happened = std::panic::AssertUnwindSafe(pair.step(*step));
                if let Err(panic) = futures_util::FutureExt::catch_unwind(happened).await {
                    eprintln!("step {number}: {step:?}");
                    std::panic::resume_unwind(panic);
                }
            }
            pair.restart().await;
            pair.leave_nothing().await;
        });
    }
}
