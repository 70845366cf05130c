//! Against Azurite, the official emulator, with its data on disk.

use bytes::Bytes;

use crate::bench::load::{Load, Work, duel, gets, lists, puts};
use crate::bench::report::{Row, Target};
use crate::bench::server::{Program, Server, scratch};
use crate::bench::{KIB, MIB, Rows, Settings};
use crate::client::Failure;

/// Blobs that are read in turn.
const SMALL_BLOBS: u64 = 1000;
const LARGE_BLOBS: u64 = 64;
/// Names that large blobs are written to in turn, so that the disk does not fill.
const LARGE_NAMES: u64 = 256;

struct Cell {
    name: &'static str,
    connections: usize,
    work: Work,
    at_least: f64,
}

pub(super) async fn run(settings: &Settings) -> Rows {
    let Some(azurite) = &settings.azurite else { return Ok(Vec::new()) };
    let (here, there) = (scratch(&settings.directory)?, scratch(&settings.directory)?);
    let ours = Server::start(&settings.lazuli(), here.path()).await?;
    let other = Server::start(&Program::Azurite(azurite.clone()), there.path()).await?;
    let listed = settings.listed_blobs();
    for server in [&ours, &other] {
        fill(server, listed).await?;
    }
    let mut rows = Vec::new();
    for cell in cells(listed) {
        let mut first = Load::new(ours.address(), cell.connections, cell.work.clone())?;
        let mut second = Load::new(other.address(), cell.connections, cell.work)?;
        let duel = duel(&mut first, &mut second, settings.turns()).await?;
        rows.push(Row::of_duel(cell.name, "Azurite", &duel, Target::AtLeast(cell.at_least)));
    }
    Ok(rows)
}

fn cells(listed: u64) -> Vec<Cell> {
    let cell = |name, connections, work, at_least| Cell { name, connections, work, at_least };
    let list = if listed == 100_000 {
        "List Blobs, one page of 5000 out of 100 000, against Azurite"
    } else {
        "List Blobs, one page of 5000 out of 10 000, against Azurite"
    };
    vec![
        cell("Put Blob 1 KiB, 32 connections, against Azurite", 32, puts("small", "w", body(KIB), u64::MAX), 5.0),
        cell("Get Blob 1 KiB, 32 connections, against Azurite", 32, gets("small", "r", SMALL_BLOBS), 8.0),
        cell("Put Blob 1 MiB, 8 connections, against Azurite", 8, puts("large", "w", body(MIB), LARGE_NAMES), 2.0),
        cell("Get Blob 1 MiB, 8 connections, against Azurite", 8, gets("large", "r", LARGE_BLOBS), 3.0),
        cell(list, 1, lists("listed"), 10.0),
    ]
}

async fn fill(server: &Server, listed: u64) -> Result<(), Failure> {
    for container in ["small", "large", "listed"] {
        server.create_container(container).await?;
    }
    let blobs = [
        (puts("small", "r", body(KIB), u64::MAX), SMALL_BLOBS),
        (puts("large", "r", body(MIB), u64::MAX), LARGE_BLOBS),
        (puts("listed", "a/folder/and-a-name-", Bytes::new(), u64::MAX), listed),
    ];
    for (work, count) in blobs {
        Load::new(server.address(), 32, work)?.run_all(count).await?;
    }
    Ok(())
}

/// Bytes that do not compress away.
pub(super) fn body(length: usize) -> Bytes {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // xorshift64: no quality needed, only speed and no repetition.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}
