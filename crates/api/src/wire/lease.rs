//! The x-ms-lease-* headers. <https://learn.microsoft.com/rest/api/storageservices/lease-blob>

use lazuli_engine::blob::{LeaseAnswer, LeaseView};
use lazuli_engine::lease::{LeaseAction, LeaseDuration, LeaseId, LeaseState};
use uuid::Uuid;

use crate::answer::Answer;
use crate::error::Problem;
use crate::fields::Fields;

const ACTION: &str = "x-ms-lease-action";
const BREAK_PERIOD: &str = "x-ms-lease-break-period";
const DURATION: &str = "x-ms-lease-duration";
const ID: &str = "x-ms-lease-id";
const SOURCE_ID: &str = "x-ms-source-lease-id";
const PROPOSED_ID: &str = "x-ms-proposed-lease-id";

/// The lease that a request says it holds.
///
/// Refuses `InvalidHeaderValue` for what is not a GUID.
pub fn held(fields: &Fields) -> Result<Option<LeaseId>, Problem> {
    guid(fields, ID)
}

/// The lease that a copy says its source has.
///
/// Refuses `InvalidHeaderValue` for what is not a GUID.
pub fn of_source(fields: &Fields) -> Result<Option<LeaseId>, Problem> {
    guid(fields, SOURCE_ID)
}

/// What a lease call asks for. An acquisition that proposes no id gets a new one.
///
/// Refuses `MissingRequiredHeader` and `InvalidHeaderValue`.
pub fn action(fields: &Fields) -> Result<LeaseAction, Problem> {
    let text = fields.header(ACTION)?;
    let required = |name| guid(fields, name)?.ok_or_else(|| Problem::missing_header(name));
    match text.to_ascii_lowercase().as_str() {
        "acquire" => Ok(LeaseAction::Acquire {
            id: guid(fields, PROPOSED_ID)?.unwrap_or_else(|| LeaseId(Uuid::new_v4())),
            duration: duration(fields.header(DURATION)?)?,
        }),
        "renew" => Ok(LeaseAction::Renew { id: required(ID)? }),
        "change" => Ok(LeaseAction::Change { id: required(ID)?, proposed: required(PROPOSED_ID)? }),
        "release" => Ok(LeaseAction::Release { id: required(ID)? }),
        "break" => Ok(LeaseAction::Break { period: fields.header_opt(BREAK_PERIOD)?.map(break_period).transpose()? }),
        _ => Err(Problem::header(ACTION, text)),
    }
}

/// The value of x-ms-lease-state and of `LeaseState`.
pub const fn state_text(state: LeaseState) -> &'static str {
    match state {
        LeaseState::Available => "available",
        LeaseState::Leased => "leased",
        LeaseState::Expired => "expired",
        LeaseState::Breaking => "breaking",
        LeaseState::Broken => "broken",
    }
}

/// The value of x-ms-lease-status and of `LeaseStatus`.
pub const fn status_text(state: LeaseState) -> &'static str {
    if state.is_locked() { "locked" } else { "unlocked" }
}

/// The value of x-ms-lease-duration and of `LeaseDuration`.
pub const fn duration_text(duration: LeaseDuration) -> &'static str {
    match duration {
        LeaseDuration::Infinite => "infinite",
        LeaseDuration::Seconds(_) => "fixed",
    }
}

/// The answer to a lease call that succeeded, but for the object's version.
pub fn answer(action: LeaseAction, leased: &LeaseAnswer) -> Answer {
    let id = leased.id.map(|id| id.0.to_string());
    match action {
        LeaseAction::Acquire { .. } => Answer::created().header_opt(ID, id),
        LeaseAction::Renew { .. } | LeaseAction::Change { .. } => Answer::ok().header_opt(ID, id),
        LeaseAction::Release { .. } => Answer::ok(),
        LeaseAction::Break { .. } => Answer::accepted().header("x-ms-lease-time", leased.break_seconds.to_string()),
    }
}

/// The answer with the lease in its headers.
#[must_use]
pub fn onto(answer: Answer, lease: &LeaseView) -> Answer {
    answer
        .header("x-ms-lease-status", status_text(lease.state))
        .header("x-ms-lease-state", state_text(lease.state))
        .header_opt(DURATION, lease.duration.map(duration_text))
}

fn duration(text: &str) -> Result<LeaseDuration, Problem> {
    match text.parse::<i32>() {
        Ok(-1) => Ok(LeaseDuration::Infinite),
        Ok(seconds @ 15..=60) => Ok(LeaseDuration::Seconds(seconds.try_into().unwrap_or(60))),
        _ => Err(Problem::header(DURATION, text)),
    }
}

