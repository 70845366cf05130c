use bytes::{BufMut as _, Bytes, BytesMut};
use crc_fast::checksum;
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::code::Code;
use crate::head::HeaderCase;

const HELLO: &str =
    "0132000000000000000100010001000b0000000000000068656c6c6f20776f726c64be8eeaf6c3d5298dbe8eeaf6c3d5298d";

fn hello() -> Vec<u8> {
    (0..HELLO.len()).step_by(2).map(|at| u8::from_str_radix(&HELLO[at..at + 2], 16).unwrap()).collect()
}

fn fields(headers: &[(&'static str, &'static str)]) -> Fields {
    let pairs = headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    Fields::parse(pairs.collect::<HeaderMap>(), None, HeaderCase::default()).unwrap()
}

/// The content of a message that comes in parts of so many bytes.
fn decode_parts(content: u64, announced: Option<u64>, message: &[u8], part: usize) -> Result<Vec<u8>, Code> {
    let mut decoder = Decoder::new(content, announced);
    let mut decoded = Vec::new();
    for part in message.chunks(part.max(1)) {
        let mut part = Bytes::copy_from_slice(part);
        while let Some(bytes) = decoder.decode(&mut part).map_err(|problem| problem.code)? {
            decoded.extend_from_slice(&bytes);
        }
        assert!(part.is_empty());
    }
    decoder.finish().map_err(|problem| problem.code)?;
    Ok(decoded)
}

fn decode(content: u64, message: &[u8]) -> Result<Vec<u8>, Code> {
    decode_parts(content, Some(message.len() as u64), message, usize::MAX)
}

/// A message of these segments, each with a sum of its own.
fn message(segments: &[&[u8]]) -> Vec<u8> {
    let content = segments.concat();
    let segment_count = u16::try_from(segments.len()).unwrap();
    let mut out = BytesMut::new();
    out.put_u8(VERSION);
    out.put_u64_le(message_length(content.len() as u64, segment_count).unwrap());
    out.put_u16_le(FLAG_CRC64);
    out.put_u16_le(segment_count);
    for (number, segment) in (1..).zip(segments) {
        out.put_u16_le(number);
        out.put_u64_le(segment.len() as u64);
        out.put_slice(segment);
        out.put_u64_le(checksum(CrcAlgorithm::Crc64Nvme, segment));
    }
    out.put_u64_le(checksum(CrcAlgorithm::Crc64Nvme, &content));
    out.to_vec()
}

/// A content as the server sends it, which reads it in parts of so many bytes.
fn encode(content: &[u8], part: usize) -> Vec<u8> {
    let mut encoder = Encoder::new(content.len() as u64).unwrap();
    let mut out = encoder.begin().to_vec();
    for part in content.chunks(part) {
        let mut part = Bytes::copy_from_slice(part);
        while !part.is_empty() {
            let (content, after) = encoder.encode(&mut part);
            out.extend_from_slice(&content);
            out.extend_from_slice(&after);
        }
    }
    assert_eq!(out.len() as u64, encoder.message_length());
    out
}

#[test]
fn a_message_looks_like_this() {
    assert_eq!(encode(b"hello world", 4), hello());
    assert_eq!(message(&[b"hello world"]), hello());
    for part in 1..=50 {
        assert_eq!(decode_parts(11, Some(50), &hello(), part), Ok(b"hello world".to_vec()), "{part}");
    }
    assert_eq!(decode_parts(11, None, &hello(), 7), Ok(b"hello world".to_vec()));
}

#[test]
fn a_content_is_cut_into_segments() {
    let cases: [&[&[u8]]; 5] = [&[], &[b""], &[b"hello ", b"world"], &[b"", b"a", b"", b"b"], &[b"hello", b""]];
    for segments in cases {
        let content = segments.concat();
        assert_eq!(decode(content.len() as u64, &message(segments)), Ok(content), "{segments:?}");
    }
    assert_eq!(encode(b"", 1), message(&[b""]));
    let mib = vec![7; 1 << 20];
    let content = mib.repeat(9);
    assert_eq!(encode(&content, 300_000), message(&[&mib.repeat(4), &mib.repeat(4), &mib]));
    assert_eq!(encode(&mib.repeat(4), 1 << 20), message(&[&mib.repeat(4)]));
}

#[test]
fn the_longest_content_is_cut_into_longer_segments() {
    let longest = 65_535 * 4 * 1024 * 1024;
    for (content, segments) in [(longest, 65_535), (longest + 1, 65_535), (u64::MAX / 2, 65_535)] {
        let message = Encoder::new(content).map(|encoder| encoder.message_length());
        assert_eq!(message, message_length(content, segments), "{content}");
    }
    assert!(Encoder::new(u64::MAX).is_none());
}

