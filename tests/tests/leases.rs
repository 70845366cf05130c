//! Leases as clients see them, on a clock that the test moves.

use std::time::Duration;

use lazuli_tests::harness::{Blob, Container, Lazuli};
use lazuli_tests::signed::{Answer, Request};

#[tokio::test]
async fn a_lease_guards_its_blob_until_it_runs_out() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    blob.put("one").await.expect(201);
    let lease = blob.acquire_lease(15).await.expect(201).header("x-ms-lease-id").to_owned();
    blob.put("two").await.refused(412, "LeaseIdMissing");
    blob.put_block("AAAA", "two").await.refused(412, "LeaseIdMissing");
    blob.put("two").header("x-ms-lease-id", &lease).await.expect(201);
    // Commit times increase while the clock stands, so the lease began a little after what the clock shows.
    lazuli.clock.advance(Duration::from_secs(16));
    blob.put("three").header("x-ms-lease-id", &lease).await.refused(412, "LeaseLost");
    blob.put("three").await.expect(201);
    assert_eq!(blob.get().await.expect(200).text(), "three");
}

const A: &str = "00000000-0000-0000-0000-00000000000a";
const B: &str = "00000000-0000-0000-0000-00000000000b";
const C: &str = "00000000-0000-0000-0000-00000000000c";

/// What a lease can be.
const STATES: [&str; 5] = ["available", "leased", "breaking", "broken", "expired"];

/// What is leased: a blob or a container of its own.
#[derive(Clone)]
enum Subject {
    Blob(Blob),
    Container(Container),
}

impl Subject {
    fn request(&self, method: &str, comp: &str) -> Request {
        match self {
            Self::Blob(blob) => blob.request(method, &format!("?comp={comp}")),
            Self::Container(container) => container.request(method, &format!("&comp={comp}")),
        }
    }

    fn lease(&self, action: &str, headers: &[(&str, &str)]) -> Request {
        let request = self.request("PUT", "lease").header("x-ms-lease-action", action);
        headers.iter().fold(request, |request, (name, value)| request.header(&format!("x-ms-{name}"), *value))
    }

    /// Brings it from no lease to one in `state`.
    async fn bring(&self, lazuli: &Lazuli, state: &str) {
        let acquire = |seconds| self.lease("acquire", &[("lease-duration", seconds), ("proposed-lease-id", A)]);
        match state {
            "available" => {}
            "expired" => {
                acquire("15").await.expect(201);
                lazuli.clock.advance(Duration::from_secs(16));
            }
            _ => drop(acquire("60").await.expect(201)),
        }
        match state {
            "breaking" => drop(self.lease("break", &[("lease-break-period", "30")]).await.expect(202)),
            "broken" => drop(self.lease("break", &[("lease-break-period", "0")]).await.expect(202)),
            _ => {}
        }
    }
}

/// One of each in every state, of which nothing is to be used twice.
async fn subjects(lazuli: &Lazuli, name: &str) -> [Subject; 2] {
    let container = lazuli.container(name).await;
    let blob = container.blob("a");
    blob.put("one").await.expect(201);
    [Subject::Blob(blob), Subject::Container(lazuli.container(&format!("{name}-c")).await)]
}

/// An action, its headers, and what comes of it in each state.
type Case = (&'static str, Vec<(&'static str, &'static str)>, [(u16, &'static str); 5]);

fn found(answer: &Answer) -> (u16, &str) {
    (answer.status.as_u16(), answer.code())
}

