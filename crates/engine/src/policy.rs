//! What an account's owner decides for all of it: on Azure, the management plane's side of an account.
//! <https://learn.microsoft.com/rest/api/storagerp/blob-services/set-service-properties>

use std::collections::HashMap;
use std::sync::Arc;

use crate::names::AccountName;

/// What holds for every blob and container of an account. The default is what a new account has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountPolicy {
    /// Whether writes keep what they replace as versions.
    pub versioning: bool,
    /// Days for which a deleted container can be restored, 1 to 365; none deletes at once.
    pub container_retention_days: Option<u16>,
    /// Whether blobs can be protected by immutability policies and legal holds.
    pub immutability: bool,
    /// Names of the encryption scopes that blobs may be written under.
    pub encryption_scopes: Vec<String>,
    /// Whether changes of blobs are recorded in `$blobchangefeed`.
    pub change_feed: bool,
}

/// The policies of all accounts; an account that is not named has the default one.
#[derive(Clone, Debug, Default)]
pub struct Policies(HashMap<AccountName, Arc<AccountPolicy>>);

impl Policies {
    /// The same policies, and one for `account`.
    #[must_use]
    pub fn with(mut self, account: AccountName, policy: AccountPolicy) -> Self {
        self.0.insert(account, Arc::new(policy));
        self
    }

    /// The policy of `account`.
    pub(crate) fn of(&self, account: &AccountName) -> Arc<AccountPolicy> {
        self.0.get(account).cloned().unwrap_or_default()
    }
}
