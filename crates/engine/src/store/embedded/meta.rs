//! `meta`: the store's own rows. `format` -> [`FormatRow`]; `state` -> [`StateRow`], written with every group.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::rows::codec::{self, Row};
use crate::store::kv::{Kv, Writes};
use crate::store::{Space, StoreError};

/// The format that this program reads and writes.
pub(super) const FORMAT: u32 = 1;
const FORMAT_KEY: &[u8] = b"format";
const STATE_KEY: &[u8] = b"state";

/// Why a store does not open.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The data was written by another version.
    #[error("the data has format {found}, this version reads format {FORMAT}: run the version of lazuli that wrote it")]
    Format {
        /// What the data says.
        found: u32,
    },
    /// A sync does not reach the disk.
    #[error(
        "syncs do not reach the disk on this system (the sync override is not in effect): \
         start with durability = \"process\" if surviving a power cut is not needed"
    )]
    SyncNotInEffect,
    /// The engine below failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The format of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FormatRow {
    format: u32,
}

impl Row for FormatRow {
    const VERSION: u8 = 1;
}

/// Where the store stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateRow {
    /// The last group.
    pub(super) group: u64,
    /// The last commit time.
    pub(super) time: Timestamp,
    /// The last id given.
    pub(super) id: u64,
}

impl Row for StateRow {
    const VERSION: u8 = 1;
}

/// Adds the state to a group's writes.
pub(super) fn write(state: &StateRow, writes: &mut Writes) -> Result<(), StoreError> {
    writes.set(Space::Meta, Bytes::from_static(STATE_KEY), Some(codec::encode(state)?.into()));
    Ok(())
}

/// Reads the state of an existing store, or begins one; checks that a sync reaches the disk.
pub(super) fn open(kv: &impl Kv, sync_probe: Option<fn() -> u64>) -> Result<StateRow, OpenError> {
    let state = match kv.get(Space::Meta, FORMAT_KEY)? {
        Some(bytes) => {
            let FormatRow { format } = codec::decode(Space::Meta, FORMAT_KEY, &bytes)?;
            if format != FORMAT {
                return Err(OpenError::Format { found: format });
            }
            let bytes = kv
                .get(Space::Meta, STATE_KEY)?
                .ok_or_else(|| codec::corrupt(Space::Meta, STATE_KEY, "the store's state is missing"))?;
            codec::decode(Space::Meta, STATE_KEY, &bytes)?
        }
        None => StateRow { group: 0, time: Timestamp::from_ticks(0), id: 0 },
    };
    let before = sync_probe.map(|calls| calls());
    let mut writes = Writes::default();
    let format = codec::encode(&FormatRow { format: FORMAT })?;
    writes.set(Space::Meta, Bytes::from_static(FORMAT_KEY), Some(format.into()));
    write(&state, &mut writes)?;
    kv.apply(&writes)?;
    kv.sync()?;
    if sync_probe.map(|calls| calls()) == before && before.is_some() {
        return Err(OpenError::SyncNotInEffect);
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::kv::memory::MemoryKv;

    #[test]
    fn values_on_disk_look_like_this_for_ever() {
        assert_eq!(codec::encode(&FormatRow { format: 1 }).unwrap(), [1, 1]);
        let state = StateRow { group: 1, time: Timestamp::from_ticks(2), id: 3 };
        assert_eq!(codec::encode(&state).unwrap(), [1, 1, 2, 3]);
    }

    #[test]
    fn another_format_is_refused() {
        let kv = MemoryKv::default();
        let mut writes = Writes::default();
        writes.set(Space::Meta, Bytes::from_static(FORMAT_KEY), Some(vec![1, 2].into()));
        kv.apply(&writes).unwrap();
        let message = open(&kv, None).unwrap_err().to_string();
        assert!(message.contains("format 2") && message.contains("format 1"), "{message}");
    }

    #[test]
    fn a_sync_that_does_not_reach_the_disk_is_noticed() {
        let answer = open(&MemoryKv::default(), Some(|| 0));
        assert!(matches!(answer, Err(OpenError::SyncNotInEffect)), "{answer:?}");
    }
}
