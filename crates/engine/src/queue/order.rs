//! The order in which messages can be had, read from its beginning.

use crate::rows::codec;
use crate::rows::place::{Place, PlaceRow};
use crate::rows::span::{self, Span, SpanRow};
use crate::store::{Direction, Space, StoreError, View};

/// How much one look at a queue passes over at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Expired messages looked at, each.
    pub(super) expired: usize,
    /// Spans of which everything has expired.
    pub(super) spans: usize,
}

/// What a look at the beginning of a queue finds.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Messages to be had, in order.
    pub(super) visible: Vec<(Place, PlaceRow)>,
    /// Expired messages that stand among them.
    pub(super) expired: Vec<(Place, PlaceRow)>,
    /// Spans before them whose messages have all expired.
    pub(super) passed: Vec<Span>,
    /// Whether it ended at a bound: there may be more.
    pub(super) cut: bool,
}

/// The first messages, at most `limit`, that can be had at the view's moment. Invisible messages are not looked at,
/// nor are expired ones whose whole span has expired.
pub(super) fn first(view: &dyn View, incarnation: u64, limit: usize, bounds: Bounds) -> Result<Found, StoreError> {
    let now = view.now();
    let mut found = Found::default();
    for pair in view.scan(Space::Spans, span::up_to(incarnation, now), Direction::Forward) {
        let (key, value) = pair?;
        let span = Span::parse(&key)?;
        let row: SpanRow = codec::decode(Space::Spans, &key, &value)?;
        if row.until > now {
            if !look_into(view, span, limit, bounds, &mut found)? {
                break;
            }
            continue;
        }
        found.passed.push(span);
        if found.passed.len() == bounds.spans {
            found.cut = true;
            break;
        }
    }
    Ok(found)
}

/// Looks at the visible places of one span; answers whether all were seen and more are wanted.
fn look_into(view: &dyn View, span: Span, limit: usize, bounds: Bounds, found: &mut Found) -> Result<bool, StoreError> {
    let now = view.now();
    for pair in view.scan(Space::Places, span.visible(now), Direction::Forward) {
        let (key, value) = pair?;
        let (place, row) = (Place::parse(&key)?, codec::decode::<PlaceRow>(Space::Places, &key, &value)?);
        if row.expires > now {
            found.visible.push((place, row));
            if found.visible.len() == limit {
                return Ok(false);
            }
        } else {
            found.expired.push((place, row));
            if found.expired.len() == bounds.expired {
                found.cut = true;
                return Ok(false);
            }
        }
    }
    Ok(true)
}
