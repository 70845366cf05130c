//! Checksums as text.
//! <https://learn.microsoft.com/rest/api/storageservices/put-blob>

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::code::Code;
use crate::error::Problem;

/// Compares a sent MD5 with the computed one.
///
/// Refuses `Md5Mismatch`.
pub fn check_md5(sent: [u8; 16], computed: [u8; 16]) -> Result<(), Problem> {
    if sent == computed {
        return Ok(());
    }
    Err(Problem::new(Code::Md5Mismatch)
        .detail("UserSpecifiedMd5", md5_text(sent))
        .detail("ServerCalculatedMd5", md5_text(computed)))
}

/// Base64 of 16 bytes.
///
/// Refuses `InvalidMd5`.
pub fn parse_md5(text: &str) -> Result<[u8; 16], Problem> {
    let bytes = STANDARD.decode(text.trim()).ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| Problem::new(Code::InvalidMd5))
}

/// Compares a sent CRC-64 with the computed one.
///
/// Refuses `Crc64Mismatch`.
pub fn check_crc64(sent: u64, computed: u64) -> Result<(), Problem> {
    if sent == computed {
        return Ok(());
    }
    Err(Problem::new(Code::Crc64Mismatch)
        .detail("UserSpecifiedCrc", crc64_text(sent))
        .detail("ServerCalculatedCrc", crc64_text(computed)))
}

/// Base64 of 8 bytes, least significant first.
///
/// Refuses `InvalidCrc64`.
pub fn parse_crc64(text: &str) -> Result<u64, Problem> {
    let bytes = STANDARD.decode(text.trim()).ok();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| Problem::new(Code::InvalidCrc64))?;
    Ok(u64::from_le_bytes(bytes))
}

/// An MD5 as headers and XML have it.
pub fn md5_text(md5: [u8; 16]) -> String {
    STANDARD.encode(md5)
}

/// A CRC-64/NVME as headers have it: its 8 bytes, least significant first.
pub fn crc64_text(crc64: u64) -> String {
    STANDARD.encode(crc64.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: &str = "XrY7u+Ae7tCTyyK7j1rNww==";

    #[test]
    fn checksums_look_like_the_service_s() {
        let cases =
            [(0, "AAAAAAAAAAA="), (0xAE8B_1486_0A79_9888, "iJh5CoYUi64="), (0xC7A3_7FBF_A4D9_D80E, "DtjZpL9/o8c=")];
        for (value, text) in cases {
            assert_eq!(crc64_text(value), text);
            assert_eq!(parse_crc64(text), Ok(value));
        }
        assert_eq!(parse_md5(MD5).map(md5_text), Ok(MD5.to_owned()));
    }

    #[test]
    fn only_base64_of_the_right_length_is_a_checksum() {
        for text in ["", "AAAA", "AAAAAAAAAAA", "not base64!!", "XrY7u+Ae7tCTyyK7j1rNwwAA"] {
            assert_eq!(parse_md5(text).map_err(|problem| problem.code), Err(Code::InvalidMd5), "{text}");
            assert_eq!(parse_crc64(text).map_err(|problem| problem.code), Err(Code::InvalidCrc64), "{text}");
        }
    }

    #[test]
    fn a_stored_md5_must_be_the_content_s() {
        assert_eq!(check_md5([1; 16], [1; 16]), Ok(()));
        let problem = check_md5([1; 16], [2; 16]).unwrap_err();
        assert_eq!(problem.code, Code::Md5Mismatch);
        assert!(problem.details.contains(&("UserSpecifiedMd5", md5_text([1; 16]))), "{problem:?}");
    }
}
