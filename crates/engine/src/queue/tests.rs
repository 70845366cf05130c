use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::order::{self, Bounds};
use super::*;
use crate::engine::Engine;
use crate::names::{AccountName, QueueName};
use crate::payload::tests::support::{Rows, World};
use crate::properties::Metadata;
use crate::queue::{messages, queues};
use crate::store::kv::{Ask, Kv, Writes};
use crate::store::{Pair, Space, StoreError};

const SECOND: Duration = Duration::from_secs(1);

fn at(queue: &str) -> QueueAddress {
    QueueAddress { account: AccountName::parse("dev").unwrap(), queue: QueueName::parse(queue).unwrap() }
}

async fn put(engine: &Engine, text: &str, lifetime: Option<Duration>) -> Put {
    let message = NewMessage { text: text.into(), invisible: Duration::ZERO, lifetime };
    messages::put(engine, at("jobs"), message).await.unwrap()
}

async fn take(engine: &Engine) -> Vec<String> {
    let taken = messages::take(engine, at("jobs"), 32, 30 * SECOND).await.unwrap();
    taken.into_iter().map(|taken| taken.message.text).collect()
}

/// An idle engine with a queue, so that nothing expires in the background but when a test settles it.
async fn idle() -> (World, Engine) {
    let world = World::new();
    let engine = world.open().await;
    queues::create(&engine, at("jobs"), Metadata::default()).await.unwrap();
    (world, engine)
}

#[test]
fn an_id_looks_like_this_and_other_guids_are_no_ids() {
    let id = MessageId::new(1, Timestamp::from_unix_seconds(1_785_542_400));
    assert_eq!(id.uuid().to_string(), "00000000-0000-8000-84de-ef5fd48b0000");
    assert_eq!(MessageId::from_uuid(id.uuid()), Some(id));
    for other in ["00000000-0000-0000-0000-000000000000", "c7b9e9a5-6d0e-4d8e-9d0f-4f1f4a7d9a11"] {
        assert_eq!(MessageId::from_uuid(other.parse().unwrap()), None, "{other}");
    }
}

proptest! {
    #[test]
    fn ids_come_back_and_are_guids_of_version_8(number: u64, ticks: u64) {
        let id = MessageId::new(number, Timestamp::from_ticks(ticks));
        prop_assert_eq!(id.uuid().get_version_num(), 8);
        prop_assert_eq!(id.uuid().get_variant(), uuid::Variant::RFC4122);
        prop_assert_eq!(MessageId::from_uuid(id.uuid()), Some(id));
    }

    #[test]
    fn a_guid_is_no_id_or_the_guid_of_its_id(bits: u128) {
        if let Some(id) = MessageId::from_uuid(Uuid::from_u128(bits)) {
            prop_assert_eq!(id.uuid().as_u128(), bits);
        }
    }
}

#[tokio::test]
async fn expired_messages_by_the_thousand_do_not_hide_the_living() {
    let (world, engine) = idle().await;
    for number in 0..1000 {
        put(&engine, "dead", Some(5 * SECOND)).await;
        // Some in spans of their own, some beside a living one.
        if number % 100 == 0 {
            world.clock.advance(SECOND);
        }
        if number % 250 == 249 {
            put(&engine, &format!("alive {number}"), None).await;
        }
    }
    world.clock.advance(60 * SECOND);
    let alive = ["alive 249", "alive 499", "alive 749", "alive 999"];
    let peeked = messages::peek(&engine, at("jobs"), 32).await.unwrap();
    assert!(peeked.iter().map(|message| message.text.as_str()).eq(alive), "{peeked:?}");
    let mut taken = Vec::new();
    while let more @ [_, ..] = take(&engine).await.as_slice() {
        taken.extend_from_slice(more);
    }
    assert_eq!(taken, alive);
    assert_eq!(world.rows.count(Space::Spans), 1, "what was passed is not passed again");
}

#[tokio::test]
async fn a_look_ends_at_its_bounds_and_says_so() {
    let (world, engine) = idle().await;
    for _ in 0..10 {
        put(&engine, "dead", Some(SECOND)).await;
    }
    put(&engine, "alive", None).await;
    for _ in 0..5 {
        world.clock.advance(10 * SECOND);
        put(&engine, "dead", Some(SECOND)).await;
    }
    world.clock.advance(10 * SECOND);
    let look = |expired, spans| {
        engine
            .read(|view| {
                let incarnation = state::queue(view, &at("jobs"))?.incarnation;
                let found = order::first(view, incarnation, 32, Bounds { expired, spans })?;
                Ok((found.visible.len(), found.expired.len(), found.passed.len(), found.cut))
            })
            .unwrap()
    };
    assert_eq!(look(11, 100), (1, 10, 5, false));
    assert_eq!(look(10, 100), (0, 10, 0, true));
    assert_eq!(look(11, 3), (1, 10, 3, true));
    // A transaction that takes messages goes on where the last one ended.
    assert_eq!(take(&engine).await, ["alive"]);
}

