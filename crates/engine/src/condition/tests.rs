use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::refusal::Refusal::{BlobExists, ConditionFailed, ConditionUnsatisfiable, NotModified};

/// The object's version, written in the middle of a second.
fn current() -> Etag {
    Etag::at(second(0).after(Duration::from_millis(500)))
}

/// A whole second, `offset` seconds after the one in which the object was written.
fn second(offset: i64) -> Timestamp {
    Timestamp::from_unix_seconds(1_785_542_400_u64.checked_add_signed(offset).unwrap())
}

fn stale() -> Etag {
    Etag::at(second(0).after(Duration::from_millis(499)))
}

fn one_of(etags: &[Etag]) -> EtagSet {
    EtagSet::OneOf(etags.iter().map(|etag| format!("\"{etag}\"")).collect())
}

fn if_match(set: EtagSet) -> Conditions {
    Conditions { if_match: Some(set), ..Conditions::default() }
}

fn if_none_match(set: EtagSet) -> Conditions {
    Conditions { if_none_match: Some(set), ..Conditions::default() }
}

fn if_modified_since(time: Timestamp) -> Conditions {
    Conditions { if_modified_since: Some(time), ..Conditions::default() }
}

fn if_unmodified_since(time: Timestamp) -> Conditions {
    Conditions { if_unmodified_since: Some(time), ..Conditions::default() }
}

