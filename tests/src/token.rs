//! Bearer tokens as an issuer writes them, but for the signature, which a server that checks their form does not look
//! into.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// The tenant of everybody here.
pub const TENANT: &str = "22222222-2222-2222-2222-222222222222";

/// A token of `object`, a member of `groups`, that holds from an hour before `now` until an hour after, in seconds since
/// 1970.
pub fn token(object: &str, groups: &[&str], now: u64) -> String {
    let claims = json!({
        "iss": format!("https://sts.windows.net/{TENANT}/"),
        "aud": "https://storage.azure.com",
        "exp": now + 3600,
        "nbf": now - 3600,
        "tid": TENANT,
        "oid": object,
        "groups": groups,
    });
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.AAAA", encoded(&json!({"alg": "RS256", "typ": "JWT"})), encoded(&claims))
}
