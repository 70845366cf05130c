//! Avro's binary encoding of values. A record is its fields one behind the other; a union is the index of its branch,
//! a [`long`], and the value.

/// A long or int: zig-zag, seven bits a byte.
pub fn long(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

/// A length or count, as a [`long`].
pub fn length(out: &mut Vec<u8>, value: usize) {
    long(out, i64::try_from(value).unwrap_or(i64::MAX));
}

/// A boolean.
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.push(value.into());
}

/// Bytes with their length before them.
pub fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    length(out, value.len());
    out.extend_from_slice(value);
}

/// A text.
pub fn string(out: &mut Vec<u8>, value: &str) {
    bytes(out, value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zig_zag() {
        let cases: [(i64, &[u8]); 9] = [
            (0, b"\x00"),
            (-1, b"\x01"),
            (1, b"\x02"),
            (-64, b"\x7f"),
            (64, b"\x80\x01"),
            (8192, b"\x80\x80\x01"),
            (-8193, b"\x81\x80\x01"),
            (i64::MAX, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            (i64::MIN, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ];
        for (value, expected) in cases {
            let mut out = Vec::new();
            long(&mut out, value);
            assert_eq!(out, expected, "{value}");
        }
    }

    #[test]
    fn texts_have_their_length_before_them() {
        let mut out = Vec::new();
        string(&mut out, "é");
        boolean(&mut out, true);
        bytes(&mut out, b"");
        assert_eq!(out, b"\x04\xc3\xa9\x01\x00");
    }
}
