//! Structured messages, written down apart from the server's own.

use crc_fast::{CrcAlgorithm, checksum};
use lazuli_api::wire::structured::{BODY, CONTENT_LENGTH, FORM};

use crate::signed::Request;

/// A message of `content` in segments of so many bytes.
pub fn message(content: &[u8], segment_bytes: usize) -> Vec<u8> {
    let segments: Vec<&[u8]> = content.chunks(segment_bytes).collect();
    let length = 13 + content.len() + segments.len() * 18 + 8;
    let mut out = vec![1];
    out.extend((length as u64).to_le_bytes());
    out.extend([1, 0]);
    out.extend(short(segments.len()));
    for (index, segment) in segments.iter().enumerate() {
        out.extend(short(index + 1));
        out.extend((segment.len() as u64).to_le_bytes());
        out.extend(*segment);
        out.extend(crc64(segment));
    }
    out.extend(crc64(content));
    out
}

/// The request with a structured body of so much content.
pub fn structured(request: Request, content: usize, message: Vec<u8>) -> Request {
    request.header(BODY, FORM).header(CONTENT_LENGTH, content.to_string()).body(message)
}

fn short(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes()
}

fn crc64(bytes: &[u8]) -> [u8; 8] {
    checksum(CrcAlgorithm::Crc64Nvme, bytes).to_le_bytes()
}
