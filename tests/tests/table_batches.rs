//! Batches of tables over a real socket: all of the writes or none, and the answer says which one was wrong.

#![expect(clippy::panic, reason = "a test that cannot go on fails loudly")]

use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::Lazuli;
use lazuli_tests::signed::Answer;
use lazuli_tests::tables::{MINIMAL, Table, json, part, values};
use serde_json::Value;

/// The parts of an answer: status line and rest.
fn parts(answer: &Answer) -> Vec<(u16, String)> {
    let text = answer.text();
    let part = |part: &str| {
        let (status, rest) = part.split_once(' ').unwrap_or_default();
        (status.parse().unwrap_or_default(), rest.to_owned())
    };
    text.split("HTTP/1.1 ").skip(1).map(part).collect()
}

fn statuses(answer: &Answer) -> Vec<u16> {
    parts(answer).into_iter().map(|(status, _)| status).collect()
}

/// Checks that nothing was done, and why: status, code, and the beginning of the message.
#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str, message: &str) {
    assert_eq!(answer.status.as_u16(), 202, "{}", answer.text());
    let parts = parts(answer);
    let [(given, rest)] = &parts[..] else { panic!("one part is due: {}", answer.text()) };
    let document = rest.split("\r\n\r\n").nth(1).and_then(|text| text.lines().next()).unwrap_or_default();
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    let said = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    assert_eq!((*given, said("/odata.error/code")), (status, code), "{rest}");
    let value = said("/odata.error/message/value");
    assert!(value.starts_with(message), "{value}");
}

fn document(row: &str, members: &str) -> String {
    format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"{members}}}")
}

fn insert(table: &str, row: &str) -> String {
    part("POST", table, "", &document(row, ""))
}

async fn exists(table: &Table, row: &str) -> bool {
    table.entity("p", row).get().await.status.is_success()
}

#[tokio::test]
async fn a_batch_does_all_of_its_writes_and_answers_each() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    let table = tables.table("Jobs").await;
    for row in ["update", "merge", "delete"] {
        table.insert(&document(row, ",\"old\":1")).await.expect(201);
    }
    let etag = table.entity("p", "merge").get().await.expect(200).etag();
    let entity = |row: &str| table.entity("p", row);
    let batch = [
        part("POST", "Jobs", "Prefer: return-no-content\r\n", &document("without", "")),
        part("POST", "jobs", "", &document("with", ",\"n\":5")),
        entity("update").part("PUT", "If-Match: *\r\n", "{\"new\":1}"),
        entity("merge").part("MERGE", &format!("If-Match: {etag}\r\n"), "{\"new\":1}"),
        entity("replaced").part("PUT", "", "{\"new\":1}"),
        entity("merged").part("PATCH", "", "{\"new\":1}"),
        entity("delete").part("DELETE", "If-Match: *\r\n", ""),
    ];
    let answer = tables.batch(&batch).await.expect(202);
    assert!(answer.header("content-type").starts_with("multipart/mixed; boundary=batchresponse_"));
    assert_eq!(statuses(&answer), [204, 201, 204, 204, 204, 204, 204]);
    for (number, (_, rest)) in parts(&answer).iter().enumerate() {
        assert!(rest.contains(&format!("\r\nContent-ID: {number}\r\n")), "{rest}");
        assert_eq!(rest.contains("\r\nETag: W/\"datetime'"), number != 6, "{rest}");
        assert!(rest.contains("\r\nCache-Control: no-cache\r\n"), "{rest}");
    }
    let parts = parts(&answer);
    assert!(parts[0].1.contains("\r\nPreference-Applied: return-no-content\r\n"));
    assert!(parts[0].1.contains(&format!("/{ACCOUNT}/Jobs(PartitionKey='p',RowKey='without')\r\n")));
    assert!(parts[1].1.contains("\"RowKey\":\"with\"") && parts[1].1.contains("\"n\":5"));
    let members = async |row: &str| {
        let read = json(&entity(row).get().await.expect(200));
        (read["old"].as_i64(), read["new"].as_i64())
    };
    assert_eq!(members("update").await, (None, Some(1)));
    assert_eq!(members("merge").await, (Some(1), Some(1)));
    assert_eq!(members("replaced").await, (None, Some(1)));
    assert!(exists(&table, "merged").await && exists(&table, "without").await && !exists(&table, "delete").await);
}

