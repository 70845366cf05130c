//! A disk that fails or loses power on demand. For tests of what lies above.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::memory::MemoryKv;
use super::{Ask, Kv, Writes};
use crate::store::{Pair, Space, StoreError};

/// What becomes of the unsynced batches when the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsynced {
    /// None of them reached the disk.
    Lost,
    /// All of them did, although nobody was told.
    Kept,
}

/// Maps in memory that know what would survive a power cut. Clones are handles on the same disk.
#[derive(Clone, Debug, Default)]
pub struct FaultKv {
    visible: MemoryKv,
    disk: Arc<Mutex<Disk>>,
}

#[derive(Debug, Default)]
struct Disk {
    durable: MemoryKv,
    unsynced: Writes,
    syncs: u64,
    applies: u64,
    faults: Faults,
    dead: bool,
    free_bytes: Option<u64>,
}

#[derive(Debug, Default)]
struct Faults {
    sync: Option<u64>,
    apply: Option<u64>,
    power: Option<(u64, Unsynced)>,
    on_sync: Option<OnSync>,
}

/// What happens during a sync.
#[derive(Clone)]
struct OnSync(Arc<dyn Fn(u64) + Send + Sync>);

impl fmt::Debug for OnSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnSync(..)")
    }
}

impl FaultKv {
    /// An empty, healthy disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails the `nth` sync from the first of this disk's life, counted from 1.
    pub fn fail_sync(&self, nth: u64) {
        self.disk.lock().faults.sync = Some(nth);
    }

    /// Fails the `nth` apply, counted from 1; the batch is not there.
    pub fn fail_apply(&self, nth: u64) {
        self.disk.lock().faults.apply = Some(nth);
    }

    /// Cuts the power during the `nth` sync, counted from 1. From then on every call fails.
    pub fn cut_power(&self, nth: u64, unsynced: Unsynced) {
        self.disk.lock().faults.power = Some((nth, unsynced));
    }

    /// Calls `during` in every sync before it does anything: with its number, counted from 1. It may wait; others read
    /// meanwhile.
    pub fn on_sync(&self, during: impl Fn(u64) + Send + Sync + 'static) {
        self.disk.lock().faults.on_sync = Some(OnSync(Arc::new(during)));
    }

    /// Reports `bytes` as free; `None` for no bound.
    pub fn set_free_bytes(&self, bytes: Option<u64>) {
        self.disk.lock().free_bytes = bytes;
    }

    /// How often a sync was asked for.
    pub fn syncs(&self) -> u64 {
        self.disk.lock().syncs
    }

    /// How often an apply was asked for.
    pub fn applies(&self) -> u64 {
        self.disk.lock().applies
    }

    /// Whether the power is gone.
    pub fn is_dead(&self) -> bool {
        self.disk.lock().dead
    }

    /// A healthy disk that holds what is durable on this one.
    #[must_use]
    pub fn image(&self) -> Self {
        let durable = self.disk.lock().durable.copy();
        Self { visible: durable.copy(), disk: Arc::new(Mutex::new(Disk { durable, ..Disk::default() })) }
    }

    fn powered(&self) -> Result<(), StoreError> {
        if self.is_dead() { Err(power_is_off()) } else { Ok(()) }
    }
}

impl Disk {
    fn settle(&mut self) -> Result<(), StoreError> {
        let unsynced = std::mem::take(&mut self.unsynced);
        self.durable.apply(&unsynced)
    }
}

impl Kv for FaultKv {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.powered()?;
        self.visible.get(space, key)
    }

    fn chunk(&self, space: Space, ask: &Ask<'_>) -> Result<Vec<Pair>, StoreError> {
        self.powered()?;
        self.visible.chunk(space, ask)
    }

    fn apply(&self, writes: &Writes) -> Result<(), StoreError> {
        let mut disk = self.disk.lock();
        if disk.dead {
            return Err(power_is_off());
        }
        disk.applies += 1;
        if disk.faults.apply == Some(disk.applies) {
            return Err(StoreError::Backend("the disk failed a write".to_owned()));
        }
        disk.unsynced.absorb(writes.clone());
        self.visible.apply(writes)
    }

    fn sync(&self) -> Result<(), StoreError> {
        let (nth, during) = {
            let mut disk = self.disk.lock();
            if disk.dead {
                return Err(power_is_off());
            }
            disk.syncs += 1;
            (disk.syncs, disk.faults.on_sync.clone())
        };
        if let Some(OnSync(during)) = during {
            during(nth);
        }
        let mut disk = self.disk.lock();
        if let Some((at, unsynced)) = disk.faults.power
            && nth == at
        {
            disk.dead = true;
            if unsynced == Unsynced::Kept {
                disk.settle()?;
            }
            return Err(power_is_off());
        }
        if disk.faults.sync == Some(nth) {
            return Err(StoreError::Backend("the disk failed a sync".to_owned()));
        }
        disk.settle()
    }

    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(self.disk.lock().free_bytes)
    }
}

fn power_is_off() -> StoreError {
    StoreError::Backend("the power is off".to_owned())
}
