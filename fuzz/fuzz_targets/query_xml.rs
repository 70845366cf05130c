//! The body of Query Blob Contents: refused, or a request within its bounds.
#![no_main]

use lazuli_api::blob::query::request::{self, EXPRESSION_BYTES_MAX, Format};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(request) = request::parse(data) {
        assert!(request.expression.len() <= EXPRESSION_BYTES_MAX);
        assert!(!matches!(request.input, Format::Arrow(_)) && request.output != Format::Parquet);
    }
});
