//! A service to test: containers and blobs in one line each, over a real socket.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lazuli_api::auth::accounts::{Accounts, Rules};
use lazuli_api::copier::Copier;
use lazuli_api::remote::Remote;
use lazuli_api::serve::{App, Options, filter};
use lazuli_api::target;
use lazuli_engine::Engine;
use lazuli_engine::clock::{Clock as _, HeldClock, SystemClock};
use lazuli_engine::names::AccountName;
use lazuli_engine::policy::{AccountPolicy, Policies};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client::{ACCOUNT, Credentials, KEY};
use crate::queues::Queues;
use crate::signed::{Client, Request, encode};
use crate::tables::Tables;

/// A second account of servers in this process, with the same key.
pub const OTHER_ACCOUNT: &str = "other";

/// A server in this process: engine in memory, held clock, free port, development account. Dropped, it stops.
pub struct Lazuli {
    /// The time that the engine sees.
    pub clock: Arc<HeldClock>,
    engine: Engine,
    service: Service,
    queues: Queues,
    tables: Tables,
    tasks: Vec<JoinHandle<()>>,
    _copier: Copier,
}

impl Lazuli {
    /// Starts it.
    pub async fn start() -> Self {
        Self::start_with(Rules::default()).await
    }

    /// Starts it with an account that lets clients in by `rules`.
    pub async fn start_with(rules: Rules) -> Self {
        let accounts = Accounts::default().with_rules(ACCOUNT, &[KEY], rules);
        let accounts = accounts.and_then(|accounts| accounts.with(OTHER_ACCOUNT, &[KEY])).expect("both are accounts");
        Self::start_admitting(accounts).await
    }

    /// Starts it for those who may come in, the development account among them.
    pub async fn start_admitting(accounts: Accounts) -> Self {
        let clock = Arc::new(HeldClock::at(SystemClock.now()));
        let engine = Engine::memory(Arc::clone(&clock) as _).await.expect("memory can be opened");
        let app = app_in_memory(engine.clone(), Arc::clone(&clock), accounts);
        let copier = Copier::start(engine.clone(), app.remote.clone());
        let (blobs, blob_task) = serve(&app, target::Service::Blob).await;
        let (queues, queue_task) = serve(&app, target::Service::Queue).await;
        let (tables, table_task) = serve(&app, target::Service::Table).await;
        let service = Service::new(Client::new(blobs, Arc::clone(&clock) as _));
        let queues = Queues::new(Client::new(queues, Arc::clone(&clock) as _));
        let credentials = Credentials::development().expect("the published key is one").for_tables();
        let tables = Client::new(tables, Arc::clone(&clock) as _).with_credentials(credentials);
        let tables = Tables::new(tables);
        let tasks = vec![blob_task, queue_task, table_task];
        Self { clock, engine, service, queues, tables, tasks, _copier: copier }
    }

    /// Its queue service.
    pub const fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Its table service.
    pub const fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Sets what the owner of the account decided.
    pub fn set_policy(&self, policy: AccountPolicy) {
        let account = AccountName::parse(ACCOUNT).expect("the published account is one");
        self.engine.set_policies(Policies::default().with(account, policy));
    }

    /// Lets the engine do all background work that is due.
    pub async fn settle(&self) {
        self.engine.settle().await.expect("memory does not fail");
    }
}

impl std::ops::Deref for Lazuli {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl Drop for Lazuli {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The one place that knows how the parts are put together.
fn app_in_memory(engine: Engine, clock: Arc<HeldClock>, accounts: Accounts) -> Arc<App> {
    Arc::new(App { engine, accounts, clock, options: Options::default(), remote: Remote::default() })
}

async fn serve(app: &Arc<App>, service: target::Service) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
    let address = listener.local_addr().expect("a bound socket has an address");
    let server = warp::serve(filter(Arc::clone(app), service)).incoming(listener);
    (address, tokio::spawn(server.run()))
}

/// The blob service of one account.
#[derive(Clone)]
pub struct Service {
    client: Client,
    account: &'static str,
}

impl Service {
    /// The service that `client` speaks to.
    pub const fn new(client: Client) -> Self {
        Self { client, account: ACCOUNT }
    }

    /// The service of [`OTHER_ACCOUNT`].
    pub fn of_other(&self) -> Self {
        let credentials = Credentials::new(OTHER_ACCOUNT, KEY).expect("the published key is one");
        Self { client: self.client.clone().with_credentials(credentials), account: OTHER_ACCOUNT }
    }

    /// The client.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Creates a container.
    pub async fn container(&self, name: &str) -> Container {
        let container = self.existing(name);
        container.create().await.expect(201);
        container
    }

    /// A container that is there already, or not yet.
    pub fn existing(&self, name: &str) -> Container {
        Container { client: self.client.clone(), path: format!("/{}/{name}", self.account) }
    }
}

/// A container.
#[derive(Clone)]
pub struct Container {
    client: Client,
    path: String,
}

impl Container {
    /// Create Container.
    pub fn create(&self) -> Request {
        self.request("PUT", "")
    }

