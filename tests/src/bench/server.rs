//! The servers under test, as processes of their own.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::{Client, Credentials, Failure};

/// How long a server may take until it answers.
const READY_MAX: Duration = Duration::from_secs(120);
/// How often a starting server is asked whether it answers.
const READY_POLL: Duration = Duration::from_millis(2);
const NGINX_CONF: &str = include_str!("../../bench/nginx.conf");

/// Which program, and how it is started.
#[derive(Clone, Debug)]
pub(super) enum Program {
    /// Our server binary.
    Lazuli(PathBuf),
    /// Our server binary, spoken to at its queue service.
    LazuliQueues(PathBuf),
    /// Our server binary, spoken to at its table service.
    LazuliTables(PathBuf),
    /// Azurite's blob server: its JavaScript entry point, run by node.
    Azurite(PathBuf),
    /// Azurite's queue server, likewise.
    AzuriteQueues(PathBuf),
    /// Azurite's table server, likewise.
    AzuriteTables(PathBuf),
    /// nginx, serving files.
    Nginx(PathBuf),
}

/// A running server. Killed when dropped.
pub(super) struct Server {
    child: Child,
    program: Program,
    address: SocketAddr,
    directory: PathBuf,
}

impl Server {
    /// Starts `program` over `directory` and waits until it answers.
    pub(super) async fn start(program: &Program, directory: &Path) -> Result<Self, Failure> {
        let address = free_address()?;
        let log = File::create(directory.join("server.log"))?;
        let data = directory.join("data");
        fs::create_dir_all(&data)?;
        let child = command(program, directory, &data, address)?
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{program:?}: {error}"))?;
        let mut server = Self { child, program: program.clone(), address, directory: directory.to_owned() };
        server.ready().await?;
        Ok(server)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The folder whose files it serves or keeps its data in.
    pub(super) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// A client of it.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        Client::new(self.address, self.credentials()?)
    }

    /// What its requests are signed with.
    pub(super) fn credentials(&self) -> Result<Credentials, Failure> {
        let credentials = Credentials::development()?;
        Ok(if self.keeps_tables() { credentials.for_tables() } else { credentials })
    }

    fn keeps_tables(&self) -> bool {
        matches!(self.program, Program::LazuliTables(_) | Program::AzuriteTables(_))
    }

    /// Creates a container.
    pub(super) async fn create_container(&self, name: &str) -> Result<(), Failure> {
        let answer = self.client()?.put(&format!("{name}?restype=container"), &[], "").await?;
        if answer.status != http::StatusCode::CREATED {
            return Err(format!("create container {name}: {} {}", answer.status, answer.text()).into());
        }
        Ok(())
    }

    /// Ends it as a power switch would, as far as a process can be.
    pub(super) fn kill(mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// A number of bytes out of `/proc/<pid>/<file>`: of the line that begins with `field`, which counts in units of
    /// `unit` bytes.
    pub(super) fn process_bytes(&self, file: &str, field: &str, unit: u64) -> Result<u64, Failure> {
        let path = format!("/proc/{}/{file}", self.child.id());
        let text = fs::read_to_string(&path)?;
        let number = text.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next());
        Ok(number.ok_or_else(|| format!("{path} has no {field}"))?.parse::<u64>()? * unit)
    }

    /// Waits for the first answered List Containers, or of the like; of nginx, for any answer.
    async fn ready(&mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        let mut client = self.client()?;
        let (path, accept) = if self.keeps_tables() { ("Tables", "application/json") } else { ("?comp=list", "*/*") };
        loop {
            match client.get(path, &[("accept", accept)]).await {
                Ok(answer) if answer.status.is_success() || matches!(self.program, Program::Nginx(_)) => return Ok(()),
                Ok(_) | Err(_) => {}
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{:?} ended with {status}: {}", self.program, self.log()).into());
            }
            if begin.elapsed() > READY_MAX {
                return Err(format!("{:?} does not answer: {}", self.program, self.log()).into());
            }
            tokio::time::sleep(READY_POLL).await;
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("server.log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx's workers outlive a killed master: it has to be asked. An error here means that it is gone already.
        if let Program::Nginx(binary) = &self.program {
            let mut stop = Command::new(binary);
            stop.arg("-p").arg(&self.directory).args(["-c", "nginx.conf", "-s", "stop"]);
            let _ = stop.stderr(Stdio::null()).status();
        } else {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn command(program: &Program, directory: &Path, data: &Path, address: SocketAddr) -> Result<Command, Failure> {
    let port = address.port().to_string();
    Ok(match program {
        Program::Lazuli(binary) | Program::LazuliQueues(binary) | Program::LazuliTables(binary) => {
            let mut command = Command::new(binary);
            command.arg("--location").arg(data).arg("--silent");
            for other in ["blob", "queue", "table"] {
                let port = if other == service(program) { &port } else { "0" };
                command.args([&format!("--{other}Port"), port]);
            }
            command
        }
        Program::Azurite(script) | Program::AzuriteQueues(script) | Program::AzuriteTables(script) => {
            let service = service(program);
            let mut command = Command::new("node");
            command.arg(script).arg("--location").arg(data);
            command.args([&format!("--{service}Host"), "127.0.0.1", &format!("--{service}Port"), &port]);
            command.args(["--skipApiVersionCheck", "--silent", "--loose", "--disableTelemetry"]);
            command
        }
        Program::Nginx(binary) => {
            let conf = NGINX_CONF.replace("{root}", &data.to_string_lossy()).replace("{port}", &port);
            fs::write(directory.join("nginx.conf"), conf)?;
            let mut command = Command::new(binary);
            command.arg("-p").arg(directory).args(["-c", "nginx.conf"].map(OsStr::new));
            command
        }
    })
}

/// The service that is spoken to, as both programs call it.
fn service(program: &Program) -> &'static str {
    match program {
        Program::LazuliQueues(_) | Program::AzuriteQueues(_) => "queue",
        Program::LazuliTables(_) | Program::AzuriteTables(_) => "table",
        Program::Lazuli(_) | Program::Azurite(_) | Program::Nginx(_) => "blob",
    }
}

/// A port that was free a moment ago.
fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// A new folder below `parent`, gone when dropped.
pub(super) fn scratch(parent: &Path) -> Result<TempDir, Failure> {
    fs::create_dir_all(parent)?;
    // Absolute, for nginx reads relative paths from its own prefix.
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(parent.canonicalize()?)?)
}
