//! A service as a whole: its properties, statistics, account information, and what it says to browsers.

use std::sync::Arc;

use lazuli_engine::clock::SystemClock;
use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::{Lazuli, Service};
use lazuli_tests::process::Start;
use lazuli_tests::signed::{Answer, Client, Request};

const PROPERTIES: &str = "?restype=service&comp=properties";
const ORIGIN: &str = "http://page.example";

fn at_service(service: &Service, method: &str, query: &str) -> Request {
    service.client().request(method, format!("/{ACCOUNT}{query}"))
}

fn at_secondary(service: &Service, method: &str, query: &str) -> Request {
    service.client().request(method, format!("/{ACCOUNT}-secondary{query}"))
}

fn set(service: &Service, content: &str) -> Request {
    let body = format!("<StorageServiceProperties>{content}</StorageServiceProperties>");
    at_service(service, "PUT", PROPERTIES).body(body)
}

async fn properties(service: &Service) -> String {
    let answer = at_service(service, "GET", PROPERTIES).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/xml");
    answer.text()
}

fn cors(origins: &str, methods: &str, allowed: &str, exposed: &str) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods>\
         <AllowedHeaders>{allowed}</AllowedHeaders><ExposedHeaders>{exposed}</ExposedHeaders>\
         <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
    )
}

const LOGGING: &str = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>\
                       <RetentionPolicy><Enabled>true</Enabled><Days>3</Days></RetentionPolicy></Logging>";
const RETENTION: &str = "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>\
                         <AllowPermanentDelete>true</AllowPermanentDelete></DeleteRetentionPolicy>";

#[tokio::test]
async fn properties_are_set_root_by_root_and_what_is_left_out_stays() {
    let lazuli = Lazuli::start().await;
    let fresh = properties(&lazuli).await;
    assert!(fresh.contains("<Cors />") && !fresh.contains("DefaultServiceVersion"), "{fresh}");
    set(&lazuli, LOGGING).await.expect(202);
    set(&lazuli, &format!("<Cors>{}</Cors>", cors("*", "GET", "", ""))).await.expect(202);
    set(&lazuli, RETENTION).await.expect(202);
    set(&lazuli, "<DefaultServiceVersion>2020-02-10</DefaultServiceVersion>").await.expect(202);
    set(&lazuli, "").await.expect(202);
    let all = properties(&lazuli).await;
    for part in [LOGGING, RETENTION, "<DefaultServiceVersion>2020-02-10<", "<AllowedOrigins>*<"] {
        assert!(all.contains(part), "{part} is not in {all}");
    }
    set(&lazuli, "<Cors />").await.expect(202);
    let without = properties(&lazuli).await;
    assert!(without.contains("<Cors />") && without.contains(LOGGING), "{without}");
    assert_eq!(at_secondary(&lazuli, "GET", PROPERTIES).await.expect(200).text(), without);
}

#[tokio::test]
async fn wrong_properties_are_refused_and_nothing_of_them_is_kept() {
    let lazuli = Lazuli::start().await;
    let before = properties(&lazuli).await;
    let wrong_days = LOGGING.replace(">3<", ">366<");
    let cases = [
        (set(&lazuli, &format!("{RETENTION}{wrong_days}")), 400, "InvalidXmlNodeValue"),
        (set(&lazuli, &LOGGING.replace("<Days>3</Days>", "")), 400, "InvalidXmlDocument"),
        (set(&lazuli, "<Metric/>"), 400, "InvalidXmlDocument"),
        (set(&lazuli, &format!("<Cors>{}</Cors>", cors("*", "GET", "", "").repeat(6))), 400, "InvalidXmlDocument"),
        (set(&lazuli, &format!("<Cors>{}</Cors>", cors("*", "GRAB", "", ""))), 400, "InvalidXmlNodeValue"),
        (set(&lazuli, "<DefaultServiceVersion>soon</DefaultServiceVersion>"), 400, "InvalidXmlNodeValue"),
        (at_service(&lazuli, "PUT", PROPERTIES), 400, "InvalidXmlDocument"),
        (at_service(&lazuli, "PUT", PROPERTIES).body("x".repeat(64 * 1024 + 1)), 413, "RequestBodyTooLarge"),
        (set(&lazuli, LOGGING).header("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="), 400, "Md5Mismatch"),
        (set(&lazuli, LOGGING).header("if-match", "*"), 400, "ConditionHeadersNotSupported"),
        (set(&lazuli, LOGGING).unsigned(), 401, "NoAuthenticationInformation"),
        (at_service(&lazuli, "GET", PROPERTIES).unsigned(), 401, "NoAuthenticationInformation"),
        (at_service(&lazuli, "DELETE", PROPERTIES), 405, "UnsupportedHttpVerb"),
        (at_secondary(&lazuli, "PUT", PROPERTIES).body("<x/>"), 403, "InsufficientAccountPermissions"),
    ];
    for (request, status, code) in cases {
        request.await.refused(status, code);
    }
    assert_eq!(properties(&lazuli).await, before);
}

