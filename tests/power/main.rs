//! Power loss, simulated: all that the real process does to its files is recorded together with what its clients were
//! told, then the record is cut at random points. From each cut a disk is made as a machine could find it after the
//! power came back, and the server is started on it. Nothing that was acknowledged before the cut may be missing.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails loudly")]
#![expect(clippy::indexing_slicing, reason = "the record was made by this very test")]

mod image;
mod log;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use image::{Disk, Unsynced};
use lazuli_tests::harness::Service;
use lazuli_tests::ledger::Ledger;
use lazuli_tests::process::Start;
use lazuli_tests::random::Random;
use log::Record;

const BLOBS: usize = 24;
const STEPS: usize = 12;
const CONTAINER: &str = "power";
/// The subject of the acknowledgement that the container was created; blobs have lower numbers.
const CONTAINER_SUBJECT: u64 = u64::MAX;
/// Servers that are checked at the same time.
const PARALLEL: usize = 4;

fn cuts() -> usize {
    if std::env::var_os("LAZULI_LONG").is_some() { 2000 } else { 200 }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_missing_or_torn_after_a_power_loss() {
    let bad = bad_images("sync", cuts()).await;
    assert!(bad.is_empty(), "{} of {} images are bad: {bad:#?}", bad.len(), cuts());
}

/// The control: a server that does not wait for the disk must be found out, or the images prove nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_wait_for_the_disk_is_found_out() {
    assert!(!bad_images("process", 30).await.is_empty());
}

/// Records a server of that durability, and says what is wrong with the images made at `cuts` random points.
async fn bad_images(durability: &str, cuts: usize) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    let scratch = scratch.path().canonicalize().unwrap();
    let mut random = Random::new();
    let data = scratch.join("data");
    let (ledgers, records) = record(&scratch, &data, durability, &mut random).await;
    let ledgers = Arc::new(ledgers);
    let mut cut_at: Vec<_> = (0..cuts).map(|_| random.below(records.len() as u64 + 1)).collect();
    cut_at.sort_unstable();
    let mut disk = Disk::new(&data, &data.join("rows"));
    let mut told = Told::default();
    let mut happened = 0;
    let images = cut_at.into_iter().enumerate().map(|(number, cut)| {
        for record in &records[happened..usize::try_from(cut).unwrap()] {
            disk.apply(record);
            told.note(record);
        }
        happened = usize::try_from(cut).unwrap();
        let unsynced = [Unsynced::Dropped, Unsynced::Torn, Unsynced::Kept][number % 3];
        let directory = scratch.join(format!("image-{number}"));
        std::fs::create_dir(&directory).unwrap();
        disk.write_image(&directory, unsynced, &mut random);
        let (told, ledgers) = (told.clone(), Arc::clone(&ledgers));
        async move {
            // Its own task, so that a panic is one image's.
            let checked = tokio::spawn(check(directory, told, ledgers)).await;
            checked.err().map(|error| format!("cut at record {cut}, unsynced {unsynced:?}: {error}"))
        }
    });
    stream::iter(images).buffer_unordered(PARALLEL).filter_map(|wrong| async { wrong }).collect().await
}

#[test]
fn the_tracer_tells_a_synced_write_from_one_that_is_not() {
    let scratch = tempfile::tempdir().unwrap();
    let scratch = scratch.path().canonicalize().unwrap();
    let (tracer, data, journal) = (compile_tracer(&scratch), scratch.join("data"), scratch.join("log"));
    std::fs::create_dir(&data).unwrap();
    let script = "echo synced > a && sync a && echo lost > b && echo moved > c && sync c && mv c d && rm a";
    let traced =
        Command::new(tracer).args([&journal, &data]).args(["/bin/sh", "-c", script]).current_dir(&data).status();
    assert!(traced.unwrap().success());
    let mut disk = Disk::new(&data, &data);
    log::parse(&std::fs::read(&journal).unwrap()).iter().for_each(|record| disk.apply(record));
    for (unsynced, b) in [(Unsynced::Dropped, ""), (Unsynced::Kept, "lost\n")] {
        let image = tempfile::tempdir().unwrap();
        disk.write_image(image.path(), unsynced, &mut Random::seeded(1));
        let found = |name| std::fs::read_to_string(image.path().join(name)).ok();
        assert_eq!(found("b").as_deref(), Some(b), "{unsynced:?}");
        assert_eq!(found("d").as_deref(), Some("moved\n"), "{unsynced:?}");
        assert_eq!((found("a"), found("c")), (None, None), "{unsynced:?}");
    }
}

