//! An upload: bytes into a segment, digests in the same pass.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::Bytes;
use md5::{Digest as _, Md5};

use super::seal::{self, Sealer, TAG_BYTES};
use super::segments::{Reservation, failed};
use super::{FRAME_BYTES, INLINE_BYTES_MAX, PIECE_BYTES_MAX, PayloadId, Payloads, Piece};
use crate::encryption::CustomerKey;
use crate::error::Error;
use crate::rows;
use crate::rows::payload::{self, CHUNK_PIECES_MAX, CHUNK_SEALED_PIECES_MAX, ExtentRow, PieceChunk};
use crate::store::{Space, StoreError, Tx};

/// Bytes that are hashed and written together.
const WRITE_BYTES: usize = 256 * 1024;

/// An upload under way. Dropped unfinished, it gives its space back.
pub struct Stage {
    payloads: Payloads,
    digests: Digests,
    /// Received, not yet written: less than [`WRITE_BYTES`].
    pending: Vec<Bytes>,
    pending_bytes: usize,
    expected: Option<u64>,
    length: u64,
    pieces: Vec<Piece>,
    /// One a piece.
    reservations: Vec<Arc<Reservation>>,
    /// The key that the body is put under.
    key: Option<CustomerKey>,
    /// Seals the last piece.
    sealer: Option<Arc<Sealer>>,
}

struct Digests {
    crc64: crc_fast::Digest,
    md5: Option<Md5>,
}

impl Digests {
    fn update(&mut self, bytes: &[u8]) {
        self.crc64.update(bytes);
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
    }
}

impl Stage {
    pub(super) fn new(payloads: Payloads, md5: bool, expected: Option<u64>) -> Self {
        Self {
            payloads,
            digests: Digests { crc64: crc64(), md5: md5.then(Md5::new) },
            pending: Vec::new(),
            pending_bytes: 0,
            expected,
            length: 0,
            pieces: Vec::new(),
            reservations: Vec::new(),
            key: None,
            sealer: None,
        }
    }

    /// The same upload, sealed under `key`. Before anything is written.
    #[must_use]
    pub fn seal(self, key: Option<CustomerKey>) -> Self {
        Self { key, ..self }
    }

    /// Stores the next bytes. Fails with [`StoreError::Full`] when the disk is.
    pub async fn write(&mut self, mut data: Bytes) -> Result<(), Error> {
        self.length += data.len() as u64;
        while self.pending_bytes + data.len() >= WRITE_BYTES {
            self.push(data.split_to(WRITE_BYTES - self.pending_bytes));
            self.flush(false).await?;
        }
        self.push(data);
        Ok(())
    }

    fn push(&mut self, data: Bytes) {
        self.pending_bytes += data.len();
        if !data.is_empty() {
            self.pending.push(data);
        }
    }

    /// Makes the bytes durable.
    pub async fn finish(mut self) -> Result<Staged, Error> {
        let inline = self.pieces.is_empty() && self.pending_bytes <= INLINE_BYTES_MAX;
        let body = if inline {
            let mut bytes = Vec::with_capacity(self.pending_bytes);
            for part in &self.pending {
                self.digests.update(part);
                bytes.extend_from_slice(part);
            }
            Body::Inline(match &self.key {
                Some(key) => seal::close_small(key, &bytes)?,
                None => bytes,
            })
        } else {
            self.flush(true).await?;
            let touched: BTreeMap<_, _> = self
                .reservations
                .iter()
                .map(|reservation| (reservation.segment.id, Arc::clone(&reservation.segment)))
                .collect();
            self.payloads.shared.sync.sync(touched.into_values().collect()).await?;
            Body::Pieces(self.pieces)
        };
        Ok(Staged {
            length: self.length,
            crc64: self.digests.crc64.finalize(),
            md5: self.digests.md5.map(|md5| md5.finalize().into()),
            body,
            reservations: self.reservations,
        })
    }

    /// Writes what is pending, as much as one piece takes at a time. A frame is sealed whole: what would be only a part
    /// of one waits for the rest, unless this is the `last` of it.
    async fn flush(&mut self, last: bool) -> Result<(), Error> {
        while self.pending_bytes > 0 {
            let room = self.room();
            if room == 0 {
                self.begin_piece().await?;
                continue;
            }
            let mut most = room.min(self.pending_bytes);
            if self.key.is_some() && !last && most < room {
                most -= most % FRAME_BYTES as usize;
            }
            if most == 0 {
                break;
            }
            let parts = self.take(most);
            self.write_parts(parts).await?;
        }
        Ok(())
    }

