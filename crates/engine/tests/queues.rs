//! Queues and messages, through the engine's public functions: every rule on both sides of its instant.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends where it fails")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use lazuli_engine::access::AccessPolicy;
use lazuli_engine::blob::Marker;
use lazuli_engine::clock::{Clock as _, HeldClock};
use lazuli_engine::names::{AccountName, QueueAddress, QueueName};
use lazuli_engine::properties::Metadata;
use lazuli_engine::queue::messages;
use lazuli_engine::queue::queues::{self, Created, ListQueues};
use lazuli_engine::queue::{Held, MessageId, NEVER, NewMessage, OnMessage, Put, Receipt, Taken};
use lazuli_engine::store::Space;
use lazuli_engine::{Engine, Error, Refusal};
use support::{clock, refusal, seconds};

const TICK: Duration = Duration::from_nanos(100);
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

fn at(queue: &str) -> QueueAddress {
    QueueAddress { account: AccountName::parse("dev").unwrap(), queue: QueueName::parse(queue).unwrap() }
}

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    Metadata(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

/// An engine in memory with one queue `jobs`.
struct Jobs {
    engine: Engine,
    clock: Arc<HeldClock>,
}

impl Jobs {
    async fn new() -> Self {
        let clock = clock();
        let engine = Engine::memory(clock.clone()).await.unwrap();
        queues::create(&engine, at("jobs"), Metadata::default()).await.unwrap();
        Self { engine, clock }
    }

    async fn put_for(&self, text: &str, invisible: Duration, lifetime: Option<Duration>) -> Put {
        let message = NewMessage { text: text.into(), invisible, lifetime };
        messages::put(&self.engine, at("jobs"), message).await.unwrap()
    }

    async fn put(&self, text: &str) -> Put {
        self.put_for(text, Duration::ZERO, Some(WEEK)).await
    }

    async fn take_many(&self, limit: usize, invisible: u64) -> Vec<Taken> {
        messages::take(&self.engine, at("jobs"), limit, seconds(invisible)).await.unwrap()
    }

    async fn take(&self, invisible: u64) -> Option<Taken> {
        self.take_many(1, invisible).await.pop()
    }

    async fn peek(&self) -> Vec<String> {
        let messages = messages::peek(&self.engine, at("jobs"), 32).await.unwrap();
        messages.into_iter().map(|message| message.text).collect()
    }

    async fn delete(&self, id: MessageId, receipt: Receipt) -> Result<(), Error> {
        messages::delete(&self.engine, on(id, receipt)).await
    }

    async fn update(&self, id: MessageId, receipt: Receipt, after: u64, text: Option<&str>) -> Result<Held, Error> {
        messages::update(&self.engine, on(id, receipt), seconds(after), text.map(str::to_owned)).await
    }

    async fn count(&self) -> u64 {
        queues::get(&self.engine, at("jobs")).await.unwrap().messages
    }

    fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
    }
}

fn on(id: MessageId, receipt: Receipt) -> OnMessage {
    OnMessage { queue: at("jobs"), id: Some(id), receipt: Some(receipt) }
}

fn texts(taken: &[Taken]) -> Vec<&str> {
    taken.iter().map(|taken| taken.message.text.as_str()).collect()
}

#[tokio::test]
async fn a_message_is_handed_out_counted_and_given_a_new_receipt_each_time() {
    let jobs = Jobs::new().await;
    let put = jobs.put("one").await;
    assert_eq!((put.inserted, put.expires), (put.held.visible, put.inserted.after(WEEK)));
    let mut receipts = vec![put.held.receipt];
    for dequeues in 1..=3 {
        let now = jobs.clock.now();
        let taken = jobs.take(30).await.unwrap();
        assert_eq!((taken.message.id, taken.message.dequeues), (put.id, dequeues));
        assert_eq!((taken.message.inserted, taken.message.expires), (put.inserted, put.expires));
        assert_eq!(taken.message.text, "one");
        assert!(taken.held.visible.since(now) >= seconds(30) && taken.held.visible.since(now) < seconds(31));
        assert!(!receipts.contains(&taken.held.receipt));
        receipts.push(taken.held.receipt);
        jobs.advance(seconds(31));
    }
}

