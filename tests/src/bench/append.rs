//! Many writers appending to one blob, against the same writers on a blob each.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use crate::bench::load::{Demand, Load, Work, duel};
use crate::bench::report::{Row, Target};
use crate::bench::server::{Server, scratch};
use crate::bench::versus::body;
use crate::bench::{Rows, Settings};
use crate::client::Failure;

const WRITERS: usize = 64;
/// Bytes of a block.
const BLOCK_BYTES: usize = 256;
/// Blocks that one blob takes before the writers go on with the next: a little less than it may have.
const BLOCKS_PER_BLOB: u64 = 49_000;
/// Blobs that are ready on each side; more blocks than anybody appends in these minutes.
const BLOBS: u64 = 128;

pub(super) async fn run(settings: &Settings) -> Rows {
    let directory = scratch(&settings.directory)?;
    let server = Server::start(&settings.lazuli(), directory.path()).await?;
    for container in ["one", "each"] {
        server.create_container(container).await?;
        create(&server, container).await?;
    }
    let mut first = Load::new(server.address(), WRITERS, appends("one", 1))?;
    let mut second = Load::new(server.address(), WRITERS, appends("each", WRITERS as u64))?;
    let duel = duel(&mut first, &mut second, settings.turns()).await?;
    let cell = "Append Block 256 bytes, 64 writers to one blob, against the same writers to 64 blobs";
    Ok(vec![Row::of_duel(cell, "64 blobs", &duel, Target::AtLeast(0.5))])
}

async fn create(server: &Server, container: &str) -> Result<(), Failure> {
    let mut client = server.client()?;
    for number in 0..BLOBS {
        let created = client.put(&format!("{container}/{number}"), &[("x-ms-blob-type", "AppendBlob")], "").await?;
        if created.status != StatusCode::CREATED {
            return Err(format!("create {container}/{number}: {} {}", created.status, created.text()).into());
        }
    }
    Ok(())
}

/// Appends to `side` blobs of `container` in turn, and to the next ones once these are full.
fn appends(container: &'static str, side: u64) -> Work {
    let block: Bytes = body(BLOCK_BYTES);
    std::sync::Arc::new(move |n| Demand {
        method: Method::PUT,
        path: format!("{container}/{}?comp=appendblock", n / (side * BLOCKS_PER_BLOB) * side + n % side),
        headers: HeaderMap::new(),
        body: block.clone(),
        status: StatusCode::CREATED,
    })
}
