use proptest::prelude::*;

use super::*;
use crate::refusal::Refusal::{
    LeaseAbsent, LeaseAbsentOnBlob, LeaseAbsentOnContainer, LeaseBreakingNoAcquire, LeaseBreakingNoChange,
    LeaseBrokenNoRenew, LeaseIdMissing, LeaseLost, LeaseMismatch, LeaseMismatchOnBlob, LeaseMismatchOnContainer,
    LeasePresent,
};
use crate::rows::codec::{self, Row};
use crate::store::Space;

const A: LeaseId = LeaseId(Uuid::from_u128(0xA));
const B: LeaseId = LeaseId(Uuid::from_u128(0xB));
const C: LeaseId = LeaseId(Uuid::from_u128(0xC));
const NOW: Timestamp = Timestamp::from_unix_seconds(1_785_542_400);

fn seconds(count: u64) -> Timestamp {
    NOW.after(Duration::from_secs(count))
}

fn tick_before(time: Timestamp) -> Timestamp {
    Timestamp::from_ticks(time.ticks() - 1)
}

fn fixed(id: LeaseId, ends: Timestamp) -> Lease {
    Lease::Held { id, duration: LeaseDuration::Seconds(60), ends: Some(ends) }
}

fn infinite(id: LeaseId) -> Lease {
    Lease::Held { id, duration: LeaseDuration::Infinite, ends: None }
}

