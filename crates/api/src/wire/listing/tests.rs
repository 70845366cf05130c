use std::time::Duration;

use lazuli_engine::access::{AccessControl, PublicAccess};
use lazuli_engine::blob::{LeaseView, Marker};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::etag::Etag;
use lazuli_engine::lease::{LeaseDuration, LeaseState};
use lazuli_engine::names::{BlobName, ContainerName};
use lazuli_engine::properties::{HttpProperties, Metadata};
use lazuli_engine::protection::{ImmutabilityPolicy, Protection};
use lazuli_engine::tier::{Rehydration, Tier, TierState};

use super::*;

const AVAILABLE: LeaseView = LeaseView { state: LeaseState::Available, duration: None };

fn august() -> Timestamp {
    Timestamp::from_unix_seconds(1_785_542_400)
}

fn view(name: &str) -> BlobView {
    BlobView {
        created: august().after(Duration::ZERO),
        length: 11,
        http: HttpProperties { content_md5: Some([0; 16]), ..HttpProperties::default() },
        metadata: Metadata(vec![("Key".into(), "a & b".into())]),
        lease: AVAILABLE,
        ..BlobView::new(BlobName::parse(name).unwrap(), Etag::at(august()))
    }
}

fn paging(prefix: &str) -> Paging {
    Paging { prefix: prefix.into(), marker: None, start: None, asked: None, limit: 5000 }
}

fn listed(head: &BlobsHead<'_>, entries: Vec<Entry>, next: Option<Marker>) -> String {
    String::from_utf8(blobs(head, &BlobPage { entries, next, now: august() })).unwrap()
}

fn head(paging: &Paging) -> BlobsHead<'_> {
    BlobsHead {
        endpoint: "http://host/dev/",
        container: "c",
        paging,
        delimiter: None,
        metadata: false,
        copy: false,
        protection: protection::Shown::default(),
        version: Version::NEWEST,
    }
}

#[test]
fn an_empty_listing_is_short() {
    let body = listed(&head(&paging("")), vec![], None);
    let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
         <EnumerationResults ServiceEndpoint=\"http://host/dev/\" ContainerName=\"c\"><Blobs /><NextMarker />\
         </EnumerationResults>";
    assert_eq!(body, expected);
}

#[test]
fn each_kind_is_listed_with_what_only_it_has() {
    let paging = paging("");
    let cases = [
        (BlobKind::Block, "<BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>", ""),
        (BlobKind::Append { blocks: 3, sealed: true }, "<BlobType>AppendBlob</BlobType><LeaseStatus>", "<Sealed>true"),
        (
            BlobKind::Append { blocks: 3, sealed: false },
            "<BlobType>AppendBlob</BlobType><LeaseStatus>",
            "</Properties>",
        ),
        (
            BlobKind::Page { sequence: 9 },
            "<x-ms-blob-sequence-number>9</x-ms-blob-sequence-number><BlobType>PageBlob</BlobType><LeaseStatus>",
            "</Properties>",
        ),
    ];
    for (kind, shown, last) in cases {
        let body = listed(&head(&paging), vec![Entry::Blob(Box::new(BlobView { kind, ..view("a") }))], None);
        assert!(body.contains(shown), "{body}");
        assert!(body.contains(&format!("<ServerEncrypted>true</ServerEncrypted>{last}")), "{body}");
        assert_eq!(body.contains("<OrMetadata />"), kind == BlobKind::Block, "{body}");
    }
}

#[test]
fn a_blob_is_listed_in_the_service_s_order() {
    let paging = Paging { marker: Some("YQ".into()), asked: Some(2), ..paging("p&") };
    let head = BlobsHead { delimiter: Some("/"), metadata: true, copy: true, ..head(&paging) };
    let entries = vec![Entry::Blob(Box::new(view("a<b"))), Entry::Prefix("dir/".into())];
    let body = listed(&head, entries, Some(Marker(b"next".to_vec())));
    let expected = "<Prefix>p&amp;</Prefix><Marker>YQ</Marker><MaxResults>2</MaxResults><Delimiter>/</Delimiter>\
         <Blobs><Blob><Name>a&lt;b</Name><Properties>\
         <Creation-Time>Sat, 01 Aug 2026 00:00:00 GMT</Creation-Time>\
         <Last-Modified>Sat, 01 Aug 2026 00:00:00 GMT</Last-Modified><Etag>0x8DEEF5FD48B0000</Etag>\
         <Content-Length>11</Content-Length><Content-Type>application/octet-stream</Content-Type>\
         <Content-Encoding /><Content-Language /><Content-CRC64 /><Content-MD5>AAAAAAAAAAAAAAAAAAAAAA==</Content-MD5>\
         <Cache-Control /><Content-Disposition /><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>\
         <AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus>\
         <LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties>\
         <Metadata><Key>a &amp; b</Key></Metadata><OrMetadata /></Blob>\
         <BlobPrefix><Name>dir/</Name></BlobPrefix></Blobs><NextMarker>bmV4dA</NextMarker></EnumerationResults>";
    assert!(body.ends_with(expected), "{body}");
}

