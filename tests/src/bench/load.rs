//! Closed-loop load: each connection sends its next request when the last one is answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{BoxFuture, try_join_all};
use hdrhistogram::Histogram;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::client::{Client, Credentials, Failure};

/// Slowest latency that is told apart.
const LATENCY_MAX: Duration = Duration::from_secs(60);

/// A request of a load; `Work` makes the n-th.
pub(super) struct Demand {
    /// Its method.
    pub(super) method: Method,
    /// Its path below the account, and its query.
    pub(super) path: String,
    /// Headers beside those that every request has.
    pub(super) headers: HeaderMap,
    /// Its body.
    pub(super) body: Bytes,
    /// The only status that counts.
    pub(super) status: StatusCode,
}

/// What a load asks for: request number n, numbered over all connections.
pub(super) type Work = Arc<dyn Fn(u64) -> Demand + Send + Sync>;

/// Put Blob of `body` at `container/prefix<n>`, n below `names`.
pub(super) fn puts(container: &'static str, prefix: &'static str, body: Bytes, names: u64) -> Work {
    let block_blob = (HeaderName::from_static("x-ms-blob-type"), HeaderValue::from_static("BlockBlob"));
    let headers: HeaderMap = [block_blob].into_iter().collect();
    Arc::new(move |n| Demand {
        method: Method::PUT,
        path: format!("{container}/{prefix}{:08}", n % names),
        headers: headers.clone(),
        body: body.clone(),
        status: StatusCode::CREATED,
    })
}

/// Get Blob of `container/prefix<n>`, n below `names`.
pub(super) fn gets(container: &'static str, prefix: &'static str, names: u64) -> Work {
    Arc::new(move |n| Demand {
        method: Method::GET,
        path: format!("{container}/{prefix}{:08}", n % names),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        status: StatusCode::OK,
    })
}

/// The first page of a listing, of 5000 names.
pub(super) fn lists(container: &'static str) -> Work {
    Arc::new(move |_| Demand {
        method: Method::GET,
        path: format!("{container}?restype=container&comp=list&maxresults=5000"),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        status: StatusCode::OK,
    })
}

/// What was measured in some stretch of time.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    /// Answered requests.
    pub(super) count: u64,
    /// From the first request to the last answer.
    pub(super) elapsed: Duration,
    /// Latencies in microseconds.
    pub(super) latencies: Histogram<u64>,
}

impl Slice {
    /// Nothing measured yet.
    pub(super) fn empty() -> Result<Self, Failure> {
        let latencies = Histogram::new_with_max(u64::try_from(LATENCY_MAX.as_micros())?, 3)?;
        Ok(Self { count: 0, elapsed: Duration::ZERO, latencies })
    }

