//! Every operation on queues against every kind of signature: what allows it, and what does not.

use lazuli_tests::harness::Lazuli;
use lazuli_tests::queues::{Message, Queue};
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::Request;

/// All letters that a signature may have.
const LETTERS: &str = "racwdxyltfmeopiu";

/// An operation, the resource type and the letters that an account SAS must name, any of which suffices (none: it is
/// closed to every SAS), and the letter of a service SAS, if one can have it.
type Case = (&'static str, fn(&Queue, &Message) -> Request, &'static str, &'static str, &'static str);

const CASES: &[Case] = &[
    ("create", |queue, _| queue.create(), "c", "cw", ""),
    ("delete", |queue, _| queue.delete(), "c", "d", ""),
    ("get metadata", |queue, _| queue.metadata(), "c", "r", "r"),
    ("set metadata", |queue, _| queue.request("PUT", "?comp=metadata"), "c", "w", ""),
    ("get policies", |queue, _| queue.request("GET", "?comp=acl"), "c", "", ""),
    ("set policies", |queue, _| queue.request("PUT", "?comp=acl"), "c", "", ""),
    ("put", |queue, _| queue.put("x", ""), "o", "a", "a"),
    ("take", |queue, _| queue.get(""), "o", "p", "p"),
    ("peek", |queue, _| queue.peek(""), "o", "r", "r"),
    ("clear", |queue, _| queue.clear(), "o", "d", ""),
    ("update", |queue, message| queue.update(&message.id, &message.receipt, 0, None), "o", "u", "u"),
    ("delete a message", |queue, message| queue.remove(&message.id, &message.receipt), "o", "p", "p"),
];

fn without(letters: &str) -> String {
    LETTERS.chars().filter(|letter| !letters.contains(*letter)).collect()
}

#[tokio::test]
async fn every_operation_is_open_to_the_signatures_that_name_it_and_to_no_others() {
    let lazuli = Lazuli::start().await;
    for (number, (what, ask, kind, letters, letter)) in CASES.iter().enumerate() {
        let name = format!("queue-{number}");
        let sent = async |sas: Sas| {
            let queue = lazuli.queues().existing(&name);
            queue.create().await;
            let message = Message::only(&queue.put("x", "").await.expect(201));
            ask(&queue, &message).with_sas(&sas.query()).await
        };
        let allowed = async |sas: Sas| {
            let answer = sent(sas).await;
            assert!(answer.status.is_success(), "{what}: {answer:?}");
        };
        let account = |letters: &str| Sas::account(letters, "q", kind);
        for letter in letters.chars() {
            allowed(account(&letter.to_string())).await;
        }
        if letters.is_empty() {
            sent(account(LETTERS)).await.refused(403, "AuthorizationFailure");
        } else {
            sent(account(&without(letters))).await.refused(403, "AuthorizationPermissionMismatch");
            let (elsewhere, other) = if *kind == "c" { ("b", "so") } else { ("t", "sc") };
            sent(Sas::account(LETTERS, elsewhere, "sco")).await.refused(403, "AuthorizationServiceMismatch");
            sent(Sas::account(LETTERS, "q", other)).await.refused(403, "AuthorizationResourceTypeMismatch");
        }
        if letter.is_empty() {
            sent(Sas::queue(&name, LETTERS)).await.refused(403, "AuthorizationFailure");
        } else {
            allowed(Sas::queue(&name, letter)).await;
            sent(Sas::queue(&name, &without(letter))).await.refused(403, "AuthorizationPermissionMismatch");
        }
        sent(Sas::queue("other", LETTERS)).await.refused(403, "AuthenticationFailed");
        sent(Sas::account(LETTERS, "q", "sco").with("se", "2020-01-02")).await.refused(403, "AuthenticationFailed");
    }
}

#[tokio::test]
async fn a_stored_policy_says_what_a_signature_allows_until_it_is_withdrawn() {
    let lazuli = Lazuli::start().await;
    let queue = lazuli.queues().queue("jobs").await;
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>workers</Id><AccessPolicy><Expiry>2099-01-01</Expiry>\
                    <Permission>a</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    queue.request("PUT", "?comp=acl").body(policies).await.expect(204);
    let sas = || Sas::queue("jobs", "").with("se", "").with("st", "").with("si", "workers").query();
    queue.put("x", "").with_sas(&sas()).await.expect(201);
    queue.get("").with_sas(&sas()).await.refused(403, "AuthorizationPermissionMismatch");
    queue.request("PUT", "?comp=acl").await.expect(204);
    queue.put("x", "").with_sas(&sas()).await.refused(403, "AuthenticationFailed");
}

#[tokio::test]
async fn what_ends_with_the_last_second_that_can_be_written_holds_until_then() {
    const LAST: &str = "9999-12-31T23:59:59Z";
    let lazuli = Lazuli::start().await;
    let queue = lazuli.queues().queue("jobs").await;
    let policies = format!(
        "<SignedIdentifiers><SignedIdentifier><Id>workers</Id><AccessPolicy><Expiry>{LAST}</Expiry>\
         <Permission>p</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    );
    queue.request("PUT", "?comp=acl").body(policies).await.expect(204);
    let sas = Sas::queue("jobs", "").with("se", "").with("st", "").with("si", "workers").query();
    queue.get("").with_sas(&sas).await.expect(200);
    for last in [LAST, "9999-12-31", "9999-12-31T23:59:59.9999999Z"] {
        queue.put("x", "").with_sas(&Sas::queue("jobs", "a").with("se", last).query()).await.expect(201);
    }
}