/// The columns of the tables, each with every record that amounts to it at [`NOW`]. Leased has two: infinite, and
/// with 40 seconds left of 60. Breaking has 20 seconds left.
fn columns() -> [(&'static str, Vec<Lease>); 6] {
    let broken = vec![
        Lease::Broken { id: A },
        Lease::Breaking { id: A, ends: NOW },
        Lease::Breaking { id: A, ends: tick_before(NOW) },
    ];
    [
        ("Available", vec![Lease::Available]),
        ("Leased(A) for ever", vec![infinite(A)]),
        ("Leased(A), 40 s left", vec![fixed(A, seconds(40))]),
        ("Breaking(A), 20 s left", vec![Lease::Breaking { id: A, ends: seconds(20) }]),
        ("Broken(A)", broken),
        ("Expired(A)", vec![fixed(A, NOW), fixed(A, tick_before(NOW))]),
    ]
}

/// What a cell of the state machine's table says.
#[derive(Clone, Copy, Debug)]
enum Cell {
    No(Refusal),
    /// Leased under this id, for what was asked from now on.
    Taken(LeaseId),
    /// Leased under the same id, for what was once asked from now on.
    Restarted,
    /// Leased under this id, the clock keeps.
    Renamed(LeaseId),
    Free,
    Broken,
    /// Breaking for so many seconds.
    Breaking(u64),
}
use Cell::{Free, No, Renamed, Restarted, Taken};

const PRESENT: Cell = No(LeasePresent);
const MISMATCH: Cell = No(LeaseMismatch);
const ABSENT: Cell = No(LeaseAbsent);
const NO_RENEW: Cell = No(LeaseBrokenNoRenew);

fn acquire(id: LeaseId, duration: LeaseDuration) -> LeaseAction {
    LeaseAction::Acquire { id, duration }
}

fn renew(id: LeaseId) -> LeaseAction {
    LeaseAction::Renew { id }
}

fn change(id: LeaseId, proposed: LeaseId) -> LeaseAction {
    LeaseAction::Change { id, proposed }
}

fn release(id: LeaseId) -> LeaseAction {
    LeaseAction::Release { id }
}

fn break_in(period: Option<u8>) -> LeaseAction {
    LeaseAction::Break { period }
}

/// The table of actions. An acquire without an id comes here with a generated one, which nobody holds.
fn table() -> Vec<(LeaseAction, [Cell; 6])> {
    let no_acquire = No(LeaseBreakingNoAcquire);
    let no_change = No(LeaseBreakingNoChange);
    let mut table = vec![
        //                    Available  for ever          40 s left         Breaking          Broken        Expired
        (renew(A), [MISMATCH, Restarted, Restarted, NO_RENEW, NO_RENEW, Restarted]),
        (renew(B), [MISMATCH, MISMATCH, MISMATCH, MISMATCH, MISMATCH, MISMATCH]),
        (change(A, B), [ABSENT, Renamed(B), Renamed(B), no_change, ABSENT, ABSENT]),
        (change(A, A), [ABSENT, Renamed(A), Renamed(A), no_change, ABSENT, ABSENT]),
        (change(B, A), [ABSENT, Renamed(A), Renamed(A), MISMATCH, ABSENT, ABSENT]),
        (change(B, C), [ABSENT, MISMATCH, MISMATCH, MISMATCH, ABSENT, ABSENT]),
        (release(A), [MISMATCH, Free, Free, Free, Free, Free]),
        (release(B), [MISMATCH, MISMATCH, MISMATCH, MISMATCH, MISMATCH, MISMATCH]),
        (break_in(Some(0)), [ABSENT, Cell::Broken, Cell::Broken, Cell::Broken, Cell::Broken, Cell::Broken]),
        (
            break_in(Some(10)),
            [ABSENT, Cell::Breaking(10), Cell::Breaking(10), Cell::Breaking(10), Cell::Broken, Cell::Broken],
        ),
        (
            break_in(Some(30)),
            [ABSENT, Cell::Breaking(30), Cell::Breaking(30), Cell::Breaking(20), Cell::Broken, Cell::Broken],
        ),
        (
            break_in(Some(60)),
            [ABSENT, Cell::Breaking(60), Cell::Breaking(40), Cell::Breaking(20), Cell::Broken, Cell::Broken],
        ),
        (break_in(None), [ABSENT, Cell::Broken, Cell::Breaking(40), Cell::Breaking(20), Cell::Broken, Cell::Broken]),
    ];
    for duration in [LeaseDuration::Infinite, LeaseDuration::Seconds(15), LeaseDuration::Seconds(60)] {
        table.push((acquire(C, duration), [Taken(C), PRESENT, PRESENT, PRESENT, Taken(C), Taken(C)]));
        table.push((acquire(A, duration), [Taken(A), Taken(A), Taken(A), no_acquire, Taken(A), Taken(A)]));
        table.push((acquire(B, duration), [Taken(B), PRESENT, PRESENT, PRESENT, Taken(B), Taken(B)]));
    }
    table
}

fn starting_now(id: LeaseId, duration: LeaseDuration) -> Lease {
    let ends = match duration {
        LeaseDuration::Infinite => None,
        LeaseDuration::Seconds(count) => Some(seconds(count.into())),
    };
    Lease::Held { id, duration, ends }
}

fn expected(cell: Cell, before: Lease, action: LeaseAction) -> Result<Lease, Refusal> {
    let asked = match (action, before) {
        (LeaseAction::Acquire { duration, .. }, _) | (_, Lease::Held { duration, .. }) => duration,
        _ => LeaseDuration::Infinite,
    };
    Ok(match cell {
        No(refusal) => return Err(refusal),
        Taken(id) => starting_now(id, asked),
        Restarted => starting_now(A, asked),
        Renamed(id) => match before {
            Lease::Held { duration, ends, .. } => Lease::Held { id, duration, ends },
            other => other,
        },
        Free => Lease::Available,
        Cell::Broken => Lease::Broken { id: A },
        Cell::Breaking(count) => Lease::Breaking { id: A, ends: seconds(count) },
    })
}

#[test]
fn every_action_in_every_state_does_what_the_table_says() {
    for (action, cells) in table() {
        for ((column, records), cell) in columns().into_iter().zip(cells) {
            for record in records {
                let after = record.apply(action, NOW);
                assert_eq!(after, expected(cell, record, action), "{action:?} | {column}: {cell:?} | {record:?}");
                if let (Ok(after), LeaseAction::Break { .. }) = (after, action) {
                    let left = if let Cell::Breaking(count) = cell { count } else { 0 };
                    assert_eq!(after.break_seconds(NOW), left, "time of {action:?} | {column} | {record:?}");
                }
            }
        }
    }
}

#[test]
fn a_lease_amounts_to_the_state_of_its_column_and_tells_its_duration_only_while_leased() {
    let fixed = Some(LeaseDuration::Seconds(60));
    let expected = [
        (LeaseState::Available, false, None),
        (LeaseState::Leased, true, Some(LeaseDuration::Infinite)),
        (LeaseState::Leased, true, fixed),
        (LeaseState::Breaking, true, None),
        (LeaseState::Broken, false, None),
        (LeaseState::Expired, false, None),
    ];
    for ((column, records), (state, locked, duration)) in columns().into_iter().zip(expected) {
        for record in records {
            assert_eq!(record.state(NOW), state, "{column} | {record:?}");
            assert_eq!(record.state(NOW).is_locked(), locked, "{column} | {record:?}");
            assert_eq!(record.duration(NOW), duration, "{column} | {record:?}");
            assert_eq!(record.id(), (state != LeaseState::Available).then_some(A), "{column} | {record:?}");
        }
    }
}

#[test]
fn time_runs_out_at_the_very_instant_of_the_end() {
    let end = seconds(15);
    let held = Lease::Available.apply(acquire(A, LeaseDuration::Seconds(15)), NOW).unwrap();
    let breaking = infinite(A).apply(break_in(Some(15)), NOW).unwrap();
    let cases = [
        (held, NOW, LeaseState::Leased),
        (held, tick_before(end), LeaseState::Leased),
        (held, end, LeaseState::Expired),
        (held, Timestamp::from_ticks(end.ticks() + 1), LeaseState::Expired),
        (breaking, NOW, LeaseState::Breaking),
        (breaking, tick_before(end), LeaseState::Breaking),
        (breaking, end, LeaseState::Broken),
        (breaking, Timestamp::from_ticks(end.ticks() + 1), LeaseState::Broken),
        (infinite(A), Timestamp::from_ticks(u64::MAX), LeaseState::Leased),
    ];
    for (record, at, state) in cases {
        assert_eq!(record.state(at), state, "{record:?} at {at:?}");
    }
}

#[test]
fn seconds_until_a_break_is_complete_are_rounded_up() {
    let second = TICKS_PER_SECOND;
    let cases = [
        (0, 0),
        (1, 1),
        (9_999, 1),
        (second - 1, 1),
        (second, 1),
        (second + 1, 2),
        (10 * second, 10),
        (60 * second, 60),
    ];
    for (ticks, expected) in cases {
        let breaking = Lease::Breaking { id: A, ends: Timestamp::from_ticks(NOW.ticks() + ticks) };
        assert_eq!(breaking.break_seconds(NOW), expected, "{ticks} ticks left");
    }
    for other in [Lease::Available, infinite(A), fixed(A, seconds(9)), Lease::Broken { id: A }] {
        assert_eq!(other.break_seconds(NOW), 0, "{other:?}");
    }
}

/// What a cell of the table of uses says: the record stays, is forgotten, or a refusal.
#[derive(Clone, Copy, Debug)]
enum Use {
    Keeps,
    Forgets,
    Fails(Refusal),
}
use Use::{Fails, Forgets, Keeps};

fn uses(on: Leased) -> [(&'static str, Option<LeaseId>, [Use; 6]); 6] {
    let (mismatch, absent) = match on {
        Leased::Blob => (Fails(LeaseMismatchOnBlob), Fails(LeaseAbsentOnBlob)),
        Leased::Container => (Fails(LeaseMismatchOnContainer), Fails(LeaseAbsentOnContainer)),
    };
    let (missing, lost) = (Fails(LeaseIdMissing), Fails(LeaseLost));
    [
        //                     Available, for ever, 40 s left, Breaking, Broken, Expired
        ("write with A", Some(A), [absent, Keeps, Keeps, Keeps, lost, lost]),
        ("write with B", Some(B), [absent, mismatch, mismatch, mismatch, lost, lost]),
        ("write, no id", None, [Keeps, missing, missing, missing, Forgets, Forgets]),
        ("read with A", Some(A), [absent, Keeps, Keeps, Keeps, lost, lost]),
        ("read with B", Some(B), [absent, mismatch, mismatch, mismatch, lost, lost]),
        ("read, no id", None, [Keeps, Keeps, Keeps, Keeps, Keeps, Keeps]),
    ]
}

#[test]
fn every_use_of_a_leased_object_does_what_the_table_says() {
    for on in [Leased::Blob, Leased::Container] {
        for (attempt, given, cells) in uses(on) {
            for ((column, records), cell) in columns().into_iter().zip(cells) {
                for record in records {
                    let answer = if attempt.starts_with("write") {
                        record.guard_write(NOW, given, on)
                    } else {
                        record.guard_read(NOW, given, on).map(|()| record)
                    };
                    let expected = match cell {
                        Keeps => Ok(record),
                        Forgets => Ok(Lease::Available),
                        Fails(refusal) => Err(refusal),
                    };
                    assert_eq!(answer, expected, "{attempt} of a {on:?} | {column}: {cell:?} | {record:?}");
                }
            }
        }
    }
}

#[test]
fn an_expired_lease_can_be_renewed_until_a_write_without_it() {
    let expired = fixed(A, NOW);
    assert!(expired.apply(renew(A), NOW).is_ok());
    let written = expired.guard_write(NOW, None, Leased::Blob).unwrap();
    assert_eq!(written.apply(renew(A), NOW), Err(LeaseMismatch));
    let retaken = expired.apply(acquire(B, LeaseDuration::Seconds(15)), NOW).unwrap();
    assert_eq!(retaken.apply(renew(A), NOW), Err(LeaseMismatch));
}

/// A row that is only a lease.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Recorded(Lease);

impl Row for Recorded {
    const VERSION: u8 = 1;
}

fn any_id() -> impl Strategy<Value = LeaseId> {
    prop_oneof![Just(A), Just(B), Just(C)]
}

fn any_duration() -> impl Strategy<Value = LeaseDuration> {
    prop_oneof![Just(LeaseDuration::Infinite), (15_u8..=60).prop_map(LeaseDuration::Seconds)]
}

fn any_action() -> impl Strategy<Value = LeaseAction> {
    prop_oneof![
        3 => (any_id(), any_duration()).prop_map(|(id, duration)| acquire(id, duration)),
        2 => any_id().prop_map(renew),
        2 => (any_id(), any_id()).prop_map(|(id, proposed)| change(id, proposed)),
        1 => any_id().prop_map(release),
        1 => proptest::option::of(0_u8..=60).prop_map(break_in),
    ]
}

/// How long to wait before the next action: often nothing, often beyond a boundary.
fn any_wait() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0_u64..=70).prop_map(Duration::from_secs),
        (0_u64..=70_000).prop_map(Duration::from_millis)
    ]
}

