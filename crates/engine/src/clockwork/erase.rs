//! Erasing what is dead: rows in bounded transactions, bytes by holes in their segments.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::blob;
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::payload::refs::Target;
use crate::payload::{PayloadId, Piece};
use crate::queue;
use crate::rows;
use crate::rows::codec;
use crate::rows::list::ListId;
use crate::rows::payload::{self, PieceChunk};
use crate::rows::refs::{self, Kind};
use crate::rows::segment::{self, SegmentRow};
use crate::store::{Direction, KeyRange, Pair, Purpose, Space, StoreError, Tx, View};
use crate::table;

/// Chunks of pieces that one step erases.
const CHUNKS_PER_STEP: usize = 16;
/// How often a tick looks at further dead bodies while no row can be erased.
const STEPS_WITHOUT_ROWS: usize = 16;

/// Erases each of `dead`, or some of what hangs below it. What fails is left alone for a while. Bodies first: on a disk
/// so full that rows cannot be written, their bytes are what makes room.
pub(super) async fn all(engine: &Engine, now: Timestamp, dead: Vec<(u64, Target)>) -> Result<(), Error> {
    let (bodies, parents): (Vec<_>, Vec<_>) = dead.into_iter().partition(|(_, target)| target.kind == Kind::Payload);
    let setbacks = &engine.clockwork().dead;
    let key = |(seq, target): &(u64, Target)| refs::dead_key(*seq, *target);
    let erased = setbacks.together(now, bodies, key, |bodies| erase_bodies(engine, bodies)).await;
    if matches!(erased, Err(Error::Storage(StoreError::Full))) {
        give_back(engine).await?;
    }
    erased?;
    for (seq, target) in parents {
        if let Err(error) = erase_parent(engine, seq, target).await {
            setbacks.note(&refs::dead_key(seq, target), now, error)?;
        }
    }
    Ok(())
}

async fn erase_parent(engine: &Engine, seq: u64, target: Target) -> Result<(), Error> {
    engine
        .write(Purpose::Free, move |tx| {
            let more = match target.kind {
                Kind::Payload => false,
                Kind::Pages => blob::erase::pages(tx, target.id)?,
                Kind::List => blob::erase::list(tx, ListId(target.id))?,
                Kind::Staging => blob::erase::staging(tx, target.id)?,
                Kind::Sweep => sweep(tx, seq, target)?,
                Kind::Container => blob::erase::container(tx, target.id)?,
                Kind::Queue => queue::erase::messages(tx, target.id)?,
                Kind::Table => table::erase::entities(tx, target.id)?,
            };
            if !more {
                tx.delete(Space::Dead, &refs::dead_key(seq, target))?;
            }
            Ok(())
        })
        .await
}

/// Goes on with the deletion of many snapshots, of the blob that the task's row names.
fn sweep(tx: &mut dyn Tx, seq: u64, target: Target) -> Result<bool, StoreError> {
    match tx.get(Space::Dead, &refs::dead_key(seq, target))? {
        Some(base) => blob::sweep_on(tx, target.id, &base),
        None => Ok(false),
    }
}

/// Some dead bodies: what is known of their bytes, and which of them end with this step.
struct Bodies {
    chunks: Vec<Pair>,
    done: Vec<(u64, Target)>,
}

async fn erase_bodies(engine: &Engine, dead: Vec<(u64, Target)>) -> Result<(), Error> {
    if dead.is_empty() {
        return Ok(());
    }
    // The bytes first: the rows say what is left to do if this is interrupted.
    let (bodies, pieces) = engine.blocking(move |engine| punch(engine, &dead)).await?;
    let extents: Vec<_> = pieces.iter().map(|piece| payload::extent_key(piece.segment, piece.offset)).collect();
    engine.write(Purpose::Free, move |tx| Ok(forget(tx, &bodies, &extents)?)).await?;
    for segment in pieces.iter().map(|piece| piece.segment).collect::<BTreeSet<_>>() {
        remove_if_empty(engine, segment).await?;
    }
    Ok(())
}

