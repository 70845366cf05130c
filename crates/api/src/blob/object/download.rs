//! Get Blob: <https://learn.microsoft.com/rest/api/storageservices/get-blob>

use bytes::{Bytes, BytesMut};
use crc_fast::{CrcAlgorithm, checksum};
use http::StatusCode;
use lazuli_engine::blob::content::Reader;
use lazuli_engine::blob::object::{self, Download};
use lazuli_engine::range::RangeRequest;
use md5::{Digest as _, Md5};

use super::{MIB, described, to_read};
use crate::answer::{Answer, Content};
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::operation::{Body, Operation, Permission};
use crate::wire::structured::{self, Encoder};
use crate::wire::{digest, range};

/// Largest range whose digest is computed: it is held in memory meanwhile.
const DIGEST_BYTES_MAX: u64 = 4 * MIB;
const RANGE_MD5: &str = "x-ms-range-get-content-md5";
const RANGE_CRC64: &str = "x-ms-range-get-content-crc64";

/// Get Blob: <https://learn.microsoft.com/rest/api/storageservices/get-blob>
pub(super) static GET_BLOB: Operation = Operation {
    name: "Blob_Download",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get_blob(call)),
};

async fn get_blob(call: Call) -> Result<Answer, Problem> {
    let on = to_read(&call)?;
    let range = range::parse(call.fields.header_opt("range")?, call.fields.header_opt("x-ms-range")?)?;
    let digest = RangeDigest::parse(&call.fields, range)?;
    let structured = structured::asked(&call.fields)?;
    if structured && digest.is_some() {
        return Err(Problem::header(structured::BODY, structured::FORM));
    }
    let download = object::download(&call.engine, on, range).await?;
    answer(download, digest, structured).await
}

async fn answer(download: Download, digest: Option<RangeDigest>, structured: bool) -> Result<Answer, Problem> {
    let Download { blob, range, reader } = download;
    let stored_md5 = blob.http.content_md5.map(digest::md5_text);
    let Some(range) = range else {
        let answer = described(Answer::ok(), &blob)
            .header("content-length", blob.length.to_string())
            .header_opt("content-md5", stored_md5);
        return Ok(sent(answer, reader, structured));
    };
    let last = range.first + (range.length - 1);
    let answer = described(Answer::new(StatusCode::PARTIAL_CONTENT), &blob)
        .header("content-range", format!("bytes {}-{last}/{}", range.first, blob.length))
        .header("content-length", range.length.to_string())
        .header_opt("x-ms-blob-content-md5", stored_md5);
    let Some(digest) = digest else { return Ok(sent(answer, reader, structured)) };
    if range.length > DIGEST_BYTES_MAX {
        return Err(Problem::new(Code::OutOfRangeInput));
    }
    let content = read_whole(reader).await?;
    let answer = match digest {
        RangeDigest::Md5 => answer.header("content-md5", digest::md5_text(Md5::digest(&content).into())),
        RangeDigest::Crc64 => {
            let crc64 = checksum(CrcAlgorithm::Crc64Nvme, &content);
            answer.header("x-ms-content-crc64", digest::crc64_text(crc64))
        }
    };
    Ok(Answer { content: Content::Bytes(content), ..answer })
}

/// The answer with the content as its body, as it is or as a structured message.
fn sent(answer: Answer, reader: Reader, structured: bool) -> Answer {
    match Encoder::new(reader.remaining()).filter(|_| structured) {
        Some(encoder) => answer.structured(reader, encoder),
        None => answer.reader(reader),
    }
}

async fn read_whole(mut reader: Reader) -> Result<Bytes, Problem> {
    let mut whole = BytesMut::new();
    while let Some(next) = reader.next().await? {
        whole.extend_from_slice(&next);
    }
    Ok(whole.freeze())
}

/// The digest of the range that is to be answered with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeDigest {
    Md5,
    Crc64,
}

impl RangeDigest {
    /// Refuses `InvalidHeaderValue` without a range or for both digests, `OutOfRangeInput` for a range of more than
    /// [`DIGEST_BYTES_MAX`].
    fn parse(fields: &Fields, range: Option<RangeRequest>) -> Result<Option<Self>, Problem> {
        let (digest, name) = match (flag(fields, RANGE_MD5)?, flag(fields, RANGE_CRC64)?) {
            (false, false) => return Ok(None),
            (true, true) => return Err(Problem::header(RANGE_CRC64, "true")),
            (true, false) => (Self::Md5, RANGE_MD5),
            (false, true) => (Self::Crc64, RANGE_CRC64),
        };
        match range {
            None => Err(Problem::header(name, "true")),
            Some(RangeRequest { first, last: Some(last) }) if last - first >= DIGEST_BYTES_MAX => {
                Err(Problem::new(Code::OutOfRangeInput))
            }
            Some(_) => Ok(Some(digest)),
        }
    }
}

fn flag(fields: &Fields, name: &'static str) -> Result<bool, Problem> {
    match fields.header_opt(name)? {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(text) => Err(Problem::header(name, text)),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::head::HeaderCase;

    #[test]
    fn a_digest_needs_a_range_of_at_most_four_mebibytes() {
        const TRUE: &str = "true";
        let range = |last| Some(RangeRequest { first: 1, last });
        let cases: [(&[_], _, _); 11] = [
            (&[], None, Ok(None)),
            (&[(RANGE_MD5, "false")], None, Ok(None)),
            (&[(RANGE_MD5, TRUE)], range(Some(9)), Ok(Some(RangeDigest::Md5))),
            (&[(RANGE_CRC64, "True")], range(Some(9)), Ok(Some(RangeDigest::Crc64))),
            (&[(RANGE_MD5, TRUE)], range(None), Ok(Some(RangeDigest::Md5))),
            (&[(RANGE_MD5, TRUE)], range(Some(DIGEST_BYTES_MAX)), Ok(Some(RangeDigest::Md5))),
            (&[(RANGE_MD5, TRUE)], range(Some(DIGEST_BYTES_MAX + 1)), Err(Code::OutOfRangeInput)),
            (&[(RANGE_MD5, TRUE)], None, Err(Code::InvalidHeaderValue)),
            (&[(RANGE_CRC64, TRUE)], None, Err(Code::InvalidHeaderValue)),
            (&[(RANGE_MD5, TRUE), (RANGE_CRC64, TRUE)], range(Some(9)), Err(Code::InvalidHeaderValue)),
            (&[(RANGE_MD5, "yes")], range(Some(9)), Err(Code::InvalidHeaderValue)),
        ];
        for (headers, range, expected) in cases {
            let map: HeaderMap = headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            let fields = Fields::parse(map, None, HeaderCase::default()).unwrap();
            let answer = RangeDigest::parse(&fields, range).map_err(|problem| problem.code);
            assert_eq!(answer, expected, "{headers:?} {range:?}");
        }
    }
}
