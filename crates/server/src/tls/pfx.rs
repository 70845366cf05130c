//! Certificates in PFX files. <https://www.rfc-editor.org/rfc/rfc7292>
//!
//! Read are files whose integrity an HMAC with SHA-1 or SHA-2 proves, and whose content is encrypted by PBES2 (AES), as
//! now, or by triple DES or 40-bit RC2, as formerly.

use p12_keystore::error::Error;
use p12_keystore::{Certificate, CertificateBag, Pkcs12Archive};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::files::Certified;

/// Why there is no certificate in a PFX file.
#[derive(Debug, thiserror::Error)]
pub(super) enum PfxError {
    #[error("the password does not open it")]
    Password,
    #[error("it is neither a PEM nor a PFX file")]
    Form,
    #[error("it is encrypted in a way that is not known here")]
    Encryption,
    #[error("there is no private key in it")]
    NoKey,
    #[error("there are several private keys in it")]
    SeveralKeys,
    #[error("there is no certificate in it")]
    NoCertificate,
}

/// The certificate in a PFX file, and its key.
pub(super) fn open(content: &[u8], password: &str) -> Result<Certified, PfxError> {
    let Pkcs12Archive { mut keys, certs, .. } =
        Pkcs12Archive::from_pkcs12(content, password).map_err(|error| explained(&error))?;
    let key = keys.pop().ok_or(PfxError::NoKey)?;
    if !keys.is_empty() {
        return Err(PfxError::SeveralKeys);
    }
    let id = key.local_key_id.as_ref().map(AsRef::as_ref);
    let own = certs.iter().find(|bag| id.is_some() && bag.local_key_id.as_deref() == id);
    let own = own.or(certs.first()).ok_or(PfxError::NoCertificate)?;
    let chain = chain(&own.cert, &certs).into_iter().map(|cert| CertificateDer::from(cert.as_der().to_vec()));
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.key.as_der().to_vec()));
    Ok((chain.collect(), key))
}

/// The certificate and those that vouch for it, each by its successor, as far as the file has them.
fn chain<'a>(own: &'a Certificate, bags: &'a [CertificateBag]) -> Vec<&'a Certificate> {
    let mut chain = vec![own];
    let mut last = own;
    while let Some(bag) = bags.iter().find(|bag| bag.cert.subject() == last.issuer() && !chain.contains(&&bag.cert)) {
        last = &bag.cert;
        chain.push(last);
    }
    chain
}

fn explained(error: &Error) -> PfxError {
    match error {
        Error::MacError(_) | Error::UnpadError | Error::Pkcs5Error(_) => PfxError::Password,
        Error::UnsupportedEncryptionScheme | Error::UnsupportedMacAlgorithm => PfxError::Encryption,
        _ => PfxError::Form,
    }
}
