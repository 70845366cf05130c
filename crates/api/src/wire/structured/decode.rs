//! A structured message on its way in.

use bytes::{Buf as _, Bytes};
use crc_fast::Digest;

use super::{CRC_BYTES, FLAG_CRC64, HEADER_BYTES, SEGMENT_HEADER_BYTES, VERSION, crc64, message_length};
use crate::code::Code;
use crate::error::Problem;
use crate::wire::digest;

/// Takes a message apart as its bytes come, and checks all that it says.
#[derive(Debug)]
pub struct Decoder {
    next: Part,
    /// Bytes of a part that came in pieces.
    begun: Vec<u8>,
    /// Length of the message, if it was announced.
    announced: Option<u64>,
    /// Content that is still to come.
    left: u64,
    segments: u16,
    segment: u16,
    /// Of the present segment.
    segment_left: u64,
    segment_crc: Digest,
    content_crc: Digest,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Header,
    SegmentHeader,
    Content,
    SegmentCrc,
    ContentCrc,
    Nothing,
}

impl Decoder {
    /// A decoder for a message of `content` bytes of content; `announced`: the length of the message, if it is known.
    pub fn new(content: u64, announced: Option<u64>) -> Self {
        Self {
            next: Part::Header,
            begun: Vec::with_capacity(HEADER_BYTES),
            announced,
            left: content,
            segments: 0,
            segment: 0,
            segment_left: 0,
            segment_crc: crc64(),
            content_crc: crc64(),
        }
    }

    /// Takes bytes off the front of `message`, which came next, up to some content, which it hands out; none if
    /// `message` has been used up.
    ///
    /// Refuses `InvalidInput` for what is no message of the announced lengths, `Crc64Mismatch` for damaged content.
    pub fn decode(&mut self, message: &mut Bytes) -> Result<Option<Bytes>, Problem> {
        loop {
            let part = self.next;
            match part {
                Part::Nothing if message.is_empty() => return Ok(None),
                Part::Nothing => return Err(malformed("it goes on after its end")),
                Part::Content if self.segment_left == 0 => self.next = Part::SegmentCrc,
                Part::Content if message.is_empty() => return Ok(None),
                Part::Content => {
                    let length = usize::try_from(self.segment_left).unwrap_or(usize::MAX).min(message.len());
                    let content = message.split_to(length);
                    self.segment_left -= length as u64;
                    self.segment_crc.update(&content);
                    return Ok(Some(content));
                }
                _ if self.gather(part.bytes(), message) => self.take(part)?,
                _ => return Ok(None),
            }
        }
    }

    /// Sees to it that the message has come to its end.
    ///
    /// Refuses `InvalidInput`.
    pub fn finish(&self) -> Result<(), Problem> {
        if self.next == Part::Nothing { Ok(()) } else { Err(malformed("it ends too early")) }
    }

    /// Whether a part of so many bytes is there as a whole.
    fn gather(&mut self, bytes: usize, message: &mut Bytes) -> bool {
        let more = bytes.saturating_sub(self.begun.len()).min(message.len());
        self.begun.extend_from_slice(&message.split_to(more));
        self.begun.len() == bytes
    }

    /// Reads a part that is there as a whole.
    fn take(&mut self, part: Part) -> Result<(), Problem> {
        let begun = std::mem::take(&mut self.begun);
        let mut bytes = begun.as_slice();
        match part {
            Part::Header => {
                let (version, length) = (bytes.get_u8(), bytes.get_u64_le());
                let (flags, segments) = (bytes.get_u16_le(), bytes.get_u16_le());
                self.header(version, length, flags, segments)
            }
            Part::SegmentHeader => {
                let (number, length) = (bytes.get_u16_le(), bytes.get_u64_le());
                self.segment_header(number, length)
            }
            Part::SegmentCrc => {
                let segment = std::mem::replace(&mut self.segment_crc, crc64());
                self.content_crc.combine(&segment);
                self.next_segment();
                digest::check_crc64(bytes.get_u64_le(), segment.finalize())
            }
            Part::ContentCrc => {
                self.next = Part::Nothing;
                digest::check_crc64(bytes.get_u64_le(), self.content_crc.finalize())
            }
            Part::Content | Part::Nothing => Ok(()),
        }
    }

    fn header(&mut self, version: u8, length: u64, flags: u16, segments: u16) -> Result<(), Problem> {
        if version != VERSION {
            return Err(malformed("its version is not 1"));
        }
        if flags != FLAG_CRC64 {
            return Err(malformed("its flags are not those of a CRC-64"));
        }
        if self.announced.is_some_and(|announced| announced != length) {
            return Err(malformed("its length is not the body's"));
        }
        if message_length(self.left, segments) != Some(length) {
            return Err(malformed("its length is not that of its content and segments"));
        }
        self.segments = segments;
        self.next_segment();
        Ok(())
    }

    fn segment_header(&mut self, number: u16, length: u64) -> Result<(), Problem> {
        if number != self.segment + 1 {
            return Err(malformed("its segments are not numbered in order"));
        }
        let rest = self.left.checked_sub(length).ok_or_else(|| malformed("a segment is longer than the content"))?;
        if number == self.segments && rest > 0 {
            return Err(malformed("its segments are shorter than the content"));
        }
        (self.segment, self.segment_left, self.left) = (number, length, rest);
        self.next = Part::Content;
        Ok(())
    }

    fn next_segment(&mut self) {
        self.next = if self.segment < self.segments { Part::SegmentHeader } else { Part::ContentCrc };
    }
}

impl Part {
    const fn bytes(self) -> usize {
        match self {
            Self::Header => HEADER_BYTES,
            Self::SegmentHeader => SEGMENT_HEADER_BYTES,
            Self::SegmentCrc | Self::ContentCrc => CRC_BYTES,
            Self::Content | Self::Nothing => 0,
        }
    }
}

/// The service's own code for a malformed message is not documented.
fn malformed(reason: &str) -> Problem {
    Problem::new(Code::InvalidInput).saying(format!("The request's body is not a valid structured message: {reason}."))
}
