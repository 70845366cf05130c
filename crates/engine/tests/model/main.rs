//! The engine against a plain model: random steps from few names, with leases, conditions, a moving clock and restarts.
//! After every step the answers agree, after every restart and at the end everything stored does.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test ends where it fails; its numbers are small"
)]

mod rules;
mod steps;
mod world;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::access::{AccessControl, PublicAccess};
use lazuli_engine::blob::blocks::{self, BlockId};
use lazuli_engine::blob::container::{self, ContainerView, ListContainers};
use lazuli_engine::blob::listing::{self, Entry, ListBlobs, Shown};
use lazuli_engine::blob::object;
use lazuli_engine::blob::removal::{self, Snapshots};
use lazuli_engine::blob::{OnBlob, OnContainer, Written};
use lazuli_engine::clock::{Clock, HeldClock, Timestamp};
use lazuli_engine::condition::Conditions;
use lazuli_engine::etag::Etag;
use lazuli_engine::lease::{LeaseAction, LeaseId};
use lazuli_engine::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};
use lazuli_engine::payload::Staged;
use lazuli_engine::range::RangeRequest;
use lazuli_engine::{Durability, Engine, Error, Options, Refusal};
use proptest::prelude::*;

use steps::{BLOBS, CONTAINERS, Deed, Given, Name, On, Step, Wait};
use world::{World, http, metadata, stored};

/// What passes before every step. Longer than all commits of a step need ticks, so that the clock stays ahead of them.
const MOMENT: Duration = Duration::from_millis(2);

async fn open(directory: &Path, clock: &Arc<HeldClock>) -> Engine {
    let mut options = Options::new(directory, Arc::clone(clock) as Arc<dyn Clock>);
    options.durability = Durability::Process;
    options.cache_bytes = 4 * 1024 * 1024;
    options.reserve_bytes = 0;
    Engine::open(options).await.unwrap()
}

fn address(name: Name) -> ContainerAddress {
    ContainerAddress { account: AccountName::parse("model").unwrap(), container: ContainerName::parse(name).unwrap() }
}

fn on_container(name: Name, lease: Option<LeaseId>) -> OnContainer {
    OnContainer { address: address(name), conditions: Conditions::default(), lease }
}

fn plain(container: Name, blob: Name) -> On {
    On { container, blob, given: Given::Nothing, lease: None }
}

fn block(id: Name) -> BlockId {
    BlockId(id.into())
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
    world: World,
    last: Etag,
}

