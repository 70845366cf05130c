//! What the operations on messages share: finding one by its receipt, placing it, removing it.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::names::QueueAddress;
use crate::queue::{Held, MessageId, MessageView, NEVER, OnMessage, Receipt};
use crate::refusal::Refusal;
use crate::rows;
use crate::rows::codec::corrupt;
use crate::rows::due::{self, DueKind, DueRow};
use crate::rows::message::{self, HEAD_BYTES_MAX, MessageRow, PART_BYTES_MAX};
use crate::rows::place::{Place, PlaceRow};
use crate::rows::queue::{self, QueueRow};
use crate::rows::span::{self, Span, SpanRow};
use crate::rows::tally::{self, TallyRow};
use crate::store::{Direction, KeyRange, Space, StoreError, Tx, View};

/// Expired messages that counting looks at.
const EXPIRED_MAX: usize = 1024;

/// The queue at `address`.
///
/// Refuses [`Refusal::QueueNotFound`].
pub(super) fn queue(view: &dyn View, address: &QueueAddress) -> Result<QueueRow, Error> {
    rows::get(view, Space::Queues, &queue::key(address))?.ok_or(Refusal::QueueNotFound.into())
}

/// The message that `on` names, if its receipt is the latest.
///
/// Refuses [`Refusal::QueueNotFound`], [`Refusal::MessageNotFound`] and [`Refusal::ReceiptMismatch`].
pub(super) fn held(view: &dyn View, on: &OnMessage) -> Result<(Place, PlaceRow, MessageRow), Error> {
    let incarnation = queue(view, &on.queue)?.incarnation;
    let id = on.id.ok_or(Refusal::MessageNotFound)?;
    let message: Option<MessageRow> = rows::get(view, Space::Messages, &message::key(incarnation, id.number))?;
    let lives = |row: &MessageRow| MessageId::new(id.number, row.inserted) == id && row.expires > view.now();
    let message = message.filter(lives).ok_or(Refusal::MessageNotFound)?;
    let receipt = on.receipt.ok_or(Refusal::ReceiptMismatch)?;
    let place = Place { incarnation, visible: receipt.visible, number: id.number };
    let row: Option<PlaceRow> = rows::get(view, Space::Places, &place.key())?;
    let row = row.filter(|row| row.placed == receipt.placed).ok_or(Refusal::ReceiptMismatch)?;
    Ok((place, row, message))
}

/// Puts a message that expires at `expires` where it is visible `invisible` from now.
pub(super) fn place(
    tx: &mut dyn Tx,
    (incarnation, number): (u64, u64),
    invisible: Duration,
    (expires, dequeues): (Timestamp, u64),
) -> Result<Held, StoreError> {
    let (placed, visible) = (tx.now(), tx.now().after(invisible));
    let key = Place { incarnation, visible, number }.key();
    rows::put(tx, Space::Places, key.clone(), &PlaceRow { expires, placed, dequeues })?;
    if expires < NEVER {
        rows::put(tx, Space::Due, due::key(expires, DueKind::Message, number), &DueRow { key })?;
    }
    let span = Span::at(incarnation, visible).key();
    let known: Option<SpanRow> = rows::get(tx, Space::Spans, &span)?;
    if known.is_none_or(|known| known.until < expires) {
        rows::put(tx, Space::Spans, span, &SpanRow { until: span::rounded(expires) })?;
    }
    Ok(Held { receipt: Receipt { visible, placed }, visible })
}

/// Moves a message from `from` to where it is visible `invisible` from now.
pub(super) fn replace(
    tx: &mut dyn Tx,
    from: &Place,
    invisible: Duration,
    (expires, dequeues): (Timestamp, u64),
) -> Result<Held, StoreError> {
    leave(tx, from)?;
    place(tx, (from.incarnation, from.number), invisible, (expires, dequeues))
}

/// Removes a message and all that belongs to it.
pub(super) fn remove(tx: &mut dyn Tx, place: &Place, expires: Timestamp) -> Result<(), StoreError> {
    let Place { incarnation, number, .. } = *place;
    leave(tx, place)?;
    if expires < NEVER {
        tx.delete(Space::Due, &due::key(expires, DueKind::Message, number))?;
    }
    let key = message::key(incarnation, number);
    if let Some(row) = rows::get::<MessageRow>(tx, Space::Messages, &key)? {
        drop_parts(tx, (incarnation, number), 0..row.parts())?;
        tx.delete(Space::Messages, &key)?;
    }
    count(tx, (incarnation, number), |messages| messages.saturating_sub(1))
}

/// Removes a message that expired at `at`: what the clockwork does when the instant has come.
pub(crate) fn expire(tx: &mut dyn Tx, at: Timestamp, number: u64) -> Result<(), StoreError> {
    // It may have been moved or deleted since its appointment was looked up.
    let Some(row) = rows::get::<DueRow>(tx, Space::Due, &due::key(at, DueKind::Message, number))? else {
        return Ok(());
    };
    remove(tx, &Place::parse(&row.key)?, at)
}