#[tokio::test]
async fn statistics_are_at_the_secondary_endpoint_alone() {
    let lazuli = Lazuli::start().await;
    const STATS: &str = "?restype=service&comp=stats";
    let answer = at_secondary(&lazuli, "GET", STATS).await.expect(200).text();
    assert!(answer.contains("<GeoReplication><Status>live</Status><LastSyncTime>"), "{answer}");
    assert!(answer.contains(" GMT</LastSyncTime>"), "{answer}");
    let refused = at_service(&lazuli, "GET", STATS).await.refused(400, "InvalidQueryParameterValue");
    assert!(refused.text().contains("<QueryParameterName>comp<"), "{}", refused.text());
    at_secondary(&lazuli, "GET", STATS).unsigned().await.refused(401, "NoAuthenticationInformation");
}

#[tokio::test]
async fn the_secondary_endpoint_reads_what_was_written_and_writes_nothing() {
    let lazuli = Lazuli::start().await;
    lazuli.container("photos").await.blob("a.jpg").put("one").await.expect(201);
    let blob = |method| at_secondary(&lazuli, method, "/photos/a.jpg");
    assert_eq!(blob("GET").await.expect(200).text(), "one");
    blob("HEAD").await.expect(200);
    at_secondary(&lazuli, "GET", "/photos?restype=container&comp=list").await.expect(200);
    let query =
        "<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage</Expression></QueryRequest>";
    at_secondary(&lazuli, "POST", "/photos/a.jpg?comp=query").body(query).await.expect(200);
    let put = blob("PUT").header("x-ms-blob-type", "BlockBlob").body("two");
    put.await.refused(403, "InsufficientAccountPermissions");
    blob("DELETE").await.refused(403, "InsufficientAccountPermissions");
    assert_eq!(blob("GET").await.expect(200).text(), "one");
}

#[tokio::test]
async fn account_information_is_the_same_at_every_level_and_for_whoever_has_credentials() {
    let lazuli = Lazuli::start().await;
    for path in ["", "/nowhere", "/nowhere/nothing"] {
        for method in ["GET", "HEAD"] {
            let request = || at_service(&lazuli, method, &format!("{path}?restype=account&comp=properties"));
            let answer = request().await.expect(200);
            let found = ["x-ms-sku-name", "x-ms-account-kind", "x-ms-is-hns-enabled", "content-length"];
            let found = found.map(|name| answer.header(name).to_owned());
            assert_eq!(found, ["Standard_RAGRS", "StorageV2", "false", "0"], "{method} {path}");
            request().unsigned().await.refused(401, "NoAuthenticationInformation");
        }
        let put = at_service(&lazuli, "PUT", &format!("{path}?restype=account&comp=properties"));
        put.await.refused(405, "UnsupportedHttpVerb");
    }
}

#[tokio::test]
async fn the_default_version_is_spoken_to_requests_that_name_none() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.existing("public");
    container.create().header("x-ms-blob-public-access", "blob").await.expect(201);
    let blob = container.blob("a.jpg");
    blob.put("one").await.expect(201);
    let version = |answer: Answer| answer.expect(200).header("x-ms-version").to_owned();
    let anonymous = || blob.get().unsigned().header("x-ms-version", "");
    assert_eq!(version(anonymous().await), "2009-09-19");
    let signed = || blob.get().header("x-ms-version", "");
    assert_eq!(version(signed().await), "2027-03-07");
    set(&lazuli, "<DefaultServiceVersion>2015-02-21</DefaultServiceVersion>").await.expect(202);
    assert_eq!(version(anonymous().await), "2015-02-21");
    assert_eq!(version(blob.get().unsigned().header("x-ms-version", "2020-02-10").await), "2020-02-10");
    assert_eq!(version(signed().await), "2015-02-21");
    // Private and absent containers are hidden from old versions and challenged for in new ones.
    let hidden = || lazuli.existing("private").blob("a").get().unsigned().header("x-ms-version", "");
    hidden().await.refused(404, "ResourceNotFound");
    set(&lazuli, "<DefaultServiceVersion>2020-02-10</DefaultServiceVersion>").await.expect(202);
    hidden().await.refused(401, "NoAuthenticationInformation");
}

