//! Names of accounts, containers, blobs, queues and tables: what cannot be wrong need not be checked again.
//! <https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata>

use std::fmt;
use std::sync::Arc;

/// Why a name is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Too short or too long.
    Length,
    /// A character, or a place for it, that the rules forbid.
    Characters,
}

/// Most code units of UTF-16 of a key.
const KEY_UNITS_MAX: usize = 512;

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text` against the naming rules.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                let valid: fn(&str) -> Result<(), NameError> = $valid;
                valid(text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type!(
    /// A storage account: 3 to 24 lower-case letters and digits.
    AccountName,
    valid_account
);
name_type!(
    /// A container: 3 to 63 lower-case letters, digits and single inner hyphens; or one of the special `$root`, `$web`,
    /// `$logs`, `$blobchangefeed`.
    ContainerName,
    valid_container
);
name_type!(
    /// A blob: 1 to 1024 characters, any; at most 254 path segments. Case and every byte count.
    BlobName,
    valid_blob
);
name_type!(
    /// A queue: 3 to 63 lower-case letters, digits and single inner hyphens.
    QueueName,
    valid_label
);
name_type!(
    /// A table: 3 to 63 letters and digits, no digit first. Keeps its letter case; [`TableName::folded`] says which
    /// table it is.
    TableName,
    valid_table
);
name_type!(
    /// A key of an entity: any text of at most 512 code units of UTF-16 without control characters and `/\#?`.
    KeyText,
    valid_key
);

impl KeyText {
    /// The one before all others.
    pub fn first() -> Self {
        Self("".into())
    }

    /// The one behind all others.
    pub fn last() -> Self {
        Self("\u{FFFF}".repeat(KEY_UNITS_MAX).into())
    }
}

impl TableName {
    /// The name in small letters: names that differ only in letter case are one table's.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl ContainerName {
    /// The container that is served as a website.
    pub fn web() -> Self {
        Self("$web".into())
    }

    /// The container of the change feed.
    pub fn change_feed() -> Self {
        Self("$blobchangefeed".into())
    }

    /// Whether listings leave it out unless they are asked for the system's containers. The service's own description
    /// says so of every name that begins with a dollar sign but `$root`, which clients make as any other.
    pub fn is_system(&self) -> bool {
        self.0.starts_with('$') && &*self.0 != "$root"
    }
}

/// Where a container is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContainerAddress {
    /// The account.
    pub account: AccountName,
    /// The container in it.
    pub container: ContainerName,
}

/// Where a queue is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueAddress {
    /// The account.
    pub account: AccountName,
    /// The queue in it.
    pub queue: QueueName,
}

/// Where a table is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableAddress {
    /// The account.
    pub account: AccountName,
    /// The table in it.
    pub table: TableName,
}

/// Where a blob is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlobAddress {
    /// The container.
    pub container: ContainerAddress,
    /// The blob in it.
    pub blob: BlobName,
}

fn valid_account(text: &str) -> Result<(), NameError> {
    if !(3..=24).contains(&text.chars().count()) {
        return Err(NameError::Length);
    }
    if !text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return Err(NameError::Characters);
    }
    Ok(())
}

fn valid_container(text: &str) -> Result<(), NameError> {
    if matches!(text, "$root" | "$web" | "$logs" | "$blobchangefeed") {
        return Ok(());
    }
    valid_label(text)
}

fn valid_label(text: &str) -> Result<(), NameError> {
    if !(3..=63).contains(&text.chars().count()) {
        return Err(NameError::Length);
    }
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !text.bytes().all(allowed) || text.starts_with('-') || text.ends_with('-') || text.contains("--") {
        return Err(NameError::Characters);
    }
    Ok(())
}

fn valid_table(text: &str) -> Result<(), NameError> {
    if !(3..=63).contains(&text.chars().count()) {
        return Err(NameError::Length);
    }
    let letter_first = text.starts_with(|first: char| first.is_ascii_alphabetic());
    if !letter_first || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(NameError::Characters);
    }
    Ok(())
}

fn valid_key(text: &str) -> Result<(), NameError> {
    if text.encode_utf16().count() > KEY_UNITS_MAX {
        return Err(NameError::Length);
    }
    if text.chars().any(|c| c.is_control() || matches!(c, '/' | '\\' | '#' | '?')) {
        return Err(NameError::Characters);
    }
    Ok(())
}

fn valid_blob(text: &str) -> Result<(), NameError> {
    if !(1..=1024).contains(&text.chars().count()) || text.matches('/').count() >= 254 {
        return Err(NameError::Length);
    }
    // The service answers a NUL in a name with 400; every other character is legal.
    if text.contains('\0') {
        return Err(NameError::Characters);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
