//! The version of an object in headers: ETag and Last-Modified.

use lazuli_engine::etag::Etag;

use crate::answer::Answer;
use crate::wire::date;

/// The quoted form: `"0x8DE367BCEBC6CC0"`.
pub fn quoted(etag: Etag) -> String {
    format!("\"{etag}\"")
}

/// The answer with ETag and Last-Modified.
#[must_use]
pub fn onto(answer: Answer, etag: Etag) -> Answer {
    answer.header("etag", quoted(etag)).header("last-modified", date::rfc1123(etag.committed()))
}

#[cfg(test)]
mod tests {
    use lazuli_engine::clock::Timestamp;

    use super::*;

    #[test]
    fn a_version_is_a_quoted_etag_and_its_second() {
        let answer = onto(Answer::ok(), Etag::at(Timestamp::from_unix_seconds(1_785_542_400)));
        assert_eq!(answer.headers["etag"], "\"0x8DEEF5FD48B0000\"");
        assert_eq!(answer.headers["last-modified"], "Sat, 01 Aug 2026 00:00:00 GMT");
    }
}
