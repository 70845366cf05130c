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

mod layers;
mod rules;
mod steps;
mod world;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::access::AccessControl;
use lazuli_engine::blob::Deletion;
use lazuli_engine::blob::blocks::{self, BlockId};
use lazuli_engine::blob::container::{self, ContainerView, ListContainers, NewContainer};
use lazuli_engine::blob::listing::{self, Entry, ListBlobs, Shown};
use lazuli_engine::blob::object;
use lazuli_engine::blob::removal;
use lazuli_engine::blob::snapshot;
use lazuli_engine::blob::{OnBlob, OnContainer, Written};
use lazuli_engine::clock::{Clock, HeldClock, Timestamp};
use lazuli_engine::condition::Conditions;
use lazuli_engine::etag::Etag;
use lazuli_engine::lease::{LeaseAction, LeaseId};
use lazuli_engine::names::{AccountName, BlobAddress, BlobName, ContainerAddress, ContainerName};
use lazuli_engine::payload::Staged;
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::range::RangeRequest;
use lazuli_engine::service::properties::{Change, DeleteRetention};
use lazuli_engine::service::{self, ServiceKind};
use lazuli_engine::store::Space;
use lazuli_engine::{Durability, Engine, Error, Options, Refusal};
use proptest::prelude::*;

use layers::Keep;
use steps::{BLOBS, CONTAINERS, Deed, Given, Name, On, Step, Wait};
use world::{Room, World, http, metadata, stored};

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
    On { container, blob, given: Given::Nothing, lease: None, layer: None }
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

/// Whether the engine did at `at` what the step at `about` asked for.
fn is_about(at: Timestamp, about: Timestamp) -> bool {
    about <= at && at < about.after(MOMENT)
}

/// Overwrites a deletion with that of the model if they agree but for some ticks.
fn match_deletions(got: &mut Option<Deletion>, expected: Option<Deletion>) {
    if let (Some(deletion), Some(expected)) = (*got, expected)
        && is_about(deletion.at, expected.at)
        && deletion.until.since(deletion.at) == expected.until.since(expected.at)
    {
        *got = Some(expected);
    }
}

/// The engine and the model, side by side.
struct Pair {
    directory: tempfile::TempDir,
    clock: Arc<HeldClock>,
    engine: Option<Engine>,
    world: World,
    last: Etag,
    /// Days that may still pass: less than a week, after which uncommitted blocks go when the clockwork comes by.
    days_left: u64,
}

