//! The result, ready to paste into the README.

use std::fmt;
use std::time::Duration;

use crate::bench::load::{Duel, Slice};

/// What a cell has to reach.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

impl Target {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
            Self::AtMost(bound) => write!(f, "≤ {bound}"),
        }
    }
}

/// One line of the table.
pub(super) struct Row {
    /// What was done.
    pub(super) cell: String,
    /// The number that counts.
    pub(super) value: f64,
    /// Its unit; empty for a ratio.
    pub(super) unit: &'static str,
    /// What it has to be.
    pub(super) target: Target,
    /// Absolute numbers, for information.
    pub(super) detail: String,
}

impl Row {
    /// The line of a duel against `other`.
    pub(super) fn of_duel(cell: &str, other: &str, duel: &Duel, target: Target) -> Self {
        let (low, high) = (duel.ratios.first().copied(), duel.ratios.last().copied());
        let detail = format!(
            "Lazuli {}; {other} {}; rounds {:.2}–{:.2}",
            absolute(&duel.ours),
            absolute(&duel.other),
            low.unwrap_or(f64::NAN),
            high.unwrap_or(f64::NAN),
        );
        Self { cell: cell.into(), value: duel.ratio(), unit: "×", target, detail }
    }

    /// Whether the target is met.
    pub(super) fn met(&self) -> bool {
        self.target.met(self.value)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.met() { "yes" } else { "**no**" };
        let Self { cell, value, unit, target, detail } = self;
        write!(f, "| {cell} | {value:.2} {unit} | {target} | {verdict} | {detail} |")
    }
}

/// The table's head.
pub(super) const HEAD: &str = "| what | measured | target | met | absolute, for information |\n|---|---|---|---|---|";

/// Rate and median latency.
pub(super) fn absolute(slice: &Slice) -> String {
    format!("{:.0}/s, median {}", slice.rate(), readable(slice.median()))
}

fn readable(duration: Duration) -> String {
    if duration < Duration::from_millis(10) {
        format!("{:.2} ms", duration.as_secs_f64() * 1e3)
    } else {
        format!("{:.0} ms", duration.as_secs_f64() * 1e3)
    }
}
