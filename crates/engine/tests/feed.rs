//! The change feed: one record for each change, in order, once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test ends where it fails"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_engine::blob::blocks::BlockSource::Latest;
use lazuli_engine::blob::copy::{self, CopyKind, CopyRequest};
use lazuli_engine::blob::listing::{self, Entry, ListBlobs, Shown};
use lazuli_engine::blob::pages::{self, SetPages};
use lazuli_engine::blob::removal::{self, Snapshots};
use lazuli_engine::blob::{OnBlob, Part, Requested, Stored, append, object, snapshot, tags, tiering};
use lazuli_engine::clock::{HeldClock, TICKS_PER_SECOND};
use lazuli_engine::names::{BlobAddress, BlobName};
use lazuli_engine::policy::{AccountPolicy, Policies};
use lazuli_engine::properties::{HttpProperties, Metadata};
use lazuli_engine::protection::Protection;
use lazuli_engine::service::properties::{Change, DeleteRetention};
use lazuli_engine::service::{self, ServiceKind};
use lazuli_engine::store::Space;
use lazuli_engine::tags::Tags;
use lazuli_engine::tier::Tier;
use lazuli_engine::{Engine, Options};
use support::*;
use uuid::Uuid;

fn set_feed(engine: &Engine, change_feed: bool, versioning: bool) {
    let policy = AccountPolicy { change_feed, versioning, ..AccountPolicy::default() };
    engine.set_policies(Policies::default().with(at("photos").account, policy));
}

async fn fed() -> (Engine, Arc<HeldClock>) {
    let (engine, clock) = engine().await;
    set_feed(&engine, true, false);
    (engine, clock)
}

fn file(name: &str) -> OnBlob {
    OnBlob::at(BlobAddress { container: at("$blobchangefeed"), blob: BlobName::parse(name).unwrap() })
}

async fn text(engine: &Engine, name: &str) -> String {
    String::from_utf8(read(engine, file(name)).await.unwrap()).unwrap()
}

/// Lets everything be appended that happened so far.
async fn published(engine: &Engine, clock: &HeldClock) {
    clock.advance(seconds(2));
    engine.settle().await.unwrap();
}

async fn files(engine: &Engine, prefix: &str) -> Vec<String> {
    let request = ListBlobs {
        container: at("$blobchangefeed"),
        prefix: prefix.into(),
        delimiter: None,
        from: None,
        before: None,
        start: None,
        limit: 1000,
        shown: Shown::default(),
        tags: false,
    };
    let page = listing::list(engine, request).await.unwrap();
    page.entries.iter().map(name_of).collect()
}

fn name_of(entry: &Entry) -> String {
    match entry {
        Entry::Blob(blob) => blob.name.to_string(),
        other => panic!("{other:?} is no file"),
    }
}

/// What a record says, of what is not the same in all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    event: String,
    api: String,
    subject: String,
    length: i64,
    said: BTreeMap<&'static str, String>,
}

/// Reads the binary form of the records, field by field as the schema of the feed names them.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn long(&mut self) -> i64 {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.0[0];
            self.0 = &self.0[1..];
            value |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                return (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
            }
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = usize::try_from(self.long()).unwrap();
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes.to_vec()
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    fn optional(&mut self) -> Option<String> {
        (self.long() == 1).then(|| self.text())
    }

    fn map(&mut self) -> BTreeMap<String, String> {
        let mut map = BTreeMap::new();
        if self.long() == 1 {
            for _ in 0..self.long() {
                let name = self.text();
                map.insert(name, self.text());
            }
            assert_eq!(self.long(), 0);
        }
        map
    }

    fn record(&mut self) -> (String, Record) {
        assert_eq!(self.long(), 4);
        assert!(self.text().ends_with("/providers/Microsoft.Storage/storageAccounts/dev"));
        let (subject, event) = (self.text(), self.text());
        let mut said = BTreeMap::new();
        said.insert("time", self.text());
        Uuid::parse_str(&self.text()).unwrap();
        let (api, client, request) = (self.text(), self.text(), self.text());
        said.insert("client", client);
        said.insert("request", request);
        said.insert("etag", self.text());
        said.insert("type", self.text());
        let length = self.long();
        said.insert("kind", self.text());
        said.extend(self.optional().map(|text| ("version", text)));
        assert_eq!(self.optional(), None);
        said.extend(self.optional().map(|text| ("tier", text)));
        assert_eq!(self.text(), "");
        let sequencer = self.text();
        said.insert("previous", format!("{:?}", self.map()));
        said.extend(self.optional().map(|text| ("snapshot", text)));
        assert_eq!(self.long(), 0);
        said.insert("operation", format!("{:?}", self.map()));
        assert_eq!(self.long(), 0);
        (sequencer, Record { event, api, subject, length, said })
    }
}

