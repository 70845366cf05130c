//! Get User Delegation Key: <https://learn.microsoft.com/rest/api/storageservices/get-user-delegation-key>

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_engine::Engine;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::identity;

use crate::answer::Answer;
use crate::auth::{Delegation, Identity, Principal, delegation_letter};
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::target::Service;
use crate::version::{VERSION_HEADER, Version};
use crate::wire::date;
use crate::wire::xml::{Document, Writer, node_value};

/// Largest request.
const BYTES_MAX: u64 = 16 * 1024;
/// How long a key may hold, and how far away it may begin.
const DAYS_MAX: u64 = 7;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes that the ids of an identity, its groups and applications may take.
const PRINCIPALS_BYTES_MAX: usize = 12 * 1024;

/// Get User Delegation Key: <https://learn.microsoft.com/rest/api/storageservices/get-user-delegation-key>
pub(super) static GET_DELEGATION_KEY: Operation = Operation {
    name: "Service_GetUserDelegationKey",
    needs: Permission::Delegate,
    body: Body::Document { bytes_max: BYTES_MAX },
    run: |call| Box::pin(get_delegation_key(call)),
};

async fn get_delegation_key(mut call: Call) -> Result<Answer, Problem> {
    let first = if call.service == Service::Blob { Version::V2018_11_09 } else { Version::V2025_07_05 };
    if call.version < first {
        return Err(Problem::header(VERSION_HEADER, &call.version.to_string()));
    }
    let asked = KeyInfo::parse(&call.document().await?, call.arrival.now, call.version)?;
    let Principal::Identity(identity) = call.grant.principal().clone() else {
        return Err(Problem::new(Code::AuthorizationFailure));
    };
    let account = call.arrival.accounts.get(&call.target.account);
    let key = account.as_ref().and_then(|account| account.keys().first());
    let key = key.ok_or_else(|| Problem::new(Code::ResourceNotFound))?;
    remember(&call.engine, &identity).await?;
    let version = call.version.to_string();
    let for_tenant = asked.for_tenant.as_deref().unwrap_or_default();
    let delegation = Delegation {
        object: identity.object(),
        tenant: identity.tenant(),
        start: asked.start,
        expiry: asked.expiry,
        service: call.service,
        version: &version,
        for_tenant,
    };
    let value = STANDARD.encode(delegation.key(key).bytes());
    Ok(Answer::ok().xml(document(&delegation, &value)))
}

/// Keeps what the roles of the identity are found by: what it signs names nobody but it.
async fn remember(engine: &Engine, identity: &Identity) -> Result<(), Problem> {
    let principals = identity.principals().to_vec();
    if principals.iter().map(String::len).sum::<usize>() > PRINCIPALS_BYTES_MAX {
        return Err(Problem::new(Code::OutOfRangeInput).saying("The token names too many groups."));
    }
    Ok(identity::remember(engine, identity.id(), principals).await?)
}

/// What kind of key is wanted.
#[derive(Debug, PartialEq, Eq)]
struct KeyInfo {
    start: Timestamp,
    expiry: Timestamp,
    for_tenant: Option<String>,
}

impl KeyInfo {
    /// Refuses `InvalidXmlDocument`, `MissingRequiredXmlNode`, and `InvalidXmlNodeValue` for what is no instant, for an
    /// end before its beginning, and for more than seven days from now.
    fn parse(body: &[u8], now: Timestamp, version: Version) -> Result<Self, Problem> {
        let (mut start, mut expiry, mut for_tenant) = (None, None, None);
        let mut document = Document::open(body, "KeyInfo")?;
        while let Some(name) = document.child()? {
            let (field, since) = match name.as_str() {
                "Start" => (&mut start, Version::V2018_11_09),
                "Expiry" => (&mut expiry, Version::V2018_11_09),
                "DelegatedUserTid" => (&mut for_tenant, Version::V2025_07_05),
                _ => return Err(document.wrong("only Start, Expiry and DelegatedUserTid belong here")),
            };
            if field.is_some() || version < since {
                return Err(document.wrong("an element is there twice, or of a later version"));
            }
            *field = Some(document.text()?).filter(|text| !text.is_empty());
        }
        document.close()?;
        let last = (0..DAYS_MAX).fold(now, |time, _| time.after(DAY));
        let expiry =
            expiry.ok_or_else(|| Problem::new(Code::MissingRequiredXmlNode).detail("XmlNodeName", "Expiry"))?;
        let begin = match &start {
            Some(text) => instant("Start", text)?,
            None => now,
        };
        let end = instant("Expiry", &expiry)?;
        if begin > last {
            return Err(node_value("Start", &start.unwrap_or_default(), "It is more than seven days from now."));
        }
        if end <= begin || end <= now {
            return Err(node_value("Expiry", &expiry, "It is not after the start and in the future."));
        }
        if end > last {
            return Err(node_value("Expiry", &expiry, "It is more than seven days from now."));
        }
        Ok(Self { start: begin.whole_second(), expiry: end.whole_second(), for_tenant })
    }
}

