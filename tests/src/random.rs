//! Chance that can be repeated.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use lazuli_engine::clock::{Clock as _, SystemClock};

/// SplitMix64. <https://prng.di.unimi.it/splitmix64.c>
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From `LAZULI_SEED`, else from the clock; says which on stdout, so that a failure can be repeated.
    #[expect(clippy::print_stdout, reason = "the test runner shows it with a failure")]
    pub fn new() -> Self {
        let given = std::env::var("LAZULI_SEED").ok();
        let seed =
            given.map_or_else(|| SystemClock.now().ticks(), |seed| seed.parse().expect("LAZULI_SEED is a number"));
        println!("LAZULI_SEED={seed}");
        Self(seed)
    }

    /// The sequence that belongs to `seed`.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A sequence of its own, whose seed is drawn from this one.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from `low` to `high`, both possible.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}
