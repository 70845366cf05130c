//! Access tiers. <https://learn.microsoft.com/rest/api/storageservices/set-blob-tier>

use lazuli_engine::blob::kind::BlobKind;
use lazuli_engine::blob::object::BlobView;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::tier::{Rehydration, Tier, TierState};

use crate::answer::Answer;
use crate::error::Problem;
use crate::fields::Fields;
use crate::version::Version;
use crate::wire::date;
use crate::wire::xml::Writer;

const TIER: &str = "x-ms-access-tier";
const PRIORITY: &str = "x-ms-rehydrate-priority";
const BLOCK_TIERS: [Tier; 5] = [Tier::Hot, Tier::Cool, Tier::Cold, Tier::Archive, Tier::Smart];

/// The tier that Set Blob Tier asks for.
///
/// Refuses `MissingRequiredHeader`, and `InvalidHeaderValue` for a tier that the version does not know.
pub fn required(fields: &Fields, version: Version) -> Result<Tier, Problem> {
    parse(fields.header(TIER)?, version)
}

/// The tier that a new blob is to have; none for the account's default.
///
/// Refuses `InvalidHeaderValue` for a tier that the version does not know.
pub fn of_new(fields: &Fields, version: Version) -> Result<Option<Tier>, Problem> {
    fields.header_opt(TIER)?.map(|text| parse(text, version)).transpose()
}

fn parse(text: &str, version: Version) -> Result<Tier, Problem> {
    let premium = text.strip_prefix(['P', 'p']).and_then(|number| number.parse().ok()).and_then(Tier::premium);
    let block = || BLOCK_TIERS.into_iter().find(|tier| tier.to_string().eq_ignore_ascii_case(text));
    match premium.or_else(block) {
        Some(Tier::Cold) if version < Version::V2021_12_02 => Err(Problem::header(TIER, text)),
        Some(Tier::Smart) if version < Version::V2026_06_06 => Err(Problem::header(TIER, text)),
        Some(tier) => Ok(tier),
        None => Err(Problem::header(TIER, text)),
    }
}

/// Whether a rehydration is asked to hurry.
///
/// Refuses `InvalidHeaderValue`.
pub fn high_priority(fields: &Fields) -> Result<bool, Problem> {
    match fields.header_opt(PRIORITY)? {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("standard") => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("high") => Ok(true),
        Some(text) => Err(Problem::header(PRIORITY, text)),
    }
}

/// The answer with what a read says about the tier.
#[must_use]
pub fn onto(answer: Answer, blob: &BlobView) -> Answer {
    said(blob).into_iter().fold(answer, |answer, (header, _, value)| answer.header_opt(header, value))
}

/// What a listing says about the tier.
pub fn elements(xml: &mut Writer, blob: &BlobView) {
    for (_, element, value) in said(blob) {
        xml.text_opt(element, value.as_deref());
    }
}

/// Header, element and value of all that is said about the tier. Append blobs have none, page blobs only one that was
/// set, block blobs otherwise the default one.
fn said(blob: &BlobView) -> [(&'static str, &'static str, Option<String>); 6] {
    let inferred = blob.tier.is_none() && blob.kind == BlobKind::Block;
    let default = || TierState::new(Tier::Hot, Timestamp::from_ticks(0));
    let state = blob.tier.or_else(|| inferred.then(default));
    let rehydration = state.and_then(|state| state.rehydration);
    // Nothing is moved by itself here, so that a blob of the smart tier stays where it began.
    let within = state.filter(|state| state.tier == Tier::Smart).map(|_| Tier::Hot.to_string());
    [
        (TIER, "AccessTier", state.map(|state| state.tier.to_string())),
        ("x-ms-access-tier-inferred", "AccessTierInferred", inferred.then(|| "true".into())),
        ("x-ms-access-tier-change-time", "AccessTierChangeTime", blob.tier.map(|state| date::rfc1123(state.changed))),
        ("x-ms-smart-access-tier", "SmartAccessTier", within),
        ("x-ms-archive-status", "ArchiveStatus", rehydration.map(status)),
        (PRIORITY, "RehydratePriority", rehydration.map(priority)),
    ]
}

fn status(rehydration: Rehydration) -> String {
    format!("rehydrate-pending-to-{}", rehydration.target.to_string().to_ascii_lowercase())
}

