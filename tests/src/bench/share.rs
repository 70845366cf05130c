//! What shares bytes takes as long for a large blob as for a small one.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::bench::load::{Demand, Load, Work, duel};
use crate::bench::memory::upload_blocks;
use crate::bench::report::{Row, Target};
use crate::bench::server::{Server, scratch};
use crate::bench::versus::body;
use crate::bench::{KIB, Rows, Settings};
use crate::client::{ACCOUNT, Failure};

pub(super) async fn run(settings: &Settings) -> Rows {
    let folder = scratch(&settings.directory)?;
    let server = Server::start(&settings.lazuli(), folder.path()).await?;
    server.create_container("shared").await?;
    let length = settings.shared_blob_bytes();
    upload_blocks(&server, "shared/large", length).await?;
    server.client()?.put("shared/small", &[("x-ms-blob-type", "BlockBlob")], body(KIB)).await?;
    let promoted = [promotions(&server, "large").await?, promotions(&server, "small").await?];
    let cells = [
        ("Snapshot Blob", [snapshots("large"), snapshots("small")]),
        ("Copy Blob", [copies(&server, "large")?, copies(&server, "small")?]),
        ("Promotion of a snapshot", promoted),
    ];
    let mut rows = Vec::new();
    for (name, [large, small]) in cells {
        let (mut first, mut second) = (Load::new(server.address(), 1, large)?, Load::new(server.address(), 1, small)?);
        let duel = duel(&mut first, &mut second, settings.turns()).await?;
        let cell = format!("{name} of {} MiB, against one of 1 KiB", length / KIB / KIB);
        rows.push(Row::of_duel(&cell, "1 KiB", &duel, Target::AtLeast(0.33)));
    }
    Ok(rows)
}

fn snapshots(blob: &'static str) -> Work {
    Arc::new(move |_| Demand {
        method: Method::PUT,
        path: format!("shared/{blob}?comp=snapshot"),
        headers: HeaderMap::new(),
        body: bytes::Bytes::new(),
        status: StatusCode::CREATED,
    })
}

/// Copies of `blob` to other names.
fn copies(server: &Server, blob: &'static str) -> Result<Work, Failure> {
    let source = format!("http://{}/{ACCOUNT}/shared/{blob}", server.address());
    copying(&source, move |index| format!("shared/copy of {blob} {}", index % 100).replace(' ', "%20"))
}

/// Copies of a snapshot of `blob` over it.
async fn promotions(server: &Server, blob: &'static str) -> Result<Work, Failure> {
    let taken = server.client()?.put(&format!("shared/{blob}?comp=snapshot"), &[], "").await?;
    let at = taken.header("x-ms-snapshot").ok_or("a snapshot without a name")?;
    let source = format!("http://{}/{ACCOUNT}/shared/{blob}?snapshot={at}", server.address());
    copying(&source, move |_| format!("shared/{blob}"))
}

fn copying(source: &str, target: impl Fn(u64) -> String + Send + Sync + 'static) -> Result<Work, Failure> {
    let headers =
        HeaderMap::from_iter([(http::HeaderName::from_static("x-ms-copy-source"), HeaderValue::from_str(source)?)]);
    Ok(Arc::new(move |index| Demand {
        method: Method::PUT,
        path: target(index),
        headers: headers.clone(),
        body: bytes::Bytes::new(),
        status: StatusCode::ACCEPTED,
    }))
}
