//! The body of Put Message and Update Message: refused, or a text within its bound.
#![no_main]

use lazuli_api::wire::message::{self, TEXT_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = message::parse(data) {
        assert!(text.len() <= TEXT_BYTES_MAX);
        assert_eq!(message::parse_opt(data).ok().flatten(), Some(text));
    }
});
