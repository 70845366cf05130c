//! The server's certificate: where it lies, and connections that are encrypted with it.

mod files;
mod pfx;

use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

pub(crate) use files::CertificateFiles;

use crate::start::StartError;

/// What is agreed on with clients that let the server choose, the best first.
const PROTOCOLS: [&[u8]; 2] = [HTTP2, b"http/1.1"];
/// HTTP/2 as clients ask for it.
pub(crate) const HTTP2: &[u8] = b"h2";
/// What every connection that is to be encrypted begins with, and no request of HTTP does: the type of a record of the
/// handshake. <https://www.rfc-editor.org/rfc/rfc8446#section-5.1>
pub(crate) const FIRST_BYTE: u8 = 0x16;

/// The certificate that connections are encrypted with. Clones are the same: what [`Self::replace`] puts in its place,
/// connections that come later see.
#[derive(Clone)]
pub(crate) struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

impl Tls {
    /// Reads the certificate. The error is one line that names the file.
    pub(crate) fn load(files: &CertificateFiles) -> Result<Self, StartError> {
        Ok(Self(Arc::new(RwLock::new(Arc::new(configured(files)?)))))
    }

    /// Reads the certificate again. If that fails, the old one goes on.
    pub(crate) fn replace(&self, files: &CertificateFiles) -> Result<(), StartError> {
        let new = Arc::new(configured(files)?);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// What encrypts the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        // What it holds is whole whatever panicked beside it.
        TlsAcceptor::from(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn configured(files: &CertificateFiles) -> Result<ServerConfig, StartError> {
    let (chain, key) = files.read()?;
    let failed = |error: tokio_rustls::rustls::Error| files.wrong(&error.to_string());
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(failed)?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).map_err(|error| files.unusable(&error))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}
