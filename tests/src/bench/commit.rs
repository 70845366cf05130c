//! The numbers of the embedded store: what group commit is worth, what a row costs on disk, what a reader costs a
//! writer. Measured on the running server, for only its process syncs as the product does.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;

use crate::bench::load::{Contender, Load, Slice, Turns, duel, gets, lists, puts};
use crate::bench::report::{Row, Target, absolute};
use crate::bench::server::{Server, scratch};
use crate::bench::versus::body;
use crate::bench::{KIB, Rows, Settings};
use crate::client::Failure;

const WRITERS: usize = 64;

pub(super) async fn run(settings: &Settings) -> Rows {
    let folder = scratch(&settings.directory)?;
    let server = Server::start(&settings.lazuli(), folder.path()).await?;
    for container in ["small", "alone", "listed"] {
        server.create_container(container).await?;
    }
    let [group, amplification] = group_commit(&server, settings.turns()).await?;
    let beside = writer_beside_lister(&server, settings).await?;
    Ok(vec![group, amplification, beside])
}

/// 64 writers against one flush per commit.
///
/// A single connection has never more than one commit under way, so each of its commits has a flush of its own. Its
/// request also travels and is parsed; what that takes is known from the same connection's Get of the same blob, which
/// does all but commit. The difference of the medians is the time of one commit, and its inverse the rate at which
/// any number of writers would go through a store that flushes once per commit.
async fn group_commit(server: &Server, turns: Turns) -> Result<[Row; 2], Failure> {
    let mut one = Load::new(server.address(), 1, puts("alone", "w", body(KIB), u64::MAX))?;
    let mut reader = Load::new(server.address(), 1, gets("alone", "w", 1))?;
    let mut many = Load::new(server.address(), WRITERS, puts("small", "w", body(KIB), u64::MAX))?;
    one.run_all(1).await?;
    let (mut all, mut alone, mut ratios) = (Slice::empty()?, Slice::empty()?, Vec::new());
    let (mut written, mut given) = (0, 0);
    many.slice(turns.warm_up).await?;
    for _ in 0..turns.rounds {
        let single = one.slice(turns.slice).await?;
        let trip = reader.slice(turns.slice / 4).await?;
        let before = disk_bytes(server)?;
        let group = many.slice(turns.slice).await?;
        written += disk_bytes(server)? - before;
        given += group.count * user_bytes("small", "w");
        let commit = single.median().saturating_sub(trip.median()).max(Duration::from_micros(1));
        ratios.push(group.rate() * commit.as_secs_f64());
        all.after(&group)?;
        alone.after(&single)?;
    }
    ratios.sort_by(f64::total_cmp);
    let group = Row {
        cell: "Put Blob 1 KiB, 64 writers, against one flush per commit".into(),
        value: ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN),
        unit: "×",
        target: Target::AtLeast(8.0),
        detail: format!("64 writers {}; one writer {}", absolute(&all), absolute(&alone)),
    };
    let amplification = Row {
        cell: "Bytes written to disk per byte of name and body, Put Blob 1 KiB, 64 writers".into(),
        value: written as f64 / given as f64,
        unit: "×",
        target: Target::AtMost(2.5),
        detail: format!("{} MiB for {} MiB", written >> 20, given >> 20),
    };
    Ok([group, amplification])
}

/// What the process caused to be written, as the kernel counts it.
fn disk_bytes(server: &Server) -> Result<u64, Failure> {
    server.process_bytes("io", "write_bytes:", 1)
}

/// What a client gave to be kept: body, container and blob name. Times, versions and types are not counted, so they
/// show as amplification.
fn user_bytes(container: &str, prefix: &str) -> u64 {
    (KIB + container.len() + prefix.len() + "00000000".len()) as u64
}

/// One writer beside a reader that pages through a listing without end, against the same writer alone.
async fn writer_beside_lister(server: &Server, settings: &Settings) -> Result<Row, Failure> {
    let names = puts("listed", "a/folder/and-a-name-", Bytes::new(), u64::MAX);
    Load::new(server.address(), WRITERS, names)?.run_all(settings.listed_blobs()).await?;
    let write = puts("alone", "w", body(KIB), u64::MAX);
    let mut alone = Load::new(server.address(), 1, write.clone())?;
    let mut beside = Beside { writer: Load::new(server.address(), 1, write)?, server };
    let duel = duel(&mut beside, &mut alone, settings.turns()).await?;
    let cell = "Put Blob 1 KiB beside an endless lister, against the same writer alone";
    Ok(Row::of_duel(cell, "alone", &duel, Target::AtLeast(0.7)))
}

struct Beside<'a> {
    writer: Load,
    server: &'a Server,
}

impl Contender for Beside<'_> {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        Box::pin(async move {
            let mut lister = Load::new(self.server.address(), 1, lists("listed"))?;
            // It lists a little longer than the writer writes.
            let listing: JoinHandle<Result<Slice, Failure>> = tokio::spawn(async move { lister.slice(length).await });
            let written = self.writer.slice(length).await?;
            let listed = listing.await??;
            if listed.count == 0 {
                return Err("the lister got no page".into());
            }
            Ok(written)
        })
    }
}