proptest! {
    #[test]
    fn whatever_is_done_a_lock_has_one_holder_and_opens_only_by_release_break_or_time(
        steps in proptest::collection::vec((any_wait(), any_action()), 1..60),
    ) {
        let (mut lease, mut now) = (Lease::Available, NOW);
        for (wait, action) in steps {
            now = now.after(wait);
            let before = lease.state(now);
            let holder = lease.id();
            let Ok(after) = lease.apply(action, now) else { continue };
            let opened = before.is_locked() && !after.state(now).is_locked();
            let by_holder = matches!(action, LeaseAction::Release { id } if Some(id) == holder);
            prop_assert!(!opened || by_holder || matches!(action, LeaseAction::Break { .. }), "{action:?} opened {lease:?}");
            let taken_over = before.is_locked() && after.id() != holder && !opened;
            prop_assert!(!taken_over || matches!(action, LeaseAction::Change { .. }), "{action:?} took {lease:?}");
            lease = after;
            let passes = [A, B, C].into_iter().filter(|id| lease.guard_write(now, Some(*id), Leased::Blob).is_ok());
            prop_assert_eq!(passes.count(), usize::from(lease.state(now).is_locked()), "holders of {:?}", lease);
        }
    }

    #[test]
    fn a_refused_or_unlocked_call_never_needs_more_than_the_record_and_the_time(
        steps in proptest::collection::vec((any_wait(), any_action()), 1..40),
    ) {
        let (mut lease, mut restarted, mut now) = (Lease::Available, Lease::Available, NOW);
        for (wait, action) in steps {
            now = now.after(wait);
            let bytes = codec::encode(&Recorded(restarted)).unwrap();
            restarted = codec::decode::<Recorded>(Space::Blobs, b"", &bytes).unwrap().0;
            let (one, other) = (lease.apply(action, now), restarted.apply(action, now));
            prop_assert_eq!(one, other);
            lease = one.unwrap_or(lease);
            restarted = other.unwrap_or(restarted);
            prop_assert_eq!(lease.state(now), restarted.state(now));
        }
    }

    #[test]
    fn time_alone_opens_a_lock_once_and_never_closes_one(
        steps in proptest::collection::vec((any_wait(), any_action()), 1..20),
        waits in proptest::collection::vec(any_wait(), 1..20),
    ) {
        let (mut lease, mut now) = (Lease::Available, NOW);
        for (wait, action) in steps {
            now = now.after(wait);
            lease = lease.apply(action, now).unwrap_or(lease);
        }
        let mut state = lease.state(now);
        for wait in waits {
            now = now.after(wait);
            let next = lease.state(now);
            let step = matches!(
                (state, next),
                (LeaseState::Leased, LeaseState::Expired) | (LeaseState::Breaking, LeaseState::Broken)
            );
            prop_assert!(next == state || step, "{:?} went from {:?} to {:?}", lease, state, next);
            state = next;
        }
    }
}
