//! What a query is refused for, by its documented status and code.

use lazuli_tests::harness::Lazuli;

use crate::query::avro::records;
use crate::{JSON, body, query, text};

#[tokio::test]
async fn bad_requests_are_refused_before_anything_is_read() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("data").await.blob("numbers.csv");
    blob.put("1,2\n").await.expect(201);
    let sql = |expression: &str| body(expression, "", "");
    let format = |input: &str| body("SELECT * FROM BlobStorage", input, "");
    let processing = "ErrorProcessingQueryExpression";
    let arrow = "<Type>arrow</Type><ArrowConfiguration><Schema><Field><Type>int64</Type></Field></Schema>\
                 </ArrowConfiguration>";
    let cases = [
        (String::new(), 400, "InvalidXmlDocument"),
        ("<QueryRequest>".to_owned(), 400, "InvalidXmlDocument"),
        ("<QueryRequest/>".to_owned(), 400, "MissingRequiredXmlNode"),
        (sql("SELECT * FROM BlobStorage").replace("SQL", "KQL"), 400, "InvalidXmlNodeValue"),
        (format("<Type>avro</Type>"), 400, "InvalidXmlNodeValue"),
        (format(arrow), 400, "InvalidXmlNodeValue"),
        (body("SELECT * FROM BlobStorage", "", &arrow.replace("int64", "int65")), 400, "InvalidXmlNodeValue"),
        (body("SELECT * FROM BlobStorage", "", "<Type>parquet</Type>"), 400, "InvalidXmlNodeValue"),
        (sql("SELEKT * FROM BlobStorage"), 400, processing),
        (sql("SELECT * FROM Elsewhere"), 400, processing),
        (sql("SELECT * FROM BlobStorage WHERE Month = 'January'"), 400, processing),
        (sql("SELECT _1.a FROM BlobStorage"), 400, processing),
        (sql("SELECT * FROM BlobStorage[*].a"), 400, processing),
        (sql(&format!("SELECT {} FROM BlobStorage", vec!["_1"; 50].join(","))), 400, processing),
        (body("SELECT sys.split(10485760) FROM BlobStorage", JSON, ""), 400, processing),
        (sql(&format!("SELECT '{}' FROM BlobStorage", "a".repeat(256 * 1024))), 400, "OutOfRangeInput"),
        (sql(&"a".repeat(2 * 1024 * 1024)), 413, "RequestBodyTooLarge"),
    ];
    for (body, status, code) in cases {
        blob.request("POST", "?comp=query").body(body).await.refused(status, code);
    }
    let short = blob.request("POST", "?comp=query").header("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==");
    short.body(sql("SELECT * FROM BlobStorage")).await.refused(400, "Md5Mismatch");
}

#[tokio::test]
async fn conditions_and_leases_hold_as_for_every_read() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("data").await;
    let blob = container.blob("numbers.csv");
    let ask = || query(&blob, "SELECT * FROM BlobStorage", "", "");
    ask().await.refused(404, "BlobNotFound");
    query(&lazuli.existing("absent").blob("b"), "SELECT * FROM BlobStorage", "", "")
        .await
        .refused(404, "ContainerNotFound");
    let etag = blob.put("1,2\n").await.expect(201).etag();
    ask().header("if-match", &etag).await.expect(200);
    ask().header("if-match", "\"0x1\"").await.refused(412, "ConditionNotMet");
    ask().header("if-none-match", &etag).await.expect(304);
    ask().header("if-unmodified-since", "Sat, 01 Aug 2015 00:00:00 GMT").await.refused(412, "ConditionNotMet");
    let other = "d0a9bb84-25a9-41a3-a2b9-b5dd2cb27d5f";
    ask().header("x-ms-lease-id", other).await.refused(412, "LeaseNotPresentWithBlobOperation");
    let lease = blob.acquire_lease(-1).await.expect(201).header("x-ms-lease-id").to_owned();
    ask().await.expect(200);
    ask().header("x-ms-lease-id", lease).await.expect(200);
    ask().header("x-ms-lease-id", other).await.refused(412, "LeaseIdMismatchWithBlobOperation");
}

#[tokio::test]
async fn whoever_may_read_a_blob_may_query_it() {
    let lazuli = Lazuli::start().await;
    let open = lazuli.existing("open");
    open.create().header("x-ms-blob-public-access", "blob").await.expect(201);
    for (container, status) in [(open, 200), (lazuli.container("closed").await, 401)] {
        let blob = container.blob("numbers.csv");
        blob.put("1,2\n").await.expect(201);
        let answer = query(&blob, "SELECT _2 FROM BlobStorage", "", "").unsigned().await.expect(status);
        if status == 200 {
            assert_eq!(text(&records(&answer.body)), "2\n");
        }
    }
}