/// Gives up a place, and its span with the last one in it.
fn leave(tx: &mut dyn Tx, place: &Place) -> Result<(), StoreError> {
    tx.delete(Space::Places, &place.key())?;
    let span = Span::at(place.incarnation, place.visible);
    if tx.any(Space::Places, &span.all())? { Ok(()) } else { tx.delete(Space::Spans, &span.key()) }
}

/// Writes the text of a message, over `old` if there is one.
pub(super) fn write_text(
    tx: &mut dyn Tx,
    (incarnation, number): (u64, u64),
    (inserted, expires): (Timestamp, Timestamp),
    text: &str,
    old: Option<&MessageRow>,
) -> Result<(), StoreError> {
    let bytes = text.as_bytes();
    let (head, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES_MAX));
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let row = MessageRow { inserted, expires, length, head: head.to_vec() };
    for (part, bytes) in (0..=u8::MAX).zip(rest.chunks(PART_BYTES_MAX)) {
        tx.put(Space::Texts, message::text_key(incarnation, number, part), bytes.to_vec())?;
    }
    if let Some(old) = old {
        drop_parts(tx, (incarnation, number), row.parts()..old.parts())?;
    }
    rows::put(tx, Space::Messages, message::key(incarnation, number), &row)
}

fn drop_parts(
    tx: &mut dyn Tx,
    (incarnation, number): (u64, u64),
    parts: std::ops::Range<u8>,
) -> Result<(), StoreError> {
    for part in parts {
        tx.delete(Space::Texts, &message::text_key(incarnation, number, part))?;
    }
    Ok(())
}

/// Counts a message in or out.
pub(super) fn count(
    tx: &mut dyn Tx,
    (incarnation, number): (u64, u64),
    change: impl Fn(u64) -> u64,
) -> Result<(), StoreError> {
    let key = tally::key(incarnation, number);
    let row: TallyRow = rows::get(tx, Space::Tallies, &key)?.unwrap_or_default();
    match change(row.messages) {
        0 => tx.delete(Space::Tallies, &key),
        messages => rows::put(tx, Space::Tallies, key, &TallyRow { messages }),
    }
}

/// How many messages the queue holds that have not expired. Of those that wait to be removed a bounded number is looked
/// at; the others count.
pub(super) fn counted(view: &dyn View, incarnation: u64) -> Result<u64, StoreError> {
    let mut messages = 0_u64;
    for pair in view.scan(Space::Tallies, KeyRange::prefix(&queue::children(incarnation)), Direction::Forward) {
        let (key, value) = pair?;
        messages = messages.saturating_add(rows::codec::decode::<TallyRow>(Space::Tallies, &key, &value)?.messages);
    }
    let mut expired = 0;
    for pair in view.scan(Space::Due, due::up_to(view.now()), Direction::Forward).take(EXPIRED_MAX) {
        let (key, value) = pair?;
        expired += u64::from(is_of(incarnation, &key, &value));
    }
    Ok(messages.saturating_sub(expired))
}

/// Whether the appointment is that of a message of the queue. A damaged one, of whatever it may be, is not: it keeps
/// nobody from counting.
fn is_of(incarnation: u64, key: &[u8], value: &[u8]) -> bool {
    matches!(due::parse(key), Ok((_, DueKind::Message, _)))
        && rows::codec::decode::<DueRow>(Space::Due, key, value)
            .and_then(|row| Place::parse(&row.key))
            .is_ok_and(|place| place.incarnation == incarnation)
}

/// The message at `place`, whole; none if it has gone since the place was looked up.
pub(super) fn view(view: &dyn View, place: &Place, dequeues: u64) -> Result<Option<MessageView>, StoreError> {
    let key = message::key(place.incarnation, place.number);
    let Some(row) = rows::get::<MessageRow>(view, Space::Messages, &key)? else { return Ok(None) };
    let (parts, mut bytes) = (row.parts(), row.head);
    for part in 0..parts {
        let key = message::text_key(place.incarnation, place.number, part);
        let part = view.get(Space::Texts, &key)?;
        bytes.extend_from_slice(&part.ok_or_else(|| corrupt(Space::Texts, &key, "a part of a text is missing"))?);
    }
    if bytes.len() != row.length as usize {
        return Err(corrupt(Space::Messages, &key, "the text has another length"));
    }
    let text = String::from_utf8(bytes).map_err(|_| corrupt(Space::Messages, &key, "the text is not UTF-8"))?;
    let id = MessageId::new(place.number, row.inserted);
    Ok(Some(MessageView { id, inserted: row.inserted, expires: row.expires, dequeues, text }))
}
