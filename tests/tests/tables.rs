//! Tables over a real socket: created, listed, described and deleted; the service's own properties.

use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::Lazuli;
use lazuli_tests::signed::Request;
use lazuli_tests::tables::{BARE, MINIMAL, Tables, column, json};

/// What is wrong, the request, the status and the code.
type Case = (&'static str, Request, u16, &'static str);

#[tokio::test]
async fn a_table_is_created_found_and_deleted_whatever_the_case_of_its_name() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    let created = tables.existing("People").create().await.expect(201);
    let root = format!("http://{}/{ACCOUNT}", tables.client().address());
    assert_eq!(created.header("content-type"), "application/json;odata=minimalmetadata;streaming=true;charset=utf-8");
    assert_eq!(created.header("dataserviceversion"), "3.0;");
    assert_eq!(created.header("cache-control"), "no-cache");
    assert_eq!(created.header("x-content-type-options"), "nosniff");
    assert_eq!(created.header("location"), format!("{root}/Tables('People')"));
    assert_eq!(created.header("preference-applied"), "");
    let document =
        serde_json::json!({ "odata.metadata": format!("{root}/$metadata#Tables/@Element"), "TableName": "People" });
    assert_eq!(json(&created), document);

    for name in ["People", "people", "PEOPLE"] {
        tables.existing(name).create().await.refused(409, "TableAlreadyExists");
        let found = tables.existing(name).get().await.expect(200);
        assert_eq!(json(&found), document, "{name}");
    }
    tables.existing("pEOPLE").delete().await.expect(204);
    tables.existing("People").get().await.refused(404, "ResourceNotFound");
    tables.existing("People").delete().await.refused(404, "ResourceNotFound");
    // The name is free at once.
    tables.table("PEOPLE").await;
    assert_eq!(column(&tables.list("").await.expect(200), "TableName"), ["PEOPLE"]);
}

#[tokio::test]
async fn a_creation_is_echoed_as_its_client_prefers() {
    let lazuli = Lazuli::start().await;
    let create = |name: &str, prefer: &str| lazuli.tables().existing(name).create().header("prefer", prefer);
    let without = create("one", "return-no-content").await.expect(204);
    assert_eq!((without.header("preference-applied"), &*without.text()), ("return-no-content", ""));
    assert_eq!(without.header("dataserviceid"), without.header("location"));
    let with = create("two", "return-content").await.expect(201);
    assert_eq!((with.header("preference-applied"), json(&with)["TableName"].as_str()), ("return-content", Some("two")));
    let other = create("three", "respond-async").await.expect(201);
    assert_eq!((other.header("preference-applied"), json(&other)["TableName"].as_str()), ("", Some("three")));
    let full = create("four", "").header("accept", "application/json;odata=fullmetadata").await.expect(201);
    assert_eq!(json(&full)["odata.editLink"], "Tables('four')");
    let bare = create("five", "").header("accept", BARE).await.expect(201);
    assert_eq!(bare.text(), "{\"TableName\":\"five\"}");
}