    /// Bytes that the last piece can still take.
    fn room(&self) -> usize {
        match (self.pieces.last(), self.reservations.last()) {
            (Some(piece), Some(reservation)) => {
                let reserved = reservation.length.min(PIECE_BYTES_MAX.into());
                usize::try_from(reserved.saturating_sub(piece.length.into())).unwrap_or(0)
            }
            _ => 0,
        }
    }

    async fn begin_piece(&mut self) -> Result<(), Error> {
        let stored: u64 = self.pieces.iter().map(|piece| u64::from(piece.length)).sum();
        let left = self.expected.map_or(u64::MAX, |expected| expected.max(self.length).saturating_sub(stored));
        let reservation = self.payloads.shared.segments.reserve(left.min(PIECE_BYTES_MAX.into())).await?;
        let (segment, offset) = (reservation.segment.id, reservation.offset);
        self.sealer = self.key.as_ref().map(|key| Arc::new(Sealer::new(key)));
        let seal = self.sealer.as_ref().map(|sealer| sealer.seal());
        self.pieces.push(Piece { segment, offset, length: 0, frames: Vec::new(), seal });
        self.reservations.push(reservation);
        Ok(())
    }

    /// The first `most` pending bytes.
    fn take(&mut self, most: usize) -> Vec<Bytes> {
        let mut parts = Vec::with_capacity(self.pending.len());
        let mut left = most;
        let mut rest = Vec::new();
        for mut part in self.pending.drain(..) {
            let taken = part.split_to(part.len().min(left));
            left -= taken.len();
            self.pending_bytes -= taken.len();
            if !taken.is_empty() {
                parts.push(taken);
            }
            if !part.is_empty() {
                rest.push(part);
            }
        }
        self.pending = rest;
        parts
    }

    /// Hashes and writes `parts` at the end of the last piece, on a thread that may block.
    async fn write_parts(&mut self, parts: Vec<Bytes>) -> Result<(), Error> {
        let (Some(piece), Some(reservation)) = (self.pieces.last_mut(), self.reservations.last()) else {
            return Err(Error::Busy);
        };
        // The closure owns the range: it is not given back while it is being written.
        let reservation = Arc::clone(reservation);
        let at = piece.length;
        let mut digests = std::mem::replace(&mut self.digests, Digests { crc64: crc64(), md5: None });
        let mut frames = std::mem::take(&mut piece.frames);
        let sealer = self.sealer.clone();
        let written = tokio::task::spawn_blocking(move || {
            parts.iter().for_each(|part| digests.update(part));
            let (parts, tags) = match &sealer {
                Some(sealer) => seal_frames(sealer, at / FRAME_BYTES, &parts)?,
                None => (parts, Vec::new()),
            };
            let mut frame_bytes = at % FRAME_BYTES;
            parts.iter().for_each(|part| add_frames(&mut frames, &mut frame_bytes, part));
            let outcome = write_at(&reservation.segment.file, &parts, reservation.offset + u64::from(at));
            let bytes = outcome?;
            reservation.written(bytes as u64);
            Ok::<_, StoreError>((digests, frames, tags, bytes))
        })
        .await
        .map_err(|error| Error::Storage(StoreError::Backend(format!("an upload died: {error}"))))?;
        let (digests, frames, tags, bytes) = written?;
        self.digests = digests;
        piece.frames = frames;
        if let Some(seal) = &mut piece.seal {
            seal.tags.extend(tags);
        }
        piece.length += u32::try_from(bytes).unwrap_or(u32::MAX);
        Ok(())
    }
}

/// Seals `parts`, which begin with the frame `number` of a piece; answers them with the tags of the frames.
fn seal_frames(
    sealer: &Sealer,
    number: u32,
    parts: &[Bytes],
) -> Result<(Vec<Bytes>, Vec<[u8; TAG_BYTES]>), StoreError> {
    let mut bytes = parts.concat();
    let frames = bytes.chunks_mut(FRAME_BYTES as usize).zip(number..);
    let tags = frames.map(|(frame, number)| sealer.close(number, frame)).collect::<Result<_, _>>()?;
    Ok((vec![bytes.into()], tags))
}

