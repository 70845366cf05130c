//! Keys that clients provide, and encryption scopes.
//! <https://learn.microsoft.com/azure/storage/blobs/encryption-customer-provided-keys>

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName};
use lazuli_engine::encryption::{CustomerKey, DefaultScope, Encryption};
use lazuli_engine::policy::AccountPolicy;

use crate::answer::Answer;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;

const KEY: &str = "x-ms-encryption-key";
const KEY_SHA256: &str = "x-ms-encryption-key-sha256";
const ALGORITHM: &str = "x-ms-encryption-algorithm";
/// The key of the source of a copy.
const SOURCE: [&str; 3] =
    ["x-ms-source-encryption-key", "x-ms-source-encryption-key-sha256", "x-ms-source-encryption-algorithm"];
const SCOPE: &str = "x-ms-encryption-scope";
/// What carries the name of a container's scope.
pub const DEFAULT_SCOPE: &str = "x-ms-default-encryption-scope";
/// What says whether blobs may have another one.
pub const DENY_OVERRIDE: &str = "x-ms-deny-encryption-scope-override";
/// The scope that is the account's own key.
const ACCOUNT_KEY: &str = "$account-encryption-key";

/// The key that a request brings.
///
/// Refuses `MissingRequiredHeader` if one of the three headers is there without the others, `InvalidHeaderValue` for a
/// key that has not 256 bits or another hash, and for another algorithm than AES256.
pub fn key(fields: &Fields) -> Result<Option<CustomerKey>, Problem> {
    read(fields, [KEY, KEY_SHA256, ALGORITHM])
}

/// The key that a request brings for the source of a copy.
///
/// Refuses as [`key`].
pub fn source_key(fields: &Fields) -> Result<Option<CustomerKey>, Problem> {
    read(fields, SOURCE)
}

