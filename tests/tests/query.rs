//! Query Blob Contents, over a real socket.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails loudly"
)]

mod query {
    pub(crate) mod avro;
    mod formats;
    mod parquet;
    mod refusals;
}

use lazuli_tests::harness::{Blob, Lazuli};
use lazuli_tests::signed::Request;
use query::avro::{Record, records};

const JSON: &str = "<Type>json</Type>";
const CSV_WITH_HEADERS: &str =
    "<Type>delimited</Type><DelimitedTextConfiguration><HasHeaders>true</HasHeaders></DelimitedTextConfiguration>";
const MIB: u64 = 1024 * 1024;

/// The body of a query; formats that are empty are left out.
fn body(expression: &str, input: &str, output: &str) -> String {
    let wrapped = |name: &str, format: &str| match format {
        "" => String::new(),
        format => format!("<{name}><Format>{format}</Format></{name}>"),
    };
    let expression = expression.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueryRequest><QueryType>SQL</QueryType><Expression>{expression}\
         </Expression>{}{}</QueryRequest>",
        wrapped("InputSerialization", input),
        wrapped("OutputSerialization", output)
    )
}

fn query(blob: &Blob, expression: &str, input: &str, output: &str) -> Request {
    blob.request("POST", "?comp=query").body(body(expression, input, output))
}

/// The results of a query without errors.
async fn results(blob: &Blob, expression: &str, input: &str, output: &str) -> String {
    let answer = query(blob, expression, input, output).await.expect(200);
    let records = records(&answer.body);
    assert!(!records.iter().any(|record| matches!(record, Record::Error { .. })), "{expression}: {records:?}");
    text(&records)
}

fn text(records: &[Record]) -> String {
    let data = records.iter().filter_map(|record| match record {
        Record::Data(data) => Some(data.as_slice()),
        _ => None,
    });
    String::from_utf8(data.collect::<Vec<_>>().concat()).expect("results are text")
}

#[tokio::test]
async fn an_answer_is_an_avro_container_with_the_headers_of_the_blob() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("numbers.csv");
    let put = blob.put("100,200,300,400\n300,400,500,600\n").header("x-ms-blob-content-encoding", "identity");
    let etag = put.header("x-ms-meta-owner", "ann").await.expect(201).etag();
    let answer = query(&blob, "SELECT _2 from BlobStorage WHERE _1 > 250;", "", "").await.expect(200);
    let expected = [
        ("content-type", "avro/binary"),
        ("etag", etag.as_str()),
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-lease-state", "available"),
        ("x-ms-meta-owner", "ann"),
        ("accept-ranges", "bytes"),
        ("content-encoding", ""),
        ("content-md5", ""),
        ("content-length", ""),
    ];
    for (name, value) in expected {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let expected =
        [Record::Data(b"400\n".to_vec()), Record::Progress { scanned: 32, total: 32 }, Record::End { total: 32 }];
    assert_eq!(records(&answer.body), expected);
}

#[tokio::test]
async fn an_empty_blob_has_no_results_and_an_end() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("empty");
    blob.put("").await.expect(201);
    for input in ["", JSON, CSV_WITH_HEADERS] {
        let answer = query(&blob, "SELECT * FROM BlobStorage", input, "").await.expect(200);
        let expected = [Record::Progress { scanned: 0, total: 0 }, Record::End { total: 0 }];
        assert_eq!(records(&answer.body), expected, "{input}");
    }
    assert_eq!(results(&blob, "SELECT COUNT(*) FROM BlobStorage", "", "").await, "0\n");
}

#[tokio::test]
async fn a_record_that_fails_is_told_and_passed_over() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("numbers.csv");
    blob.put("100,hello,300\n150,250,350\n1\n").await.expect(201);
    let answer = query(&blob, "select _2 from BlobStorage where _2 > 100", "", "").await.expect(200);
    let error = |name: &str, description: &str, position| Record::Error {
        fatal: false,
        name: name.to_owned(),
        description: description.to_owned(),
        position,
    };
    let expected = [
        Record::Data(b"250\n".to_vec()),
        error("InvalidTypeConversion", "Invalid type conversion.", 0),
        error("InvalidColumnOrdinal", "Fewer columns found than expected.", 26),
        Record::Progress { scanned: 28, total: 28 },
        Record::End { total: 28 },
    ];
    assert_eq!(records(&answer.body), expected);
}

