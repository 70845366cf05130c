//! Background work, in ticks of bounded size: appointments, and erasing what is dead.
//!
//! Whoever makes work wakes the clockwork; a slow interval is only the fallback, for what becomes due by itself. All
//! that is to be done is in rows, so a restart loses nothing.

mod due;
mod erase;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::engine::{Engine, Shared};
use crate::error::Error;
use crate::payload::refs::Target;
use crate::rows::{due as due_row, refs};
use crate::store::{Direction, KeyRange, Purpose, Space};

/// How long the clockwork sleeps when nobody wakes it.
const INTERVAL: Duration = Duration::from_secs(10);
/// Dead things erased in one tick.
const DEAD_PER_TICK: usize = 64;
/// Dead rows looked at in one tick: those that readers still pin are passed over.
const LOOKED_AT_PER_TICK: usize = 4096;

/// Wakes the background task, and keeps two ticks from running at once.
#[derive(Debug, Default)]
pub(crate) struct Clockwork {
    work: Notify,
    stopped: AtomicBool,
    turn: tokio::sync::Mutex<()>,
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

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// Ticks until the engine is closed or gone.
pub(crate) async fn run(clockwork: Arc<Clockwork>, shared: Weak<Shared>) {
    loop {
        while !clockwork.is_stopped()
            && let Some(shared) = shared.upgrade()
        {
            match tick(&Engine::from(shared)).await {
                Ok(true) => {}
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
        let _ = tokio::time::timeout(INTERVAL, clockwork.work.notified()).await;
    }
}

/// One bounded step; answers whether there is more to do now.
pub(crate) async fn tick(engine: &Engine) -> Result<bool, Error> {
    let _turn = engine.clockwork().turn.lock().await;
    let mut more = engine.blocking(|engine| engine.payloads().give_back()).await?;
    if appointments_are_due(engine)? {
        more |= engine.write(Purpose::Free, |tx| Ok(due::keep(tx)?)).await?;
    }
    erase::seal(engine).await?;
    let dead = engine.blocking(dead).await?;
    more |= !dead.is_empty();
    erase::all(engine, dead).await?;
    Ok(more)
}

fn appointments_are_due(engine: &Engine) -> Result<bool, Error> {
    engine.read(|view| {
        let first = view.scan(Space::Due, KeyRange::all(), Direction::Forward).next().transpose()?;
        match first {
            Some((key, _)) => Ok(due_row::parse(&key)?.0 <= view.now()),
            None => Ok(false),
        }
    })
}

/// What died so long ago that no snapshot shows it, and that nobody reads: in the order of death.
fn dead(engine: &Engine) -> Result<Vec<(u64, Target)>, Error> {
    // First the horizon, then the pins: a reader pins before it lets its snapshot go.
    let horizon = engine.payloads().store().horizon();
    engine.read(|view| {
        let mut dead = Vec::new();
        for pair in view.scan(Space::Dead, KeyRange::all(), Direction::Forward).take(LOOKED_AT_PER_TICK) {
            let (seq, target) = refs::parse_dead(&pair?.0)?;
            if seq > horizon || dead.len() == DEAD_PER_TICK {
                break;
            }
            if !engine.payloads().is_pinned(target) {
                dead.push((seq, target));
            }
        }
        Ok(dead)
    })
}