impl Pair {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400)));
        let engine = Some(open(directory.path(), &clock).await);
        Self { directory, clock, engine, world: World::default(), last: Etag::at(Timestamp::from_ticks(1)) }
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn wait(&self, wait: Wait) {
        let end = self.world.next_end(self.now()).map(|end| end.since(self.now()));
        let moment = Duration::from_millis(1);
        self.clock.advance(match (wait, end) {
            (Wait::Seconds(count), _) => Duration::from_secs(count) + MOMENT,
            (Wait::BeforeAnEnd, Some(end)) => end - moment,
            (Wait::AfterAnEnd, Some(end)) => end + moment,
            _ => MOMENT,
        });
    }

    fn on(&self, on: On) -> OnBlob {
        let blob = BlobName::parse(on.blob).unwrap();
        let address = BlobAddress { container: address(on.container), blob };
        OnBlob { conditions: self.world.conditions(on), lease: on.lease, ..OnBlob::at(address) }
    }

    async fn stage(&self, bytes: &[u8]) -> Staged {
        let mut stage = self.engine().payloads().stage(false, None);
        for part in bytes.chunks(50_000) {
            stage.write(Bytes::copy_from_slice(part)).await.unwrap();
        }
        stage.finish().await.unwrap()
    }

    /// The version that a write answered: newer than every one before and of this moment. Of a refused one, any.
    fn version(&mut self, written: &Result<Written, Refusal>) -> Etag {
        let Ok(written) = written else { return self.last };
        let (before, now, made) = (self.last.committed(), self.now(), written.etag.committed());
        assert!(before < made && now <= made && made < now.after(MOMENT), "{before:?} {now:?} {made:?}");
        self.last = written.etag;
        written.etag
    }

    async fn step(&mut self, step: &Step) {
        self.wait(step.wait);
        match step.deed.clone() {
            Deed::Restart => self.restart().await,
            Deed::Create(..) | Deed::DeleteContainer(..) | Deed::DescribeContainer(..) | Deed::LeaseContainer(..) => {
                self.container_step(step.deed.clone()).await;
            }
            Deed::Get(on) => {
                let got = answer(object::get(self.engine(), self.on(on)).await);
                let now = self.now();
                assert_eq!(got, self.world.readable(on, now).map(|thing| thing.view(on.blob, now)));
            }
            Deed::Download(on, range) => self.download(on, range).await,
            Deed::GetBlocks(on) => {
                let got = answer(blocks::get_block_list(self.engine(), self.on(on), true, true).await);
                let now = self.now();
                assert_eq!(got, self.world.block_lists(on, now));
            }
            Deed::List { container, prefix, delimiter, limit, uncommitted } => {
                let got = self.list(container, prefix, delimiter, limit, uncommitted).await;
                let now = self.now();
                assert_eq!(got, self.world.listing(container, prefix, delimiter, uncommitted, now));
            }
            write => self.blob_step(write).await,
        }
    }

    async fn container_step(&mut self, deed: Deed) {
        let now = self.now();
        match deed {
            Deed::Create(name, mark) => {
                let created = container::create(self.engine(), address(name), metadata(mark), PublicAccess::Private);
                let got = answer(created.await);
                let etag = self.version(&got);
                assert_eq!(got.map(|_| ()), self.world.create(name, mark, etag));
            }
            Deed::DeleteContainer(name, lease) => {
                let got = answer(container::delete(self.engine(), on_container(name, lease)).await);
                assert_eq!(got, self.world.delete_container(name, lease, now));
            }
            Deed::DescribeContainer(name, lease, mark) => {
                let set = container::set_metadata(self.engine(), on_container(name, lease), metadata(mark));
                let got = answer(set.await);
                let etag = self.version(&got);
                assert_eq!(got.map(|_| ()), self.world.describe_container(name, lease, mark, now, etag));
            }
            Deed::LeaseContainer(name, action) => {
                let got = answer(container::lease(self.engine(), on_container(name, None), action).await);
                assert_eq!(got, self.world.lease_container(name, action, now));
            }
            other => panic!("{other:?} is not about a container"),
        }
    }

    async fn blob_step(&mut self, deed: Deed) {
        let now = self.now();
        match deed {
            Deed::Put(on, mark, content) => {
                let staged = self.stage(&content.bytes()).await;
                let got = answer(object::put(self.engine(), self.on(on), stored(mark), staged).await);
                let etag = self.version(&got);
                assert_eq!(got.map(|_| ()), self.world.put(on, mark, content.bytes(), now, etag));
            }
            Deed::PutBlock(on, id, content) => {
                let staged = self.stage(&content.bytes()).await;
                let got = answer(blocks::put_block(self.engine(), self.on(on), block(id), staged).await);
                assert_eq!(got, self.world.put_block(on, &block(id), content.bytes(), now));
            }
            Deed::Commit(on, mark, list) => {
                let list: Vec<_> = list.into_iter().map(|(source, id)| (source, block(id))).collect();
                let commit = blocks::put_block_list(self.engine(), self.on(on), list.clone(), stored(mark));
                let got = answer(commit.await);
                let etag = self.version(&got);
                assert_eq!(got.map(|_| ()), self.world.commit(on, mark, &list, now, etag));
            }
            Deed::Describe(on, mark) => {
                let got = answer(object::set_metadata(self.engine(), self.on(on), metadata(mark)).await);
                let etag = self.version(&got);
                let expected = self.world.writable(on, now).map(|thing| {
                    (thing.metadata, thing.etag) = (metadata(mark), etag);
                });
                assert_eq!(got.map(|_| ()), expected);
            }
            Deed::SetHttp(on, mark) => {
                let got = answer(object::set_http(self.engine(), self.on(on), mark.map(http)).await);
                let etag = self.version(&got);
                let expected = self.world.writable(on, now).map(|thing| {
                    thing.http = mark.map_or_else(|| thing.http.clone(), http);
                    thing.etag = etag;
                });
                assert_eq!(got.map(|_| ()), expected);
            }
            Deed::Delete(on) => {
                let got = answer(removal::delete(self.engine(), self.on(on), Snapshots::Refuse).await);
                let expected = self.world.writable(on, now).map(|_| ());
                if expected.is_ok() {
                    self.world.room(on.container).unwrap().blobs.remove(on.blob);
                }
                assert_eq!(got.map(|_| ()), expected);
            }
            Deed::Lease(on, action) => {
                let got = answer(object::lease(self.engine(), self.on(on), action).await);
                assert_eq!(got, self.world.lease(on, action, now));
            }
            other => panic!("{other:?} writes no blob"),
        }
    }

    async fn download(&mut self, on: On, range: Option<(u64, Option<u64>)>) {
        let now = self.now();
        let asked = range.map(|(first, last)| RangeRequest { first, last });
        let got = answer(object::download(self.engine(), self.on(on), asked).await);
        let expected = self.world.readable(on, now).and_then(|thing| {
            let length = thing.content.len();
            let (first, last) = range.unwrap_or((0, None));
            if range.is_some() && first >= length as u64 {
                return Err(Refusal::RangeOutside { length: length as u64 });
            }
            let end = last.map_or(length, |last| length.min(last as usize + 1));
            Ok((thing.view(on.blob, now), thing.content[first as usize..end].to_vec()))
        });
        match (got, expected) {
            (Ok(mut download), Ok((view, bytes))) => {
                assert_eq!(download.blob, view);
                assert_eq!(download.range.map(|range| (range.first, range.length)), {
                    range.map(|(first, _)| (first, bytes.len() as u64))
                });
                let mut read = Vec::new();
                while let Some(part) = download.reader.next().await.unwrap() {
                    read.extend_from_slice(&part);
                }
                assert!(read == bytes, "{} bytes read, {} expected, or others", read.len(), bytes.len());
            }
            (got, expected) => assert_eq!(got.map(|_| ()), expected.map(|_| ())),
        }
    }

    /// All entries of a listing, page by page.
    async fn list(
        &self,
        container: Name,
        prefix: Name,
        delimiter: Option<Name>,
        limit: usize,
        uncommitted: bool,
    ) -> Result<Vec<Entry>, Refusal> {
        let mut request = ListBlobs {
            container: address(container),
            prefix: prefix.into(),
            delimiter: delimiter.map(str::to_owned),
            start: None,
            limit,
            from: None,
            before: None,
            shown: Shown { uncommitted, ..Shown::default() },
            tags: false,
        };
        let mut entries = Vec::new();
        loop {
            let page = answer(listing::list(self.engine(), request.clone()).await)?;
            assert!(page.entries.len() <= limit && (page.next.is_none() || page.entries.len() == limit), "{page:?}");
            entries.extend(page.entries);
            if page.next.is_none() {
                return Ok(entries);
            }
            request.start = page.next;
        }
    }

    async fn restart(&mut self) {
        self.engine.take().unwrap().close().await;
        self.engine = Some(open(self.directory.path(), &self.clock).await);
        self.compare().await;
    }

    /// Compares everything that is stored.
    async fn compare(&mut self) {
        let now = self.now();
        let account = address(CONTAINERS[0]).account;
        let request =
            ListContainers { account, prefix: String::new(), start: None, limit: 10, deleted: false, system: true };
        let listed = container::list(self.engine(), request).await.unwrap().containers;
        let expected = self.world.containers.iter().map(|(name, room)| ContainerView {
            name: ContainerName::parse(name).unwrap(),
            etag: room.etag,
            lease: room.hold.view(now),
            access: AccessControl::default(),
            metadata: room.metadata.clone(),
            deleted: None,
        });
        assert_eq!(listed, expected.collect::<Vec<_>>());
        for container in CONTAINERS {
            let listed = self.list(container, "", None, 3, true).await;
            assert_eq!(listed, self.world.listing(container, "", None, true, now));
            for blob in BLOBS {
                let on = plain(container, blob);
                self.download(on, None).await;
                let lists = answer(blocks::get_block_list(self.engine(), self.on(on), true, true).await);
                assert_eq!(lists, self.world.block_lists(on, now));
            }
        }
    }

    /// Deletes all containers, whoever leases them, and lets the engine tidy up: nothing may be left.
    async fn leave_nothing(&mut self) {
        for name in CONTAINERS {
            self.clock.advance(MOMENT);
            let _ =
                container::lease(self.engine(), on_container(name, None), LeaseAction::Break { period: Some(0) }).await;
            let _ = container::delete(self.engine(), on_container(name, None)).await;
        }
        self.engine().settle().await.unwrap();
        let left = self.engine().census().unwrap();
        assert_eq!(left, [], "rows left over");
    }
}

/// More of them in the long run of the tests.
fn config() -> ProptestConfig {
    let cases = if std::env::var_os("LAZULI_LONG").is_some() { 1000 } else { 48 };
    ProptestConfig { cases, max_shrink_time: 60_000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_engine_does_what_the_model_does(steps in steps::any_steps(160)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut pair = Pair::new().await;
            for (number, step) in steps.iter().enumerate() {
                let happened = std::panic::AssertUnwindSafe(pair.step(step));
                if let Err(panic) = futures_util::FutureExt::catch_unwind(happened).await {
                    eprintln!("step {number}: {step:?}");
                    std::panic::resume_unwind(panic);
                }
            }
            pair.compare().await;
            pair.restart().await;
            pair.leave_nothing().await;
        });
    }
}
