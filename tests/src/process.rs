//! The real binary as a child process: start, wait until it is ready, kill, stop, start again on the same directory.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails loudly")]

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lazuli_engine::clock::SystemClock;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::client::Credentials;
use crate::harness::Service;
use crate::queues::Queues;
use crate::signed::Client;
use crate::tables::Tables;

/// What the ready lines say before the address.
const READY: &str = "Azurite Blob service is successfully listening at http";
const QUEUES_READY: &str = "Azurite Queue service is successfully listening at http";
const TABLES_READY: &str = "Azurite Table service is successfully listening at http";
/// How long anything that the process must do may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(120);

/// The binary under test: `LAZULI_BIN`, or the workspace's own, built now if it is not up to date.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| std::env::var_os("LAZULI_BIN").map_or_else(build, PathBuf::from))
}

/// Builds the server in the profile that this test was built in.
fn build() -> PathBuf {
    let test = std::env::current_exe().expect("the test knows its own path");
    let profile = test.ancestors().nth(2).expect("tests lie in <target>/<profile>/deps");
    let mut cargo = std::process::Command::new(option_env!("CARGO").unwrap_or("cargo"));
    cargo.args(["build", "--quiet", "--package", "lazuli-server", "--bin", "lazuli", "--target-dir"]);
    cargo.arg(profile.parent().expect("a profile lies in the target directory"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
    assert!(status.success(), "the server does not build");
    profile.join("lazuli")
}

/// How to start the server.
#[derive(Clone, Debug)]
#[must_use]
pub struct Start {
    program: OsString,
    arguments: Vec<OsString>,
}

impl Start {
    /// On `location`, at free ports, logging what is wrong.
    pub fn at(location: &Path) -> Self {
        let free = ["--blobPort", "0", "--queuePort", "0", "--tablePort", "0", "--log-level", "warn"];
        free.into_iter().fold(Self::bare().argument("--location").argument(location), Self::argument)
    }

    /// With no argument at all.
    pub fn bare() -> Self {
        Self { program: binary().into(), arguments: Vec::new() }
    }

    /// One more argument.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Runs the server under `program`, which is given `arguments`, then the server's path and its arguments.
    pub fn under(mut self, program: impl Into<OsString>, arguments: impl IntoIterator<Item = OsString>) -> Self {
        let server = std::mem::replace(&mut self.program, program.into());
        let own = std::mem::take(&mut self.arguments);
        self.arguments = arguments.into_iter().chain([server]).chain(own).collect();
        self
    }

    /// Starts the process and waits until it says that it is ready, or ends.
    pub async fn run(self) -> Result<Server, Ended> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the server's binary runs");
        let stdout = follow(child.stdout.take().expect("stdout is piped"));
        let stderr = follow(child.stderr.take().expect("stderr is piped"));
        let ready = stdout.line_with(READY).await;
        let Some(ready) = ready else {
            let status = within("the process to end", child.wait()).await.expect("the child can be waited for");
            stderr.ended().await;
            return Err(Ended { status, stdout: stdout.text(), stderr: stderr.text() });
        };
        let queues = stdout.line_with(QUEUES_READY).await.unwrap_or_default();
        let tables = stdout.line_with(TABLES_READY).await.unwrap_or_default();
        let (address, queues) = (address_in(&ready, READY), address_in(&queues, QUEUES_READY));
        let tables = address_in(&tables, TABLES_READY);
        Ok(Server { child, address, queues, tables, stdout, stderr })
    }

    /// As [`Self::run`]; a process that ends instead fails the test.
    pub async fn ready(self) -> Server {
        self.run().await.unwrap_or_else(|ended| panic!("the server ended: {ended:?}"))
    }
}

fn address_in(line: &str, ready: &str) -> SocketAddr {
    let address = line.split_once(ready).and_then(|(_, rest)| rest.split_once("://"));
    let address = address.map_or("", |(_, rest)| rest.trim().trim_end_matches('/'));
    address.parse().unwrap_or_else(|_| panic!("no address in the ready line: {line}"))
}

/// A process that ended instead of serving.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// All that it said on stdout.
    pub stdout: String,
    /// All that it said on stderr.
    pub stderr: String,
}

