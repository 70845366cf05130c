//! Static websites: what browsers get of `$web`.

use std::sync::Arc;

use lazuli_engine::clock::SystemClock;
use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::{Blob, Lazuli};
use lazuli_tests::process::Start;
use lazuli_tests::signed::{Client, Request};

const PAGES: [(&str, &str, &str); 5] = [
    ("index.html", "<h1>home</h1>", "text/html"),
    ("docs/index.html", "<h1>docs</h1>", "text/html"),
    ("site.css", "h1 { color: navy }", "text/css"),
    ("errors/404.html", "<h1>lost</h1>", "text/html"),
    ("a b/ü", "0123456789", "text/plain"),
];

fn page(client: &Client, method: &str, path: &str) -> Request {
    let host = format!("{ACCOUNT}.z1.web.localhost:10000");
    client.request(method, path).unsigned().header("host", host).header("x-ms-version", "").header("x-ms-date", "")
}

async fn set(client: &Client, website: &str) {
    let body = format!("<StorageServiceProperties><StaticWebsite>{website}</StaticWebsite></StorageServiceProperties>");
    let request = client.request("PUT", format!("/{ACCOUNT}?restype=service&comp=properties"));
    request.body(body).await.expect(202);
}

const WEBSITE: &str = "<Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>\
                       <ErrorDocument404Path>errors/404.html</ErrorDocument404Path>";

/// A server whose website has all pages.
async fn site() -> (Lazuli, Blob) {
    let lazuli = Lazuli::start().await;
    set(lazuli.client(), WEBSITE).await;
    for (name, content, kind) in PAGES {
        let put = lazuli.existing("$web").blob(name).put(content);
        put.header("x-ms-blob-content-type", kind).header("x-ms-blob-cache-control", "max-age=9").await.expect(201);
    }
    let home = lazuli.existing("$web").blob("index.html");
    (lazuli, home)
}

#[tokio::test]
async fn pages_and_the_indexes_of_directories_are_for_everybody() {
    let (lazuli, home) = site().await;
    let cases = [
        ("/", "<h1>home</h1>"),
        ("/index.html", "<h1>home</h1>"),
        ("/?utm=1", "<h1>home</h1>"),
        ("/docs/", "<h1>docs</h1>"),
        ("/docs", "<h1>docs</h1>"),
        ("/docs/index.html", "<h1>docs</h1>"),
        ("/site.css", "h1 { color: navy }"),
        ("/a%20b/%C3%BC", "0123456789"),
    ];
    for (path, expected) in cases {
        let got = page(lazuli.client(), "GET", path).await.expect(200);
        assert_eq!(got.text(), expected, "{path}");
        let head = page(lazuli.client(), "HEAD", path).await.expect(200);
        assert_eq!(head.header("content-length"), expected.len().to_string(), "{path}");
        assert!(head.body.is_empty());
    }
    let css = page(lazuli.client(), "GET", "/site.css").await.expect(200);
    assert_eq!((css.header("content-type"), css.header("cache-control")), ("text/css", "max-age=9"));
    assert_eq!(css.header("accept-ranges"), "bytes");
    assert!(!css.header("x-ms-request-id").is_empty() && !css.header("content-md5").is_empty());
    let shown = page(lazuli.client(), "GET", "/").await.expect(200);
    assert_eq!(shown.etag(), home.head().await.expect(200).etag());
}

#[tokio::test]
async fn what_a_browser_has_is_not_sent_again_and_a_part_is_sent_as_one() {
    let (lazuli, _) = site().await;
    let get = |name: &str, value: String| page(lazuli.client(), "GET", "/a%20b/%C3%BC").header(name, value);
    let first = page(lazuli.client(), "GET", "/a%20b/%C3%BC").await.expect(200);
    let same = get("if-none-match", first.etag()).await.expect(304);
    assert_eq!((same.etag(), same.text()), (first.etag(), String::new()));
    get("if-modified-since", first.header("last-modified").to_owned()).await.expect(304);
    get("if-none-match", "\"0x1\"".into()).await.expect(200);
    get("if-match", "\"0x1\"".into()).await.expect(412);
    let part = get("range", "bytes=2-4".into()).await.expect(206);
    assert_eq!((part.text().as_str(), part.header("content-range")), ("234", "bytes 2-4/10"));
    let outside = get("range", "bytes=10-".into()).await.expect(416);
    assert_eq!(outside.header("content-range"), "bytes */10");
}

