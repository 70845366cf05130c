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
    /// What clients are told of its performance and replication; it has no effect.
    pub sku: Sku,
    /// What clients are told of its kind; it has no effect.
    pub kind: AccountKind,
}

macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $(#[$first:meta])* $($variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names of the service say it")]
        pub enum $type { $(#[$first])* $($variant,)* }

        impl $type {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

named! {
    /// Performance and replication of an account. The default is the one whose secondary endpoint can be read, as ours.
    /// <https://learn.microsoft.com/rest/api/storagerp/srp_sku_types>
    Sku {
        #[default]
        StandardRagrs = "Standard_RAGRS",
        StandardLrs = "Standard_LRS",
        StandardZrs = "Standard_ZRS",
        StandardGrs = "Standard_GRS",
        StandardGzrs = "Standard_GZRS",
        StandardRagzrs = "Standard_RAGZRS",
        PremiumLrs = "Premium_LRS",
        PremiumZrs = "Premium_ZRS",
    }
}

named! {
    /// The kind of an account.
    AccountKind {
        #[default]
        StorageV2 = "StorageV2",
        Storage = "Storage",
        BlobStorage = "BlobStorage",
        BlockBlobStorage = "BlockBlobStorage",
        FileStorage = "FileStorage",
    }
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

    /// The accounts whose changes are recorded.
    pub(crate) fn with_change_feed(&self) -> Vec<AccountName> {
        self.0.iter().filter(|(_, policy)| policy.change_feed).map(|(account, _)| account.clone()).collect()
    }

    /// The policy of `account`.
    pub(crate) fn of(&self, account: &AccountName) -> Arc<AccountPolicy> {
        self.0.get(account).cloned().unwrap_or_default()
    }
}
