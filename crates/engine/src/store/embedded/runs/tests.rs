use proptest::prelude::*;

use super::*;

fn interval(from: &str, to: &str) -> Interval {
    Interval { from: from.into(), to: (to != "end").then(|| to.into()) }
}

fn run(interval: &Interval, keys: &[&str]) -> Arc<Run> {
    let mut pairs = Packed::default();
    keys.iter().for_each(|key| pairs.push(key.as_bytes(), b"value"));
    Arc::new(Run { interval: interval.clone(), pairs })
}

fn wrote(key: &str) -> Writes {
    let mut writes = Writes::default();
    writes.set(Space::Entities, key.to_owned().into(), None);
    writes.set(Space::Blobs, "b".into(), None);
    writes
}

/// What is found at the beginning of `interval`: `run` or `gap`, and its keys.
fn found(runs: &Runs, from: &str, to: &str) -> String {
    let text = |interval: &Interval| {
        let to = interval.to.as_deref().map_or("end".into(), String::from_utf8_lossy);
        format!("{}..{to}", String::from_utf8_lossy(&interval.from))
    };
    match runs.find(Space::Entities, &interval(from, to)) {
        Found::Run(run) => format!("run {}", text(&run.interval)),
        Found::Gap(reading) => format!("gap {}", text(&reading.interval)),
    }
}

fn keep(runs: &Runs, from: &str, to: &str) {
    match runs.find(Space::Entities, &interval(from, to)) {
        Found::Gap(reading) => reading.keep(run(&interval(from, to), &[from])),
        Found::Run(_) => panic!("there is one already"),
    }
}

/// Checks that no two runs have a key in common, and that the bytes add up.
fn check(runs: &Runs) {
    let state = runs.state.lock();
    let kept: Vec<_> = state.runs.values().flat_map(BTreeMap::values).collect();
    assert_eq!(kept.iter().map(|kept| kept.run.cost()).sum::<usize>(), state.bytes);
    assert!(state.bytes <= runs.bytes_max);
    for runs in state.runs.values() {
        for (one, next) in runs.values().zip(runs.values().skip(1)) {
            assert!(one.run.interval.to.as_ref().is_some_and(|to| *to <= next.run.interval.from), "{one:?} {next:?}");
        }
    }
    assert!(state.begun.is_empty());
}

#[test]
fn ranges_are_intervals_whatever_their_bounds() {
    let key = |key: &str| key.as_bytes().to_vec();
    let cases = [
        (KeyRange::all(), interval("", "end"), false),
        (KeyRange { start: Included(key("a")), end: Excluded(key("b")) }, interval("a", "b"), false),
        (KeyRange { start: Excluded(key("a")), end: Included(key("b")) }, interval("a\0", "b\0"), false),
        (KeyRange { start: Included(key("a")), end: Included(key("a")) }, interval("a", "a\0"), false),
        (KeyRange { start: Included(key("a")), end: Excluded(key("a")) }, interval("a", "a"), true),
        (KeyRange { start: Excluded(key("a")), end: Excluded(key("a")) }, interval("a\0", "a"), true),
        (KeyRange { start: Included(key("b")), end: Unbounded }, interval("b", "end"), false),
    ];
    for (range, expected, empty) in cases {
        assert_eq!((Interval::of(&range), expected.is_empty()), (expected, empty), "{range:?}");
    }
    assert_eq!(interval("a", "c").up_to(Some(b"b")), interval("a", "b"));
    assert_eq!(interval("a", "c").up_to(Some(b"d")), interval("a", "c"));
    assert_eq!(interval("a", "end").up_to(Some(b"b")), interval("a", "b"));
    assert_eq!(interval("a", "c").up_to(None), interval("a", "c"));
}

#[test]
fn packed_pairs_are_cut_where_an_interval_is() {
    let run = run(&interval("a", "z"), &["b", "d", "f"]);
    for (from, to, expected) in
        [("", "end", "bdf"), ("b", "f", "bd"), ("c", "g", "df"), ("f\0", "end", ""), ("", "b", ""), ("d", "d\0", "d")]
    {
        let interval = interval(from, to);
        let keys: String = run.pairs.within(&interval).map(|(key, _)| String::from_utf8_lossy(key)).collect();
        assert_eq!(keys, expected, "{from}..{to}");
    }
}

#[test]
fn a_run_is_found_until_somebody_writes_into_it() {
    let runs = Runs::new(1 << 20);
    assert_eq!(found(&runs, "a", "end"), "gap a..end");
    keep(&runs, "d", "g");
    keep(&runs, "k", "end");
    for (from, to, expected) in [
        ("a", "end", "gap a..d"),
        ("a", "c", "gap a..c"),
        ("d", "e", "run d..g"),
        ("f", "end", "run d..g"),
        ("g", "end", "gap g..k"),
        ("x", "y", "run k..end"),
    ] {
        assert_eq!(found(&runs, from, to), expected, "{from}..{to}");
    }
    for outside in ["a", "c\u{7f}", "g", "j"] {
        runs.forget(&wrote(outside));
        assert_eq!((found(&runs, "d", "e"), found(&runs, "k", "l")), ("run d..g".into(), "run k..end".into()));
    }
    runs.forget(&wrote("f\u{7f}"));
    assert_eq!(found(&runs, "d", "end"), "gap d..k");
    runs.forget(&wrote("z"));
    assert_eq!(found(&runs, "d", "end"), "gap d..end");
    check(&runs);
}