#[test]
fn every_damaged_byte_is_found() {
    let whole = message(&[b"hello ", b"world"]);
    // Content and sums; all else is structure.
    let (first, second) =
        (HEADER_BYTES + SEGMENT_HEADER_BYTES, HEADER_BYTES + 2 * SEGMENT_HEADER_BYTES + 6 + CRC_BYTES);
    let summed = |at: usize| (first..first + 6 + CRC_BYTES).contains(&at) || at >= second;
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        let expected = if summed(at) { Code::Crc64Mismatch } else { Code::InvalidInput };
        assert_eq!(decode(11, &damaged), Err(expected), "byte {at}");
    }
}

#[test]
fn a_message_has_the_announced_lengths() {
    let whole = message(&[b"hello ", b"world"]);
    let length = whole.len() as u64;
    for content in [0, 10, 12, u64::MAX] {
        assert_eq!(decode(content, &whole), Err(Code::InvalidInput), "{content} bytes of content");
    }
    for announced in [0, length - 1, length + 1] {
        assert_eq!(decode_parts(11, Some(announced), &whole, 5), Err(Code::InvalidInput), "{announced} bytes");
    }
    for cut in 0..whole.len() {
        assert_eq!(decode_parts(11, Some(length), &whole[..cut], 5), Err(Code::InvalidInput), "cut at {cut}");
    }
    let longer = [&whole[..], b"x"].concat();
    assert_eq!(decode_parts(11, Some(length), &longer, 5), Err(Code::InvalidInput));
    assert_eq!(decode_parts(11, None, &longer, usize::MAX), Err(Code::InvalidInput));
}

#[test]
fn segments_hold_the_content_and_no_more() {
    let mut short = message(&[b"hello ", b"world"]);
    short[HEADER_BYTES + 2] = 5;
    assert_eq!(decode(11, &short), Err(Code::Crc64Mismatch), "the sum is taken from too early");
    let mut long = message(&[b"hello ", b"world"]);
    long[HEADER_BYTES + 2] = 12;
    assert_eq!(decode(11, &long), Err(Code::InvalidInput));
    let mut again = message(&[b"a", b"b"]);
    let second = HEADER_BYTES + SEGMENT_HEADER_BYTES + 1 + CRC_BYTES;
    again[second] = 1;
    assert_eq!(decode(2, &again), Err(Code::InvalidInput), "the first segment twice");
}

#[test]
fn a_damaged_sum_is_told() {
    let mut decoder = Decoder::new(11, None);
    let mut damaged = hello();
    damaged[34] ^= 1;
    let mut damaged = Bytes::from(damaged);
    assert!(decoder.decode(&mut damaged).unwrap().is_some());
    let problem = decoder.decode(&mut damaged).unwrap_err();
    let expected = [("UserSpecifiedCrc", "v47q9sPVKY0="), ("ServerCalculatedCrc", "vo7q9sPVKY0=")];
    assert_eq!(problem.details, expected.map(|(name, value)| (name, value.to_owned())));
}

#[test]
fn both_headers_are_there_or_none() {
    const ELEVEN: (&str, &str) = (CONTENT_LENGTH, "11");
    let cases: [(&[_], _); 10] = [
        (&[], Ok(None)),
        (&[(BODY, FORM), ELEVEN], Ok(Some(11))),
        (&[(BODY, "xsm/1.0;Properties=CRC64"), ELEVEN], Ok(Some(11))),
        (&[(BODY, FORM)], Err(Code::MissingRequiredHeader)),
        (&[ELEVEN], Err(Code::MissingRequiredHeader)),
        (&[(BODY, "XSM/2.0; properties=crc64"), ELEVEN], Err(Code::InvalidHeaderValue)),
        (&[(BODY, "XSM/1.0"), ELEVEN], Err(Code::InvalidHeaderValue)),
        (&[(BODY, FORM), (CONTENT_LENGTH, "-1")], Err(Code::InvalidHeaderValue)),
        (&[(BODY, FORM), (CONTENT_LENGTH, "+1")], Err(Code::InvalidHeaderValue)),
        (&[(BODY, FORM), (CONTENT_LENGTH, "18446744073709551616")], Err(Code::InvalidHeaderValue)),
    ];
    for (headers, expected) in cases {
        assert_eq!(content_length(&fields(headers)).map_err(|problem| problem.code), expected, "{headers:?}");
    }
}

proptest! {
    #[test]
    fn what_is_sent_is_what_is_read(content in prop::collection::vec(any::<u8>(), 0..2000), out in 1_usize..700, back in 1_usize..700) {
        let message = encode(&content, out);
        let decoded = decode_parts(content.len() as u64, Some(message.len() as u64), &message, back);
        prop_assert_eq!(decoded, Ok(content));
    }
}
