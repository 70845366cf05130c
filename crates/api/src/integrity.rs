//! Digests of a request's body that its client sent along.

use crc_fast::{CrcAlgorithm, checksum};
use md5::{Digest, Md5};

use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::wire::digest;

/// What the client says about the bytes it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integrity {
    Unstated,
    Md5([u8; 16]),
    Crc64(u64),
}

impl Integrity {
    /// Reads `Content-MD5` and `x-ms-content-crc64` (little-endian).
    ///
    /// Refuses `InvalidMd5`, `InvalidCrc64`, `BothCrc64AndMd5HeaderPresent`.
    pub(crate) fn given(fields: &Fields) -> Result<Self, Problem> {
        Self::of(fields, "content-md5", "x-ms-content-crc64")
    }

    /// Reads what a copy says about the bytes of its source: `x-ms-source-content-md5` and `x-ms-source-content-crc64`.
    ///
    /// Refuses as [`Self::given`].
    pub(crate) fn of_source(fields: &Fields) -> Result<Self, Problem> {
        Self::of(fields, "x-ms-source-content-md5", "x-ms-source-content-crc64")
    }

    fn of(fields: &Fields, md5: &str, crc64: &str) -> Result<Self, Problem> {
        match (fields.header_opt(md5)?, fields.header_opt(crc64)?) {
            (None, None) => Ok(Self::Unstated),
            (Some(md5), None) => digest::parse_md5(md5).map(Self::Md5),
            (None, Some(crc)) => digest::parse_crc64(crc).map(Self::Crc64),
            (Some(_), Some(_)) => Err(Problem::new(Code::BothCrc64AndMd5HeaderPresent)),
        }
    }

    pub(crate) fn wants_md5(self) -> bool {
        matches!(self, Self::Md5(_))
    }

    /// Compares with the digests of what came. `md5` is there if [`Self::wants_md5`].
    ///
    /// Refuses `Md5Mismatch` and `Crc64Mismatch`.
    pub(crate) fn verify(self, md5: Option<[u8; 16]>, crc64: u64) -> Result<(), Problem> {
        match self {
            Self::Md5(given) => digest::check_md5(given, md5.unwrap_or_default()),
            Self::Crc64(given) => digest::check_crc64(given, crc64),
            Self::Unstated => Ok(()),
        }
    }

    /// Whether anything is said.
    pub(crate) fn is_stated(self) -> bool {
        self != Self::Unstated
    }

    /// As [`Self::verify`], for a body at hand.
    pub(crate) fn verify_whole(self, body: &[u8]) -> Result<(), Problem> {
        let md5 = self.wants_md5().then(|| Md5::digest(body).into());
        self.verify(md5, checksum(CrcAlgorithm::Crc64Nvme, body))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::head::HeaderCase;

    fn given(headers: &[(&'static str, &str)]) -> Result<Integrity, Code> {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect();
        let fields = Fields::parse(headers, None, HeaderCase::default()).unwrap();
        Integrity::given(&fields).map_err(|problem| problem.code)
    }

    #[test]
    fn malformed_and_double_digests_are_refused() {
        let md5 = ("content-md5", "XrY7u+Ae7tCTyyK7j1rNww==");
        let crc = ("x-ms-content-crc64", "AAAAAAAAAAA=");
        assert_eq!(given(&[]), Ok(Integrity::Unstated));
        assert_eq!(given(&[("content-md5", "")]), Ok(Integrity::Unstated));
        assert_eq!(given(&[crc]), Ok(Integrity::Crc64(0)));
        assert_eq!(given(&[md5, crc]), Err(Code::BothCrc64AndMd5HeaderPresent));
        for text in ["x", "AAAA", "XrY7u+Ae7tCTyyK7j1rNww"] {
            assert_eq!(given(&[("content-md5", text)]), Err(Code::InvalidMd5), "{text}");
            assert_eq!(given(&[("x-ms-content-crc64", text)]), Err(Code::InvalidCrc64), "{text}");
        }
    }

    #[test]
    fn a_body_must_have_the_digest_it_came_with() {
        let md5 = given(&[("content-md5", "XrY7u+Ae7tCTyyK7j1rNww==")]).unwrap();
        assert_eq!(md5.verify_whole(b"hello world"), Ok(()));
        assert_eq!(md5.verify_whole(b"hello").map_err(|problem| problem.code), Err(Code::Md5Mismatch));
        let crc = given(&[("x-ms-content-crc64", "vo7q9sPVKY0=")]).unwrap();
        assert_eq!(crc.verify_whole(b"hello world"), Ok(()));
        assert_eq!(crc.verify_whole(b"hello").map_err(|problem| problem.code), Err(Code::Crc64Mismatch));
        assert_eq!(Integrity::Unstated.verify_whole(b"hello"), Ok(()));
    }
}
