//! A statement of a query: refused, or within its bounds.
#![no_main]

use lazuli_api::blob::query::sql::parse;
use lazuli_api::blob::query::sql::syntax::{COLUMNS_MAX, SPLIT_BYTES_MIN, Select};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match parse(text) {
    Ok(statement) => match statement.select {
        Select::All => {}
        Select::Columns(columns) => assert!((1..=COLUMNS_MAX).contains(&columns.len())),
        Select::Aggregates(columns) => assert!((1..=COLUMNS_MAX).contains(&columns.len())),
        Select::Split(bytes) => assert!(bytes >= SPLIT_BYTES_MIN),
    },
    Err(error) => assert!(error.position <= text.len() && text.is_char_boundary(error.position)),
});
