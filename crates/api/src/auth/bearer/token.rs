//! JSON web tokens: form, signature and claims.

use jsonwebtoken::dangerous::insecure_decode;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use lazuli_engine::clock::Timestamp;
use serde::Deserialize;

/// What the service's own issuers are called.
const ISSUERS: [&str; 6] = [
    "https://sts.windows.net/",
    "https://sts.microsoftonline.de/",
    "https://sts.chinacloudapi.cn/",
    "https://sts.windows-ppe.net/",
    "https://login.microsoftonline.com/",
    "https://login.microsoftonline.us/",
];
/// How far the clock of an issuer may be from the server's, in seconds.
const SKEW_SECONDS: f64 = 60.0;
/// The tenant of who has none.
const NO_TENANT: &str = "00000000-0000-0000-0000-000000000000";
const ALGORITHMS: [Algorithm; 2] = [Algorithm::RS256, Algorithm::ES256];

/// What a token says.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Claims {
    iss: String,
    aud: Audience,
    exp: f64,
    nbf: Option<f64>,
    tid: Option<String>,
    oid: Option<String>,
    sub: Option<String>,
    appid: Option<String>,
    azp: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// The claims of a token whose signature is not checked. It must have one all the same, by an algorithm that is one.
pub(super) fn unchecked(token: &str) -> Result<Claims, &'static str> {
    let decoded = insecure_decode::<Claims>(token).map_err(|_| "The token is malformed.")?;
    if token.rsplit('.').next().is_none_or(str::is_empty) {
        return Err("The token is not signed.");
    }
    Ok(decoded.claims)
}

/// The id of the key that a token says it is signed with, if it says so.
pub(super) fn key_id(token: &str) -> Result<Option<String>, &'static str> {
    Ok(header(token)?.kid)
}

/// The claims of a token that is signed with one of `keys`: with the one that it names, if it names one.
pub(super) fn signed(token: &str, keys: &[(Option<String>, DecodingKey)]) -> Result<Claims, &'static str> {
    let header = header(token)?;
    // Times and audience are judged by the server's own clock and rules.
    let mut validation = Validation::new(header.alg);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    let named = |id: &Option<String>| header.kid.is_none() || *id == header.kid;
    let tried = keys.iter().filter(|(id, key)| named(id) && key.family() == header.alg.family());
    let mut found = tried.filter_map(|(_, key)| decode::<Claims>(token, key, &validation).ok());
    found.next().map(|data| data.claims).ok_or("The token is not signed with a key of its issuer.")
}

fn header(token: &str) -> Result<Header, &'static str> {
    let header = decode_header(token).map_err(|_| "The token is malformed.")?;
    if ALGORITHMS.contains(&header.alg) { Ok(header) } else { Err("The token is not signed by RS256 or ES256.") }
}

impl Claims {
    /// `issuer`, or any of the service's own.
    pub(super) fn check_issuer(&self, issuer: Option<&str>) -> Result<(), &'static str> {
        let right = match issuer {
            Some(issuer) => self.iss.trim_end_matches('/') == issuer.trim_end_matches('/'),
            None => ISSUERS.iter().any(|prefix| self.iss.starts_with(prefix)),
        };
        if right { Ok(()) } else { Err("The token is of another issuer.") }
    }

    pub(super) fn check_tenant(&self, tenant: Option<&str>) -> Result<(), &'static str> {
        let own = self.tid.as_deref().unwrap_or(NO_TENANT);
        let right = tenant.is_none_or(|tenant| own.eq_ignore_ascii_case(tenant));
        if right { Ok(()) } else { Err("The token is of another tenant.") }
    }

    pub(super) fn check_audience(&self, meant: impl Fn(&str) -> bool) -> Result<(), &'static str> {
        let right = match &self.aud {
            Audience::One(audience) => meant(audience),
            Audience::Several(audiences) => audiences.iter().any(|audience| meant(audience)),
        };
        if right { Ok(()) } else { Err("The token is for another audience.") }
    }

    pub(super) fn check_time(&self, now: Timestamp) -> Result<(), &'static str> {
        #[expect(clippy::cast_precision_loss, reason = "seconds of these millennia are exact")]
        let now = now.unix_seconds() as f64;
        if self.nbf.is_some_and(|start| start > now + SKEW_SECONDS) {
            return Err("The token does not hold yet.");
        }
        if self.exp.is_nan() || self.exp <= now - SKEW_SECONDS {
            return Err("The token is expired.");
        }
        Ok(())
    }

    /// All ids that roles may be assigned to.
    pub(super) fn principals(&self) -> Vec<String> {
        let own = [&self.oid, &self.sub, &self.appid, &self.azp].into_iter().flatten();
        own.chain(&self.groups).cloned().collect()
    }

    pub(super) fn object(&self) -> String {
        self.oid.as_ref().or(self.sub.as_ref()).map(|id| id.to_ascii_lowercase()).unwrap_or_default()
    }

    pub(super) fn tenant(&self) -> String {
        self.tid.as_deref().unwrap_or(NO_TENANT).to_ascii_lowercase()
    }
}
