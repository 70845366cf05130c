//! Ways in: shared access signatures and public containers, as clients meet them.

use lazuli_api::auth::accounts::Rules;
use lazuli_tests::client::Credentials;
use lazuli_tests::harness::{Blob, Lazuli};
use lazuli_tests::process::{Start, within};
use lazuli_tests::sas::Sas;
use lazuli_tests::signed::Request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_signature_lets_in_for_what_it_says() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    blob.put("one").await.expect(201);
    let reading = Sas::blob("photos", "a.jpg", "r").query();
    assert_eq!(blob.get().with_sas(&reading).await.expect(200).text(), "one");
    blob.head().with_sas(&reading).await.expect(200);
    blob.put("two").with_sas(&reading).await.refused(403, "AuthorizationPermissionMismatch");
    blob.delete().with_sas(&reading).await.refused(403, "AuthorizationPermissionMismatch");
    let other = Sas::blob("photos", "b.jpg", "r").query();
    let refused = blob.get().with_sas(&other).await.refused(403, "AuthenticationFailed");
    assert!(refused.text().contains("String to sign used was r\n2020-01-01T00:00:00Z\n"), "{}", refused.text());
    let listing = Sas::container("photos", "l").query();
    lazuli.existing("photos").list("").with_sas(&listing).await.expect(200);
    blob.get().with_sas(&listing).await.refused(403, "AuthorizationPermissionMismatch");
    lazuli
        .existing("photos")
        .delete()
        .with_sas(&Sas::container("photos", "rwdl").query())
        .await
        .refused(403, "AuthorizationFailure");
    lazuli.existing("photos").delete().with_sas(&Sas::account("d", "b", "c").query()).await.expect(202);
}

#[tokio::test]
async fn who_may_create_does_not_replace() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    let creating = Sas::container("photos", "c").query();
    blob.put("one").with_sas(&creating).await.expect(201);
    blob.put("two").with_sas(&creating).await.refused(403, "UnauthorizedBlobOverwrite");
    blob.put("two").header("if-none-match", "*").with_sas(&creating).await.refused(409, "BlobAlreadyExists");
    blob.put_block("AAAA", "two").with_sas(&creating).await.expect(201);
    blob.put_block_list(&["AAAA"]).with_sas(&creating).await.refused(403, "UnauthorizedBlobOverwrite");
    assert_eq!(blob.get().await.expect(200).text(), "one");
    blob.put_block_list(&["AAAA"]).with_sas(&Sas::container("photos", "w").query()).await.expect(201);
    assert_eq!(blob.get().await.expect(200).text(), "two");
}

#[tokio::test]
async fn a_signature_sets_headers_of_the_answer() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    blob.put("one").header("content-type", "image/jpeg").await.expect(201);
    let sas = Sas::blob("photos", "a.jpg", "r")
        .with("rscc", "no-store")
        .with("rscd", "attachment; filename=\"b.jpg\"")
        .with("rsce", "identity")
        .with("rscl", "de")
        .with("rsct", "application/x-photo")
        .query();
    for request in [blob.get(), blob.head(), blob.get().header("range", "bytes=0-1")] {
        let answer = request.with_sas(&sas).await;
        let given = ["cache-control", "content-disposition", "content-encoding", "content-language", "content-type"]
            .map(|name| answer.header(name).to_owned());
        assert_eq!(given, ["no-store", "attachment; filename=\"b.jpg\"", "identity", "de", "application/x-photo"]);
    }
    // A request signed with the key is not under the signature.
    let answer = blob.request("GET", &format!("?{sas}")).await.expect(200);
    assert_eq!(answer.header("content-type"), "image/jpeg");
    let forged = sas.replace("no%2Dstore", "public");
    blob.get().with_sas(&forged).await.refused(403, "AuthenticationFailed");
}

#[tokio::test]
async fn tags_are_counted_for_those_who_may_read_them() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.existing("photos");
    container.create().header("x-ms-blob-public-access", "blob").await.expect(201);
    let blob = container.blob("a.jpg");
    let put = || blob.put("one").header("x-ms-tags", "colour=blue");
    put().with_sas(&Sas::container("photos", "w").query()).await.refused(403, "AuthorizationPermissionMismatch");
    put().with_sas(&Sas::container("photos", "wt").query()).await.expect(201);
    let counted = async |request: Request| request.await.expect(200).header("x-ms-tag-count").to_owned();
    assert_eq!(counted(blob.get()).await, "1");
    assert_eq!(counted(blob.head().with_sas(&Sas::container("photos", "rt").query())).await, "1");
    assert_eq!(counted(blob.head().with_sas(&Sas::container("photos", "r").query())).await, "");
    assert_eq!(counted(blob.get().unsigned()).await, "");
    let conditional = || blob.get().header("x-ms-if-tags", "colour='blue'");
    conditional().with_sas(&Sas::container("photos", "rt").query()).await.expect(200);
    let refused = conditional().with_sas(&Sas::container("photos", "r").query()).await;
    refused.refused(403, "AuthorizationPermissionMismatch");
    let listed = |letters| container.list("&include=tags").with_sas(&Sas::container("photos", letters).query());
    listed("lt").await.expect(200);
    listed("l").await.refused(403, "AuthorizationPermissionMismatch");
    conditional().unsigned().await.refused(401, "NoAuthenticationInformation");
}

