//! Contents that say themselves what they are, so that a torn or foreign one is recognised without knowing what to
//! expect.

use bytes::Bytes;

use crate::random::Random;

/// Bytes before the filling: seed, length, CRC-64 of the filling.
const HEAD_BYTES: usize = 24;

/// The content of `length` bytes that belongs to `seed`. At least 24 bytes.
pub fn content(seed: u64, length: usize) -> Bytes {
    let mut random = Random::seeded(seed);
    let mut filling = Vec::with_capacity(length + 8);
    while filling.len() < length - HEAD_BYTES {
        filling.extend(random.next().to_le_bytes());
    }
    filling.truncate(length - HEAD_BYTES);
    let mut whole = Vec::with_capacity(length);
    whole.extend(seed.to_le_bytes());
    whole.extend((length as u64).to_le_bytes());
    whole.extend(checksum(&filling).to_le_bytes());
    whole.extend(filling);
    whole.into()
}

/// The seed of a whole content; what is wrong with any other.
pub fn seed_of(content: &[u8]) -> Result<u64, String> {
    let number =
        |at: usize| content.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
    let (Some(seed), Some(length), Some(sum)) = (number(0), number(8), number(16)) else {
        return Err(format!("{} bytes are too few", content.len()));
    };
    if length != content.len() as u64 {
        return Err(format!("torn: {} bytes of {length}, seed {seed}", content.len()));
    }
    if checksum(content.get(HEAD_BYTES..).unwrap_or_default()) != sum {
        return Err(format!("torn: the filling differs, seed {seed}, {length} bytes"));
    }
    Ok(seed)
}

fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_damage_is_noticed() {
        let whole = content(7, 10_000);
        assert_eq!(seed_of(&whole), Ok(7));
        assert!(seed_of(&whole[..9_999]).is_err());
        assert!(seed_of(&whole[..23]).is_err());
        let mut flipped = whole.to_vec();
        flipped[5_000] ^= 1;
        assert!(seed_of(&flipped).is_err());
    }
}