/// The records of a file. Those of one file are in order.
fn records(content: &[u8]) -> Vec<Record> {
    let mut reader = Reader(content);
    assert_eq!(&reader.0[..4], b"Obj\x01");
    reader.0 = &reader.0[4..];
    for _ in 0..reader.long() {
        reader.text();
        reader.bytes();
    }
    assert_eq!(reader.long(), 0);
    let (marker, rest) = reader.0.split_at(16);
    reader.0 = rest;
    let (mut all, mut last) = (Vec::new(), String::new());
    while !reader.0.is_empty() {
        let count = reader.long();
        let bytes = reader.bytes();
        let mut block = Reader(&bytes);
        for _ in 0..count {
            let (sequencer, record) = block.record();
            assert!(sequencer.len() == 48 && last < sequencer);
            last = sequencer;
            all.push(record);
        }
        assert!(block.0.is_empty());
        let (end, rest) = reader.0.split_at(16);
        assert_eq!(end, marker);
        reader.0 = rest;
    }
    all
}

/// A copy that takes everything along.
fn whole() -> CopyRequest {
    CopyRequest {
        kind: CopyKind::Start,
        id: Uuid::from_u128(1),
        url: "http://host/dev/photos/log".into(),
        http: HttpProperties::default(),
        keep_http: true,
        metadata: None,
        tags: Some(Tags::default()),
        scope: None,
        tier: None,
        protection: Protection::default(),
        seal: None,
    }
}

/// All records of the feed.
async fn feed(engine: &Engine) -> Vec<Record> {
    let mut all = Vec::new();
    for name in files(engine, "log/").await {
        all.extend(records(&read(engine, file(&name)).await.unwrap()));
    }
    all
}

fn told(records: &[Record]) -> Vec<(&str, &str)> {
    records.iter().map(|record| (record.event.as_str(), record.api.as_str())).collect()
}

