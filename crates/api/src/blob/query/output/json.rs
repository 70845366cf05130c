//! JSON documents.

use serde_json::Value as Json;

use crate::blob::query::records::Names;
use crate::blob::query::sql::value::Value;

/// Writes an object. What is missing is left out.
pub(super) fn object(out: &mut Vec<u8>, names: &Names<'_>, values: &[Value<'_>]) {
    out.push(b'{');
    let mut first = true;
    for (index, value) in values.iter().enumerate() {
        if let Value::Missing = value {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        text(out, &names.get(index));
        out.push(b':');
        write(out, value);
    }
    out.push(b'}');
}

fn write(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Missing | Value::Null => out.extend_from_slice(b"null"),
        Value::Boolean(boolean) => out.extend_from_slice(if *boolean { b"true" } else { b"false" }),
        Value::Integer(integer) => out.extend_from_slice(integer.to_string().as_bytes()),
        Value::Float(float) => out.extend_from_slice(Json::from(*float).to_string().as_bytes()),
        Value::Text(value) => text(out, value),
        Value::Moment(moment) => text(out, &moment.to_string()),
        Value::Json(json) => out.extend_from_slice(json.to_string().as_bytes()),
    }
}

fn text(out: &mut Vec<u8>, value: &str) {
    out.extend_from_slice(Json::from(value).to_string().as_bytes());
}

/// Writes a document without the white space between its parts, and with its numbers as they are.
pub(super) fn without_space(out: &mut Vec<u8>, document: &[u8]) {
    let (mut in_text, mut escaped) = (false, false);
    for &byte in document {
        if in_text {
            in_text = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            in_text = byte == b'"';
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_and_all_else_stays() {
        let cases = [
            ("{ \"a b\" : [ 1.50, -0 ,\n12345678901234567890123 ] }", "{\"a b\":[1.50,-0,12345678901234567890123]}"),
            (r#"{"a\" b" : "c\\" }"#, r#"{"a\" b":"c\\"}"#),
        ];
        for (document, expected) in cases {
            let mut out = Vec::new();
            without_space(&mut out, document.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_missing_is_left_out() {
        let names = ["a".to_owned(), "b".to_owned(), "c\"".to_owned()];
        let values = [Value::Missing, Value::Null, Value::Float(1.0)];
        let mut out = Vec::new();
        object(&mut out, &Names::Given(&names), &values);
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"b":null,"c\"":1.0}"#);
    }
}
