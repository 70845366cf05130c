//! Pages of a listing: out of many blobs against out of few.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use crate::bench::load::{Demand, Load, Work, duel, lists};
use crate::bench::report::{Row, Target};
use crate::bench::server::{Server, scratch};
use crate::bench::{Rows, Settings};

const FEW: u64 = 10_000;
/// Folders that the blobs of either container lie in.
const FOLDERS: u64 = 1000;
const WRITERS: usize = 64;

pub(super) async fn run(settings: &Settings) -> Rows {
    let folder = scratch(&settings.directory)?;
    let server = Server::start(&settings.lazuli(), folder.path()).await?;
    let many = settings.restart_blobs();
    for (container, count) in [("few", FEW), ("many", many)] {
        server.create_container(container).await?;
        Load::new(server.address(), WRITERS, puts(container))?.run_all(count).await?;
    }
    let mut rows = Vec::new();
    for (what, work) in [
        ("List Blobs, a page of 5000", lists as fn(&'static str) -> Work),
        ("List Blobs by hierarchy, a page of 1000 folders", folders),
    ] {
        let mut first = Load::new(server.address(), 1, work("many"))?;
        let mut second = Load::new(server.address(), 1, work("few"))?;
        let duel = duel(&mut first, &mut second, settings.turns()).await?;
        let cell = format!("{what} out of {many} blobs, against out of {FEW}");
        rows.push(Row::of_duel(&cell, &format!("out of {FEW}"), &duel, Target::AtLeast(0.67)));
    }
    Ok(rows)
}

/// Put Blob of empty blobs, in turn in each of the folders.
fn puts(container: &'static str) -> Work {
    let headers = HeaderMap::from_iter([(
        http::HeaderName::from_static("x-ms-blob-type"),
        http::HeaderValue::from_static("BlockBlob"),
    )]);
    Arc::new(move |n| Demand {
        method: Method::PUT,
        path: format!("{container}/folder-{:03}/and-a-name-{:08}", n % FOLDERS, n / FOLDERS),
        headers: headers.clone(),
        body: Bytes::new(),
        status: StatusCode::CREATED,
    })
}

/// The folders of a container.
fn folders(container: &'static str) -> Work {
    Arc::new(move |_| Demand {
        method: Method::GET,
        path: format!("{container}?restype=container&comp=list&delimiter=/&prefix=folder-"),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        status: StatusCode::OK,
    })
}
