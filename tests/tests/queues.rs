//! The Queue service over a real socket: what it answers, and how it refuses.

use std::time::Duration;

use lazuli_tests::client::ACCOUNT;
use lazuli_tests::harness::Lazuli;
use lazuli_tests::queues::{Message, Queue, Queues};
use lazuli_tests::signed::Request;

const ABSENT: &str = "00000000-0000-8000-84de-ef5fd48b0000";
const RECEIPT: &str = "CN7vX9SLAAAAAAAAAAAAAQ";
/// As the public service writes them.
const FOREIGN: &str = "AgAAAAMAAAAAAAAAtHCwuiMv1gE=";

/// What is wrong, the request, the status and the code.
type Case = (&'static str, Request, u16, &'static str);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_message_is_put_taken_updated_and_deleted() {
    let lazuli = Lazuli::start().await;
    let queue = lazuli.queues().queue("jobs").await;
    let put = queue.put("one", "?visibilitytimeout=5&messagettl=-1").await.expect(201);
    assert_eq!(put.header("content-type"), "application/xml");
    let put = Message::only(&put);
    assert_eq!((put.expires.as_str(), put.dequeues.as_str()), ("Fri, 31 Dec 9999 23:59:59 GMT", ""));
    assert!(queue.get("").await.expect(200).text().ends_with("<QueueMessagesList />"));
    lazuli.clock.advance(seconds(6));
    let taken = Message::only(&queue.get("").await.expect(200));
    assert_eq!((&taken.id, &taken.inserted, &taken.expires), (&put.id, &put.inserted, &put.expires));
    assert_eq!((taken.dequeues.as_str(), taken.text.as_str()), ("1", "one"));
    assert_ne!(taken.receipt, put.receipt);
    queue.remove(&put.id, &put.receipt).await.refused(400, "PopReceiptMismatch");
    let updated = queue.update(&taken.id, &taken.receipt, 0, Some("two")).await.expect(204);
    assert!(!updated.header("x-ms-time-next-visible").is_empty());
    let receipt = updated.header("x-ms-popreceipt").to_owned();
    queue.remove(&put.id, &taken.receipt).await.refused(400, "PopReceiptMismatch");
    let peeked = Message::only(&queue.peek("").await.expect(200));
    let expected = Message { receipt: String::new(), visible: String::new(), text: "two".into(), ..taken };
    assert_eq!(peeked, expected);
    queue.remove(&put.id, &receipt).await.expect(204);
    queue.remove(&put.id, &receipt).await.refused(404, "MessageNotFound");
}

