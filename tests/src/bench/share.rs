//! What shares bytes takes as long for a large blob as for a small one.

use http::{HeaderMap, Method, StatusCode};

use crate::bench::load::{Demand, Load, Work, duel};
use crate::bench::memory::upload_blocks;
use crate::bench::report::{Row, Target};
use crate::bench::server::{Server, scratch};
use crate::bench::versus::body;
use crate::bench::{KIB, Rows, Settings};

pub(super) async fn run(settings: &Settings) -> Rows {
    let folder = scratch(&settings.directory)?;
    let server = Server::start(&settings.lazuli(), folder.path()).await?;
    server.create_container("shared").await?;
    let length = settings.shared_blob_bytes();
    upload_blocks(&server, "shared/large", length).await?;
    server.client()?.put("shared/small", &[("x-ms-blob-type", "BlockBlob")], body(KIB)).await?;
    let mut first = Load::new(server.address(), 1, snapshots("large"))?;
    let mut second = Load::new(server.address(), 1, snapshots("small"))?;
    let duel = duel(&mut first, &mut second, settings.turns()).await?;
    let cell = format!("Snapshot Blob of {} MiB, against one of 1 KiB", length / KIB / KIB);
    Ok(vec![Row::of_duel(&cell, "1 KiB", &duel, Target::AtLeast(0.33))])
}

fn snapshots(blob: &'static str) -> Work {
    std::sync::Arc::new(move |_| Demand {
        method: Method::PUT,
        path: format!("shared/{blob}?comp=snapshot"),
        headers: HeaderMap::new(),
        body: bytes::Bytes::new(),
        status: StatusCode::CREATED,
    })
}
