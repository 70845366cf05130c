//! Bodies under a key that only the client has: each frame of a piece is sealed by AES-256-GCM.
//!
//! Every piece has a key of its own, derived from the client's and a random salt, so that a counter is nonce enough:
//! the number of the frame in the piece. A frame is sealed once, whole; its length stays, its tag lies with the salt in
//! the row of the piece. Checksums are of the sealed bytes: a damaged byte is found without the key.

use aes_gcm::aead::{AeadInOut, KeyInit as _};
use aes_gcm::{Aes256Gcm, Nonce, Tag};
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::encryption::CustomerKey;
use crate::store::StoreError;

/// Bytes of a salt.
pub const SALT_BYTES: usize = 16;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
/// What the keys of pieces are for; part of their derivation.
const PURPOSE: &[u8] = b"lazuli piece 1";

/// How the frames of a piece are sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// Makes the piece's key out of the client's.
    pub salt: [u8; SALT_BYTES],
    /// One a frame.
    pub tags: Vec<[u8; TAG_BYTES]>,
}

/// Seals and opens the frames of one piece.
pub(super) struct Sealer {
    cipher: Aes256Gcm,
    salt: [u8; SALT_BYTES],
}

impl Sealer {
    /// For a new piece.
    pub(super) fn new(key: &CustomerKey) -> Self {
        Self::with(key, *uuid::Uuid::new_v4().as_bytes())
    }

    /// For a piece with this salt.
    pub(super) fn with(key: &CustomerKey, salt: [u8; SALT_BYTES]) -> Self {
        #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
        let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key.bytes()).expect("a key of any length");
        mac.update(PURPOSE);
        mac.update(&salt);
        let derived = Zeroizing::new(<[u8; 32]>::from(mac.finalize().into_bytes()));
        Self { cipher: Aes256Gcm::new(&(*derived).into()), salt }
    }

    /// The seal of a piece of which nothing is sealed yet.
    pub(super) fn seal(&self) -> Seal {
        Seal { salt: self.salt, tags: Vec::new() }
    }

    /// Seals the frame `number` where it lies; answers its tag. Once a frame: a second sealing would betray both.
    pub(super) fn close(&self, number: u32, frame: &mut [u8]) -> Result<[u8; TAG_BYTES], StoreError> {
        let sealed = self.cipher.encrypt_inout_detached(&nonce(number), b"", frame.into());
        Ok(sealed.map_err(|_| StoreError::Backend("a frame is too long to be sealed".into()))?.into())
    }

    /// Opens the frame `number` where it lies; answers whether it is what was sealed.
    pub(super) fn open(&self, number: u32, frame: &mut [u8], tag: &[u8; TAG_BYTES]) -> bool {
        self.cipher.decrypt_inout_detached(&nonce(number), b"", frame.into(), &Tag::from(*tag)).is_ok()
    }
}

fn nonce(number: u32) -> Nonce<aes_gcm::aead::consts::U12> {
    let mut nonce = [0; 12];
    for (byte, value) in nonce.iter_mut().zip(number.to_be_bytes()) {
        *byte = value;
    }
    nonce.into()
}

/// Seals a small body: salt, sealed bytes, tag.
pub(super) fn close_small(key: &CustomerKey, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
    let sealer = Sealer::new(key);
    let mut sealed = sealer.salt.to_vec();
    let mut frame = bytes.to_vec();
    let tag = sealer.close(0, &mut frame)?;
    sealed.extend_from_slice(&frame);
    sealed.extend_from_slice(&tag);
    Ok(sealed)
}

/// Opens a small body; none if it is not what was sealed.
pub(crate) fn open_small(key: &CustomerKey, sealed: &[u8]) -> Option<Vec<u8>> {
    let (salt, rest) = sealed.split_first_chunk::<SALT_BYTES>()?;
    let (frame, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
    let mut frame = frame.to_vec();
    Sealer::with(key, *salt).open(0, &mut frame, tag).then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_opens_with_its_key_number_and_tag_alone() {
        let key = CustomerKey::new([1; 32]);
        let sealer = Sealer::new(&key);
        let mut frame = *b"attack at dawn";
        let tag = sealer.close(3, &mut frame).unwrap();
        assert_ne!(&frame, b"attack at dawn");
        let open = |sealer: &Sealer, number, tag: &[u8; TAG_BYTES]| {
            let mut frame = frame;
            sealer.open(number, &mut frame, tag).then_some(frame)
        };
        let again = Sealer::with(&key, sealer.seal().salt);
        assert_eq!(open(&again, 3, &tag), Some(*b"attack at dawn"));
        assert_eq!(open(&again, 4, &tag), None);
        assert_eq!(open(&again, 3, &[0; TAG_BYTES]), None);
        assert_eq!(open(&Sealer::new(&key), 3, &tag), None);
        assert_eq!(open(&Sealer::with(&CustomerKey::new([2; 32]), sealer.seal().salt), 3, &tag), None);
    }

    #[test]
    fn small_bodies_open_whole_or_not_at_all() {
        let key = CustomerKey::new([1; 32]);
        for bytes in [&b""[..], b"x", &[7; 4096]] {
            let sealed = close_small(&key, bytes).unwrap();
            assert_eq!(sealed.len(), bytes.len() + SALT_BYTES + TAG_BYTES);
            assert_eq!(open_small(&key, &sealed).as_deref(), Some(bytes));
            assert_eq!(open_small(&CustomerKey::new([2; 32]), &sealed), None);
            for at in [0, SALT_BYTES, sealed.len() - 1] {
                let mut damaged = sealed.clone();
                damaged[at] ^= 1;
                assert_eq!(open_small(&key, &damaged), None, "{at}");
            }
            assert_eq!(open_small(&key, &sealed[..SALT_BYTES]), None);
        }
    }
}