#[tokio::test]
async fn a_message_comes_back_when_its_time_is_up_and_its_old_receipt_is_void_once_it_is_taken_again() {
    let lazuli = Lazuli::start().await;
    let queue = lazuli.queues().queue("jobs").await;
    for text in ["first", "second"] {
        queue.put(text, "").await.expect(201);
    }
    let taken = Message::all(&queue.get("?numofmessages=32&visibilitytimeout=10").await.expect(200).text());
    assert_eq!(taken.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    lazuli.clock.advance(seconds(11));
    let again = Message::only(&queue.get("?visibilitytimeout=10").await.expect(200));
    assert_eq!((again.id.as_str(), again.dequeues.as_str()), (taken[0].id.as_str(), "2"));
    queue.remove(&taken[0].id, &taken[0].receipt).await.refused(400, "PopReceiptMismatch");
    queue.remove(&taken[1].id, &taken[1].receipt).await.expect(204);
    lazuli.clock.advance(seconds(700_000));
    queue.remove(&again.id, &again.receipt).await.refused(404, "MessageNotFound");
}

#[tokio::test]
async fn texts_come_back_byte_for_byte() {
    let lazuli = Lazuli::start().await;
    let queue = lazuli.queues().queue("jobs").await;
    let (largest, escaped) = ("x".repeat(65_536), "&<>".repeat(21_845));
    for text in ["", "  ", " a\r\nb\tc\n", "<tag a=\"b\">&amp;</tag>'", "\u{1F600} \u{e9}", &largest, &escaped] {
        queue.put(text, "").await.expect(201);
        let taken = Message::only(&queue.get("").await.expect(200));
        assert!(taken.text == text, "{text:.40}");
        let update = queue.update(&taken.id, &taken.receipt, 0, Some(text)).await.expect(204);
        assert!(Message::only(&queue.peek("").await.expect(200)).text == text, "{text:.40}");
        queue.remove(&taken.id, update.header("x-ms-popreceipt")).await.expect(204);
    }
}

#[tokio::test]
async fn an_update_without_a_text_keeps_it_and_one_with_an_empty_text_does_not() {
    let lazuli = Lazuli::start().await;
    let queue = lazuli.queues().queue("jobs").await;
    let put = Message::only(&queue.put("kept", "").await.expect(201));
    let kept = queue.update(&put.id, &put.receipt, 0, None).await.expect(204);
    assert_eq!(Message::only(&queue.peek("").await.expect(200)).text, "kept");
    queue.update(&put.id, kept.header("x-ms-popreceipt"), 0, Some("")).await.expect(204);
    assert!(queue.peek("").await.expect(200).text().contains("<MessageText />"));
}

#[tokio::test]
async fn a_queue_shows_its_metadata_and_how_many_messages_it_holds() {
    let lazuli = Lazuli::start().await;
    let queue = lazuli.queues().existing("jobs");
    let create = || queue.create().header("x-ms-meta-Owner", "Ann");
    create().await.expect(201);
    create().await.expect(204);
    queue.create().await.refused(409, "QueueAlreadyExists");
    for _ in 0..3 {
        queue.put("x", "").await.expect(201);
    }
    queue.get("?numofmessages=2").await.expect(200);
    for method in ["GET", "HEAD"] {
        let shown = queue.request(method, "?comp=metadata").await.expect(200);
        assert_eq!(shown.header("x-ms-approximate-messages-count"), "3");
        assert_eq!(shown.header("x-ms-meta-owner"), "Ann");
    }
    queue.clear().await.expect(204);
    queue.request("PUT", "?comp=metadata").header("x-ms-meta-b", "2").await.expect(204);
    let shown = queue.metadata().await.expect(200);
    assert_eq!(shown.header("x-ms-approximate-messages-count"), "0");
    assert_eq!((shown.header("x-ms-meta-owner"), shown.header("x-ms-meta-b")), ("", "2"));
    queue.request("PUT", "?comp=metadata").await.expect(204);
    assert_eq!(queue.metadata().await.expect(200).header("x-ms-meta-b"), "");
    queue.delete().await.expect(204);
    queue.metadata().await.refused(404, "QueueNotFound");
    queue.create().await.expect(201);
}

#[tokio::test]
async fn policies_are_kept_and_shown_with_dates_to_the_tick() {
    let lazuli = Lazuli::start().await;
    let queue = lazuli.queues().queue("jobs").await;
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Start>2026-08-01</Start>\
                    <Permission>raup</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let acl = |method: &str| queue.request(method, "?comp=acl");
    acl("PUT").body(policies).await.expect(204);
    let shown = policies.replace("2026-08-01", "2026-08-01T00:00:00.0000000Z");
    assert!(acl("GET").await.expect(200).text().ends_with(&shown));
    acl("HEAD").await.expect(200);
    acl("PUT").body(policies.replace("raup", "rwdl")).await.refused(400, "InvalidXmlNodeValue");
    acl("PUT").await.expect(204);
    assert!(acl("GET").await.expect(200).text().ends_with("<SignedIdentifiers />"));
}

#[tokio::test]
async fn queues_are_listed_page_by_page() {
    let lazuli = Lazuli::start().await;
    let queues = lazuli.queues();
    for name in ["a-1", "a-2", "a-3", "b-1"] {
        queues.existing(name).create().header("x-ms-meta-name", name).await.expect(201);
    }
    let first = queues.list("&prefix=a&maxresults=2&include=metadata").await.expect(200).text();
    let expected = "<Prefix>a</Prefix><MaxResults>2</MaxResults><Queues>\
                    <Queue><Name>a-1</Name><Metadata><name>a-1</name></Metadata></Queue>\
                    <Queue><Name>a-2</Name><Metadata><name>a-2</name></Metadata></Queue></Queues><NextMarker>";
    assert!(first.contains(expected) && first.contains("ServiceEndpoint=\"http://127.0.0.1:"), "{first}");
    let marker = first.split_once("<NextMarker>").unwrap().1.split_once('<').unwrap().0;
    let second = queues.list(&format!("&prefix=a&maxresults=2&marker={marker}")).await.expect(200).text();
    assert!(second.contains("<Queues><Queue><Name>a-3</Name></Queue></Queues><NextMarker />"), "{second}");
    assert!(queues.list("&prefix=c").await.expect(200).text().contains("<Queues />"));
}

#[tokio::test]
async fn old_versions_get_no_receipt_for_what_they_put_and_cannot_put_for_ever() {
    let lazuli = Lazuli::start().await;
    let queue = lazuli.queues().queue("jobs").await;
    let put = |version: &str, query: &str| queue.put("x", query).header("x-ms-version", version);
    assert_eq!(put("2015-12-11", "").await.expect(201).text(), "");
    assert!(put("2016-05-31", "").await.expect(201).text().contains("<PopReceipt>"));
    put("2016-05-31", "?messagettl=-1").await.refused(400, "OutOfRangeQueryParameterValue");
    put("2017-07-29", "?messagettl=604801").await.expect(201);
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_by_its_documented_code_and_changes_nothing() {
    let lazuli = Lazuli::start().await;
    let queues = lazuli.queues();
    let queue = queues.queue("jobs").await;
    let put = Message::only(&queue.put("kept", "?messagettl=60").await.expect(201));
    let groups = [absent(queues), numbers(&queue, &put), names(queues), bodies(&queue), others(queues, &queue)];
    let mut wrong = Vec::new();
    for (what, request, status, code) in groups.into_iter().flatten() {
        let answer = request.await;
        if (answer.status.as_u16(), answer.code()) != (status, code) {
            wrong.push(format!("{what}: {status} {code} is due, not {} {}", answer.status, answer.code()));
        } else if !answer.text().contains(&format!("<Code>{code}</Code>")) {
            wrong.push(format!("{what}: the body does not say {code}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(queues.list("").await.expect(200).text().matches("<Queue>").count(), 1);
    assert_eq!(Message::only(&queue.peek("&numofmessages=32").await.expect(200)).text, "kept");
}

fn absent(queues: &Queues) -> Vec<Case> {
    let (queue, code) = (queues.existing("absent"), "QueueNotFound");
    vec![
        ("delete", queue.delete(), 404, code),
        ("get metadata", queue.metadata(), 404, code),
        ("set metadata", queue.request("PUT", "?comp=metadata"), 404, code),
        ("get policies", queue.request("GET", "?comp=acl"), 404, code),
        ("set policies", queue.request("PUT", "?comp=acl"), 404, code),
        ("put", queue.put("x", ""), 404, code),
        ("take", queue.get(""), 404, code),
        ("peek", queue.peek(""), 404, code),
        ("clear", queue.clear(), 404, code),
        ("delete a message", queue.remove(ABSENT, RECEIPT), 404, code),
        ("update a message", queue.update(ABSENT, RECEIPT, 0, None), 404, code),
        ("delete what is no message", queue.remove("nonsense", RECEIPT), 404, code),
    ]
}

fn numbers(queue: &Queue, put: &Message) -> Vec<Case> {
    let (range, invalid) = ("OutOfRangeQueryParameterValue", "InvalidQueryParameterValue");
    let missing = "MissingRequiredQueryParameter";
    let message = |method, query: &str| queue.message(method, &put.id, query);
    let (id, receipt) = (put.id.as_str(), put.receipt.as_str());
    vec![
        ("no message", queue.get("?numofmessages=0"), 400, range),
        ("too many messages", queue.get("?numofmessages=33"), 400, range),
        ("messages is no number", queue.peek("&numofmessages=all"), 400, invalid),
        ("too many to peek at", queue.peek("&numofmessages=33"), 400, range),
        ("taken for no time", queue.get("?visibilitytimeout=0"), 400, range),
        ("taken for too long", queue.get("?visibilitytimeout=604801"), 400, range),
        ("time is no number", queue.get("?visibilitytimeout=1s"), 400, invalid),
        ("put for too long", queue.put("x", "?visibilitytimeout=604801&messagettl=-1"), 400, range),
        ("put until its end", queue.put("x", "?visibilitytimeout=60&messagettl=60"), 400, range),
        ("no lifetime", queue.put("x", "?messagettl=0"), 400, range),
        ("negative lifetime", queue.put("x", "?messagettl=-2"), 400, range),
        ("lifetime is no number", queue.put("x", "?messagettl=ever"), 400, invalid),
        ("updated beyond its end", queue.update(id, receipt, 3600, None), 400, range),
        ("updated for too long", queue.update(id, receipt, 604_801, None), 400, range),
        ("updated for no given time", message("PUT", &format!("?popreceipt={receipt}")), 400, missing),
        ("updated without a receipt", message("PUT", "?visibilitytimeout=0"), 400, missing),
        ("deleted without a receipt", message("DELETE", ""), 400, missing),
        ("deleted with nonsense", queue.remove(id, "nonsense"), 400, invalid),
        ("deleted with another receipt", queue.remove(id, RECEIPT), 400, "PopReceiptMismatch"),
        ("updated with another receipt", queue.update(id, RECEIPT, 0, Some("lost")), 400, "PopReceiptMismatch"),
        ("deleted with a receipt of another service", queue.remove(id, FOREIGN), 400, "PopReceiptMismatch"),
        ("unknown message", queue.remove(ABSENT, receipt), 404, "MessageNotFound"),
        ("unknown message with such a receipt", queue.remove(ABSENT, FOREIGN), 404, "MessageNotFound"),
        ("no message's id", queue.remove("nonsense", receipt), 404, "MessageNotFound"),
        ("unknown message to update", queue.update(ABSENT, receipt, 0, None), 404, "MessageNotFound"),
        ("timeout is no number", queue.get("?timeout=soon"), 400, invalid),
    ]
}

fn names(queues: &Queues) -> Vec<Case> {
    let create = |name: &str| queues.existing(name).create();
    vec![
        ("too short", create("ab"), 400, "OutOfRangeInput"),
        ("too long", create(&"a".repeat(64)), 400, "OutOfRangeInput"),
        ("capitals", create("Jobs"), 400, "InvalidResourceName"),
        ("two hyphens", create("a--b"), 400, "InvalidResourceName"),
        ("special", create("$logs"), 400, "InvalidResourceName"),
        ("something else below a queue", queues.existing("jobs/other").metadata(), 400, "InvalidUri"),
        ("something below a message", queues.existing("jobs/messages/a/b").delete(), 400, "InvalidUri"),
    ]
}

fn bodies(queue: &Queue) -> Vec<Case> {
    let put = |body: String| queue.messages("POST", "").body(body);
    let (large, huge) = ("x".repeat(65_537), "x".repeat(400_000));
    let without_length = queue.messages("POST", "").header("content-length", "0");
    vec![
        ("text too large", queue.put(&large, ""), 400, "MessageTooLarge"),
        ("body too large", queue.put(&huge, ""), 413, "RequestBodyTooLarge"),
        ("no XML", put("hello".into()), 400, "InvalidXmlDocument"),
        ("no body", without_length, 400, "InvalidXmlDocument"),
        ("another root", put("<Message/>".into()), 400, "InvalidXmlDocument"),
        ("no text", put("<QueueMessage/>".into()), 400, "MissingRequiredXmlNode"),
        ("a character that XML has not", queue.put("\u{1}", ""), 400, "InvalidXmlDocument"),
        ("policies of no XML", queue.request("PUT", "?comp=acl").body("policies"), 400, "InvalidXmlDocument"),
    ]
}

fn others(queues: &Queues, queue: &Queue) -> Vec<Case> {
    let set = |name: &str, value: &str| queue.request("PUT", "?comp=metadata").header(name, value);
    let large = "v".repeat(8 * 1024);
    let (invalid, verb) = ("InvalidQueryParameterValue", "UnsupportedHttpVerb");
    let key = queues.request("POST", "?restype=service&comp=userdelegationkey");
    let secondary = |method, path| queues.client().request(method, format!("/{ACCOUNT}-secondary/{path}"));
    vec![
        ("marker", queues.list("&marker=%21%21"), 400, "InvalidMarker"),
        ("page of nothing", queues.list("&maxresults=0"), 400, "OutOfRangeQueryParameterValue"),
        ("page size is no number", queues.list("&maxresults=many"), 400, invalid),
        ("unknown include", queues.list("&include=snapshots"), 400, invalid),
        ("unknown comp", queue.request("GET", "?comp=nonsense"), 400, invalid),
        ("unknown comp of the service", queues.request("GET", "?comp=nonsense"), 400, invalid),
        ("a queue is not posted", queue.request("POST", ""), 405, verb),
        ("a message is not read alone", queue.message("GET", ABSENT, ""), 405, verb),
        ("messages are not put all at once", queue.messages("PUT", ""), 405, verb),
        ("metadata name", set("x-ms-meta-1-2", "v"), 400, "InvalidMetadata"),
        ("metadata without a name", set("x-ms-meta-", "v"), 400, "EmptyMetadataKey"),
        ("metadata too large", set("x-ms-meta-a", &large), 400, "MetadataTooLarge"),
        ("no credentials", queue.get("").unsigned(), 401, "NoAuthenticationInformation"),
        ("write to the secondary", secondary("DELETE", "jobs"), 403, "InsufficientAccountPermissions"),
        ("messages taken at the secondary", secondary("GET", "jobs/messages"), 403, "InsufficientAccountPermissions"),
        ("delegation key for the account's key", key, 403, "AuthenticationFailed"),
    ]
}