/// Gives back the bytes of further dead bodies, whose rows wait until there is room for their erasure: from where the
/// last time ended, and at the end from the beginning.
async fn give_back(engine: &Engine) -> Result<(), Error> {
    for _ in 0..STEPS_WITHOUT_ROWS {
        let last = engine.clockwork().given_back.lock().take();
        let range = KeyRange::all().starting(last.map_or(Bound::Unbounded, Bound::Excluded));
        let (now, dead) = super::dead(engine, range).await?;
        let Some((seq, target)) = dead.last().copied() else { return Ok(()) };
        let bodies = dead.into_iter().filter(|(_, target)| target.kind == Kind::Payload);
        for (seq, target) in bodies {
            let given = engine.blocking(move |engine| punch_whole(engine, PayloadId(target.id))).await;
            if let Err(error) = given {
                engine.clockwork().dead.note(&refs::dead_key(seq, target), now, error)?;
            }
        }
        *engine.clockwork().given_back.lock() = Some(refs::dead_key(seq, target));
    }
    Ok(())
}

/// Gives back all bytes of a body. It may have been done before.
fn punch_whole(engine: &Engine, body: PayloadId) -> Result<(), Error> {
    engine.read(|view| {
        for chunk in view.scan(Space::Payloads, KeyRange::prefix(&payload::prefix(body)), Direction::Forward) {
            let (key, value) = chunk?;
            for piece in codec::decode::<PieceChunk>(Space::Payloads, &key, &value)?.pieces {
                engine.payloads().punch(&piece)?;
            }
        }
        Ok(())
    })
}

/// Gives back the bytes of the first of `dead`; answers what may be forgotten for it.
fn punch(engine: &Engine, dead: &[(u64, Target)]) -> Result<(Bodies, Vec<Piece>), Error> {
    let bodies = engine.read(|view| Ok(collect(view, dead)?))?;
    let mut pieces = Vec::new();
    for (key, value) in &bodies.chunks {
        pieces.extend(codec::decode::<PieceChunk>(Space::Payloads, key, value)?.pieces);
    }
    for piece in &pieces {
        engine.payloads().punch(piece)?;
    }
    Ok((bodies, pieces))
}

/// The first chunks of `dead` that fit a step.
fn collect(view: &dyn View, dead: &[(u64, Target)]) -> Result<Bodies, StoreError> {
    let mut bodies = Bodies { chunks: Vec::new(), done: Vec::new() };
    for (seq, target) in dead {
        let chunks = KeyRange::prefix(&payload::prefix(PayloadId(target.id)));
        for chunk in view.scan(Space::Payloads, chunks, Direction::Forward) {
            if bodies.chunks.len() == CHUNKS_PER_STEP {
                return Ok(bodies);
            }
            bodies.chunks.push(chunk?);
        }
        bodies.done.push((*seq, *target));
    }
    Ok(bodies)
}

fn forget(tx: &mut dyn Tx, bodies: &Bodies, extents: &[Vec<u8>]) -> Result<(), StoreError> {
    for (key, _) in &bodies.chunks {
        tx.delete(Space::Payloads, key)?;
    }
    for key in extents {
        tx.delete(Space::Extents, key)?;
    }
    for (seq, target) in &bodies.done {
        tx.delete(Space::Small, &payload::small_key(PayloadId(target.id)))?;
        tx.delete(Space::Dead, &refs::dead_key(*seq, *target))?;
    }
    Ok(())
}

/// Seals the full segments whose last upload is over.
pub(super) async fn seal(engine: &Engine) -> Result<(), Error> {
    for id in engine.payloads().quiet() {
        engine
            .write(Purpose::Free, move |tx| Ok(rows::put(tx, Space::Segments, segment::key(id), &SegmentRow::Sealed)?))
            .await?;
        engine.payloads().sealed(id);
        remove_if_empty(engine, id).await?;
    }
    Ok(())
}

/// Removes a segment that takes no more writes and of which nothing is named.
async fn remove_if_empty(engine: &Engine, id: u64) -> Result<(), Error> {
    if engine.payloads().takes_writes(id).await {
        return Ok(());
    }
    let empty = engine
        .write(Purpose::Free, move |tx| {
            let extents = KeyRange::prefix(&payload::extent_prefix(id));
            let empty = !tx.any(Space::Extents, &extents)?;
            if empty {
                tx.delete(Space::Segments, &segment::key(id))?;
            }
            Ok(empty)
        })
        .await?;
    if empty && let Err(error) = engine.payloads().unlink(id).await {
        // Its row is gone: the next start removes the file.
        tracing::warn!(segment = id, cause = ?error, "an empty segment stays until the next start");
    }
    Ok(())
}
