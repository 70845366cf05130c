//! `meta`: the store's own rows. `format` -> [`FormatRow`]; `state` -> [`StateRow`], written with every group.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::rows::codec::{self, Row};
use crate::store::kv::{Kv, Writes};
use crate::store::{OpenError, Space, StoreError};

/// The format that this program reads and writes.
pub(super) const FORMAT: u32 = 1;
const FORMAT_KEY: &[u8] = b"format";
const STATE_KEY: &[u8] = b"state";
/// Ids reserved with every group, so that one which only hands some out need not be written.
const IDS_AHEAD: u64 = 1024;

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
    /// No id above it was ever given.
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

/// The highest id that may be given before the state is written again.
pub(super) fn reserve_ids(last: u64) -> u64 {
    last.saturating_add(IDS_AHEAD)
}

/// Reads the state of an existing store, or begins one; checks that a sync reaches the disk. Answers the state as it
/// is on disk now, and the last id that may have been given.
pub(super) fn open(kv: &impl Kv, sync_probe: Option<fn() -> u64>) -> Result<(StateRow, u64), OpenError> {
    let found = find(kv)?;
    let state = StateRow { id: reserve_ids(found.id), ..found };
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
    Ok((state, found.id))
}

fn find(kv: &impl Kv) -> Result<StateRow, OpenError> {
    let missing = |key| codec::corrupt(Space::Meta, key, "the row is missing");
    let (format, state) = (kv.get(Space::Meta, FORMAT_KEY)?, kv.get(Space::Meta, STATE_KEY)?);
    let Some(format) = format else {
        return match state {
            Some(_) => Err(missing(FORMAT_KEY).into()),
            None => Ok(StateRow { group: 0, time: Timestamp::from_ticks(0), id: 0 }),
        };
    };
    let FormatRow { format } = codec::decode(Space::Meta, FORMAT_KEY, &format)?;
    if format != FORMAT {
        return Err(OpenError::Format { found: format, known: FORMAT });
    }
    Ok(codec::decode(Space::Meta, STATE_KEY, &state.ok_or_else(|| missing(STATE_KEY))?)?)
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
    fn a_store_without_one_of_its_own_rows_is_damaged() {
        let state = StateRow { group: 7, time: Timestamp::from_ticks(8), id: 9 };
        let format = codec::encode(&FormatRow { format: FORMAT }).unwrap();
        for (key, value) in [(FORMAT_KEY, format), (STATE_KEY, codec::encode(&state).unwrap())] {
            let kv = MemoryKv::default();
            let mut writes = Writes::default();
            writes.set(Space::Meta, Bytes::from_static(key), Some(value.into()));
            kv.apply(&writes).unwrap();
            let answer = open(&kv, None);
            assert!(matches!(answer, Err(OpenError::Store(StoreError::Corrupt { .. }))), "{answer:?}");
        }
    }

    #[test]
    fn a_sync_that_does_not_reach_the_disk_is_noticed() {
        let answer = open(&MemoryKv::default(), Some(|| 0));
        assert!(matches!(answer, Err(OpenError::SyncNotInEffect)), "{answer:?}");
    }
}