#[tokio::test]
async fn what_is_wrong_with_a_table_has_its_documented_code() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    tables.table("People").await;
    let create = |body: &str| tables.request("POST", "/Tables").body(body.to_owned());
    let name = |length: usize| create(&format!("{{\"TableName\":\"{}\"}}", "t".repeat(length)));
    name(3).await.expect(201);
    name(63).await.expect(201);
    let big = create(&format!("{{\"x\":\"{}\"}}", "x".repeat(4 * 1024 * 1024)));
    let cases: Vec<Case> = vec![
        ("a short name", name(2), 400, "OutOfRangeInput"),
        ("a long name", name(64), 400, "OutOfRangeInput"),
        ("a hyphen", create("{\"TableName\":\"a-bc\"}"), 400, "InvalidResourceName"),
        ("a digit first", create("{\"TableName\":\"1abc\"}"), 400, "InvalidResourceName"),
        ("the name that is taken", create("{\"TableName\":\"tables\"}"), 400, "InvalidResourceName"),
        ("no name", create("{}"), 400, "PropertiesNeedValue"),
        ("no document", create(""), 400, "InvalidInput"),
        ("a document that is too large", big, 413, "RequestBodyTooLarge"),
        ("two names", create("{\"TableName\":\"abc\",\"TableName\":\"abc\"}"), 400, "DuplicatePropertiesSpecified"),
        ("Atom", create("<entry/>").header("content-type", "application/atom+xml"), 415, "AtomFormatNotSupported"),
        ("a text", create("x").header("content-type", "text/plain"), 415, "MediaTypeNotSupported"),
        (
            "a version before JSON",
            create("{\"TableName\":\"abc\"}").header("x-ms-version", "2012-02-12"),
            415,
            "JsonFormatNotSupported",
        ),
        ("an answer in Atom", tables.list("").header("accept", "application/atom+xml"), 415, "AtomFormatNotSupported"),
        ("an answer in text", tables.list("").header("accept", "text/plain"), 415, "MediaTypeNotSupported"),
        ("a method that it has not", tables.request("PUT", "/Tables"), 405, "UnsupportedHttpVerb"),
        ("MERGE of a table", tables.request("MERGE", "/Tables('People')"), 405, "UnsupportedHttpVerb"),
        ("a method that nothing has", tables.request("BREW", "/Tables"), 405, "UnsupportedHttpVerb"),
        ("a malformed address", tables.request("GET", "/Tables(People)"), 400, "InvalidInput"),
        ("the service's description", tables.request("GET", "/$metadata"), 501, "NotImplemented"),
        ("an order", tables.list("?$orderby=TableName"), 501, "NotImplemented"),
        ("a page of none", tables.list("?$top=0"), 400, "InvalidInput"),
        ("a page of too many", tables.list("?$top=1001"), 400, "InvalidInput"),
        ("a start that nobody made", tables.list("?NextTableName=x"), 400, "InvalidInput"),
        ("a filter that is none", tables.list("?$filter=TableName%20eq"), 400, "InvalidInput"),
        ("a function", tables.list("?$filter=startswith(TableName,'a')"), 501, "NotImplemented"),
        ("a method in a GET", tables.list("").header("x-http-method", "DELETE"), 400, "XMethodNotUsingPost"),
        (
            "a method that no POST stands for",
            tables.request("POST", "/Tables").header("x-http-method", "GET"),
            400,
            "XMethodIncorrectValue",
        ),
        ("an unknown account", tables.client().request("GET", "/nobody/Tables"), 404, "ResourceNotFound"),
    ];
    for (what, request, status, code) in cases {
        let answer = request.await;
        assert_eq!((answer.status.as_u16(), answer.code()), (status, code), "{what}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_refusal_is_json_or_xml_as_the_client_reads() {
    let lazuli = Lazuli::start().await;
    let get = || lazuli.tables().existing("People").get();
    let answer = get().await.refused(404, "ResourceNotFound");
    assert_eq!(answer.header("content-type"), "application/json;odata=minimalmetadata;streaming=true;charset=utf-8");
    let error = &json(&answer)["odata.error"];
    assert_eq!((error["code"].as_str(), error["message"]["lang"].as_str()), (Some("ResourceNotFound"), Some("en-US")));
    let message = error["message"]["value"].as_str().unwrap_or_default();
    assert!(message.contains(&format!("\nRequestId:{}\nTime:", answer.header("x-ms-request-id"))), "{message}");

    let unsigned = get().unsigned().await.refused(401, "NoAuthenticationInformation");
    assert_eq!(json(&unsigned)["odata.error"]["code"], "NoAuthenticationInformation");
    let xml = get().header("accept", "application/xml").await.refused(415, "AtomFormatNotSupported");
    assert_eq!(xml.header("content-type"), "application/xml");
    assert!(xml.text().contains("<code>AtomFormatNotSupported</code><message xml:lang=\"en-US\">"), "{}", xml.text());
}

#[tokio::test]
async fn a_table_keeps_its_policies() {
    let lazuli = Lazuli::start().await;
    let table = lazuli.tables().table("People").await;
    let acl = |method: &str| table.request(method, "?comp=acl").header("accept", "application/xml");
    let bare = acl("GET").await.expect(200);
    assert!(bare.text().ends_with("<SignedIdentifiers />"), "{}", bare.text());
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>\
                    <Start>2020-01-01T00:00:00.0000000Z</Start><Expiry>2099-01-01T00:00:00.0000000Z</Expiry>\
                    <Permission>raud</Permission></AccessPolicy></SignedIdentifier>\
                    </SignedIdentifiers>";
    acl("PUT").body(policies).await.expect(204);
    assert!(acl("GET").await.expect(200).text().ends_with(policies));
    acl("HEAD").await.expect(200);
    let wrong = acl("PUT").body(policies.replace("raud", "rw")).await;
    assert_eq!(wrong.status.as_u16(), 400);
    assert!(wrong.text().contains("<code>InvalidXmlNodeValue</code>"), "{}", wrong.text());
    lazuli.tables().existing("Nobody").request("GET", "?comp=acl").await.refused(404, "TableNotFound");
    lazuli.tables().existing("Nobody").request("PUT", "?comp=acl").await.refused(404, "TableNotFound");
    table.request("GET", "?comp=metadata").await.refused(400, "InvalidQueryParameterValue");
}

#[tokio::test]
async fn the_service_has_properties_statistics_and_answers_to_browsers() {
    let lazuli = Lazuli::start().await;
    let tables = lazuli.tables();
    let service = |method: &str, query: &str| tables.request(method, &format!("/?restype=service&{query}"));
    let cors = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://page.example</AllowedOrigins>\
                <AllowedMethods>GET,MERGE</AllowedMethods><MaxAgeInSeconds>60</MaxAgeInSeconds>\
                <ExposedHeaders></ExposedHeaders><AllowedHeaders>*</AllowedHeaders></CorsRule></Cors>\
                </StorageServiceProperties>";
    service("PUT", "comp=properties").body(cors).await.expect(202);
    let properties = service("GET", "comp=properties").await.expect(200).text();
    assert!(properties.contains("<AllowedMethods>GET,MERGE</AllowedMethods>"), "{properties}");
    assert!(!properties.contains("DeleteRetentionPolicy"));
    service("PUT", "comp=properties").body("<x/>").await.refused(400, "InvalidXmlDocument");
    service("GET", "comp=stats").await.refused(400, "InvalidQueryParameterValue");
    let secondary = |path: &str| tables.client().request("GET", format!("/{ACCOUNT}-secondary{path}"));
    assert!(secondary("/?restype=service&comp=stats").await.expect(200).text().contains("<Status>live</Status>"));
    secondary("/Tables").header("accept", MINIMAL).await.expect(200);

    let table = tables.table("People").await;
    let write = tables.client().request("POST", format!("/{ACCOUNT}-secondary/People")).body("{}");
    write.await.refused(403, "InsufficientAccountPermissions");
    let preflight = |path: &str, method: &str| {
        let request = tables.client().request("OPTIONS", format!("/{ACCOUNT}{path}")).unsigned();
        request.header("origin", "http://page.example").header("access-control-request-method", method)
    };
    for path in ["/", "/Tables", "/Tables('People')", "/People", "/People(PartitionKey='p',RowKey='r')", "/$batch"] {
        let answer = preflight(path, "MERGE").await.expect(200);
        assert_eq!(answer.header("access-control-allow-origin"), "http://page.example", "{path}");
        preflight(path, "PATCH").await.refused(403, "CorsPreflightFailure");
    }
    let read = table.get().header("origin", "http://page.example").await.expect(200);
    assert_eq!(read.header("access-control-allow-origin"), "http://page.example");
}

#[tokio::test]
async fn tables_are_listed_page_by_page_as_they_were_named() {
    let lazuli = Lazuli::start().await;
    let tables: &Tables = lazuli.tables();
    for name in ["beta", "Alpha", "Gamma", "delta"] {
        tables.table(name).await;
    }
    let all = tables.list("()").await.expect(200);
    assert_eq!(column(&all, "TableName"), ["Alpha", "beta", "delta", "Gamma"]);
    let (mut found, mut next) = (Vec::new(), String::new());
    for _ in 0..4 {
        let page = tables.list(&format!("?$top=1{next}")).await.expect(200);
        found.extend(column(&page, "TableName"));
        let token = page.header("x-ms-continuation-nexttablename");
        next = format!("&NextTableName={token}");
        assert_eq!(token.is_empty(), found.len() == 4);
    }
    assert_eq!(found, ["Alpha", "beta", "delta", "Gamma"]);
    let cases = [
        ("TableName%20eq%20'Alpha'", vec!["Alpha"]),
        ("TableName%20ge%20'b'%20and%20TableName%20lt%20'c'", vec!["beta"]),
        ("not%20(TableName%20eq%20'beta')%20and%20TableName%20ne%20'Alpha'", vec!["delta", "Gamma"]),
        ("TableName%20eq%20'nobody'", vec![]),
    ];
    for (filter, expected) in cases {
        let found = tables.list(&format!("?$filter={filter}")).await.expect(200);
        assert_eq!(column(&found, "TableName"), expected, "{filter}");
    }
}
