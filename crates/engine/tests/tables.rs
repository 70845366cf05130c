//! Tables and entities, through the engine's public functions: every write on every state, groups, limits from both
//! sides.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends where it fails")]

mod support;

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lazuli_engine::access::AccessPolicy;
use lazuli_engine::clock::{Clock as _, HeldClock};
use lazuli_engine::etag::Etag;
use lazuli_engine::names::{AccountName, KeyText, TableAddress, TableName};
use lazuli_engine::store::Space;
use lazuli_engine::table::entities::{self, Failed, Query};
use lazuli_engine::table::expression::{Expression, Field, Operator};
use lazuli_engine::table::tables::{self, ListTables, TableView};
use lazuli_engine::table::value::Value;
use lazuli_engine::table::{Action, EntityKey, EntityView, Expected, OnEntity, Properties, Write};
use lazuli_engine::{Engine, Error, Refusal};
use support::{clock, refusal, seconds};

const MIB: usize = 1024 * 1024;

fn at(table: &str) -> TableAddress {
    TableAddress { account: AccountName::parse("dev").unwrap(), table: TableName::parse(table).unwrap() }
}

fn key(partition: &str, row: &str) -> EntityKey {
    EntityKey { partition: KeyText::parse(partition).unwrap(), row: KeyText::parse(row).unwrap() }
}

fn properties(pairs: &[(&str, i32)]) -> Properties {
    Properties(pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::Int32(*value))).collect())
}

/// One property of so many bytes.
fn blob(bytes: usize) -> Properties {
    let bytes = (0_u8..=250).cycle().take(bytes).collect();
    Properties(vec![("blob".into(), Value::Binary(bytes))])
}

fn write(row: &str, action: Action) -> Write {
    Write { key: key("p", row), action }
}

fn failed<T: std::fmt::Debug>(answer: Result<T, Failed>) -> (usize, Refusal) {
    match answer {
        Err(Failed { index, error }) => (index, refusal(Err::<(), _>(error))),
        other => panic!("expected a failed group, got {other:?}"),
    }
}

fn everything(start: Option<EntityKey>) -> Query {
    let allowed = (Bound::Unbounded, Bound::Unbounded);
    Query { table: at("Things"), filter: None, allowed, start, select: None, limit: 1000 }
}

/// The number that an entity with one property has in it.
fn count(view: &EntityView) -> i32 {
    match view.properties.0[..] {
        [(_, Value::Int32(count))] => count,
        ref other => panic!("{other:?}"),
    }
}

/// An engine in memory with one table `Things`.
struct Things {
    engine: Engine,
    clock: Arc<HeldClock>,
}

impl Things {
    async fn new() -> Self {
        let clock = clock();
        let engine = Engine::memory(clock.clone()).await.unwrap();
        tables::create(&engine, at("Things")).await.unwrap();
        Self { engine, clock }
    }

    async fn write(&self, row: &str, action: Action) -> Result<Option<Etag>, Error> {
        entities::write(&self.engine, at("Things"), write(row, action)).await
    }

