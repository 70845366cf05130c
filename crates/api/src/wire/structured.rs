//! Structured messages: a body in segments, each followed by its CRC-64, so that damage on the way is found while the
//! body streams. <https://learn.microsoft.com/rest/api/storageservices/put-blob>
//!
//! ```text
//! message   version u8 = 1, length of the message u64, flags u16 = 1 (CRC-64), segments u16,
//!           the segments, CRC-64 of all content
//! segment   number u16, from 1 on, length of its content u64, the content, CRC-64 of the content
//! ```
//!
//! All numbers are little-endian. There is no other version and no other flag.

mod decode;
mod encode;

use crc_fast::{CrcAlgorithm, Digest};

pub use decode::Decoder;
pub use encode::Encoder;

use crate::error::Problem;
use crate::fields::Fields;

/// The header that says that a body is a structured message, or that the answer's is to be one.
pub const BODY: &str = "x-ms-structured-body";
/// The header with the length of the content alone.
pub const CONTENT_LENGTH: &str = "x-ms-structured-content-length";
/// The value of [`BODY`].
pub const FORM: &str = "XSM/1.0; properties=crc64";

const VERSION: u8 = 1;
const FLAG_CRC64: u16 = 1;
const HEADER_BYTES: usize = 13;
const SEGMENT_HEADER_BYTES: usize = 10;
const CRC_BYTES: usize = 8;

/// Whether the request has a structured body, or asks for one.
///
/// Refuses `InvalidHeaderValue` for another form than [`FORM`].
pub fn asked(fields: &Fields) -> Result<bool, Problem> {
    let Some(text) = fields.header_opt(BODY)? else { return Ok(false) };
    let compact: String = text.chars().filter(|character| *character != ' ').collect();
    if compact.eq_ignore_ascii_case(&FORM.replace(' ', "")) { Ok(true) } else { Err(Problem::header(BODY, text)) }
}

/// The length of a structured body's content; none if the body is not structured.
///
/// Refuses `InvalidHeaderValue`, and `MissingRequiredHeader` for one of the two headers without the other.
pub fn content_length(fields: &Fields) -> Result<Option<u64>, Problem> {
    match (asked(fields)?, fields.header_opt(CONTENT_LENGTH)?) {
        (false, None) => Ok(None),
        (false, Some(_)) => Err(Problem::missing_header(BODY)),
        (true, None) => Err(Problem::missing_header(CONTENT_LENGTH)),
        (true, Some(text)) => match text.parse() {
            Ok(length) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Some(length)),
            _ => Err(Problem::header(CONTENT_LENGTH, text)),
        },
    }
}

/// The length of a message of so much content in so many segments; none if no number holds it.
fn message_length(content: u64, segments: u16) -> Option<u64> {
    let around = HEADER_BYTES + CRC_BYTES + usize::from(segments) * (SEGMENT_HEADER_BYTES + CRC_BYTES);
    content.checked_add(around as u64)
}

fn crc64() -> Digest {
    Digest::new(CrcAlgorithm::Crc64Nvme)
}

#[cfg(test)]
mod tests;