/// One row: the header, and what a read, a write, a create over the object and a create of a new one answer.
type Line = (&'static str, Conditions, [Result<(), Refusal>; 4]);

const FAILED: Result<(), Refusal> = Err(ConditionFailed);

fn same() -> Result<(), Refusal> {
    Err(NotModified { etag: current() })
}

fn single_headers() -> Vec<Line> {
    let unquoted = EtagSet::OneOf(vec![current().to_string()]);
    let empty = EtagSet::OneOf(Vec::new());
    vec![
        //                                                      read, write, replace, create
        ("no header", Conditions::default(), [Ok(()), Ok(()), Ok(()), Ok(())]),
        ("If-Match: equal", if_match(one_of(&[current()])), [Ok(()), Ok(()), Ok(()), FAILED]),
        ("If-Match: equal, unquoted", if_match(unquoted.clone()), [Ok(()), Ok(()), Ok(()), FAILED]),
        ("If-Match: other of the same second", if_match(one_of(&[stale()])), [FAILED, FAILED, FAILED, FAILED]),
        ("If-Match: *", if_match(EtagSet::Any), [Ok(()), Ok(()), Ok(()), FAILED]),
        ("If-Match: other, equal", if_match(one_of(&[stale(), current()])), [Ok(()), Ok(()), Ok(()), FAILED]),
        ("If-Match: other, other", if_match(one_of(&[stale(), stale()])), [FAILED, FAILED, FAILED, FAILED]),
        ("If-Match: nothing", if_match(empty.clone()), [FAILED, FAILED, FAILED, FAILED]),
        ("If-None-Match: equal", if_none_match(one_of(&[current()])), [same(), FAILED, FAILED, Ok(())]),
        ("If-None-Match: equal, unquoted", if_none_match(unquoted), [same(), FAILED, FAILED, Ok(())]),
        ("If-None-Match: other", if_none_match(one_of(&[stale()])), [Ok(()), Ok(()), Ok(()), Ok(())]),
        (
            "If-None-Match: *",
            if_none_match(EtagSet::Any),
            [Err(ConditionUnsatisfiable), FAILED, Err(BlobExists), Ok(())],
        ),
        ("If-None-Match: other, equal", if_none_match(one_of(&[stale(), current()])), [same(), FAILED, FAILED, Ok(())]),
        ("If-None-Match: other, other", if_none_match(one_of(&[stale(), stale()])), [Ok(()), Ok(()), Ok(()), Ok(())]),
        ("If-None-Match: nothing", if_none_match(empty), [Ok(()), Ok(()), Ok(()), Ok(())]),
        ("If-Modified-Since: earlier second", if_modified_since(second(-1)), [Ok(()), Ok(()), Ok(()), Ok(())]),
        ("If-Modified-Since: same second", if_modified_since(second(0)), [same(), FAILED, FAILED, Ok(())]),
        ("If-Modified-Since: later second", if_modified_since(second(1)), [same(), FAILED, FAILED, Ok(())]),
        ("If-Modified-Since: far future", if_modified_since(second(1 << 32)), [same(), FAILED, FAILED, Ok(())]),
        ("If-Unmodified-Since: earlier second", if_unmodified_since(second(-1)), [FAILED, FAILED, FAILED, Ok(())]),
        ("If-Unmodified-Since: same second", if_unmodified_since(second(0)), [Ok(()), Ok(()), Ok(()), Ok(())]),
        ("If-Unmodified-Since: later second", if_unmodified_since(second(1)), [Ok(()), Ok(()), Ok(()), Ok(())]),
    ]
}

#[test]
fn every_header_alone_is_judged_as_the_table_says() {
    for (line, conditions, [read, write, replace, create]) in single_headers() {
        assert_eq!(conditions.judge_read(current()), read, "read | {line}");
        assert_eq!(conditions.judge_write(current()), write, "write | {line}");
        assert_eq!(conditions.judge_create(Some(current())), replace, "replace | {line}");
        assert_eq!(conditions.judge_create(None), create, "create | {line}");
    }
}

#[test]
fn combined_headers_of_a_read_are_judged_as_the_table_says() {
    let (pass_match, miss_match) = (Some(one_of(&[current()])), Some(one_of(&[stale()])));
    let (pass_none, miss_none) = (Some(one_of(&[stale()])), Some(one_of(&[current()])));
    let (pass_modified, miss_modified) = (Some(second(-1)), Some(second(0)));
    let (pass_unmodified, miss_unmodified) = (Some(second(0)), Some(second(-1)));
    let none_at_all = Some(EtagSet::Any);
    let cases = [
        // If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since
        (&None, &pass_none, pass_modified, None, Ok(())),
        (&None, &pass_none, miss_modified, None, Ok(())),
        (&None, &miss_none, pass_modified, None, Ok(())),
        (&None, &miss_none, miss_modified, None, same()),
        (&pass_match, &None, None, pass_unmodified, Ok(())),
        (&pass_match, &None, None, miss_unmodified, FAILED),
        (&miss_match, &None, None, pass_unmodified, FAILED),
        (&miss_match, &None, None, miss_unmodified, FAILED),
        (&pass_match, &miss_none, None, None, same()),
        (&miss_match, &pass_none, None, None, FAILED),
        (&miss_match, &miss_none, miss_modified, None, FAILED),
        (&None, &miss_none, miss_modified, miss_unmodified, FAILED),
        (&pass_match, &miss_none, miss_modified, pass_unmodified, same()),
        (&pass_match, &miss_none, pass_modified, pass_unmodified, Ok(())),
        (&None, &none_at_all, pass_modified, None, Err(ConditionUnsatisfiable)),
        (&miss_match, &none_at_all, None, None, FAILED),
        (&None, &none_at_all, None, miss_unmodified, FAILED),
    ];
    for (if_match, if_none_match, if_modified_since, if_unmodified_since, expected) in cases {
        let conditions = Conditions {
            if_match: if_match.clone(),
            if_none_match: if_none_match.clone(),
            if_modified_since,
            if_unmodified_since,
            ..Conditions::default()
        };
        assert_eq!(conditions.judge_read(current()), expected, "{conditions:?}");
    }
}

#[test]
fn a_write_with_both_kinds_is_judged_by_the_version_alone() {
    let cases = [
        (Some(one_of(&[current()])), None, None, Some(second(-1)), Ok(())),
        (Some(one_of(&[stale()])), None, None, Some(second(0)), FAILED),
        (None, Some(one_of(&[stale()])), Some(second(0)), None, Ok(())),
        (None, Some(one_of(&[current()])), Some(second(-1)), None, FAILED),
    ];
    for (if_match, if_none_match, if_modified_since, if_unmodified_since, expected) in cases {
        let conditions =
            Conditions { if_match, if_none_match, if_modified_since, if_unmodified_since, ..Conditions::default() };
        assert_eq!(conditions.judge_write(current()), expected, "write | {conditions:?}");
        assert_eq!(conditions.judge_create(Some(current())), expected, "replace | {conditions:?}");
    }
}

/// Each header by itself, literally as the document's first table has it; `etag` is none for an absent object.
mod document {
    use super::*;

    fn equal(set: &EtagSet, etag: Etag) -> bool {
        match set {
            EtagSet::Any => true,
            EtagSet::OneOf(texts) => texts.iter().any(|text| text.replace('"', "") == etag.to_string()),
        }
    }

    fn last_modified(etag: Etag) -> u64 {
        etag.committed().unix_seconds()
    }

    pub(super) fn read(on: &Conditions, etag: Etag) -> Result<(), Refusal> {
        let m = on.if_match.as_ref().map(|set| equal(set, etag));
        let nm = on.if_none_match.as_ref().map(|set| !equal(set, etag));
        let ms = on.if_modified_since.map(|time| last_modified(etag) > time.unix_seconds());
        let us = on.if_unmodified_since.map(|time| last_modified(etag) <= time.unix_seconds());
        let fresh = match (nm, ms) {
            (None, None) => true,
            (Some(term), None) | (None, Some(term)) => term,
            (Some(nm), Some(ms)) => nm || ms,
        };
        match (m.unwrap_or(true) && us.unwrap_or(true), fresh) {
            (false, _) => Err(ConditionFailed),
            (true, _) if on.if_none_match == Some(EtagSet::Any) => Err(ConditionUnsatisfiable),
            (true, true) => Ok(()),
            (true, false) => Err(NotModified { etag }),
        }
    }

    pub(super) fn write(on: &Conditions, etag: Etag) -> Result<(), Refusal> {
        let passes = if let Some(set) = &on.if_match {
            equal(set, etag)
        } else if let Some(set) = &on.if_none_match {
            !equal(set, etag)
        } else if let Some(time) = on.if_modified_since {
            last_modified(etag) > time.unix_seconds()
        } else if let Some(time) = on.if_unmodified_since {
            last_modified(etag) <= time.unix_seconds()
        } else {
            true
        };
        if passes { Ok(()) } else { Err(ConditionFailed) }
    }
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    (-3_i64..=3, 0_u64..1000).prop_map(|(offset, millis)| second(offset).after(Duration::from_millis(millis)))
}

fn any_set() -> impl Strategy<Value = EtagSet> {
    let etag = prop_oneof![3 => Just(current()), 2 => any_time().prop_map(Etag::at)];
    let text =
        (etag, any::<bool>()).prop_map(|(etag, quoted)| if quoted { format!("\"{etag}\"") } else { etag.to_string() });
    prop_oneof![1 => Just(EtagSet::Any), 4 => proptest::collection::vec(text, 1..4).prop_map(EtagSet::OneOf)]
}

#[test]
fn the_tier_is_judged_by_the_second_in_which_it_was_set() {
    let (set, before) = (Timestamp::from_unix_seconds(100), Timestamp::from_unix_seconds(99));
    let cases = [
        (None, None, Ok(())),
        (Some(before), None, Ok(())),
        (Some(set), None, FAILED),
        (None, Some(set), Ok(())),
        (None, Some(before), FAILED),
        (Some(before), Some(set), Ok(())),
        (Some(before), Some(before), FAILED),
    ];
    for (tier_modified_since, tier_unmodified_since, expected) in cases {
        let conditions = Conditions { tier_modified_since, tier_unmodified_since, ..Conditions::default() };
        assert_eq!(conditions.judge_tier(Timestamp::from_ticks(set.ticks() + 1)), expected, "{conditions:?}");
    }
}

proptest! {
    #[test]
    fn reads_follow_the_formula_of_the_document(
        if_match in proptest::option::of(any_set()),
        if_none_match in proptest::option::of(any_set()),
        if_modified_since in proptest::option::of(any_time()),
        if_unmodified_since in proptest::option::of(any_time()),
    ) {
        let conditions = Conditions {
            if_match,
            if_none_match,
            if_modified_since,
            if_unmodified_since,
            ..Conditions::default()
        };
        prop_assert_eq!(conditions.judge_read(current()), document::read(&conditions, current()));
    }

    /// Only the combinations that a write may carry.
    #[test]
    fn writes_follow_the_rules_of_the_document(
        set in proptest::option::of(any_set()),
        time in proptest::option::of(any_time()),
        first_pair in any::<bool>(),
    ) {
        let conditions = if first_pair {
            Conditions { if_match: set, if_unmodified_since: time, ..Conditions::default() }
        } else {
            Conditions { if_none_match: set, if_modified_since: time, ..Conditions::default() }
        };
        prop_assert_eq!(conditions.judge_write(current()), document::write(&conditions, current()));
        let replace = if conditions.if_none_match == Some(EtagSet::Any) {
            Err(BlobExists)
        } else {
            document::write(&conditions, current())
        };
        prop_assert_eq!(conditions.judge_create(Some(current())), replace);
        let create = if conditions.if_match.is_some() { Err(ConditionFailed) } else { Ok(()) };
        prop_assert_eq!(conditions.judge_create(None), create);
    }
}

#[test]
fn nothing_that_is_made_is_newer_than_an_instant_to_come() {
    let cases = [
        (None, None, Ok(())),
        (Some(second(0)), None, Ok(())),
        (Some(second(1)), None, Err(ConditionFailed)),
        (Some(second(1)), Some(EtagSet::Any), Ok(())),
    ];
    for (if_modified_since, if_none_match, expected) in cases {
        let conditions = Conditions { if_modified_since, if_none_match, ..Conditions::default() };
        assert_eq!(conditions.judge_absent(second(0)), expected, "{conditions:?}");
    }
}

#[test]
fn who_may_only_create_replaces_nothing_whatever_the_conditions() {
    let only_new = |conditions| Conditions { only_new: true, ..conditions };
    let cases = [
        (Conditions::default(), Some(current()), Err(Refusal::BlobKept)),
        (if_match(EtagSet::Any), Some(current()), Err(Refusal::BlobKept)),
        (if_match(one_of(&[stale()])), Some(current()), Err(ConditionFailed)),
        (if_none_match(EtagSet::Any), Some(current()), Err(BlobExists)),
        (Conditions::default(), None, Ok(())),
        (if_none_match(EtagSet::Any), None, Ok(())),
    ];
    for (conditions, existing, expected) in cases {
        let conditions = only_new(conditions);
        assert_eq!(conditions.judge_create(existing), expected, "{conditions:?} {existing:?}");
    }
}
