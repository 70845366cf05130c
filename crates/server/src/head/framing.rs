//! Where heads end and bodies begin in a stream of HTTP/1.1 messages, in either direction.
//!
//! Only what is needed to find the next head: this reader never decides what a request means, so a stream that it
//! misreads costs the case of a name and nothing else.

/// Heads beyond this many bytes are not remembered. hyper refuses them anyway.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Digits of a chunk's size beyond which the stream is no longer followed: 2^60 bytes.
const CHUNK_SIZE_DIGITS_MAX: u8 = 15;

/// How far a message's body reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// It has this many bytes still to come; 0 is the end.
    Length(u64),
    /// Chunks.
    Chunked(Chunk),
    /// To the end of the stream, or unknown: nothing is looked at any more.
    Endless,
}

/// Where within a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// In the digits of a size.
    Size { bytes: u64, digits: u8 },
    /// Behind the digits, before the end of the line.
    Extension { bytes: u64 },
    /// In a chunk's bytes and the line end behind them.
    Data { bytes: u64 },
    /// In the line end behind a chunk's bytes.
    DataEnd,
    /// In the fields behind the last chunk. `empty`: nothing but a line end since the last line.
    Trailer { empty: bool },
}

impl Body {
    /// A body in chunks, at its beginning.
    pub(crate) const CHUNKED: Self = Self::Chunked(Chunk::Size { bytes: 0, digits: 0 });
    /// No body.
    pub(crate) const NONE: Self = Self::Length(0);

    /// Whether the message is complete.
    pub(crate) const fn ended(self) -> bool {
        matches!(self, Self::Length(0))
    }

    /// Passes over the bytes of `data` that belong to the body, and says how many they are.
    pub(crate) fn pass(&mut self, data: &[u8]) -> usize {
        let mut passed = 0;
        while let Some(rest) = data.get(passed..)
            && !rest.is_empty()
        {
            match *self {
                Self::Endless => return data.len(),
                Self::Length(0) => break,
                Self::Length(ref mut left) => passed += take(left, rest),
                Self::Chunked(Chunk::Data { ref mut bytes }) if *bytes > 0 => passed += take(bytes, rest),
                Self::Chunked(chunk) => {
                    let Some(&byte) = rest.first() else { break };
                    *self = chunk.after(byte);
                    passed += 1;
                }
            }
        }
        passed
    }

    /// How far the body of a message with this head reaches, if its start line doesn't say otherwise; `None` if no
    /// field tells.
    pub(crate) fn announced(head: &[u8]) -> Option<Self> {
        let mut length = None;
        for (name, value) in fields(head) {
            if name.eq_ignore_ascii_case(b"transfer-encoding") {
                return Some(if value.to_ascii_lowercase().ends_with(b"chunked") {
                    Self::CHUNKED
                } else {
                    Self::Endless
                });
            }
            if name.eq_ignore_ascii_case(b"content-length") {
                let digits = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                length = Some(digits.map_or(Self::Endless, Self::Length));
            }
        }
        length
    }
}

/// Takes as much of `data` from `left` as there is, and says how much that is.
fn take(left: &mut u64, data: &[u8]) -> usize {
    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(data.len());
    *left -= taken as u64;
    taken
}

impl Chunk {
    /// What follows one byte of framing.
    fn after(self, byte: u8) -> Body {
        let next = match (self, byte) {
            (Self::Size { digits: CHUNK_SIZE_DIGITS_MAX.., .. }, _) => return Body::Endless,
            (Self::Size { bytes, digits }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                Self::Size { bytes: bytes * 16 + u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { digits: 0, .. }, _) => return Body::Endless,
            (Self::Size { bytes: 0, .. } | Self::Extension { bytes: 0 }, b'\n') => Self::Trailer { empty: true },
            (Self::Size { bytes, .. } | Self::Extension { bytes }, b'\n') => Self::Data { bytes },
            (Self::Size { bytes, .. } | Self::Extension { bytes }, _) => Self::Extension { bytes },
            (Self::Data { .. } | Self::DataEnd, b'\n') => Self::Size { bytes: 0, digits: 0 },
            (Self::Data { .. } | Self::DataEnd, _) => Self::DataEnd,
            (Self::Trailer { empty: true }, b'\n') => return Body::NONE,
            (Self::Trailer { empty }, b'\r') => Self::Trailer { empty },
            (Self::Trailer { .. }, b'\n') => Self::Trailer { empty: true },
            (Self::Trailer { .. }, _) => Self::Trailer { empty: false },
        };
        Body::Chunked(next)
    }
}

/// The bytes of a head, collected until its empty line.
#[derive(Debug, Default)]
pub(crate) struct Head {
    bytes: Vec<u8>,
    /// How many bytes the current line has, line ends aside.
    line: usize,
}

/// What became of bytes that were offered to a [`Head`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    /// All were taken, and the head goes on.
    More,
    /// This many were taken, and the head is complete.
    Complete(usize),
    /// This many were taken, and the head is longer than [`HEAD_BYTES_MAX`].
    TooLong(usize),
}

impl Head {
    /// Takes bytes up to the end of the head.
    pub(crate) fn collect(&mut self, data: &[u8]) -> Collected {
        for (at, &byte) in data.iter().enumerate() {
            match byte {
                // Empty lines before the first are no head: robust servers skip them.
                b'\r' | b'\n' if self.line == 0 && self.bytes.is_empty() => continue,
                b'\n' if self.line == 0 => {
                    self.bytes.push(byte);
                    return Collected::Complete(at + 1);
                }
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
            if self.bytes.len() == HEAD_BYTES_MAX {
                return Collected::TooLong(at);
            }
            self.bytes.push(byte);
        }
        Collected::More
    }

    /// What was collected.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Begins the next head.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.line = 0;
    }
}

/// The fields of a head: names and values as written, values without surrounding blanks.
pub(crate) fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|&byte| byte == b'\n').skip(1).filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let (name, value) = line.split_at_checked(colon)?;
        Some((name, value.strip_prefix(b":").unwrap_or(value).trim_ascii()))
    })
}
