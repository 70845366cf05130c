//! The change feed of the real service: read like any container, written by nobody, and exact through kills.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use lazuli_engine::policy::AccountPolicy;
use lazuli_tests::harness::{Container, Lazuli};
use lazuli_tests::process::{Server, Start, within};
use lazuli_tests::random::Random;

const FEED: &str = "$blobchangefeed";
const WRITERS: usize = 8;
const ROUNDS: usize = 3;

#[tokio::test]
async fn clients_read_the_feed_and_do_not_write_it() {
    let lazuli = Lazuli::start().await;
    lazuli.set_policy(AccountPolicy { change_feed: true, ..AccountPolicy::default() });
    lazuli.container("photos").await.blob("a").put("one").await.expect(201);
    lazuli.clock.advance(Duration::from_secs(2));
    lazuli.settle().await;
    let feed = lazuli.existing(FEED);
    let listed = feed.list("").await.expect(200).text();
    assert_eq!(listed.matches("<BlobType>AppendBlob</BlobType>").count(), 1, "{listed}");
    assert_eq!(listed.matches("<Name>").count(), 3, "{listed}");
    let start = listed.find("<Name>log/").unwrap() + "<Name>".len();
    let name = listed.get(start..).unwrap().split('<').next().unwrap();
    let log = feed.blob(name);
    let read = log.get().await.expect(200);
    assert!(read.body.starts_with(b"Obj\x01") && read.text().contains("/containers/photos/blobs/a"));
    let services = |query: &str| lazuli.client().request("GET", format!("/devstoreaccount1?comp=list{query}"));
    assert!(!services("").await.expect(200).text().contains(FEED));
    assert!(services("&include=system").await.expect(200).text().contains(FEED));

    let put = |query: &str| log.request("PUT", query);
    let writes = [
        log.put("x"),
        log.append("x"),
        log.create_append(),
        log.seal(),
        log.delete(),
        log.set_metadata("a", "b"),
        log.acquire_lease(15),
        log.put_block("1", "x"),
        put("?comp=snapshot"),
        put("?comp=undelete"),
        put("?comp=tier").header("x-ms-access-tier", "Cool"),
        put("?comp=tags").body("<Tags><TagSet/></Tags>"),
        feed.blob("mine").put("x"),
        feed.blob("mine").request("PUT", "").header("x-ms-copy-source", "http://host/a/b"),
    ];
    for write in writes {
        write.await.refused(409, "SystemInUse");
    }
    feed.create().await.refused(400, "InvalidResourceName");
    feed.delete().await.refused(400, "InvalidResourceName");
    assert_eq!(log.get().await.expect(200).body, read.body);
}

async fn start(directory: &Path) -> Server {
    let config = directory.join("lazuli.toml");
    std::fs::write(&config, "[accounts.devstoreaccount1]\nchange_feed = true\n").unwrap();
    Start::at(&directory.join("data")).argument("--config").argument(&config).ready().await
}

/// Puts blobs of names that are never repeated until the connection breaks; answers which were acknowledged.
async fn put(container: Container, next: Arc<AtomicU64>) -> Vec<u64> {
    let mut told = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Ok(answer) = container.blob(&format!("{number:08}")).put("x").attempt().await else { return told };
        answer.expect(201);
        told.push(number);
    }
}

/// How often the feed tells of each blob of the container.
async fn told(server: &Server) -> BTreeMap<u64, usize> {
    let feed = server.service().existing(FEED);
    let listed = feed.list("&prefix=log/").await.expect(200).text();
    let mut told = BTreeMap::new();
    for part in listed.split("<Name>").skip(1) {
        let log = feed.blob(part.split('<').next().unwrap()).get().await.expect(200);
        let text = String::from_utf8_lossy(&log.body).into_owned();
        for subject in text.split("/containers/kill/blobs/").skip(1) {
            *told.entry(subject.get(..8).unwrap().parse().unwrap()).or_default() += 1;
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_minus_nine_neither_loses_nor_repeats_nor_invents_a_record() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new();
    let mut server = start(directory.path()).await;
    server.service().container("kill").await;
    let next = Arc::new(AtomicU64::new(0));
    let mut acknowledged = Vec::new();
    for _ in 0..ROUNDS {
        let container = server.service().existing("kill");
        let writing: Vec<_> = (0..WRITERS).map(|_| tokio::spawn(put(container.clone(), Arc::clone(&next)))).collect();
        tokio::time::sleep(Duration::from_millis(random.between(1100, 1900))).await; // the moment is the test's input
        server.kill().await;
        for put in within("the writers to notice", join_all(writing)).await {
            acknowledged.extend(put.unwrap());
        }
        server = start(directory.path()).await;
    }
    assert!(acknowledged.len() > ROUNDS * WRITERS, "too light a load to prove anything");
    let kept = server.service().existing("kill");
    let last = next.fetch_add(1, Ordering::Relaxed);
    kept.blob(&format!("{last:08}")).put("x").await.expect(201);
    let complete = async {
        loop {
            let told = told(&server).await;
            if told.contains_key(&last) {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let told = within("the last change to be told", complete).await;
    for number in &acknowledged {
        assert_eq!(told.get(number), Some(&1), "{number} was acknowledged");
    }
    for (number, times) in told {
        assert_eq!(times, 1, "{number}");
        kept.blob(&format!("{number:08}")).head().await.expect(200);
    }
    assert!(server.terminate().await.status.success());
}
