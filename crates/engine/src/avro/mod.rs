//! Avro object containers, written as a stream. <https://avro.apache.org/docs/1.12.0/specification/>
//!
//! A container is a header, which says the schema, and blocks of records. [`Container`] frames what is encoded by the
//! functions of [`encode`]; the schema is the caller's, and so is the duty to encode what it says.

pub mod encode;

const MAGIC: &[u8] = b"Obj\x01";

/// A container being written.
#[derive(Clone, Copy, Debug)]
pub struct Container {
    /// Ends the header and every block; readers resynchronise by it.
    marker: [u8; 16],
}

impl Container {
    /// A container whose blocks end with `marker`, 16 bytes that are not likely in its data.
    pub const fn new(marker: [u8; 16]) -> Self {
        Self { marker }
    }

    /// Writes the header: what comes first, for records of `schema` in JSON, not compressed.
    pub fn header(&self, out: &mut Vec<u8>, schema: &str) {
        out.extend_from_slice(MAGIC);
        encode::long(out, 2);
        encode::string(out, "avro.schema");
        encode::bytes(out, schema.as_bytes());
        encode::string(out, "avro.codec");
        encode::bytes(out, b"null");
        encode::long(out, 0);
        out.extend_from_slice(&self.marker);
    }

    /// Writes a block of `count` records, which `records` holds encoded one behind the other.
    pub fn block(&self, out: &mut Vec<u8>, count: usize, records: &[u8]) {
        encode::length(out, count);
        encode::bytes(out, records);
        out.extend_from_slice(&self.marker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_these_bytes() {
        let container = Container::new([7; 16]);
        let mut out = Vec::new();
        container.header(&mut out, "\"long\"");
        let mut records = Vec::new();
        for number in [1, -1, 64] {
            encode::long(&mut records, number);
        }
        container.block(&mut out, 3, &records);
        let mut expected = b"Obj\x01\x04\x16avro.schema\x0c\"long\"\x14avro.codec\x08null\x00".to_vec();
        expected.extend([7; 16]);
        expected.extend(b"\x06\x08\x02\x01\x80\x01");
        expected.extend([7; 16]);
        assert_eq!(out, expected);
    }
}
