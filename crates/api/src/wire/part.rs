//! Which state of a blob a request means: itself, a snapshot, or a version.

use lazuli_engine::blob::Part;
use lazuli_engine::clock::Timestamp;

use crate::answer::Answer;
use crate::error::Problem;
use crate::fields::Fields;
use crate::wire::date;

const SNAPSHOT: &str = "snapshot";
const VERSION: &str = "versionid";

/// What the query's `snapshot` or `versionid` names.
///
/// Refuses `InvalidQueryParameterValue`, also if both are given.
pub fn read(fields: &Fields) -> Result<Part, Problem> {
    match (instant(fields, SNAPSHOT)?, instant(fields, VERSION)?) {
        (None, None) => Ok(Part::Base),
        (Some((at, _)), None) => Ok(Part::Snapshot(at)),
        (None, Some((id, _))) => Ok(Part::Version(id)),
        (Some(_), Some((_, text))) => {
            Err(Problem::query(VERSION, text, "A request names a snapshot or a version, not both."))
        }
    }
}

/// Of a request that changes the blob itself.
///
/// Refuses `InvalidQueryParameterValue` if a snapshot or version is named.
pub fn base(fields: &Fields) -> Result<Part, Problem> {
    for name in [SNAPSHOT, VERSION] {
        if let Some(text) = fields.query_opt(name) {
            return Err(Problem::query(name, text, "Snapshots and versions are read-only."));
        }
    }
    Ok(Part::Base)
}

fn instant<'a>(fields: &'a Fields, name: &'static str) -> Result<Option<(Timestamp, &'a str)>, Problem> {
    let Some(text) = fields.query_opt(name) else { return Ok(None) };
    let instant = date::parse_iso8601(text).ok_or_else(|| Problem::query(name, text, "It is not an instant."))?;
    Ok(Some((instant, text)))
}

/// The answer with the id of the version that the blob is or became, if it is one.
#[must_use]
pub fn version_onto(answer: Answer, version: Option<Timestamp>) -> Answer {
    answer.header_opt("x-ms-version-id", version.map(date::iso8601))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::code::Code;
    use crate::head::HeaderCase;

    #[test]
    fn a_query_names_one_state_at_most() {
        let tick = Timestamp::from_ticks(639_211_392_001_234_567);
        let cases = [
            ("", Ok(Part::Base)),
            ("snapshot=", Ok(Part::Base)),
            ("snapshot=2026-08-01T00:00:00.1234567Z", Ok(Part::Snapshot(tick))),
            ("versionId=2026-08-01T00%3A00%3A00.1234567Z", Ok(Part::Version(tick))),
            ("snapshot=yesterday", Err(Code::InvalidQueryParameterValue)),
            ("versionid=1", Err(Code::InvalidQueryParameterValue)),
            (
                "snapshot=2026-08-01T00:00:00.1234567Z&versionid=2026-08-01T00:00:00.1234567Z",
                Err(Code::InvalidQueryParameterValue),
            ),
        ];
        for (query, expected) in cases {
            let fields = Fields::parse(HeaderMap::new(), Some(query), HeaderCase::default()).unwrap();
            assert_eq!(read(&fields).map_err(|problem| problem.code), expected, "{query}");
            let changes = base(&fields).map_err(|problem| problem.code);
            assert_eq!(changes.is_ok(), expected == Ok(Part::Base), "{query}");
        }
    }
}
