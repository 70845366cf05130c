//! `kill -9` of the real process under transfers between the entities of a partition, again and again: no sum is ever
//! seen torn, no answered transfer is lost, and none that was not answered is half done.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use std::time::Duration;

use futures_util::future::join_all;
use lazuli_tests::process::{Start, within};
use lazuli_tests::random::Random;
use lazuli_tests::signed::{Answer, Unanswered};
use lazuli_tests::tables::{Table, Tables, values};

const ACCOUNTS: u64 = 8;
const BALANCE: i64 = 1000;
const WORKERS: usize = 12;
const SCANS: usize = 2;

/// Rounds of load and kill.
fn rounds() -> usize {
    if std::env::var_os("LAZULI_LONG").is_some() { 50 } else { 5 }
}

/// Somebody who transfers, and notes with each transfer how many there were.
#[derive(Debug)]
struct Worker {
    name: String,
    random: Random,
    /// Transfers that were answered with success.
    done: i64,
    /// Whether one more was sent and not answered.
    in_doubt: bool,
}

impl Worker {
    /// Transfers until the connection breaks.
    async fn work(mut self, tables: Tables, bank: Table) -> Self {
        while self.transfer(&tables, &bank).await.is_ok() {}
        self
    }

    async fn transfer(&mut self, tables: &Tables, bank: &Table) -> Result<(), Unanswered> {
        let from = self.random.below(ACCOUNTS);
        let to = (from + self.random.between(1, ACCOUNTS - 1)) % ACCOUNTS;
        let mut parts = Vec::new();
        for (account, by) in [(from, -1), (to, 1)] {
            let account = bank.entity("p", &format!("account-{account}"));
            let answer = account.get().attempt().await?.expect(200);
            let changed = format!("{{\"n\":{}}}", number(&lazuli_tests::tables::json(&answer)) + by);
            parts.push(account.part("PATCH", &format!("If-Match: {}\r\n", answer.etag()), &changed));
        }
        let noted = format!("{{\"n\":{}}}", self.done + 1);
        parts.push(bank.entity("p", &self.name).part("PUT", "", &noted));
        self.in_doubt = true;
        let answer = tables.batch(&parts).attempt().await?.expect(202).text();
        self.in_doubt = false;
        match answer.matches("HTTP/1.1 204").count() {
            3 => self.done += 1,
            _ => assert!(answer.contains("HTTP/1.1 412") && answer.contains("UpdateConditionNotSatisfied"), "{answer}"),
        }
        Ok(())
    }

    /// Compares what was noted last with what is known.
    fn check(&mut self, noted: i64) {
        let known = self.done..=self.done + i64::from(self.in_doubt);
        assert!(known.contains(&noted), "{}: {noted} transfers, not {known:?}", self.name);
        (self.done, self.in_doubt) = (noted, false);
    }
}

fn number(entity: &serde_json::Value) -> i64 {
    entity["n"].as_i64().unwrap()
}

/// The balances in an answer, which must be all there is, and what the workers noted.
fn balances(answer: &Answer) -> Vec<(String, i64)> {
    let entities = values(answer);
    let all = entities.iter().map(|entity| (entity["RowKey"].as_str().unwrap().to_owned(), number(entity)));
    let (balances, notes): (Vec<_>, Vec<_>) = all.partition(|(row, _)| row.starts_with("account-"));
    assert_eq!(balances.len() as u64, ACCOUNTS);
    let sum = balances.iter().map(|(_, balance)| balance).sum::<i64>();
    assert_eq!(sum, BALANCE * ACCOUNTS as i64, "{balances:?}");
    notes
}

/// Scans until the connection breaks; answers how often.
async fn scan(bank: Table) -> usize {
    let mut scans = 0;
    while let Ok(answer) = bank.query("").attempt().await {
        balances(&answer.expect(200));
        scans += 1;
    }
    scans
}

#[tokio::test(flavor = "multi_thread")]
async fn transfers_in_a_partition_keep_their_sum_over_any_number_of_kills() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new();
    let mut server = Start::at(directory.path()).ready().await;
    let bank = server.tables().table("bank").await;
    for account in 0..ACCOUNTS {
        let account = bank.entity("p", &format!("account-{account}"));
        account.put(&format!("{{\"n\":{BALANCE}}}")).await.expect(204);
    }
    let worker = |number| Worker { name: format!("worker-{number}"), random: random.fork(), done: 0, in_doubt: false };
    let mut workers: Vec<_> = (0..WORKERS).map(worker).collect();
    let mut scans = 0;
    for _ in 0..rounds() {
        let tables = server.tables();
        let bank = || tables.existing("bank");
        let working: Vec<_> =
            workers.into_iter().map(|worker| tokio::spawn(worker.work(tables.clone(), bank()))).collect();
        let scanning: Vec<_> = (0..SCANS).map(|_| tokio::spawn(scan(bank()))).collect();
        tokio::time::sleep(Duration::from_millis(random.between(200, 1100))).await; // the moment is the test's input
        server.kill().await;
        let worked = within("the workers to notice", join_all(working)).await;
        workers = worked.into_iter().map(Result::unwrap).collect();
        let scanned = within("the scans to notice", join_all(scanning)).await;
        scans += scanned.into_iter().map(Result::unwrap).sum::<usize>();
        server = Start::at(directory.path()).ready().await;
        let notes = balances(&server.tables().existing("bank").query("").await.expect(200));
        for worker in &mut workers {
            let noted = notes.iter().find(|(name, _)| *name == worker.name);
            worker.check(noted.map_or(0, |(_, noted)| *noted));
        }
    }
    let done = workers.iter().map(|worker| worker.done).sum::<i64>();
    println!("{done} transfers, {scans} scans");
    assert!(done > (rounds() * WORKERS) as i64, "only {done} transfers: too light a load to prove anything");
    assert!(scans > rounds() * SCANS, "only {scans} scans: too light a load to prove anything");
    assert!(server.terminate().await.status.success());
}
