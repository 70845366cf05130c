//! A batch: refused, or at most as many requests as allowed, each with a path.
#![no_main]

use lazuli_api::wire::multipart::parts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(parts) = parts(data, "b", 8) else { return };
    assert!(parts.len() <= 8);
    for request in parts.iter().filter_map(|part| part.request().ok()) {
        assert!(request.raw_path.starts_with('/'));
    }
});
