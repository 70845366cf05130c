use std::path::Path;

use p12_keystore::{
    Certificate, EncryptionAlgorithm, KeyStore, KeyStoreEntry, LocalKeyId, MacAlgorithm, PrivateKey, PrivateKeyChain,
};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};

use super::*;
use crate::tls::configured;

/// A certificate of an authority, and its key.
struct Made {
    own: rcgen::Certificate,
    authority: rcgen::Certificate,
    key: KeyPair,
}

fn make() -> Made {
    let authority = CertificateParams::new([]).unwrap();
    let mut authority = authority;
    authority.distinguished_name.push(rcgen::DnType::CommonName, "authority");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let authority = rcgen::Certificate::clone(authority.as_ref());
    Made { own, authority, key }
}

impl Made {
    fn pfx(&self, encryption: EncryptionAlgorithm, mac: MacAlgorithm) -> Vec<u8> {
        let certificate = |made: &rcgen::Certificate| Certificate::from_der(made.der()).unwrap();
        let chain = [certificate(&self.own), certificate(&self.authority)];
        let key = PrivateKey::from_der(&self.key.serialize_der()).unwrap();
        let entry = KeyStoreEntry::PrivateKeyChain(PrivateKeyChain::new(LocalKeyId::from("1"), key, chain));
        let mut store = KeyStore::new();
        store.add_entry("own", entry);
        let writer = store.writer("secret").encryption_algorithm(encryption).encryption_iterations(10);
        writer.mac_algorithm(mac).mac_iterations(10).write().unwrap()
    }
}

fn files(directory: &Path, cert: &str, key: Option<&str>, password: Option<&str>) -> CertificateFiles {
    let path = |name: &str| directory.join(name);
    CertificateFiles { cert: path(cert), key: key.map(path), password: password.map(str::to_owned) }
}

#[test]
fn a_certificate_is_read_from_pem_and_from_pfx() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(directory.path().join(name), content).unwrap();
    let made = make();
    let chain = made.own.pem() + &made.authority.pem();
    write("chain.pem", chain.as_bytes());
    write("key.pem", made.key.serialize_pem().as_bytes());
    write("both.pem", (made.key.serialize_pem() + &chain).as_bytes());
    let encryptions = [
        ("new.pfx", EncryptionAlgorithm::PbeWithHmacSha256AndAes256, MacAlgorithm::HmacSha256),
        ("des.pfx", EncryptionAlgorithm::PbeWithShaAnd3KeyTripleDesCbc, MacAlgorithm::HmacSha1),
        ("rc2.pfx", EncryptionAlgorithm::PbeWithShaAnd40BitRc4Cbc, MacAlgorithm::HmacSha1),
    ];
    for (name, encryption, mac) in encryptions {
        write(name, &made.pfx(encryption, mac));
    }
    let cases = [
        ("chain.pem", Some("key.pem"), None),
        ("both.pem", None, None),
        ("new.pfx", None, Some("secret")),
        ("des.pfx", None, Some("secret")),
        ("rc2.pfx", None, Some("secret")),
    ];
    for (cert, key, password) in cases {
        let files = files(directory.path(), cert, key, password);
        let (chain, _) = files.read().unwrap_or_else(|error| panic!("{cert}: {error}"));
        assert_eq!(chain, [made.own.der().clone(), made.authority.der().clone()], "{cert}");
        assert!(configured(&files).is_ok(), "{cert}");
    }
}

#[test]
fn what_is_wrong_with_a_certificate_is_said_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(directory.path().join(name), content).unwrap();
    let (made, other) = (make(), make());
    let locked = made.key.serialize_pem().replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    write("cert.pem", made.own.pem().as_bytes());
    write("key.pem", made.key.serialize_pem().as_bytes());
    write("other.pem", other.key.serialize_pem().as_bytes());
    write("mixed.pem", (made.own.pem() + &other.key.serialize_pem()).as_bytes());
    write("locked.pem", locked.as_bytes());
    write("cut.pem", made.own.pem().split_at(100).0.as_bytes());
    write("fake.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    write("text", b"no certificate");
    let pfx = made.pfx(EncryptionAlgorithm::PbeWithHmacSha256AndAes256, MacAlgorithm::HmacSha256);
    write("cert.pfx", &pfx);
    write("cut.pfx", pfx.split_at(100).0);
    let cases = [
        ("none.pem", None, None, "none.pem", "No such file"),
        ("cert.pem", Some("none.pem"), None, "none.pem", "No such file"),
        ("cert.pem", None, None, "cert.pem", "no private key"),
        ("cert.pem", Some("cert.pem"), None, "cert.pem", "no private key"),
        ("key.pem", None, None, "key.pem", "no certificate"),
        ("cert.pem", Some("other.pem"), None, "cert.pem", "other.pem is not the certificate's"),
        ("mixed.pem", None, None, "mixed.pem", "not the certificate's"),
        ("cert.pem", Some("locked.pem"), None, "locked.pem", "locked by a password"),
        ("cert.pem", Some("key.pem"), Some("secret"), "cert.pem", "no password"),
        ("cut.pem", Some("key.pem"), None, "cut.pem", ""),
        ("fake.pem", Some("key.pem"), None, "fake.pem", ""),
        ("cert.pfx", None, Some("wrong"), "cert.pfx", "password"),
        ("cert.pfx", None, None, "cert.pfx", "password"),
        ("cert.pfx", Some("key.pem"), Some("secret"), "cert.pfx", "too much"),
        ("cut.pfx", None, Some("secret"), "cut.pfx", "neither"),
        ("text", None, None, "text", "neither a PEM nor a PFX file"),
        ("text", Some("key.pem"), None, "text", "no PEM file"),
    ];
    for (cert, key, password, named, reason) in cases {
        let error = configured(&files(directory.path(), cert, key, password)).unwrap_err().to_string();
        let whole = error.contains(named) && error.contains(reason) && !error.contains('\n');
        assert!(whole && !error.contains("secret"), "{cert} {key:?}: {error}");
    }
}
