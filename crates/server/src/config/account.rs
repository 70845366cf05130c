//! Accounts: their keys, how they let clients in, and what on Azure the management plane sets for them.

use std::collections::BTreeMap;
use std::fmt;

use lazuli_api::auth::accounts::{AccountError, Accounts, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, Rules};
use lazuli_engine::names::AccountName;
use lazuli_engine::policy::{AccountKind, AccountPolicy, Policies, Sku};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::start::StartError;

/// Longest time that deleted containers are kept, in days.
const RETENTION_DAYS_MAX: u16 = 365;

/// An account in the file: a list of its keys, or a table. What is left out is as on a new account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccountTable(Table);

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    keys: Vec<String>,
    public_access: bool,
    shared_key: bool,
    https_only: bool,
    versioning: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    container_retention_days: Option<u16>,
    immutability: bool,
    encryption_scopes: Vec<String>,
    change_feed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

impl Default for Table {
    fn default() -> Self {
        let Rules { public_access, shared_key, https_only } = Rules::default();
        let policy = AccountPolicy::default();
        Self {
            keys: Vec::new(),
            public_access,
            shared_key,
            https_only,
            versioning: policy.versioning,
            container_retention_days: policy.container_retention_days,
            immutability: policy.immutability,
            encryption_scopes: policy.encryption_scopes,
            change_feed: policy.change_feed,
            sku: None,
            kind: None,
        }
    }
}

impl<'de> Deserialize<'de> for AccountTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeysOrTable)
    }
}

/// Reads both forms. An untagged enum would not say what is wrong in a table.
struct KeysOrTable;

impl<'de> Visitor<'de> for KeysOrTable {
    type Value = AccountTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of keys, or a table")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, keys: A) -> Result<AccountTable, A::Error> {
        let keys = Vec::deserialize(SeqAccessDeserializer::new(keys))?;
        Ok(AccountTable(Table { keys, ..Table::default() }))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<AccountTable, A::Error> {
        Table::deserialize(MapAccessDeserializer::new(table)).map(AccountTable)
    }
}

impl AccountTable {
    fn rules(&self) -> Rules {
        let Table { public_access, shared_key, https_only, .. } = self.0;
        Rules { public_access, shared_key, https_only }
    }

    /// All of it as a table, with `shown` in place of its keys.
    pub(super) fn with_keys(self, shown: Vec<String>) -> impl Serialize {
        Table { keys: shown, ..self.0 }
    }
}

/// The accounts: those of `text` or of the environment, else those of the file; and whether one of them has the key that
/// everybody knows, the development account's.
pub(super) fn accounts(
    text: Option<&str>,
    file: &BTreeMap<String, AccountTable>,
) -> Result<(Accounts, bool), StartError> {
    let azurite = std::env::var("AZURITE_ACCOUNTS").ok();
    let refused = |error: AccountError| StartError::new(error.to_string());
    let (mut accounts, mut development) = (Accounts::default(), false);
    // A variable that is set to nothing says nothing.
    let mut given = [text, azurite.as_deref()].into_iter().flatten().map(entries);
    if let Some(entries) = given.find(|entries| !entries.is_empty()) {
        for entry in entries {
            let mut parts = entry.split(':');
            let name = parts.next().unwrap_or_default();
            let keys: Vec<_> = parts.collect();
            let rules = file.get(name).map(AccountTable::rules).unwrap_or_default();
            accounts = accounts.with_rules(name, &keys, rules).map_err(refused)?;
            development |= keys.contains(&DEVELOPMENT_KEY);
        }
        return Ok((accounts, development));
    }
    if file.is_empty() {
        return Ok((accounts.with(DEVELOPMENT_ACCOUNT, &[DEVELOPMENT_KEY]).map_err(refused)?, true));
    }
    for (name, table) in file {
        let mut keys: Vec<_> = table.0.keys.iter().map(String::as_str).collect();
        if keys.is_empty() && name == DEVELOPMENT_ACCOUNT {
            keys.push(DEVELOPMENT_KEY);
        }
        development |= keys.contains(&DEVELOPMENT_KEY);
        accounts = accounts.with_rules(name, &keys, table.rules()).map_err(refused)?;
    }
    Ok((accounts, development))
}

/// `name:key1[:key2]`, each account by itself.
fn entries(text: &str) -> Vec<&str> {
    text.split(';').map(str::trim).filter(|entry| !entry.is_empty()).collect()
}

/// The policies that the file's tables stand for. A table of an account that the environment does not name is of no
/// account, as are its keys.
pub(super) fn policies(file: &BTreeMap<String, AccountTable>, accounts: &Accounts) -> Result<Policies, StartError> {
    let mut policies = Policies::default();
    for (name, table) in file {
        let policy = policy(&table.0).map_err(|reason| StartError::new(format!("accounts.{name}: {reason}")))?;
        let account = AccountName::parse(name).ok().filter(|account| accounts.get(account).is_some());
        if let Some(account) = account {
            policies = policies.with(account, policy);
        }
    }
    Ok(policies)
}