#[tokio::test]
async fn preflights_are_answered_by_the_rules_without_credentials() {
    let lazuli = Lazuli::start().await;
    let preflight = |path: &str, headers: &[(&str, &str)]| {
        let request = at_service(&lazuli, "OPTIONS", path).unsigned();
        headers.iter().fold(request, |request, (name, value)| request.header(name, *value))
    };
    let put = [("origin", ORIGIN), ("access-control-request-method", "PUT")];
    preflight("/photos/a.jpg", &put).await.refused(403, "CorsPreflightFailure");
    let rules = format!("{}{}", cors(ORIGIN, "PUT", "x-ms-*", ""), cors("*", "GET", "", ""));
    set(&lazuli, &format!("<Cors>{rules}</Cors>")).await.expect(202);
    for path in ["", "/", "/photos?restype=container&comp=list", "/photos/a.jpg", "/photos/a.jpg?comp=blocklist"] {
        let asked = ("access-control-request-headers", "x-ms-date, X-MS-Version");
        let answer = preflight(path, &[put[0], put[1], asked]).await.expect(200);
        let header = |name: &str| answer.header(&format!("access-control-{name}")).to_owned();
        assert_eq!((header("allow-origin"), header("allow-methods")), (ORIGIN.to_owned(), "PUT".to_owned()), "{path}");
        assert_eq!(header("allow-headers"), "x-ms-date, X-MS-Version");
        assert_eq!((header("max-age"), header("allow-credentials")), ("60".to_owned(), "true".to_owned()));
        assert!(!answer.header("x-ms-request-id").is_empty());
    }
    let all = preflight("/photos/a.jpg", &[put[0], ("access-control-request-method", "GET")]).await.expect(200);
    assert_eq!(all.header("access-control-allow-origin"), "*");
    assert_eq!(all.header("access-control-allow-credentials"), "");
    let unasked = [put[0], put[1], ("access-control-request-headers", "x-other")];
    preflight("/photos/a.jpg", &unasked).await.refused(403, "CorsPreflightFailure");
    let delete = [put[0], ("access-control-request-method", "DELETE")];
    preflight("/photos/a.jpg", &delete).await.refused(403, "CorsPreflightFailure");
    preflight("/photos/a.jpg", &put[..1]).await.refused(400, "InvalidHeaderValue");
    preflight("/photos/a.jpg", &put[1..]).await.refused(400, "InvalidHeaderValue");
}

#[tokio::test]
async fn every_answer_tells_browsers_who_may_read_it() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    blob.put("one").header("x-ms-meta-owner", "ann").await.expect(201);
    let from = |request: Request| request.header("origin", ORIGIN);
    let plain = from(blob.get()).await.expect(200);
    assert_eq!((plain.header("access-control-allow-origin"), plain.header("vary")), ("", ""));

    set(&lazuli, &format!("<Cors>{}</Cors>", cors(ORIGIN, "GET,PUT", "*", "x-ms-meta-*,ETag"))).await.expect(202);
    let read = from(blob.get()).await.expect(200);
    let absent = from(lazuli.existing("photos").blob("absent").get()).await.refused(404, "BlobNotFound");
    let unsigned = from(blob.get()).unsigned().await.refused(401, "NoAuthenticationInformation");
    for answer in [&read, &absent, &unsigned] {
        assert_eq!(answer.header("access-control-allow-origin"), ORIGIN);
        assert_eq!(answer.header("access-control-allow-credentials"), "true");
        assert_eq!(answer.header("vary"), "Origin");
    }
    let exposed = read.header("access-control-expose-headers");
    for name in ["x-ms-request-id", "ETag", "x-ms-meta-owner"] {
        assert!(exposed.split(',').any(|item| item == name), "{name} is not in {exposed}");
    }
    assert!(!exposed.contains("x-ms-blob-type"), "{exposed}");
    let written = from(blob.put("two")).await.expect(201);
    assert_eq!((written.header("access-control-allow-origin"), written.header("vary")), (ORIGIN, ""));
    let other = blob.get().header("origin", "http://other.example").await.expect(200);
    assert_eq!((other.header("access-control-allow-origin"), other.header("vary")), ("", "Origin"));
    let none = blob.get().await.expect(200);
    assert_eq!((none.header("access-control-allow-origin"), none.header("vary")), ("", "Origin"));

    set(&lazuli, &format!("<Cors>{}</Cors>", cors("*", "GET", "", ""))).await.expect(202);
    for answer in [from(blob.get()).await, blob.get().await] {
        let answer = answer.expect(200);
        assert_eq!((answer.header("access-control-allow-origin"), answer.header("vary")), ("*", ""));
        assert_eq!(answer.header("access-control-allow-credentials"), "");
    }
}

