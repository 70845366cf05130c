//! What a request refers to by URL: the source of a copy, which must be open to who asks for the copy.
//! <https://learn.microsoft.com/rest/api/storageservices/copy-blob#authorization>

use http::{HeaderMap, Method, Uri};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::names::AccountName;

use crate::auth::accounts::{Accounts, Rules};
use crate::auth::{self, Asked, Grant, Peer, Principal};
use crate::call::Call;
use crate::error::Problem;
use crate::fields::Fields;
use crate::head::HeaderCase;
use crate::operation::Permission;
use crate::target::{Service, Target};

/// Authorizes the reading of a source in another tenant or by another identity.
const AUTHORIZATION: &str = "x-ms-copy-source-authorization";

/// How a request came: what authorizing its sources takes.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub(crate) accounts: Accounts,
    pub(crate) now: Timestamp,
    pub(crate) peer: Peer,
    pub(crate) strict: bool,
    pub(crate) path_style_only: bool,
}

impl Arrival {
    /// How the account lets clients in.
    pub(crate) fn rules(&self, account: &AccountName) -> Rules {
        self.accounts.get(account).map(|account| account.rules()).unwrap_or_default()
    }
}

/// A blob of this server, addressed by URL.
#[derive(Clone, Debug)]
pub struct Source {
    /// The blob.
    pub target: Target,
    /// The parameters of the URL, such as `snapshot`, and what else authorizes its reading.
    pub fields: Fields,
    /// Whether the URL is one of https.
    secure: bool,
}

impl Source {
    /// Reads `url`, which the header `name` of `call` gave; none if it leads to another server.
    ///
    /// Refuses `InvalidHeaderValue`, naming the header, for what is no URL; and what [`Target::parse`] refuses.
    pub fn parse(call: &Call, name: &str, url: &str) -> Result<Option<Self>, Problem> {
        // A query may hold a signature, which is nothing to show.
        let malformed = || Problem::header(name, url.split('?').next().unwrap_or_default());
        let uri: Uri = url.parse().map_err(|_| malformed())?;
        let (Some(authority), Some("http" | "https")) = (uri.authority(), uri.scheme_str()) else {
            return Err(malformed());
        };
        if !is_own(authority.as_str(), call.fields.header_opt("host")?.unwrap_or_default()) {
            return Ok(None);
        }
        let mut headers = HeaderMap::new();
        if let Some(authorization) = call.fields.headers().get(AUTHORIZATION) {
            headers.insert("authorization", authorization.clone());
        }
        let fields = Fields::parse(headers, uri.query(), HeaderCase::default())?;
        let host = (!call.arrival.path_style_only).then_some(authority.as_str());
        let target = Target::parse(Service::Blob, host, uri.path(), &fields)?;
        Ok(Some(Self { target, fields, secure: uri.scheme_str() == Some("https") }))
    }
}

/// Whether a URL's host is this server, which the request reached as `host`: the same name, or another name of the
/// loopback address or of an account at the same port.
fn is_own(authority: &str, host: &str) -> bool {
    let split = |text: &str| {
        let text = text.to_ascii_lowercase();
        match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name.to_owned(), port.to_owned()),
            _ => (text, String::new()),
        }
    };
    let (name, port) = split(authority);
    let (own, own_port) = split(host);
    let is_loopback = |name: &str| {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost"
            || bare.ends_with(".localhost")
            || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    let without_account = |name: &str| name.split_once('.').map(|(_, rest)| rest.to_owned());
    let same_suffix = without_account(&name).is_some() && without_account(&name) == without_account(&own);
    let of_accounts = name.contains(".blob.") && same_suffix;
    port == own_port && (name == own || is_loopback(&name) && is_loopback(&own) || of_accounts)
}

/// Decides whether who sent `call` may read the blob at `source`: by the shared access signature in its URL, by a token
/// for it, because it lies in the sender's account and the sender may read it there, or because anybody may.
///
/// Refuses as the service does for a read of that URL.
pub async fn authorize_url(call: &Call, source: &Source) -> Result<Grant, Problem> {
    let arrival = &call.arrival;
    let has_own = source.fields.has_header("authorization") || source.fields.query_opt("sig").is_some();
    let same_account = source.target.account == call.target.account;
    let mut lacking = None;
    if !has_own && same_account {
        match call.grant.principal() {
            Principal::Owner => return Ok(call.grant.clone()),
            Principal::Identity(_) => match auth::within(call, &source.target, Permission::Read) {
                Ok(grant) => return Ok(grant),
                Err(refused) => lacking = Some(refused),
            },
            Principal::Signature(_) | Principal::Anonymous => {}
        }
    }
    // What must be encrypted came with the request, and would go over the URL.
    let peer = Peer { secure: arrival.peer.secure && source.secure, ..arrival.peer };
    let asked = Asked {
        service: Service::Blob,
        method: &Method::GET,
        target: &source.target,
        fields: &source.fields,
        needs: Permission::Read,
        version: call.version,
        now: arrival.now,
        peer,
        strict: arrival.strict,
    };
    let grant = auth::authorize(&arrival.accounts, &call.engine, asked).await;
    // Who brought a token is told what it lacks, not that there is none.
    grant.map_err(|refused| lacking.unwrap_or(refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_this_server_is_known_by_its_host() {
        let cases = [
            ("127.0.0.1:10000", "127.0.0.1:10000", true),
            ("localhost:10000", "127.0.0.1:10000", true),
            ("mine.blob.localhost:10000", "127.0.0.1:10000", true),
            ("[::1]:10000", "127.0.0.1:10000", true),
            ("localhost:10001", "127.0.0.1:10000", false),
            ("other.blob.storage.example", "mine.blob.storage.example", true),
            ("mine.blob.core.windows.net", "mine.blob.storage.example", false),
            ("mine.blob.core.windows.net", "127.0.0.1:10000", false),
            ("storage.example", "STORAGE.example", true),
            ("b.example", "a.example", false),
            ("10.0.0.2:10000", "10.0.0.1:10000", false),
            ("[::2]", "[::1]", false),
        ];
        for (authority, host, expected) in cases {
            assert_eq!(is_own(authority, host), expected, "{authority} {host}");
        }
    }
}
