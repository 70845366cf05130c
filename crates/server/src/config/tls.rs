//! Encryption: the server's certificate, and whether everything must be encrypted.

use std::path::PathBuf;

use lazuli_api::auth::accounts::Accounts;
use serde::{Deserialize, Serialize};

use super::Flags;
use crate::start::StartError;
use crate::tls::CertificateFiles;

/// What the file says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    cert: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    https_only: Option<bool>,
}

impl TlsTable {
    /// The same, where flags say otherwise. A certificate of theirs has nothing to do with the file's key.
    pub(super) fn overridden(self, flags: &Flags) -> Self {
        let https_only = flags.https_only.or(self.https_only);
        match flags.cert.clone() {
            Some(cert) => Self { cert: Some(cert), key: flags.key.clone(), password: flags.pwd.clone(), https_only },
            None => Self {
                cert: self.cert,
                key: flags.key.clone().or(self.key),
                password: flags.pwd.clone().or(self.password),
                https_only,
            },
        }
    }

    /// Where the certificate lies, if there is one.
    pub(super) fn files(&self) -> Result<Option<CertificateFiles>, StartError> {
        let Self { cert, key, password, .. } = self;
        match cert.clone() {
            Some(cert) => Ok(Some(CertificateFiles { cert, key: key.clone(), password: password.clone() })),
            None if key.is_some() || password.is_some() => {
                Err(StartError::new("there is the key or the password of a certificate, and no certificate: --cert"))
            }
            None => Ok(None),
        }
    }

    /// The accounts, closed to what is not encrypted as it is said for the server and for each of them.
    pub(super) fn close(&self, accounts: Accounts) -> Result<Accounts, StartError> {
        let encrypted = self.cert.is_some();
        let accounts = if self.https_only.unwrap_or(encrypted) { accounts.over_https_only() } else { accounts };
        let closed = |account: &&_| accounts.get(account).is_some_and(|account| account.rules().https_only);
        match accounts.names().iter().find(closed).filter(|_| !encrypted) {
            Some(account) => Err(StartError::new(format!(
                "{account} takes what is encrypted only (https_only), and there is no certificate: --cert"
            ))),
            None => Ok(accounts),
        }
    }

    /// The same with `shown` in place of its password.
    pub(super) fn with_password(self, shown: &str) -> Self {
        Self { password: self.password.map(|_| shown.to_owned()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use lazuli_engine::names::AccountName;

    use super::super::tests::load;
    use super::*;
    use crate::config::Config;

    /// What a file of this text configures.
    fn load_file(text: &str, arguments: &[&str]) -> Result<Config, StartError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        load(&[&["--config", file.path().to_str().unwrap()], arguments].concat())
    }

    #[test]
    fn a_certificate_of_the_flags_stands_alone_and_one_of_the_file_is_completed() {
        let files = |text: &str, arguments: &[&str]| {
            let files = load_file(text, arguments).unwrap().certificate?;
            let path = |path: PathBuf| path.to_str().unwrap().to_owned();
            Some((path(files.cert), files.key.map(path), files.password))
        };
        let found = |cert: &str, key: Option<&str>, password: Option<&str>| {
            Some((cert.to_owned(), key.map(str::to_owned), password.map(str::to_owned)))
        };
        let file = "[tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n";
        assert_eq!(files("", &[]), None);
        assert_eq!(files(file, &[]), found("a.pem", Some("a.key"), None));
        assert_eq!(files(file, &["--cert", "b.pem"]), found("b.pem", None, None));
        assert_eq!(files(file, &["--key", "b.key"]), found("a.pem", Some("b.key"), None));
        assert_eq!(files(file, &["--cert", "b.pfx", "--pwd", "x"]), found("b.pfx", None, Some("x")));
        let watched = load_file(file, &[]).unwrap().watched;
        assert!(
            watched.iter().any(|path| path.ends_with("a.pem")) && watched.iter().any(|path| path.ends_with("a.key"))
        );
        for half in ["[tls]\nkey = \"a.key\"\n", "[tls]\npassword = \"x\"\n"] {
            let error = load_file(half, &[]).err().unwrap().to_string();
            assert!(error.contains("--cert") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn with_a_certificate_everything_is_encrypted_unless_it_is_said_otherwise() {
        let certificate = "[tls]\ncert = \"a.pem\"\n";
        let some = "[accounts]\nopen = [\"AAAA\"]\nclosed = { keys = [\"AAAA\"], https_only = true }\n";
        let both = &format!("{certificate}https_only = false\n{some}");
        let all = &format!("{certificate}{some}");
        let closed = |text: &str, arguments: &[&str]| -> Result<[bool; 2], String> {
            let config = load_file(text, arguments).map_err(|error| error.to_string())?;
            let account = |name| config.accounts.get(&AccountName::parse(name).unwrap()).unwrap();
            Ok(["open", "closed"].map(|name| account(name).rules().https_only))
        };
        assert_eq!(closed(all, &[]), Ok([true, true]));
        assert_eq!(closed(both, &[]), Ok([false, true]));
        assert_eq!(closed(both, &["--https-only"]), Ok([true, true]));
        assert_eq!(closed(all, &["--https-only=false"]), Ok([false, true]));
        for (text, arguments, named) in [(some, &[][..], "closed"), ("", &["--https-only"], "devstoreaccount1")] {
            let error = closed(text, arguments).unwrap_err();
            assert!(error.contains(named) && error.contains("--cert") && !error.contains('\n'), "{error}");
        }
    }
}
