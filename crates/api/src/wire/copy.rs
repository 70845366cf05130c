//! What a blob remembers of the copy that made it, in headers and in XML.
//! <https://learn.microsoft.com/rest/api/storageservices/get-blob-properties>

use lazuli_engine::blob::copying::{CopyState, CopyStatus};

use crate::answer::Answer;
use crate::wire::date;
use crate::wire::xml::Writer;

/// The value of `x-ms-copy-status` and of `CopyStatus`.
pub const fn status_text(status: CopyStatus) -> &'static str {
    match status {
        CopyStatus::Pending => "pending",
        CopyStatus::Success => "success",
        CopyStatus::Aborted => "aborted",
        CopyStatus::Failed => "failed",
    }
}

fn progress(copy: &CopyState) -> String {
    format!("{}/{}", copy.done, copy.total)
}

/// The answer with the copy in its headers.
#[must_use]
pub fn onto(answer: Answer, copy: Option<&CopyState>) -> Answer {
    let Some(copy) = copy else { return answer };
    answer
        .header("x-ms-copy-id", copy.id.to_string())
        .header("x-ms-copy-status", status_text(copy.status))
        .header("x-ms-copy-source", &copy.source)
        .header("x-ms-copy-progress", progress(copy))
        .header_opt("x-ms-copy-completion-time", copy.ended.map(date::rfc1123))
        .header_opt("x-ms-copy-status-description", copy.description.as_deref())
        .header_opt("x-ms-incremental-copy", copy.incremental.map(|_| "true"))
        .header_opt("x-ms-copy-destination-snapshot", made(copy))
}

/// The snapshot that an incremental copy made; one that is not complete has made none.
fn made(copy: &CopyState) -> Option<String> {
    let complete = copy.incremental.filter(|_| copy.status == CopyStatus::Success);
    complete.and_then(|last| last.snapshot).map(date::iso8601)
}

/// The elements of a listing.
pub fn elements(xml: &mut Writer, copy: Option<&CopyState>) {
    let Some(copy) = copy else { return };
    xml.text("CopyId", &copy.id.to_string());
    xml.text("CopyStatus", status_text(copy.status));
    xml.text("CopySource", &copy.source);
    xml.text("CopyProgress", &progress(copy));
    xml.text_opt("CopyCompletionTime", copy.ended.map(date::rfc1123).as_deref());
    xml.text_opt("CopyStatusDescription", copy.description.as_deref());
}

/// The elements of a listing that say what an incremental copy has come to.
pub fn incremental_elements(xml: &mut Writer, copy: Option<&CopyState>) {
    let Some(copy) = copy.filter(|copy| copy.incremental.is_some()) else { return };
    xml.text("IncrementalCopy", "true");
    xml.text_opt("CopyDestinationSnapshot", made(copy).as_deref());
}

#[cfg(test)]
mod tests {
    use lazuli_engine::blob::copying::Incremental;
    use lazuli_engine::clock::Timestamp;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_copy_is_told_in_headers_and_elements() {
        let failed = CopyState {
            id: Uuid::from_u128(1),
            source: "http://host/a&b".into(),
            status: CopyStatus::Failed,
            done: 3,
            total: 10,
            ended: Some(Timestamp::from_unix_seconds(1_785_542_400)),
            description: Some("404 BlobNotFound".into()),
            incremental: None,
        };
        let answer = onto(Answer::ok(), Some(&failed));
        let expected = [
            ("x-ms-copy-id", "00000000-0000-0000-0000-000000000001"),
            ("x-ms-copy-status", "failed"),
            ("x-ms-copy-source", "http://host/a&b"),
            ("x-ms-copy-progress", "3/10"),
            ("x-ms-copy-completion-time", "Sat, 01 Aug 2026 00:00:00 GMT"),
            ("x-ms-copy-status-description", "404 BlobNotFound"),
        ];
        for (name, value) in expected {
            assert_eq!(answer.headers[name], value, "{name}");
        }
        let mut xml = Writer::begin();
        elements(&mut xml, Some(&failed));
        let text = String::from_utf8(xml.finish()).unwrap();
        let expected = "<CopyId>00000000-0000-0000-0000-000000000001</CopyId><CopyStatus>failed</CopyStatus><CopySource>\
                        http://host/a&amp;b</CopySource><CopyProgress>3/10</CopyProgress><CopyCompletionTime>Sat, 01 \
                        Aug 2026 00:00:00 GMT</CopyCompletionTime><CopyStatusDescription>404 BlobNotFound\
                        </CopyStatusDescription>";
        assert!(text.ends_with(expected), "{text}");
        assert!(onto(Answer::ok(), None).headers.is_empty());
        let mut xml = Writer::begin();
        incremental_elements(&mut xml, Some(&failed));
        assert!(!String::from_utf8(xml.finish()).unwrap().contains("IncrementalCopy"));
    }

    #[test]
    fn an_incremental_copy_names_the_snapshot_that_it_made() {
        let august = Timestamp::from_unix_seconds(1_785_542_400);
        let copied = CopyState {
            id: Uuid::from_u128(1),
            source: "http://host/a".into(),
            status: CopyStatus::Success,
            done: 512,
            total: 512,
            ended: Some(august),
            description: None,
            incremental: Some(Incremental { snapshot: Some(august), source: [0; 32], of: august }),
        };
        let answer = onto(Answer::ok(), Some(&copied));
        assert_eq!(answer.headers["x-ms-incremental-copy"], "true");
        assert_eq!(answer.headers["x-ms-copy-destination-snapshot"], "2026-08-01T00:00:00.0000000Z");
        for status in [CopyStatus::Pending, CopyStatus::Aborted, CopyStatus::Failed] {
            let answer = onto(Answer::ok(), Some(&CopyState { status, ..copied.clone() }));
            assert_eq!(answer.headers["x-ms-incremental-copy"], "true");
            assert!(!answer.headers.contains_key("x-ms-copy-destination-snapshot"), "{status:?}");
        }
        let mut xml = Writer::begin();
        incremental_elements(&mut xml, Some(&copied));
        let text = String::from_utf8(xml.finish()).unwrap();
        let expected = "<IncrementalCopy>true</IncrementalCopy><CopyDestinationSnapshot>2026-08-01T00:00:00.0000000Z\
                        </CopyDestinationSnapshot>";
        assert!(text.ends_with(expected), "{text}");
    }
}
