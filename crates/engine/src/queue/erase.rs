//! The messages of a cleared or deleted queue, erased in steps of bounded size.

use crate::blob::erase::first;
use crate::queue::NEVER;
use crate::rows::codec;
use crate::rows::due::{self, DueKind};
use crate::rows::place::{Place, PlaceRow};
use crate::rows::queue;
use crate::store::{Space, StoreError, Tx};

/// Rows that one step erases.
const ROWS_PER_STEP: usize = 512;

/// Erases an incarnation's messages, their appointments first; answers whether more is left.
pub(crate) fn messages(tx: &mut dyn Tx, incarnation: u64) -> Result<bool, StoreError> {
    let prefix = queue::children(incarnation);
    for space in [Space::Places, Space::Messages, Space::Texts, Space::Spans, Space::Tallies] {
        // Parts of texts are large: what they replace is kept for open snapshots.
        let count = if space == Space::Texts { ROWS_PER_STEP / 8 } else { ROWS_PER_STEP };
        let (pairs, more) = first(tx, space, &prefix, count)?;
        for (key, value) in pairs {
            if space == Space::Places {
                forget(tx, &key, &value)?;
            }
            tx.delete(space, &key)?;
        }
        if more {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Calls off the appointment for a message's end.
fn forget(tx: &mut dyn Tx, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let (place, row) = (Place::parse(key)?, codec::decode::<PlaceRow>(Space::Places, key, value)?);
    if row.expires < NEVER {
        tx.delete(Space::Due, &due::key(row.expires, DueKind::Message, place.number))?;
    }
    Ok(())
}
