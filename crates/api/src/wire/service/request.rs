//! Reading the body of Set Service Properties.

use lazuli_engine::service::properties::{Change, DeleteRetention, IncludeApis, Logging, Metrics, StaticWebsite};

use super::{ROOT, cors};
use crate::error::Problem;
use crate::target::Service;
use crate::version::Version;
use crate::wire::xml::{Document, node_value};

/// Longest time that anything is kept, in days.
const RETENTION_DAYS_MAX: u16 = 365;
/// Longest path of a website's page, in characters.
const PATH_CHARS_MAX: usize = 255;

/// Reads the body of Set Service Properties. An element that is left out keeps what it stands for as it is.
///
/// Refuses `InvalidXmlDocument` for elements that do not belong, are there twice or are missing, and
/// `InvalidXmlNodeValue`.
pub fn parse(body: &[u8], service: Service) -> Result<Change, Problem> {
    let mut document = Document::open(body, ROOT)?;
    let change = roots(&mut document, service)?;
    document.close()?;
    Ok(change)
}

fn roots(document: &mut Document<'_>, service: Service) -> Result<Change, Problem> {
    let mut change = Change::default();
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Logging" => once(document, &mut change.logging, logging)?,
            "HourMetrics" => once(document, &mut change.hour_metrics, metrics)?,
            "MinuteMetrics" => once(document, &mut change.minute_metrics, metrics)?,
            "Cors" => once(document, &mut change.cors, cors::read)?,
            "DefaultServiceVersion" if service == Service::Blob => {
                once(document, &mut change.default_version, default_version)?;
            }
            "DeleteRetentionPolicy" if service == Service::Blob => {
                once(document, &mut change.delete_retention, delete_retention)?;
            }
            "StaticWebsite" if service == Service::Blob => once(document, &mut change.website, website)?,
            _ => return Err(document.wrong(&format!("{name} is no property of the {} service", service.name()))),
        }
    }
    Ok(change)
}

/// Reads the element just entered into `place`, which is still empty.
pub(super) fn once<'a, T>(
    document: &mut Document<'a>,
    place: &mut Option<T>,
    read: impl FnOnce(&mut Document<'a>) -> Result<T, Problem>,
) -> Result<(), Problem> {
    if place.is_some() {
        return Err(document.wrong("an element is there twice"));
    }
    *place = Some(read(document)?);
    Ok(())
}

/// What an element must hold.
pub(super) fn required<T>(document: &Document<'_>, value: Option<T>, name: &str) -> Result<T, Problem> {
    value.ok_or_else(|| document.wrong(&format!("{name} is missing")))
}

fn logging(document: &mut Document<'_>) -> Result<Logging, Problem> {
    let (mut version, mut delete, mut read, mut write, mut retention) = (None, None, None, None, None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Version" => once(document, &mut version, |document| form(document, &["1.0", "2.0"]))?,
            "Delete" => once(document, &mut delete, |document| flag(document, "Delete"))?,
            "Read" => once(document, &mut read, |document| flag(document, "Read"))?,
            "Write" => once(document, &mut write, |document| flag(document, "Write"))?,
            "RetentionPolicy" => once(document, &mut retention, retention_days)?,
            _ => return Err(document.wrong(&format!("{name} does not belong into Logging"))),
        }
    }
    Ok(Logging {
        version: Some(required(document, version, "Version")?),
        delete: required(document, delete, "Delete")?,
        read: required(document, read, "Read")?,
        write: required(document, write, "Write")?,
        retention_days: required(document, retention, "RetentionPolicy")?,
    })
}

fn metrics(document: &mut Document<'_>) -> Result<Metrics, Problem> {
    let (mut version, mut enabled, mut include, mut retention) = (None, None, None, None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Version" => once(document, &mut version, |document| form(document, &["1.0"]))?,
            "Enabled" => once(document, &mut enabled, |document| flag(document, "Enabled"))?,
            "IncludeAPIs" => once(document, &mut include, |document| flag(document, "IncludeAPIs"))?,
            "RetentionPolicy" => once(document, &mut retention, retention_days)?,
            _ => return Err(document.wrong(&format!("{name} does not belong into metrics"))),
        }
    }
    let enabled = match (required(document, enabled, "Enabled")?, include) {
        (true, Some(include)) => Some(IncludeApis(include)),
        (true, None) => return Err(document.wrong("IncludeAPIs is missing")),
        (false, None) => None,
        (false, Some(_)) => return Err(document.wrong("IncludeAPIs belongs only where metrics are enabled")),
    };
    let version = Some(required(document, version, "Version")?);
    Ok(Metrics { version, enabled, retention_days: required(document, retention, "RetentionPolicy")? })
}