#[tokio::test]
async fn what_data_lake_clients_ask_first_tells_them_that_the_account_is_flat() {
    let lazuli = Lazuli::start().await;
    lazuli.container("photos").await;
    let asked = at_service(&lazuli, "HEAD", "/photos/?action=getAccessControl&upn=false");
    let answer = asked.await;
    // Those of them that are written in C++ read the XML that a type announces, and fail if there is none.
    assert_eq!((answer.status.as_u16(), answer.header("content-type"), answer.text().is_empty()), (400, "", true));
}

#[tokio::test]
async fn containers_of_the_system_are_listed_only_on_request() {
    let lazuli = Lazuli::start().await;
    for name in ["$root", "$web", "photos"] {
        lazuli.container(name).await;
    }
    for (query, expected) in [("", vec!["$root", "photos"]), ("&include=system", vec!["$root", "$web", "photos"])] {
        let list = at_service(&lazuli, "GET", &format!("?comp=list{query}")).await.expect(200).text();
        let names: Vec<_> = list.split("<Name>").skip(1).filter_map(|rest| rest.split('<').next()).collect();
        assert_eq!(names, expected, "{query}");
    }
}

#[tokio::test]
async fn the_account_may_be_in_the_host_name() {
    let lazuli = Lazuli::start().await;
    lazuli.container("photos").await.blob("a.jpg").put("one").await.expect(201);
    for host in ["blob.localhost:10000", "localhost", "blob.core.windows.net"] {
        for suffix in ["", "-secondary"] {
            let get =
                lazuli.client().request("GET", "/photos/a.jpg").header("host", format!("{ACCOUNT}{suffix}.{host}"));
            assert_eq!(get.await.expect(200).text(), "one", "{suffix} {host}");
        }
    }
    let list = lazuli.client().request("GET", "/?comp=list").header("host", format!("{ACCOUNT}.blob.localhost"));
    let list = list.await.expect(200).text();
    assert!(list.contains(&format!("ServiceEndpoint=\"http://{ACCOUNT}.blob.localhost/\"")), "{list}");
}

#[tokio::test]
async fn queues_have_properties_of_their_own_and_fewer() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).ready().await;
    let line = server.logged(&["Queue service is successfully listening at http://"]).await;
    let address = line.rsplit('/').next().and_then(|address| address.parse().ok()).unwrap();
    let (blobs, queues) = (server.service(), Service::new(Client::new(address, Arc::new(SystemClock))));
    for element in [RETENTION, "<DefaultServiceVersion>2020-02-10</DefaultServiceVersion>"] {
        set(&queues, element).await.refused(400, "InvalidXmlDocument");
    }
    let rule = format!("<Cors>{}</Cors>", cors(ORIGIN, "GET,PUT", "", ""));
    set(&queues, &format!("{LOGGING}{rule}")).await.expect(202);
    let shown = properties(&queues).await;
    assert!(
        shown.contains(LOGGING) && shown.contains(&format!("<AllowedOrigins>{ORIGIN}</AllowedOrigins>")),
        "{shown}"
    );
    assert!(shown.ends_with("</Cors></StorageServiceProperties>"), "{shown}");
    assert!(properties(&blobs).await.contains("<Cors />"));
    let list = at_service(&queues, "GET", "?comp=list").header("origin", ORIGIN).await.expect(200);
    assert_eq!((list.header("access-control-allow-origin"), list.header("vary")), (ORIGIN, "Origin"));
    let preflight = at_service(&queues, "OPTIONS", "/tasks/messages").unsigned().header("origin", ORIGIN);
    preflight.header("access-control-request-method", "PUT").await.expect(200);
    at_secondary(&queues, "GET", "?restype=service&comp=stats").await.expect(200);
    at_service(&queues, "GET", "?restype=service&comp=stats").await.refused(400, "InvalidQueryParameterValue");
}