/// Continues the checksums of a piece: a frame begun is completed, the others are new.
fn add_frames(frames: &mut Vec<u64>, frame_bytes: &mut u32, mut part: &[u8]) {
    while !part.is_empty() {
        let room = (FRAME_BYTES - *frame_bytes) as usize;
        let (now, rest) = part.split_at(part.len().min(room));
        let crc = checksum(now);
        match frames.last_mut() {
            Some(last) if *frame_bytes > 0 => {
                *last = crc_fast::checksum_combine(crc_fast::CrcAlgorithm::Crc64Nvme, *last, crc, now.len() as u64);
            }
            _ => frames.push(crc),
        }
        *frame_bytes = (*frame_bytes + u32::try_from(now.len()).unwrap_or(0)) % FRAME_BYTES;
        part = rest;
    }
}

/// Writes all of `parts` one after the other from `offset` on.
fn write_at(file: impl AsFd, parts: &[Bytes], mut offset: u64) -> Result<usize, StoreError> {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut slices = slices.as_mut_slice();
    let mut total = 0;
    while !slices.is_empty() {
        let batch = slices.get(..slices.len().min(512)).unwrap_or_default();
        let written = match rustix::io::pwritev(&file, batch, offset) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) => return Err(StoreError::Full),
            other => other.map_err(|error| failed("writing a segment", error))?,
        };
        IoSlice::advance_slices(&mut slices, written);
        offset += written as u64;
        total += written;
    }
    Ok(total)
}

/// The checksum of stored bytes: CRC-64/NVME, which is also what the protocol calls `x-ms-content-crc64`.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes)
}

fn crc64() -> crc_fast::Digest {
    crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme)
}

#[derive(Debug)]
enum Body {
    Inline(Vec<u8>),
    Pieces(Vec<Piece>),
}

/// A body that is on disk but named by no row yet. Dropped before [`Self::keep`], it gives its space back.
#[derive(Debug)]
pub struct Staged {
    length: u64,
    crc64: u64,
    md5: Option<[u8; 16]>,
    body: Body,
    reservations: Vec<Arc<Reservation>>,
}

impl Staged {
    /// Bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// CRC-64/NVME of all bytes.
    pub fn crc64(&self) -> u64 {
        self.crc64
    }

    /// MD5 of all bytes, if it was asked for.
    pub fn md5(&self) -> Option<[u8; 16]> {
        self.md5
    }

    /// Names the body in the store. From here on the rows own the space, whether or not anybody still waits for the
    /// transaction. If the body fails or panics after this, [`Self::unkeep`] must be called; `Engine::write_content` does.
    pub(crate) fn keep(&self, tx: &mut dyn Tx) -> Result<PayloadId, StoreError> {
        let id = PayloadId(tx.id());
        match &self.body {
            Body::Inline(bytes) => tx.put(Space::Small, payload::small_key(id), bytes.clone())?,
            Body::Pieces(pieces) => name(tx, id, pieces)?,
        }
        for reservation in &self.reservations {
            reservation.keep();
        }
        Ok(id)
    }

    /// Takes [`Self::keep`] back. Only for the transaction body itself, when it fails after all: then it is certain
    /// that no row names the body.
    pub(crate) fn unkeep(&self) {
        for reservation in &self.reservations {
            reservation.unkeep();
        }
    }
}

fn name(tx: &mut dyn Tx, id: PayloadId, pieces: &[Piece]) -> Result<(), StoreError> {
    let mut first = 0;
    let sealed = pieces.iter().any(|piece| piece.seal.is_some());
    for pieces in pieces.chunks(if sealed { CHUNK_SEALED_PIECES_MAX } else { CHUNK_PIECES_MAX }) {
        let chunk = PieceChunk { pieces: pieces.to_vec() };
        rows::put(tx, Space::Payloads, payload::key(id, first), &chunk)?;
        for piece in pieces {
            let extent = ExtentRow { length: piece.length, payload: id };
            rows::put(tx, Space::Extents, payload::extent_key(piece.segment, piece.offset), &extent)?;
            first += u64::from(piece.length);
        }
    }
    Ok(())
}
