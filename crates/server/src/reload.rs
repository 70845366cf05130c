//! Who may come in, while the server runs: accounts and roles follow their files without a restart.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lazuli_api::auth::accounts::Accounts;
use tokio::signal::unix::Signal;
use tokio::time::MissedTickBehavior;

use crate::config::{Config, Flags};

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Reads who may come in again whenever one of the `watched` files is another one, or `hangup` comes. Files with a fault
/// change nothing: they are named in the log.
pub(crate) async fn follow(flags: Flags, watched: Vec<PathBuf>, accounts: Accounts, mut hangup: Signal) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = states(&watched);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let now = states(&watched);
                if now == seen {
                    continue;
                }
                seen = now;
            }
            Some(()) = hangup.recv() => seen = states(&watched),
        }
        match Config::reload(&flags) {
            Ok(others) => {
                accounts.replace(&others);
                tracing::info!("accounts and roles were read again");
            }
            Err(error) => tracing::error!(%error, "accounts and roles stay as they are"),
        }
    }
}

/// What tells one state of a file from the next; none of a file that is not there.
fn states(watched: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let state = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    watched.iter().map(state).collect()
}