impl Pair {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400)));
        let engine = Some(open(directory.path(), &clock).await);
        Self {
            directory,
            clock,
            engine,
            world: World::default(),
            last: Etag::at(Timestamp::from_ticks(1)),
            days_left: 6,
        }
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn wait(&mut self, wait: Wait) {
        let end = self.world.next_end(self.now()).map(|end| end.since(self.now()));
        let moment = Duration::from_millis(1);
        self.clock.advance(match (wait, end) {
            (Wait::Seconds(count), _) => Duration::from_secs(count) + MOMENT,
            (Wait::BeforeAnEnd, Some(end)) => end - moment,
            (Wait::AfterAnEnd, Some(end)) => end + moment,
            (Wait::Days(count), _) => {
                let count = count.min(self.days_left);
                self.days_left -= count;
                Duration::from_secs(count * 86_400) + MOMENT
            }
            _ => MOMENT,
        });
    }

    fn on(&self, on: On) -> OnBlob {
        let blob = BlobName::parse(on.blob).unwrap();
        let address = BlobAddress { container: address(on.container), blob };
        let (part, conditions) = (self.world.part(on), self.world.conditions(on));
        OnBlob { part, conditions, lease: on.lease, ..OnBlob::at(address) }
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
        self.world.prune(self.now());
        match step.deed.clone() {
            Deed::Restart => self.restart().await,
            Deed::Create(..)
            | Deed::DeleteContainer(..)
            | Deed::DescribeContainer(..)
            | Deed::LeaseContainer(..)
            | Deed::RestoreContainer(..) => self.container_step(step.deed.clone()).await,
            Deed::Keep(versioning, blob_days, container_days) => {
                self.keep(Keep { versioning, blob_days, container_days }).await;
            }
            Deed::Get(on) => {
                let got = answer(object::get(self.engine(), self.on(on)).await);
                let now = self.now();
                assert_eq!(got, self.world.readable(on, now).map(|(thing, part)| thing.view(on.blob, part, now)));
            }
            Deed::Download(on, range) => self.download(on, range).await,
            Deed::GetBlocks(on) => {
                let got = answer(blocks::get_block_list(self.engine(), self.on(on), true, true).await);
                let now = self.now();
                assert_eq!(got, self.world.block_lists(on, now));
            }
            Deed::List { container, prefix, delimiter, limit, shown } => {
                self.compare_listing(container, prefix, delimiter, limit, shown).await;
            }
            Deed::Delete(..) | Deed::Snapshot(..) | Deed::Undelete(..) => self.layer_step(step.deed.clone()).await,
            write => self.blob_step(write).await,
        }
    }

    async fn container_step(&mut self, deed: Deed) {
        let now = self.now();
        match deed {
            Deed::Create(name, mark) => {
                let new = NewContainer { metadata: metadata(mark), ..NewContainer::default() };
                let created = container::create(self.engine(), address(name), new);
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
            Deed::RestoreContainer(pick) => self.restore_container(pick).await,
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
                let expected = self.world.describe(on, mark, now, etag);
                assert_eq!(got.map(|_| ()), expected);
            }
            Deed::SetHttp(on, mark) => {
                let got =
                    answer(object::set_http(self.engine(), self.on(on), mark.map(http)).await.map(|set| set.written));
                let etag = self.version(&got);
                let expected = self.world.writable(on, now).map(|thing| {
                    thing.http = mark.map_or_else(|| thing.http.clone(), http);
                    thing.etag = etag;
                });
                assert_eq!(got.map(|_| ()), expected);
            }
            Deed::Lease(on, action) => {
                let got = answer(object::lease(self.engine(), self.on(on), action).await);
                assert_eq!(got, self.world.lease(on, action, now));
            }
            other => panic!("{other:?} writes no blob"),
        }
    }

    async fn layer_step(&mut self, deed: Deed) {
        let now = self.now();
        match deed {
            Deed::Delete(on, snapshots) => {
                let got = answer(removal::delete(self.engine(), self.on(on), snapshots).await);
                assert_eq!(got, self.world.delete(on, snapshots, now));
            }
            Deed::Snapshot(on, mark) => {
                let got = answer(snapshot::take(self.engine(), self.on(on), mark.map(metadata)).await);
                if let Ok(taken) = got {
                    let _ = self.version(&Ok(Written { etag: Etag::at(taken.at), version: None }));
                }
                assert_eq!(got.map(|_| ()), self.world.snapshot(on, mark, now, got.as_ref().ok()));
            }
            Deed::Undelete(on) => {
                let got = answer(removal::undelete(self.engine(), self.on(on)).await);
                let expected = self.world.undelete(on);
                assert_eq!(got, expected.map(|_| ()));
                if expected == Ok(true) {
                    let plain = plain(on.container, on.blob);
                    let etag = object::get(self.engine(), self.on(plain)).await.unwrap().etag;
                    let _ = self.version(&Ok(Written { etag, version: None }));
                    self.world.room(on.container).unwrap().blobs.get_mut(on.blob).unwrap().etag = etag;
                }
            }
            other => panic!("{other:?} is not about layers"),
        }
    }

    /// Sets what the account keeps.
    async fn keep(&mut self, keep: Keep) {
        self.world.keep = keep;
        self.set_policy();
        let account = address(CONTAINERS[0]).account;
        let delete_retention = DeleteRetention { days: keep.blob_days, allow_permanent: false };
        let change = Change { delete_retention: Some(delete_retention), ..Change::default() };
        service::set(self.engine(), account, ServiceKind::Blob, change).await.unwrap();
    }

    /// Versioning and the retention of containers are not in the data: a restart must say them again.
    fn set_policy(&self) {
        let Keep { versioning, container_days, .. } = self.world.keep;
        let policy = AccountPolicy { versioning, container_retention_days: container_days, ..AccountPolicy::default() };
        self.engine().set_policies(Policies::default().with(address(CONTAINERS[0]).account, policy));
    }

    async fn restore_container(&mut self, pick: u8) {
        let Some(grave) = self.world.grave(pick) else { return };
        let (name, about) = (self.world.graves[grave].name, self.world.graves[grave].deletion.at);
        let deleted = self.containers().await.into_iter().filter_map(|view| Some((view.name, view.deleted?.at)));
        let found = deleted.filter(|(found, at)| found.as_str() == name && is_about(*at, about)).map(|(_, at)| at);
        let [at] = found.collect::<Vec<_>>()[..] else { panic!("{name} of {about:?} is not listed once") };
        let got = answer(container::restore(self.engine(), address(name), at).await);
        assert_eq!(got, self.world.restore(grave));
    }

    /// All containers, those that can be restored too.
    async fn containers(&self) -> Vec<ContainerView> {
        let account = address(CONTAINERS[0]).account;
        let mut request =
            ListContainers { account, prefix: String::new(), start: None, limit: 2, deleted: true, system: true };
        let mut containers = Vec::new();
        loop {
            let page = container::list(self.engine(), request.clone()).await.unwrap();
            containers.extend(page.containers);
            assert!(containers.len() < 1000, "a listing without an end: {request:?}");
            match page.next {
                Some(next) => request.start = Some(next),
                None => return containers,
            }
        }
    }

    async fn compare_listing(
        &mut self,
        container: Name,
        prefix: Name,
        delimiter: Option<Name>,
        limit: usize,
        shown: Shown,
    ) {
        let mut got = self.list(container, prefix, delimiter, limit, shown).await;
        let now = self.now();
        let expected = self.world.listing(container, prefix, delimiter, shown, now);
        if let (Ok(got), Ok(expected)) = (&mut got, &expected) {
            for (got, expected) in got.iter_mut().zip(expected) {
                if let (Entry::Blob(got), Entry::Blob(expected)) = (got, expected) {
                    match_deletions(&mut got.deleted, expected.deleted);
                }
            }
        }
        assert_eq!(got, expected);
    }

    async fn download(&mut self, on: On, range: Option<(u64, Option<u64>)>) {
        let now = self.now();
        let asked = range.map(|(first, last)| RangeRequest { first, last });
        let got = answer(object::download(self.engine(), self.on(on), asked).await);
        let expected = self.world.readable(on, now).and_then(|(thing, part)| {
            let length = thing.content.len();
            let (first, last) = range.unwrap_or((0, None));
            if range.is_some() && first >= length as u64 {
                return Err(Refusal::RangeOutside { length: length as u64 });
            }
            let end = last.map_or(length, |last| length.min(last as usize + 1));
            Ok((thing.view(on.blob, part, now), thing.content[first as usize..end].to_vec()))
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
        shown: Shown,
    ) -> Result<Vec<Entry>, Refusal> {
        let mut request = ListBlobs {
            container: address(container),
            prefix: prefix.into(),
            delimiter: delimiter.map(str::to_owned),
            start: None,
            limit,
            from: None,
            before: None,
            shown,
            tags: false,
        };
        let mut entries = Vec::new();
        loop {
            let page = answer(listing::list(self.engine(), request.clone()).await)?;
            assert!(page.entries.len() <= limit && (page.next.is_none() || page.entries.len() == limit), "{page:?}");
            entries.extend(page.entries);
            assert!(entries.len() < 10_000, "a listing without an end: {request:?}");
            if page.next.is_none() {
                return Ok(entries);
            }
            request.start = page.next;
        }
    }

    async fn restart(&mut self) {
        self.engine.take().unwrap().close().await;
        self.engine = Some(open(self.directory.path(), &self.clock).await);
        self.set_policy();
        self.compare().await;
    }

    /// Compares everything that is stored.
    async fn compare(&mut self) {
        let now = self.now();
        self.compare_containers().await;
        for container in CONTAINERS {
            let all = Shown { uncommitted: true, snapshots: true, versions: true, deleted: true, ..Shown::default() };
            self.compare_listing(container, "", None, 3, all).await;
            for blob in BLOBS {
                let on = plain(container, blob);
                self.download(on, None).await;
                let layers = self.world.containers.get(container).and_then(|room| room.layers.get(blob));
                for layer in 0..layers.map_or(0, Vec::len) {
                    self.download(On { layer: Some(layer as u8), ..on }, None).await;
                }
                let lists = answer(blocks::get_block_list(self.engine(), self.on(on), true, true).await);
                assert_eq!(lists, self.world.block_lists(on, now));
            }
        }
    }

    async fn compare_containers(&mut self) {
        let now = self.now();
        let mut listed = self.containers().await;
        let view = |name: Name, room: &Room, deleted| ContainerView {
            name: ContainerName::parse(name).unwrap(),
            etag: room.etag,
            lease: room.hold.view(now),
            access: AccessControl::default(),
            metadata: room.metadata.clone(),
            scope: lazuli_engine::encryption::DefaultScope::default(),
            deleted,
        };
        let mut expected = Vec::new();
        for name in CONTAINERS {
            let graves = self.world.graves.iter().filter(|grave| grave.name == name);
            expected.extend(graves.map(|grave| view(name, &grave.room, Some(grave.deletion))));
            expected.extend(self.world.containers.get(name).map(|room| view(name, room, None)));
        }
        for (listed, expected) in listed.iter_mut().zip(&expected) {
            match_deletions(&mut listed.deleted, expected.deleted);
        }
        assert_eq!(listed, expected);
    }

    /// Deletes all containers, whoever leases them, and lets the engine tidy up: nothing may be left.
    async fn leave_nothing(&mut self) {
        self.keep(Keep::default()).await;
        for name in CONTAINERS {
            self.clock.advance(MOMENT);
            let _ =
                container::lease(self.engine(), on_container(name, None), LeaseAction::Break { period: Some(0) }).await;
            let _ = container::delete(self.engine(), on_container(name, None)).await;
        }
        self.clock.advance(Duration::from_secs(3 * 86_400));
        self.engine().settle().await.unwrap();
        let mut left = self.engine().census().unwrap();
        left.retain(|(space, _)| *space != Space::Services);
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
