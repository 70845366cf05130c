use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex as StdMutex;

use tokio::net::TcpListener;
use warp::Filter as _;

use super::*;

const KEYS: &str = include_str!("../fixtures/keys.json");

/// An issuer whose answers can be changed, and how often it was asked.
#[derive(Clone, Default)]
struct Site(Arc<StdMutex<(Option<String>, usize)>>);

impl Site {
    fn publish(&self, document: &str) {
        self.0.lock().unwrap().0 = Some(document.to_owned());
    }

    fn vanish(&self) {
        self.0.lock().unwrap().0 = None;
    }

    fn asked(&self) -> usize {
        self.0.lock().unwrap().1
    }

    async fn serve(&self) -> SocketAddr {
        let site = self.clone();
        let answer = warp::path("keys").map(move || {
            let mut state = site.0.lock().unwrap();
            state.1 += 1;
            match state.0.clone() {
                Some(document) => http::Response::new(document),
                None => http::Response::builder().status(500).body(String::new()).unwrap(),
            }
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let discovery = format!(r#"{{"issuer":"x","jwks_uri":"http://{address}/keys"}}"#);
        let astray = r#"{"jwks_uri":"http://issuer.example/keys"}"#;
        let discovery = warp::path("discovery").map(move || discovery.clone());
        let filter = answer.or(discovery).or(warp::path("astray").map(move || astray));
        tokio::spawn(warp::serve(filter).incoming(listener).run());
        address
    }
}

/// Lets time go by, but not while the network is waited for.
async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn ids(keys: Option<Arc<Keys>>) -> Vec<String> {
    keys.into_iter().flat_map(Arc::unwrap_or_clone).filter_map(|(id, _)| id).collect()
}

/// The keys, each under an id that begins anew.
fn renamed(with: &str) -> String {
    KEYS.replace("\"rsa\"", &format!("\"{with}\""))
}

#[tokio::test]
async fn keys_are_fetched_when_a_token_names_another_one_but_not_often() {
    let site = Site::default();
    site.publish(KEYS);
    let address = site.serve().await;
    let published = Published::at(&format!("http://{address}/discovery")).unwrap();
    assert!(ids(published.for_key(Some("rsa")).await).contains(&"rsa".to_owned()));
    published.for_key(Some("rsa")).await;
    published.for_key(None).await;
    assert_eq!(site.asked(), 1);

    site.publish(&renamed("new"));
    for _ in 0..3 {
        assert!(!ids(published.for_key(Some("new")).await).contains(&"new".to_owned()));
    }
    assert_eq!(site.asked(), 1);
    later(PAUSE).await;
    assert!(ids(published.for_key(Some("new")).await).contains(&"new".to_owned()));
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn what_was_fetched_is_kept_though_its_issuer_fails() {
    let site = Site::default();
    let address = site.serve().await;
    let published = Published::at(&format!("http://{address}/keys")).unwrap();
    assert!(published.for_key(None).await.is_none());
    assert!(published.for_key(None).await.is_none());
    assert_eq!(site.asked(), 1);
    later(PAUSE_FAILED).await;
    site.publish(KEYS);
    assert!(published.for_key(None).await.is_some());

    for broken in ["", "{}", "[]", r#"{"keys":[]}"#, r#"{"jwks_uri":1}"#] {
        later(PAUSE).await;
        site.publish(broken);
        let asked = site.asked();
        assert!(ids(published.for_key(Some("unknown")).await).contains(&"rsa".to_owned()), "{broken}");
        assert_eq!(site.asked(), asked + 1, "{broken}");
    }
    site.vanish();
    later(AGE_MAX).await;
    assert!(published.for_key(Some("rsa")).await.is_some());
}

#[tokio::test]
async fn old_keys_are_fetched_again_beside_the_requests() {
    let site = Site::default();
    site.publish(KEYS);
    let address = site.serve().await;
    let published = Published::at(&format!("http://{address}/keys")).unwrap();
    published.refresh().await;
    site.publish(&renamed("new"));
    later(AGE_MAX + PAUSE).await;
    assert!(ids(published.for_key(Some("rsa")).await).contains(&"rsa".to_owned()));
    while !ids(published.kept().map(|kept| kept.keys)).contains(&"new".to_owned()) {
        tokio::task::yield_now().await;
    }
    assert_eq!(site.asked(), 2);
}

#[tokio::test]
async fn keys_come_from_where_nobody_can_replace_them() {
    let addresses = [
        ("https://issuer.example/keys", true),
        ("http://127.0.0.1:1/keys", true),
        ("http://[::1]:1/keys", true),
        ("http://localhost/keys", true),
        ("http://issuer.example/keys", false),
        ("http://10.0.0.1/keys", false),
        ("http://localhost.example/keys", false),
        ("ftp://localhost/keys", false),
        ("keys.json", false),
        ("", false),
    ];
    for (address, expected) in addresses {
        assert_eq!(Published::at(address).is_ok(), expected, "{address}");
    }
    let address = Site::default().serve().await;
    let astray = Published::at(&format!("http://{address}/astray")).unwrap();
    assert!(astray.fetch().await.unwrap_err().contains("http://issuer.example/keys"));
    assert!(astray.for_key(None).await.is_none());
}