#[tokio::test]
async fn a_message_is_invisible_until_its_instant_and_not_a_tick_longer() {
    let jobs = Jobs::new().await;
    let put = jobs.put_for("late", seconds(10), Some(WEEK)).await;
    jobs.advance(put.held.visible.since(jobs.clock.now()) - TICK);
    assert_eq!((jobs.peek().await, jobs.take(30).await), (vec![], None));
    jobs.advance(TICK);
    assert_eq!(jobs.peek().await, ["late"]);
    let taken = jobs.take(60).await.unwrap();
    jobs.advance(taken.held.visible.since(jobs.clock.now()) - TICK);
    assert_eq!(jobs.take(30).await, None);
    jobs.advance(TICK);
    assert_eq!(jobs.take(30).await.map(|taken| taken.message.dequeues), Some(2));
}

#[tokio::test]
async fn peeking_changes_nothing() {
    let jobs = Jobs::new().await;
    jobs.put("one").await;
    for _ in 0..2 {
        let peeked = messages::peek(&jobs.engine, at("jobs"), 1).await.unwrap();
        assert_eq!((peeked[0].text.as_str(), peeked[0].dequeues), ("one", 0));
    }
    assert_eq!(jobs.take(30).await.unwrap().message.dequeues, 1);
    assert_eq!(jobs.peek().await, Vec::<String>::new());
}

#[tokio::test]
async fn messages_come_in_the_order_in_which_they_became_visible_then_in_that_of_their_age() {
    let jobs = Jobs::new().await;
    jobs.put_for("slow", seconds(20), Some(WEEK)).await;
    for text in ["a", "b", "c"] {
        jobs.put(text).await;
    }
    let a = jobs.take(5).await.unwrap();
    assert_eq!(a.message.text, "a");
    jobs.advance(seconds(30));
    assert_eq!(texts(&jobs.take_many(32, 30).await), ["b", "c", "a", "slow"]);
}

#[tokio::test]
async fn no_more_messages_are_taken_than_asked_for() {
    let jobs = Jobs::new().await;
    for number in 0..40 {
        jobs.put(&number.to_string()).await;
    }
    let counts = [jobs.take_many(1, 30).await, jobs.take_many(32, 30).await, jobs.take_many(32, 30).await];
    assert_eq!(counts.map(|taken| taken.len()), [1, 32, 7]);
    assert_eq!(jobs.count().await, 40, "invisible messages count");
}

#[tokio::test]
async fn only_the_latest_receipt_deletes() {
    let jobs = Jobs::new().await;
    let put = jobs.put("one").await;
    let first = jobs.take(30).await.unwrap().held.receipt;
    assert_eq!(refusal(jobs.delete(put.id, put.held.receipt).await), Refusal::ReceiptMismatch);
    jobs.advance(seconds(31));
    let second = jobs.take(30).await.unwrap().held.receipt;
    assert_eq!(refusal(jobs.delete(put.id, first).await), Refusal::ReceiptMismatch);
    assert_eq!(jobs.count().await, 1, "nothing was removed");
    jobs.delete(put.id, second).await.unwrap();
    assert_eq!(refusal(jobs.delete(put.id, second).await), Refusal::MessageNotFound);
    assert_eq!(refusal(jobs.update(put.id, second, 0, None).await), Refusal::MessageNotFound);
    assert_eq!(jobs.count().await, 0);
}

#[tokio::test]
async fn a_receipt_whose_time_has_run_out_works_until_somebody_else_takes_the_message() {
    let jobs = Jobs::new().await;
    jobs.put("one").await;
    jobs.put("two").await;
    let (one, two) = (jobs.take(10).await.unwrap(), jobs.take(10).await.unwrap());
    jobs.advance(seconds(60));
    assert_eq!(jobs.peek().await, ["one", "two"]);
    jobs.delete(one.message.id, one.held.receipt).await.unwrap();
    let again = jobs.take(10).await.unwrap();
    assert_eq!(again.message.id, two.message.id);
    assert_eq!(refusal(jobs.delete(two.message.id, two.held.receipt).await), Refusal::ReceiptMismatch);
    jobs.delete(again.message.id, again.held.receipt).await.unwrap();
}

