//! Reading of the answer's Avro container, by the specification and nothing of the server.

/// A record of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Data(Vec<u8>),
    Error { fatal: bool, name: String, description: String, position: u64 },
    Progress { scanned: u64, total: u64 },
    End { total: u64 },
}

/// All records of a container, whose schema must be the service's.
pub(crate) fn records(container: &[u8]) -> Vec<Record> {
    let mut input = Input(container);
    assert_eq!(input.take(4), b"Obj\x01");
    let mut schema = String::new();
    loop {
        let pairs = input.length();
        if pairs == 0 {
            break;
        }
        for _ in 0..pairs {
            match (input.string().as_str(), input.string()) {
                ("avro.schema", text) => schema = text,
                ("avro.codec", codec) => assert_eq!(codec, "null"),
                (other, _) => panic!("{other} is not known"),
            }
        }
    }
    check(&schema);
    let marker = input.take(16);
    let mut records = Vec::new();
    while !input.0.is_empty() {
        let (count, bytes) = (input.length(), input.length());
        let mut block = Input(input.take(bytes));
        records.extend((0..count).map(|_| block.record()));
        assert!(block.0.is_empty(), "a block is longer than its records");
        assert_eq!(input.take(16), marker);
    }
    records
}

fn check(schema: &str) {
    let schema: serde_json::Value = serde_json::from_str(schema).expect("a schema is JSON");
    let names: Vec<_> = schema.as_array().expect("a union").iter().map(|record| record["name"].as_str()).collect();
    let expected = ["resultData", "error", "progress", "end"];
    let expected = expected.map(|name| format!("com.microsoft.azure.storage.queryBlobContents.{name}"));
    assert_eq!(names, expected.iter().map(|name| Some(name.as_str())).collect::<Vec<_>>());
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn long(&mut self) -> i64 {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.take(1)[0];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
            }
        }
    }

    fn length(&mut self) -> usize {
        usize::try_from(self.long()).expect("a length is not negative")
    }

    fn count(&mut self) -> u64 {
        u64::try_from(self.long()).expect("a count is not negative")
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.length();
        self.take(length).to_vec()
    }

    fn string(&mut self) -> String {
        String::from_utf8(self.bytes()).expect("a text is UTF-8")
    }

    fn record(&mut self) -> Record {
        match self.long() {
            0 => Record::Data(self.bytes()),
            1 => Record::Error {
                fatal: self.take(1) == [1],
                name: self.string(),
                description: self.string(),
                position: self.count(),
            },
            2 => Record::Progress { scanned: self.count(), total: self.count() },
            3 => Record::End { total: self.count() },
            other => panic!("there is no record {other}"),
        }
    }
}