#[tokio::test]
async fn one_wrong_write_undoes_all_and_is_named() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    let table = tables.table("Jobs").await;
    tables.table("Other").await;
    table.insert(&document("there", "")).await.expect(201);
    let at = |row: &str, method: &str, headers: &str, body: &str| table.entity("p", row).part(method, headers, body);
    let other = "If-Match: W/\"datetime'2020-01-01T00%3A00%3A00Z'\"\r\n";
    let cases = [
        (insert("Jobs", "there"), 409, "EntityAlreadyExists"),
        (at("there", "PUT", other, "{}"), 412, "UpdateConditionNotSatisfied"),
        (at("absent", "PUT", "If-Match: *\r\n", "{}"), 404, "ResourceNotFound"),
        (at("absent", "DELETE", "If-Match: *\r\n", ""), 404, "ResourceNotFound"),
        (at("there", "DELETE", "", ""), 400, "MissingRequiredHeader"),
        (at("there", "DELETE", "If-Match: x\r\n", ""), 400, "InvalidInput"),
        (at("there", "PUT", "", "{\"RowKey\":\"x\"}"), 400, "InvalidInput"),
        (part("POST", "Jobs", "", "{\"PartitionKey\":\"p\"}"), 400, "PropertiesNeedValue"),
        (part("POST", "Jobs", "", &document("x", ",\"a\":1,\"a\":1")), 400, "DuplicatePropertiesSpecified"),
        (part("POST", "Jobs", "", &document("x", ",\"a-b\":1")), 400, "PropertyNameInvalid"),
        (
            part("POST", "Jobs", "", "{\"PartitionKey\":\"q\",\"RowKey\":\"r\"}"),
            400,
            "CommandsInBatchActOnDifferentPartitions",
        ),
        (insert("Other", "r"), 400, "CommandsInBatchActOnDifferentPartitions"),
        (insert("Jobs", "first"), 400, "InvalidDuplicateRow"),
        (at("first", "PUT", "", "{}"), 400, "InvalidDuplicateRow"),
        (at("there", "GET", "", ""), 400, "InvalidInput"),
        (part("POST", "Tables", "", "{\"TableName\":\"abc\"}"), 400, "InvalidInput"),
        (part("DELETE", "Tables('Other')", "", ""), 400, "InvalidInput"),
        (part("POST", "$batch", "", ""), 400, "InvalidInput"),
        (part("BREW", "Jobs", "", ""), 405, "UnsupportedHttpVerb"),
        (part("POST", "Jobs(x)", "", ""), 400, "InvalidInput"),
        (part("POST", "a-b", "", "{}"), 400, "InvalidResourceName"),
    ];
    for (wrong, status, code) in cases {
        let answer = tables.batch(&[insert("Jobs", "first"), wrong.clone(), insert("Jobs", "last")]).await;
        refused(&answer, status, code, "1:");
        assert!(answer.text().contains("\r\nContent-ID: 1\r\n"), "{}", answer.text());
        assert!(!exists(&table, "first").await && !exists(&table, "last").await, "{wrong}");
    }
    let elsewhere = part("POST", "Jobs", "", "{}").replace(ACCOUNT, "other");
    refused(&tables.batch(&[elsewhere]).await, 400, "InvalidInput", "0:");
    refused(&tables.batch(&[insert("Nobody", "r")]).await, 404, "TableNotFound", "0:");
    assert!(exists(&table, "there").await);
}

#[tokio::test]
async fn a_batch_has_at_most_a_hundred_writes_and_the_connection_lives() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    let table = tables.table("Jobs").await;
    let inserts = |count: usize| (0..count).map(|row| insert("Jobs", &format!("{row:03}"))).collect::<Vec<_>>();
    refused(&tables.batch(&inserts(101)).await, 400, "InvalidInput", "99:");
    // However many there are, those behind are not looked at.
    let mut unread = inserts(101);
    unread.extend((0..12_000).map(|_| part("POST", "Jobs", "nonsense", "")));
    refused(&tables.batch(&unread).await, 400, "InvalidInput", "99:");
    refused(&tables.batch(&[]).await, 400, "InvalidInput", "0:");
    assert!(!exists(&table, "000").await);
    let answer = tables.batch(&inserts(100)).await.expect(202);
    assert_eq!(statuses(&answer), [201; 100]);
    let large = format!(",\"a\":\"{}\"", "x".repeat(4 * 1024 * 1024));
    tables.batch(&[part("POST", "Jobs", "", &document("x", &large))]).await.refused(413, "RequestBodyTooLarge");
    assert!(exists(&table, "099").await);
}

