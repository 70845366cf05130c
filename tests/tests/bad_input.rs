//! Whatever a client sends, it is told what is wrong with it by the documented status and code, and nothing of it is
//! kept.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails loudly")]

use lazuli_api::wire::structured::{BODY, CONTENT_LENGTH};
use lazuli_tests::client::{ACCOUNT, Credentials};
use lazuli_tests::disk::payload_becomes;
use lazuli_tests::harness::{Blob, Container, Service};
use lazuli_tests::process::{Start, within};
use lazuli_tests::signed::Request;
use lazuli_tests::structured::{message, structured};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What is wrong, the request, the status and the code.
type Case = (&'static str, Request, u16, &'static str);

/// What is there before, and must be there unchanged after.
struct Fixture {
    service: Service,
    container: Container,
    blob: Blob,
    staged: Blob,
}

impl Fixture {
    async fn new(service: Service) -> Self {
        let container = service.container("fixture").await;
        let (blob, staged) = (container.blob("blob"), container.blob("staged"));
        blob.put("0123456789").await.expect(201);
        staged.put_block("id-1", "staged").await.expect(201);
        Self { service, container, blob, staged }
    }

    /// All that a client can see of it.
    async fn seen(&self) -> Vec<String> {
        let containers = self.service.client().request("GET", format!("/{ACCOUNT}?comp=list"));
        let lists = self.staged.block_list().await.expect(200).text();
        let blob = self.blob.get().await.expect(200);
        vec![
            containers.await.expect(200).text(),
            self.container.list("&include=uncommittedblobs,metadata").await.expect(200).text(),
            lists,
            blob.etag(),
            blob.text(),
        ]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_by_its_documented_code_and_nothing_of_it_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Start::at(directory.path()).ready().await;
    let fixture = Fixture::new(server.service()).await;
    let before = fixture.seen().await;
    let mut wrong = Vec::new();
    let groups = [credentials, headers, queries, names, bodies, messages, blocks].map(|group| group(&fixture));
    for (what, request, status, code) in groups.into_iter().flatten() {
        let answer = request.attempt().await;
        let found = answer.as_ref().map(|answer| (answer.status.as_u16(), answer.code().to_owned()));
        if found.as_ref().ok() != Some(&(status, code.to_owned())) {
            wrong.push(format!("{what}: {status} {code} is due, not {found:?}"));
        } else if !answer.unwrap().text().contains(&format!("<Code>{code}</Code>")) {
            wrong.push(format!("{what}: the body does not say {code}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(fixture.seen().await, before);
    payload_becomes(directory.path(), 0).await;
    assert!(server.is_alive());
}

fn credentials(f: &Fixture) -> Vec<Case> {
    let client = f.service.client();
    let target = f.blob.name();
    let as_account = |account| client.clone().with_credentials(Credentials::new(account, "YW5vdGhlciBrZXk=").unwrap());
    let (stranger, forger) = (as_account("nobody"), as_account(ACCOUNT));
    let with = |value: &str| f.blob.get().unsigned().header("authorization", value);
    vec![
        ("unknown account", stranger.request("GET", "/nobody/fixture/blob"), 404, "ResourceNotFound"),
        ("another account's signature", stranger.request("GET", target), 403, "AuthenticationFailed"),
        ("wrong key", forger.request("GET", target), 403, "AuthenticationFailed"),
        ("wrong key on a write", forger.request("DELETE", target), 403, "AuthenticationFailed"),
        ("no credentials", f.blob.get().unsigned(), 401, "NoAuthenticationInformation"),
        ("unknown scheme", with("Nonsense abc"), 400, "InvalidAuthenticationInfo"),
        ("no signature", with("SharedKey devstoreaccount1"), 400, "InvalidAuthenticationInfo"),
        ("signature is no Base64", with("SharedKey devstoreaccount1:%%%"), 403, "AuthenticationFailed"),
        (
            "yesteryear's date",
            f.blob.get().header("x-ms-date", "Sat, 01 Aug 2015 00:00:00 GMT"),
            403,
            "AuthenticationFailed",
        ),
        ("no date", f.blob.get().header("x-ms-date", ""), 403, "AuthenticationFailed"),
    ]
}

fn headers(f: &Fixture) -> Vec<Case> {
    let get = |name, value: &str| f.blob.get().header(name, value);
    let put = |name, value: &str| f.container.blob("new").put("body").header(name, value);
    let lease = |seconds| f.blob.acquire_lease(15).header("x-ms-lease-duration", seconds);
    let large = "v".repeat(8 * 1024);
    vec![
        ("version before the first", get("x-ms-version", "2001-01-01"), 400, "InvalidHeaderValue"),
        ("version is no date", get("x-ms-version", "newest"), 400, "InvalidHeaderValue"),
        ("range after the end", get("range", "bytes=10-20"), 416, "InvalidRange"),
        ("range far after the end", get("range", "bytes=18446744073709551614-"), 416, "InvalidRange"),
        ("malformed range", get("x-ms-range", "bytes=b-a"), 400, "InvalidHeaderValue"),
        ("lease id is no GUID", get("x-ms-lease-id", "mine"), 400, "InvalidHeaderValue"),
        ("read that demands absence", get("if-none-match", "*"), 400, "UnsatisfiableCondition"),
        ("condition is no date", get("if-modified-since", "yesterday"), 400, "InvalidHeaderValue"),
        ("unknown blob type", put("x-ms-blob-type", "Balloon"), 400, "InvalidHeaderValue"),
        ("no blob type", put("x-ms-blob-type", ""), 400, "MissingRequiredHeader"),
        ("metadata name is no identifier", put("x-ms-meta-1-2", "v"), 400, "InvalidMetadata"),
        ("metadata without a name", put("x-ms-meta-", "v"), 400, "EmptyMetadataKey"),
        ("metadata over 8 KiB", put("x-ms-meta-large", &large), 400, "MetadataTooLarge"),
        ("duration is no number", lease("long"), 400, "InvalidHeaderValue"),
        ("duration too short", lease("14"), 400, "InvalidHeaderValue"),
        ("unknown lease action", lease("15").header("x-ms-lease-action", "borrow"), 400, "InvalidHeaderValue"),
        ("no lease action", lease("15").header("x-ms-lease-action", ""), 400, "MissingRequiredHeader"),
    ]
}

fn queries(f: &Fixture) -> Vec<Case> {
    let blob = |query| f.blob.request("GET", query);
    let containers = |marker: &str| f.service.client().request("GET", format!("/{ACCOUNT}?comp=list&marker={marker}"));
    vec![
        ("unknown comp of a blob", blob("?comp=nonsense"), 400, "InvalidQueryParameterValue"),
        (
            "unknown comp of a container",
            f.container.request("GET", "&comp=nonsense"),
            400,
            "InvalidQueryParameterValue",
        ),
        ("timeout is no number", blob("?timeout=soon"), 400, "InvalidQueryParameterValue"),
        ("page size is no number", f.container.list("&maxresults=many"), 400, "InvalidQueryParameterValue"),
        ("page of nothing", f.container.list("&maxresults=0"), 400, "OutOfRangeQueryParameterValue"),
        ("foreign marker", f.container.list("&marker=%21%21"), 400, "InvalidQueryParameterValue"),
        ("foreign marker of containers", containers("garbage"), 400, "OutOfRangeInput"),
        ("malformed marker of containers", containers("%21%21"), 400, "OutOfRangeInput"),
        ("unknown list of blocks", blob("?comp=blocklist&blocklisttype=some"), 400, "InvalidQueryParameterValue"),
        ("impossible verb", f.blob.request("POST", ""), 405, "UnsupportedHttpVerb"),
        ("unknown verb", f.blob.request("BREW", ""), 400, "InvalidHttpVerb"),
    ]
}

fn names(f: &Fixture) -> Vec<Case> {
    let create = |name: &str| f.service.existing(name).create();
    let raw = |name: &str| {
        let put = f.service.client().request("PUT", format!("/{ACCOUNT}/fixture/{name}"));
        put.header("x-ms-blob-type", "BlockBlob").body("body")
    };
    vec![
        ("container name too short", create("ab"), 400, "OutOfRangeInput"),
        ("container name too long", create(&"a".repeat(64)), 400, "OutOfRangeInput"),
        ("capitals in a container name", create("Photos"), 400, "InvalidResourceName"),
        ("two hyphens in a container name", create("a--b"), 400, "InvalidResourceName"),
        ("hyphen at the end of a container name", create("abc-"), 400, "InvalidResourceName"),
        ("blob name too long", raw(&"n".repeat(1025)), 400, "OutOfRangeInput"),
        ("blob name too deep", raw(&"n/".repeat(255)), 400, "OutOfRangeInput"),
        ("NUL in a blob name", raw("a%00b"), 400, "InvalidResourceName"),
        ("blob name is no UTF-8", raw("%FF%FE"), 400, "InvalidUri"),
        ("absent container", f.service.existing("absent").blob("b").put("x"), 404, "ContainerNotFound"),
        ("absent blob", f.container.blob("absent").get(), 404, "BlobNotFound"),
    ]
}

fn bodies(f: &Fixture) -> Vec<Case> {
    let large = vec![7; 100_000]; // over the inline bound: it was on the disk already when the sum turned out wrong
    let put = || f.container.blob("new").put(large.clone());
    let other = "XrY7u+Ae7tCTyyK7j1rNww==";
    vec![
        ("MD5 of another body", put().header("content-md5", other), 400, "Md5Mismatch"),
        ("MD5 is no Base64", put().header("content-md5", "%%%"), 400, "InvalidMd5"),
        ("MD5 too short", put().header("content-md5", "AAAA"), 400, "InvalidMd5"),
        ("CRC of another body", put().header("x-ms-content-crc64", "AAAAAAAAAAA="), 400, "Crc64Mismatch"),
        ("CRC too short", put().header("x-ms-content-crc64", "AAAA"), 400, "InvalidCrc64"),
        (
            "two sums",
            put().header("content-md5", other).header("x-ms-content-crc64", "AAAAAAAAAAA="),
            400,
            "BothCrc64AndMd5HeaderPresent",
        ),
        ("small body, MD5 of another", f.blob.put("x").header("content-md5", other), 400, "Md5Mismatch"),
    ]
}

/// Structured bodies: all but the damage was on the disk already when it was found.
fn messages(f: &Fixture) -> Vec<Case> {
    let content = vec![7; 100_000];
    let put = |length, message| structured(f.container.blob("new").put(""), length, message);
    let damaged = |at: usize| {
        let bytes = message(&content, 30_000).into_iter().enumerate();
        put(content.len(), bytes.map(|(place, byte)| if place == at { byte ^ 1 } else { byte }).collect())
    };
    let whole = || put(content.len(), message(&content, 30_000));
    let end = message(&content, 30_000).len() - 1;
    let block = structured(f.staged.put_block("id-2", ""), 5, message(b"other", 5));
    vec![
        ("sum of all content", damaged(end), 400, "Crc64Mismatch"),
        ("sum of a segment", damaged(end - 8), 400, "Crc64Mismatch"),
        ("a byte of content", damaged(90_000), 400, "Crc64Mismatch"),
        ("number of a segment", damaged(13 + 10 + 30_000 + 8), 400, "InvalidInput"),
        ("version of a message", damaged(0), 400, "InvalidInput"),
        ("length of a message", damaged(1), 400, "InvalidInput"),
        ("no message", put(100_021, vec![7; 100_039]), 400, "InvalidInput"),
        ("another length of content", put(99_999, message(&content, 30_000)), 400, "InvalidInput"),
        ("length of content is no number", whole().header(CONTENT_LENGTH, "many"), 400, "InvalidHeaderValue"),
        ("no length of content", whole().header(CONTENT_LENGTH, ""), 400, "MissingRequiredHeader"),
        ("length of content without a message", whole().header(BODY, ""), 400, "MissingRequiredHeader"),
        ("unknown form of a message", whole().header(BODY, "XSM/2.0; properties=crc64"), 400, "InvalidHeaderValue"),
        ("content too large", put(6_000_000_000, message(&content, 30_000)), 413, "RequestBodyTooLarge"),
        ("MD5 of another content", block.header("content-md5", "XrY7u+Ae7tCTyyK7j1rNww=="), 400, "Md5Mismatch"),
    ]
}

fn blocks(f: &Fixture) -> Vec<Case> {
    let put = |id: &str| f.staged.request("PUT", &format!("?comp=block&blockid={id}")).body("block");
    let list = |body: &str| f.staged.request("PUT", "?comp=blocklist").body(body.to_owned());
    let long = "A".repeat(88);
    let many = format!("<BlockList>{}</BlockList>", "<Latest>AAAA</Latest>".repeat(50_001));
    vec![
        ("list of too many blocks", list(&many), 400, "BlockListTooLong"),
        ("block id of another length", f.staged.put_block("longer-id", "x"), 400, "InvalidBlobOrBlock"),
        ("block id is no Base64", put("%21%21%21"), 400, "InvalidQueryParameterValue"),
        ("block id too long", put(&long), 400, "InvalidQueryParameterValue"),
        ("empty block id", put(""), 400, "MissingRequiredQueryParameter"),
        ("no block id", f.staged.request("PUT", "?comp=block").body("x"), 400, "MissingRequiredQueryParameter"),
        ("empty block", f.staged.put_block("id-2", ""), 400, "InvalidHeaderValue"),
        ("list of an unknown block", f.staged.put_block_list(&["id-9"]), 400, "InvalidBlockList"),
        ("list with an id that is no Base64", list("<BlockList><Latest>?</Latest></BlockList>"), 400, "InvalidBlockId"),
        (
            "list for a blob that would be newer than an instant to come",
            f.staged.put_block_list(&["id-1"]).header("if-modified-since", "Fri, 01 Aug 2200 00:00:00 GMT"),
            412,
            "ConditionNotMet",
        ),
        ("list that ends early", list("<BlockList><Latest>aWQtMQ=="), 400, "InvalidXmlDocument"),
        ("list that is no XML", list("latest: aWQtMQ=="), 400, "InvalidXmlDocument"),
        ("list of an empty body", list(""), 400, "InvalidXmlDocument"),
        ("list with another root", list("<Blocks></Blocks>"), 400, "InvalidXmlDocument"),
        (
            "list with a foreign node",
            list("<BlockList><Oldest>aWQtMQ==</Oldest></BlockList>"),
            400,
            "InvalidXmlDocument",
        ),
    ]
}

/// Sends `bytes` and no more, and gives the first line of what comes back; empty if the connection just ends.
async fn say(f: &Fixture, bytes: Vec<u8>) -> String {
    tell(f, bytes).await.lines().next().unwrap_or_default().to_owned()
}

/// As [`say`], and gives all that comes back.
async fn tell(f: &Fixture, bytes: Vec<u8>) -> String {
    let mut stream = TcpStream::connect(f.service.client().address()).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let _ = within("the connection to end", stream.read_to_end(&mut answer)).await; // a reset is an answer too
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_requests_end_their_connection_and_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Start::at(directory.path()).ready().await;
    let f = Fixture::new(server.service()).await;
    let before = f.seen().await;
    let announced = |bytes: &str| f.container.blob("new").put("").header("content-length", bytes);
    let short = announced("100000").head() + &"x".repeat(50_000);
    assert!(!say(&f, short.into_bytes()).await.contains(" 20"), "a body that ends early");
    let block = f.staged.put_block("id-3", "").header("content-length", "100000").head() + "too little";
    assert!(!say(&f, block.into_bytes()).await.contains(" 20"), "a block that ends early");
    let oversize = announced("6000000000000").head();
    assert_eq!(say(&f, oversize.into_bytes()).await, "HTTP/1.1 413 Payload Too Large");
    for line in ["CONNECT storage:80", "GET storage:80", "GET storage"] {
        let request = format!("{line} HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(say(&f, request.into_bytes()).await, "HTTP/1.1 400 Bad Request", "{line}");
    }
    let endless = announced("").head().replace("content-length: 0\r\n", "");
    let told = tell(&f, endless.into_bytes()).await;
    assert!(told.starts_with("HTTP/1.1 411 ") && told.contains("<Code>MissingContentLengthHeader</Code>"), "{told}");
    let garbage: [(&str, &[u8]); 4] = [
        ("no HTTP", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        ("a byte that is no ASCII in the path", b"GET /devstoreaccount1/\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n"),
        ("an endless head", &[b'a'; 2_000_000]),
        ("two lengths", b"PUT /devstoreaccount1/c HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n12"),
    ];
    for (what, bytes) in garbage {
        let answer = say(&f, bytes.to_vec()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{what}: {answer}");
    }
    assert_eq!(f.seen().await, before);
    payload_becomes(directory.path(), 0).await;
    assert!(server.is_alive());
}
