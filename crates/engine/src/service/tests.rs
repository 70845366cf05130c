use std::sync::Arc;

use super::properties::{CorsRule, DeleteRetention, IncludeApis, Logging, Metrics, StaticWebsite};
use super::*;
use crate::access::PublicAccess;
use crate::blob::OnContainer;
use crate::clock::{HeldClock, Timestamp};
use crate::condition::Conditions;

async fn engine() -> Engine {
    Engine::memory(Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400)))).await.unwrap()
}

fn account(name: &str) -> AccountName {
    AccountName::parse(name).unwrap()
}

fn full() -> ServiceProperties {
    ServiceProperties {
        logging: Logging { read: true, retention_days: Some(3), ..Logging::default() },
        hour_metrics: Metrics { enabled: Some(IncludeApis(true)), ..Metrics::default() },
        minute_metrics: Metrics { version: Some("1.0".into()), ..Metrics::default() },
        cors: vec![CorsRule { allowed_origins: vec!["*".into()], max_age_seconds: 5, ..CorsRule::default() }],
        default_version: Some("2020-02-10".into()),
        delete_retention: DeleteRetention { days: Some(7), allow_permanent: true },
        website: StaticWebsite { enabled: true, ..StaticWebsite::default() },
    }
}

#[tokio::test]
async fn each_root_is_replaced_alone_and_what_is_left_out_stays() {
    let (engine, dev) = (engine().await, account("dev"));
    let changes = [
        Change { logging: Some(full().logging), ..Change::default() },
        Change { hour_metrics: Some(full().hour_metrics), ..Change::default() },
        Change { minute_metrics: Some(full().minute_metrics), ..Change::default() },
        Change { cors: Some(full().cors), ..Change::default() },
        Change { default_version: full().default_version, ..Change::default() },
        Change { delete_retention: Some(full().delete_retention), ..Change::default() },
        Change { website: Some(full().website), ..Change::default() },
    ];
    let mut seen = vec![get(&engine, &dev, ServiceKind::Blob).unwrap()];
    assert_eq!(seen[0], ServiceProperties::default());
    for change in changes {
        set(&engine, dev.clone(), ServiceKind::Blob, change).await.unwrap();
        let now = get(&engine, &dev, ServiceKind::Blob).unwrap();
        assert!(!seen.contains(&now), "{now:?}");
        seen.push(now);
    }
    assert_eq!(seen.last(), Some(&full()));
    set(&engine, dev.clone(), ServiceKind::Blob, Change { cors: Some(vec![]), ..Change::default() }).await.unwrap();
    assert_eq!(get(&engine, &dev, ServiceKind::Blob).unwrap(), ServiceProperties { cors: vec![], ..full() });
}

#[tokio::test]
async fn accounts_and_services_are_set_apart() {
    let engine = engine().await;
    let change = Change { logging: Some(full().logging), ..Change::default() };
    set(&engine, account("dev"), ServiceKind::Queue, change).await.unwrap();
    let changed = [
        ("dev", ServiceKind::Queue, true),
        ("dev", ServiceKind::Blob, false),
        ("dev", ServiceKind::Table, false),
        ("dev2", ServiceKind::Queue, false),
    ];
    for (name, kind, expected) in changed {
        let properties = get(&engine, &account(name), kind).unwrap();
        assert_eq!(properties != ServiceProperties::default(), expected, "{name} {kind:?}");
    }
}

#[tokio::test]
async fn deleted_blobs_are_kept_only_where_the_blob_service_says_for_how_long() {
    let (engine, dev) = (engine().await, account("dev"));
    let retention = |days, allow_permanent| Change {
        delete_retention: Some(DeleteRetention { days, allow_permanent }),
        ..Change::default()
    };
    let cases = [
        (ServiceKind::Queue, retention(Some(9), true), None),
        (ServiceKind::Blob, retention(Some(7), false), Some(Retention { days: 7, allow_permanent: false })),
        (ServiceKind::Blob, Change::default(), Some(Retention { days: 7, allow_permanent: false })),
        (ServiceKind::Blob, retention(Some(365), true), Some(Retention { days: 365, allow_permanent: true })),
        (ServiceKind::Blob, retention(None, true), None),
    ];
    for (kind, change, expected) in cases {
        set(&engine, dev.clone(), kind, change.clone()).await.unwrap();
        let seen = engine.read(|view| Ok(blob_retention(view, &dev)?)).unwrap();
        assert_eq!(seen, expected, "{kind:?} {change:?}");
    }
}

#[tokio::test]
async fn a_website_that_is_switched_on_has_its_container() {
    let (engine, dev) = (engine().await, account("dev"));
    let web = || ContainerAddress { account: account("dev"), container: ContainerName::web() };
    let on_web = || OnContainer { address: web(), conditions: Conditions::default(), lease: None };
    let website =
        |enabled| Change { website: Some(StaticWebsite { enabled, ..StaticWebsite::default() }), ..Change::default() };
    set(&engine, dev.clone(), ServiceKind::Blob, website(false)).await.unwrap();
    assert!(container::get(&engine, on_web()).await.is_err());
    set(&engine, dev.clone(), ServiceKind::Blob, website(true)).await.unwrap();
    let made = container::get(&engine, on_web()).await.unwrap();
    assert_eq!(made.access.public, PublicAccess::Private);
    set(&engine, dev, ServiceKind::Blob, website(true)).await.unwrap();
    assert_eq!(container::get(&engine, on_web()).await.unwrap().etag, made.etag, "it is left as it is");
}
