//! Isolation as clients see it: conditions decide atomically, every read is one moment.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::join_all;
use http_body_util::BodyExt as _;
use lazuli_tests::disk::payload_becomes;
use lazuli_tests::harness::{Blob, Container};
use lazuli_tests::process::{Start, within};
use lazuli_tests::witness;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_concurrent_increments_under_if_match_lose_none() {
    const INCREMENTS: u64 = 1000;
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let counter = server.service().container("isolation").await.blob("counter");
    counter.put("0").await.expect(201);
    let left = Arc::new(AtomicU64::new(INCREMENTS));
    let workers = (0..32).map(|_| tokio::spawn(increment(counter.clone(), Arc::clone(&left))));
    let clashes: u64 = join_all(workers).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(counter.get().await.expect(200).text(), INCREMENTS.to_string());
    assert!(clashes > 0, "the increments were never concurrent");
}

/// Increments until none is left; counts how often another was faster.
async fn increment(counter: Blob, left: Arc<AtomicU64>) -> u64 {
    let mut clashes = 0;
    while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
        loop {
            let read = counter.get().await.expect(200);
            let next = read.text().parse::<u64>().unwrap() + 1;
            let written = counter.put(next.to_string()).header("if-match", read.etag()).await;
            if written.status == 201 {
                break;
            }
            written.refused(412, "ConditionNotMet");
            clashes += 1;
        }
    }
    clashes
}

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_creates_exactly_one_wins() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let container = server.service().container("isolation").await;
    for round in 0..30 {
        let blob = container.blob(&format!("race {round}"));
        let racers = (0..16).map(|racer| blob.put(format!("{racer}")).header("if-none-match", "*").attempt());
        let mut winners = Vec::new();
        for (racer, answer) in join_all(racers).await.into_iter().enumerate() {
            let answer = answer.unwrap();
            if answer.status == 201 {
                winners.push(racer.to_string());
            } else {
                answer.refused(409, "BlobAlreadyExists");
            }
        }
        assert_eq!(winners, [blob.get().await.expect(200).text()], "round {round}");
    }
}

/// Blobs between those that a writer changes, so that a scan takes a while from one to the other.
const BYSTANDERS: usize = 1500;
/// Places where the token may lie, evenly among the bystanders.
const PLACES: u64 = 50;

/// Two invariants hold at every moment. `first` and `last` carry versions, and `first` is written first: it is equal
/// to `last` or one ahead. The token is put at its next place before it is removed from the last one: there are one or
/// two. A page that is not one moment breaks either.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_listing_is_one_moment_while_writers_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let container = server.service().container("isolation").await;
    let bystanders: Vec<_> = (0..BYSTANDERS).map(|number| container.blob(&format!("m{number:05}"))).collect();
    for some in bystanders.chunks(64) {
        join_all(some.iter().map(|blob| blob.put("").attempt()))
            .await
            .into_iter()
            .for_each(|put| drop(put.unwrap().expect(201)));
    }
    let (first, last) = (container.blob("first"), container.blob("z last"));
    first.put("").header("x-ms-meta-version", "0").await.expect(201);
    last.put("").header("x-ms-meta-version", "0").await.expect(201);
    token(&container, 0).put("").await.expect(201);
    let stop = Arc::new(AtomicBool::new(false));
    let versions = tokio::spawn(write_versions(first, last, Arc::clone(&stop)));
    let tokens = tokio::spawn(move_token(container.clone(), Arc::clone(&stop)));
    let mut seen = BTreeSet::new();
    for _ in 0..40 {
        let page = container.list("&include=metadata&maxresults=5000").await.expect(200).text();
        seen.insert(check_page(&page));
    }
    stop.store(true, Ordering::SeqCst);
    versions.await.unwrap();
    tokens.await.unwrap();
    assert!(seen.len() > 5, "the writers stood still: {seen:?}");
}

fn token(container: &Container, step: u64) -> Blob {
    // From place to place in steps that visit all of them in an order that looks random.
    let place = step * 17 % PLACES * (BYSTANDERS as u64 / PLACES);
    container.blob(&format!("m{place:05} token"))
}

async fn write_versions(first: Blob, last: Blob, stop: Arc<AtomicBool>) {
    for version in 1_u64.. {
        first.set_metadata("version", &version.to_string()).await.expect(200);
        last.set_metadata("version", &version.to_string()).await.expect(200);
        if stop.load(Ordering::SeqCst) {
            break;
        }
    }
}

async fn move_token(container: Container, stop: Arc<AtomicBool>) {
    for step in 1.. {
        token(&container, step).put("").await.expect(201);
        token(&container, step - 1).delete().await.expect(202);
        if stop.load(Ordering::SeqCst) {
            break;
        }
    }
}

/// Checks both invariants; gives the version that the page shows.
fn check_page(page: &str) -> u64 {
    let versions: Vec<u64> = page
        .split("<version>")
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap_or_default().parse().unwrap())
        .collect();
    let [first, last] = versions[..] else { unreachable!("two blobs carry versions: {versions:?}") };
    assert!(first == last || first == last + 1, "first is at {first}, last at {last}");
    let tokens = page.matches(" token</Name>").count();
    assert!((1..=2).contains(&tokens), "{tokens} tokens");
    assert_eq!(page.matches("<Blob>").count(), BYSTANDERS + 2 + tokens);
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_download_yields_the_old_bytes_whole_while_the_blob_is_overwritten_and_deleted() {
    const BYTES: usize = 48 * 1024 * 1024; // more than all buffers on the way hold
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let blob = server.service().container("isolation").await.blob("large");
    let old = witness::content(1, BYTES);
    blob.put(old.clone()).await.expect(201);
    let mut download = blob.get().open().await.unwrap();
    let mut found = download.frame().await.unwrap().unwrap().into_data().unwrap().to_vec();
    blob.put(witness::content(2, 100_000)).await.expect(201);
    blob.delete().await.expect(202);
    blob.get().await.refused(404, "BlobNotFound");
    blob.put("new").await.expect(201);
    within("the second blob's space to be given back", payload_becomes(directory.path(), BYTES as u64)).await;
    while let Some(frame) = download.frame().await {
        found.extend(frame.unwrap().into_data().unwrap());
    }
    assert!(found == old, "{} bytes: {:?}", found.len(), witness::seed_of(&found));
    payload_becomes(directory.path(), 0).await;
    assert_eq!(blob.get().await.expect(200).text(), "new");
}