fn policy(table: &Table) -> Result<AccountPolicy, String> {
    if let Some(days) = table.container_retention_days
        && !(1..=RETENTION_DAYS_MAX).contains(&days)
    {
        return Err(format!("container_retention_days is {days}, not 1 to {RETENTION_DAYS_MAX}"));
    }
    if let Some(scope) = table.encryption_scopes.iter().find(|scope| !is_scope(scope)) {
        return Err(format!("{scope:?} in encryption_scopes is not 3 to 63 letters, digits and hyphens"));
    }
    Ok(AccountPolicy {
        versioning: table.versioning,
        container_retention_days: table.container_retention_days,
        immutability: table.immutability,
        encryption_scopes: table.encryption_scopes.clone(),
        change_feed: table.change_feed,
        sku: named("sku", table.sku.as_deref(), Sku::ALL, Sku::name)?,
        kind: named("kind", table.kind.as_deref(), AccountKind::ALL, AccountKind::name)?,
    })
}

fn is_scope(text: &str) -> bool {
    (3..=63).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The one of `all` that `text` names; the usual one, if it names none.
fn named<T: Copy + Default>(
    key: &str,
    text: Option<&str>,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, String> {
    let Some(text) = text else { return Ok(T::default()) };
    let found = all.iter().copied().find(|one| name(*one) == text);
    let names: Vec<_> = all.iter().map(|one| name(*one)).collect();
    found.ok_or_else(|| format!("{key} is {text:?}, none of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AccountPolicy, String> {
        policy(&toml::from_str(text).map_err(|error| error.message().to_owned())?)
    }

    #[test]
    fn a_table_is_a_policy_and_an_empty_one_the_usual_policy() {
        assert_eq!(read(""), Ok(AccountPolicy::default()));
        let full = "versioning = true\ncontainer_retention_days = 7\nimmutability = true\nchange_feed = true\n\
                    encryption_scopes = [\"scope-1\"]\nsku = \"Premium_LRS\"\nkind = \"BlockBlobStorage\"\n";
        let expected = AccountPolicy {
            versioning: true,
            container_retention_days: Some(7),
            immutability: true,
            encryption_scopes: vec!["scope-1".into()],
            change_feed: true,
            sku: Sku::PremiumLrs,
            kind: AccountKind::BlockBlobStorage,
        };
        assert_eq!(read(full), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("container_retention_days = 0", "container_retention_days is 0"),
            ("container_retention_days = 366", "container_retention_days is 366"),
            ("encryption_scopes = [\"ab\"]", "\"ab\""),
            ("encryption_scopes = [\"a b c\"]", "\"a b c\""),
            ("sku = \"Free\"", "Standard_RAGRS"),
            ("kind = \"storagev2\"", "StorageV2"),
            ("versionning = true", "versionning"),
        ];
        for (text, named) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(named) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn keys_are_a_list_or_in_a_table_and_the_environment_gives_others() {
        let file = "mine = [\"c2VjcmV0\"]\nclosed = { keys = [\"c2VjcmV0\"], public_access = false }\n\
                    devstoreaccount1 = { shared_key = false }\n";
        let file: BTreeMap<String, AccountTable> = toml::from_str(file).unwrap();
        let rules = |accounts: &Accounts, name| {
            let account = accounts.get(&AccountName::parse(name).unwrap());
            account.map(|account| (account.rules().public_access, account.rules().shared_key))
        };
        let (of_file, development) = accounts(None, &file).unwrap();
        let found = ["mine", "closed", "devstoreaccount1"].map(|name| rules(&of_file, name));
        assert_eq!(found, [Some((true, true)), Some((false, true)), Some((true, false))]);
        assert!(development, "its key is the one that everybody knows");
        for nothing in ["", " ; "] {
            let (given, _) = accounts(Some(nothing), &file).unwrap();
            assert_eq!(given.names().len(), 3, "the file's");
        }
        let (given, development) = accounts(Some("closed:a2V5;new:a2V5"), &file).unwrap();
        let found = ["mine", "closed", "new"].map(|name| rules(&given, name));
        assert_eq!((found, development), ([None, Some((false, true)), Some((true, true))], false));
    }

    #[test]
    fn an_account_is_wrong_in_one_line() {
        let cases = [
            ("mine = 1", "a list of keys, or a table"),
            ("mine = [1]", "string"),
            ("mine = { key = \"a2V5\" }", "`key`"),
            ("mine = { public_access = \"no\" }", "boolean"),
        ];
        for (text, named) in cases {
            let error = toml::from_str::<BTreeMap<String, AccountTable>>(text).unwrap_err();
            assert!(error.message().contains(named) && !error.message().contains('\n'), "{text}: {}", error.message());
        }
        for text in ["other = { versioning = true }", "Mine = [\"a2V5\"]"] {
            assert!(accounts(None, &toml::from_str(text).unwrap()).is_err(), "{text}");
        }
    }
}
