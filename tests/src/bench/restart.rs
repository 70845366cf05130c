//! The start after a kill.

use std::time::Instant;

use bytes::Bytes;

use crate::bench::load::{Load, puts};
use crate::bench::report::{Row, Target};
use crate::bench::server::{Server, scratch};
use crate::bench::{Rows, Settings};

const WRITERS: usize = 64;

/// Fills a server with empty blobs, kills it and times the next one over the same data: from the start of the process
/// to the first answered List Containers. The kernel's cache stays warm, as after a crash of the process alone.
pub(super) async fn run(settings: &Settings) -> Rows {
    let folder = scratch(&settings.directory)?;
    let count = settings.restart_blobs();
    let server = Server::start(&settings.lazuli(), folder.path()).await?;
    server.create_container("many").await?;
    let work = puts("many", "a/folder/and-a-name-", Bytes::new(), u64::MAX);
    let filled = Load::new(server.address(), WRITERS, work)?.run_all(count).await?;
    server.kill()?;
    let begin = Instant::now();
    let again = Server::start(&settings.lazuli(), folder.path()).await?;
    let elapsed = begin.elapsed();
    again.kill()?;
    Ok(vec![Row {
        cell: format!("Start with {count} blobs after kill -9"),
        value: elapsed.as_secs_f64(),
        unit: "s",
        target: Target::AtMost(2.0),
        detail: format!("filled at {:.0} blobs/s by {WRITERS} writers", filled.rate()),
    }])
}