#[tokio::test]
async fn who_may_not_read_the_tags_of_a_source_does_not_learn_them_by_a_condition() {
    let lazuli = Lazuli::start().await;
    let (container, open) = (lazuli.container("photos").await, lazuli.existing("open"));
    open.create().header("x-ms-blob-public-access", "blob").await.expect(201);
    let (source, public, target) = (container.blob("source"), open.blob("source"), container.blob("target"));
    for blob in [&source, &public] {
        blob.put("one").header("x-ms-tags", "a=1").await.expect(201);
    }
    let address = |blob: &Blob| format!("http://{}{}", lazuli.client().address(), blob.name());
    let signed = |letters| format!("{}?{}", address(&source), Sas::container("photos", letters).query());
    // Whose own rights do not reach to the source.
    let writing = Sas::blob("photos", "target", "w").query();
    let ways = [("x-ms-requires-sync", "false"), ("x-ms-requires-sync", "true"), ("x-ms-blob-type", "BlockBlob")];
    for (name, value) in ways {
        for (condition, met) in [("a = '1'", true), ("a = '2'", false)] {
            let copy = |from: &str| {
                let copy = target.request("PUT", "").header(name, value).header("x-ms-copy-source", from);
                copy.header("x-ms-source-if-tags", condition).with_sas(&writing)
            };
            for from in [signed("r"), address(&public)] {
                let refused = copy(&from).await.refused(403, "CannotVerifyCopySource");
                assert!(refused.text().contains("AuthorizationPermissionMismatch"), "{name}: {}", refused.text());
            }
            let answer = copy(&signed("rt")).await;
            let expected = if met { "" } else { "SourceConditionNotMet" };
            assert_eq!(answer.code(), expected, "{name}: {value}");
        }
    }
}

#[tokio::test]
async fn an_encryption_scope_of_the_signature_is_that_of_the_write() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    let sas = Sas::blob("photos", "a.jpg", "rw").with("ses", "mine").query();
    let other = blob.put("one").header("x-ms-encryption-scope", "theirs").with_sas(&sas);
    other.await.refused(403, "AuthorizationFailure");
    let same = blob.put("one").header("x-ms-encryption-scope", "mine").await;
    let demanded = blob.put("one").with_sas(&sas).await;
    assert_eq!((demanded.status, demanded.code()), (same.status, same.code()));
    // Whatever the scope is: what stores nothing is not concerned.
    blob.put("one").await.expect(201);
    let query = "<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage</Expression>\
                 <InputSerialization><Format><Type>csv</Type></Format></InputSerialization></QueryRequest>";
    let queried = blob.request("POST", "?comp=query").body(query).with_sas(&sas).await.expect(200);
    assert_eq!(queried.header("x-ms-encryption-scope"), "");
    let deleting = Sas::blob("photos", "a.jpg", "d").with("ses", "mine").query();
    blob.request("DELETE", "").with_sas(&deleting).await.expect(202);
}

#[tokio::test]
async fn a_version_comes_from_the_request_or_from_the_signature() {
    let lazuli = Lazuli::start().await;
    let blob = lazuli.container("photos").await.blob("a.jpg");
    blob.put("one").await.expect(201);
    let sas = Sas::blob("photos", "a.jpg", "r").query();
    let get = || blob.get().with_sas(&sas);
    let spoken = |answer: lazuli_tests::signed::Answer| answer.header("x-ms-version").to_owned();
    assert_eq!(spoken(get().header("x-ms-version", "2019-12-12").await.expect(200)), "2019-12-12");
    assert_eq!(spoken(get().header("x-ms-version", "").await.expect(200)), "2024-11-04");
    let named = blob.request("GET", "?api-version=2021-08-06").header("x-ms-version", "").with_sas(&sas);
    assert_eq!(spoken(named.await.expect(200)), "2021-08-06");
    let unknown = blob.request("GET", "?api-version=1").header("x-ms-version", "").with_sas(&sas);
    unknown.await.refused(400, "InvalidQueryParameterValue");
}