    /// Requests per second.
    pub(super) fn rate(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    /// The median latency.
    pub(super) fn median(&self) -> Duration {
        Duration::from_micros(self.latencies.value_at_quantile(0.5))
    }

    /// Notes one answer.
    pub(super) fn note(&mut self, latency: Duration) {
        self.count += 1;
        self.latencies.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// Takes in what another connection measured in the same stretch.
    pub(super) fn beside(&mut self, other: &Self) -> Result<(), Failure> {
        self.count += other.count;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latencies.add(&other.latencies)?;
        Ok(())
    }

    /// Takes in a later stretch.
    pub(super) fn after(&mut self, other: &Self) -> Result<(), Failure> {
        self.count += other.count;
        self.elapsed += other.elapsed;
        self.latencies.add(&other.latencies)?;
        Ok(())
    }
}

/// Something that can be loaded for a while.
pub(super) trait Contender: Send {
    /// Loads it for `length` and says what was measured.
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>>;
}

/// When a load ends.
#[derive(Clone, Copy)]
enum End {
    At(Instant),
    Number(u64),
}

/// A load over HTTP: connections that stay open from slice to slice.
pub(super) struct Load {
    clients: Vec<Client>,
    work: Work,
    next: Arc<AtomicU64>,
}

impl Load {
    /// A load of `connections` to the server at `address`.
    pub(super) fn new(address: SocketAddr, connections: usize, work: Work) -> Result<Self, Failure> {
        Self::signed(address, &Credentials::development()?, connections, work)
    }

    /// As [`Self::new`], signed as `credentials`.
    pub(super) fn signed(
        address: SocketAddr,
        credentials: &Credentials,
        connections: usize,
        work: Work,
    ) -> Result<Self, Failure> {
        let clients = (0..connections).map(|_| Client::new(address, credentials.clone())).collect::<Result<_, _>>()?;
        Ok(Self { clients, work, next: Arc::default() })
    }

    /// Sends requests number 0 to `count` - 1.
    pub(super) async fn run_all(&mut self, count: u64) -> Result<Slice, Failure> {
        self.next.store(0, Ordering::Relaxed);
        self.run(End::Number(count)).await
    }

    async fn run(&mut self, end: End) -> Result<Slice, Failure> {
        // A task for each connection, so that all cores serve them.
        let tasks = self.clients.drain(..).map(|mut client| {
            let (work, next) = (Arc::clone(&self.work), Arc::clone(&self.next));
            tokio::spawn(async move {
                let slice = drive(&mut client, &work, &next, end).await?;
                Ok::<_, Failure>((client, slice))
            })
        });
        let mut all = Slice::empty()?;
        for outcome in try_join_all(tasks.collect::<Vec<_>>()).await? {
            let (client, slice) = outcome?;
            all.beside(&slice)?;
            self.clients.push(client);
        }
        Ok(all)
    }
}

impl Contender for Load {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        Box::pin(self.run(End::At(Instant::now() + length)))
    }
}

async fn drive(client: &mut Client, work: &Work, next: &AtomicU64, end: End) -> Result<Slice, Failure> {
    let mut slice = Slice::empty()?;
    let begin = Instant::now();
    let mut before = begin;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let over = match end {
            End::At(moment) => before >= moment,
            End::Number(count) => number >= count,
        };
        if over {
            break;
        }
        let demand = work(number);
        client.drain(demand.method, &demand.path, demand.headers, demand.body, demand.status).await?;
        let now = Instant::now();
        slice.note(now - before);
        before = now;
    }
    slice.elapsed = before - begin;
    Ok(slice)
}

/// How long and how often two contenders take turns.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    /// Rounds; each gives both a slice.
    pub(super) rounds: usize,
    /// The length of a slice.
    pub(super) slice: Duration,
    /// How long both run, unmeasured, before the first.
    pub(super) warm_up: Duration,
}

/// What two contenders did in the same minutes.
pub(super) struct Duel {
    /// All slices of the first.
    pub(super) ours: Slice,
    /// All slices of the second.
    pub(super) other: Slice,
    /// The rates' quotient, round by round, ascending.
    pub(super) ratios: Vec<f64>,
}

impl Duel {
    /// The middle round's quotient.
    pub(super) fn ratio(&self) -> f64 {
        self.ratios.get(self.ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Lets two contenders take turns, A B A B, so that what the machine does beside falls on both.
pub(super) async fn duel(ours: &mut dyn Contender, other: &mut dyn Contender, turns: Turns) -> Result<Duel, Failure> {
    ours.slice(turns.warm_up).await?;
    other.slice(turns.warm_up).await?;
    let mut duel = Duel { ours: Slice::empty()?, other: Slice::empty()?, ratios: Vec::new() };
    for _ in 0..turns.rounds {
        let (first, second) = (ours.slice(turns.slice).await?, other.slice(turns.slice).await?);
        duel.ratios.push(first.rate() / second.rate());
        duel.ours.after(&first)?;
        duel.other.after(&second)?;
    }
    duel.ratios.sort_by(f64::total_cmp);
    Ok(duel)
}
