//! The accounts that the server serves, and their keys.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_engine::names::AccountName;

use crate::auth::Peer;
use crate::auth::bearer::Issuer;
use crate::code::Code;
use crate::error::Problem;

/// The account that every storage emulator has.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
/// Its key, which is public.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// Most keys of an account: one in use while the other is being replaced.
const KEYS_MAX: usize = 2;

/// The accounts and their keys, and whose tokens let clients in. Clones are the same accounts: what [`Self::replace`]
/// puts in their place, all see.
#[derive(Clone, Debug, Default)]
pub struct Accounts(Arc<RwLock<Arc<Admitted>>>);

#[derive(Clone, Debug, Default)]
struct Admitted {
    by_name: HashMap<AccountName, Arc<Account>>,
    issuer: Option<Arc<Issuer>>,
}

/// An account.
#[derive(Clone, Debug)]
pub struct Account {
    keys: Vec<Key>,
    rules: Rules,
}

/// How an account lets clients in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether containers may be public, and public ones are.
    pub public_access: bool,
    /// Whether its keys open it, and signatures made with them.
    pub shared_key: bool,
    /// Whether requests must be encrypted.
    pub https_only: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { public_access: true, shared_key: true, https_only: false }
    }
}

impl Rules {
    /// Refuses `AccountRequiresHttps`.
    pub(crate) fn check_encrypted(self, peer: Peer) -> Result<(), Problem> {
        if self.https_only && !peer.secure { Err(Problem::new(Code::AccountRequiresHttps)) } else { Ok(()) }
    }
}

/// A key, decoded. Never shown.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// Why an account cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// The name is none.
    #[error("{} is not an account name: 3 to 24 lower-case letters and digits", shown(.0))]
    Name(String),
    /// There are no keys, or more than two, or one is empty or not Base64.
    #[error("account {0:?} needs one or two keys in Base64")]
    Keys(String),
}

/// What was given for a name; not if it is so long that it may be a key.
fn shown(name: &str) -> String {
    const CHARACTERS_MAX: usize = 32;
    match name.chars().count() {
        0..=CHARACTERS_MAX => format!("{name:?}"),
        count => format!("what has {count} characters"),
    }
}

impl Accounts {
    /// The same accounts and one more, or the same one with other keys.
    pub fn with(self, name: &str, keys: &[&str]) -> Result<Self, AccountError> {
        self.with_rules(name, keys, Rules::default())
    }

    /// The same accounts and one more, or the same one with other keys and rules.
    pub fn with_rules(self, name: &str, keys: &[&str], rules: Rules) -> Result<Self, AccountError> {
        let account = AccountName::parse(name).map_err(|_| AccountError::Name(name.to_owned()))?;
        let wrong = || AccountError::Keys(name.to_owned());
        let keys = keys
            .iter()
            .map(|key| STANDARD.decode(key).ok().filter(|key| !key.is_empty()).map(Key).ok_or_else(wrong))
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(wrong());
        }
        Ok(self.changed(|admitted| {
            admitted.by_name.insert(account, Arc::new(Account { keys, rules }));
        }))
    }

    /// The same accounts, open to the tokens of `issuer`.
    #[must_use]
    pub fn trusting(self, issuer: Issuer) -> Self {
        self.changed(|admitted| admitted.issuer = Some(Arc::new(issuer)))
    }

    /// The same accounts, each of them closed to requests that are not encrypted.
    #[must_use]
    pub fn over_https_only(self) -> Self {
        self.changed(|admitted| {
            for account in admitted.by_name.values_mut() {
                Arc::make_mut(account).rules.https_only = true;
            }
        })
    }

    fn changed(&self, change: impl FnOnce(&mut Admitted)) -> Self {
        let mut admitted = Admitted::clone(&self.current());
        change(&mut admitted);
        Self(Arc::new(RwLock::new(Arc::new(admitted))))
    }

    /// An account, if it is served. Who holds it keeps its keys though they may be replaced meanwhile.
    pub fn get(&self, account: &AccountName) -> Option<Arc<Account>> {
        self.current().by_name.get(account).cloned()
    }

    /// Whose tokens let clients in, if anybody's.
    pub fn issuer(&self) -> Option<Arc<Issuer>> {
        self.current().issuer.clone()
    }

    /// The names of all, in no order.
    pub fn names(&self) -> Vec<AccountName> {
        self.current().by_name.keys().cloned().collect()
    }

    /// Serves `others` from now on, in place of these. Keys of an issuer that were fetched stay.
    pub fn replace(&self, others: &Self) {
        let mut others = Admitted::clone(&others.current());
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let (Some(issuer), Some(before)) = (&mut others.issuer, &current.issuer) {
            *issuer = Arc::new(Issuer::clone(issuer).after(before));
        }
        *current = Arc::new(others);
    }

    fn current(&self) -> Arc<Admitted> {
        // What it holds is whole whatever panicked beside it.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Account {
    /// Its keys: one or two.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// How it lets clients in.
    pub const fn rules(&self) -> Rules {
        self.rules
    }
}

impl Key {
    /// A key of these bytes.
    pub(super) const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

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
        let dev = accounts.get(&AccountName::parse("dev").unwrap()).unwrap();
        assert_eq!(format!("{:?}", dev.keys()), "[Key(..), Key(..)]");
        assert!(accounts.get(&AccountName::parse("other").unwrap()).is_none());
        for (name, keys) in
            [("Dev", &["AAAA"][..]), ("dev", &[]), ("dev", &["AAAA", "AAAA", "AAAA"]), ("dev", &[""]), ("dev", &["%"])]
        {
            assert!(Accounts::default().with(name, keys).is_err(), "{name} {keys:?}");
        }
    }

    #[test]
    fn accounts_are_replaced_for_all_who_share_them() {
        let one = Accounts::default().with("one", &["AAAA"]).unwrap();
        let shared = one.clone();
        one.replace(&Accounts::default().with("two", &["AAAA"]).unwrap());
        let served = |name| shared.get(&AccountName::parse(name).unwrap()).is_some();
        assert_eq!((served("one"), served("two")), (false, true));
    }
}
