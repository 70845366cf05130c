//! The public keys of an issuer: given with the configuration, or fetched from where the issuer publishes them.
//! <https://openid.net/specs/openid-connect-discovery-1_0.html>
//!
//! What was fetched is kept until something better comes. It is fetched again for a token that names another key, and
//! when it is old; but not often, whatever tokens strangers send.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::Uri;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{JwkSet, PublicKeyUse};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::IssuerError;
use crate::remote::Remote;

/// The keys that tokens are signed with, each with its id.
pub(super) type Keys = Vec<(Option<String>, DecodingKey)>;

/// How long it takes until keys that were fetched may be fetched again.
const PAUSE: Duration = Duration::from_secs(30);
/// How long it takes until it is tried again if it failed.
const PAUSE_FAILED: Duration = Duration::from_secs(2);
/// How long fetching may take.
const FETCH_MAX: Duration = Duration::from_secs(10);
/// How old keys become before they are fetched again beside the requests that use them.
const AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// Largest document that is fetched.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// The keys in a JSON web key set that are for RS256 or ES256.
pub(super) fn parse(document: &[u8]) -> Result<Keys, IssuerError> {
    usable(&serde_json::from_slice(document).map_err(IssuerError::Form)?)
}

fn usable(set: &JwkSet) -> Result<Keys, IssuerError> {
    let signs = |usage: &Option<PublicKeyUse>| !matches!(usage, Some(PublicKeyUse::Encryption));
    let keys = set.keys.iter().filter(|key| signs(&key.common.public_key_use));
    let keys: Keys =
        keys.filter_map(|key| Some((key.common.key_id.clone(), DecodingKey::from_jwk(key).ok()?))).collect();
    if keys.is_empty() { Err(IssuerError::Empty) } else { Ok(keys) }
}

/// Keys that an issuer publishes. Clones share what was fetched.
#[derive(Clone, Debug)]
pub(super) struct Published(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    address: Uri,
    remote: Remote,
    kept: RwLock<Option<Kept>>,
    /// When they may be fetched next. Held while they are.
    next: Mutex<Option<Instant>>,
}

#[derive(Clone, Debug)]
struct Kept {
    keys: Arc<Keys>,
    since: Instant,
}

/// What an issuer publishes: keys, or where they are.
#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    Keys(JwkSet),
    Discovery { jwks_uri: String },
}

impl Published {
    /// The keys at `address`: a JSON web key set, or a discovery document that says where one is.
    pub(super) fn at(address: &str) -> Result<Self, IssuerError> {
        let (address, remote) = (safe(address)?, Remote::default());
        Ok(Self(Arc::new(Shared { address, remote, kept: RwLock::default(), next: Mutex::default() })))
    }

    /// Whether both are the keys of the same address.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.0.address == other.0.address
    }

    /// The keys for a token that names the key `id`; none if there are none yet.
    pub(super) async fn for_key(&self, id: Option<&str>) -> Option<Arc<Keys>> {
        match self.kept() {
            Some(Kept { keys, since }) if id.is_none_or(|id| has(&keys, id)) => {
                if since.elapsed() > AGE_MAX {
                    let published = self.clone();
                    drop(tokio::spawn(async move { published.refresh().await }));
                }
                Some(keys)
            }
            _ => {
                self.refresh().await;
                self.kept().map(|kept| kept.keys)
            }
        }
    }

    /// Fetches the keys, unless that was tried a moment ago. What is wrong is logged, and the old ones go on.
    pub(super) async fn refresh(&self) {
        let mut next = self.0.next.lock().await;
        if next.is_some_and(|next| Instant::now() < next) {
            return;
        }
        let fetched = tokio::time::timeout(FETCH_MAX, self.fetch()).await;
        let pause = match fetched.unwrap_or_else(|_| Err("it took too long".to_owned())) {
            Ok(keys) => {
                tracing::info!(address = %self.0.address, count = keys.len(), "the keys of tokens were fetched");
                let kept = Kept { keys: Arc::new(keys), since: Instant::now() };
                *self.0.kept.write().unwrap_or_else(PoisonError::into_inner) = Some(kept);
                PAUSE
            }
            Err(reason) => {
                tracing::warn!(address = %self.0.address, reason, "the keys of tokens cannot be fetched");
                PAUSE_FAILED
            }
        };
        *next = Some(Instant::now() + pause);
    }

    async fn fetch(&self) -> Result<Keys, String> {
        let set = match self.document(&self.0.address).await? {
            Document::Keys(set) => set,
            Document::Discovery { jwks_uri } => {
                let address = safe(&jwks_uri).map_err(|error| error.to_string())?;
                match self.document(&address).await? {
                    Document::Keys(set) => set,
                    Document::Discovery { .. } => return Err(format!("there are no keys at {address}")),
                }
            }
        };
        usable(&set).map_err(|error| error.to_string())
    }

    async fn document(&self, address: &Uri) -> Result<Document, String> {
        let document = self.0.remote.document(address, DOCUMENT_BYTES_MAX).await?;
        serde_json::from_slice(&document).map_err(|_| format!("there are neither keys nor a discovery at {address}"))
    }

    fn kept(&self) -> Option<Kept> {
        self.0.kept.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn has(keys: &Keys, id: &str) -> bool {
    keys.iter().any(|(own, _)| own.as_deref() == Some(id))
}

/// An address at which nobody can put other keys in place of the issuer's: over TLS, or on this machine.
fn safe(address: &str) -> Result<Uri, IssuerError> {
    let uri = address.parse::<Uri>().ok().filter(|uri| match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(_)) => true,
        (Some("http"), Some(host)) => {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        _ => false,
    });
    uri.ok_or_else(|| IssuerError::Address(address.to_owned()))
}

#[cfg(test)]
mod tests;
