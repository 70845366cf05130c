//! The entities of a deleted table, erased in steps of bounded size.

use crate::rows::entity;
use crate::store::{Direction, KeyRange, Space, StoreError, Tx};

/// Rows that one step erases.
const ROWS_PER_STEP: usize = 512;
/// Bytes of values after which a step ends: what is erased is kept for open snapshots.
const BYTES_PER_STEP: usize = 1024 * 1024;

/// Erases an incarnation's entities; answers whether more is left.
pub(crate) fn entities(tx: &mut dyn Tx, incarnation: u64) -> Result<bool, StoreError> {
    let all = KeyRange::prefix(&entity::children(incarnation));
    let (mut rows, mut bytes) = (0, 0);
    for space in [Space::Entities, Space::EntityParts] {
        let mut keys = Vec::new();
        for pair in tx.scan(space, all.clone(), Direction::Forward) {
            let (key, value) = pair?;
            keys.push(key);
            (rows, bytes) = (rows + 1, bytes + value.len());
            if rows == ROWS_PER_STEP || bytes >= BYTES_PER_STEP {
                break;
            }
        }
        for key in &keys {
            tx.delete(space, key)?;
        }
        if rows == ROWS_PER_STEP || bytes >= BYTES_PER_STEP {
            return Ok(true);
        }
    }
    Ok(false)
}
