//! Headers of features that are not built. They are never silently passed over: a client that asks for
//! encryption with its own key, or for a snapshot, must not get something else.

use crate::error::Problem;
use crate::fields::Fields;

const HEADERS: &[&str] = &[
    "x-ms-access-tier-if-modified-since",
    "x-ms-access-tier-if-unmodified-since",
    "x-ms-immutability-policy-mode",
    "x-ms-immutability-policy-until-date",
    "x-ms-legal-hold",
    "x-ms-rehydrate-priority",
];
const ACCESS_TIER: &str = "x-ms-access-tier";
/// The tier of every blob, so that asking for it changes nothing.
const ONLY_TIER: &str = "Hot";

/// Sees to it that the request asks for nothing that is not built.
///
/// Refuses `NotImplemented`, naming the header.
pub fn refuse(fields: &Fields) -> Result<(), Problem> {
    if let Some(name) = HEADERS.iter().find(|name| fields.has_header(name)) {
        return Err(Problem::not_implemented(&format!("The header {name}")));
    }
    match fields.header_opt(ACCESS_TIER)? {
        Some(tier) if !tier.eq_ignore_ascii_case(ONLY_TIER) => {
            Err(Problem::not_implemented(&format!("The header {ACCESS_TIER} with another tier than {ONLY_TIER}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::code::Code;
    use crate::head::HeaderCase;

    fn fields(header: &'static str, value: &'static str, query: &str) -> Fields {
        let headers = HeaderMap::from_iter([(HeaderName::from_static(header), HeaderValue::from_static(value))]);
        Fields::parse(headers, Some(query), HeaderCase::default()).unwrap()
    }

    #[test]
    fn what_is_not_built_is_refused_by_name() {
        for name in HEADERS {
            let problem = refuse(&fields(name, "x", "")).unwrap_err();
            assert_eq!(problem.code, Code::NotImplemented);
            assert!(problem.message.is_some_and(|message| message.contains(name)), "{name}");
        }
        assert_eq!(refuse(&fields(ACCESS_TIER, "Cool", "")).unwrap_err().code, Code::NotImplemented);
    }

    #[test]
    fn what_clients_always_send_is_welcome() {
        assert_eq!(refuse(&fields(ACCESS_TIER, "Hot", "include=&snapshot=&timeout=30")), Ok(()));
        assert_eq!(refuse(&fields("x-ms-client-request-id", "1", "")), Ok(()));
    }
}
