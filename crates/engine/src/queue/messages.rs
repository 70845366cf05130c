//! Messages. <https://learn.microsoft.com/rest/api/storageservices/operations-on-messages>

use std::time::Duration;

use crate::engine::Engine;
use crate::error::Error;
use crate::names::QueueAddress;
use crate::payload::refs::{self, Target};
use crate::queue::order::{self, Bounds};
use crate::queue::{Held, MessageId, MessageView, NEVER, NewMessage, OnMessage, Put, Taken, state};
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::place::{Place, PlaceRow};
use crate::rows::queue as row;
use crate::store::{Purpose, Space, StoreError, Tx, View};

/// What one transaction that takes messages passes over; the next one goes on behind it.
const TAKE: Bounds = Bounds { expired: 256, spans: 1024 };
/// What a peek passes over: it changes nothing, so that another one would begin anew.
const PEEK: Bounds = Bounds { expired: 10_000, spans: 100_000 };

/// Put Message: <https://learn.microsoft.com/rest/api/storageservices/put-message>
///
/// Refuses `QueueNotFound`.
pub async fn put(engine: &Engine, queue: QueueAddress, message: NewMessage) -> Result<Put, Error> {
    engine
        .write(Purpose::Grow, move |tx| {
            let incarnation = state::queue(tx, &queue)?.incarnation;
            let (inserted, at) = (tx.now(), (incarnation, tx.id()));
            let expires = message.lifetime.map_or(NEVER, |lifetime| inserted.after(lifetime));
            state::write_text(tx, at, (inserted, expires), &message.text, None)?;
            state::count(tx, at, |messages| messages.saturating_add(1))?;
            let held = state::place(tx, at, message.invisible, (expires, 0))?;
            Ok(Put { id: MessageId::new(at.1, inserted), inserted, expires, held })
        })
        .await
}

/// Get Messages: <https://learn.microsoft.com/rest/api/storageservices/get-messages>
///
/// Takes the first visible messages, at most `limit`: nobody else sees them for the duration `invisible`.
/// Refuses `QueueNotFound`.
pub async fn take(
    engine: &Engine,
    queue: QueueAddress,
    limit: usize,
    invisible: Duration,
) -> Result<Vec<Taken>, Error> {
    loop {
        let address = queue.clone();
        // Whoever empties a queue needs this although the disk is full.
        let (moved, cut) = engine.write(Purpose::Free, move |tx| move_first(tx, &address, limit, invisible)).await?;
        if !moved.is_empty() || !cut {
            return engine.read(|view| Ok(texts(view, &moved)?));
        }
    }
}

/// A message that was moved to where it is invisible.
struct Moved {
    place: Place,
    dequeues: u64,
    held: Held,
}

/// Moves the first visible messages away, and what has expired among them out. Their texts are read later: this runs
/// while no other transaction does.
fn move_first(
    tx: &mut dyn Tx,
    queue: &QueueAddress,
    limit: usize,
    invisible: Duration,
) -> Result<(Vec<Moved>, bool), Error> {
    let incarnation = state::queue(tx, queue)?.incarnation;
    let found = order::first(tx, incarnation, limit, TAKE)?;
    for span in &found.passed {
        tx.delete(Space::Spans, &span.key())?;
    }
    for (place, row) in &found.expired {
        state::remove(tx, place, row.expires)?;
    }
    let mut moved = Vec::with_capacity(found.visible.len());
    for (place, PlaceRow { expires, dequeues, .. }) in found.visible {
        let dequeues = dequeues.saturating_add(1);
        let held = state::replace(tx, &place, invisible, (expires, dequeues))?;
        moved.push(Moved { place, dequeues, held });
    }
    Ok((moved, found.cut))
}

/// The messages with their texts. One that was cleared in between is left out.
fn texts(view: &dyn View, moved: &[Moved]) -> Result<Vec<Taken>, StoreError> {
    let mut taken = Vec::with_capacity(moved.len());
    for Moved { place, dequeues, held } in moved {
        if let Some(message) = state::view(view, place, *dequeues)? {
            taken.push(Taken { message, held: *held });
        }
    }
    Ok(taken)
}

/// Peek Messages: <https://learn.microsoft.com/rest/api/storageservices/peek-messages>
///
/// The first visible messages, at most `limit`, as of one moment. Nothing changes.
/// Refuses `QueueNotFound`.
pub async fn peek(engine: &Engine, queue: QueueAddress, limit: usize) -> Result<Vec<MessageView>, Error> {
    engine
        .scan(move |view| {
            let incarnation = state::queue(view, &queue)?.incarnation;
            let mut messages = Vec::new();
            for (place, row) in order::first(view, incarnation, limit, PEEK)?.visible {
                messages.extend(state::view(view, &place, row.dequeues)?);
            }
            Ok(messages)
        })
        .await
}

/// Delete Message: <https://learn.microsoft.com/rest/api/storageservices/delete-message2>
///
/// Refuses `QueueNotFound`, `MessageNotFound`, also if the message has expired, and `ReceiptMismatch` if somebody has
/// taken or updated it since.
pub async fn delete(engine: &Engine, on: OnMessage) -> Result<(), Error> {
    engine
        .write(Purpose::Free, move |tx| {
            let (place, row, _) = state::held(tx, &on)?;
            Ok(state::remove(tx, &place, row.expires)?)
        })
        .await
}

/// Update Message: <https://learn.microsoft.com/rest/api/storageservices/update-message>
///
/// Makes the message visible `invisible` from now and may replace its text. The receipt changes.
/// Refuses as [`delete`], and `VisibleAfterExpiry`.
pub async fn update(engine: &Engine, on: OnMessage, invisible: Duration, text: Option<String>) -> Result<Held, Error> {
    let purpose = if text.is_some() { Purpose::Grow } else { Purpose::Free };
    engine
        .write(purpose, move |tx| {
            let (place, row, message) = state::held(tx, &on)?;
            if tx.now().after(invisible) > row.expires {
                return Err(Refusal::VisibleAfterExpiry.into());
            }
            if let Some(text) = &text {
                let at = (place.incarnation, place.number);
                state::write_text(tx, at, (message.inserted, message.expires), text, Some(&message))?;
            }
            Ok(state::replace(tx, &place, invisible, (row.expires, row.dequeues))?)
        })
        .await
}

/// Clear Messages: <https://learn.microsoft.com/rest/api/storageservices/clear-messages>
///
/// Takes the same time however many there are: what was in the queue is erased in the background.
/// Refuses `QueueNotFound`.
pub async fn clear(engine: &Engine, queue: QueueAddress) -> Result<(), Error> {
    engine
        .write(Purpose::Free, move |tx| {
            let mut cleared = state::queue(tx, &queue)?;
            refs::release(tx, Target::queue(cleared.incarnation))?;
            cleared.incarnation = tx.id();
            Ok(rows::put(tx, Space::Queues, row::key(&queue), &cleared)?)
        })
        .await?;
    engine.wake();
    Ok(())
}
