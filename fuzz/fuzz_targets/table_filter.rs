//! A filter of entities: refused at a place of its text, or not nested deeper than it may be.
#![no_main]

use lazuli_api::table::odata::filter::{DEPTH_MAX, parse};
use lazuli_engine::table::expression::Expression;
use libfuzzer_sys::fuzz_target;

fn depth(expression: &Expression) -> usize {
    match expression {
        Expression::Constant(_) | Expression::Compare { .. } => 1,
        Expression::Not(inner) => 1 + depth(inner),
        Expression::All(parts) | Expression::Any(parts) => 1 + parts.iter().map(depth).max().unwrap_or_default(),
    }
}

fuzz_target!(|text: &str| match parse(text) {
    Ok(expression) => assert!(depth(&expression) <= 3 * (DEPTH_MAX + 1)),
    Err(wrong) => assert!(wrong.position <= text.len() && text.is_char_boundary(wrong.position)),
});
