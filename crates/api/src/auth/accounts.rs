//! The accounts that the server serves, and their keys.

use std::collections::HashMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_engine::names::AccountName;

/// The account that every storage emulator has.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
/// Its key, which is public.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// Most keys of an account: one in use while the other is being replaced.
const KEYS_MAX: usize = 2;

/// The accounts and their keys.
#[derive(Clone, Debug, Default)]
pub struct Accounts(HashMap<AccountName, Vec<Key>>);

/// A key, decoded. Never shown.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// Why an account cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// The name is none.
    #[error("{0:?} is not an account name: 3 to 24 lower-case letters and digits")]
    Name(String),
    /// There are no keys, or more than two, or one is empty or not Base64.
    #[error("account {0:?} needs one or two keys in Base64")]
    Keys(String),
}

impl Accounts {
    /// The same accounts and one more, or the same one with other keys.
    pub fn with(mut self, name: &str, keys: &[&str]) -> Result<Self, AccountError> {
        let account = AccountName::parse(name).map_err(|_| AccountError::Name(name.to_owned()))?;
        let wrong = || AccountError::Keys(name.to_owned());
        let keys = keys
            .iter()
            .map(|key| STANDARD.decode(key).ok().filter(|key| !key.is_empty()).map(Key).ok_or_else(wrong))
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(wrong());
        }
        self.0.insert(account, keys);
        Ok(self)
    }

    /// The keys of an account, if it is served.
    pub fn keys(&self, account: &AccountName) -> Option<&[Key]> {
        self.0.get(account).map(Vec::as_slice)
    }
}

impl Key {
    /// The key's bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_one_or_two_keys_that_are_never_shown() {
        let accounts = Accounts::default().with("dev", &[DEVELOPMENT_KEY, "AAAA"]).unwrap();
        assert_eq!(accounts.keys(&AccountName::parse("dev").unwrap()).map(<[_]>::len), Some(2));
        assert!(accounts.keys(&AccountName::parse("other").unwrap()).is_none());
        assert_eq!(format!("{:?}", accounts.keys(&AccountName::parse("dev").unwrap()).unwrap()), "[Key(..), Key(..)]");
        for (name, keys) in
            [("Dev", &["AAAA"][..]), ("dev", &[]), ("dev", &["AAAA", "AAAA", "AAAA"]), ("dev", &[""]), ("dev", &["%"])]
        {
            assert!(Accounts::default().with(name, keys).is_err(), "{name} {keys:?}");
        }
    }
}
