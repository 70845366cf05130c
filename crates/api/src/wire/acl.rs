//! The stored access policies of a container, and its public access.
//! <https://learn.microsoft.com/rest/api/storageservices/set-container-acl>

use lazuli_engine::access::{AccessPolicy, PublicAccess};

use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::version::Version;
use crate::wire::date;
use crate::wire::xml::{Document, Writer, node_value};

/// Most policies of a container.
pub const POLICIES_MAX: usize = 5;
/// Longest id of a policy, in characters.
pub const POLICY_ID_CHARS_MAX: usize = 64;
/// The header that carries the public access; its absence means private.
pub const PUBLIC_ACCESS: &str = "x-ms-blob-public-access";
/// Letters that a policy of a container may allow.
pub const CONTAINER_PERMISSIONS: &str = "racwdxyltmeopfi";
/// Letters that a policy of a queue may allow.
pub const QUEUE_PERMISSIONS: &str = "raup";
/// Letters that a policy of a table may allow.
pub const TABLE_PERMISSIONS: &str = "raud";

/// The public access that a request asks for.
///
/// Refuses `InvalidHeaderValue`.
pub fn public_access(fields: &Fields) -> Result<PublicAccess, Problem> {
    match fields.header_opt(PUBLIC_ACCESS)? {
        None => Ok(PublicAccess::Private),
        Some(text) if text.eq_ignore_ascii_case("blob") => Ok(PublicAccess::Blob),
        Some(text) if text.eq_ignore_ascii_case("container") => Ok(PublicAccess::Container),
        Some(text) => Err(Problem::header(PUBLIC_ACCESS, text)),
    }
}

/// How headers and listings say it; none for private.
pub const fn public_access_text(access: PublicAccess) -> Option<&'static str> {
    match access {
        PublicAccess::Private => None,
        PublicAccess::Blob => Some("blob"),
        PublicAccess::Container => Some("container"),
    }
}

/// Reads the body of Set Container (Queue, Table) ACL; an empty one holds no policies. `letters`: what a policy may
/// allow.
///
/// Refuses `InvalidXmlDocument`, also for more than [`POLICIES_MAX`] policies, two of one id or an id that is too long,
/// `InvalidXmlNodeValue` and `MissingRequiredXmlNode`.
pub fn parse(body: &[u8], letters: &str) -> Result<Vec<AccessPolicy>, Problem> {
    let mut policies: Vec<AccessPolicy> = Vec::new();
    if body.trim_ascii().is_empty() {
        return Ok(policies);
    }
    let mut document = Document::open(body, "SignedIdentifiers")?;
    while let Some(name) = document.child()? {
        if name != "SignedIdentifier" {
            return Err(document.wrong("only SignedIdentifier belongs here"));
        }
        let policy = identifier(&mut document, letters)?;
        if policies.len() == POLICIES_MAX {
            return Err(document.wrong("there are more than five policies"));
        }
        if policies.iter().any(|known| known.id == policy.id) {
            return Err(document.wrong("two policies have the same id"));
        }
        policies.push(policy);
    }
    document.close()?;
    Ok(policies)
}

fn identifier(document: &mut Document<'_>, letters: &str) -> Result<AccessPolicy, Problem> {
    let mut id = None;
    let mut policy = None;
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Id" if id.is_none() => id = Some(document.text()?),
            "AccessPolicy" if policy.is_none() => policy = Some(access_policy(document, letters)?),
            _ => return Err(document.wrong("one Id and one AccessPolicy belong here")),
        }
    }
    let id = id.ok_or_else(|| Problem::new(Code::MissingRequiredXmlNode).detail("XmlNodeName", "Id"))?;
    if !(1..=POLICY_ID_CHARS_MAX).contains(&id.chars().count()) {
        return Err(document.wrong("an Id has not 1 to 64 characters"));
    }
    Ok(AccessPolicy { id, ..policy.unwrap_or_default() })
}

fn access_policy(document: &mut Document<'_>, letters: &str) -> Result<AccessPolicy, Problem> {
    let mut policy = AccessPolicy::default();
    while let Some(name) = document.child()? {
        let (field, node) = match name.as_str() {
            "Start" => (&mut policy.start, "Start"),
            "Expiry" => (&mut policy.expiry, "Expiry"),
            "Permission" => (&mut policy.permission, "Permission"),
            _ => return Err(document.wrong("only Start, Expiry and Permission belong here")),
        };
        if field.is_some() {
            return Err(document.wrong("an element is there twice"));
        }
        let text = document.text()?;
        if text.is_empty() {
            continue;
        }
        let valid = if node == "Permission" { are_permissions(&text, letters) } else { is_date(&text) };
        if !valid {
            return Err(node_value(node, &text, "It is not in the correct format."));
        }
        *field = Some(text);
    }
    Ok(policy)
}

fn is_date(text: &str) -> bool {
    date::parse_iso8601(text).is_some()
}

/// Repeated letters are none: a list of them could be as long as the body.
fn are_permissions(text: &str, letters: &str) -> bool {
    text.len() <= letters.len() && text.chars().all(|letter| letters.contains(letter))
}

/// A date as the service shows it, however it was written.
fn shown_date(text: &str) -> String {
    date::parse_iso8601(text).map_or_else(|| text.to_owned(), date::iso8601)
}

