//! The benchmark: Lazuli against others that do the same, in turns, on the same machine and in the same minutes.
//!
//! What counts is ratios; absolute numbers stand beside them for information. Client and servers share the machine,
//! so each ratio has the client's own work on both sides and is nearer to 1 than the servers alone would be.

mod append;
mod commit;
mod cycles;
mod entities;
mod floor;
mod load;
mod memory;
mod pages;
mod queues;
mod report;
mod restart;
mod server;
mod share;
mod tables;
mod versus;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use crate::bench::load::Turns;
use crate::bench::report::{HEAD, Row};
use crate::bench::server::Program;
use crate::client::Failure;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// What runs, where, and how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Our release binary.
    pub lazuli: PathBuf,
    /// Azurite's blob entry point; without it the cells against it are left out.
    pub azurite: Option<PathBuf>,
    /// nginx; without it the cell against it is left out.
    pub nginx: Option<PathBuf>,
    /// Where the servers keep their data: on the disk that is to be measured.
    pub directory: PathBuf,
    /// Two minutes rather than ten: shorter slices and fewer blobs. Its numbers are a hint, not a result.
    pub quick: bool,
    /// Blobs that a restarted server holds; none for the mode's own number.
    pub restart_blobs: Option<u64>,
    /// Only the families whose names are here; all if empty.
    pub only: Vec<String>,
}

impl Settings {
    fn lazuli(&self) -> Program {
        Program::Lazuli(self.lazuli.clone())
    }

    fn turns(&self) -> Turns {
        let millis = Duration::from_millis;
        if self.quick {
            Turns { rounds: 3, slice: millis(1000), warm_up: millis(300) }
        } else {
            Turns { rounds: 5, slice: millis(2500), warm_up: millis(1000) }
        }
    }

    /// Blobs in the container that is listed.
    fn listed_blobs(&self) -> u64 {
        if self.quick { 10_000 } else { 100_000 }
    }

    fn restart_blobs(&self) -> u64 {
        self.restart_blobs.unwrap_or(if self.quick { 100_000 } else { 1_000_000 })
    }

    /// Messages in a full queue.
    fn queued_messages(&self) -> u64 {
        if self.quick { 100_000 } else { 1_000_000 }
    }

    /// Entities in a large table.
    fn table_entities(&self) -> u64 {
        if self.quick { 100_000 } else { 1_000_000 }
    }

    /// Entities in the table that is filtered beside Azurite.
    fn filtered_entities(&self) -> u64 {
        if self.quick { 10_000 } else { 100_000 }
    }

    /// Bytes of each blob that goes up or down while memory is watched.
    fn memory_blob_bytes(&self) -> usize {
        if self.quick { 64 * MIB } else { 512 * MIB }
    }

    /// Bytes of the one blob that goes up and down while memory is watched.
    fn huge_blob_bytes(&self) -> usize {
        if self.quick { 512 * MIB } else { 8192 * MIB }
    }

    /// Bytes of the large blob whose snapshots are measured.
    fn shared_blob_bytes(&self) -> usize {
        if self.quick { 256 * MIB } else { 2048 * MIB }
    }
}

type Rows = Result<Vec<Row>, Failure>;
/// Cells that share their servers.
type Family = (&'static str, for<'a> fn(&'a Settings) -> BoxFuture<'a, Rows>);

const FAMILIES: &[Family] = &[
    ("azurite", |settings| Box::pin(versus::run(settings))),
    ("nginx", |settings| Box::pin(floor::run_nginx(settings))),
    ("disk", |settings| Box::pin(floor::run_disk(settings))),
    ("commit", |settings| Box::pin(commit::run(settings))),
    ("append", |settings| Box::pin(append::run(settings))),
    ("memory", |settings| Box::pin(memory::run(settings))),
    ("restart", |settings| Box::pin(restart::run(settings))),
    ("queues", |settings| Box::pin(queues::run(settings))),
    ("pages", |settings| Box::pin(pages::run(settings))),
    ("share", |settings| Box::pin(share::run(settings))),
    ("tables", |settings| Box::pin(tables::run(settings))),
];

/// Runs the families and prints the table to `out`, progress to `progress`. Answers whether every cell ran and met
/// its target; what was left out by the settings does not count.
pub async fn run(settings: &Settings, out: &mut dyn Write, progress: &mut dyn Write) -> Result<bool, Failure> {
    if let Some(name) = settings.only.iter().find(|name| !FAMILIES.iter().any(|(family, _)| family == name)) {
        return Err(format!("no such family: {name}").into());
    }
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for (name, family) in FAMILIES {
        if !settings.only.is_empty() && !settings.only.iter().any(|only| only == name) {
            continue;
        }
        let begin = Instant::now();
        match family(settings).await {
            Ok(measured) => rows.extend(measured),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
        writeln!(progress, "{name}: {:.0} s", begin.elapsed().as_secs_f64())?;
    }
    writeln!(out, "{HEAD}")?;
    for row in &rows {
        writeln!(out, "{row}")?;
    }
    for line in &failed {
        writeln!(out, "\nFailed – {line}")?;
    }
    Ok(failed.is_empty() && rows.iter().all(Row::met))
}
