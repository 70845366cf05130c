//! `kill -9` of the real process under load, again and again: nothing acknowledged is lost, nothing is torn, and no
//! space leaks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use lazuli_tests::disk::payload_becomes;
use lazuli_tests::harness::{Blob, Container};
use lazuli_tests::ledger::Ledger;
use lazuli_tests::process::{Start, within};
use lazuli_tests::random::Random;
use lazuli_tests::witness;

const WRITERS: usize = 16;
const BLOBS_PER_WRITER: usize = 4;

/// Rounds of load and kill.
fn rounds() -> usize {
    if std::env::var_os("LAZULI_LONG").is_some() { 50 } else { 5 }
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_minus_nine_loses_and_tears_and_leaks_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new();
    let mut server = Start::at(directory.path()).ready().await;
    let container = server.service().container("kill").await;
    let mut writers: Vec<Vec<Ledger>> = (0..WRITERS).map(|writer| ledgers(&container, writer, &mut random)).collect();
    let mut steps = 0;
    for round in 0..rounds() {
        let writing: Vec<_> = writers.into_iter().map(|ledgers| tokio::spawn(write(ledgers))).collect();
        tokio::time::sleep(Duration::from_millis(random.between(200, 1100))).await; // the moment is the test's input
        server.kill().await;
        let written = within("the writers to notice", join_all(writing)).await;
        writers = written.into_iter().map(Result::unwrap).collect();
        let tried: usize = writers.iter().flatten().map(Ledger::tried).sum();
        println!("round {round}: {tried} steps");
        steps += tried;
        server = Start::at(directory.path()).ready().await;
        if random.below(3) == 0 {
            server.kill().await; // in the middle of tidying up
            server = Start::at(directory.path()).ready().await;
        }
        settle(&server.service().existing("kill"), &mut writers).await;
    }
    assert!(steps > rounds() * WRITERS * 4, "only {steps} steps: too light a load to prove anything");
    for ledger in writers.iter_mut().flatten() {
        ledger.close().await.unwrap();
    }
    payload_becomes(directory.path(), writers.iter().flatten().map(Ledger::payload_bytes).sum()).await;
    server.service().existing("kill").delete().await.expect(202);
    payload_becomes(directory.path(), 0).await;
    assert!(server.terminate().await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_minus_nine_loses_and_tears_no_append() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new();
    let mut server = Start::at(directory.path()).ready().await;
    let container = server.service().container("kill").await;
    let logs: Vec<String> = (0..BLOBS_PER_WRITER).map(|log| format!("log {log}")).collect();
    for log in &logs {
        container.blob(log).create_append().await.expect(201);
    }
    let next = Arc::new(AtomicU64::new(0));
    let mut acknowledged: Vec<BTreeMap<usize, u64>> = vec![BTreeMap::new(); logs.len()];
    for _ in 0..rounds() {
        let container = server.service().existing("kill");
        let writing: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let log = writer % logs.len();
                tokio::spawn(append(container.blob(&logs[log]), Arc::clone(&next), random.fork(), log))
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(random.between(200, 600))).await; // the moment is the test's input
        server.kill().await;
        for told in within("the writers to notice", join_all(writing)).await {
            let (log, told) = told.unwrap();
            acknowledged[log].extend(told);
        }
        server = Start::at(directory.path()).ready().await;
        for (log, acknowledged) in logs.iter().zip(&acknowledged) {
            let answer = server.service().existing("kill").blob(log).get().await.expect(200);
            let found = records(&answer.body);
            for (offset, seed) in acknowledged {
                assert_eq!(found.get(offset), Some(seed), "{log}: the block at {offset} was acknowledged");
            }
            let count: usize = answer.header("x-ms-blob-committed-block-count").parse().unwrap();
            assert_eq!(count, found.len(), "{log}: its count is that of its blocks");
        }
    }
    let told: usize = acknowledged.iter().map(BTreeMap::len).sum();
    assert!(told > rounds() * WRITERS, "only {told} appends: too light a load to prove anything");
    server.service().existing("kill").delete().await.expect(202);
    payload_becomes(directory.path(), 0).await;
    assert!(server.terminate().await.status.success());
}

/// Appends until the connection breaks; says what was acknowledged at which place.
async fn append(blob: Blob, next: Arc<AtomicU64>, mut random: Random, log: usize) -> (usize, Vec<(usize, u64)>) {
    let mut told = Vec::new();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let content = witness::content(seed, usize::try_from(random.between(24, 9000)).unwrap());
        let Ok(answer) = blob.append(content).attempt().await else { return (log, told) };
        told.push((answer.expect(201).header("x-ms-blob-append-offset").parse().unwrap(), seed));
    }
}

/// The blocks of a content and where each begins; panics if one is torn.
fn records(content: &[u8]) -> BTreeMap<usize, u64> {
    let mut found = BTreeMap::new();
    let mut at = 0;
    while at < content.len() {
        let length = content.get(at + 8..at + 16).unwrap().try_into().map(u64::from_le_bytes).unwrap();
        let end = at + usize::try_from(length).unwrap();
        found.insert(at, witness::seed_of(content.get(at..end).unwrap()).unwrap());
        at = end;
    }
    found
}

fn ledgers(container: &Container, writer: usize, random: &mut Random) -> Vec<Ledger> {
    (0..BLOBS_PER_WRITER).map(|blob| Ledger::new(container.blob(&blob_name(writer, blob)), random.fork())).collect()
}

fn blob_name(writer: usize, blob: usize) -> String {
    format!("writer {writer:02}/blob {blob}")
}

/// Writes until the connection breaks.
async fn write(mut ledgers: Vec<Ledger>) -> Vec<Ledger> {
    'writing: loop {
        for ledger in &mut ledgers {
            if ledger.step().await.is_err() {
                break 'writing ledgers;
            }
        }
    }
}

/// Checks every blob, and that the listing knows exactly those that are there.
async fn settle(container: &Container, writers: &mut [Vec<Ledger>]) {
    let mut present = 0;
    for (writer, ledgers) in writers.iter_mut().enumerate() {
        for (blob, ledger) in ledgers.iter_mut().enumerate() {
            ledger.settle(container.blob(&blob_name(writer, blob))).await;
            present += usize::from(ledger.is_present());
        }
    }
    let listed = container.list("").await.expect(200).text().matches("<Blob>").count();
    assert_eq!(listed, present, "the listing and the blobs differ");
}
