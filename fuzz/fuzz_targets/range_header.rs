//! Range and x-ms-range, one per line: refused, absent, or a range that fits every content.
#![no_main]

use lazuli_api::wire::range;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n').map(|line| Some(line).filter(|line| !line.is_empty()));
    let (plain, own) = (lines.next().flatten(), lines.next().flatten());
    let Ok(Some(range)) = range::parse(plain, own) else { return };
    assert!(range.last.is_none_or(|last| last >= range.first), "{range:?}");
    for length in [0, 1, 511, 4096, range.first, range.first.saturating_add(1), u64::MAX] {
        match range.within(length) {
            Ok(part) => assert!(part.length > 0 && part.first + (part.length - 1) < length, "{range:?} {length}"),
            Err(_) => assert!(range.first >= length, "{range:?} {length}"),
        }
    }
});
