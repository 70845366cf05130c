//! Tables: a large one against a small one, everything against Azurite, and updates beside a scan.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use http::StatusCode;

use crate::bench::entities::{self, BATCH, PARTITION, Range};
use crate::bench::load::{Contender, Load, Slice, Work, duel};
use crate::bench::report::{Row, Target};
use crate::bench::server::{Program, Server, scratch};
use crate::bench::{Rows, Settings};
use crate::client::{Client, Failure};

/// Entities of the small table.
const FEW: u64 = 1000;
const CONNECTIONS: usize = 32;
/// As many clients as a busy team has: more of them share each sync.
const MANY_CONNECTIONS: usize = 128;
/// Connections that fill a table.
const FILLERS: usize = 8;

pub(super) async fn run(settings: &Settings) -> Rows {
    let folder = scratch(&settings.directory)?;
    let ours = Server::start(&Program::LazuliTables(settings.lazuli.clone()), folder.path()).await?;
    let mut rows = sizes(&ours, settings).await?;
    rows.push(beside_a_scan(&ours, settings).await?);
    if let Some(azurite) = settings.azurite.as_deref().and_then(entry_point) {
        rows.extend(versus(&ours, azurite, settings).await?);
    }
    Ok(rows)
}

/// Azurite's table server beside its blob server.
fn entry_point(blobs: &Path) -> Option<PathBuf> {
    Some(blobs.parent()?.parent()?.join("table").join("main.js"))
}

