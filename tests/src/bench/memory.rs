//! Memory under large bodies.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::try_join_all;
use http::{HeaderMap, Method, StatusCode};
use tempfile::TempDir;

use crate::bench::load::{Demand, Load, Work, gets};
use crate::bench::report::{Row, Target};
use crate::bench::server::{Server, scratch};
use crate::bench::versus::body;
use crate::bench::{MIB, Rows, Settings};
use crate::client::{Client, Failure};

const BLOCK_BYTES: usize = 4 * MIB;

/// The peaks of three servers; each is the kernel's own, of the server's whole life (VmHWM), so no moment is missed.
pub(super) async fn run(settings: &Settings) -> Rows {
    Ok(vec![both_ways(settings).await?, uploads(settings).await?, one_blob(settings).await?])
}

/// Eight blobs go up in blocks; then these come down while eight others go up.
async fn both_ways(settings: &Settings) -> Result<Row, Failure> {
    let watched = Watched::start(settings).await?;
    let length = settings.memory_blob_bytes();
    watched.upload("r", 8, length).await?;
    let ((), ()) = tokio::try_join!(watched.upload("w", 8, length), watched.download("r", 8))?;
    let cell = format!("Memory above idle, 8 uploads and 8 downloads of {} MiB", length / MIB);
    let row = watched.row(cell, 150.0)?;
    Ok(Row { value: row.value - mib(watched.idle), ..row })
}

/// Sixteen blobs go up at once.
async fn uploads(settings: &Settings) -> Result<Row, Failure> {
    let watched = Watched::start(settings).await?;
    let length = settings.memory_blob_bytes() / 2;
    watched.upload("w", 16, length).await?;
    watched.row(format!("Memory in all, 16 uploads of {} MiB at once", length / MIB), 300.0)
}

/// A large blob goes up, then comes down.
async fn one_blob(settings: &Settings) -> Result<Row, Failure> {
    let watched = Watched::start(settings).await?;
    let length = settings.huge_blob_bytes();
    watched.upload("h", 1, length).await?;
    watched.download("h", 1).await?;
    watched.row(format!("Memory in all, a blob of {} MiB up and down", length / MIB), 200.0)
}

/// A server whose memory is watched.
struct Watched {
    server: Server,
    idle: u64,
    _folder: TempDir,
}

impl Watched {
    async fn start(settings: &Settings) -> Result<Self, Failure> {
        let folder = scratch(&settings.directory)?;
        let server = Server::start(&settings.lazuli(), folder.path()).await?;
        let idle = server.process_bytes("status", "VmRSS:", 1024)?;
        server.create_container("huge").await?;
        Ok(Self { server, idle, _folder: folder })
    }

    async fn upload(&self, prefix: &str, count: u64, length: usize) -> Result<(), Failure> {
        let paths: Vec<_> = (0..count).map(|n| format!("huge/{prefix}{n:08}")).collect();
        try_join_all(paths.iter().map(|path| upload_blocks(&self.server, path, length))).await?;
        Ok(())
    }

    async fn download(&self, prefix: &'static str, count: u64) -> Result<(), Failure> {
        let connections = usize::try_from(count)?;
        Load::new(self.server.address(), connections, gets("huge", prefix, count))?.run_all(count).await?;
        Ok(())
    }

    /// The most memory that was used at once, against `most` MiB.
    fn row(&self, cell: String, most: f64) -> Result<Row, Failure> {
        let peak = mib(self.server.process_bytes("status", "VmHWM:", 1024)?);
        let detail = format!("idle {:.0} MiB, peak {peak:.0} MiB", mib(self.idle));
        Ok(Row { cell, value: peak, unit: "MiB", target: Target::AtMost(most), detail })
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}

/// Uploads a blob in blocks, one after the other.
pub(super) async fn upload_blocks(server: &Server, path: &str, length: usize) -> Result<(), Failure> {
    let (blocks, bytes) = ((length / BLOCK_BYTES) as u64, body(BLOCK_BYTES));
    let blob: Arc<str> = path.into();
    let put_block: Work = Arc::new(move |index| Demand {
        method: Method::PUT,
        path: format!("{blob}?comp=block&blockid={}", block_id(index)),
        headers: HeaderMap::new(),
        body: bytes.clone(),
        status: StatusCode::CREATED,
    });
    Load::new(server.address(), 1, put_block)?.run_all(blocks).await?;
    commit(&mut server.client()?, path, blocks).await
}

async fn commit(client: &mut Client, path: &str, blocks: u64) -> Result<(), Failure> {
    let ids: String = (0..blocks).map(|index| format!("<Latest>{}</Latest>", block_id(index))).collect();
    let list = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{ids}</BlockList>");
    let path = format!("{path}?comp=blocklist");
    client.drain(Method::PUT, &path, HeaderMap::new(), list.into(), StatusCode::CREATED).await?;
    Ok(())
}

/// Six digits: their Base64 needs no percent-encoding.
fn block_id(index: u64) -> String {
    BASE64.encode(format!("{index:06}"))
}
