//! A request's head, one field per line: Authorization, x-ms-date, x-ms-version, path, query. Nobody knows the key, so
//! nothing of it may succeed or break the server.
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

/// The moment of [`DATE`].
const NOW: Timestamp = Timestamp::from_unix_seconds(1_785_542_400);
const DATE: &str = "Sat, 01 Aug 2026 00:00:00 GMT";

/// Keys for tokens, whose private halves nobody has here.
const KEYS: &[u8] = include_bytes!("../../crates/api/src/auth/bearer/fixtures/keys.json");

static SERVER: LazyLock<(Runtime, Arc<App>)> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let clock = Arc::new(HeldClock::at(NOW));
    let engine = runtime.block_on(Engine::memory(clock.clone())).expect("an engine in memory");
    let accounts = Accounts::default().with("fuzz", &["c2VjcmV0"]).expect("an account");
    let accounts = accounts.trusting(Issuer::signing("https://issuer.example", KEYS).expect("public keys"));
    (runtime, Arc::new(App { engine, accounts, clock, options: Options::default(), remote: Remote::default() }))
});

fuzz_target!(|data: &[u8]| {
    let mut lines = data.split(|byte| *byte == b'\n').chain(std::iter::repeat(&b""[..]));
    let mut next = || lines.next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    for (name, fallback) in
        [("authorization", "SharedKey fuzz:AAAA"), ("x-ms-date", DATE), ("x-ms-version", "2026-10-06")]
    {
        let line = next();
        let value = if line.is_empty() { fallback.as_bytes() } else { line };
        let Ok(value) = HeaderValue::from_bytes(value) else { return };
        headers.insert(name, value);
    }
    headers.insert("host", HeaderValue::from_static("127.0.0.1:10000"));
    let path = String::from_utf8_lossy(next()).into_owned();
    let query = String::from_utf8_lossy(next()).into_owned();
    let request = Request {
        method: Method::GET,
        raw_path: format!("/fuzz{path}"),
        raw_query: Some(query).filter(|query| !query.is_empty()),
        headers,
        case: HeaderCase::default(),
        peer: Peer::at([127, 0, 0, 1].into(), false),
        chunks: futures_util::stream::empty().boxed(),
    };
    let (runtime, app) = &*SERVER;
    let status = runtime.block_on(serve(app, Service::Blob, request)).status();
    assert!(status.is_client_error() || status == http::StatusCode::NOT_IMPLEMENTED, "{status}");
});