#[tokio::test]
async fn invisible_messages_are_not_looked_at() {
    let (world, engine) = idle().await;
    for _ in 0..100 {
        put(&engine, "taken", None).await;
    }
    while !take(&engine).await.is_empty() {}
    // A damaged place would be reported by whoever looks at it.
    for (key, _) in world.rows.all(Space::Places) {
        world.rows.set(Space::Places, &key, b"damaged");
    }
    put(&engine, "new", None).await;
    assert_eq!(take(&engine).await, ["new"]);
}

#[tokio::test]
async fn an_appointment_that_was_moved_or_called_off_meanwhile_removes_nothing() {
    let (world, engine) = idle().await;
    let lives = put(&engine, "moved", Some(60 * SECOND)).await;
    let gone = put(&engine, "deleted", Some(60 * SECOND)).await;
    let on = |put: Put, receipt| OnMessage { queue: at("jobs"), id: Some(put.id), receipt: Some(receipt) };
    messages::delete(&engine, on(gone, gone.held.receipt)).await.unwrap();
    let expire = |put: Put| {
        let (at, number) = (put.expires, put.id.number);
        engine.write(crate::store::Purpose::Free, move |tx| Ok(expire(tx, at, number)?))
    };
    expire(gone).await.unwrap();
    let held = messages::update(&engine, on(lives, lives.held.receipt), 30 * SECOND, None).await.unwrap();
    world.clock.advance(60 * SECOND);
    expire(lives).await.unwrap();
    let late = messages::delete(&engine, on(lives, held.receipt)).await;
    assert!(matches!(late, Err(crate::Error::Refused(crate::Refusal::MessageNotFound))), "{late:?}");
    assert_eq!(engine.census().unwrap(), [(Space::Queues, 1)]);
}

/// Rows that count how many of them are read.
#[derive(Clone, Debug, Default)]
struct Counted {
    rows: Rows,
    read: Arc<AtomicUsize>,
}

impl Kv for Counted {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.rows.get(space, key)
    }
    fn chunk(&self, space: Space, ask: &Ask<'_>) -> Result<Vec<Pair>, StoreError> {
        let pairs = self.rows.chunk(space, ask)?;
        self.read.fetch_add(1 + pairs.len(), Ordering::Relaxed);
        Ok(pairs)
    }
    fn apply(&self, writes: &Writes) -> Result<(), StoreError> {
        self.rows.apply(writes)
    }
    fn sync(&self) -> Result<(), StoreError> {
        self.rows.sync()
    }
    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.rows.free_bytes()
    }
}

/// Rows that taking one message reads, with `count` messages in the queue that nobody can have.
async fn read_to_take(count: usize, invisible: Duration, lifetime: Option<Duration>) -> usize {
    let (world, counted) = (World::new(), Counted::default());
    let engine = world.open_with(counted.clone()).await;
    queues::create(&engine, at("jobs"), Metadata::default()).await.unwrap();
    for _ in 0..count {
        let message = NewMessage { text: "hidden".into(), invisible, lifetime };
        messages::put(&engine, at("jobs"), message).await.unwrap();
    }
    world.clock.advance(60 * SECOND);
    for _ in 0..100 {
        put(&engine, "visible", None).await;
    }
    let before = counted.read.load(Ordering::Relaxed);
    let taken = messages::take(&engine, at("jobs"), 1, 30 * SECOND).await.unwrap();
    assert_eq!(taken[0].message.text, "visible");
    counted.read.load(Ordering::Relaxed) - before
}

#[tokio::test]
async fn taking_a_message_reads_no_more_rows_beside_thousands_that_nobody_can_have() {
    for (invisible, lifetime) in [(3600 * SECOND, None), (Duration::ZERO, Some(SECOND))] {
        let (few, many) = (read_to_take(100, invisible, lifetime).await, read_to_take(5000, invisible, lifetime).await);
        assert!(many <= few && few < 100, "{few} rows beside 100 messages, {many} beside 5000");
    }
}