#[tokio::test]
async fn a_query_may_come_alone_in_a_batch() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    let table = tables.table("Jobs").await;
    table.insert(&document("r", ",\"a\":5")).await.expect(201);
    let batch = |target: &str| {
        let body = format!(
            "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             GET http://127.0.0.1/{ACCOUNT}/{target} HTTP/1.1\r\nAccept: {MINIMAL}\r\n\r\n--batch_1--"
        );
        tables.batch(&[]).body(body)
    };
    let answer = batch("Jobs(PartitionKey='p',RowKey='r')").await.expect(202);
    assert_eq!(statuses(&answer), [200]);
    let context = format!("\"http://{}/{ACCOUNT}/$metadata#Jobs/@Element\"", tables.client().address());
    assert!(answer.text().contains(&context), "{}", answer.text());
    assert!(answer.text().contains("\"a\":5}") && answer.text().contains("\r\nETag: W/"), "{}", answer.text());
    let absent = batch("Jobs(PartitionKey='p',RowKey='x')").await.expect(202);
    assert_eq!(statuses(&absent), [404]);
    assert!(absent.text().contains("\"code\":\"ResourceNotFound\""), "{}", absent.text());
    let found = batch("Jobs()?$filter=a%20eq%205").await.expect(202);
    assert_eq!((statuses(&found), found.text().matches("\"a\":5").count()), (vec![200], 1));
    assert_eq!(statuses(&batch("Tables").await.expect(202)), [400]);
}

#[tokio::test]
async fn what_is_no_batch_is_refused() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    let table = tables.table("Jobs").await;
    let whole = lazuli_tests::tables::batch(&[insert("Jobs", "r"), insert("Jobs", "s")]);
    let sent = |body: &str| tables.batch(&[]).body(body.to_owned());
    sent(&whole).header("content-type", "application/json").await.refused(400, "InvalidHeaderValue");
    sent(&whole).header("content-type", "multipart/mixed").await.refused(400, "InvalidHeaderValue");
    let second = |from: &str, to: &str| {
        let (before, after) = whole.rsplit_once(from).unwrap_or_default();
        format!("{before}{to}{after}")
    };
    let cases = [
        (String::new(), "0:"),
        ("--batch_1--\r\n".to_owned(), "0:"),
        (whole.replace("--batch_1--", ""), "0:"),
        (whole.replace("--changeset_1--", ""), "0:"),
        (whole.replace("; boundary=changeset_1", ""), "0:"),
        (second("--batch_1--", "--batch_1\r\nContent-Type: application/http\r\n\r\n\r\n--batch_1--"), "0:"),
        (whole.replace("application/http", "text/plain"), "0:"),
        (second("application/http", "text/plain"), "1:"),
        (second("HTTP/1.1", ""), "1:"),
        (second("http://", "ftp://"), "1:"),
        (second("/Jobs", "-secondary/Jobs"), "1:"),
    ];
    for (body, message) in cases {
        refused(&sent(&body).await, 400, "InvalidInput", message);
    }
    assert!(!exists(&table, "r").await && !exists(&table, "s").await);
    tables.request("GET", "/$batch").await.refused(405, "UnsupportedHttpVerb");
}

#[tokio::test]
async fn a_batch_may_be_written_in_other_ways() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    let table = tables.table("Jobs").await;
    let root = format!("http://127.0.0.1/{ACCOUNT}/");
    let whole =
        |row: &str| lazuli_tests::tables::batch(&[insert("Jobs", row), table.entity("p", "x").part("PUT", "", "{}")]);
    let quoted = whole("quoted").replace("boundary=changeset_1", "charset=utf-8; Boundary=\"changeset_1\"");
    let ways = [
        ("lines", whole("lines").replace('\r', "")),
        ("path", whole("path").replace(&root, &format!("/{ACCOUNT}/"))),
        ("relative", whole("relative").replace(&root, "")),
        ("quoted", quoted),
        ("around", format!("before\r\n{}after\r\n", whole("around"))),
    ];
    for (row, body) in ways {
        let sent = tables.batch(&[]).body(body.clone()).await.expect(202);
        assert_eq!(statuses(&sent), [201, 204], "{body}");
        assert!(exists(&table, row).await, "{body}");
    }
    let quoted = tables.batch(&[]).body(whole("last")).header("content-type", "multipart/mixed; boundary=\"batch_1\"");
    assert_eq!(statuses(&quoted.await.expect(202)), [201, 204]);
}

#[tokio::test]
async fn merges_that_make_more_than_one_commit_takes_are_refused() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    let table = tables.table("Jobs").await;
    let text = "\u{4e00}".repeat(32_000);
    let large: String = (0..15).map(|number| format!(",\"a{number}\":\"{text}\"")).collect();
    let rows: Vec<_> = (0..6).map(|row| row.to_string()).collect();
    for row in &rows {
        table.insert(&document(row, &large)).header("prefer", "return-no-content").await.expect(204);
    }
    let merges = |count: usize| {
        let merge = |row: &String| table.entity("p", row).part("PATCH", "If-Match: *\r\n", "{\"b\":1}");
        rows.iter().take(count).map(merge).collect::<Vec<_>>()
    };
    refused(&tables.batch(&merges(6)).await, 413, "RequestBodyTooLarge", "5:");
    assert_eq!(values(&table.query("?$select=b&$filter=b%20eq%201").await.expect(200)).len(), 0);
    assert_eq!(statuses(&tables.batch(&merges(5)).await.expect(202)), [204; 5]);
}
