//! A structured message on its way out.

use bytes::{BufMut as _, Bytes, BytesMut};
use crc_fast::Digest;

use super::{CRC_BYTES, FLAG_CRC64, HEADER_BYTES, SEGMENT_HEADER_BYTES, VERSION, crc64, message_length};

/// Content of a full segment. Contents that need more segments than can be numbered have longer ones.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Puts a message around content as it comes.
#[derive(Debug)]
pub struct Encoder {
    /// Content that is still to come.
    left: u64,
    message: u64,
    segments: u16,
    segment_bytes: u64,
    segment: u16,
    /// Of the present segment.
    segment_left: u64,
    segment_crc: Digest,
    content_crc: Digest,
}

impl Encoder {
    /// An encoder for `content` bytes; none if no message can be that long.
    pub fn new(content: u64) -> Option<Self> {
        let segment_bytes = SEGMENT_BYTES.max(content.div_ceil(u16::MAX.into()));
        // An empty content is one empty segment.
        let segments = u16::try_from(content.div_ceil(segment_bytes).max(1)).ok()?;
        Some(Self {
            left: content,
            message: message_length(content, segments)?,
            segments,
            segment_bytes,
            segment: 0,
            segment_left: 0,
            segment_crc: crc64(),
            content_crc: crc64(),
        })
    }

    /// The length of the whole message.
    pub const fn message_length(&self) -> u64 {
        self.message
    }

    /// What comes before all content; of an empty one, the whole message.
    pub fn begin(&mut self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEADER_BYTES + SEGMENT_HEADER_BYTES + 2 * CRC_BYTES);
        out.put_u8(VERSION);
        out.put_u64_le(self.message);
        out.put_u16_le(FLAG_CRC64);
        out.put_u16_le(self.segments);
        self.begin_segment(&mut out);
        if self.segment_left == 0 {
            self.end_segment(&mut out);
        }
        out.freeze()
    }

    /// Takes content off the front of `content`, which comes next, and hands out that part of the message: the content
    /// itself, and what follows it. Nothing is copied. `content` is not empty, and all of it is not longer than was
    /// said.
    pub fn encode(&mut self, content: &mut Bytes) -> (Bytes, Bytes) {
        let length = usize::try_from(self.segment_left).unwrap_or(usize::MAX).min(content.len());
        let part = content.split_to(length);
        self.segment_crc.update(&part);
        self.segment_left -= length as u64;
        let mut out = BytesMut::new();
        if self.segment_left == 0 {
            self.end_segment(&mut out);
        }
        (part, out.freeze())
    }

    fn begin_segment(&mut self, out: &mut BytesMut) {
        self.segment += 1;
        self.segment_left = self.left.min(self.segment_bytes);
        self.left -= self.segment_left;
        out.put_u16_le(self.segment);
        out.put_u64_le(self.segment_left);
    }

    fn end_segment(&mut self, out: &mut BytesMut) {
        let crc = std::mem::replace(&mut self.segment_crc, crc64());
        self.content_crc.combine(&crc);
        out.put_u64_le(crc.finalize());
        if self.segment < self.segments {
            self.begin_segment(out);
        } else {
            out.put_u64_le(self.content_crc.finalize());
        }
    }
}
