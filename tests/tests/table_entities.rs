//! Entities over a real socket: written, read and deleted, each limit from both sides, each refusal by its code.

use lazuli_tests::harness::Lazuli;
use lazuli_tests::signed::Request;
use lazuli_tests::tables::{BARE, Table, json};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What is wrong, the request, the status and the code.
type Case = (&'static str, Request, u16, &'static str);

/// A version that no entity has.
const OTHER: &str = "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"";

async fn check(cases: Vec<Case>) {
    for (what, request, status, code) in cases {
        let answer = request.await;
        assert_eq!((answer.status.as_u16(), answer.code()), (status, code), "{what}: {}", answer.text());
        let body = json(&answer);
        assert_eq!(body.pointer("/odata.error/code"), Some(&json!(code)), "{what}");
    }
}

#[tokio::test]
async fn an_entity_is_inserted_read_changed_and_deleted() {
    let lazuli = Lazuli::start().await;
    let table = lazuli.tables().table("People").await;
    let entity = table.entity("p", "r");
    let inserted = table.insert(r#"{"PartitionKey":"p","RowKey":"r","a":1,"b":"x"}"#).await.expect(201);
    let first = inserted.etag();
    assert!(first.starts_with("W/\"datetime'") && first.ends_with("Z'\""), "{first}");
    let location = inserted.header("location");
    assert!(location.ends_with("/devstoreaccount1/People(PartitionKey='p',RowKey='r')"), "{location}");
    let body = json(&inserted);
    assert_eq!((&body["odata.etag"], &body["a"], &body["b"]), (&json!(first), &json!(1), &json!("x")));

    let read = entity.get().await.expect(200);
    assert_eq!((read.etag(), json(&read)), (first.clone(), body));
    table.insert(r#"{"PartitionKey":"p","RowKey":"r"}"#).await.refused(409, "EntityAlreadyExists");

    let merged = entity.merge(r#"{"b":"y","c":true}"#).header("if-match", &first).await.expect(204);
    assert_ne!(merged.etag(), first);
    let bare = || entity.get().header("accept", BARE);
    let shown = |text: &str| text.split_once("Z\"").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
    assert_eq!(shown(&bare().await.expect(200).text()), r#","a":1,"b":"y","c":true}"#);
    entity.merge(r#"{"b":"z"}"#).header("if-match", &first).await.refused(412, "UpdateConditionNotSatisfied");
    entity.put(r#"{"b":"z"}"#).header("if-match", &first).await.refused(412, "UpdateConditionNotSatisfied");
    entity.delete().header("if-match", &first).await.refused(412, "UpdateConditionNotSatisfied");

    let replaced = entity.put(r#"{"PartitionKey":"p","d":null,"e":2.0}"#).header("if-match", "*").await.expect(204);
    assert_eq!(shown(&bare().await.expect(200).text()), r#","e":2.0}"#);
    assert_eq!(bare().await.expect(200).etag(), replaced.etag());
    let selected = table.request("GET", "(RowKey='r',PartitionKey='p')?$select=e,RowKey").header("accept", BARE);
    assert_eq!(selected.await.expect(200).text(), r#"{"RowKey":"r","e":2.0}"#);

    entity.delete().header("if-match", replaced.etag()).await.expect(204);
    entity.get().await.refused(404, "ResourceNotFound");
    for request in [entity.put("{}"), entity.merge("{}")] {
        request.header("if-match", "*").await.refused(404, "ResourceNotFound");
    }
    entity.delete().await.refused(404, "ResourceNotFound");
    entity.merge(r#"{"a":1}"#).await.expect(204);
    entity.put(r#"{"b":1}"#).await.expect(204);
    assert_eq!(shown(&bare().await.expect(200).text()), r#","b":1}"#);
}

#[tokio::test]
async fn older_methods_say_the_same() {
    let lazuli = Lazuli::start().await;
    let table = lazuli.tables().table("People").await;
    let entity = table.entity("p", "r");
    entity.request("MERGE").body(r#"{"a":1}"#).await.expect(204);
    let tunnelled = |method: &str| entity.request("POST").header("x-http-method", method);
    tunnelled("MERGE").body(r#"{"b":2}"#).header("if-match", "*").await.expect(204);
    let read = json(&entity.get().await.expect(200));
    assert_eq!((&read["a"], &read["b"]), (&json!(1), &json!(2)));
    tunnelled("PUT").body(r#"{"c":3}"#).await.expect(204);
    assert_eq!(json(&entity.get().await.expect(200))["a"], json!(null));
    tunnelled("DELETE").header("if-match", "*").await.expect(204);
    entity.get().await.refused(404, "ResourceNotFound");
    // Two of them say nothing.
    let twice = tunnelled("MERGE").head().replace("\r\n\r\n", "\r\nX-HTTP-Method: PUT\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(lazuli.tables().client().address()).await.unwrap();
    stream.write_all(twice.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("x-ms-error-code: XMethodIncorrectCount"),
        "{answer}"
    );
}

#[tokio::test]
async fn values_of_every_type_come_back_at_every_level() {
    const VALUES: &str = r#""i":-2147483648,"l@odata.type":"Edm.Int64","l":"-9223372036854775808","d":1e+300,"w":7.0,"n@odata.type":"Edm.Double","n":"NaN","o@odata.type":"Edm.Double","o":"-Infinity","b":false,"s":"\u0000é😀\"\\","x@odata.type":"Edm.Binary","x":"AAH/","g@odata.type":"Edm.Guid","g":"00112233-4455-6677-8899-aabbccddeeff","t@odata.type":"Edm.DateTime","t":"9999-12-31T23:59:59.9999999Z","u@odata.type":"Edm.DateTime","u":"1601-01-01T00:00:00Z","e":"""#;
    let lazuli = Lazuli::start().await;
    let table = lazuli.tables().table("Types").await;
    let entity = table.entity("p", "r");
    table.insert(&format!(r#"{{"PartitionKey":"p","RowKey":"r",{VALUES}}}"#)).await.expect(201);
    let text = entity.get().await.expect(200).text();
    assert!(text.ends_with(&format!("Z\",{VALUES}}}")), "{text}");
    // What was read is what may be written.
    entity.put(&text).await.expect(204);
    let again = entity.get().await.expect(200).text();
    assert!(again.ends_with(&format!("Z\",{VALUES}}}")), "{again}");

    let full = entity.get().header("accept", "application/json;odata=fullmetadata").await.expect(200);
    let full = json(&full);
    assert_eq!(full["odata.type"], "devstoreaccount1.Types");
    assert_eq!(full["odata.editLink"], "Types(PartitionKey='p',RowKey='r')");
    assert_eq!(full["Timestamp@odata.type"], "Edm.DateTime");
    let bare = table.request("GET", "(PartitionKey='p',RowKey='r')?$format=application/json;odata=nometadata");
    assert!(!bare.await.expect(200).text().contains("odata"));
    let offset = r#"{"t@odata.type":"Edm.DateTime","t":"2026-08-01T02:00:00.5+02:00"}"#;
    entity.put(offset).await.expect(204);
    assert_eq!(json(&entity.get().await.expect(200))["t"], "2026-08-01T00:00:00.5Z");
}

#[tokio::test]
async fn keys_are_any_text_but_a_few_characters() {
    let lazuli = Lazuli::start().await;
    let table = lazuli.tables().table("Keys").await;
    let long = "é".repeat(512);
    let keys =
        ["", " ", "it's", "''", "100%", "%25", "a,RowKey='b'", "(x)", "é😀", "a+b&c=d", ";:@$", "~\u{ffff}", &long];
    for (number, key) in keys.iter().enumerate() {
        let document = json!({ "PartitionKey": key, "RowKey": key, "number": number }).to_string();
        let inserted = table.insert(&document).await.expect(201);
        let entity = table.entity(key, key);
        let read = entity.get().await.expect(200);
        assert_eq!(json(&read)["number"], json!(number), "{key}");
        assert!(inserted.header("location").is_ascii());
        // The address that the answer gives leads there too.
        let (_, address) = inserted.header("location").split_once("/Keys").unwrap_or_default();
        assert_eq!(table.request("GET", address).await.expect(200).text(), read.text(), "{key}");
        entity.delete().await.expect(204);
        entity.get().await.refused(404, "ResourceNotFound");
    }
    let mut cases: Vec<Case> = Vec::new();
    for key in ["/", "\\", "#", "?", "\t", "\u{1f}", "\u{7f}", "\u{9f}"] {
        let document = json!({ "PartitionKey": key, "RowKey": "r" }).to_string();
        cases.push(("a character in a document", table.insert(&document), 400, "OutOfRangeInput"));
        cases.push(("a character in an address", table.entity("p", key).get(), 400, "OutOfRangeInput"));
    }
    let longer = "é".repeat(513);
    let document = json!({ "PartitionKey": "p", "RowKey": longer }).to_string();
    cases.push(("a long key in a document", table.insert(&document), 400, "KeyValueTooLarge"));
    cases.push(("a long key in an address", table.entity(&longer, "r").get(), 400, "KeyValueTooLarge"));
    check(cases).await;
}

/// A document with keys and these members.
fn with(members: &str) -> String {
    format!(r#"{{"PartitionKey":"p","RowKey":"new",{members}}}"#)
}

fn properties(count: usize) -> String {
    (0..count).map(|number| format!("\"p{number}\":1")).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn limits_hold_from_both_sides() {
    let lazuli = Lazuli::start().await;
    let table = lazuli.tables().table("Limits").await;
    let entity = table.entity("p", "new");
    let name = |chars: usize| format!("\"{}\":1", "n".repeat(chars));
    let text = |units: usize| format!("\"a\":\"{}\"", "x".repeat(units));
    let binary = |bytes: usize| {
        let whole = "AAAA".repeat(bytes / 3) + ["", "AA==", "AAA="][bytes % 3];
        format!("\"a@odata.type\":\"Edm.Binary\",\"a\":\"{whole}\"")
    };
    // 15 texts of 64 KiB, and one that fills what is left of a mebibyte or goes beyond it.
    let large = |last: usize| {
        let texts = (10..25).map(|number| format!("\"t{number}\":\"{}\"", "x".repeat(32 * 1024)));
        texts.chain([format!("\"last\":\"{}\"", "x".repeat(last))]).collect::<Vec<_>>().join(",")
    };
    let cases = [
        ("properties", properties(252), properties(253), "TooManyProperties"),
        ("a name", name(255), name(256), "PropertyNameTooLong"),
        ("a text", text(32 * 1024), text(32 * 1024 + 1), "PropertyValueTooLarge"),
        ("bytes", binary(64 * 1024), binary(64 * 1024 + 1), "PropertyValueTooLarge"),
        ("an entity", large(32_000), large(32 * 1024), "EntityTooLarge"),
    ];
    for (what, fits, does_not, code) in cases {
        table.insert(&with(&fits)).await.expect(201);
        entity.put(&with(&fits)).await.expect(204);
        entity.delete().await.expect(204);
        check(vec![
            (what, table.insert(&with(&does_not)), 400, code),
            (what, entity.put(&with(&does_not)), 400, code),
            (what, entity.merge(&with(&does_not)), 400, code),
        ])
        .await;
        entity.get().await.refused(404, "ResourceNotFound");
    }
    // What a merge makes is judged like what is written at once.
    entity.put(&with(&properties(252))).await.expect(204);
    entity.merge("{\"p1\":2}").await.expect(204);
    check(vec![("one property more", entity.merge("{\"q\":2}"), 400, "TooManyProperties")]).await;
    entity.put(&with(&large(0))).await.expect(204);
    let text = format!("{{\"more\":\"{}\"}}", "x".repeat(32 * 1024));
    check(vec![("one text more", entity.merge(&text), 400, "EntityTooLarge")]).await;
    let body = |bytes: usize| {
        let (head, tail) = ("{\"Timestamp\":\"", "\",\"PartitionKey\":\"p\",\"RowKey\":\"body\"}");
        format!("{head}{}{tail}", "x".repeat(bytes - head.len() - tail.len()))
    };
    table.insert(&body(4 * 1024 * 1024)).await.expect(201);
    check(vec![("a large body", table.insert(&body(4 * 1024 * 1024 + 1)), 413, "RequestBodyTooLarge")]).await;
}

#[tokio::test]
async fn what_is_wrong_with_an_entity_has_its_documented_code() {
    let lazuli = Lazuli::start().await;
    let table = lazuli.tables().table("People").await;
    table.entity("p", "r").put("{\"a\":1}").await.expect(204);
    let before = table.entity("p", "r").get().await.expect(200).text();
    let mut cases = documents(&table);
    cases.extend(requests(&table));
    cases.extend(absent_table(&lazuli.tables().existing("Nobody")));
    check(cases).await;
    assert_eq!(table.entity("p", "r").get().await.expect(200).text(), before);
    table.entity("p", "new").get().await.refused(404, "ResourceNotFound");
}

fn documents(table: &Table) -> Vec<Case> {
    let insert = |members: &str| table.insert(&with(members));
    let put = |document: &str| table.entity("p", "r").put(document);
    vec![
        ("no document", table.insert(""), 400, "InvalidInput"),
        ("a list", table.insert("[]"), 400, "InvalidInput"),
        ("half a document", table.insert("{\"a\":"), 400, "InvalidInput"),
        ("no partition", table.insert("{\"RowKey\":\"r\"}"), 400, "PropertiesNeedValue"),
        ("no row", table.insert("{\"PartitionKey\":\"p\"}"), 400, "PropertiesNeedValue"),
        ("a null row", table.insert("{\"PartitionKey\":\"p\",\"RowKey\":null}"), 400, "PropertiesNeedValue"),
        ("a numeric key", table.insert("{\"PartitionKey\":1,\"RowKey\":\"r\"}"), 400, "InvalidInput"),
        ("a property twice", insert("\"a\":1,\"a\":2"), 400, "DuplicatePropertiesSpecified"),
        ("a hyphen in a name", insert("\"a-b\":1"), 400, "PropertyNameInvalid"),
        ("a list for a value", insert("\"a\":[]"), 400, "InvalidInput"),
        ("an object for a value", insert("\"a\":{}"), 400, "InvalidInput"),
        ("an unknown type", insert("\"a@odata.type\":\"Edm.Decimal\",\"a\":\"1\""), 400, "InvalidInput"),
        ("a value of another type", insert("\"a@odata.type\":\"Edm.Guid\",\"a\":\"x\""), 400, "InvalidValueType"),
        (
            "a time before all times",
            insert("\"a@odata.type\":\"Edm.DateTime\",\"a\":\"1600-12-31T23:59:59Z\""),
            400,
            "OutOfRangeInput",
        ),
        ("another partition", put("{\"PartitionKey\":\"q\"}"), 400, "InvalidInput"),
        ("another row", put("{\"RowKey\":\"q\"}"), 400, "InvalidInput"),
    ]
}

fn requests(table: &Table) -> Vec<Case> {
    let entity = table.entity("p", "r");
    vec![
        ("Atom", entity.put("<x/>").header("content-type", "application/atom+xml"), 415, "AtomFormatNotSupported"),
        ("text", entity.put("x").header("content-type", "text/plain"), 415, "MediaTypeNotSupported"),
        (
            "an unknown level",
            entity.get().header("accept", "application/json;odata=verbose"),
            415,
            "MediaTypeNotSupported",
        ),
        ("an old version", entity.get().header("x-ms-version", "2011-08-18"), 415, "JsonFormatNotSupported"),
        ("a deletion of no version", entity.request("DELETE"), 400, "MissingRequiredHeader"),
        ("a blob's version", entity.delete().header("if-match", "\"0x8DEEF5FD48B0000\""), 400, "InvalidInput"),
        ("another version", entity.delete().header("if-match", OTHER), 412, "UpdateConditionNotSatisfied"),
        ("a version that is none", entity.put("{}").header("if-match", "W/\"x\""), 412, "UpdateConditionNotSatisfied"),
        ("a method in a PUT", entity.put("{}").header("x-http-method", "MERGE"), 400, "XMethodNotUsingPost"),
        ("an unknown method", entity.request("POST").header("x-http-method", "GET"), 400, "XMethodIncorrectValue"),
        ("a POST to an entity", entity.request("POST"), 405, "UnsupportedHttpVerb"),
        ("a PUT to a table", table.request("PUT", ""), 405, "UnsupportedHttpVerb"),
        ("one key", table.request("GET", "(PartitionKey='p')"), 400, "InvalidInput"),
        ("a key that does not end", table.request("GET", "(PartitionKey='p',RowKey='r)"), 400, "InvalidInput"),
        ("a third key", table.request("GET", "(PartitionKey='p',RowKey='r',X='')"), 400, "InvalidInput"),
        ("an unknown option", table.request("GET", "(PartitionKey='p',RowKey='r')?$expand=x"), 501, "NotImplemented"),
        (
            "a timeout of nothing",
            table.request("GET", "(PartitionKey='p',RowKey='r')?timeout=0"),
            400,
            "InvalidQueryParameterValue",
        ),
        (
            "a property without a name",
            table.request("GET", "(PartitionKey='p',RowKey='r')?$select=a,"),
            400,
            "InvalidInput",
        ),
    ]
}

fn absent_table(table: &Table) -> Vec<Case> {
    let entity = table.entity("p", "r");
    vec![
        ("insert into no table", table.insert(&with("\"a\":1")), 404, "TableNotFound"),
        ("read from no table", entity.get(), 404, "TableNotFound"),
        ("put into no table", entity.put("{}"), 404, "TableNotFound"),
        ("merge into no table", entity.merge("{}"), 404, "TableNotFound"),
        ("delete from no table", entity.delete(), 404, "TableNotFound"),
        ("query no table", table.query(""), 404, "TableNotFound"),
    ]
}
