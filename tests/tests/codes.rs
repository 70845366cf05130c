//! That no error code is only written down: each is provoked over a real socket by some test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use std::path::Path;

use lazuli_api::code::Code;

/// Codes that no test here provokes, and why.
const ELSEWHERE: [(&str, &str); 2] = [
    ("BlockCountExceedsLimit", "takes 50 000 requests: a test beside the list of appended blocks counts"),
    ("OperationTimedOut", "takes a minute: a test beside the reading of bodies moves the clock"),
];

/// All tests over HTTP, as text.
fn tests(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.extension().is_some_and(|kind| ["rs", "py", "js", "mjs"].iter().any(|known| kind == *known));
        if path.is_dir() && !path.ends_with("node_modules") {
            tests(&path, text);
        } else if is_test && !path.ends_with("codes.rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_code_is_provoked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    tests(&root.join("tests"), &mut text);
    tests(&root.join("clients"), &mut text);
    let words: std::collections::HashSet<_> = text.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let unprovoked: Vec<_> = Code::ALL.iter().map(|code| code.name()).filter(|name| !words.contains(name)).collect();
    assert_eq!(unprovoked, ELSEWHERE.map(|(name, _)| name), "codes without a test, and codes that need no excuse");
}
