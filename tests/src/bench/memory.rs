//! Memory under large bodies.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::try_join_all;
use http::{HeaderMap, Method, StatusCode};

use crate::bench::load::{Demand, Load, Work, gets};
use crate::bench::report::{Row, Target};
use crate::bench::server::{Server, scratch};
use crate::bench::versus::body;
use crate::bench::{MIB, Rows, Settings};
use crate::client::{Client, Failure};

const BLOBS: u64 = 8;
const BLOCK_BYTES: usize = 4 * MIB;

/// Eight blobs go up in blocks; then these come down while eight others go up. The peak is the kernel's own, of the
/// server's whole life (VmHWM), so no moment is missed.
pub(super) async fn run(settings: &Settings) -> Rows {
    let folder = scratch(&settings.directory)?;
    let server = Server::start(&settings.lazuli(), folder.path()).await?;
    let idle = server.process_bytes("status", "VmRSS:", 1024)?;
    server.create_container("huge").await?;
    let length = settings.memory_blob_bytes();
    upload(&server, "r", length).await?;
    let down =
        async { Load::new(server.address(), usize::try_from(BLOBS)?, gets("huge", "r", BLOBS))?.run_all(BLOBS).await };
    let ((), _) = tokio::try_join!(upload(&server, "w", length), down)?;
    let peak = server.process_bytes("status", "VmHWM:", 1024)?;
    let mib = |bytes: u64| bytes as f64 / MIB as f64;
    Ok(vec![Row {
        cell: format!("Memory above idle, 8 uploads and 8 downloads of {} MiB", length / MIB),
        value: mib(peak.saturating_sub(idle)),
        unit: "MiB",
        target: Target::AtMost(150.0),
        detail: format!("idle {:.0} MiB, peak {:.0} MiB", mib(idle), mib(peak)),
    }])
}

async fn upload(server: &Server, prefix: &'static str, length: usize) -> Result<(), Failure> {
    let paths: Vec<_> = (0..BLOBS).map(|n| format!("huge/{prefix}{n:08}")).collect();
    try_join_all(paths.iter().map(|path| upload_blocks(server, path, length))).await?;
    Ok(())
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