/// Point reads and partitions of a table of many entities, against one of few.
async fn sizes(server: &Server, settings: &Settings) -> Rows {
    let many = settings.table_entities();
    for (table, count) in [("few", FEW), ("many", many)] {
        fill(server, table, count).await?;
    }
    let mut rows = Vec::new();
    for (what, work) in [
        ("Get Entity", entities::gets as fn(&'static str, u64) -> Work),
        ("Query Entities, a partition of 100", entities::partitions),
    ] {
        let mut first = load(server, work("many", many))?;
        let mut second = load(server, work("few", FEW))?;
        let duel = duel(&mut first, &mut second, settings.turns()).await?;
        let cell = format!("{what}, {CONNECTIONS} connections, out of {many} entities, against out of {FEW}");
        rows.push(Row::of_duel(&cell, &format!("out of {FEW}"), &duel, Target::AtLeast(0.67)));
    }
    Ok(rows)
}

/// Updates while one client scans a table from end to end, again and again, against updates alone.
async fn beside_a_scan(server: &Server, settings: &Settings) -> Result<Row, Failure> {
    let many = settings.table_entities();
    let mut scanned = BesideScan {
        updates: load(server, entities::updates("many", many))?,
        scan: Scan::new(server, "many", entities::NOTHING)?,
        scanned: 0,
    };
    let mut alone = load(server, entities::updates("many", many))?;
    let duel = duel(&mut scanned, &mut alone, settings.turns()).await?;
    let cell =
        format!("Update Entity, {CONNECTIONS} connections, beside a full scan of {many} entities, against alone");
    let mut row = Row::of_duel(&cell, "alone", &duel, Target::AtLeast(0.7));
    let per_second = scanned.scanned as f64 / duel.ours.elapsed.as_secs_f64();
    row.detail = format!("{}; {per_second:.2} scans/s beside", row.detail);
    Ok(row)
}

/// The same requests to both.
async fn versus(ours: &Server, azurite: PathBuf, settings: &Settings) -> Rows {
    let folder = scratch(&settings.directory)?;
    let other = Server::start(&Program::AzuriteTables(azurite), folder.path()).await?;
    let count = settings.filtered_entities();
    for server in [ours, &other] {
        fill(server, "both", count).await?;
        create(server, "inserted").await?;
        create(server, "crowded").await?;
    }
    let cells = [
        ("Insert Entity", entities::inserts("inserted"), CONNECTIONS, 8.0),
        ("Insert Entity", entities::inserts("crowded"), MANY_CONNECTIONS, 8.0),
        ("Update Entity", entities::updates("both", count), CONNECTIONS, 8.0),
        ("Get Entity", entities::gets("both", count), CONNECTIONS, 8.0),
        ("Query Entities, a partition of 100", entities::partitions("both", count), CONNECTIONS, 15.0),
    ];
    let mut rows = Vec::new();
    for (what, work, connections, at_least) in cells {
        let mut first = loads(ours, Arc::clone(&work), connections)?;
        let mut second = loads(&other, work, connections)?;
        let duel = duel(&mut first, &mut second, settings.turns()).await?;
        let cell = format!("{what}, {connections} connections, against Azurite");
        rows.push(Row::of_duel(&cell, "Azurite", &duel, Target::AtLeast(at_least)));
    }
    let (mut first, mut second) = (Scan::new(ours, "both", entities::ONE)?, Scan::new(&other, "both", entities::ONE)?);
    let duel = duel(&mut first, &mut second, settings.turns()).await?;
    let cell = format!("Query Entities, all pages of a filter on a property of {count} entities, against Azurite");
    rows.push(Row::of_duel(&cell, "Azurite", &duel, Target::AtLeast(0.25)));
    Ok(rows)
}

fn load(server: &Server, work: Work) -> Result<Load, Failure> {
    loads(server, work, CONNECTIONS)
}

fn loads(server: &Server, work: Work, connections: usize) -> Result<Load, Failure> {
    Load::signed(server.address(), &server.credentials()?, connections, work)
}

async fn create(server: &Server, table: &str) -> Result<(), Failure> {
    let headers = [("content-type", "application/json"), ("accept", entities::ACCEPT), ("prefer", "return-no-content")];
    let body = format!("{{\"TableName\":\"{table}\"}}");
    let answer = server.client()?.send(http::Method::POST, "Tables", &headers, body.into()).await?;
    if answer.status != StatusCode::NO_CONTENT {
        return Err(format!("create table {table}: {} {}", answer.status, answer.text()).into());
    }
    Ok(())
}

/// Creates a table with so many entities, by groups of 100; sees to it that they are there.
async fn fill(server: &Server, table: &'static str, count: u64) -> Result<(), Failure> {
    create(server, table).await?;
    let work = entities::batches(table, server.address());
    let mut load = Load::signed(server.address(), &server.credentials()?, FILLERS, work)?;
    load.run_all(count.div_ceil(BATCH)).await?;
    // A group that failed is answered 202 too.
    let mut all = Load::signed(server.address(), &server.credentials()?, FILLERS, entities::gets(table, count))?;
    all.run_all(count.min(PARTITION * 10)).await?;
    let mut last = Range::of(table, count.saturating_sub(1) / PARTITION);
    if last.count(&mut server.client()?).await? != PARTITION {
        return Err(format!("table {table} lacks entities").into());
    }
    Ok(())
}

/// One client that asks for what a filter matches, page by page, again and again; each time over counts as one.
struct Scan {
    client: Client,
    range: Range,
}

impl Scan {
    fn new(server: &Server, table: &str, filter: &str) -> Result<Self, Failure> {
        Ok(Self { client: server.client()?, range: Range::matching(table, filter) })
    }
}

impl Contender for Scan {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        Box::pin(async move {
            let (mut slice, begin) = (Slice::empty()?, Instant::now());
            let mut before = begin;
            while before < begin + length {
                self.range.count(&mut self.client).await?;
                let now = Instant::now();
                slice.note(now - before);
                before = now;
            }
            slice.elapsed = before - begin;
            Ok(slice)
        })
    }
}

/// Updates that count, beside a scan that does not.
struct BesideScan {
    updates: Load,
    scan: Scan,
    scanned: u64,
}

impl Contender for BesideScan {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        Box::pin(async move {
            let Self { updates, scan, scanned } = self;
            let over = AtomicBool::new(false);
            let scans = async {
                let mut pages = 0;
                while !over.load(Ordering::Relaxed) {
                    scan.range.page(&mut scan.client).await?;
                    pages += 1;
                    if scan.range.at_the_beginning() {
                        *scanned += 1;
                    }
                }
                if pages == 0 { Err("nothing was scanned".into()) } else { Ok::<_, Failure>(()) }
            };
            let updates = async {
                let slice = updates.slice(length).await;
                over.store(true, Ordering::Relaxed);
                slice
            };
            let (slice, scans) = tokio::join!(updates, scans);
            scans?;
            slice
        })
    }
}