/// Runs the workload on a traced server; gives what was tried and all that happened.
async fn record(scratch: &Path, data: &Path, durability: &str, random: &mut Random) -> (Vec<Ledger>, Vec<Record>) {
    std::fs::create_dir(data).unwrap();
    let tracer = compile_tracer(scratch);
    let journal = scratch.join("log");
    let arguments = [journal.clone().into_os_string(), data.as_os_str().to_owned()];
    let start = Start::at(data).argument("--durability").argument(durability);
    let server = start.under(tracer, arguments).ready().await;
    let log = Arc::new(OpenOptions::new().append(true).open(&journal).unwrap());
    let container = server.service().container(CONTAINER).await;
    log::acknowledge(&log, CONTAINER_SUBJECT, 1);
    let writers = (0..BLOBS).map(|number| {
        let ledger = Ledger::new(container.blob(&blob_name(number)), random.fork());
        tokio::spawn(write(ledger, number as u64, Arc::clone(&log)))
    });
    let writers: Vec<_> = writers.collect();
    let ledgers = join_all(writers).await.into_iter().map(Result::unwrap).collect();
    server.kill().await;
    (ledgers, log::parse(&std::fs::read(&journal).unwrap()))
}

async fn write(mut ledger: Ledger, number: u64, log: Arc<File>) -> Ledger {
    for _ in 0..STEPS {
        ledger.step().await.unwrap();
        log::acknowledge(&log, number, ledger.tried() as u64);
    }
    ledger
}

fn compile_tracer(scratch: &Path) -> PathBuf {
    let tracer = scratch.join("trace");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/power/trace.c");
    let compiled = Command::new("cc").args(["-O1", "-o"]).arg(&tracer).arg(source).status();
    assert!(compiled.expect("a C compiler is installed").success(), "the tracer does not compile");
    tracer
}

fn blob_name(number: usize) -> String {
    format!("blob {number}")
}

/// What clients had been told at some moment.
#[derive(Clone, Default)]
struct Told {
    container: bool,
    /// Steps of each blob that were answered.
    steps: [usize; BLOBS],
}

impl Told {
    fn note(&mut self, record: &Record) {
        match record {
            Record::Acknowledged { subject: CONTAINER_SUBJECT, .. } => self.container = true,
            Record::Acknowledged { subject, step } => {
                self.steps[usize::try_from(*subject).unwrap()] = usize::try_from(*step).unwrap();
            }
            _ => {}
        }
    }
}

/// Starts the server on an image, checks every blob, and that it still takes writes; then removes the image.
async fn check(directory: PathBuf, told: Told, ledgers: Arc<Vec<Ledger>>) {
    let server = Start::at(&directory).ready().await;
    check_blobs(&server.service(), &told, &ledgers).await;
    server.kill().await;
    std::fs::remove_dir_all(directory).unwrap();
}

async fn check_blobs(service: &Service, told: &Told, ledgers: &[Ledger]) {
    let container = service.existing(CONTAINER);
    if told.container {
        for (number, ledger) in ledgers.iter().enumerate() {
            ledger.check_at(&container.blob(&blob_name(number)), told.steps[number]).await;
        }
    } else {
        let created = container.create().await;
        assert!(created.status == 201 || created.code() == "ContainerAlreadyExists", "{created:?}");
    }
    let after = container.blob("after");
    after.put(vec![7; 10_000]).await.expect(201);
    assert_eq!(after.get().await.expect(200).body, vec![7; 10_000]);
}