    async fn insert(&self, row: &str, properties: Properties) -> Etag {
        self.write(row, Action::Insert(properties)).await.unwrap().unwrap()
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<Vec<Option<Etag>>, Failed> {
        entities::apply(&self.engine, at("Things"), writes).await
    }

    async fn get(&self, row: &str) -> Result<EntityView, Error> {
        entities::get(&self.engine, OnEntity { table: at("Things"), key: key("p", row) }, None).await
    }

    /// The entity as it is, if it is there.
    async fn found(&self, row: &str) -> Option<(Properties, Etag)> {
        match self.get(row).await {
            Ok(view) => Some((view.properties, view.etag)),
            Err(Error::Refused(Refusal::EntityNotFound)) => None,
            Err(other) => panic!("{other:?}"),
        }
    }

    /// Rows in the two spaces of entities.
    async fn rows(&self) -> (usize, usize) {
        self.engine.settle().await.unwrap();
        let census = self.engine.census().unwrap();
        let of = |space| census.iter().find(|(known, _)| *known == space).map_or(0, |(_, rows)| *rows);
        (of(Space::Entities), of(Space::EntityParts))
    }

    async fn all(&self) -> Vec<EntityView> {
        let (mut all, mut start) = (Vec::new(), None);
        loop {
            let page = entities::query(&self.engine, everything(start)).await.unwrap();
            all.extend(page.entities);
            start = page.next;
            if start.is_none() {
                return all;
            }
        }
    }
}

/// What a write expects of an entity that was written twice.
#[derive(Clone, Copy, Debug)]
enum Wants {
    Nothing,
    Any,
    Present,
    Stale,
}

impl Wants {
    fn expected(self, present: Etag, stale: Etag) -> Option<Expected> {
        match self {
            Self::Nothing => None,
            Self::Any => Some(Expected::Any),
            Self::Present => Some(Expected::Version(present)),
            Self::Stale => Some(Expected::Version(stale)),
        }
    }
}

/// Every write: what it wants, and what comes of it where the entity is absent and where it is `a = 1, b = 2`.
#[tokio::test]
async fn every_write_does_what_it_should_on_every_state() {
    use Refusal::{EntityChanged, EntityExists, EntityNotFound};
    type Make = fn(Properties, Option<Expected>) -> Action;
    type Outcome = Result<Option<Properties>, Refusal>;
    let insert: Make = |properties, _| Action::Insert(properties);
    let (replace, merge): (Make, Make) = (Action::Replace, Action::Merge);
    let delete: Make = |_, expected| Action::Delete(expected.unwrap());
    let (new, gone) = (properties(&[("b", 20), ("c", 30)]), || Ok(None));
    let wrote = || Ok(Some(new.clone()));
    let merged = || Ok(Some(properties(&[("a", 1), ("b", 20), ("c", 30)])));
    let table: [(&str, Make, Wants, Outcome, Outcome); 12] = [
        ("insert", insert, Wants::Nothing, wrote(), Err(EntityExists)),
        ("insert or replace", replace, Wants::Nothing, wrote(), wrote()),
        ("replace any", replace, Wants::Any, Err(EntityNotFound), wrote()),
        ("replace present", replace, Wants::Present, Err(EntityNotFound), wrote()),
        ("replace stale", replace, Wants::Stale, Err(EntityNotFound), Err(EntityChanged)),
        ("insert or merge", merge, Wants::Nothing, wrote(), merged()),
        ("merge any", merge, Wants::Any, Err(EntityNotFound), merged()),
        ("merge present", merge, Wants::Present, Err(EntityNotFound), merged()),
        ("merge stale", merge, Wants::Stale, Err(EntityNotFound), Err(EntityChanged)),
        ("delete any", delete, Wants::Any, Err(EntityNotFound), gone()),
        ("delete present", delete, Wants::Present, Err(EntityNotFound), gone()),
        ("delete stale", delete, Wants::Stale, Err(EntityNotFound), Err(EntityChanged)),
    ];
    for (name, make, wants, absent, present) in table {
        for (is_there, expected) in [(false, &absent), (true, &present)] {
            for in_group in [false, true] {
                let things = Things::new().await;
                let stale = things.insert("r", properties(&[("x", 0)])).await;
                let replaced = Action::Replace(properties(&[("a", 1), ("b", 2)]), None);
                let etag = things.write("r", replaced).await.unwrap().unwrap();
                if !is_there {
                    things.write("r", Action::Delete(Expected::Any)).await.unwrap();
                }
                let before = things.found("r").await;
                let action = make(new.clone(), wants.expected(etag, stale));
                things.clock.advance(seconds(1));
                let got = if in_group {
                    let beside = |row: &str| write(row, Action::Insert(properties(&[])));
                    let applied = things.apply(vec![beside("q"), write("r", action), beside("s")]).await;
                    let etags = applied.map_err(|failed| {
                        assert_eq!(failed.index, 1, "{name}");
                        failed.error
                    });
                    etags.map(|etags| etags[1])
                } else {
                    things.write("r", action).await
                };
                let case = format!("{name}, there: {is_there}, in a group: {in_group}");
                let after = things.found("r").await;
                match expected {
                    Ok(properties) => {
                        let etag = got.unwrap();
                        assert_eq!(after, properties.clone().map(|properties| (properties, etag.unwrap())), "{case}");
                        if let Some(etag) = etag {
                            assert!(etag.committed() >= things.clock.now(), "{case}");
                        }
                    }
                    Err(expected) => {
                        assert_eq!(refusal(got), *expected, "{case}");
                        assert_eq!(after, before, "{case}");
                    }
                }
                let beside = in_group && expected.is_ok();
                assert_eq!(things.found("q").await.is_some(), beside, "{case}");
                assert_eq!(things.found("s").await.is_some(), beside, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn a_write_that_changes_nothing_makes_a_new_version_too() {
    let things = Things::new().await;
    let mut etag = things.insert("r", properties(&[("a", 1)])).await;
    for action in [Action::Replace(properties(&[("a", 1)]), None), Action::Merge(properties(&[]), None)] {
        let next = things.write("r", action).await.unwrap().unwrap();
        assert!(next.committed() > etag.committed());
        assert_eq!(things.found("r").await, Some((properties(&[("a", 1)]), next)));
        etag = next;
    }
}

#[tokio::test]
async fn a_group_is_one_version_and_one_moment() {
    let things = Things::new().await;
    things.insert("old", properties(&[])).await;
    let writes = vec![
        write("a", Action::Insert(properties(&[("n", 1)]))),
        write("old", Action::Delete(Expected::Any)),
        write("b", Action::Merge(properties(&[("n", 2)]), None)),
    ];
    let etags = things.apply(writes).await.unwrap();
    assert!(etags[0].is_some() && etags[0] == etags[2] && etags[1].is_none(), "{etags:?}");
    assert_eq!(things.all().await.len(), 2);
    assert_eq!(failed(entities::apply(&things.engine, at("absent"), Vec::new()).await), (0, Refusal::TableNotFound));
}

#[tokio::test]
async fn the_first_write_of_a_group_that_fails_is_named() {
    let things = Things::new().await;
    let large = blob(MIB);
    things.insert("there", properties(&[])).await;
    let good = |number: usize| write(&format!("{number:02}"), Action::Insert(properties(&[])));
    for (bad, refused) in [
        (Action::Insert(properties(&[])), Refusal::EntityExists),
        (Action::Replace(large.clone(), None), Refusal::EntityTooLarge),
        (Action::Merge(large.clone(), None), Refusal::EntityTooLarge),
    ] {
        for index in [0, 7, 99] {
            let mut writes: Vec<_> = (0..100).map(good).collect();
            writes[index] = write("there", bad.clone());
            assert_eq!(failed(things.apply(writes).await), (index, refused));
            assert_eq!(things.all().await.len(), 1);
        }
    }
}

/// How large an entity `(p, r)` with a property `blob` is beside the bytes of that.
const REST_BYTES: usize = 4 + 4 + 8 + 8 + 4;

#[tokio::test]
async fn an_entity_may_be_so_large_and_no_larger_however_it_came_about() {
    let things = Things::new().await;
    let full = MIB - REST_BYTES;
    for make in [Action::Insert, |large| Action::Replace(large, None), |large| Action::Merge(large, None)] {
        assert_eq!(refusal(things.write("r", make(blob(full + 1))).await), Refusal::EntityTooLarge);
        things.write("r", make(blob(full))).await.unwrap();
        assert_eq!(things.found("r").await.unwrap().0, blob(full));
        // One property more, of one letter and a byte.
        let more = Properties(vec![("x".into(), Value::Boolean(true))]);
        assert_eq!(refusal(things.write("r", Action::Merge(more.clone(), None)).await), Refusal::EntityTooLarge);
        things.write("r", Action::Replace(blob(full - 11), None)).await.unwrap();
        things.write("r", Action::Merge(more, None)).await.unwrap();
        things.write("r", Action::Delete(Expected::Any)).await.unwrap();
    }
    assert_eq!(things.rows().await, (0, 0));
}

#[tokio::test]
async fn an_entity_has_so_many_properties_and_no_more_however_it_came_about() {
    let things = Things::new().await;
    let many = |from: i32, to: i32| Properties((from..to).map(|at| (format!("p{at}"), Value::Int32(at))).collect());
    for make in [Action::Insert, |many| Action::Replace(many, None), |many| Action::Merge(many, None)] {
        assert_eq!(refusal(things.write("r", make(many(0, 253))).await), Refusal::PropertiesTooMany);
        things.write("r", make(many(0, 252))).await.unwrap();
        assert_eq!(refusal(things.write("r", Action::Merge(many(252, 253), None)).await), Refusal::PropertiesTooMany);
        things.write("r", Action::Merge(many(100, 200), None)).await.unwrap();
        assert_eq!(things.found("r").await.unwrap().0, many(0, 252));
        things.write("r", Action::Delete(Expected::Any)).await.unwrap();
    }
}

#[tokio::test]
async fn entities_of_every_size_come_back_and_leave_nothing_when_they_shrink() {
    const ROW: usize = 16 * 1024;
    let things = Things::new().await;
    let mut sizes: Vec<usize> = vec![0, 1, MIB - REST_BYTES];
    for rows in 1..=4 {
        sizes.extend((rows * ROW - 25)..=(rows * ROW - 15));
        sizes.extend((rows * ROW - 1)..=(rows * ROW + 1));
    }
    // Up and down: every size after every larger and every smaller one, at some distance.
    let last = sizes.len() - 1;
    let steps = (0..=last).chain((0..=last).rev()).chain((0..=last).flat_map(|at| [at, last - at]));
    things.insert("before", properties(&[])).await;
    things.insert("r", blob(7)).await;
    things.insert("r0", blob(40_000)).await;
    let beside = things.rows().await.1;
    for at in steps {
        let size = sizes[at];
        things.write("r", Action::Replace(blob(size), None)).await.unwrap();
        assert!(things.found("r").await.unwrap().0 == blob(size), "{size} bytes");
        let (rows, parts) = things.rows().await;
        assert_eq!(rows, 3);
        assert!(
            (parts - beside) * ROW < size + 80 && size <= (parts - beside + 1) * ROW,
            "{size} bytes: {parts} parts"
        );
    }
    assert_eq!(things.found("r0").await.unwrap().0, blob(40_000));
    things.write("r", Action::Merge(properties(&[("blob", 1)]), None)).await.unwrap();
    assert_eq!(things.rows().await, (3, beside));
    for row in ["before", "r", "r0"] {
        things.write(row, Action::Delete(Expected::Any)).await.unwrap();
    }
    assert_eq!(things.rows().await, (0, 0));
}

#[tokio::test]
async fn a_group_of_four_mebibytes_is_one_commit() {
    let things = Things::new().await;
    let share = 4 * MIB / 100;
    let writes = |make: fn(Properties) -> Action, bytes| {
        (0..100).map(|number| write(&format!("{number:02}"), make(blob(bytes)))).collect::<Vec<_>>()
    };
    let etags = things.apply(writes(Action::Insert, share)).await.unwrap();
    assert!(etags.iter().all(|etag| etag.is_some() && *etag == etags[0]));
    assert!(things.all().await.iter().all(|entity| entity.properties == blob(share)));
    let etags = things.apply(writes(|new| Action::Merge(new, Some(Expected::Any)), share)).await.unwrap();
    assert_eq!(etags.len(), 100);
    things.apply(writes(|_| Action::Delete(Expected::Any), 0)).await.unwrap();
    assert_eq!(things.rows().await, (0, 0));
}

#[tokio::test]
async fn the_largest_entities_with_the_longest_keys_are_written_and_deleted_one_by_one() {
    let things = Things::new().await;
    let long = "\u{4e00}".repeat(512);
    let key = key(&long, &long);
    let text = "\u{4e00}".repeat((MIB - 4 - 2048 - 8 - 8 - 4) / 2);
    let largest = Properties(vec![("text".into(), Value::String(text))]);
    assert_eq!(largest.size(&key), MIB);
    let write = |action| entities::write(&things.engine, at("Things"), Write { key: key.clone(), action });
    write(Action::Insert(largest.clone())).await.unwrap();
    let on = OnEntity { table: at("Things"), key: key.clone() };
    assert!(entities::get(&things.engine, on, None).await.unwrap().properties == largest);
    write(Action::Merge(largest, Some(Expected::Any))).await.unwrap();
    write(Action::Delete(Expected::Any)).await.unwrap();
    assert_eq!(things.rows().await, (0, 0));
}

#[tokio::test]
async fn a_group_that_makes_more_than_a_transaction_takes_is_refused_whole() {
    let things = Things::new().await;
    let names: Vec<_> = (0..20).map(|number| format!("{number:02}")).collect();
    for name in &names {
        things.insert(name, blob(MIB - 100)).await;
    }
    let before = things.all().await;
    let merges = |count: usize| {
        let merge = || Action::Merge(properties(&[("n", 1)]), None);
        names.iter().take(count).map(|name| write(name, merge())).collect::<Vec<_>>()
    };
    assert_eq!(failed(things.apply(merges(20)).await), (7, Refusal::GroupTooLarge));
    assert_eq!(things.all().await, before);
    things.apply(merges(7)).await.unwrap();
    let deletes = names.iter().map(|name| write(name, Action::Delete(Expected::Any))).collect();
    things.apply(deletes).await.unwrap();
    assert_eq!(things.rows().await, (0, 0));
}

#[tokio::test]
async fn only_the_properties_asked_for_are_answered() {
    let things = Things::new().await;
    things.insert("r", properties(&[("a", 1), ("b", 2), ("c", 3)])).await;
    let on = || OnEntity { table: at("Things"), key: key("p", "r") };
    for (select, expected) in [
        (vec![], properties(&[])),
        (vec!["b"], properties(&[("b", 2)])),
        (vec!["c", "a", "absent", "B"], properties(&[("a", 1), ("c", 3)])),
    ] {
        let select = select.into_iter().map(str::to_owned).collect();
        assert_eq!(entities::get(&things.engine, on(), Some(select)).await.unwrap().properties, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_increments_by_version_none_is_lost() {
    let things = Arc::new(Things::new().await);
    things.insert("r", properties(&[("n", 0)])).await;
    let tasks = (0..16).map(|_| {
        let things = Arc::clone(&things);
        tokio::spawn(async move {
            for _ in 0..25 {
                loop {
                    let view = things.get("r").await.unwrap();
                    let next = properties(&[("n", count(&view) + 1)]);
                    match things.write("r", Action::Merge(next, Some(Expected::Version(view.etag)))).await {
                        Ok(_) => break,
                        Err(error) => assert_eq!(refusal(Err::<(), _>(error)), Refusal::EntityChanged),
                    }
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(count(&things.get("r").await.unwrap()), 16 * 25);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transfers_in_a_partition_keep_their_sum_in_every_scan() {
    const ACCOUNTS: usize = 8;
    let things = Arc::new(Things::new().await);
    for account in 0..ACCOUNTS {
        things.insert(&account.to_string(), properties(&[("n", 100)])).await;
    }
    let transfer = |number: usize| {
        let things = Arc::clone(&things);
        async move {
            let (from, to) = (number % ACCOUNTS, (number + 1 + number / ACCOUNTS % (ACCOUNTS - 1)) % ACCOUNTS);
            let changed = |view: EntityView, by: i32| {
                let (changed, expected) = (properties(&[("n", count(&view) + by)]), Expected::Version(view.etag));
                Write { key: view.key, action: Action::Replace(changed, Some(expected)) }
            };
            loop {
                let (one, other) = (things.get(&from.to_string()).await, things.get(&to.to_string()).await);
                let writes = vec![changed(one.unwrap(), -1), changed(other.unwrap(), 1)];
                match things.apply(writes).await {
                    Ok(_) => break,
                    Err(Failed { error, .. }) => assert_eq!(refusal(Err::<(), _>(error)), Refusal::EntityChanged),
                }
            }
        }
    };
    let over = Arc::new(AtomicBool::new(false));
    let scans = (0..2).map(|_| {
        let (things, over) = (Arc::clone(&things), Arc::clone(&over));
        tokio::spawn(async move {
            let mut seen = BTreeSet::new();
            while !over.load(Ordering::Relaxed) {
                let all = things.all().await;
                assert_eq!(all.iter().map(count).sum::<i32>(), 100 * 8, "{all:?}");
                seen.insert(all.iter().map(|view| view.etag.committed()).max());
            }
            seen.len()
        })
    });
    let scans: Vec<_> = scans.collect();
    let workers = (0..8).map(|worker| {
        let transfers: Vec<_> = (0..100).map(|number| transfer(worker * 100 + number)).collect();
        tokio::spawn(async {
            for transfer in transfers {
                transfer.await;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    for scan in scans {
        assert!(scan.await.unwrap() > 1, "a scan that saw one state only proves nothing");
    }
}

#[tokio::test]
async fn a_table_is_one_whatever_the_letter_case_and_keeps_that_of_its_creation() {
    let things = Things::new().await;
    for same in ["Things", "things", "THINGS"] {
        assert_eq!(refusal(tables::create(&things.engine, at(same)).await), Refusal::TableExists);
        let view = TableView { name: at("Things").table, policies: Vec::new() };
        assert_eq!(tables::get(&things.engine, at(same)).await.unwrap(), view);
    }
    entities::write(&things.engine, at("tHINGS"), write("r", Action::Insert(properties(&[])))).await.unwrap();
    assert!(things.found("r").await.is_some());
    tables::delete(&things.engine, at("THINGS")).await.unwrap();
    assert_eq!(refusal(tables::get(&things.engine, at("Things")).await), Refusal::TableNotFound);
}

#[tokio::test]
async fn deleting_a_table_makes_its_entities_unreachable_at_once_and_leaves_nothing() {
    let things = Things::new().await;
    for batch in 0..13 {
        let insert = |number: usize| {
            let size = if number == 7 { 40_000 } else { 3 };
            write(&format!("{batch} {number}"), Action::Insert(blob(size)))
        };
        things.apply((0..100).map(insert).collect()).await.unwrap();
    }
    let other = write("0 7", Action::Insert(properties(&[("kept", 1)])));
    tables::create(&things.engine, at("Other")).await.unwrap();
    entities::write(&things.engine, at("Other"), other).await.unwrap();
    for _ in 0..2 {
        tables::delete(&things.engine, at("Things")).await.unwrap();
        assert_eq!(refusal(things.get("0 7").await), Refusal::TableNotFound);
        tables::create(&things.engine, at("Things")).await.unwrap();
        assert_eq!((things.all().await, things.found("0 7").await), (vec![], None), "the name is free at once");
        things.insert("0 7", blob(40_000)).await;
        assert_eq!(things.rows().await.0, 2);
        assert_eq!(things.found("0 7").await.unwrap().0, blob(40_000));
    }
    for table in ["Things", "Other"] {
        tables::delete(&things.engine, at(table)).await.unwrap();
    }
    things.engine.settle().await.unwrap();
    assert_eq!(things.engine.census().unwrap(), []);
}

#[tokio::test]
async fn policies_are_replaced_whole_and_leave_the_entities_alone() {
    let things = Things::new().await;
    let etag = things.insert("r", properties(&[("a", 1)])).await;
    let policy = AccessPolicy { id: "p".into(), permission: Some("raud".into()), ..AccessPolicy::default() };
    for policies in [vec![policy], vec![]] {
        tables::set_policies(&things.engine, at("things"), policies.clone()).await.unwrap();
        let view = tables::get(&things.engine, at("Things")).await.unwrap();
        assert_eq!(view, TableView { name: at("Things").table, policies });
        assert_eq!(things.found("r").await, Some((properties(&[("a", 1)]), etag)));
    }
}

#[tokio::test]
async fn what_is_done_to_an_absent_table_is_refused() {
    let Things { engine, .. } = Things::new().await;
    let table = || at("absent");
    assert_eq!(refusal(tables::get(&engine, table()).await), Refusal::TableNotFound);
    assert_eq!(refusal(tables::set_policies(&engine, table(), vec![]).await), Refusal::TableNotFound);
    assert_eq!(refusal(tables::delete(&engine, table()).await), Refusal::TableNotFound);
    let on = OnEntity { table: table(), key: key("p", "r") };
    assert_eq!(refusal(entities::get(&engine, on, None).await), Refusal::TableNotFound);
    for action in [
        Action::Insert(properties(&[])),
        Action::Replace(properties(&[]), None),
        Action::Merge(properties(&[]), None),
        Action::Delete(Expected::Any),
    ] {
        let refused = entities::write(&engine, table(), write("r", action)).await;
        assert_eq!(refusal(refused), Refusal::TableNotFound);
    }
    let query = Query { table: table(), ..everything(None) };
    assert_eq!(refusal(entities::query(&engine, query).await), Refusal::TableNotFound);
}

#[tokio::test]
async fn every_page_size_lists_each_table_once_in_order() {
    let engine = Engine::memory(clock()).await.unwrap();
    let names = ["Aaa", "aab", "ABC", "b1x", "Bbb", "ccc"];
    for name in names.iter().rev() {
        tables::create(&engine, at(name)).await.unwrap();
    }
    let stranger = TableAddress { account: AccountName::parse("dev2").unwrap(), ..at("aaa") };
    tables::create(&engine, stranger).await.unwrap();
    let compare = |operator, name: &str| Expression::Compare {
        field: Field::Property("TableName".into()),
        operator,
        value: Value::String(name.into()),
    };
    type Matches = fn(&str) -> bool;
    let filters: [(Option<Expression>, Matches); 4] = [
        (None, |_| true),
        (Some(compare(Operator::Equal, "ABC")), |name| name == "ABC"),
        (Some(compare(Operator::Equal, "abc")), |_| false),
        // As they were created: capitals stand before small letters.
        (Some(compare(Operator::GreaterOrEqual, "a")), |name| name >= "a"),
    ];
    for (filter, matches) in filters {
        for limit in 1..=7 {
            let (mut listed, mut start): (Vec<String>, _) = (Vec::new(), None);
            loop {
                let account = AccountName::parse("dev").unwrap();
                let request = ListTables { account, start, filter: filter.clone(), limit };
                let page = tables::list(&engine, request).await.unwrap();
                assert!(page.next.is_none() || page.tables.len() == limit);
                listed.extend(page.tables.iter().map(ToString::to_string));
                start = page.next;
                if start.is_none() {
                    break;
                }
            }
            let expected: Vec<_> = names.iter().filter(|name| matches(name)).collect();
            assert!(listed.iter().eq(expected), "{filter:?} {limit}: {listed:?}");
        }
    }
}
