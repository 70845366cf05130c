//! Immutability policies and legal holds.
//! <https://learn.microsoft.com/rest/api/storageservices/set-blob-immutability-policy>

use lazuli_engine::protection::{ImmutabilityPolicy, Protection};

use crate::answer::Answer;
use crate::error::Problem;
use crate::fields::Fields;
use crate::wire::date;
use crate::wire::xml::Writer;

/// What carries the end of a policy.
pub const UNTIL: &str = "x-ms-immutability-policy-until-date";
const MODE: &str = "x-ms-immutability-policy-mode";
const HOLD: &str = "x-ms-legal-hold";

/// The policy that a request sets.
///
/// Refuses `MissingRequiredHeader` without its end, `InvalidHeaderValue`.
pub fn policy(fields: &Fields) -> Result<ImmutabilityPolicy, Problem> {
    let text = fields.header(UNTIL)?;
    let until = date::parse_http(text).ok_or_else(|| Problem::header(UNTIL, text))?;
    let locked = match fields.header_opt(MODE)? {
        None => false,
        Some(text) if text.eq_ignore_ascii_case("unlocked") => false,
        Some(text) if text.eq_ignore_ascii_case("locked") => true,
        Some(text) => return Err(Problem::header(MODE, text)),
    };
    Ok(ImmutabilityPolicy { until, locked })
}

/// The legal hold that a request sets or takes back.
///
/// Refuses `MissingRequiredHeader` and `InvalidHeaderValue`.
pub fn hold(fields: &Fields) -> Result<bool, Problem> {
    match fields.header(HOLD)? {
        text if text.eq_ignore_ascii_case("true") => Ok(true),
        text if text.eq_ignore_ascii_case("false") => Ok(false),
        text => Err(Problem::header(HOLD, text)),
    }
}

/// What is to protect a new blob.
///
/// Refuses `MissingRequiredHeader` for a mode without an end, `InvalidHeaderValue`.
pub fn of_new(fields: &Fields) -> Result<Protection, Problem> {
    let has_policy = fields.has_header(UNTIL) || fields.has_header(MODE);
    Ok(Protection {
        policy: has_policy.then(|| policy(fields)).transpose()?,
        hold: fields.has_header(HOLD).then(|| hold(fields)).transpose()?,
    })
}

/// The answer with a policy.
#[must_use]
pub fn policy_onto(answer: Answer, policy: ImmutabilityPolicy) -> Answer {
    answer.header(UNTIL, date::rfc1123(policy.until)).header(MODE, mode(policy))
}

/// The answer with a legal hold.
#[must_use]
pub fn hold_onto(answer: Answer, hold: bool) -> Answer {
    answer.header(HOLD, flag(hold))
}

/// The answer with what a read says about the protection.
#[must_use]
pub fn onto(answer: Answer, protection: &Protection) -> Answer {
    let answer = match protection.policy {
        Some(policy) => policy_onto(answer, policy),
        None => answer,
    };
    answer.header_opt(HOLD, protection.hold.map(flag))
}

/// What a listing shows of protections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Immutability policies.
    pub policies: bool,
    /// Legal holds.
    pub holds: bool,
}

/// What a listing says about the protection, as far as it shows it.
pub fn elements(xml: &mut Writer, protection: &Protection, shown: Shown) {
    if let Some(policy) = protection.policy.filter(|_| shown.policies) {
        xml.text("ImmutabilityPolicyUntilDate", &date::rfc1123(policy.until));
        xml.text("ImmutabilityPolicyMode", mode(policy));
    }
    xml.text_opt("LegalHold", protection.hold.filter(|_| shown.holds).map(flag));
}

const fn mode(policy: ImmutabilityPolicy) -> &'static str {
    if policy.locked { "locked" } else { "unlocked" }
}

const fn flag(hold: bool) -> &'static str {
    if hold { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use lazuli_engine::clock::Timestamp;

    use super::*;
    use crate::code::Code;
    use crate::head::HeaderCase;

    const AUGUST: &str = "Sat, 01 Aug 2026 00:00:00 GMT";

    #[test]
    fn a_protection_is_read_from_its_headers() {
        let until = Timestamp::from_unix_seconds(1_785_542_400);
        let policy = |locked| Protection { policy: Some(ImmutabilityPolicy { until, locked }), hold: None };
        let hold = |hold| Protection { hold: Some(hold), ..Protection::default() };
        let cases: [(&[_], _); 10] = [
            (&[], Ok(Protection::default())),
            (&[(UNTIL, AUGUST)], Ok(policy(false))),
            (&[(UNTIL, AUGUST), (MODE, "Unlocked")], Ok(policy(false))),
            (&[(UNTIL, AUGUST), (MODE, "locked")], Ok(policy(true))),
            (&[(MODE, "locked")], Err(Code::MissingRequiredHeader)),
            (&[(UNTIL, AUGUST), (MODE, "mutable")], Err(Code::InvalidHeaderValue)),
            (&[(UNTIL, "tomorrow")], Err(Code::InvalidHeaderValue)),
            (&[(HOLD, "True")], Ok(hold(true))),
            (&[(HOLD, "false")], Ok(hold(false))),
            (&[(HOLD, "yes")], Err(Code::InvalidHeaderValue)),
        ];
        for (headers, expected) in cases {
            let map: HeaderMap = headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            let fields = Fields::parse(map, None, HeaderCase::default()).unwrap();
            assert_eq!(of_new(&fields).map_err(|problem| problem.code), expected, "{headers:?}");
        }
        assert_eq!(super::policy(&Fields::default()).unwrap_err().code, Code::MissingRequiredHeader);
        assert_eq!(super::hold(&Fields::default()).unwrap_err().code, Code::MissingRequiredHeader);
    }
}