    /// Delete Container.
    pub fn delete(&self) -> Request {
        self.request("DELETE", "")
    }

    /// List Blobs, with more of the query in `query`, which begins with `&` or is empty.
    pub fn list(&self, query: &str) -> Request {
        self.request("GET", &format!("&comp=list{query}"))
    }

    /// A blob in it.
    pub fn blob(&self, name: &str) -> Blob {
        Blob { client: self.client.clone(), path: format!("{}/{}", self.path, encode(name)) }
    }

    /// A request on the container.
    pub fn request(&self, method: &str, query: &str) -> Request {
        self.client.request(method, format!("{}?restype=container{query}", self.path))
    }
}

/// A blob.
#[derive(Clone, Debug)]
pub struct Blob {
    client: Client,
    path: String,
}

impl Blob {
    /// Its account, container and name as they stand in a URL.
    pub fn name(&self) -> &str {
        &self.path
    }

    /// Put Blob.
    pub fn put(&self, content: impl Into<Bytes>) -> Request {
        self.request("PUT", "").header("x-ms-blob-type", "BlockBlob").body(content)
    }

    /// Get Blob.
    pub fn get(&self) -> Request {
        self.request("GET", "")
    }

    /// Get Blob Properties.
    pub fn head(&self) -> Request {
        self.request("HEAD", "")
    }

    /// Delete Blob.
    pub fn delete(&self) -> Request {
        self.request("DELETE", "")
    }

    /// Set Blob Metadata to one pair.
    pub fn set_metadata(&self, name: &str, value: &str) -> Request {
        self.request("PUT", "?comp=metadata").header(&format!("x-ms-meta-{name}"), value)
    }

    /// Put Block; `id` is encoded here.
    pub fn put_block(&self, id: &str, content: impl Into<Bytes>) -> Request {
        let id = encode(&STANDARD.encode(id)).replace('/', "%2F");
        self.request("PUT", &format!("?comp=block&blockid={id}")).body(content)
    }

    /// Put Block List of the latest blocks.
    pub fn put_block_list(&self, ids: &[&str]) -> Request {
        let lines: String = ids.iter().map(|id| format!("<Latest>{}</Latest>", STANDARD.encode(id))).collect();
        let list = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{lines}</BlockList>");
        self.request("PUT", "?comp=blocklist").body(list)
    }

    /// Get Block List, all of it.
    pub fn block_list(&self) -> Request {
        self.request("GET", "?comp=blocklist&blocklisttype=all")
    }

    /// Put Blob, an append blob.
    pub fn create_append(&self) -> Request {
        self.request("PUT", "").header("x-ms-blob-type", "AppendBlob")
    }

    /// Append Block.
    pub fn append(&self, block: impl Into<Bytes>) -> Request {
        self.request("PUT", "?comp=appendblock").body(block)
    }

    /// Append Blob Seal.
    pub fn seal(&self) -> Request {
        self.request("PUT", "?comp=seal")
    }

    /// Put Blob, a page blob.
    pub fn create_pages(&self, length: u64) -> Request {
        let request = self.request("PUT", "").header("x-ms-blob-type", "PageBlob");
        request.header("x-ms-blob-content-length", length.to_string())
    }

    /// Put Page: `content` from byte `first` on.
    pub fn put_pages(&self, first: u64, content: impl Into<Bytes>) -> Request {
        let content = content.into();
        let range = format!("bytes={first}-{}", first + content.len() as u64 - 1);
        let request = self.request("PUT", "?comp=page").header("x-ms-page-write", "update");
        request.header("x-ms-range", range).body(content)
    }

    /// Clear Pages: `length` bytes from byte `first` on.
    pub fn clear_pages(&self, first: u64, length: u64) -> Request {
        let request = self.request("PUT", "?comp=page").header("x-ms-page-write", "clear");
        request.header("x-ms-range", format!("bytes={first}-{}", first + length - 1))
    }

    /// Get Page Ranges, with more of the query in `query`, which begins with `&` or is empty.
    pub fn page_list(&self, query: &str) -> Request {
        self.request("GET", &format!("?comp=pagelist{query}"))
    }

    /// Set Blob Properties: the length of a page blob.
    pub fn resize(&self, length: u64) -> Request {
        self.request("PUT", "?comp=properties").header("x-ms-blob-content-length", length.to_string())
    }

    /// Acquires a lease of `seconds`, -1 for an endless one.
    pub fn acquire_lease(&self, seconds: i32) -> Request {
        let request = self.request("PUT", "?comp=lease").header("x-ms-lease-action", "acquire");
        request.header("x-ms-lease-duration", seconds.to_string())
    }

    /// A request on the blob; `query` begins with a question mark or is empty.
    pub fn request(&self, method: &str, query: &str) -> Request {
        self.client.request(method, format!("{}{query}", self.path))
    }
}
