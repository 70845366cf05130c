//! An authority of a test's own, certificates of it, and clients that trust it.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The names of the server in certificates.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "devstoreaccount1.blob.localhost"];

/// Which HTTP a client speaks over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1.
    One,
    /// HTTP/2.
    Two,
}

/// Signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Default for Authority {
    fn default() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority of a test");
        let key = KeyPair::generate().expect("a key is made");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority signs itself"))
    }
}

impl Authority {
    /// A certificate of the server and its key, in PEM.
    pub fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().expect("a key is made");
        let params = CertificateParams::new(NAMES.map(str::to_owned)).expect("these are names");
        let certificate = params.signed_by(&key, &self.0).expect("an authority signs");
        (certificate.pem(), key.serialize_pem())
    }

    /// Writes a certificate of the server and its key into `directory`, over those that are there. Gives both paths.
    pub fn issue_into(&self, directory: &Path) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.issue();
        let paths = (directory.join("cert.pem"), directory.join("key.pem"));
        std::fs::write(&paths.0, certificate).expect("the directory is the test's own");
        std::fs::write(&paths.1, key).expect("the directory is the test's own");
        paths
    }

    /// What clients are configured with that trust it.
    pub fn trusted(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("an authority is a root");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("the provider has them");
        builder.with_root_certificates(roots).with_no_client_auth()
    }

    /// Connects to servers with a certificate of it.
    pub fn connector(&self, http: Http) -> HttpsConnector<HttpConnector> {
        let mut plain = HttpConnector::new();
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.trusted()).https_only();
        match http {
            Http::One => builder.enable_http1().wrap_connector(plain),
            Http::Two => builder.enable_http2().wrap_connector(plain),
        }
    }
}
