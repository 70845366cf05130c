//! Rows whose work failed by their own fault: passed over for a while, so that all behind them goes on.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::rows::codec;
use crate::store::{Space, StoreError};

/// How long a row is left alone after its work failed.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(15 * 60);

/// The rows of one space that are left alone, each until an instant. A restart tries them all again.
#[derive(Debug)]
pub(super) struct Setbacks {
    space: Space,
    until: Mutex<HashMap<Vec<u8>, Timestamp>>,
}

impl Setbacks {
    pub(super) fn of(space: Space) -> Self {
        Self { space, until: Mutex::default() }
    }

    /// Whether the row at `key` is left alone at `now`.
    pub(super) fn holds(&self, key: &[u8], now: Timestamp) -> bool {
        let mut until = self.until.lock();
        let holds = until.get(key).is_some_and(|until| *until > now);
        if !holds {
            until.remove(key);
        }
        holds
    }

    /// Leaves the row at `key` alone if `error` is its own fault; any other error goes on to the caller.
    pub(super) fn note(&self, key: &[u8], now: Timestamp, error: Error) -> Result<(), Error> {
        if !is_of_a_row(&error) {
            return Err(error);
        }
        tracing::error!(space = ?self.space, key = codec::hex(key), cause = ?error, "background work on a row failed; it waits");
        self.until.lock().insert(key.to_vec(), now.after(RETRY_AFTER));
        Ok(())
    }

    /// Does `work` on all of `rows`; if one of them is at fault, on each by itself, and leaves those alone that fail.
    pub(super) async fn together<R: Clone, W: Future<Output = Result<(), Error>>>(
        &self,
        now: Timestamp,
        rows: Vec<R>,
        key: impl Fn(&R) -> Vec<u8>,
        work: impl Fn(Vec<R>) -> W,
    ) -> Result<(), Error> {
        match work(rows.clone()).await {
            Err(error) if is_of_a_row(&error) => {}
            outcome => return outcome,
        }
        for row in rows {
            let key = key(&row);
            if let Err(error) = work(vec![row]).await {
                self.note(&key, now, error)?;
            }
        }
        Ok(())
    }
}

/// Whether the error can come from the data that a row names: then others may well succeed.
fn is_of_a_row(error: &Error) -> bool {
    match error {
        Error::Storage(error) => match error {
            StoreError::Corrupt { .. }
            | StoreError::Damaged { .. }
            | StoreError::TooLarge { .. }
            | StoreError::Backend(_) => true,
            StoreError::TooOld | StoreError::Busy | StoreError::Full | StoreError::Poisoned(_) => false,
        },
        Error::Refused(_) => true,
        Error::Busy => false,
    }
}