#[test]
fn what_changed_while_it_was_read_is_not_kept() {
    for (written, kept) in [("c", true), ("d", false), ("f", false), ("g", true)] {
        let runs = Runs::new(1 << 20);
        let Found::Gap(reading) = runs.find(Space::Entities, &interval("d", "g")) else { panic!("a run") };
        runs.forget(&wrote(written));
        reading.keep(run(&interval("d", "g"), &["e"]));
        drop(reading);
        assert_eq!(found(&runs, "d", "g").starts_with("run"), kept, "{written}");
        check(&runs);
    }
    let runs = Runs::new(1 << 20);
    drop(runs.find(Space::Entities, &interval("d", "g")));
    assert_eq!(found(&runs, "d", "g"), "gap d..g", "what is given up leaves nothing");
    check(&runs);
}

#[test]
fn of_two_readers_the_quicker_one_is_kept() {
    let cases = [
        ("d", "g", "a", "e"),
        ("a", "e", "d", "g"),
        ("d", "g", "d", "g"),
        ("d", "e", "a", "end"),
        ("a", "end", "d", "e"),
    ];
    for (from, to, later_from, later_to) in cases {
        let runs = Runs::new(1 << 20);
        let (first, later) = (interval(from, to), interval(later_from, later_to));
        let Found::Gap(slow) = runs.find(Space::Entities, &later) else { panic!("a run") };
        keep(&runs, from, to);
        slow.keep(run(&later, &[]));
        drop(slow);
        assert_eq!(found(&runs, from, to), format!("run {from}..{to}"), "{first:?} {later:?}");
        check(&runs);
    }
}

#[test]
fn what_was_not_used_for_long_makes_room() {
    let one = run(&interval("a", "b"), &["a"]).cost();
    let runs = Runs::new(8 * one);
    for from in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        keep(&runs, from, &format!("{from}\0"));
    }
    assert_eq!(found(&runs, "a", "end"), "run a..a\0");
    keep(&runs, "i", "i\0");
    check(&runs);
    assert_eq!(found(&runs, "a", "end"), "run a..a\0", "it was used lately");
    assert_eq!(found(&runs, "b", "end"), "gap b..e", "those that were used before the others have gone");
    assert_eq!(found(&runs, "i", "end"), "run i..i\0");
    let Found::Gap(reading) = runs.find(Space::Entities, &interval("x", "y")) else { panic!("a run") };
    let mut pairs = Packed::default();
    pairs.push(b"x", &vec![0; 8 * one]);
    reading.keep(Arc::new(Run { interval: interval("x", "y"), pairs }));
    drop(reading);
    assert_eq!(found(&runs, "x", "y"), "gap x..y", "what is larger than everything is not kept");
    check(&runs);
}

proptest! {
    /// Whatever is read and written in whatever order, what is found is what the kv holds.
    #[test]
    fn runs_are_what_the_kv_holds(
        steps in proptest::collection::vec((0_u8..4, 0_u8..12, 0_u8..12), 1..60),
        bytes_max in prop_oneof![Just(1_usize << 20), Just(1500)],
    ) {
        let runs = Runs::new(bytes_max);
        let mut kv: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut under_way: Vec<(Reading<'_>, Arc<Run>)> = Vec::new();
        for (place, (kind, one, other)) in steps.into_iter().enumerate() {
            match kind {
                0 => {
                    let (key, value) = (vec![one], vec![u8::try_from(place).unwrap()]);
                    let mut writes = Writes::default();
                    writes.set(Space::Entities, key.clone().into(), Some(value.clone().into()));
                    runs.forget(&writes);
                    kv.insert(key, value);
                    runs.forget(&writes);
                }
                1 if !under_way.is_empty() => {
                    let (reading, run) = under_way.remove(usize::from(one) % under_way.len());
                    reading.keep(run);
                }
                _ => {
                    let interval = Interval { from: vec![one.min(other)], to: Some(vec![one.max(other) + 1]) };
                    let held = |interval: &Interval| -> Vec<(Vec<u8>, Vec<u8>)> {
                        let pairs = kv.iter().filter(|(key, _)| interval.contains(key));
                        pairs.map(|(key, value)| (key.clone(), value.clone())).collect()
                    };
                    match runs.find(Space::Entities, &interval) {
                        Found::Run(run) => {
                            prop_assert!(run.interval.contains(&interval.from));
                            let pairs = run.pairs.within(&run.interval).map(|(key, value)| (key.into(), value.into()));
                            prop_assert_eq!(pairs.collect::<Vec<_>>(), held(&run.interval));
                        }
                        Found::Gap(reading) => {
                            let mut pairs = Packed::default();
                            held(&reading.interval).iter().for_each(|(key, value)| pairs.push(key, value));
                            let run = Arc::new(Run { interval: reading.interval.clone(), pairs });
                            under_way.push((reading, run));
                        }
                    }
                }
            }
        }
        drop(under_way);
        check(&runs);
    }
}