#[tokio::test]
async fn what_is_not_there_is_answered_by_the_error_document() {
    let (lazuli, _) = site().await;
    for path in ["/absent", "/absent/", "/absent/a.html", "/%00", &format!("/{}", "a".repeat(2000))] {
        let lost = page(lazuli.client(), "GET", path).header("range", "bytes=0-1").await.expect(404);
        assert_eq!((lost.text().as_str(), lost.code()), ("<h1>lost</h1>", "WebContentNotFound"), "{path}");
        let head = page(lazuli.client(), "HEAD", path).await.expect(404);
        assert_eq!((head.header("content-length"), head.header("content-type")), ("13", "text/html"), "{path}");
    }
    lazuli.existing("$web").blob("errors/404.html").delete().await.expect(202);
    let plain = page(lazuli.client(), "GET", "/absent").await.refused(404, "WebContentNotFound");
    assert_eq!(plain.header("content-type"), "text/html");
    assert!(plain.text().contains("<li>HttpStatusCode: 404</li>"), "{}", plain.text());
    page(lazuli.client(), "GET", "/%ff").await.refused(400, "InvalidUri");
}

#[tokio::test]
async fn a_website_is_only_read_and_only_while_it_is_on() {
    let (lazuli, _) = site().await;
    for method in ["PUT", "POST", "DELETE", "OPTIONS", "PATCH"] {
        let refused = page(lazuli.client(), method, "/index.html").body("x").await.refused(405, "UnsupportedHttpVerb");
        assert_eq!(refused.header("allow"), "GET, HEAD", "{method}");
    }
    set(lazuli.client(), "<Enabled>true</Enabled>").await;
    page(lazuli.client(), "GET", "/index.html").await.expect(200);
    page(lazuli.client(), "GET", "/").await.refused(404, "WebContentNotFound");
    let default = "<Enabled>true</Enabled><DefaultIndexDocumentPath>docs/index.html</DefaultIndexDocumentPath>";
    set(lazuli.client(), default).await;
    assert_eq!(page(lazuli.client(), "GET", "/").await.expect(200).text(), "<h1>docs</h1>");
    set(lazuli.client(), "<Enabled>false</Enabled><IndexDocument>index.html</IndexDocument>").await;
    page(lazuli.client(), "GET", "/index.html").await.refused(404, "WebContentNotFound");
    let other = page(lazuli.client(), "GET", "/").header("host", "nobody.web.localhost");
    other.await.refused(404, "WebContentNotFound");
}

#[tokio::test]
async fn a_website_may_have_a_port_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let server = Start::at(directory.path()).argument("--webPort").argument("0").ready().await;
    set(&server.client(), WEBSITE).await;
    server.service().existing("$web").blob("index.html").put("home").await.expect(201);
    let line = server.logged(&["Web service is successfully listening at http://"]).await;
    let address = line.rsplit('/').next().and_then(|address| address.parse().ok());
    let client = Client::new(address.unwrap(), Arc::new(SystemClock));
    let paths = [("127.0.0.1", "/devstoreaccount1/"), ("devstoreaccount1.localhost", "/")];
    for (host, path) in paths {
        let home = client.request("GET", path).unsigned().header("host", host).await.expect(200);
        assert_eq!(home.text(), "home", "{host}");
    }
    let list = client.request("GET", format!("/{ACCOUNT}?comp=list")).await.expect(200);
    assert_eq!(list.text(), "home", "it is no service: the query says nothing to it");
}
