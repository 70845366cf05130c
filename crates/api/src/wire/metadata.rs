//! The x-ms-meta-* headers.
//! <https://learn.microsoft.com/rest/api/storageservices/setting-and-retrieving-properties-and-metadata-for-blob-resources>

use http::{HeaderMap, HeaderName, HeaderValue};
use lazuli_engine::properties::Metadata;

use crate::answer::Answer;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::{Fields, METADATA_PREFIX};

/// Most bytes of all names and values together.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;

/// The metadata of a request. Names differ in more than letter case; a repeated one keeps its first spelling and joins
/// its values with a comma.
///
/// Refuses `EmptyMetadataKey`, `InvalidMetadata` and `MetadataTooLarge`.
pub fn read(fields: &Fields) -> Result<Metadata, Problem> {
    collect(fields.metadata().map(|(name, value)| (name, value.as_bytes())))
}

/// Of another server's answer that describes a blob, names in lower case. What would not be taken from a client is left
/// out.
pub fn of_answer(headers: &HeaderMap) -> Metadata {
    let named = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(METADATA_PREFIX)?;
        check(name, value.as_bytes().trim_ascii()).ok().map(|()| (name, value.as_bytes()))
    });
    collect(named).unwrap_or_default()
}

/// The answer with the metadata in its headers, in the letter case that they were stored in.
#[must_use]
pub fn onto(mut answer: Answer, metadata: &Metadata) -> Answer {
    for (name, value) in &metadata.0 {
        let written = format!("{METADATA_PREFIX}{name}");
        match (HeaderName::try_from(&written), HeaderValue::try_from(value)) {
            (Ok(header), Ok(value)) => {
                answer.headers.append(header, value);
                answer.case.0.push(written);
            }
            // Stored by the rules above, so both are.
            _ => tracing::error!(name, "metadata that is no header was left out"),
        }
    }
    answer
}

fn collect<'a>(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Metadata, Problem> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut bytes: usize = 0;
    for (name, value) in headers {
        let value = value.trim_ascii();
        check(name, value)?;
        bytes += value.len() + name.len();
        if bytes > METADATA_BYTES_MAX {
            return Err(Problem::new(Code::MetadataTooLarge));
        }
        // `check` left nothing but ASCII.
        let value = String::from_utf8_lossy(value);
        match pairs.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, joined)) => {
                joined.push(',');
                joined.push_str(&value);
            }
            None => pairs.push((name.to_owned(), value.into_owned())),
        }
    }
    Ok(Metadata(pairs))
}

fn check(name: &str, value: &[u8]) -> Result<(), Problem> {
    if name.is_empty() {
        return Err(Problem::new(Code::EmptyMetadataKey));
    }
    if !is_identifier(name) || !value.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(Problem::new(Code::InvalidMetadata).detail("HeaderName", format!("{METADATA_PREFIX}{name}")));
    }
    Ok(())
}

/// Whether the name is a C# identifier, as far as a header's name can be one.
fn is_identifier(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collected(headers: &[(&str, &str)]) -> Result<Vec<(String, String)>, Code> {
        let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        collect(headers).map(|metadata| metadata.0).map_err(|problem| problem.code)
    }

    #[test]
    fn names_keep_their_case_and_order_and_repeated_ones_are_joined() {
        let headers = [("Zebra", " stripes "), ("_apple2", ""), ("ZEBRA", "hooves")];
        let expected = vec![("Zebra".to_owned(), "stripes,hooves".to_owned()), ("_apple2".to_owned(), String::new())];
        assert_eq!(collected(&headers), Ok(expected));
    }

    #[test]
    fn bad_names_and_values_are_refused() {
        let cases = [
            ("", "v", Code::EmptyMetadataKey),
            ("1st", "v", Code::InvalidMetadata),
            ("a-b", "v", Code::InvalidMetadata),
            ("a.b", "v", Code::InvalidMetadata),
            ("a", "grün", Code::InvalidMetadata),
            ("a", "\u{1}", Code::InvalidMetadata),
        ];
        for (name, value, code) in cases {
            assert_eq!(collected(&[(name, value)]), Err(code), "{name}: {value}");
        }
    }

    #[test]
    fn names_and_values_together_have_a_limit() {
        let full = "v".repeat(METADATA_BYTES_MAX - 1);
        assert!(collected(&[("a", &full)]).is_ok());
        assert_eq!(collected(&[("ab", &full)]), Err(Code::MetadataTooLarge));
        assert_eq!(collected(&[("a", &full), ("b", "")]), Err(Code::MetadataTooLarge));
    }

    #[test]
    fn an_answer_remembers_the_letter_case() {
        let metadata = Metadata(vec![("Owner".into(), "Ann".into()), ("b".into(), String::new())]);
        let answer = onto(Answer::ok(), &metadata);
        assert_eq!(answer.headers["x-ms-meta-owner"], "Ann");
        assert_eq!(answer.headers["x-ms-meta-b"], "");
        assert_eq!(answer.case.0, ["x-ms-meta-Owner", "x-ms-meta-b"]);
    }

    proptest! {
        #[test]
        fn no_header_makes_the_reader_panic(name in "\\PC{0,20}", value in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = collect([(name.as_str(), value.as_slice())]);
        }
    }
}
