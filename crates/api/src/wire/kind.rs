//! The kinds of blobs by name, and what is said of each.

use http::HeaderMap;
use lazuli_engine::blob::kind::BlobKind;

use crate::answer::Answer;

/// The value of `x-ms-blob-type` and of the element `BlobType`.
pub fn name(kind: BlobKind) -> &'static str {
    match kind {
        BlobKind::Block => "BlockBlob",
        BlobKind::Append { .. } => "AppendBlob",
        BlobKind::Page { .. } => "PageBlob",
    }
}

/// The answer to a read with the blob's kind, and what only a blob of that kind has.
#[must_use]
pub fn onto(answer: Answer, kind: BlobKind) -> Answer {
    let answer = answer.header("x-ms-blob-type", name(kind));
    match kind {
        BlobKind::Block => answer,
        BlobKind::Append { blocks, sealed } => answer
            .header("x-ms-blob-committed-block-count", blocks.to_string())
            .header_opt("x-ms-blob-sealed", sealed.then_some("true")),
        BlobKind::Page { sequence } => answer.header("x-ms-blob-sequence-number", sequence.to_string()),
    }
}

/// Of another server's answer that describes a blob; what is no blob of this protocol becomes a block blob.
pub fn of_answer(headers: &HeaderMap) -> BlobKind {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match text("x-ms-blob-type") {
        "AppendBlob" => BlobKind::Append {
            blocks: text("x-ms-blob-committed-block-count").parse().unwrap_or_default(),
            sealed: text("x-ms-blob-sealed").eq_ignore_ascii_case("true"),
        },
        "PageBlob" => BlobKind::Page { sequence: text("x-ms-blob-sequence-number").parse().unwrap_or_default() },
        _ => BlobKind::Block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_says_what_only_it_has() {
        let cases: [(_, &[(&str, &str)]); 4] = [
            (BlobKind::Block, &[("x-ms-blob-type", "BlockBlob")]),
            (
                BlobKind::Append { blocks: 3, sealed: false },
                &[("x-ms-blob-committed-block-count", "3"), ("x-ms-blob-type", "AppendBlob")],
            ),
            (
                BlobKind::Append { blocks: 0, sealed: true },
                &[
                    ("x-ms-blob-committed-block-count", "0"),
                    ("x-ms-blob-sealed", "true"),
                    ("x-ms-blob-type", "AppendBlob"),
                ],
            ),
            (BlobKind::Page { sequence: 7 }, &[("x-ms-blob-sequence-number", "7"), ("x-ms-blob-type", "PageBlob")]),
        ];
        for (kind, expected) in cases {
            let answer = onto(Answer::ok(), kind);
            let mut given: Vec<_> =
                answer.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            given.sort_unstable();
            assert_eq!(given, expected, "{kind:?}");
        }
    }
}
