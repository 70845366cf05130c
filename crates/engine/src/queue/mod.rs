//! Queues and messages: the operations, each a function from a typed request to a typed answer.
//!
//! A message has a row with its text, which never moves, and a place in the order in which messages can be had: by the
//! instant at which it is visible, then by age. Whoever takes or updates a message moves it to another place, and only
//! the receipt that names the present place is good. Nothing is ever placed in the past, so a message comes back by
//! itself when its instant has come, and a restart changes nothing.

pub mod messages;
pub mod queues;

pub(crate) mod erase;
mod order;
mod state;
#[cfg(test)]
mod tests;

use std::time::Duration;

use uuid::Uuid;

use crate::clock::Timestamp;
use crate::names::QueueAddress;

pub(crate) use state::expire;

/// When a message that lives for ever expires.
pub const NEVER: Timestamp = Timestamp::from_ticks(u64::MAX);

/// Low bits of the time of insertion that are part of a message's id.
const INSERTED_BITS: u32 = 58;
const INSERTED_MASK: u64 = (1 << INSERTED_BITS) - 1;

/// Names a message: its number, which this store never gives twice, and the instant at which it was put, which tells
/// it from messages of other stores. As a GUID of version 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    number: u64,
    inserted: u64,
}

impl MessageId {
    fn new(number: u64, inserted: Timestamp) -> Self {
        Self { number, inserted: inserted.ticks() & INSERTED_MASK }
    }

    /// The id that `uuid` is; none if it is no message's.
    pub fn from_uuid(uuid: Uuid) -> Option<Self> {
        let bits = uuid.as_u128();
        if (bits >> 76) & 0xF != 8 || (bits >> 62) & 0b11 != 0b10 {
            return None;
        }
        let joined = ((bits >> 80) << 74) | (((bits >> 64) & 0xFFF) << 62) | (bits & ((1 << 62) - 1));
        let number = u64::try_from(joined >> INSERTED_BITS).ok()?;
        let inserted = u64::try_from(joined & u128::from(INSERTED_MASK)).ok()?;
        Some(Self { number, inserted })
    }

    /// The id as a GUID.
    pub fn uuid(self) -> Uuid {
        let joined = (u128::from(self.number) << INSERTED_BITS) | u128::from(self.inserted);
        let (high, middle, low) = (joined >> 74, (joined >> 62) & 0xFFF, joined & ((1 << 62) - 1));
        Uuid::from_u128((high << 80) | (8 << 76) | (middle << 64) | (0b10 << 62) | low)
    }
}

/// The right to delete or update a message, as long as nobody takes or updates it: also after it is visible again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// Where the message was placed.
    pub visible: Timestamp,
    /// When it was placed there.
    pub placed: Timestamp,
}

/// A message and the right to it that the caller claims.
#[derive(Clone, Debug)]
pub struct OnMessage {
    /// The queue.
    pub queue: QueueAddress,
    /// The message; none for an id that no message can have.
    pub id: Option<MessageId>,
    /// The latest receipt; none for one that this service never gave.
    pub receipt: Option<Receipt>,
}

/// A message to put.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Its text: at most 64 KiB, which the protocol checks.
    pub text: String,
    /// How long it stays invisible; shorter than it lives, which the protocol checks.
    pub invisible: Duration,
    /// How long it lives; none for ever.
    pub lifetime: Option<Duration>,
}

/// What taking, putting or updating a message gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The right to it from then on; any earlier one is void.
    pub receipt: Receipt,
    /// When it is visible again.
    pub visible: Timestamp,
}

/// What putting a message answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its id.
    pub id: MessageId,
    /// When it was put.
    pub inserted: Timestamp,
    /// When it ceases to exist.
    pub expires: Timestamp,
    /// The right to it.
    pub held: Held,
}

/// A message as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    /// Its id.
    pub id: MessageId,
    /// When it was put.
    pub inserted: Timestamp,
    /// When it ceases to exist.
    pub expires: Timestamp,
    /// How often it was taken.
    pub dequeues: u64,
    /// Its text.
    pub text: String,
}

/// A message that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The message.
    pub message: MessageView,
    /// The right to it.
    pub held: Held,
}
