//! The body of Put Block List: refused, or a list within its bounds.
#![no_main]

use lazuli_api::wire::block_list;
use lazuli_engine::blob::blocks::{BLOCK_ID_BYTES_MAX, COMMITTED_BLOCKS_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(blocks) = block_list::parse(data) {
        assert!(blocks.len() <= COMMITTED_BLOCKS_MAX);
        assert!(blocks.iter().all(|(_, id)| (1..=BLOCK_ID_BYTES_MAX).contains(&id.0.len())));
    }
});
