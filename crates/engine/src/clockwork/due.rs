//! Appointments: what has outlived its time.

use crate::blob;
use crate::engine::Engine;
use crate::error::Error;
use crate::policy::Policies;
use crate::queue;
use crate::rows::codec;
use crate::rows::due::{self, DueKind, DueRow};
use crate::store::{Direction, KeyRange, Pair, Purpose, Space, StoreError, Tx, View};

/// Appointments that one transaction keeps.
const PER_STEP: usize = 128;

/// Keeps appointments whose instant has come; answers whether there was one: there may be others, or dead to erase.
pub(super) async fn keep(engine: &Engine) -> Result<bool, Error> {
    let (now, rows) = engine.read(|view| Ok((view.now(), come(engine, view)?)))?;
    if rows.is_empty() {
        return Ok(false);
    }
    let key = |row: &Pair| row.0.to_vec();
    engine.clockwork().due.together(now, rows, key, |rows| keep_all(engine, rows)).await?;
    Ok(true)
}

/// The first appointments whose instant has come.
fn come(engine: &Engine, view: &dyn View) -> Result<Vec<Pair>, Error> {
    let (now, setbacks) = (view.now(), &engine.clockwork().due);
    let mut rows = Vec::new();
    for pair in view.scan(Space::Due, KeyRange::all(), Direction::Forward) {
        let (key, value) = pair?;
        if setbacks.holds(&key, now) {
            continue;
        }
        match due::parse(&key) {
            Ok((at, ..)) if at > now => break,
            Ok(_) => rows.push((key, value)),
            Err(error) => setbacks.note(&key, now, error.into())?,
        }
        if rows.len() == PER_STEP {
            break;
        }
    }
    Ok(rows)
}

async fn keep_all(engine: &Engine, rows: Vec<Pair>) -> Result<(), Error> {
    let policies = engine.policies();
    let keep =
        move |tx: &mut dyn Tx| Ok(rows.iter().try_for_each(|(key, value)| keep_one(tx, &policies, key, value))?);
    engine.write(Purpose::Free, keep).await
}

fn keep_one(tx: &mut dyn Tx, policies: &Policies, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let (at, kind, id) = due::parse(key)?;
    let row: DueRow = codec::decode(Space::Due, key, value)?;
    match kind {
        DueKind::Staging => blob::blocks::expire(tx, at, id, &row.key),
        DueKind::List => blob::expire_list(tx, at, id),
        DueKind::Message => queue::expire(tx, at, id),
        DueKind::Deleted => blob::expire_deleted(tx, at, id, &row.key),
        DueKind::Removed => blob::expire_removed(tx, at, id, &row.key),
        DueKind::Copy => blob::pending::expire(tx, policies, at, id, &row.key),
        DueKind::Expiry => blob::expire_blob(tx, policies, at, id, &row.key),
        DueKind::Container => blob::container::expire(tx, at, id, &row.key),
        DueKind::Pages => blob::pages::expire(tx, at, id),
    }
}
