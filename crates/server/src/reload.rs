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
    /// Whether there was a configuration file: one that is gone is no wish for the defaults.
    pub(crate) has_file: bool,
    pub(crate) accounts: Accounts,
    /// Keeps what is set for accounts.
    pub(crate) engine: Engine,
    /// Where the server listens.
    pub(crate) listen: Vec<Listen>,
    /// The certificate, and where it lies.
    pub(crate) certificate: Option<(Tls, CertificateFiles)>,
}

impl Followed {
    /// Reads again when one of the watched files is another one and stays so for a moment, or at once when `hangup`
    /// comes. Files with a fault change nothing: they are named in the log. Connections that are open go on as they
    /// began.
    pub(crate) async fn follow(mut self, mut hangup: Signal) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut changed = None;
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    if !is_still(&self.seen, &mut changed, states(&self.watched)) {
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
        match Config::reload(&self.flags, &self.listen, self.certificate.is_some(), self.has_file) {
            Ok(Reloaded { accounts, policies, certificate, watched, has_file }) => {
                self.has_file = has_file;
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

/// Whether the files are others than those `seen`, and have not changed since the last look, of which `changed` tells:
/// what is still being written is not to be in effect.
fn is_still(seen: &States, changed: &mut Option<States>, now: States) -> bool {
    let now = (now != *seen).then_some(now);
    let before = std::mem::replace(changed, now);
    changed.is_some() && before == *changed
}

/// What tells one state of a file from the next; none of a file that is not there.
pub(crate) fn states(watched: &[PathBuf]) -> States {
    let state = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    watched.iter().map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_again_once_they_stay_as_they_are() {
        let state = |length: u64| vec![Some((SystemTime::UNIX_EPOCH, length))];
        let (seen, mut changed) = (state(9), None);
        // Truncated, written bit by bit, whole; gone and there again; as it was.
        let looks = [(9, false), (0, false), (4, false), (7, false), (7, true), (9, false), (8, false), (8, true)];
        for (look, (length, due)) in looks.into_iter().enumerate() {
            assert_eq!(is_still(&seen, &mut changed, state(length)), due, "look {look}");
        }
        assert!(!is_still(&seen, &mut changed, vec![None]));
        assert!(is_still(&seen, &mut changed, vec![None]), "a file that is gone is a fault to be told");
    }
}
