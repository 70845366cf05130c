//! The method of a request whose client, or whose way here, knows no MERGE: it stands in a header of a POST.
//! <https://learn.microsoft.com/rest/api/storageservices/table-service-error-codes>

use http::{HeaderMap, Method};

use crate::code::Code;
use crate::error::Problem;

const HEADER: &str = "x-http-method";
/// Methods that the header may name.
const TUNNELLED: [&str; 4] = ["MERGE", "PATCH", "PUT", "DELETE"];

/// The method that decides which operation a request asks for. Its signature covers the one that it was sent with.
///
/// Refuses `XMethodIncorrectCount`, `XMethodNotUsingPost` and `XMethodIncorrectValue`.
pub fn meant(method: &Method, headers: &HeaderMap) -> Result<Method, Problem> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(method.clone()) };
    if values.next().is_some() {
        return Err(Problem::new(Code::XMethodIncorrectCount));
    }
    if *method != Method::POST {
        return Err(Problem::new(Code::XMethodNotUsingPost));
    }
    let named = TUNNELLED.iter().find(|name| value.as_bytes().eq_ignore_ascii_case(name.as_bytes()));
    let named = named.and_then(|name| Method::from_bytes(name.as_bytes()).ok());
    named.ok_or_else(|| Problem::new(Code::XMethodIncorrectValue))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_post_may_stand_for_another_method() {
        let cases: [(Method, &[&str], Result<&str, Code>); 7] = [
            (Method::POST, &[], Ok("POST")),
            (Method::GET, &[], Ok("GET")),
            (Method::POST, &["MERGE"], Ok("MERGE")),
            (Method::POST, &["delete"], Ok("DELETE")),
            (Method::POST, &["GET"], Err(Code::XMethodIncorrectValue)),
            (Method::PUT, &["MERGE"], Err(Code::XMethodNotUsingPost)),
            (Method::POST, &["MERGE", "MERGE"], Err(Code::XMethodIncorrectCount)),
        ];
        for (method, values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HeaderName::from_static(HEADER), HeaderValue::from_static(value));
            }
            let found = meant(&method, &headers).map_err(|problem| problem.code);
            assert_eq!(found.as_ref().map(Method::as_str), expected.as_ref().map(|name| *name), "{method} {values:?}");
        }
    }
}
