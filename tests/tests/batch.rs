//! Many deletions in one request.

use lazuli_tests::client::{ACCOUNT, Credentials};
use lazuli_tests::harness::{Blob, Container, Lazuli};
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::{Answer, Request};

const TYPE: &str = "multipart/mixed; boundary=batch_1";

/// A batch of these requests, signed each by itself, as clients write it.
fn body(parts: Vec<Request>) -> String {
    let part = |(id, request): (usize, Request)| {
        let head = request.header("x-ms-version", "").head();
        format!(
            "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {id}\r\n\
             \r\n{head}"
        )
    };
    parts.into_iter().enumerate().map(part).collect::<String>() + "--batch_1--\r\n"
}

fn of_service(lazuli: &Lazuli, parts: Vec<Request>) -> Request {
    let request = lazuli.client().request("POST", format!("/{ACCOUNT}/?comp=batch"));
    request.header("content-type", TYPE).body(body(parts))
}

fn of_container(container: &Container, parts: Vec<Request>) -> Request {
    container.request("POST", "&comp=batch").header("content-type", TYPE).body(body(parts))
}

/// Each part's Content-ID, status, code, and what is in its body.
fn answers(answer: &Answer) -> Vec<(String, u16, String, String)> {
    let boundary = answer.header("content-type").strip_prefix("multipart/mixed; boundary=").unwrap_or_default();
    let (text, begin, end) = (answer.text(), format!("--{boundary}\r\n"), format!("--{boundary}--\r\n"));
    let parts = text.strip_suffix(&end).unwrap_or_default().split(&begin).skip(1);
    let part = |part: &str| {
        let value = |name: &str| {
            let line = part.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_default().to_owned()
        };
        let status = part.lines().find_map(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        let mut blocks = part.splitn(3, "\r\n\r\n");
        let body = blocks.nth(2).unwrap_or_default().trim_end().to_owned();
        assert!(!value("x-ms-request-id").is_empty() && !value("x-ms-version").is_empty(), "{part}");
        (value("Content-ID"), status.unwrap_or_default(), value("x-ms-error-code"), body)
    };
    parts.map(part).collect()
}

#[tokio::test]
async fn each_part_succeeds_or_fails_by_itself() {
    let lazuli = Lazuli::start().await;
    let (photos, films) = (lazuli.container("photos").await, lazuli.container("films").await);
    let blobs = [photos.blob("a b"), films.blob("ü/c"), films.blob("kept")];
    for blob in &blobs {
        blob.put("1").await.expect(201);
    }
    let forged = lazuli.client().clone().with_credentials(Credentials::new(ACCOUNT, "YW5vdGhlcg==").unwrap());
    let parts = vec![
        blobs[0].delete(),
        photos.blob("absent").delete(),
        forged.request("DELETE", blobs[2].name()),
        blobs[2].delete().header("if-match", "\"0x1\""),
        blobs[2].delete().unsigned(),
        lazuli.client().request("DELETE", format!("/{ACCOUNT}/Bad-Name/b")),
        blobs[1].delete(),
    ];
    let answer = of_service(&lazuli, parts).await.expect(202);
    let expected = [
        (202, ""),
        (404, "BlobNotFound"),
        (403, "AuthenticationFailed"),
        (412, "ConditionNotMet"),
        (401, "NoAuthenticationInformation"),
        (400, "InvalidResourceName"),
        (202, ""),
    ];
    let answers = answers(&answer);
    assert_eq!(answers.len(), expected.len(), "{}", answer.text());
    for ((index, expected), (id, status, code, body)) in expected.into_iter().enumerate().zip(answers) {
        assert_eq!((id, status, &*code), (index.to_string(), expected.0, expected.1), "{body}");
        assert_eq!(body.contains(&format!("<Code>{code}</Code>")), !code.is_empty(), "{body}");
    }
    assert!(answer.text().contains("x-ms-delete-type-permanent: true\r\n"));
    blobs[0].get().await.refused(404, "BlobNotFound");
    blobs[1].get().await.refused(404, "BlobNotFound");
    blobs[2].get().await.expect(200);
}

#[tokio::test]
async fn each_part_is_allowed_what_its_own_signature_says() {
    let lazuli = Lazuli::start().await;
    let photos = lazuli.container("photos").await;
    let (gone, kept) = (photos.blob("gone"), photos.blob("kept"));
    gone.put("1").await.expect(201);
    kept.put("1").await.expect(201);
    let (deletes, reads) = (Sas::container("photos", "d").query(), Sas::container("photos", "r").query());
    let parts = vec![gone.delete().with_sas(&deletes), kept.delete().with_sas(&reads), kept.delete().unsigned()];
    let answers = answers(&of_container(&photos, parts).with_sas(&reads).await.expect(202));
    let codes: Vec<_> = answers.iter().map(|(_, status, code, _)| (*status, &**code)).collect();
    let expected = [(202, ""), (403, "AuthorizationPermissionMismatch"), (401, "NoAuthenticationInformation")];
    assert_eq!(codes, expected);
    kept.get().await.expect(200);
}

#[tokio::test]
async fn the_tiers_of_many_blobs_are_set_in_one_request() {
    let lazuli = Lazuli::start().await;
    let (photos, films) = (lazuli.container("photos").await, lazuli.container("films").await);
    let blobs = [photos.blob("a b"), films.blob("ü/c"), photos.blob("archived"), photos.blob("log")];
    for blob in &blobs[..3] {
        blob.put("1").await.expect(201);
    }
    blobs[3].create_append().await.expect(201);
    let tier = |blob: &Blob, tier: &str| blob.request("PUT", "?comp=tier").header("x-ms-access-tier", tier);
    tier(&blobs[2], "Archive").await.expect(200);
    let snapshot = blobs[0].request("PUT", "?comp=snapshot").await.expect(201).header("x-ms-snapshot").to_owned();
    let of_snapshot = blobs[0].request("PUT", &format!("?comp=tier&snapshot={snapshot}"));
    let parts = vec![
        tier(&blobs[0], "Cool"),
        tier(&blobs[1], "Cold"),
        of_snapshot.header("x-ms-access-tier", "Archive"),
        tier(&blobs[2], "Hot").header("x-ms-rehydrate-priority", "High"),
        tier(&blobs[3], "Cool"),
        tier(&photos.blob("absent"), "Cool"),
        tier(&blobs[0], "Lukewarm"),
        tier(&blobs[0], ""),
        tier(&blobs[1], "Archive").unsigned(),
    ];
    let expected = [
        (200, ""),
        (200, ""),
        (200, ""),
        (202, ""),
        (400, "AccessTierNotSupportedForBlobType"),
        (404, "BlobNotFound"),
        (400, "InvalidHeaderValue"),
        (400, "MissingRequiredHeader"),
        (401, "NoAuthenticationInformation"),
    ];
    let answer = of_service(&lazuli, parts).await.expect(202);
    let answers = answers(&answer);
    let codes: Vec<_> = answers.iter().map(|(_, status, code, _)| (*status, &**code)).collect();
    assert_eq!(codes, expected, "{}", answer.text());
    for (blob, tier) in blobs.iter().zip(["Cool", "Cold", "Archive"]) {
        assert_eq!(blob.head().await.expect(200).header("x-ms-access-tier"), tier);
    }
    assert_eq!(blobs[2].head().await.header("x-ms-archive-status"), "rehydrate-pending-to-hot");
    let other = of_container(&photos, vec![tier(&blobs[0], "Hot"), tier(&blobs[1], "Hot")]);
    other.await.refused(400, "InvalidInput");
    of_container(&photos, vec![tier(&blobs[0], "Hot")]).await.expect(202);
    assert_eq!(blobs[0].head().await.header("x-ms-access-tier"), "Hot");
}

#[tokio::test]
async fn the_largest_batch_is_carried_out_in_order() {
    let lazuli = Lazuli::start().await;
    let photos = lazuli.container("photos").await;
    for number in (0..256).step_by(2) {
        photos.blob(&number.to_string()).put("1").await.expect(201);
    }
    let parts = |count: u32| (0..count).map(|number| photos.blob(&number.to_string()).delete()).collect();
    of_container(&photos, parts(257)).await.refused(400, "InvalidInput");
    let answers = answers(&of_container(&photos, parts(256)).await.expect(202));
    let statuses: Vec<u16> = answers.iter().map(|(_, status, ..)| *status).collect();
    assert_eq!(statuses, [202, 404].repeat(128));
}

#[tokio::test]
async fn what_is_no_batch_is_refused_as_a_whole() {
    let lazuli = Lazuli::start().await;
    let (photos, films) = (lazuli.container("photos").await, lazuli.container("films").await);
    let (photo, film) = (photos.blob("p"), films.blob("f"));
    photo.put("1").await.expect(201);
    film.put("1").await.expect(201);
    let batch = |parts| of_service(&lazuli, parts);
    let tier = || photo.request("PUT", "?comp=tier").header("x-ms-access-tier", "Cool");
    let inner = || batch(vec![photo.delete()]);
    let cases = [
        ("two kinds", batch(vec![photo.delete(), tier()])),
        ("a read", batch(vec![photo.delete(), photo.get()])),
        ("an upload", batch(vec![photo.put("2")])),
        ("a container's deletion", batch(vec![films.delete()])),
        ("a batch in a batch", batch(vec![photo.delete(), inner()])),
        ("no part", batch(vec![])),
        ("another container", of_container(&photos, vec![photo.delete(), film.delete()])),
        ("another account", batch(vec![photo.delete(), lazuli.client().request("DELETE", "/other/photos/p")])),
        ("no last boundary", inner().body(body(vec![photo.delete()]).replace("--batch_1--", ""))),
        ("another boundary", inner().header("content-type", "multipart/mixed; boundary=other")),
        ("no request", inner().body("--batch_1\r\n\r\nnothing\r\n--batch_1--\r\n")),
    ];
    for (what, request) in cases {
        let answer = request.await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, "InvalidInput"), "{what}: {}", answer.text());
    }
    inner().header("content-type", "application/xml").await.refused(400, "InvalidHeaderValue");
    inner().header("content-type", "").await.refused(400, "MissingRequiredHeader");
    inner().body(vec![b'x'; 4 * 1024 * 1024 + 1]).await.refused(413, "RequestBodyTooLarge");
    inner().unsigned().await.refused(401, "NoAuthenticationInformation");
    photo.get().await.expect(200);
    film.get().await.expect(200);
}