#[tokio::test]
async fn a_blob_that_is_not_what_the_request_says_ends_the_query_with_an_error() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("numbers.csv");
    blob.put("{\"a\":1}\n100,200,300,400\n").await.expect(201);
    let cases = [
        (JSON, "SELECT a FROM BlobStorage", "{\"a\":1}\n", "ParseError", 8),
        (CSV_WITH_HEADERS, "SELECT b FROM BlobStorage", "", "InvalidColumnName", 0),
    ];
    for (input, expression, data, name, position) in cases {
        let answer = query(&blob, expression, input, "").await.expect(200);
        let records = records(&answer.body);
        assert_eq!(text(&records), data, "{input}");
        // Before the first error there is always something else: clients count on it.
        assert!(!matches!(records.first(), Some(Record::Error { .. })), "{records:?}");
        let errors: Vec<_> = records
            .iter()
            .filter_map(|record| match record {
                Record::Error { fatal, name, position, .. } => Some((*fatal, name.as_str(), *position)),
                _ => None,
            })
            .collect();
        assert_eq!(errors, [(true, name, position)]);
        assert_eq!(records.last(), Some(&Record::End { total: 24 }));
    }
}

#[tokio::test]
async fn progress_is_told_every_four_mebibytes() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("large.csv");
    let line = format!("{},{}\n", "1".repeat(511), "2".repeat(511));
    let content = line.repeat(16 * 1024);
    blob.put(content.clone()).await.expect(201);
    let answer = query(&blob, "SELECT * FROM BlobStorage", "", "").await.expect(200);
    let records = records(&answer.body);
    assert!(text(&records) == content, "the results are not the blob");
    let told: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Progress { scanned, .. } => Some(*scanned),
            Record::End { total } => Some(*total),
            _ => None,
        })
        .collect();
    assert_eq!(told, [4 * MIB, 8 * MIB, 12 * MIB, 16 * MIB, 16 * MIB]);
    let largest = records.iter().map(|record| if let Record::Data(data) = record { data.len() } else { 0 }).max();
    assert!(largest < Some(300 * 1024), "{largest:?}");
}

#[tokio::test]
async fn a_split_has_whole_records_of_at_least_its_size() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("large.csv");
    let content = format!("{},\"a\nb\"\r\n", "0".repeat(992)).repeat(24_000);
    blob.put(content.clone()).await.expect(201);
    let sizes = results(&blob, "SELECT sys.split(10485760)FROM BlobStorage", "", "").await;
    let sizes: Vec<usize> = sizes.lines().map(|line| line.parse().expect("a size")).collect();
    assert_eq!(sizes, [10_486_000, 10_486_000, content.len() - 2 * 10_486_000]);
}

#[tokio::test]
async fn a_query_sees_the_blob_as_it_was_when_it_began() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("large.csv");
    let content = format!("{}\n", "3".repeat(1023)).repeat(8 * 1024);
    blob.put(content.clone()).await.expect(201);
    let (_, open) = query(&blob, "SELECT * FROM BlobStorage", "", "").open().await.expect("an answer").into_parts();
    blob.put("other").await.expect(201);
    blob.delete().await.expect(202);
    let body = http_body_util::BodyExt::collect(open).await.expect("the whole answer").to_bytes();
    assert!(text(&records(&body)) == content, "the results are not of one moment");
}

#[tokio::test]
async fn only_as_many_results_as_asked_are_answered() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("numbers.csv");
    blob.put("1\nx\n2\n3\n4\n").await.expect(201);
    let cases = [
        ("SELECT * FROM BlobStorage LIMIT 0", ""),
        ("SELECT * FROM BlobStorage LIMIT 2", "1\nx\n"),
        ("SELECT * FROM BlobStorage LIMIT 99", "1\nx\n2\n3\n4\n"),
        ("SELECT COUNT(*) FROM BlobStorage LIMIT 1", "5\n"),
        ("SELECT COUNT(*) FROM BlobStorage LIMIT 0", ""),
    ];
    for (expression, expected) in cases {
        assert_eq!(results(&blob, expression, "", "").await, expected, "{expression}");
    }
    // A record that fails is no result.
    let answer = query(&blob, "SELECT _1 FROM BlobStorage WHERE _1 > 0 LIMIT 2", "", "").await.expect(200);
    assert_eq!(text(&records(&answer.body)), "1\n2\n");
}