fn instant(node: &'static str, text: &str) -> Result<Timestamp, Problem> {
    date::parse_iso8601(text).ok_or_else(|| node_value(node, text, "It is no instant in ISO 8601."))
}

fn document(delegation: &Delegation<'_>, value: &str) -> Vec<u8> {
    let mut xml = Writer::begin();
    xml.open("UserDelegationKey");
    xml.text("SignedOid", delegation.object);
    xml.text("SignedTid", delegation.tenant);
    xml.text("SignedStart", &seconds(delegation.start));
    xml.text("SignedExpiry", &seconds(delegation.expiry));
    xml.text("SignedService", delegation_letter(delegation.service));
    xml.text("SignedVersion", delegation.version);
    if !delegation.for_tenant.is_empty() {
        xml.text("SignedDelegatedUserTid", delegation.for_tenant);
    }
    xml.text("Value", value);
    xml.close("UserDelegationKey");
    xml.finish()
}

/// An instant without the part of a second.
fn seconds(time: Timestamp) -> String {
    let text = date::iso8601(time);
    text.split_once('.').map_or(text.clone(), |(whole, _)| format!("{whole}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_seconds(1_785_542_400);

    fn parse(nodes: &str, version: Version) -> Result<KeyInfo, Code> {
        let body = format!("<?xml version='1.0' encoding='utf-8'?><KeyInfo>{nodes}</KeyInfo>");
        KeyInfo::parse(body.as_bytes(), NOW, version).map_err(|problem| problem.code)
    }

    #[test]
    fn a_key_holds_for_at_most_seven_days() {
        use Code::{InvalidXmlDocument, InvalidXmlNodeValue, MissingRequiredXmlNode};
        let at = |day: u64| Timestamp::from_unix_seconds(1_785_542_400 + day * 86_400);
        let info = |start, expiry| Ok(KeyInfo { start, expiry, for_tenant: None });
        let cases = [
            ("<Start>2026-08-01T00:00:00Z</Start><Expiry>2026-08-08T00:00:00Z</Expiry>", info(NOW, at(7))),
            (
                "<Start>2026-07-01</Start><Expiry>2026-08-02</Expiry>",
                info(Timestamp::from_unix_seconds(1_782_864_000), at(1)),
            ),
            ("<Expiry>2026-08-02T00:00:00.5Z</Expiry>", info(NOW, at(1))),
            ("<Start/><Expiry>2026-08-02</Expiry>", info(NOW, at(1))),
            ("<Start>2026-08-01</Start><Expiry>2026-08-08T00:00:01Z</Expiry>", Err(InvalidXmlNodeValue)),
            ("<Start>2026-08-09</Start><Expiry>2026-08-10</Expiry>", Err(InvalidXmlNodeValue)),
            ("<Start>2026-08-03</Start><Expiry>2026-08-02</Expiry>", Err(InvalidXmlNodeValue)),
            ("<Start>2026-07-01</Start><Expiry>2026-07-02</Expiry>", Err(InvalidXmlNodeValue)),
            ("<Start>soon</Start><Expiry>2026-08-02</Expiry>", Err(InvalidXmlNodeValue)),
            ("<Start>2026-08-01</Start>", Err(MissingRequiredXmlNode)),
            ("<Expiry>2026-08-02</Expiry><Expiry>2026-08-02</Expiry>", Err(InvalidXmlDocument)),
            ("<Owner>me</Owner>", Err(InvalidXmlDocument)),
        ];
        for (nodes, expected) in cases {
            assert_eq!(parse(nodes, Version::NEWEST), expected, "{nodes}");
        }
        let bound = "<Expiry>2026-08-02</Expiry><DelegatedUserTid>t</DelegatedUserTid>";
        assert_eq!(parse(bound, Version::NEWEST).map(|info| info.for_tenant), Ok(Some("t".into())));
        assert_eq!(parse(bound, Version::V2020_12_06), Err(InvalidXmlDocument));
    }
}
