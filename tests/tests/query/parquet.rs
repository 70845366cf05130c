//! Queries of Parquet.

use std::sync::Arc;

use lazuli_tests::harness::Lazuli;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::query::avro::{Record, records};
use crate::{JSON, query, results, text};

const PARQUET: &str = "<Type>parquet</Type><ParquetTextConfiguration> </ParquetTextConfiguration>";
const SCHEMA: &str = "message things { required int64 id; optional binary name (UTF8); required double price;
                      required boolean sold; required int64 made (TIMESTAMP_MILLIS); required int32 day (DATE);
                      required int32 cost (DECIMAL(6, 2)); }";

/// A file of `count` rows in groups of 1000; every third row has no name.
fn file(count: i64, compression: Compression) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(SCHEMA).expect("the schema is one"));
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).expect("a writer");
    let ids: Vec<i64> = (0..count).collect();
    for ids in ids.chunks(1000) {
        let mut group = writer.next_row_group().expect("a group");
        for index in 0.. {
            let Some(mut column) = group.next_column().expect("a column") else { break };
            match column.untyped() {
                ColumnWriter::Int64ColumnWriter(writer) if index == 0 => writer.write_batch(ids, None, None),
                ColumnWriter::Int64ColumnWriter(writer) => {
                    let millis: Vec<i64> = ids.iter().map(|id| id * 1000).collect();
                    writer.write_batch(&millis, None, None)
                }
                ColumnWriter::ByteArrayColumnWriter(writer) => {
                    let named = ids.iter().filter(|id| **id % 3 != 0);
                    let names: Vec<_> = named.map(|id| ByteArray::from(format!("name {id}").as_str())).collect();
                    let levels: Vec<i16> = ids.iter().map(|id| i16::from(*id % 3 != 0)).collect();
                    writer.write_batch(&names, Some(&levels), None)
                }
                ColumnWriter::DoubleColumnWriter(writer) => {
                    writer.write_batch(&ids.iter().map(|_| 1.5).collect::<Vec<_>>(), None, None)
                }
                ColumnWriter::BoolColumnWriter(writer) => {
                    writer.write_batch(&ids.iter().map(|id| id % 2 == 0).collect::<Vec<_>>(), None, None)
                }
                ColumnWriter::Int32ColumnWriter(writer) => {
                    writer.write_batch(&ids.iter().map(|_| 1234).collect::<Vec<_>>(), None, None)
                }
                _ => panic!("the schema has no such column"),
            }
            .expect("values are written");
            column.close().expect("a column is closed");
        }
        group.close().expect("a group is closed");
    }
    writer.into_inner().expect("a file")
}

#[tokio::test(flavor = "multi_thread")]
async fn parquet_is_selected_from() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("things.parquet");
    let zstd = Compression::ZSTD(ZstdLevel::default());
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::GZIP(Default::default()), zstd] {
        blob.put(file(2500, compression)).await.expect(201);
        let cases = [
            (
                "select * from blobstorage where id < 2;",
                "",
                "0,,1.5,true,1970-01-01T00:00:00Z,1973-05-19,12.34\n1,name 1,1.5,false,1970-01-01T00:00:01Z,1973-05-19,12.34\n",
            ),
            (
                "SELECT id, NAME FROM BlobStorage WHERE id > 2497",
                JSON,
                "{\"id\":2498,\"NAME\":\"name 2498\"}\n{\"id\":2499,\"NAME\":null}\n",
            ),
            ("SELECT _2 FROM BlobStorage WHERE _1 = 1", "", "name 1\n"),
            ("SELECT COUNT(*) FROM BlobStorage", "", "2500\n"),
            (
                "SELECT COUNT(name), SUM(price), MAX(made) FROM BlobStorage WHERE sold",
                "",
                "833,1875,1970-01-01T00:41:38Z\n",
            ),
            ("SELECT id FROM BlobStorage LIMIT 2", "", "0\n1\n"),
        ];
        for (expression, output, expected) in cases {
            assert_eq!(results(&blob, expression, PARQUET, output).await, expected, "{expression} {compression:?}");
        }
    }
    let answer = query(&blob, "SELECT sys.split(10485760) FROM BlobStorage", PARQUET, "").await;
    answer.refused(400, "ErrorProcessingQueryExpression");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_many_blocks_is_read_in_places() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("things.parquet");
    let content = file(3000, Compression::UNCOMPRESSED);
    let ids: Vec<String> = (0..content.len().div_ceil(5000)).map(|block| format!("{block:04}")).collect();
    for (id, block) in ids.iter().zip(content.chunks(5000)) {
        blob.put_block(id, block.to_vec()).await.expect(201);
    }
    blob.put_block_list(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await.expect(201);
    let expected = "3000,4498500,name 998\n";
    let aggregates = "SELECT COUNT(*), SUM(id), MAX(name) FROM BlobStorage";
    let found = results(&blob, aggregates, PARQUET, "").await;
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_ends_the_query_with_an_error() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("things.parquet");
    let good = file(50, Compression::SNAPPY);
    let cut = good[..good.len() - 20].to_vec();
    let mut huge = good.clone();
    let footer = huge.len() - 8;
    huge[footer..footer + 4].copy_from_slice(&[0xff; 4]);
    let mut page = good.clone();
    page[4..64].fill(0xff);
    for (what, content) in
        [("empty", Vec::new()), ("text", b"a,b\n1,2\n".to_vec()), ("cut", cut), ("huge", huge), ("page", page)]
    {
        blob.put(content).await.expect(201);
        let answer = query(&blob, "SELECT * FROM BlobStorage", PARQUET, "").await.expect(200);
        let records = records(&answer.body);
        let errors: Vec<_> =
            records.iter().filter(|record| matches!(record, Record::Error { fatal: true, .. })).collect();
        assert_eq!(errors.len(), 1, "{what}: {records:?}");
        assert_eq!(text(&records), "", "{what}");
        assert!(matches!(records.last(), Some(Record::End { .. })), "{what}");
    }
    blob.put(good).await.expect(201);
    for (expression, name) in [
        ("SELECT nothing FROM BlobStorage", "InvalidColumnName"),
        ("SELECT _8 FROM BlobStorage", "InvalidColumnOrdinal"),
    ] {
        let answer = query(&blob, expression, PARQUET, "").await.expect(200);
        let is_named =
            |record: &Record| matches!(record, Record::Error { fatal: true, name: found, .. } if found == name);
        assert!(records(&answer.body).iter().any(is_named), "{expression}");
    }
}