fn retention_days(document: &mut Document<'_>) -> Result<Option<u16>, Problem> {
    let (mut enabled, mut days) = (None, None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Enabled" => once(document, &mut enabled, |document| flag(document, "Enabled"))?,
            "Days" => once(document, &mut days, number_of_days)?,
            _ => return Err(document.wrong(&format!("{name} does not belong into RetentionPolicy"))),
        }
    }
    kept_days(document, enabled, days)
}

/// How long something is kept: as long as `days` says, if it is kept at all.
fn kept_days(
    document: &Document<'_>,
    enabled: Option<bool>,
    days: Option<Option<u16>>,
) -> Result<Option<u16>, Problem> {
    if !required(document, enabled, "Enabled")? {
        return Ok(None);
    }
    required(document, days.flatten(), "Days").map(Some)
}

fn delete_retention(document: &mut Document<'_>) -> Result<DeleteRetention, Problem> {
    let (mut enabled, mut days, mut permanent) = (None, None, None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Enabled" => once(document, &mut enabled, |document| flag(document, "Enabled"))?,
            "Days" => once(document, &mut days, number_of_days)?,
            "AllowPermanentDelete" => {
                once(document, &mut permanent, |document| flag(document, "AllowPermanentDelete"))?;
            }
            _ => return Err(document.wrong(&format!("{name} does not belong into DeleteRetentionPolicy"))),
        }
    }
    let days = kept_days(document, enabled, days)?;
    Ok(DeleteRetention { days, allow_permanent: permanent.unwrap_or_default() })
}

fn website(document: &mut Document<'_>) -> Result<StaticWebsite, Problem> {
    let (mut enabled, mut index, mut default, mut error) = (None, None, None, None);
    while let Some(name) = document.child()? {
        match name.as_str() {
            "Enabled" => once(document, &mut enabled, |document| flag(document, "Enabled"))?,
            "IndexDocument" => once(document, &mut index, index_name)?,
            "DefaultIndexDocumentPath" => {
                once(document, &mut default, |document| path(document, "DefaultIndexDocumentPath"))?;
            }
            "ErrorDocument404Path" => once(document, &mut error, |document| path(document, "ErrorDocument404Path"))?,
            _ => return Err(document.wrong(&format!("{name} does not belong into StaticWebsite"))),
        }
    }
    Ok(StaticWebsite {
        enabled: required(document, enabled, "Enabled")?,
        index_document: index.flatten(),
        default_index_path: default.flatten(),
        error_path: error.flatten(),
    })
}

fn index_name(document: &mut Document<'_>) -> Result<Option<String>, Problem> {
    let name = path(document, "IndexDocument")?;
    match name {
        Some(name) if name.contains('/') => {
            Err(node_value("IndexDocument", &name, "It is a name, in which there is no slash."))
        }
        name => Ok(name),
    }
}

/// A path in `$web`; an empty one is none.
fn path(document: &mut Document<'_>, node: &'static str) -> Result<Option<String>, Problem> {
    let text = document.text()?;
    if text.chars().count() > PATH_CHARS_MAX {
        return Err(node_value(node, &text, "It has more than 255 characters."));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn default_version(document: &mut Document<'_>) -> Result<String, Problem> {
    let text = document.text()?;
    match Version::parse(&text, false) {
        Ok(_) => Ok(text),
        Err(_) => Err(node_value("DefaultServiceVersion", &text, "It is no version of the service.")),
    }
}

fn form(document: &mut Document<'_>, known: &[&str]) -> Result<String, Problem> {
    let text = document.text()?;
    if known.contains(&text.as_str()) {
        return Ok(text);
    }
    Err(node_value("Version", &text, &format!("It is none of {}.", known.join(", "))))
}

fn flag(document: &mut Document<'_>, node: &'static str) -> Result<bool, Problem> {
    let text = document.text()?;
    match text.trim() {
        text if text.eq_ignore_ascii_case("true") => Ok(true),
        text if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(node_value(node, &text, "It is neither true nor false.")),
    }
}

/// Days; an empty element is as good as none.
fn number_of_days(document: &mut Document<'_>) -> Result<Option<u16>, Problem> {
    let text = document.text()?;
    match text.trim() {
        "" => Ok(None),
        digits => match digits.parse() {
            Ok(days @ 1..=RETENTION_DAYS_MAX) => Ok(Some(days)),
            _ => Err(node_value("Days", &text, "It is not a number of 1 to 365 days.")),
        },
    }
}