fn break_period(text: &str) -> Result<u8, Problem> {
    match text.parse::<u8>() {
        Ok(seconds @ 0..=60) => Ok(seconds),
        _ => Err(Problem::header(BREAK_PERIOD, text)),
    }
}

fn guid(fields: &Fields, name: &'static str) -> Result<Option<LeaseId>, Problem> {
    let Some(text) = fields.header_opt(name)? else { return Ok(None) };
    parse_guid(text).map(|id| Some(LeaseId(id))).ok_or_else(|| Problem::header(name, text))
}

/// Reads a GUID in any of the five forms that .NET writes: N (digits alone), D (hyphens), B (and braces),
/// P (and parentheses), X (sixteen numbers in braces).
fn parse_guid(text: &str) -> Option<Uuid> {
    let enclosed = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let inner = enclosed('{', '}').or_else(|| enclosed('(', ')'));
    match (inner, text.len()) {
        (None, 32 | 36) => Uuid::try_parse(text).ok(),
        (Some(inner), 38) if !inner.starts_with("0x") => Uuid::try_parse(inner).ok(),
        (Some(inner), _) if text.starts_with('{') => parse_numbers(inner),
        _ => None,
    }
}

/// `0x00000000,0x0000,0x0000,{0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00}`
fn parse_numbers(inner: &str) -> Option<Uuid> {
    let (head, tail) = inner.split_once('{')?;
    let tail = tail.strip_suffix('}')?;
    let mut head = head.trim_end().strip_suffix(',')?.split(',').map(hex);
    let (first, second, third) = (head.next()??, head.next()??, head.next()??);
    let bytes = tail.split(',').map(|text| hex(text)?.try_into().ok()).collect::<Option<Vec<u8>>>()?;
    if head.next().is_some() {
        return None;
    }
    Some(Uuid::from_fields(first, second.try_into().ok()?, third.try_into().ok()?, &bytes.try_into().ok()?))
}