fn priority(rehydration: Rehydration) -> String {
    if rehydration.high_priority { "High".into() } else { "Standard".into() }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use lazuli_engine::etag::Etag;
    use lazuli_engine::names::BlobName;

    use super::*;
    use crate::code::Code;
    use crate::head::HeaderCase;

    fn fields(header: &'static str, value: &str) -> Fields {
        let pair = (HeaderName::from_static(header), HeaderValue::from_str(value).unwrap());
        Fields::parse(HeaderMap::from_iter([pair]), None, HeaderCase::default()).unwrap()
    }

    #[test]
    fn tiers_are_known_since_their_version() {
        const BEFORE_COLD: &str = "2021-10-04";
        const BEFORE_SMART: &str = "2026-04-06";
        let cases = [
            ("Hot", BEFORE_COLD, Ok(Tier::Hot)),
            ("cool", BEFORE_COLD, Ok(Tier::Cool)),
            ("ARCHIVE", BEFORE_COLD, Ok(Tier::Archive)),
            ("Cold", BEFORE_COLD, Err(Code::InvalidHeaderValue)),
            ("Cold", "2021-12-02", Ok(Tier::Cold)),
            ("Smart", BEFORE_SMART, Err(Code::InvalidHeaderValue)),
            ("Smart", "2026-06-06", Ok(Tier::Smart)),
            ("P4", BEFORE_COLD, Ok(Tier::Premium(4))),
            ("p80", BEFORE_COLD, Ok(Tier::Premium(80))),
            ("P5", "2026-06-06", Err(Code::InvalidHeaderValue)),
            ("P", "2026-06-06", Err(Code::InvalidHeaderValue)),
            ("P999", "2026-06-06", Err(Code::InvalidHeaderValue)),
            ("Lukewarm", "2026-06-06", Err(Code::InvalidHeaderValue)),
        ];
        for (text, version, expected) in cases {
            let version = Version::parse(version, true).unwrap();
            let sent = fields(TIER, text);
            assert_eq!(required(&sent, version).map_err(|problem| problem.code), expected, "{text} {version}");
            assert_eq!(of_new(&sent, version).map_err(|problem| problem.code), expected.map(Some));
        }
        let none = Fields::default();
        assert_eq!(required(&none, Version::NEWEST).unwrap_err().code, Code::MissingRequiredHeader);
        assert_eq!(of_new(&none, Version::NEWEST), Ok(None));
    }

    #[test]
    fn a_priority_is_standard_or_high() {
        let read = |text| high_priority(&fields(PRIORITY, text)).map_err(|problem| problem.code);
        assert_eq!((read("Standard"), read("high"), read("")), (Ok(false), Ok(true), Ok(false)));
        assert_eq!(read("Urgent"), Err(Code::InvalidHeaderValue));
    }

    #[test]
    fn what_is_said_follows_from_kind_and_state() {
        let changed = Timestamp::from_unix_seconds(1_785_542_400);
        let new = |tier| Some(TierState::new(tier, changed));
        let way = Rehydration { target: Tier::Cold, high_priority: true, ready: changed };
        let on_its_way = new(Tier::Archive).map(|state| TierState { rehydration: Some(way), ..state });
        let page = BlobKind::Page { sequence: 0 };
        let date = "Sat, 01 Aug 2026 00:00:00 GMT";
        let cases = [
            (BlobKind::Block, None, "Hot|true||||"),
            (BlobKind::Block, new(Tier::Cool), "Cool||date|||"),
            (BlobKind::Block, new(Tier::Smart), "Smart||date|Hot||"),
            (BlobKind::Block, on_its_way, "Archive||date||rehydrate-pending-to-cold|High"),
            (page, None, "|||||"),
            (page, new(Tier::Premium(10)), "P10||date|||"),
            (BlobKind::Append { blocks: 0, sealed: false }, None, "|||||"),
        ];
        for (kind, tier, expected) in cases {
            let name = BlobName::parse("a").unwrap();
            let blob = BlobView { kind, tier, ..BlobView::new(name, Etag::at(changed)) };
            let values = said(&blob).map(|(_, _, value)| value.unwrap_or_default());
            assert_eq!(values.join("|"), expected.replace("date", date), "{kind:?} {tier:?}");
        }
    }
}
