//! The query of a request: a shared access signature, whatever it is for. Nobody knows the key, so nothing of it may
//! succeed or break the server.
#![no_main]

use std::sync::{Arc, LazyLock};

use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, Method};
use lazuli_api::auth::Peer;
use lazuli_api::auth::accounts::Accounts;
use lazuli_api::auth::bearer::Issuer;
use lazuli_api::head::HeaderCase;
use lazuli_api::remote::Remote;
use lazuli_api::serve::{App, Options, Request, serve};
use lazuli_api::target::Service;
use lazuli_engine::Engine;
use lazuli_engine::clock::{HeldClock, Timestamp};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

/// A moment within the times of the seeds.
const NOW: Timestamp = Timestamp::from_unix_seconds(1_785_542_400);
/// What a signature looks like.
const SIGNATURE: &str = "sig=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3D";

static SERVER: LazyLock<(Runtime, Arc<App>)> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let clock = Arc::new(HeldClock::at(NOW));
    let engine = runtime.block_on(Engine::memory(clock.clone())).expect("an engine in memory");
    let accounts = Accounts::default().with("fuzz", &["c2VjcmV0"]).expect("an account").trusting(Issuer::form_only());
    (runtime, Arc::new(App { engine, accounts, clock, options: Options::default(), remote: Remote::default() }))
});

fuzz_target!(|data: &[u8]| {
    let (first, rest) = data.split_at(data.len().min(1));
    let service = if first == b"q" { Service::Queue } else { Service::Blob };
    let mut lines = rest.splitn(2, |byte| *byte == b'\n');
    let mut next = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (path, query) = (next(), next());
    let query = if query.contains("sig=") { query } else { format!("{query}&{SIGNATURE}") };
    let request = Request {
        method: Method::GET,
        raw_path: format!("/fuzz/{path}"),
        raw_query: Some(query),
        headers: HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_static("127.0.0.1:10000"))]),
        case: HeaderCase::default(),
        peer: Peer::at([127, 0, 0, 1].into(), false),
        chunks: futures_util::stream::empty().boxed(),
    };
    let (runtime, app) = &*SERVER;
    let status = runtime.block_on(serve(app, service, request)).status();
    assert!(status.is_client_error() || status == http::StatusCode::NOT_IMPLEMENTED, "{status}");
});
