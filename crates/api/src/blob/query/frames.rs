//! The answer of a query: an Avro container of result data, errors, progress and the end.

use lazuli_engine::blob::content::READ_BYTES_MAX;
use uuid::Uuid;

use super::records::Fault;
use lazuli_engine::avro::{Container, encode};

/// The records of an answer, in the order of their indices.
const SCHEMA: &str = concat!(
    r#"[{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.resultData","#,
    r#""fields":[{"name":"data","type":"bytes"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.error","#,
    r#""fields":[{"name":"fatal","type":"boolean"},{"name":"name","type":"string"},"#,
    r#"{"name":"description","type":"string"},{"name":"position","type":"long"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.progress","#,
    r#""fields":[{"name":"bytesScanned","type":"long"},{"name":"totalBytes","type":"long"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.end","#,
    r#""fields":[{"name":"totalBytes","type":"long"}]}]"#,
);
const RESULT_DATA: i64 = 0;
const ERROR: i64 = 1;
const PROGRESS: i64 = 2;
const END: i64 = 3;

/// Bytes of results, or of errors, that are worth being sent.
const FLUSH_BYTES: usize = READ_BYTES_MAX as usize;

/// An answer being written.
#[derive(Debug)]
pub(super) struct Frames {
    container: Container,
    /// What is framed and not taken yet.
    out: Vec<u8>,
    /// Results that are not framed yet.
    pub(super) data: Vec<u8>,
    /// Errors that are not framed yet.
    faults: Vec<u8>,
    fault_count: usize,
    total: u64,
    /// The last progress that was told.
    told: Option<u64>,
    /// Whether there was a record yet.
    begun: bool,
}

impl Frames {
    /// The answer about a blob of `total` bytes.
    pub(super) fn new(total: u64) -> Self {
        let container = Container::new(Uuid::new_v4().into_bytes());
        let mut out = Vec::new();
        container.header(&mut out, SCHEMA);
        Self { container, out, data: Vec::new(), faults: Vec::new(), fault_count: 0, total, told: None, begun: false }
    }

    /// Whether so much is written that it should be sent before there is more.
    pub(super) fn is_full(&self) -> bool {
        self.out.len().max(self.data.len()).max(self.faults.len()) >= FLUSH_BYTES
    }

    /// All that is written.
    pub(super) fn take(&mut self) -> Vec<u8> {
        if self.is_full() {
            self.flush();
        }
        std::mem::take(&mut self.out)
    }

    /// Writes an error.
    pub(super) fn fault(&mut self, fault: &Fault) {
        encode::long(&mut self.faults, ERROR);
        encode::boolean(&mut self.faults, fault.fatal);
        encode::string(&mut self.faults, fault.name);
        encode::string(&mut self.faults, &fault.description);
        encode::long(&mut self.faults, long(fault.position));
        self.fault_count += 1;
    }

    /// Writes how much of the blob is read, unless that was said.
    pub(super) fn progress(&mut self, scanned: u64) {
        self.flush();
        if self.told == Some(scanned) {
            return;
        }
        self.told = Some(scanned);
        let mut record = Vec::new();
        encode::long(&mut record, PROGRESS);
        encode::long(&mut record, long(scanned));
        encode::long(&mut record, long(self.total));
        self.container.block(&mut self.out, 1, &record);
        self.begun = true;
    }

    /// Writes the end.
    pub(super) fn end(&mut self) {
        self.flush();
        let mut record = Vec::new();
        encode::long(&mut record, END);
        encode::long(&mut record, long(self.total));
        self.container.block(&mut self.out, 1, &record);
    }

    /// Frames what is written: results, then errors.
    fn flush(&mut self) {
        if !self.data.is_empty() {
            let mut record = Vec::with_capacity(self.data.len() + 16);
            encode::long(&mut record, RESULT_DATA);
            encode::bytes(&mut record, &self.data);
            self.container.block(&mut self.out, 1, &record);
            self.data.clear();
            self.begun = true;
        }
        if self.fault_count > 0 {
            let (count, faults) = (std::mem::take(&mut self.fault_count), std::mem::take(&mut self.faults));
            // Clients are not ready for an error before they have seen a record of another kind.
            if !self.begun {
                self.progress(0);
            }
            self.container.block(&mut self.out, count, &faults);
        }
    }
}

fn long(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