/// A server that is ready. Dropped, it is killed.
pub struct Server {
    child: Child,
    address: SocketAddr,
    queues: SocketAddr,
    tables: SocketAddr,
    stdout: Output,
    stderr: Output,
}

impl Server {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        Client::new(self.address, Arc::new(SystemClock))
    }

    /// Its blob service.
    pub fn service(&self) -> Service {
        Service::new(self.client())
    }

    /// A client of its queue service.
    pub fn queue_client(&self) -> Client {
        Client::new(self.queues, Arc::new(SystemClock))
    }

    /// Its queue service.
    pub fn queues(&self) -> Queues {
        Queues::new(self.queue_client())
    }

    /// Its table service.
    pub fn tables(&self) -> Tables {
        let credentials = Credentials::development().expect("the published key is one").for_tables();
        Tables::new(Client::new(self.tables, Arc::new(SystemClock)).with_credentials(credentials))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the process was not waited for")
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("the child can be asked").is_none()
    }

    /// `kill -9`, and waits until it is gone.
    pub async fn kill(mut self) {
        self.child.start_kill().expect("a running process can be killed");
        within("the process to die", self.child.wait()).await.expect("the child can be waited for");
    }

    /// Sends a signal, such as `-HUP`.
    pub async fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid().to_string()]).status().await.expect("kill runs");
        assert!(sent.success(), "no signal was sent");
    }

    /// `SIGTERM`; waits until it has ended by itself and says how.
    pub async fn terminate(mut self) -> Ended {
        self.signal("-TERM").await;
        let status = within("the process to end", self.child.wait()).await.expect("the child can be waited for");
        self.stdout.ended().await;
        self.stderr.ended().await;
        Ended { status, stdout: self.stdout.text(), stderr: self.stderr.text() }
    }

    /// Waits until a line of its log (stdout or stderr) holds all of `parts`, and gives that line.
    pub async fn logged(&self, parts: &[&str]) -> String {
        let found = within("a line in the log", async {
            tokio::select! {
                Some(line) = self.stdout.line_with_all(parts) => Some(line),
                Some(line) = self.stderr.line_with_all(parts) => Some(line),
                else => None,
            }
        });
        found.await.unwrap_or_else(|| panic!("the log ended without a line with {parts:?}: {}", self.stderr.text()))
    }
}

/// Awaits `future`, but not for ever.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

/// Lines as they come, and whether more can come.
struct Output(watch::Receiver<(Vec<String>, bool)>);

fn follow(pipe: impl AsyncRead + Unpin + Send + 'static) -> Output {
    let (sender, receiver) = watch::channel((Vec::new(), false));
    tokio::spawn(async move {
        let mut lines = BufReader::new(pipe).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            sender.send_modify(|(seen, _)| seen.push(line));
        }
        sender.send_modify(|(_, ended)| *ended = true);
    });
    Output(receiver)
}

impl Output {
    async fn line_with(&self, part: &str) -> Option<String> {
        self.line_with_all(&[part]).await
    }

    /// The first line that holds all `parts`; none if the stream ends without.
    async fn line_with_all(&self, parts: &[&str]) -> Option<String> {
        let find = |lines: &[String]| lines.iter().find(|line| parts.iter().all(|part| line.contains(part))).cloned();
        let mut lines = self.0.clone();
        let wait = lines.wait_for(|(lines, ended)| *ended || find(lines).is_some());
        let seen = within("a line", wait).await.ok()?;
        find(&seen.0)
    }

    async fn ended(&self) {
        let mut lines = self.0.clone();
        let _ = within("the output to end", lines.wait_for(|(_, ended)| *ended)).await;
    }

    fn text(&self) -> String {
        self.0.borrow().0.join("\n")
    }
}