fn hex(text: &str) -> Option<u32> {
    let digits = text.trim().strip_prefix("0x").or_else(|| text.trim().strip_prefix("0X"))?;
    let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if valid { u32::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use lazuli_engine::clock::Timestamp;
    use lazuli_engine::etag::Etag;
    use proptest::prelude::*;

    use super::*;
    use crate::code::Code;
    use crate::head::HeaderCase;

    const A: &str = "a0b1c2d3-e4f5-0617-2839-4a5b6c7d8e9f";
    const B: &str = "00000000-0000-0000-0000-00000000000b";

    fn fields(headers: &[(&'static str, &str)]) -> Fields {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        Fields::parse(pairs.collect::<HeaderMap>(), None, HeaderCase::default()).unwrap()
    }

    fn id(text: &str) -> LeaseId {
        LeaseId(Uuid::try_parse(text).unwrap())
    }

    #[test]
    fn a_guid_is_read_in_every_form_of_dotnet() {
        let forms = [
            "a0b1c2d3e4f5061728394a5b6c7d8e9f",
            A,
            "A0B1C2D3-E4F5-0617-2839-4A5B6C7D8E9F",
            "{a0b1c2d3-e4f5-0617-2839-4a5b6c7d8e9f}",
            "(a0b1c2d3-e4f5-0617-2839-4a5b6c7d8e9f)",
            "{0xa0b1c2d3,0xe4f5,0x0617,{0x28,0x39,0x4a,0x5b,0x6c,0x7d,0x8e,0x9f}}",
            "{0xA0B1C2D3, 0xe4f5, 0x617, {0x28, 0x39, 0x4a, 0x5b, 0x6c, 0x7d, 0x8e, 0x9f}}",
        ];
        for form in forms {
            assert_eq!(held(&fields(&[(ID, form)])), Ok(Some(id(A))), "{form}");
        }
    }

    #[test]
    fn anything_else_is_no_guid() {
        let texts = [
            "a",
            "urn:uuid:a0b1c2d3-e4f5-0617-2839-4a5b6c7d8e9f",
            "{a0b1c2d3-e4f5-0617-2839-4a5b6c7d8e9f)",
            "{a0b1c2d3e4f5061728394a5b6c7d8e9f}",
            "a0b1c2d3-e4f5-0617-2839-4a5b6c7d8e9g",
            "{0xa0b1c2d3,0xe4f5,0x0617,{0x28,0x39,0x4a,0x5b,0x6c,0x7d,0x8e}}",
            "{0xa0b1c2d3,0xe4f5,0x0617,{0x28,0x39,0x4a,0x5b,0x6c,0x7d,0x8e,0x100}}",
            "{0xa0b1c2d3,0x1e4f5,0x0617,{0x28,0x39,0x4a,0x5b,0x6c,0x7d,0x8e,0x9f}}",
            "{}",
        ];
        for text in texts {
            assert_eq!(held(&fields(&[(ID, text)])).unwrap_err().code, Code::InvalidHeaderValue, "{text}");
        }
    }

    #[test]
    fn every_action_is_read() {
        let cases: [(&[_], LeaseAction); 8] = [
            (
                &[(ACTION, "acquire"), (PROPOSED_ID, A), (DURATION, "-1")],
                LeaseAction::Acquire { id: id(A), duration: LeaseDuration::Infinite },
            ),
            (
                &[(ACTION, "Acquire"), (PROPOSED_ID, A), (DURATION, "15")],
                LeaseAction::Acquire { id: id(A), duration: LeaseDuration::Seconds(15) },
            ),
            (&[(ACTION, "renew"), (ID, A)], LeaseAction::Renew { id: id(A) }),
            (&[(ACTION, "change"), (ID, A), (PROPOSED_ID, B)], LeaseAction::Change { id: id(A), proposed: id(B) }),
            (&[(ACTION, "release"), (ID, A)], LeaseAction::Release { id: id(A) }),
            (&[(ACTION, "break")], LeaseAction::Break { period: None }),
            (&[(ACTION, "break"), (BREAK_PERIOD, "0"), (ID, B)], LeaseAction::Break { period: Some(0) }),
            (&[(ACTION, "break"), (BREAK_PERIOD, "60")], LeaseAction::Break { period: Some(60) }),
        ];
        for (headers, expected) in cases {
            assert_eq!(action(&fields(headers)), Ok(expected), "{headers:?}");
        }
    }

    #[test]
    fn an_acquisition_without_an_id_gets_a_new_one_each_time() {
        let fields = fields(&[(ACTION, "acquire"), (DURATION, "60")]);
        assert_ne!(action(&fields), action(&fields));
    }

    #[test]
    fn what_is_missing_or_malformed_is_refused() {
        let cases: [(&[_], Code); 13] = [
            (&[], Code::MissingRequiredHeader),
            (&[(ACTION, "steal")], Code::InvalidHeaderValue),
            (&[(ACTION, "acquire")], Code::MissingRequiredHeader),
            (&[(ACTION, "acquire"), (DURATION, "14")], Code::InvalidHeaderValue),
            (&[(ACTION, "acquire"), (DURATION, "61")], Code::InvalidHeaderValue),
            (&[(ACTION, "acquire"), (DURATION, "-2")], Code::InvalidHeaderValue),
            (&[(ACTION, "acquire"), (DURATION, "long")], Code::InvalidHeaderValue),
            (&[(ACTION, "acquire"), (DURATION, "15"), (PROPOSED_ID, "x")], Code::InvalidHeaderValue),
            (&[(ACTION, "renew")], Code::MissingRequiredHeader),
            (&[(ACTION, "change"), (ID, A)], Code::MissingRequiredHeader),
            (&[(ACTION, "release"), (ID, "x")], Code::InvalidHeaderValue),
            (&[(ACTION, "break"), (BREAK_PERIOD, "61")], Code::InvalidHeaderValue),
            (&[(ACTION, "break"), (BREAK_PERIOD, "-1")], Code::InvalidHeaderValue),
        ];
        for (headers, code) in cases {
            assert_eq!(action(&fields(headers)).unwrap_err().code, code, "{headers:?}");
        }
    }

    #[test]
    fn each_action_has_its_answer() {
        let leased = LeaseAnswer { etag: Etag::at(Timestamp::from_ticks(1)), id: Some(id(A)), break_seconds: 7 };
        let cases = [
            (LeaseAction::Acquire { id: id(A), duration: LeaseDuration::Infinite }, 201, Some(A), None),
            (LeaseAction::Renew { id: id(A) }, 200, Some(A), None),
            (LeaseAction::Change { id: id(B), proposed: id(A) }, 200, Some(A), None),
            (LeaseAction::Release { id: id(A) }, 200, None, None),
            (LeaseAction::Break { period: None }, 202, None, Some("7")),
        ];
        for (action, status, id, time) in cases {
            let answer = answer(action, &leased);
            let header = |name| answer.headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap());
            assert_eq!(
                (answer.status.as_u16(), header(ID), header("x-ms-lease-time")),
                (status, id, time),
                "{action:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_guid_reader_panic(text in "[-{}(),x0-9a-fA-F ]{0,80}") {
            let _ = parse_guid(&text);
        }
    }
}
