//! Time. The engine reads the wall clock only through [`Clock`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// 100-ns ticks of one second.
pub const TICKS_PER_SECOND: u64 = 10_000_000;
/// Ticks between 0001-01-01 and 1970-01-01.
const UNIX_EPOCH_TICKS: u64 = 621_355_968_000_000_000;

/// An instant: 100-ns ticks since 0001-01-01T00:00:00Z, as the service counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The instant `ticks` after 0001-01-01.
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks)
    }

    /// Ticks since 0001-01-01.
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// The instant `seconds` after 1970-01-01.
    pub const fn from_unix_seconds(seconds: u64) -> Self {
        Self(UNIX_EPOCH_TICKS.saturating_add(seconds.saturating_mul(TICKS_PER_SECOND)))
    }

    /// Whole seconds since 1970-01-01; 0 for anything earlier.
    pub const fn unix_seconds(self) -> u64 {
        self.0.saturating_sub(UNIX_EPOCH_TICKS) / TICKS_PER_SECOND
    }

    /// The same instant without its part of a second: what Last-Modified carries.
    #[must_use]
    pub const fn whole_second(self) -> Self {
        Self(self.0 - self.0 % TICKS_PER_SECOND)
    }

    /// This instant moved `duration` into the future, at most to the end of time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let ticks = u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ticks))
    }

    /// How long after `earlier` this instant lies; zero if it does not.
    pub const fn since(self, earlier: Self) -> Duration {
        let ticks = self.0.saturating_sub(earlier.0);
        Duration::from_secs(ticks / TICKS_PER_SECOND)
            .saturating_add(Duration::from_nanos(ticks % TICKS_PER_SECOND * 100))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        Self(UNIX_EPOCH_TICKS).after(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

/// Where the time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The present instant. May repeat or go back; the store makes commit times strictly increase.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

/// A clock that stands still until it is moved. For tests.
#[derive(Debug)]
pub struct HeldClock(AtomicU64);

impl HeldClock {
    /// A clock that shows `now`.
    pub const fn at(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Moves the clock into the future.
    pub fn advance(&self, duration: Duration) {
        self.0.update(Ordering::SeqCst, Ordering::SeqCst, |now| Timestamp(now).after(duration).0);
    }
}

impl Clock for HeldClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_and_ticks_agree() {
        let known = Timestamp::from_ticks(638_000_000_000_000_000);
        assert_eq!(known.unix_seconds(), 1_664_403_200);
        assert_eq!(Timestamp::from_unix_seconds(1_664_403_200), known);
        assert_eq!(Timestamp::from(UNIX_EPOCH).unix_seconds(), 0);
    }

    #[test]
    fn seconds_are_cut_and_time_saturates() {
        let time = Timestamp::from_unix_seconds(7).after(Duration::from_millis(900));
        assert_eq!(time.whole_second(), Timestamp::from_unix_seconds(7));
        assert_eq!(time.since(Timestamp::from_unix_seconds(7)), Duration::from_millis(900));
        assert_eq!(Timestamp::from_unix_seconds(7).since(time), Duration::ZERO);
        assert_eq!(Timestamp::from_ticks(u64::MAX).after(Duration::MAX).ticks(), u64::MAX);
    }

    #[test]
    fn instants_and_durations_add_up_to_the_tick() {
        let zero = Timestamp::from_ticks(0);
        for ticks in [0, 1, 9_999_999, TICKS_PER_SECOND, TICKS_PER_SECOND + 1, UNIX_EPOCH_TICKS, u64::MAX] {
            let end = Timestamp::from_ticks(ticks);
            assert_eq!(zero.after(end.since(zero)), end, "{ticks} ticks");
            assert!(
                end.whole_second() <= end && end.whole_second().ticks().is_multiple_of(TICKS_PER_SECOND),
                "{ticks} ticks"
            );
        }
        assert_eq!(zero.after(Duration::from_nanos(99)), zero);
        assert_eq!(zero.unix_seconds(), 0);
        assert_eq!(Timestamp::from_ticks(UNIX_EPOCH_TICKS - 1).unix_seconds(), 0);
    }

    #[test]
    fn a_held_clock_stands_still_until_it_is_moved() {
        let clock = HeldClock::at(Timestamp::from_unix_seconds(7));
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now(), Timestamp::from_unix_seconds(7).after(Duration::from_millis(1500)));
        clock.advance(Duration::MAX);
        assert_eq!(clock.now().ticks(), u64::MAX);
    }
}