#[tokio::test]
async fn every_change_of_a_blob_has_its_record() {
    let (engine, clock) = fed().await;
    let retention = DeleteRetention { days: Some(1), allow_permanent: true };
    let change = Change { delete_retention: Some(retention), ..Change::default() };
    service::set(&engine, at("photos").account, ServiceKind::Blob, change).await.unwrap();
    let request = Requested { id: Uuid::from_u128(7), client: "mine".into() };
    let http = HttpProperties { content_type: Some("text/plain".into()), ..HttpProperties::default() };
    let stored = Stored { http: http.clone(), ..Stored::default() };
    let from = OnBlob { request: Some(request), ..on("a") };
    let put = object::put(&engine, from, stored, staged(&engine, "hello").await).await.unwrap();
    put_block(&engine, on("a"), "x", "hello world").await.unwrap();
    commit(&engine, on("a"), &[(Latest, "x")]).await.unwrap();
    object::set_metadata(&engine, on("a"), Metadata(vec![("a".into(), "b".into())])).await.unwrap();
    object::set_http(&engine, on("a"), Some(http)).await.unwrap();
    let tag = Tags::new(vec![("a".into(), "b".into())]).unwrap();
    tags::set(&engine, on("a"), tag).await.unwrap();
    let taken = snapshot::take(&engine, on("a"), None).await.unwrap();
    for tier in [Tier::Cool, Tier::Archive, Tier::Hot] {
        tiering::set(&engine, on("a"), tier, false).await.unwrap();
    }
    append::create(&engine, on("log"), Stored::default()).await.unwrap();
    append::append(&engine, on("log"), append::AppendConditions::default(), staged(&engine, "x").await).await.unwrap();
    pages::create(&engine, on("disk"), Stored::default(), 1024, 0).await.unwrap();
    pages::set(&engine, on("disk"), SetPages { length: Some(512), ..SetPages::default() }).await.unwrap();
    copy::copy(&engine, on("log"), on("copy"), whole()).await.unwrap();
    let part = OnBlob { part: Part::Snapshot(taken.at), ..on("a") };
    removal::delete(&engine, part, Snapshots::Refuse).await.unwrap();
    delete(&engine, on("a")).await.unwrap();
    removal::undelete(&engine, on("a")).await.unwrap();
    assert_eq!(refusal(object::set_http(&engine, on("absent"), None).await), lazuli_engine::Refusal::BlobNotFound);
    published(&engine, &clock).await;

    let records = feed(&engine).await;
    let expected = [
        ("BlobCreated", "PutBlob"),
        ("BlobCreated", "PutBlockList"),
        ("BlobPropertiesUpdated", "SetBlobMetadata"),
        ("BlobPropertiesUpdated", "SetBlobProperties"),
        ("BlobPropertiesUpdated", "SetBlobTags"),
        ("BlobSnapshotCreated", "SnapshotBlob"),
        ("BlobTierChanged", "SetBlobTier"),
        ("BlobTierChanged", "SetBlobTier"),
        ("BlobAsyncOperationInitiated", "SetBlobTier"),
        ("BlobCreated", "PutBlob"),
        ("BlobCreated", "PutBlob"),
        ("BlobPropertiesUpdated", "SetBlobProperties"),
        ("BlobCreated", "CopyBlob"),
        ("BlobDeleted", "DeleteBlob"),
        ("BlobDeleted", "DeleteBlob"),
        ("BlobCreated", "UndeleteBlob"),
    ];
    assert_eq!(told(&records), expected);
    let first = &records[0];
    assert_eq!((first.subject.as_str(), first.length), ("/blobServices/default/containers/photos/blobs/a", 5));
    let said = [
        ("client", "mine"),
        ("request", "00000000-0000-0000-0000-000000000007"),
        ("etag", &put.etag.to_string()),
        ("type", "text/plain"),
        ("kind", "BlockBlob"),
        ("time", &format!("2026-08-01T00:00:00.{:07}Z", put.etag.committed().ticks() % TICKS_PER_SECOND)),
        ("previous", "{}"),
    ];
    for (name, value) in said {
        assert_eq!(first.said[name], value, "{name}");
    }
    assert!(records[5].said.contains_key("snapshot") && records[13].said.contains_key("snapshot"));
    assert_eq!(records[7].said["previous"], r#"{"PreviousTier": "Cool"}"#);
    assert_eq!(records[8].said["operation"], r#"{"DestinationTier": "Hot", "WasAsyncOperation": "true"}"#);
    assert_eq!(records[14].said["previous"], r#"{"WasBlobSoftDeleted": "true"}"#);
    let kinds: Vec<_> = records[9..12].iter().map(|record| record.said["kind"].as_str()).collect();
    assert_eq!(kinds, ["AppendBlob", "PageBlob", "PageBlob"]);
}

#[tokio::test]
async fn versions_are_named() {
    let (engine, clock) = fed().await;
    set_feed(&engine, true, true);
    let one = put(&engine, on("a"), "one").await.unwrap();
    put(&engine, on("a"), "two").await.unwrap();
    let old = OnBlob { part: Part::Version(one.version.unwrap()), ..on("a") };
    removal::delete(&engine, old, Snapshots::Refuse).await.unwrap();
    delete(&engine, on("a")).await.unwrap();
    published(&engine, &clock).await;
    let records = feed(&engine).await;
    let versions: Vec<_> = records.iter().map(|record| record.said["version"].as_str()).collect();
    assert_eq!(told(&records)[2..], [("BlobDeleted", "DeleteBlob"); 2]);
    assert!(versions[0] == versions[2] && versions[1] == versions[3] && versions[0] < versions[1]);
    assert_eq!(records[3].said["previous"], "{}");
}

#[tokio::test]
async fn changes_wait_a_moment_and_an_hour_is_a_segment() {
    let (engine, clock) = fed().await;
    engine.settle().await.unwrap();
    let consumable = |hour: &str| format!(r#"{{"version":0,"lastConsumable":"2026-{hour}:00:00.000Z"}}"#);
    assert_eq!(text(&engine, "meta/segments.json").await, consumable("07-31T23"));
    put(&engine, on("a"), "one").await.unwrap();
    engine.settle().await.unwrap();
    assert!(files(&engine, "log/").await.is_empty() && files(&engine, "idx/").await.is_empty());
    published(&engine, &clock).await;
    let segment = |hour: u32| format!("idx/segments/2026/08/01/{hour:02}00/meta.json");
    let open = text(&engine, &segment(0)).await;
    for part in [
        r#""begin":"2026-08-01T00:00:00.000Z","intervalSecs":3600,"status":"Publishing""#,
        r#""chunkFilePaths":["$blobchangefeed/log/00/2026/08/01/0000/"]"#,
    ] {
        assert!(open.contains(part), "{open}");
    }
    // The last change of an hour and the first of the next one wait at the same time.
    clock.advance(seconds(3600 - 4));
    put(&engine, on("b"), "two").await.unwrap();
    clock.advance(seconds(4));
    put(&engine, on("c"), "three").await.unwrap();
    published(&engine, &clock).await;
    assert!(text(&engine, &segment(0)).await.contains(r#""status":"Finalized""#));
    assert!(text(&engine, &segment(1)).await.contains(r#""status":"Publishing""#));
    assert_eq!(text(&engine, "meta/segments.json").await, consumable("08-01T00"));
    let logs = ["log/00/2026/08/01/0000/00000.avro", "log/00/2026/08/01/0100/00000.avro"];
    assert_eq!(files(&engine, "log/").await, logs);
    for (log, count) in logs.iter().zip([2, 1]) {
        assert_eq!(records(&read(&engine, file(log)).await.unwrap()).len(), count);
    }
    // Without changes it is closed once its hour is over.
    clock.advance(seconds(2 * 3600));
    engine.settle().await.unwrap();
    assert!(text(&engine, &segment(1)).await.contains(r#""status":"Finalized""#));
    assert_eq!(text(&engine, "meta/segments.json").await, consumable("08-01T01"));
    assert_eq!(files(&engine, "idx/").await, [segment(0), segment(1)]);
}

#[tokio::test]
async fn more_changes_than_a_step_takes_are_all_there_in_order() {
    let (engine, clock) = fed().await;
    for number in 0..1300 {
        put(&engine, on(&format!("{number:04}")), "x").await.unwrap();
    }
    published(&engine, &clock).await;
    let records = feed(&engine).await;
    let names = records.iter().map(|record| record.subject.rsplit('/').next().unwrap().to_owned());
    assert!(names.eq((0..1300).map(|number| format!("{number:04}"))));
    let log = object::get(&engine, file("log/00/2026/08/01/0000/00000.avro")).await.unwrap();
    assert_eq!(log.kind, lazuli_engine::blob::kind::BlobKind::Append { blocks: 3, sealed: false });
}

#[tokio::test]
async fn what_is_off_leaves_no_trace_and_what_was_on_is_finished() {
    let (engine, clock) = engine().await;
    put(&engine, on("a"), "one").await.unwrap();
    published(&engine, &clock).await;
    let spaces = |engine: &Engine| engine.census().unwrap().into_iter().map(|(space, _)| space).collect::<Vec<_>>();
    assert!(!spaces(&engine).contains(&Space::Changes) && !spaces(&engine).contains(&Space::Feeds));
    set_feed(&engine, true, false);
    put(&engine, on("a"), "two").await.unwrap();
    set_feed(&engine, false, false);
    put(&engine, on("a"), "three").await.unwrap();
    published(&engine, &clock).await;
    assert_eq!(feed(&engine).await.len(), 1);
    assert!(!spaces(&engine).contains(&Space::Changes));
}

#[tokio::test]
async fn a_copy_of_a_file_that_goes_on_by_itself_does_not_hold_the_feed_up() {
    let (engine, clock) = fed().await;
    put(&engine, on("a"), "one").await.unwrap();
    published(&engine, &clock).await;
    let log = "log/00/2026/08/01/0000/00000.avro";
    copy::copy(&engine, file(log), on("mine"), whole()).await.unwrap();
    append::append(&engine, on("mine"), append::AppendConditions::default(), staged(&engine, "!").await).await.unwrap();
    put(&engine, on("a"), "two").await.unwrap();
    published(&engine, &clock).await;
    assert_eq!(feed(&engine).await.len(), 3);
    assert!(read(&engine, on("mine")).await.unwrap().ends_with(b"!"));
}

#[tokio::test]
async fn a_restart_neither_loses_nor_repeats_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let clock = clock();
    let mut engine = Engine::open(options(&directory, &clock)).await.unwrap();
    create(&engine, "photos").await.unwrap();
    for round in 0..6 {
        for number in 0..40 {
            put(&engine, on(&format!("{round}/{number:02}")), "x").await.unwrap();
        }
        if round % 2 == 0 {
            published(&engine, &clock).await;
        }
        clock.advance(seconds(1500));
        engine.close().await;
        engine = Engine::open(options(&directory, &clock)).await.unwrap();
    }
    published(&engine, &clock).await;
    let names: Vec<_> = feed(&engine).await.into_iter().map(|record| record.subject).collect();
    let expected = (0..6).flat_map(|round| (0..40).map(move |number| format!("{round}/{number:02}")));
    let expected: Vec<_> =
        expected.map(|name| format!("/blobServices/default/containers/photos/blobs/{name}")).collect();
    assert_eq!(names, expected);
    engine.close().await;
}

fn options(directory: &tempfile::TempDir, clock: &Arc<HeldClock>) -> Options {
    let policy = AccountPolicy { change_feed: true, ..AccountPolicy::default() };
    let policies = Policies::default().with(at("photos").account, policy);
    let durability = lazuli_engine::Durability::Process;
    Options { policies, durability, ..Options::new(directory.path(), clock.clone() as _) }
}