/// Sees to it that a client of `version` understands what policies of a container allow: adding and creating came with
/// 2015-04-05.
///
/// Refuses `FeatureVersionMismatch`.
pub fn check_version(policies: &[AccessPolicy], version: Version) -> Result<(), Problem> {
    let is_newer = |policy: &AccessPolicy| policy.permission.as_deref().is_some_and(|text| text.contains(['a', 'c']));
    match policies.iter().find(|policy| is_newer(policy)) {
        Some(policy) if version < Version::V2015_04_05 => Err(Problem::new(Code::FeatureVersionMismatch)
            .saying(format!("The access policy {} allows what this version does not know.", policy.id))),
        _ => Ok(()),
    }
}

/// The body of Get Container ACL.
pub fn document(policies: &[AccessPolicy]) -> Vec<u8> {
    let mut xml = Writer::begin();
    if policies.is_empty() {
        xml.empty("SignedIdentifiers");
        return xml.finish();
    }
    xml.open("SignedIdentifiers");
    for policy in policies {
        xml.open("SignedIdentifier");
        xml.text("Id", &policy.id);
        xml.open("AccessPolicy");
        xml.text_opt("Start", policy.start.as_deref().map(shown_date).as_deref());
        xml.text_opt("Expiry", policy.expiry.as_deref().map(shown_date).as_deref());
        xml.text_opt("Permission", policy.permission.as_deref());
        xml.close("AccessPolicy");
        xml.close("SignedIdentifier");
    }
    xml.close("SignedIdentifiers");
    xml.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(ids: &[&str]) -> String {
        let ids: String = ids.iter().map(|id| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>")).collect();
        format!("<SignedIdentifiers>{ids}</SignedIdentifiers>")
    }

    fn with_policy(policy: &str) -> String {
        format!(
            "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy>{policy}</AccessPolicy></SignedIdentifier>\
             </SignedIdentifiers>"
        )
    }

    #[test]
    fn policies_come_back_with_dates_to_the_tick() {
        let full = AccessPolicy {
            id: "p & q".into(),
            start: Some("2026-08-01T00:00:00.0000000Z".into()),
            expiry: Some("2026-09-01T00:00:00.0000000Z".into()),
            permission: Some("rl".into()),
        };
        let short = AccessPolicy {
            start: Some("2026-08-01T02:00:00+02:00".into()),
            expiry: Some("2026-09-01".into()),
            ..full.clone()
        };
        assert_eq!(document(&[short]), document(std::slice::from_ref(&full)));
        let bare = AccessPolicy { id: "b".into(), ..AccessPolicy::default() };
        for policies in [vec![], vec![full.clone()], vec![full, bare]] {
            assert_eq!(parse(&document(&policies), CONTAINER_PERMISSIONS), Ok(policies));
        }
        assert_eq!(parse(b" ", QUEUE_PERMISSIONS), Ok(vec![]));
        assert_eq!(document(&[]), br#"<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers />"#);
    }

    #[test]
    fn anything_out_of_the_ordinary_is_refused() {
        let long = "i".repeat(65);
        let cases = [
            (body(&["1", "2", "3", "4", "5", "6"]), Code::InvalidXmlDocument),
            (body(&["1", "1"]), Code::InvalidXmlDocument),
            (body(&[""]), Code::InvalidXmlDocument),
            (body(&[&long]), Code::InvalidXmlDocument),
            (with_policy("<Start>tomorrow</Start>"), Code::InvalidXmlNodeValue),
            (with_policy("<Expiry>1</Expiry>"), Code::InvalidXmlNodeValue),
            (with_policy("<Permission>rz</Permission>"), Code::InvalidXmlNodeValue),
            (with_policy("<Permission>rrrrrrrrrrrrrrrr</Permission>"), Code::InvalidXmlNodeValue),
            (with_policy("<Permission>r</Permission><Permission>r</Permission>"), Code::InvalidXmlDocument),
            (with_policy("<Owner>me</Owner>"), Code::InvalidXmlDocument),
            ("<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>".into(), Code::MissingRequiredXmlNode),
            ("<SignedIdentifiers><Id>a</Id></SignedIdentifiers>".into(), Code::InvalidXmlDocument),
            ("<Policies/>".into(), Code::InvalidXmlDocument),
            ("<SignedIdentifiers>".into(), Code::InvalidXmlDocument),
        ];
        for (body, code) in cases {
            assert_eq!(
                parse(body.as_bytes(), CONTAINER_PERMISSIONS).map_err(|problem| problem.code),
                Err(code),
                "{body}"
            );
        }
    }

    #[test]
    fn queues_and_containers_have_letters_of_their_own() {
        for (letters, container, queue) in [("raup", false, true), ("rwdl", true, false), ("rap", true, true)] {
            let body = with_policy(&format!("<Permission>{letters}</Permission>"));
            assert_eq!(parse(body.as_bytes(), CONTAINER_PERMISSIONS).is_ok(), container, "{letters}");
            assert_eq!(parse(body.as_bytes(), QUEUE_PERMISSIONS).is_ok(), queue, "{letters}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, QUEUE_PERMISSIONS);
        }
    }
}
