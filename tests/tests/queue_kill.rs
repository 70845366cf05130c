//! `kill -9` of the real process under producers and consumers, again and again: no message is lost, none is in two
//! hands at once, and each is removed by whoever held it last.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use lazuli_tests::books::Books;
use lazuli_tests::process::{Start, within};
use lazuli_tests::random::Random;

const PRODUCERS: usize = 4;
const CONSUMERS: usize = 12;

/// Rounds of load and kill.
fn rounds() -> usize {
    if std::env::var_os("LAZULI_LONG").is_some() { 50 } else { 5 }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_is_processed_by_its_last_holder_over_any_number_of_kills() {
    let directory = tempfile::tempdir().unwrap();
    let (mut random, books, next) = (Random::new(), Books::default(), Arc::new(AtomicU64::new(0)));
    let mut server = Start::at(directory.path()).ready().await;
    server.queues().queue("jobs").await;
    for _ in 0..rounds() {
        let queue = server.queues().existing("jobs");
        let numbers = || {
            let next = Arc::clone(&next);
            std::iter::repeat_with(move || next.fetch_add(1, Ordering::Relaxed))
        };
        let producers = (0..PRODUCERS).map(|_| {
            let produce = books.clone().produce(queue.clone(), numbers(), random.fork());
            tokio::spawn(produce)
        });
        let mut at_work: Vec<_> = producers.collect();
        at_work.extend((0..CONSUMERS).map(|_| tokio::spawn(books.clone().consume(queue.clone(), random.fork()))));
        tokio::time::sleep(Duration::from_millis(random.between(200, 1100))).await; // the moment is the test's input
        server.kill().await;
        for ended in within("producers and consumers to notice", join_all(at_work)).await {
            ended.unwrap();
        }
        server = Start::at(directory.path()).ready().await;
    }
    let queue = server.queues().existing("jobs");
    let emptied = join_all((0..CONSUMERS).map(|_| books.drain(&queue)));
    within("the queue to be empty", emptied).await.into_iter().for_each(|ended| ended.unwrap());
    let processed = books.close();
    println!("{processed} messages");
    assert!(processed > rounds() * PRODUCERS * 4, "only {processed} messages: too light a load to prove anything");
    assert!(server.terminate().await.status.success());
}