#[test]
fn metadata_is_shown_only_if_asked_for() {
    let entries = || vec![Entry::Blob(Box::new(view("a")))];
    let paging = paging("");
    assert!(!listed(&head(&paging), entries(), None).contains("<Metadata>"));
    assert!(
        listed(&BlobsHead { metadata: true, copy: true, ..head(&paging) }, entries(), None).contains("<Metadata><Key>")
    );
}

#[test]
fn names_that_xml_cannot_carry_are_escaped_from_2021_on() {
    let cases = [
        ("a\u{1}/b c", "<Name Encoded=\"true\">a%01/b%20c</Name>"),
        ("a\u{ffff}", "<Name Encoded=\"true\">a%EF%BF%BF</Name>"),
        ("grün %41", "<Name>grün %41</Name>"),
    ];
    let paging = paging("");
    for (name, expected) in cases {
        for entry in [Entry::Blob(Box::new(view(name))), Entry::Prefix(name.into())] {
            assert!(listed(&head(&paging), vec![entry], None).contains(expected), "{name:?}");
        }
    }
    let old = BlobsHead { version: Version::V2019_12_12, ..head(&paging) };
    assert!(!listed(&old, vec![Entry::Prefix("a\u{1}".into())], None).contains("Encoded"));
}

#[test]
fn an_uncommitted_blob_has_no_version() {
    let body = listed(&head(&paging("")), vec![Entry::Uncommitted(BlobName::parse("u").unwrap())], None);
    assert!(body.contains("<Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>"), "{body}");
    assert!(!body.contains("Etag") && !body.contains("Last-Modified"), "{body}");
}

#[test]
fn a_state_of_a_blob_says_which_it_is() {
    let at = august().after(Duration::from_nanos(700));
    let base = BlobView { version: Some(at), ..view("a") };
    let deletion = Deletion { at: august(), until: august().after(Duration::from_secs(7 * 86_400 - 1)), id: 1 };
    let leased = "<LeaseStatus>unlocked</LeaseStatus>";
    let gone =
        "<DeletedTime>Sat, 01 Aug 2026 00:00:00 GMT</DeletedTime><RemainingRetentionDays>6</RemainingRetentionDays>";
    let version = "<VersionId>2026-08-01T00:00:00.0000007Z</VersionId>";
    let cases = [
        (Entry::Blob(Box::new(view("a"))), String::new(), true, false),
        (
            Entry::Blob(Box::new(base.clone())),
            format!("{version}<IsCurrentVersion>true</IsCurrentVersion>"),
            true,
            false,
        ),
        (Entry::Blob(Box::new(BlobView { part: Part::Version(at), ..base.clone() })), version.into(), false, false),
        (
            Entry::Blob(Box::new(BlobView { part: Part::Snapshot(at), ..view("a") })),
            "<Snapshot>2026-08-01T00:00:00.0000007Z</Snapshot>".into(),
            false,
            false,
        ),
        (
            Entry::Blob(Box::new(BlobView { part: Part::Version(at), deleted: Some(deletion), ..base.clone() })),
            format!("{version}<Deleted>true</Deleted>"),
            false,
            true,
        ),
        (
            Entry::Blob(Box::new(BlobView { deleted: Some(deletion), ..view("a") })),
            "<Deleted>true</Deleted>".into(),
            false,
            true,
        ),
        (
            Entry::VersionsOnly(Box::new(BlobView { part: Part::Version(at), ..base })),
            "<HasVersionsOnly>true</HasVersionsOnly>".into(),
            true,
            false,
        ),
    ];
    for (entry, expected, is_leased, is_gone) in cases {
        let body = listed(&head(&paging("")), vec![entry], None);
        assert!(body.contains(&format!("<Name>a</Name>{expected}<Properties>")), "{body}");
        assert_eq!((body.contains(leased), body.contains(gone)), (is_leased, is_gone), "{body}");
    }
}

