//! The parameters of a shared access signature, before anything of it is believed.
//! <https://learn.microsoft.com/rest/api/storageservices/create-service-sas>

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::names::KeyText;

use super::addresses::Addresses;
use crate::auth::failed;
use crate::auth::rights::Letters;
use crate::error::Problem;
use crate::fields::Fields;
use crate::target::Service;
use crate::version::Version;
use crate::wire::date;

/// Parameters that belong to signatures.
pub(super) const NAMES: [&str; 36] = [
    "sv", "ss", "srt", "sr", "sp", "st", "se", "sip", "spr", "si", "sig", "tn", "spk", "srk", "epk", "erk", "rscc",
    "rscd", "rsce", "rscl", "rsct", "skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid", "sduoid", "saoid",
    "suoid", "scid", "sdd", "ses", "srh", "srq",
];
/// Bytes of an HMAC-SHA256.
const SIGNATURE_BYTES: usize = 32;

/// What kind of signature it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// For the account: signed with its key.
    Account,
    /// For a resource of one service: signed with the account's key.
    Service,
    /// For a resource of one service: signed with a key that an identity was given.
    Delegated,
}

/// A shared access signature whose parameters are in order, each for itself.
#[derive(Clone, Debug)]
pub(super) struct Form<'a> {
    pub(super) shape: Shape,
    /// `sv`; none for the oldest form, which has none.
    pub(super) version: Option<Version>,
    pub(super) signature: [u8; SIGNATURE_BYTES],
    pub(super) start: Option<Timestamp>,
    pub(super) expiry: Option<Timestamp>,
    pub(super) permissions: Option<Letters>,
    pub(super) addresses: Option<Addresses>,
    /// Whether only encrypted connections will do.
    pub(super) secure_only: bool,
    values: BTreeMap<&'static str, &'a str>,
}

impl<'a> Form<'a> {
    /// Reads the parameters.
    ///
    /// Refuses `AuthenticationFailed`, naming the parameter that is missing, there twice or malformed.
    pub(super) fn read(fields: &'a Fields, service: Service, strict: bool) -> Result<Self, Problem> {
        let values = values(fields)?;
        let value = |name| values.get(name).copied();
        let version = version(value("sv"), strict)?;
        let shape = match () {
            () if value("ss").is_some() || value("srt").is_some() => Shape::Account,
            () if values.keys().any(|name| name.starts_with("sk")) => Shape::Delegated,
            () => Shape::Service,
        };
        let form = Self {
            shape,
            version,
            signature: signature(value("sig"))?,
            start: instant(&values, "st")?,
            expiry: instant(&values, "se")?,
            permissions: parsed(&values, "sp", Letters::parse)?,
            addresses: parsed(&values, "sip", Addresses::parse)?,
            secure_only: parsed(&values, "spr", protocols)?.unwrap_or(false),
            values,
        };
        form.check(service)?;
        Ok(form)
    }

    /// A parameter; empty if absent.
    pub(super) fn get(&self, name: &str) -> &'a str {
        self.opt(name).unwrap_or_default()
    }

    /// A parameter that may be absent.
    pub(super) fn opt(&self, name: &str) -> Option<&'a str> {
        self.values.get(name).copied()
    }

    /// Whether the signature's version is `version` or later.
    pub(super) fn since(&self, version: Version) -> bool {
        self.version.is_some_and(|own| own >= version)
    }

    fn require(&self, names: &[&str]) -> Result<(), Problem> {
        match names.iter().find(|name| self.opt(name).is_none()) {
            Some(missing) => Err(failed(&format!("{missing} is mandatory. Cannot be empty."))),
            None => Ok(()),
        }
    }

    /// What must be there besides, and what must not.
    fn check(&self, service: Service) -> Result<(), Problem> {
        match self.shape {
            Shape::Account => {
                self.require(&["sv", "ss", "srt", "sp", "se"])?;
                self.since_or_refuse(Version::V2015_04_05)?;
                self.letters_of("ss", "bqtf")?;
                self.letters_of("srt", "sco")?;
                self.refuse("si")
            }
            Shape::Delegated => {
                self.require(&["sv", "sp", "se", "skoid", "sktid", "skt", "ske", "sks", "skv"])?;
                let first = if service == Service::Blob { Version::V2018_11_09 } else { Version::V2025_07_05 };
                self.since_or_refuse(first)?;
                self.refuse("si")?;
                self.resource(service)
            }
            Shape::Service => self.resource(service),
        }
    }

    fn resource(&self, service: Service) -> Result<(), Problem> {
        match service {
            Service::Queue => Ok(()),
            Service::Table => {
                self.require(&["tn"])?;
                for (row, partition) in [("srk", "spk"), ("erk", "epk")] {
                    if self.opt(row).is_some() {
                        self.require(&[partition])?;
                    }
                }
                let is_none = |name: &&&str| self.opt(name).is_some_and(|text| KeyText::parse(text).is_err());
                ["spk", "srk", "epk", "erk"].iter().find(is_none).map_or(Ok(()), |name| Err(malformed(name)))
            }
            Service::Blob => {
                self.require(&["sr"])?;
                let first = match self.get("sr") {
                    "b" | "c" => return Ok(()),
                    "bs" | "bv" => Version::V2018_11_09,
                    "d" => Version::V2020_02_10,
                    _ => return Err(malformed("sr")),
                };
                self.since_or_refuse(first)?;
                if self.get("sr") == "d" { self.depth().map(|_| ()) } else { Ok(()) }
            }
        }
    }

    /// `sdd`, the number of segments of a directory's path.
    pub(super) fn depth(&self) -> Result<usize, Problem> {
        self.require(&["sdd"])?;
        let digits = self.get("sdd").bytes().all(|byte| byte.is_ascii_digit());
        self.get("sdd").parse().ok().filter(|_| digits).ok_or_else(|| malformed("sdd"))
    }

    fn since_or_refuse(&self, first: Version) -> Result<(), Problem> {
        if self.since(first) {
            return Ok(());
        }
        Err(failed(&format!("sv is {}; such a signature is known from {first} on.", self.get("sv"))))
    }

    /// Letters of a small alphabet, none twice.
    fn letters_of(&self, name: &str, alphabet: &str) -> Result<(), Problem> {
        let text = self.get(name);
        let known = text.chars().all(|letter| alphabet.contains(letter) && text.matches(letter).count() == 1);
        if known { Ok(()) } else { Err(malformed(name)) }
    }

    fn refuse(&self, name: &str) -> Result<(), Problem> {
        match self.opt(name) {
            Some(_) => Err(failed(&format!("{name} cannot be used with this kind of shared access signature."))),
            None => Ok(()),
        }
    }
}