/// The headers that bring the key of a source, as the source's own server reads them.
pub fn source_headers(fields: &Fields) -> HeaderMap {
    let own = [KEY, KEY_SHA256, ALGORITHM].map(HeaderName::from_static);
    let given = SOURCE.iter().map(|name| fields.headers().get(*name).cloned());
    own.into_iter().zip(given).filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Sees to it that an operation which takes no keys is given none.
///
/// Refuses `UnsupportedHeader`.
pub fn none(fields: &Fields) -> Result<(), Problem> {
    match [KEY, KEY_SHA256, ALGORITHM].into_iter().chain(SOURCE).find(|name| fields.has_header(name)) {
        Some(name) => Err(Problem::new(Code::UnsupportedHeader).detail("HeaderName", name)),
        None => Ok(()),
    }
}

fn read(fields: &Fields, [key, sha256, algorithm]: [&str; 3]) -> Result<Option<CustomerKey>, Problem> {
    if ![key, sha256, algorithm].iter().any(|name| fields.has_header(name)) {
        return Ok(None);
    }
    // The key itself is never repeated, not even to who sent it.
    let bytes = STANDARD.decode(fields.header(key)?).ok().and_then(|bytes| bytes.try_into().ok());
    let given = CustomerKey::new(bytes.ok_or_else(|| Problem::header(key, "(not shown)"))?);
    let hash = fields.header(sha256)?;
    if STANDARD.decode(hash).ok().as_deref() != Some(&given.sha256()[..]) {
        return Err(Problem::header(sha256, hash));
    }
    match fields.header(algorithm)? {
        "AES256" => Ok(Some(given)),
        other => Err(Problem::header(algorithm, other)),
    }
}

/// The scope that a request names for a new blob.
///
/// Refuses `InvalidHeaderValue` for a scope that the account does not have, `InvalidInput` beside a key.
pub fn scope(fields: &Fields, policy: &AccountPolicy) -> Result<Option<String>, Problem> {
    let scope = known(fields, SCOPE, policy)?;
    if scope.is_some() && fields.has_header(KEY) {
        return Err(
            Problem::new(Code::InvalidInput).saying(format!("The headers {KEY} and {SCOPE} exclude each other."))
        );
    }
    Ok(scope)
}

/// The scope that a new container gives to its blobs.
///
/// Refuses `InvalidHeaderValue` for a scope that the account does not have, `MissingRequiredHeader` if overriding is
/// denied and no scope is named.
pub fn default_scope(fields: &Fields, policy: &AccountPolicy) -> Result<DefaultScope, Problem> {
    let name = known(fields, DEFAULT_SCOPE, policy)?;
    let fixed = match fields.header_opt(DENY_OVERRIDE)? {
        None => false,
        Some(text) if text.eq_ignore_ascii_case("false") => false,
        Some(text) if text.eq_ignore_ascii_case("true") => {
            fields.header(DEFAULT_SCOPE)?;
            true
        }
        Some(text) => return Err(Problem::header(DENY_OVERRIDE, text)),
    };
    Ok(DefaultScope { name, fixed })
}

/// A scope in a header; none for the account's own key.
fn known(fields: &Fields, header: &str, policy: &AccountPolicy) -> Result<Option<String>, Problem> {
    match fields.header_opt(header)? {
        None | Some(ACCOUNT_KEY) => Ok(None),
        Some(scope) if policy.encryption_scopes.iter().any(|known| known == scope) => Ok(Some(scope.to_owned())),
        Some(scope) => Err(Problem::header(header, scope)),
    }
}

/// The answer with what a read says about the key.
pub fn onto(answer: Answer, encryption: &Encryption) -> Answer {
    match encryption {
        Encryption::Account => answer,
        Encryption::Scope(scope) => answer.header(SCOPE, scope),
        Encryption::Customer(sha256) => answer.header(KEY_SHA256, STANDARD.encode(sha256)),
    }
}

/// What the answer to a write repeats of its request: a key or a scope, which must be one that there is, whether or not
/// the write makes a new blob.
///
/// Refuses as [`scope`].
pub fn repeated(fields: &Fields, policy: &AccountPolicy) -> Result<Vec<(&'static str, String)>, Problem> {
    scope(fields, policy)?;
    let mut repeated = Vec::new();
    for name in [KEY_SHA256, SCOPE] {
        repeated.extend(fields.header_opt(name)?.map(|value| (name, value.to_owned())));
    }
    Ok(repeated)
}

/// The name of a container's scope.
pub fn scope_text(scope: &DefaultScope) -> &str {
    scope.name.as_deref().unwrap_or(ACCOUNT_KEY)
}

/// The SHA-256 of a customer's key, if the blob is stored under one.
pub fn key_text(encryption: &Encryption) -> Option<String> {
    match encryption {
        Encryption::Customer(sha256) => Some(STANDARD.encode(sha256)),
        Encryption::Account | Encryption::Scope(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::head::HeaderCase;

    fn fields(headers: &[(&'static str, &str)]) -> Fields {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect::<HeaderMap>();
        Fields::parse(headers, None, HeaderCase::default()).unwrap()
    }

    #[test]
    fn a_key_comes_with_its_hash_and_algorithm_or_not_at_all() {
        let bytes = STANDARD.encode([1; 32]);
        let hash = STANDARD.encode(CustomerKey::new([1; 32]).sha256());
        let sent = |headers: &[(&'static str, &str)]| {
            key(&fields(headers)).map(|key| key.map(|key| key.sha256())).map_err(|problem| problem.code)
        };
        let all = [(KEY, bytes.as_str()), (KEY_SHA256, &hash), (ALGORITHM, "AES256")];
        assert_eq!(sent(&[]), Ok(None));
        assert_eq!(sent(&all), Ok(Some(CustomerKey::new([1; 32]).sha256())));
        for missing in 0..3 {
            let mut some = all.to_vec();
            some.remove(missing);
            assert_eq!(sent(&some), Err(Code::MissingRequiredHeader), "{missing}");
        }
        let short = STANDARD.encode([1; 31]);
        for (at, wrong) in [(0, "?"), (0, &short), (1, &bytes), (1, "?"), (2, "AES128")] {
            let mut some = all.to_vec();
            some[at].1 = wrong;
            assert_eq!(sent(&some), Err(Code::InvalidHeaderValue), "{at} {wrong}");
        }
    }

    #[test]
    fn only_scopes_of_the_account_are_known() {
        let policy = AccountPolicy { encryption_scopes: vec!["mine".into()], ..AccountPolicy::default() };
        let named = |value: &str| scope(&fields(&[(SCOPE, value)]), &policy).map_err(|problem| problem.code);
        assert_eq!(named("mine"), Ok(Some("mine".into())));
        assert_eq!(named(ACCOUNT_KEY), Ok(None));
        assert_eq!(named("yours"), Err(Code::InvalidHeaderValue));
        let both = scope(&fields(&[(SCOPE, "mine"), (KEY, "x")]), &policy);
        assert_eq!(both.unwrap_err().code, Code::InvalidInput);

        let default = |headers: &[_]| default_scope(&fields(headers), &policy).map_err(|problem| problem.code);
        assert_eq!(default(&[]), Ok(DefaultScope::default()));
        let fixed = Ok(DefaultScope { name: Some("mine".into()), fixed: true });
        assert_eq!(default(&[(DEFAULT_SCOPE, "mine"), (DENY_OVERRIDE, "True")]), fixed);
        assert_eq!(default(&[(DENY_OVERRIDE, "true")]), Err(Code::MissingRequiredHeader));
        assert_eq!(default(&[(DENY_OVERRIDE, "maybe")]), Err(Code::InvalidHeaderValue));
    }
}