#[tokio::test]
async fn a_stored_policy_can_be_taken_back() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    let blob = container.blob("a.jpg");
    blob.put("one").await.expect(201);
    let policies = |permissions: &str| {
        container.request("PUT", "&comp=acl").body(format!(
            "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2099-01-01</Expiry>\
             <Permission>{permissions}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        ))
    };
    let sas = Sas::container("photos", "").with("st", "").with("se", "").with("si", "readers").query();
    blob.get().with_sas(&sas).await.refused(403, "AuthenticationFailed");
    policies("r").await.expect(200);
    blob.get().with_sas(&sas).await.expect(200);
    policies("w").await.expect(200);
    blob.get().with_sas(&sas).await.refused(403, "AuthorizationPermissionMismatch");
    container.request("PUT", "&comp=acl").await.expect(200);
    blob.get().with_sas(&sas).await.refused(403, "AuthenticationFailed");
}

#[tokio::test]
async fn policies_that_a_version_does_not_know_are_not_shown_to_it() {
    let lazuli = Lazuli::start().await;
    let container = lazuli.container("photos").await;
    for (permissions, known) in [("rwdl", true), ("ra", false), ("c", false)] {
        let body = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>{permissions}</Permission>\
             </AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        );
        container.request("PUT", "&comp=acl").body(body).await.expect(200);
        container.request("GET", "&comp=acl").header("x-ms-version", "2015-04-05").await.expect(200);
        let old = container.request("GET", "&comp=acl").header("x-ms-version", "2015-02-21").await;
        if known {
            old.expect(200);
        } else {
            old.refused(409, "FeatureVersionMismatch");
        }
    }
}

#[tokio::test]
async fn several_authorizations_are_none() {
    let lazuli = Lazuli::start().await;
    let request = lazuli.client().request("GET", "/devstoreaccount1?comp=list");
    let head = request.head();
    let own = head.lines().find(|line| line.starts_with("authorization")).unwrap();
    for second in [own, "authorization: SharedKey \u{fc}", "Authorization: Bearer x"] {
        let head = format!("{}{second}\r\nconnection: close\r\n\r\n", head.strip_suffix("\r\n").unwrap());
        let mut socket = TcpStream::connect(lazuli.client().address()).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut said = String::new();
        within("the answer", socket.read_to_string(&mut said)).await.unwrap();
        assert!(said.starts_with("HTTP/1.1 400") && said.contains("InvalidAuthenticationInfo"), "{said}");
    }
    lazuli.client().request("GET", "/devstoreaccount1?comp=list").await.expect(200);
}

#[tokio::test]
async fn an_account_may_forbid_public_access_and_keys() {
    let rules = Rules { public_access: false, ..Rules::default() };
    let lazuli = Lazuli::start_with(rules).await;
    let container = lazuli.existing("photos");
    container.create().header("x-ms-blob-public-access", "blob").await.refused(409, "PublicAccessNotPermitted");
    container.create().await.expect(201);
    let set = container.request("PUT", "&comp=acl").header("x-ms-blob-public-access", "container");
    set.await.refused(409, "PublicAccessNotPermitted");
    container.blob("a.jpg").get().unsigned().await.refused(409, "PublicAccessNotPermitted");
    container.blob("a.jpg").put("one").unsigned().await.refused(401, "NoAuthenticationInformation");

    let keyless = Lazuli::start_with(Rules { shared_key: false, ..Rules::default() }).await;
    let container = keyless.existing("photos");
    container.create().await.refused(403, "KeyBasedAuthenticationNotPermitted");
    let sas = Sas::account("rwdlc", "b", "sco").query();
    container.list("").with_sas(&sas).await.refused(403, "KeyBasedAuthenticationNotPermitted");
    let wrong = Sas::account("rwdlc", "b", "sco").signed_by(&Credentials::new("x", "AAAA").unwrap());
    container.list("").with_sas(&wrong).await.refused(403, "AuthenticationFailed");
}

#[tokio::test]
async fn a_signature_for_other_addresses_or_for_tls_does_not_let_in() {
    let directory = tempfile::tempdir().unwrap();
    let free = ["--blobPort", "0", "--queuePort", "0", "--tablePort", "0", "--log-level", "trace"];
    let start = Start::bare().argument("--location").argument(directory.path());
    let server = free.into_iter().fold(start, Start::argument).ready().await;
    let blob = server.service().container("photos").await.blob("a.jpg");
    blob.put("one").await.expect(201);
    let sas = Sas::blob("photos", "a.jpg", "r");
    let cases = [("127.0.0.1", true), ("127.0.0.0-127.0.0.9", true), ("10.0.0.1", false), ("::1", false)];
    for (addresses, admitted) in cases {
        let answer = blob.get().with_sas(&sas.clone().with("sip", addresses).query()).await;
        if admitted {
            answer.expect(200);
        } else {
            let refused = answer.refused(403, "AuthorizationSourceIPMismatch");
            assert!(refused.text().contains("127.0.0.1"), "{}", refused.text());
        }
    }
    let secure = sas.clone().with("spr", "https").query();
    blob.get().with_sas(&secure).await.refused(403, "AuthorizationProtocolMismatch");
    blob.get().with_sas(&sas.with("spr", "https,http").query()).await.expect(200);

    // Whatever is logged, signatures and keys are not in it.
    let signature = secure.split("sig=").nth(1).unwrap().to_owned();
    let ended = server.terminate().await;
    let log = ended.stdout + &ended.stderr;
    assert!(log.contains("AuthorizationProtocolMismatch") || log.contains("status=403"), "{log}");
    let decoded = percent_encoding::percent_decode_str(&signature).decode_utf8().unwrap().into_owned();
    for secret in [signature.as_str(), &decoded, "sig=", lazuli_tests::client::KEY, "SharedKey devstore"] {
        assert!(!log.contains(secret), "the log shows {secret}");
    }
}
