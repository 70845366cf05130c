//! From a configuration to services that answer, or one line that says why not.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lazuli_api::copier::Copier;
use lazuli_api::remote::Remote;
use lazuli_api::serve::{App, Options as ServeOptions};
use lazuli_api::target::Front;
use lazuli_engine::clock::{Clock, SystemClock};
use lazuli_engine::{Durability as EngineDurability, Engine, Options};
use lazuli_server::sync_override;

use crate::config::{Config, Durability, Listen};
use crate::listen::Door;
use crate::tls::Tls;

/// Why the server does not start: one line for whoever started it.
#[derive(Debug)]
pub(crate) struct StartError(String);

impl StartError {
    pub(crate) fn new(line: impl Into<String>) -> Self {
        Self(line.into())
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A service's port, taken.
pub(crate) struct Bound {
    pub(crate) front: Front,
    /// The host as it was configured: what the ready line says.
    pub(crate) host: String,
    /// How long a connection may stay open between two requests.
    pub(crate) keep_alive: Duration,
    pub(crate) door: Door,
}

/// Everything that answers needs.
pub(crate) struct Started {
    pub(crate) app: Arc<App>,
    /// Carries copies on as long as it is held.
    _copier: Copier,
    pub(crate) bound: Vec<Bound>,
    /// The certificate; without one nothing is encrypted.
    pub(crate) tls: Option<Tls>,
    /// Held as long as the process uses the data directory.
    _lock: Option<File>,
}

/// Reads the certificate, takes the ports, then the data directory.
pub(crate) async fn start(config: Config) -> Result<Started, StartError> {
    let tls = config.certificate.as_ref().map(Tls::load).transpose()?;
    let mut bound = Vec::new();
    for listen in &config.listen {
        bound.push(bind(listen).await?);
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (engine, lock) = match &config.location {
        Some(location) => {
            let lock = lock(location)?;
            (open(location, &config, Arc::clone(&clock)).await?, Some(lock))
        }
        None => {
            let engine = Engine::memory(Arc::clone(&clock)).await;
            (engine.map_err(|error| StartError::new(format!("no storage in memory: {error}")))?, None)
        }
    };
    engine.set_policies(config.policies);
    let options = ServeOptions {
        strict_versions: config.strict_versions,
        path_style_only: config.path_style_only,
        body_idle: config.idle_timeout,
    };
    let app = Arc::new(App { engine, accounts: config.accounts, clock, options, remote: Remote::default() });
    let copier = Copier::start(app.engine.clone(), app.remote.clone());
    Ok(Started { app, _copier: copier, bound, tls, _lock: lock })
}

async fn bind(listen: &Listen) -> Result<Bound, StartError> {
    let Listen { front, host, port, keep_alive } = listen;
    let door = Door::bind(host, *port).await;
    let door = door.map_err(|error| StartError::new(format!("the {} service: {error}", front.name())))?;
    Ok(Bound { front: *front, host: host.clone(), keep_alive: *keep_alive, door })
}

/// Keeps every other process out of the data directory.
fn lock(location: &Path) -> Result<File, StartError> {
    let failed = |error| StartError::new(format!("cannot use the data directory {}: {error}", location.display()));
    std::fs::create_dir_all(location).map_err(failed)?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(location.join("lock"));
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(StartError::new(format!("the data directory {} is in use by another process", location.display())))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

async fn open(location: &Path, config: &Config, clock: Arc<dyn Clock>) -> Result<Engine, StartError> {
    let durable = config.durability == Durability::Sync;
    sync_override::wait_for_disk(durable);
    let options = Options {
        durability: if durable { EngineDurability::Sync } else { EngineDurability::Process },
        cache_bytes: config.cache_bytes,
        reserve_bytes: config.reserve_bytes,
        group_jobs_max: config.group_jobs_max,
        on_poison: Arc::new(end_process),
        sync_probe: durable.then_some(sync_override::calls as fn() -> u64),
        ..Options::new(location, clock)
    };
    let opened = Engine::open(options).await;
    opened.map_err(|error| StartError::new(format!("cannot open the data directory {}: {error}", location.display())))
}

/// What is on disk is unknown after a failed sync; only a fresh start finds out.
fn end_process(reason: &str) {
    tracing::error!(reason, "a write failed and the state on disk is unknown: ending, a restart recovers");
    std::process::exit(70);
}
