//! Appointments: what has outlived its time.

use crate::blob;
use crate::rows::codec;
use crate::rows::due::{self, DueKind, DueRow};
use crate::store::{Direction, KeyRange, Space, StoreError, Tx};

/// Appointments that one transaction keeps.
const PER_STEP: usize = 128;

/// Keeps the appointments whose instant has come; answers whether more are waiting.
pub(crate) fn keep(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    let now = tx.now();
    let mut kept = 0;
    let pairs: Vec<_> =
        tx.scan(Space::Due, KeyRange::all(), Direction::Forward).take(PER_STEP).collect::<Result<_, _>>()?;
    for (key, value) in pairs {
        let (at, kind, id) = due::parse(&key)?;
        if at > now {
            return Ok(false);
        }
        match kind {
            DueKind::Staging => {
                let row: DueRow = codec::decode(Space::Due, &key, &value)?;
                blob::blocks::expire(tx, at, id, &row.key)?;
            }
            DueKind::List => blob::expire_list(tx, at, id)?,
        }
        kept += 1;
    }
    Ok(kept == PER_STEP)
}
