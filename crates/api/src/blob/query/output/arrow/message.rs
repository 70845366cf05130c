//! Messages of the Arrow stream format: their metadata is FlatBuffers, of which each table is written field by field.
//! <https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format>

use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, VOffsetT, WIPOffset};

use super::column::{Column, Kind};

/// Version 5 of the metadata.
const VERSION: i16 = 4;
const SCHEMA: u8 = 1;
const RECORD_BATCH: u8 = 3;
/// Everything lies at multiples of this.
const ALIGNMENT: usize = 8;
/// Begins each message.
const CONTINUATION: [u8; 4] = [0xff; 4];

type Table = WIPOffset<TableFinishedWIPOffset>;

/// The place of a table's field, counted from 0, in its virtual table.
const fn slot(field: VOffsetT) -> VOffsetT {
    4 + 2 * field
}

/// Writes the message that says what the columns are.
pub(super) fn schema(out: &mut Vec<u8>, columns: &[Column]) {
    let mut builder = FlatBufferBuilder::new();
    let fields: Vec<Table> = columns.iter().map(|column| field(&mut builder, column)).collect();
    let fields = builder.create_vector(&fields);
    let table = builder.start_table();
    builder.push_slot_always(slot(1), fields);
    let schema = builder.end_table(table);
    message(out, builder, SCHEMA, schema, &[]);
}

fn field(builder: &mut FlatBufferBuilder<'_>, column: &Column) -> Table {
    let name = builder.create_string(&column.name);
    let children = builder.create_vector::<Table>(&[]);
    let (type_id, type_table) = type_of(builder, column.kind);
    let table = builder.start_table();
    builder.push_slot_always(slot(0), name);
    builder.push_slot_always(slot(3), type_table);
    builder.push_slot_always(slot(5), children);
    builder.push_slot_always(slot(1), true);
    builder.push_slot_always(slot(2), type_id);
    builder.end_table(table)
}

/// The type's place in the union of types, and its table.
fn type_of(builder: &mut FlatBufferBuilder<'_>, kind: Kind) -> (u8, Table) {
    const DOUBLE: i16 = 2;
    const MILLISECONDS: i16 = 1;
    let table = builder.start_table();
    let id = match kind {
        Kind::Int64 => {
            builder.push_slot_always(slot(0), 64_i32);
            builder.push_slot_always(slot(1), true);
            2
        }
        Kind::Double => {
            builder.push_slot_always(slot(0), DOUBLE);
            3
        }
        Kind::String => 5,
        Kind::Bool => 6,
        Kind::Decimal { precision, scale } => {
            builder.push_slot_always(slot(0), i32::from(precision));
            builder.push_slot_always(slot(1), i32::from(scale));
            builder.push_slot_always(slot(2), 128_i32);
            7
        }
        Kind::Timestamp => {
            builder.push_slot_always(slot(0), MILLISECONDS);
            10
        }
    };
    (id, builder.end_table(table))
}

/// Writes the message with the values of the columns, all of `rows` rows.
pub(super) fn batch(out: &mut Vec<u8>, columns: &[Column], rows: usize) {
    let (mut nodes, mut buffers, mut body) = (Vec::new(), Vec::new(), Vec::new());
    for column in columns {
        nodes.push([long(rows), long(column.nulls())]);
        for bytes in column.buffers() {
            buffers.push([long(body.len()), long(bytes.len())]);
            body.extend_from_slice(&bytes);
            body.resize(body.len().next_multiple_of(ALIGNMENT), 0);
        }
    }
    let mut builder = FlatBufferBuilder::new();
    let nodes = pairs(&mut builder, &nodes);
    let buffers = pairs(&mut builder, &buffers);
    let table = builder.start_table();
    builder.push_slot_always(slot(0), long(rows));
    builder.push_slot_always(slot(1), nodes);
    builder.push_slot_always(slot(2), buffers);
    let batch = builder.end_table(table);
    message(out, builder, RECORD_BATCH, batch, &body);
}

/// Writes the end of the stream.
pub(super) fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(&CONTINUATION);
    out.extend_from_slice(&[0; 4]);
}

/// A vector of structs of two longs.
fn pairs<'b>(builder: &mut FlatBufferBuilder<'b>, pairs: &[[i64; 2]]) -> WIPOffset<flatbuffers::Vector<'b, i64>> {
    builder.start_vector::<i64>(pairs.len() * 2);
    // A buffer is built from its end.
    for [first, second] in pairs.iter().rev() {
        builder.push(*second);
        builder.push(*first);
    }
    builder.end_vector::<i64>(pairs.len())
}

fn message(out: &mut Vec<u8>, mut builder: FlatBufferBuilder<'_>, kind: u8, header: Table, body: &[u8]) {
    let table = builder.start_table();
    builder.push_slot_always(slot(3), long(body.len()));
    builder.push_slot_always(slot(2), header);
    builder.push_slot_always(slot(0), VERSION);
    builder.push_slot_always(slot(1), kind);
    let message = builder.end_table(table);
    builder.finish_minimal(message);
    let metadata = builder.finished_data();
    let length = metadata.len().next_multiple_of(ALIGNMENT);
    out.extend_from_slice(&CONTINUATION);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(metadata);
    out.resize(out.len() + length - metadata.len(), 0);
    out.extend_from_slice(body);
}

fn long(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