#[tokio::test]
async fn every_lease_action_is_judged_by_the_state_that_it_finds() {
    const PRESENT: (u16, &str) = (409, "LeaseAlreadyPresent");
    const ABSENT: (u16, &str) = (409, "LeaseNotPresentWithLeaseOperation");
    const OTHER: (u16, &str) = (409, "LeaseIdMismatchWithLeaseOperation");
    const BROKEN: (u16, &str) = (409, "LeaseIsBrokenAndCannotBeRenewed");
    const NO_ACQUIRE: (u16, &str) = (409, "LeaseIsBreakingAndCannotBeAcquired");
    const NO_CHANGE: (u16, &str) = (409, "LeaseIsBreakingAndCannotBeChanged");
    let (new, held, broken) = ((201, ""), (200, ""), (202, ""));
    let acquire = ("lease-duration", "60");
    let change = |from, to| vec![("lease-id", from), ("proposed-lease-id", to)];
    let cases: [Case; 14] = [
        ("acquire", vec![acquire], [new, PRESENT, PRESENT, new, new]),
        ("acquire", vec![acquire, ("proposed-lease-id", A)], [new, new, NO_ACQUIRE, new, new]),
        ("acquire", vec![acquire, ("proposed-lease-id", B)], [new, PRESENT, PRESENT, new, new]),
        ("renew", vec![("lease-id", A)], [OTHER, held, BROKEN, BROKEN, held]),
        ("renew", vec![("lease-id", B)], [OTHER; 5]),
        ("change", change(A, B), [ABSENT, held, NO_CHANGE, ABSENT, ABSENT]),
        ("change", change(B, A), [ABSENT, held, OTHER, ABSENT, ABSENT]),
        ("change", change(B, C), [ABSENT, OTHER, OTHER, ABSENT, ABSENT]),
        ("release", vec![("lease-id", A)], [OTHER, held, held, held, held]),
        ("release", vec![("lease-id", B)], [OTHER; 5]),
        ("break", vec![("lease-break-period", "0")], [ABSENT, broken, broken, broken, broken]),
        ("break", vec![("lease-break-period", "10")], [ABSENT, broken, broken, broken, broken]),
        ("break", vec![], [ABSENT, broken, broken, broken, broken]),
        ("break", vec![("lease-id", "whatever")], [ABSENT, broken, broken, broken, broken]),
    ];
    let lazuli = Lazuli::start().await;
    for (number, (action, headers, expected)) in cases.iter().enumerate() {
        for (state, expected) in STATES.iter().zip(expected) {
            for subject in subjects(&lazuli, &format!("{state}{number}")).await {
                subject.bring(&lazuli, state).await;
                let answer = subject.lease(action, headers).await;
                assert_eq!(found(&answer), *expected, "{action} {headers:?} of a lease that is {state}");
            }
        }
    }
}

#[tokio::test]
async fn who_names_a_lease_must_hold_it_and_who_writes_must_name_it() {
    const LOST: (u16, &str) = (412, "LeaseLost");
    const MISSING: (u16, &str) = (412, "LeaseIdMissing");
    let lazuli = Lazuli::start().await;
    for (number, state) in STATES.iter().enumerate() {
        for (id, name) in [("", "none"), (A, "a"), (B, "b")] {
            for subject in subjects(&lazuli, &format!("{state}-{name}")).await {
                subject.bring(&lazuli, state).await;
                let (absent, other) = match subject {
                    Subject::Blob(_) => ("LeaseNotPresentWithBlobOperation", "LeaseIdMismatchWithBlobOperation"),
                    Subject::Container(_) => {
                        ("LeaseNotPresentWithContainerOperation", "LeaseIdMismatchWithContainerOperation")
                    }
                };
                let named = match id {
                    "" => [None; 5],
                    A => [Some((412, absent)), None, None, Some(LOST), Some(LOST)],
                    _ => [Some((412, absent)), Some((412, other)), Some((412, other)), Some(LOST), Some(LOST)],
                };
                let refused = named[number];
                let read = subject.request("GET", "metadata").header("x-ms-lease-id", id).await;
                assert_eq!(found(&read), refused.unwrap_or((200, "")), "a read, {name}, {state}");
                let written = match (id, *state) {
                    ("", "leased" | "breaking") => Some(MISSING),
                    _ => refused,
                };
                let delete = match &subject {
                    Subject::Blob(blob) => blob.delete(),
                    Subject::Container(container) => container.delete(),
                };
                let deleted = delete.header("x-ms-lease-id", id).await;
                assert_eq!(found(&deleted), written.unwrap_or((202, "")), "a deletion, {name}, {state}");
            }
        }
    }
}
