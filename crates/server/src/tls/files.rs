//! The files that a certificate lies in: PEM, or PFX (PKCS#12).

use std::fmt;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error as TlsError, InconsistentKeys};

use super::pfx;
use crate::start::StartError;

/// What PEM has and DER, and so PFX, never has.
const PEM_MARK: &[u8] = b"-----BEGIN ";
/// What stands over a key that a password locks.
const LOCKED_MARK: &[u8] = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";

/// A certificate with those that vouch for it, its own first, and its key.
pub(super) type Certified = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Where a certificate and its key lie. What kind of file it is, its content says.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CertificateFiles {
    /// The certificate, in PEM with those that vouch for it behind; or in PFX.
    pub(crate) cert: PathBuf,
    /// The key, in PEM. Without it, it lies beside the certificate.
    pub(crate) key: Option<PathBuf>,
    /// What opens a file in PFX.
    pub(crate) password: Option<String>,
}

impl fmt::Debug for CertificateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateFiles").field("cert", &self.cert).field("key", &self.key).finish_non_exhaustive()
    }
}

impl CertificateFiles {
    /// The files, to be watched.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.cert).chain(&self.key)
    }

    /// The certificate and its key.
    pub(super) fn read(&self) -> Result<Certified, StartError> {
        let content = read(&self.cert)?;
        if is_pem(&content) {
            return self.read_pem(&content);
        }
        if let Some(key) = &self.key {
            return Err(self.wrong(&format!(
                "it is no PEM file; and if it is a PFX file, it holds its key itself, so that {} is too much",
                key.display()
            )));
        }
        let password = self.password.as_deref().unwrap_or_default();
        pfx::open(&content, password).map_err(|error| self.wrong(&error.to_string()))
    }

    fn read_pem(&self, content: &[u8]) -> Result<Certified, StartError> {
        if self.password.is_some() {
            return Err(self.wrong("it is a PEM file, which has no password"));
        }
        let chain = CertificateDer::pem_slice_iter(content).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| self.wrong(&error.to_string()))?;
        if chain.is_empty() {
            return Err(self.wrong("there is no certificate in it"));
        }
        let path = self.key.as_ref().unwrap_or(&self.cert);
        let keys = match &self.key {
            Some(path) => &read(path)?,
            None => content,
        };
        let key = PrivateKeyDer::from_pem_slice(keys).map_err(|error| match error {
            PemError::NoItemsFound if contains(keys, LOCKED_MARK) => {
                wrong(path, "its key is locked by a password; give it unlocked, or in a PFX file")
            }
            PemError::NoItemsFound => wrong(path, "there is no private key in it"),
            error => wrong(path, &error.to_string()),
        })?;
        Ok((chain, key))
    }

    /// An error about the certificate, in one line.
    pub(super) fn wrong(&self, reason: &str) -> StartError {
        wrong(&self.cert, reason)
    }

    /// An error about a certificate and a key that cannot be used together.
    pub(super) fn unusable(&self, error: &TlsError) -> StartError {
        match (error, &self.key) {
            (TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch), Some(key)) => {
                self.wrong(&format!("the key in {} is not the certificate's", key.display()))
            }
            (TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch), None) => {
                self.wrong("the key in it is not the certificate's")
            }
            _ => self.wrong(&error.to_string()),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, StartError> {
    std::fs::read(path).map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, reason: &str) -> StartError {
    StartError::new(format!("the certificate file {}: {reason}", path.display()))
}

fn is_pem(content: &[u8]) -> bool {
    contains(content, PEM_MARK)
}

fn contains(content: &[u8], mark: &[u8]) -> bool {
    content.windows(mark.len()).any(|window| window == mark)
}

#[cfg(test)]
mod tests;
