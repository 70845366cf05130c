//! Delimited text.

use crate::blob::query::request::Delimited;

/// Writes a record. Fields are quoted where they need it, and left empty where nothing is known.
pub(super) fn record<'f>(out: &mut Vec<u8>, format: &Delimited, fields: impl Iterator<Item = Option<&'f str>>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.push(format.column);
        }
        write(out, format, field.unwrap_or_default().as_bytes());
    }
    out.extend_from_slice(format.record.as_bytes());
}

fn write(out: &mut Vec<u8>, format: &Delimited, field: &[u8]) {
    let Some(quote) = format.quote else {
        return out.extend_from_slice(field);
    };
    let is_special = |byte: &u8| *byte == format.column || *byte == quote || format.record.as_bytes().contains(byte);
    if !field.iter().any(is_special) {
        return out.extend_from_slice(field);
    }
    out.push(quote);
    for &byte in field {
        if byte == quote || Some(byte) == format.escape {
            out.push(format.escape.unwrap_or(quote));
        }
        out.push(byte);
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_need_it() {
        let plain = Delimited::default();
        let other =
            Delimited { column: b';', quote: Some(b'\''), record: ".".to_owned(), escape: Some(b'\\'), headers: false };
        let bare = Delimited { quote: None, ..Delimited::default() };
        let cases: [(&Delimited, &[Option<&str>], &str); 8] = [
            (&plain, &[Some("a"), Some(""), None, Some("b c")], "a,,,b c\n"),
            (&plain, &[Some("a,b"), Some("say \"hi\"")], "\"a,b\",\"say \"\"hi\"\"\"\n"),
            (&plain, &[Some("two\nlines")], "\"two\nlines\"\n"),
            (&plain, &[Some("back\\slash")], "back\\slash\n"),
            (&other, &[Some("1.0"), Some("x")], "'1.0';x."),
            (&other, &[Some("it's"), Some("a;\\")], "'it\\'s';'a;\\\\'."),
            (&bare, &[Some("a,b"), Some("\"")], "a,b,\"\n"),
            (&plain, &[], "\n"),
        ];
        for (format, fields, expected) in cases {
            let mut out = Vec::new();
            record(&mut out, format, fields.iter().copied());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
