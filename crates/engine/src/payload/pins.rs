//! Pins: what readers are reading is not erased under them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::payload::refs::Target;

/// Counts of the readers of each target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins(Arc<Mutex<HashMap<Target, usize>>>);

/// Keeps a target while it lives. Taken while the snapshot that found the target is open, so that there is no gap.
#[derive(Debug)]
pub(crate) struct Pin {
    pins: Pins,
    target: Target,
}

impl Pins {
    /// Pins `target` once more.
    pub(crate) fn pin(&self, target: Target) -> Pin {
        *self.0.lock().entry(target).or_default() += 1;
        Pin { pins: self.clone(), target }
    }

    /// Whether somebody reads `target`.
    pub(crate) fn holds(&self, target: Target) -> bool {
        self.0.lock().contains_key(&target)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.pins.0.lock();
        if let Some(count) = pins.get_mut(&self.target) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.target);
            }
        }
    }
}
