//! Who may come in, and how, while the server runs: accounts with their settings, roles and the certificate follow their
//! files without a restart.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lazuli_api::auth::accounts::Accounts;
use lazuli_engine::Engine;
use tokio::signal::unix::Signal;
use tokio::time::MissedTickBehavior;

use crate::config::{Config, Flags, Listen, Reloaded};
use crate::tls::{CertificateFiles, Tls};

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Of each file, what tells one state of it from the next.
pub(crate) type States = Vec<Option<(SystemTime, u64)>>;

/// What is read again.
pub(crate) struct Followed {
    /// Says where everything lies.
    pub(crate) flags: Flags,
    /// The files that say who may come in, and how.
    pub(crate) watched: Vec<PathBuf>,
    /// How they were when they were read: before anybody could be told that the server is ready.
    pub(crate) seen: States,
    pub(crate) accounts: Accounts,
    /// Keeps what is set for accounts.
    pub(crate) engine: Engine,
    /// Where the server listens.
    pub(crate) listen: Vec<Listen>,
    /// The certificate, and where it lies.
    pub(crate) certificate: Option<(Tls, CertificateFiles)>,
}

impl Followed {
    /// Reads again whenever one of the watched files is another one, or `hangup` comes. Files with a fault change
    /// nothing: they are named in the log. Connections that are open go on as they began.
    pub(crate) async fn follow(mut self, mut hangup: Signal) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    if states(&self.watched) == self.seen {
                        continue;
                    }
                }
                Some(()) = hangup.recv() => {}
            }
            let now = states(&self.watched);
            let watched = self.watched.clone();
            self.reload();
            // What changed while it was read is read once more.
            self.seen = if self.watched == watched { now } else { states(&self.watched) };
        }
    }

    fn reload(&mut self) {
        match Config::reload(&self.flags, &self.listen, self.certificate.is_some()) {
            Ok(Reloaded { accounts, policies, certificate, watched }) => {
                self.accounts.replace(&accounts);
                self.engine.set_policies(policies);
                self.watched = watched;
                if let (Some((_, files)), Some(others)) = (&mut self.certificate, certificate) {
                    *files = others;
                }
                tokio::spawn(fetch_keys(self.accounts.clone()));
                tracing::info!("accounts and roles were read again");
            }
            Err(error) => tracing::error!(%error, "accounts and roles stay as they are"),
        }
        // A fault in what was said of accounts does not keep the certificate from being renewed.
        let Some((tls, files)) = &self.certificate else { return };
        // A password takes its time.
        match tokio::task::block_in_place(|| tls.replace(files)) {
            Ok(()) => tracing::info!("the certificate was read again"),
            Err(error) => tracing::error!(%error, "the certificate stays as it is"),
        }
    }
}

/// Fetches the keys of tokens, if their issuer publishes them, before the first token comes.
pub(crate) async fn fetch_keys(accounts: Accounts) {
    if let Some(issuer) = accounts.issuer() {
        issuer.prepare().await;
    }
}

/// What tells one state of a file from the next; none of a file that is not there.
pub(crate) fn states(watched: &[PathBuf]) -> States {
    let state = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    watched.iter().map(state).collect()
}
