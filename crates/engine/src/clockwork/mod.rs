//! Background work, in ticks of bounded size: appointments, and erasing what is dead.
//!
//! Whoever makes work wakes the clockwork; a slow interval is only the fallback, for what becomes due by itself. All
//! that is to be done is in rows, so a restart loses nothing.

mod due;
mod erase;
mod feeds;
mod setbacks;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::clock::Timestamp;
use crate::engine::{Engine, Shared};
use crate::error::Error;
use crate::payload::refs::Target;
use crate::rows::refs;
use crate::store::{Direction, KeyRange, Space};
use setbacks::Setbacks;

/// How long the clockwork sleeps when nobody wakes it.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long it sleeps while somebody wants a change feed.
const FEED_INTERVAL: Duration = Duration::from_secs(1);
/// Dead things erased in one tick.
const DEAD_PER_TICK: usize = 64;

/// Wakes the background task, and keeps two ticks from running at once.
#[derive(Debug)]
pub(crate) struct Clockwork {
    work: Notify,
    stopped: AtomicBool,
    turn: tokio::sync::Mutex<()>,
    due: Setbacks,
    dead: Setbacks,
    feeds: Setbacks,
    /// The key of the last dead body whose bytes were given back while its rows could not be erased.
    given_back: Mutex<Option<Vec<u8>>>,
    /// Whether changes may wait of accounts that want no change feed any more.
    leftovers: AtomicBool,
}

impl Default for Clockwork {
    fn default() -> Self {
        let of = Setbacks::of;
        let (due, dead, feeds) = (of(Space::Due), of(Space::Dead), of(Space::Feeds));
        let (stopped, leftovers) = (AtomicBool::new(false), AtomicBool::new(true));
        let (work, turn, given_back) = (Notify::default(), tokio::sync::Mutex::default(), Mutex::default());
        Self { work, stopped, turn, due, dead, feeds, given_back, leftovers }
    }
}

impl Clockwork {
    /// There may be something to do.
    pub(crate) fn wake(&self) {
        self.work.notify_one();
    }

    /// No further tick begins.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    /// Another account may want no change feed any more, while changes of it wait.
    pub(crate) fn expect_leftovers(&self) {
        self.leftovers.store(true, Ordering::Release);
    }

    /// Whether changes may wait of accounts that want no change feed any more.
    pub(crate) fn may_have_leftovers(&self) -> bool {
        self.leftovers.load(Ordering::Acquire)
    }

    /// No such changes wait.
    pub(crate) fn has_no_leftovers(&self) {
        self.leftovers.store(false, Ordering::Release);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// Ticks until the engine is closed or gone.
pub(crate) async fn run(clockwork: Arc<Clockwork>, shared: Weak<Shared>) {
    loop {
        let mut pause = INTERVAL;
        while !clockwork.is_stopped()
            && let Some(shared) = shared.upgrade()
        {
            let engine = Engine::from(shared);
            if !engine.with_change_feed().is_empty() {
                pause = FEED_INTERVAL;
            }
            let begun = Instant::now();
            let outcome = tick(&engine).await;
            drop(engine);
            match outcome {
                // Half of the time is left to requests, however much there is to do.
                Ok(true) => tokio::time::sleep(begun.elapsed()).await,
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(%error, cause = ?error, "background work failed; it is tried again later");
                    break;
                }
            }
        }
        if clockwork.is_stopped() || shared.strong_count() == 0 {
            return;
        }
        // Time may run out with nobody having woken us: then the interval has come.
        let _ = tokio::time::timeout(pause, clockwork.work.notified()).await;
    }
}

/// One bounded step; answers whether there is more to do now.
pub(crate) async fn tick(engine: &Engine) -> Result<bool, Error> {
    let _turn = engine.clockwork().turn.lock().await;
    let mut more = engine.payloads().give_back().await?;
    // Before all that writes: on a full disk this makes room for it.
    let (now, dead) = dead(engine, KeyRange::all()).await?;
    more |= !dead.is_empty();
    erase::all(engine, now, dead).await?;
    more |= due::keep(engine).await?;
    more |= feeds::publish(engine).await?;
    erase::seal(engine).await?;
    Ok(more)
}

/// What of a range of the dead died so long ago that no snapshot shows it, and that nobody reads: in the order of death. What is passed over
/// is bounded by the readers there are; a bound on the rows looked at would let them hide all that is behind.
async fn dead(engine: &Engine, range: KeyRange) -> Result<(Timestamp, Vec<(u64, Target)>), Error> {
    // First the horizon, then the pins: a reader pins before it lets its snapshot go.
    let horizon = engine.payloads().store().horizon();
    let shown = engine.clone();
    engine
        .scan(move |view| {
            let (now, setbacks) = (view.now(), &shown.clockwork().dead);
            let mut dead = Vec::new();
            for pair in view.scan(Space::Dead, range.clone(), Direction::Forward) {
                let (key, _) = pair?;
                match refs::parse_dead(&key) {
                    Ok((seq, _)) if seq > horizon => break,
                    _ if setbacks.holds(&key, now) => {}
                    Ok((_, target)) if shown.payloads().is_pinned(target) => {}
                    Ok(found) => dead.push(found),
                    Err(error) => setbacks.note(&key, now, error.into())?,
                }
                if dead.len() == DEAD_PER_TICK {
                    break;
                }
            }
            Ok((now, dead))
        })
        .await
}