#[tokio::test]
async fn the_receipt_of_a_put_works_at_once() {
    let jobs = Jobs::new().await;
    let put = jobs.put_for("one", seconds(60), None).await;
    let held = jobs.update(put.id, put.held.receipt, 0, Some("other")).await.unwrap();
    assert_eq!(jobs.peek().await, ["other"]);
    jobs.delete(put.id, held.receipt).await.unwrap();
    assert_eq!(jobs.peek().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_receipt_never_becomes_good_again() {
    let jobs = Jobs::new().await;
    jobs.put("one").await;
    jobs.advance(seconds(1));
    let first = jobs.take(30).await.unwrap();
    // The clock has moved before each, so that it is exactly the same place every time.
    let (id, mut receipts) = (first.message.id, vec![first.held.receipt]);
    for _ in 0..3 {
        jobs.advance(seconds(5));
        let left = first.held.visible.since(jobs.clock.now()).as_secs();
        let last = *receipts.last().unwrap();
        let held = jobs.update(id, last, left, None).await.unwrap();
        assert_eq!(held.visible, first.held.visible);
        receipts.push(held.receipt);
        for old in &receipts[..receipts.len() - 1] {
            assert_eq!(refusal(jobs.delete(id, *old).await), Refusal::ReceiptMismatch);
        }
    }
}

#[tokio::test]
async fn an_update_moves_the_message_keeps_or_replaces_its_text_and_does_not_count_as_taking_it() {
    let jobs = Jobs::new().await;
    let put = jobs.put("one").await;
    let taken = jobs.take(30).await.unwrap();
    let long = "x".repeat(65_536);
    let held = jobs.update(put.id, taken.held.receipt, 100, Some(&long)).await.unwrap();
    assert!(held.visible.since(jobs.clock.now()) >= seconds(100));
    assert_eq!(refusal(jobs.delete(put.id, taken.held.receipt).await), Refusal::ReceiptMismatch);
    jobs.advance(seconds(31));
    assert_eq!(jobs.take(30).await, None);
    let held = jobs.update(put.id, held.receipt, 0, None).await.unwrap();
    let again = jobs.take(30).await.unwrap();
    assert_eq!((again.message.text == long, again.message.dequeues), (true, 2));
    assert_eq!(refusal(jobs.update(put.id, held.receipt, 0, None).await), Refusal::ReceiptMismatch);
    jobs.update(put.id, again.held.receipt, 0, Some("")).await.unwrap();
    assert_eq!(jobs.peek().await, [""]);
    let census = jobs.engine.census().unwrap();
    assert!(!census.iter().any(|(space, _)| *space == Space::Texts), "the long text is gone: {census:?}");
}

#[tokio::test]
async fn an_update_cannot_hide_a_message_beyond_its_end_but_taking_it_can() {
    let jobs = Jobs::new().await;
    let put = jobs.put_for("one", Duration::ZERO, Some(seconds(60))).await;
    jobs.advance(seconds(10));
    let refused = jobs.update(put.id, put.held.receipt, 51, Some("lost")).await;
    assert_eq!(refusal(refused), Refusal::VisibleAfterExpiry);
    assert_eq!(jobs.peek().await, ["one"]);
    let held = jobs.update(put.id, put.held.receipt, 49, None).await.unwrap();
    jobs.update(put.id, held.receipt, 0, None).await.unwrap();
    let taken = jobs.take(3600).await.unwrap();
    assert!(taken.held.visible > taken.message.expires);
}

#[tokio::test]
async fn a_message_lives_until_its_end_and_not_a_tick_longer() {
    let jobs = Jobs::new().await;
    let short = jobs.put_for("short", Duration::ZERO, Some(seconds(60))).await;
    let endless = jobs.put_for("endless", Duration::ZERO, None).await;
    assert_eq!(endless.expires, NEVER);
    jobs.advance(short.expires.since(jobs.clock.now()) - TICK);
    assert_eq!(jobs.peek().await, ["short", "endless"]);
    jobs.advance(TICK);
    assert_eq!(jobs.peek().await, ["endless"]);
    assert_eq!(jobs.count().await, 1, "what has expired does not count, removed or not");
    assert_eq!(refusal(jobs.delete(short.id, short.held.receipt).await), Refusal::MessageNotFound);
    assert_eq!(refusal(jobs.update(short.id, short.held.receipt, 0, None).await), Refusal::MessageNotFound);
    assert_eq!(texts(&jobs.take_many(32, 1).await), ["endless"]);
    jobs.advance(1000 * WEEK);
    jobs.engine.settle().await.unwrap();
    assert_eq!((jobs.peek().await, jobs.count().await), (vec!["endless".to_owned()], 1));
}

#[tokio::test]
async fn what_has_expired_is_removed_in_the_background_with_all_that_belongs_to_it() {
    let jobs = Jobs::new().await;
    let long = "x".repeat(65_536);
    for number in 0..300 {
        let text = if number % 100 == 0 { &long } else { "short" };
        jobs.put_for(text, seconds(number % 7), Some(seconds(60 + number % 3))).await;
    }
    jobs.advance(seconds(10));
    jobs.take_many(32, 3600).await;
    let first = jobs.take(30).await.unwrap();
    jobs.update(first.message.id, first.held.receipt, 40, None).await.unwrap();
    jobs.advance(seconds(3600));
    jobs.engine.settle().await.unwrap();
    assert_eq!(jobs.count().await, 0);
    assert_eq!(jobs.engine.census().unwrap(), [(Space::Queues, 1)]);
}

#[tokio::test]
async fn texts_come_back_byte_for_byte() {
    let jobs = Jobs::new().await;
    let mut cases: Vec<String> =
        ["", " ", "\r\n\t blanks \n", "<&>\"'&amp;", "\u{1F600}é\u{FFFD}"].map(Into::into).into();
    cases.extend([15_359, 15_360, 15_361, 31_744, 31_745, 65_535, 65_536].map(|length| "ab\u{e9}".repeat(length / 4)));
    cases.extend([15_360, 65_536].map(|length| "z".repeat(length)));
    for text in cases {
        jobs.put(&text).await;
        let taken = jobs.take(30).await.unwrap();
        assert!(taken.message.text == text, "{} bytes", text.len());
        jobs.delete(taken.message.id, taken.held.receipt).await.unwrap();
    }
}

#[tokio::test]
async fn an_id_that_is_no_message_of_this_queue_is_not_found() {
    let jobs = Jobs::new().await;
    queues::create(&jobs.engine, at("other"), Metadata::default()).await.unwrap();
    let put = jobs.put("one").await;
    let nowhere = OnMessage { queue: at("jobs"), id: None, receipt: Some(put.held.receipt) };
    let elsewhere = OnMessage { queue: at("other"), id: Some(put.id), receipt: Some(put.held.receipt) };
    let absent = OnMessage { queue: at("absent"), id: Some(put.id), receipt: Some(put.held.receipt) };
    assert_eq!(refusal(messages::delete(&jobs.engine, nowhere).await), Refusal::MessageNotFound);
    assert_eq!(refusal(messages::delete(&jobs.engine, elsewhere).await), Refusal::MessageNotFound);
    assert_eq!(refusal(messages::delete(&jobs.engine, absent).await), Refusal::QueueNotFound);
    let forged = Receipt { visible: put.held.receipt.visible, placed: put.held.receipt.placed.after(TICK) };
    assert_eq!(refusal(jobs.delete(put.id, forged).await), Refusal::ReceiptMismatch);
    let foreign = OnMessage { receipt: None, ..on(put.id, put.held.receipt) };
    assert_eq!(refusal(messages::delete(&jobs.engine, foreign).await), Refusal::ReceiptMismatch);
}

#[tokio::test]
async fn clearing_and_deleting_make_messages_unreachable_at_once_and_leave_nothing() {
    let jobs = Jobs::new().await;
    for number in 0..1300 {
        let lifetime = (number % 2 == 0).then_some(WEEK);
        jobs.put_for(&"x".repeat(if number == 7 { 65_536 } else { 3 }), Duration::ZERO, lifetime).await;
    }
    let taken = jobs.take(30).await.unwrap();
    messages::clear(&jobs.engine, at("jobs")).await.unwrap();
    assert_eq!((jobs.peek().await, jobs.count().await), (vec![], 0));
    assert_eq!(refusal(jobs.delete(taken.message.id, taken.held.receipt).await), Refusal::MessageNotFound);
    jobs.put("after").await;
    jobs.engine.settle().await.unwrap();
    assert_eq!(jobs.peek().await, ["after"]);
    queues::delete(&jobs.engine, at("jobs")).await.unwrap();
    assert_eq!(refusal(messages::peek(&jobs.engine, at("jobs"), 1).await), Refusal::QueueNotFound);
    queues::create(&jobs.engine, at("jobs"), Metadata::default()).await.unwrap();
    assert_eq!((jobs.peek().await, jobs.count().await), (vec![], 0), "the name is free at once");
    queues::delete(&jobs.engine, at("jobs")).await.unwrap();
    jobs.engine.settle().await.unwrap();
    assert_eq!(jobs.engine.census().unwrap(), []);
}

#[tokio::test]
async fn a_queue_is_created_once_and_again_only_with_the_same_metadata() {
    let Jobs { engine, .. } = Jobs::new().await;
    let (one, same) = (metadata(&[("Owner", "Ann"), ("b", "2")]), metadata(&[("B", "2"), ("owner", "Ann")]));
    assert_eq!(queues::create(&engine, at("new"), one.clone()).await.unwrap(), Created::New);
    assert_eq!(queues::create(&engine, at("new"), same).await.unwrap(), Created::Same);
    for other in [metadata(&[]), metadata(&[("Owner", "ann"), ("b", "2")]), metadata(&[("Owner", "Ann")])] {
        assert_eq!(refusal(queues::create(&engine, at("new"), other).await), Refusal::QueueExists);
    }
    assert_eq!(queues::get(&engine, at("new")).await.unwrap().metadata, one);
}

#[tokio::test]
async fn metadata_and_policies_are_replaced_whole_and_leave_the_messages_alone() {
    let jobs = Jobs::new().await;
    jobs.put("one").await;
    let policy = AccessPolicy { id: "p".into(), permission: Some("raup".into()), ..AccessPolicy::default() };
    queues::set_policies(&jobs.engine, at("jobs"), vec![policy.clone()]).await.unwrap();
    queues::set_metadata(&jobs.engine, at("jobs"), metadata(&[("a", "1")])).await.unwrap();
    let view = queues::get(&jobs.engine, at("jobs")).await.unwrap();
    assert_eq!((view.messages, view.policies, view.metadata), (1, vec![policy], metadata(&[("a", "1")])));
    queues::set_metadata(&jobs.engine, at("jobs"), Metadata::default()).await.unwrap();
    queues::set_policies(&jobs.engine, at("jobs"), vec![]).await.unwrap();
    let view = queues::get(&jobs.engine, at("jobs")).await.unwrap();
    assert_eq!((view.messages, view.policies, view.metadata), (1, vec![], Metadata::default()));
}

#[tokio::test]
async fn what_is_done_to_an_absent_queue_is_refused() {
    let Jobs { engine, .. } = Jobs::new().await;
    let queue = || at("absent");
    let message = NewMessage { text: String::new(), invisible: Duration::ZERO, lifetime: None };
    assert_eq!(refusal(queues::get(&engine, queue()).await), Refusal::QueueNotFound);
    assert_eq!(refusal(queues::set_metadata(&engine, queue(), Metadata::default()).await), Refusal::QueueNotFound);
    assert_eq!(refusal(queues::set_policies(&engine, queue(), vec![]).await), Refusal::QueueNotFound);
    assert_eq!(refusal(queues::delete(&engine, queue()).await), Refusal::QueueNotFound);
    assert_eq!(refusal(messages::put(&engine, queue(), message).await), Refusal::QueueNotFound);
    assert_eq!(refusal(messages::take(&engine, queue(), 1, seconds(1)).await), Refusal::QueueNotFound);
    assert_eq!(refusal(messages::peek(&engine, queue(), 1).await), Refusal::QueueNotFound);
    assert_eq!(refusal(messages::clear(&engine, queue()).await), Refusal::QueueNotFound);
}

#[tokio::test]
async fn every_prefix_and_page_size_lists_each_queue_once_in_order() {
    let clock = clock();
    let engine = Engine::memory(clock).await.unwrap();
    let names = ["a-b", "aaa", "aab", "abc", "b-1", "bbb"];
    for name in names {
        queues::create(&engine, at(name), metadata(&[("name", name)])).await.unwrap();
    }
    let stranger = QueueAddress { account: AccountName::parse("dev2").unwrap(), ..at("aaa") };
    queues::create(&engine, stranger, Metadata::default()).await.unwrap();
    for prefix in ["", "a", "aa", "b", "bbb", "c"] {
        for limit in 1..=7 {
            let (mut listed, mut start): (Vec<String>, Option<Marker>) = (Vec::new(), None);
            loop {
                let account = AccountName::parse("dev").unwrap();
                let request = ListQueues { account, prefix: prefix.into(), start, limit };
                let page = queues::list(&engine, request).await.unwrap();
                assert!(page.next.is_none() || page.queues.len() == limit);
                for (name, found) in page.queues {
                    assert_eq!(found, metadata(&[("name", name.as_str())]));
                    listed.push(name.to_string());
                }
                start = page.next;
                if start.is_none() {
                    break;
                }
            }
            let expected: Vec<_> = names.iter().filter(|name| name.starts_with(prefix)).collect();
            assert!(listed.iter().eq(expected), "{prefix} {limit}: {listed:?}");
        }
    }
}