fn values(fields: &Fields) -> Result<BTreeMap<&'static str, &str>, Problem> {
    let mut values = BTreeMap::new();
    for (given, value) in fields.query_pairs() {
        let Some(name) = NAMES.iter().find(|name| given.eq_ignore_ascii_case(name)) else { continue };
        if value.is_empty() {
            continue;
        }
        if values.insert(*name, value.as_str()).is_some() {
            return Err(failed(&format!("{name} is given more than once.")));
        }
    }
    Ok(values)
}

fn version(text: Option<&str>, strict: bool) -> Result<Option<Version>, Problem> {
    text.map(|text| Version::parse(text, strict)).transpose().map_err(|_| malformed("sv"))
}

fn signature(text: Option<&str>) -> Result<[u8; SIGNATURE_BYTES], Problem> {
    let bytes = STANDARD.decode(text.unwrap_or_default()).map_err(|_| malformed("sig"))?;
    bytes.try_into().map_err(|_| failed("Signature size is invalid."))
}

fn instant(values: &BTreeMap<&'static str, &str>, name: &'static str) -> Result<Option<Timestamp>, Problem> {
    parsed(values, name, parse_instant)
}

fn parsed<T>(
    values: &BTreeMap<&'static str, &str>,
    name: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    values.get(name).map(|text| parse(text).ok_or_else(|| malformed(name))).transpose()
}

/// `2026-08-01`, or a time of that day in UTC: hours and minutes, seconds, up to seven more digits.
pub(super) fn parse_instant(text: &str) -> Option<Timestamp> {
    let time = text.split_once('T').map(|(_, time)| time);
    let plain = match time {
        None => text.len() == "2026-08-01".len(),
        Some(time) => {
            let fraction = time.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            time.ends_with('Z') && time.len() >= "00:00Z".len() && fraction <= "1234567Z".len()
        }
    };
    if plain { date::parse_iso8601(text) } else { None }
}

/// Whether `spr` allows encrypted connections only. Plain ones only are not to be had.
fn protocols(text: &str) -> Option<bool> {
    match text {
        "https" => Some(true),
        "https,http" | "http,https" => Some(false),
        _ => None,
    }
}

pub(super) fn malformed(name: &str) -> Problem {
    failed(&format!("{name} is not in the correct format."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_utc_and_have_at_most_seven_digits() {
        let august = Timestamp::from_unix_seconds(1_785_542_400);
        for text in ["2026-08-01", "2026-08-01T00:00Z", "2026-08-01T00:00:00Z", "2026-08-01T00:00:00.0000000Z"] {
            assert_eq!(parse_instant(text), Some(august), "{text}");
        }
        for text in [
            "2026-08-01T00:00:00",
            "2026-08-01T00:00:00+00:00",
            "2026-08-01T00:00:00.00000000Z",
            "2026-08-01 00:00:00Z",
            "2026-13-01",
            "2026-02-30T00:00Z",
            "+012026-08-01",
            "20260801",
            "99999-01-01",
            "tomorrow",
            "",
        ] {
            assert_eq!(parse_instant(text), None, "{text}");
        }
    }

    #[test]
    fn the_sdks_order_of_letters_does_not_matter_but_each_is_there_once() {
        for text in ["r", "racwdxltmeiyf", "racwdxyltfmeopi", "raup", ""] {
            assert!(Letters::parse(text).is_some(), "{text}");
        }
        for text in ["rr", "z", "R", "r ", "é"] {
            assert!(Letters::parse(text).is_none(), "{text}");
        }
    }
}
