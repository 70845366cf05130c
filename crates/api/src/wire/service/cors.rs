//! CORS rules, read and written.
//! <https://learn.microsoft.com/rest/api/storageservices/cross-origin-resource-sharing--cors--support-for-the-azure-storage-services>

use lazuli_engine::service::properties::CorsRule;

use super::request::{once, required};
use crate::error::Problem;
use crate::wire::xml::{Document, Writer, node_value};

/// Most rules of a service.
const RULES_MAX: usize = 5;
/// Most origins of a rule, and most headers by their whole name in one list.
const LITERALS_MAX: usize = 64;
/// Most beginnings of header names in one list.
const PREFIXES_MAX: usize = 2;
/// Longest origin or header name, in characters.
const ITEM_CHARS_MAX: usize = 256;
/// Most bytes of all rules together, without the XML around them.
const RULES_BYTES_MAX: usize = 2 * 1024;
/// What a rule may allow.
const METHODS: &[&str] = &["DELETE", "GET", "HEAD", "MERGE", "OPTIONS", "PATCH", "POST", "PUT"];

/// The `Cors` element.
pub(super) fn write(xml: &mut Writer, rules: &[CorsRule]) {
    if rules.is_empty() {
        return xml.empty("Cors");
    }
    xml.open("Cors");
    for rule in rules {
        xml.open("CorsRule");
        xml.text("AllowedOrigins", &rule.allowed_origins.join(","));
        xml.text("AllowedMethods", &rule.allowed_methods.join(","));
        xml.text("AllowedHeaders", &rule.allowed_headers.join(","));
        xml.text("ExposedHeaders", &rule.exposed_headers.join(","));
        xml.text("MaxAgeInSeconds", &rule.max_age_seconds.to_string());
        xml.close("CorsRule");
    }
    xml.close("Cors");
}

/// Reads the `Cors` element just entered.
///
/// Refuses `InvalidXmlDocument`, also for more rules or longer ones than there may be, and `InvalidXmlNodeValue`.
pub(super) fn read(document: &mut Document<'_>) -> Result<Vec<CorsRule>, Problem> {
    let mut rules = Vec::new();
    let mut bytes = 0;
    while let Some(name) = document.child()? {
        if name != "CorsRule" {
            return Err(document.wrong("only CorsRule belongs into Cors"));
        }
        let rule = rule(document)?;
        bytes += size(&rule);
        if rules.len() == RULES_MAX {
            return Err(document.wrong("there are more than five CORS rules"));
        }
        if bytes > RULES_BYTES_MAX {
            return Err(document.wrong("the CORS rules are longer than 2 KiB"));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn rule(document: &mut Document<'_>) -> Result<CorsRule, Problem> {
    let (mut origins, mut methods, mut allowed, mut exposed, mut age) = (None, None, None, None, None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "AllowedOrigins" => once(document, &mut origins, allowed_origins)?,
            "AllowedMethods" => once(document, &mut methods, allowed_methods)?,
            "AllowedHeaders" => once(document, &mut allowed, |document| headers(document, "AllowedHeaders"))?,
            "ExposedHeaders" => once(document, &mut exposed, |document| headers(document, "ExposedHeaders"))?,
            "MaxAgeInSeconds" => once(document, &mut age, max_age)?,
            _ => return Err(document.wrong(&format!("{name} does not belong into CorsRule"))),
        }
    }
    Ok(CorsRule {
        allowed_origins: required(document, origins, "AllowedOrigins")?,
        allowed_methods: required(document, methods, "AllowedMethods")?,
        allowed_headers: required(document, allowed, "AllowedHeaders")?,
        exposed_headers: required(document, exposed, "ExposedHeaders")?,
        max_age_seconds: required(document, age, "MaxAgeInSeconds")?,
    })
}

fn size(rule: &CorsRule) -> usize {
    let lists = [&rule.allowed_origins, &rule.allowed_methods, &rule.allowed_headers, &rule.exposed_headers];
    lists.into_iter().flatten().map(|item| item.len() + 1).sum()
}

fn allowed_origins(document: &mut Document<'_>) -> Result<Vec<String>, Problem> {
    const NODE: &str = "AllowedOrigins";
    let origins = items(document, NODE)?;
    if origins.is_empty() || origins.len() > LITERALS_MAX {
        return Err(node_value(NODE, &origins.join(","), "There are not 1 to 64 origins."));
    }
    // An origin is compared as a whole: a star in it would look like a pattern and match nothing.
    if let Some(origin) = origins.iter().find(|origin| origin.contains('*') && *origin != "*") {
        return Err(node_value(NODE, origin, "A star stands for all origins, not for a part of one."));
    }
    Ok(origins)
}

fn allowed_methods(document: &mut Document<'_>) -> Result<Vec<String>, Problem> {
    const NODE: &str = "AllowedMethods";
    let methods = items(document, NODE)?;
    if methods.is_empty() {
        return Err(node_value(NODE, "", "There is no method."));
    }
    match methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
        Some(method) => Err(node_value(NODE, method, &format!("It is none of {}.", METHODS.join(", ")))),
        None => Ok(methods),
    }
}

fn headers(document: &mut Document<'_>, node: &'static str) -> Result<Vec<String>, Problem> {
    let headers = items(document, node)?;
    let is_token = |name: &str| !name.is_empty() && http::HeaderName::from_bytes(name.as_bytes()).is_ok();
    let is_legal = |name: &String| name == "*" || is_token(name.strip_suffix('*').unwrap_or(name));
    if let Some(name) = headers.iter().find(|name| !is_legal(name)) {
        return Err(node_value(node, name, "It is neither a header's name nor the beginning of one and a star."));
    }
    let prefixes = headers.iter().filter(|name| name.len() > 1 && name.ends_with('*')).count();
    if prefixes > PREFIXES_MAX || headers.len() - prefixes > LITERALS_MAX {
        let reason = "There are more than 64 names or more than 2 beginnings of names.";
        return Err(node_value(node, &headers.join(","), reason));
    }
    Ok(headers)
}

fn max_age(document: &mut Document<'_>) -> Result<u32, Problem> {
    let text = document.text()?;
    match text.trim().parse::<i32>().ok().and_then(|seconds| u32::try_from(seconds).ok()) {
        Some(seconds) => Ok(seconds),
        None => Err(node_value("MaxAgeInSeconds", &text, "It is not a number of seconds.")),
    }
}

/// The items of a list with commas between them.
fn items(document: &mut Document<'_>, node: &'static str) -> Result<Vec<String>, Problem> {
    let text = document.text()?;
    let items: Vec<_> = text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect();
    match items.iter().find(|item| item.chars().count() > ITEM_CHARS_MAX) {
        Some(item) => Err(node_value(node, item, "It has more than 256 characters.")),
        None => Ok(items),
    }
}
