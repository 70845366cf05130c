//! The document of an entity or of a table: refused, or within its bounds.
#![no_main]

use lazuli_api::table::odata::document::{Described, table};
use lazuli_engine::table::PROPERTIES_MAX;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    if let Ok(entity) = Described::read(body) {
        assert!(entity.properties.0.len() <= PROPERTIES_MAX);
    }
    let _ = table(body);
});