#[test]
fn tier_protection_and_expiry_are_listed_where_they_are_asked_for() {
    let rehydration = Some(Rehydration { target: Tier::Hot, high_priority: false, ready: august() });
    let tier = Some(TierState { rehydration, ..TierState::new(Tier::Archive, august()) });
    let policy = Some(ImmutabilityPolicy { until: august(), locked: true });
    let protection = Protection { policy, hold: Some(false) };
    let blob = BlobView { tier, protection, expires: Some(august()), ..view("a") };
    let date = "Sat, 01 Aug 2026 00:00:00 GMT";
    let tier = format!(
        "<AccessTier>Archive</AccessTier><AccessTierChangeTime>{date}</AccessTierChangeTime>\
         <ArchiveStatus>rehydrate-pending-to-hot</ArchiveStatus><RehydratePriority>Standard</RehydratePriority>\
         <LeaseStatus>"
    );
    let policy = format!(
        "<ImmutabilityPolicyUntilDate>{date}</ImmutabilityPolicyUntilDate>\
         <ImmutabilityPolicyMode>locked</ImmutabilityPolicyMode>"
    );
    let hold = "<LegalHold>false</LegalHold>";
    for (policies, holds) in [(false, false), (true, false), (false, true), (true, true)] {
        let paging = paging("");
        let head = BlobsHead { protection: protection::Shown { policies, holds }, ..head(&paging) };
        let body = listed(&head, vec![Entry::Blob(Box::new(blob.clone()))], None);
        assert!(body.contains(&tier), "{body}");
        assert!(body.contains(&format!("</Last-Modified><Expiry-Time>{date}</Expiry-Time><Etag>")), "{body}");
        assert_eq!((body.contains(&policy), body.contains(hold)), (policies, holds), "{body}");
    }
}

#[test]
fn a_deleted_container_says_when_and_until_when() {
    let view = ContainerView {
        name: ContainerName::parse("photos").unwrap(),
        etag: Etag::at(august()),
        lease: AVAILABLE,
        access: AccessControl::default(),
        metadata: Metadata::default(),
        scope: lazuli_engine::encryption::DefaultScope::default(),
        deleted: Some(Deletion { at: august(), until: august().after(Duration::from_secs(86_400)), id: 1 }),
    };
    let page = ContainerPage { containers: vec![view], next: None, now: august() };
    let body =
        String::from_utf8(containers("http://host/dev/", &paging(""), false, false, Version::NEWEST, &page)).unwrap();
    assert!(body.contains("<Name>photos</Name><Deleted>true</Deleted><Version>01DD2148"), "{body}");
    assert!(body.contains("<RemainingRetentionDays>1</RemainingRetentionDays></Properties>"), "{body}");
}

#[test]
fn a_container_has_a_quoted_etag() {
    let view = ContainerView {
        name: ContainerName::parse("photos").unwrap(),
        etag: Etag::at(august()),
        lease: LeaseView { state: LeaseState::Leased, duration: Some(LeaseDuration::Infinite) },
        access: AccessControl { public: PublicAccess::Blob, policies: vec![] },
        metadata: Metadata::default(),
        scope: lazuli_engine::encryption::DefaultScope::default(),
        deleted: None,
    };
    let page = ContainerPage { containers: vec![view], next: None, now: august() };
    let body = containers("http://host/dev/", &paging(""), true, true, Version::NEWEST, &page);
    let body = String::from_utf8(body).unwrap();
    let expected = "<Containers><Container><Name>photos</Name><Properties>\
         <Last-Modified>Sat, 01 Aug 2026 00:00:00 GMT</Last-Modified><Etag>\"0x8DEEF5FD48B0000\"</Etag>\
         <LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState><LeaseDuration>infinite</LeaseDuration>\
         <PublicAccess>blob</PublicAccess><DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope>\
         <DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride>\
         <HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold>\
         <ImmutableStorageWithVersioningEnabled>true</ImmutableStorageWithVersioningEnabled></Properties>\
         <Metadata /></Container></Containers><NextMarker />";
    assert!(body.contains(expected), "{body}");
}
