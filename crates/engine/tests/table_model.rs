//! Tables against a plain model: random writes and groups of few entities, with every version that was ever given, and
//! restarts. After every step the answers agree, after every restart and at the end everything stored does.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends where it fails; its numbers are small"
)]

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use lazuli_engine::clock::{Clock, HeldClock, Timestamp};
use lazuli_engine::etag::Etag;
use lazuli_engine::names::{AccountName, KeyText, TableAddress, TableName};
use lazuli_engine::table::entities::{self, Failed, Query};
use lazuli_engine::table::expression::{Expression, Field, Operator};
use lazuli_engine::table::tables::{self, ListTables};
use lazuli_engine::table::value::Value;
use lazuli_engine::table::{Action, EntityKey, EntityView, Expected, OnEntity, Properties, Write};
use lazuli_engine::{Durability, Engine, Error, Options, Refusal};
use proptest::prelude::*;

type Name = &'static str;

/// The last two are one table.
const TABLES: [Name; 3] = ["One", "Two", "TWO"];
/// In the order of their code units: what is beyond the first plane comes before U+FFFD.
const PARTITIONS: [Name; 4] = ["", "p", "\u{1F600}", "\u{FFFD}"];
const ROWS: [Name; 8] = ["", "1", "10", "2", "\u{e9}'", "\u{e000}", "\u{10FFFF}", "\u{FFFD}"];
const NAMES: [Name; 5] = ["a", "A", "b", "\u{e9}t\u{e9}", "long"];
/// Around the bounds between an entity's row and its parts.
const LENGTHS: [usize; 8] = [0, 3, 16_200, 16_300, 16_384, 32_700, 33_000, 65_536];

/// A value that is told by its kind and a seed.
fn value(kind: u8, seed: u8) -> Value {
    let length = LENGTHS[usize::from(seed) % LENGTHS.len()];
    match kind {
        0 => Value::Binary((0..length).map(|at| (at % 251) as u8 ^ seed).collect()),
        1 => Value::Boolean(seed.is_multiple_of(2)),
        2 => Value::DateTime(Timestamp::from_ticks(u64::from(seed) << 50)),
        3 => Value::Double([0.0, -1.5, f64::INFINITY, f64::MIN_POSITIVE][usize::from(seed) % 4]),
        4 => Value::Guid(uuid::Uuid::from_u128(u128::from(seed) << 64)),
        5 => Value::Int32(i32::from(seed) - 128),
        6 => Value::Int64(i64::MIN + i64::from(seed)),
        _ => Value::String("\u{e9}".repeat(length / 2)),
    }
}

/// Names and values, each as indexes.
type Pairs = Vec<(usize, u8, u8)>;

fn properties(pairs: &Pairs) -> Properties {
    let mut seen = HashSet::new();
    let fresh = pairs.iter().filter(|(name, ..)| seen.insert(*name));
    Properties(fresh.map(|&(name, kind, seed)| (NAMES[name].to_owned(), value(kind, seed))).collect())
}

/// Which version a write expects: of those that the entity ever had, counted from the latest.
#[derive(Clone, Copy, Debug)]
enum Wants {
    Any,
    Version(usize),
}

#[derive(Clone, Debug)]
enum Deed {
    Insert(Pairs),
    Replace(Pairs, Option<Wants>),
    Merge(Pairs, Option<Wants>),
    Delete(Wants),
}

#[derive(Clone, Copy, Debug)]
enum Filter {
    Nothing,
    Partition(usize),
    RowsFrom(usize),
    /// Property `a` is a number of 32 bits above this.
    Above(u8),
}

#[derive(Clone, Debug)]
enum Step {
    Create(Name),
    DeleteTable(Name),
    Write { table: Name, partition: usize, row: usize, deed: Deed },
    Group { table: Name, partition: usize, deeds: Vec<(usize, Deed)> },
    Get { table: Name, partition: usize, row: usize, select: Option<usize> },
    Query { table: Name, filter: Filter, limit: usize },
    Settle,
    Restart,
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let pairs = || proptest::collection::vec((0..NAMES.len(), 0_u8..8, any::<u8>()), 0..4);
    let wants = || prop_oneof![1 => Just(Wants::Any), 3 => Just(Wants::Version(0)), 1 => Just(Wants::Version(1))];
    let maybe = || proptest::option::of(wants());
    prop_oneof![
        3 => pairs().prop_map(Deed::Insert),
        3 => (pairs(), maybe()).prop_map(|(pairs, wants)| Deed::Replace(pairs, wants)),
        4 => (pairs(), maybe()).prop_map(|(pairs, wants)| Deed::Merge(pairs, wants)),
        2 => wants().prop_map(Deed::Delete),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let table = || prop_oneof![8 => Just(TABLES[0]), 2 => Just(TABLES[1]), 1 => Just(TABLES[2])];
    let (partition, row) = (|| 0..PARTITIONS.len(), || 0..ROWS.len());
    let deeds = proptest::collection::vec((row(), any_deed()), 1..6);
    let select = proptest::option::of(0..NAMES.len());
    let filter = prop_oneof![
        2 => Just(Filter::Nothing),
        1 => partition().prop_map(Filter::Partition),
        1 => row().prop_map(Filter::RowsFrom),
        1 => any::<u8>().prop_map(Filter::Above),
    ];
    prop_oneof![
        2 => table().prop_map(Step::Create),
        1 => table().prop_map(Step::DeleteTable),
        20 => (table(), partition(), row(), any_deed())
            .prop_map(|(table, partition, row, deed)| Step::Write { table, partition, row, deed }),
        10 => (table(), partition(), deeds)
            .prop_map(|(table, partition, deeds)| Step::Group { table, partition, deeds }),
        6 => (table(), partition(), row(), select)
            .prop_map(|(table, partition, row, select)| Step::Get { table, partition, row, select }),
        6 => (table(), filter, 1_usize..12)
            .prop_map(|(table, filter, limit)| Step::Query { table, filter, limit }),
        1 => Just(Step::Settle),
        1 => Just(Step::Restart),
    ]
}

/// Keys as code units of UTF-16, which is the order of the service.
type Units = (Vec<u16>, Vec<u16>);

fn units(key: &EntityKey) -> Units {
    (key.partition.as_str().encode_utf16().collect(), key.row.as_str().encode_utf16().collect())
}

/// A table as the model has it.
#[derive(Clone, Debug)]
struct Table {
    name: Name,
    entities: BTreeMap<Units, EntityView>,
}

impl Table {
    /// What a write comes to, before it has a version.
    fn judge(&self, write: &Write) -> Result<Option<Properties>, Refusal> {
        let old = self.entities.get(&units(&write.key));
        let meets = |expected: &Expected| match (expected, old) {
            (_, None) => Err(Refusal::EntityNotFound),
            (Expected::Version(etag), Some(old)) if old.etag != *etag => Err(Refusal::EntityChanged),
            _ => Ok(()),
        };
        match &write.action {
            Action::Insert(_) if old.is_some() => Err(Refusal::EntityExists),
            Action::Insert(properties) => Ok(Some(properties.clone())),
            Action::Replace(properties, expected) => {
                expected.as_ref().map_or(Ok(()), meets)?;
                Ok(Some(properties.clone()))
            }
            Action::Merge(properties, expected) => {
                expected.as_ref().map_or(Ok(()), meets)?;
                let mut merged = old.map(|old| old.properties.0.clone()).unwrap_or_default();
                for (name, value) in &properties.0 {
                    match merged.iter().position(|(known, _)| known == name) {
                        Some(at) => merged[at].1 = value.clone(),
                        None => merged.push((name.clone(), value.clone())),
                    }
                }
                Ok(Some(Properties(merged)))
            }
            Action::Delete(expected) => meets(expected).map(|()| None),
        }
    }

    fn make(&mut self, write: &Write, becomes: Option<Properties>, etag: Option<Etag>) {
        assert_eq!(becomes.is_some(), etag.is_some());
        match (becomes, etag) {
            (Some(properties), Some(etag)) => {
                let key = write.key.clone();
                self.entities.insert(units(&key), EntityView { key, etag, properties });
            }
            _ => _ = self.entities.remove(&units(&write.key)),
        }
    }
}

fn account() -> AccountName {
    AccountName::parse("model").unwrap()
}

fn address(table: Name) -> TableAddress {
    TableAddress { account: account(), table: TableName::parse(table).unwrap() }
}

fn key(partition: usize, row: usize) -> EntityKey {
    EntityKey { partition: KeyText::parse(PARTITIONS[partition]).unwrap(), row: KeyText::parse(ROWS[row]).unwrap() }
}

async fn open(directory: &Path, clock: &Arc<HeldClock>) -> Engine {
    let mut options = Options::new(directory, Arc::clone(clock) as Arc<dyn Clock>);
    options.durability = Durability::Process;
    options.cache_bytes = 4 * 1024 * 1024;
    options.reserve_bytes = 0;
    Engine::open(options).await.unwrap()
}

/// The refusal, or what was answered; anything else ends the test.
fn answer<T>(result: Result<T, Error>) -> Result<T, Refusal> {
    result.map_err(|error| match error {
        Error::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    })
}

/// The engine and the model, side by side.
struct Pair {
    directory: tempfile::TempDir,
    clock: Arc<HeldClock>,
    engine: Option<Engine>,
    /// By name in small letters.
    tables: BTreeMap<String, Table>,
    /// Every version ever given, by keys whatever the table, in order.
    etags: BTreeMap<Units, Vec<Etag>>,
}

impl Pair {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1_785_542_400)));
        let engine = Some(open(directory.path(), &clock).await);
        Self { directory, clock, engine, tables: BTreeMap::new(), etags: BTreeMap::new() }
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    fn table(&mut self, name: Name) -> Result<&mut Table, Refusal> {
        self.tables.get_mut(&name.to_lowercase()).ok_or(Refusal::TableNotFound)
    }

    fn expected(&self, key: &EntityKey, wants: Wants) -> Expected {
        match wants {
            Wants::Any => Expected::Any,
            Wants::Version(back) => {
                let etags = self.etags.get(&units(key)).map_or(&[][..], Vec::as_slice);
                Expected::Version(etags.iter().rev().nth(back).copied().unwrap_or(Etag::at(Timestamp::from_ticks(7))))
            }
        }
    }

    fn write_of(&self, (partition, row): (usize, usize), deed: &Deed) -> Write {
        let key = key(partition, row);
        let expected = |wants: &Option<Wants>| wants.map(|wants| self.expected(&key, wants));
        let action = match deed {
            Deed::Insert(pairs) => Action::Insert(properties(pairs)),
            Deed::Replace(pairs, wants) => Action::Replace(properties(pairs), expected(wants)),
            Deed::Merge(pairs, wants) => Action::Merge(properties(pairs), expected(wants)),
            Deed::Delete(wants) => Action::Delete(self.expected(&key, *wants)),
        };
        Write { key, action }
    }

    /// Notes the version that an entity was given: later than every one before.
    fn given(&mut self, key: &EntityKey, etag: Option<Etag>) {
        let Some(etag) = etag else { return };
        let etags = self.etags.entry(units(key)).or_default();
        assert!(etags.last().is_none_or(|last| last.committed() < etag.committed()), "{etag:?} after {etags:?}");
        etags.push(etag);
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Create(name) => {
                let got = answer(tables::create(self.engine(), address(name)).await);
                let expected = if self.table(name).is_ok() { Err(Refusal::TableExists) } else { Ok(()) };
                if expected.is_ok() {
                    self.tables.insert(name.to_lowercase(), Table { name, entities: BTreeMap::new() });
                }
                assert_eq!(got, expected);
            }
            Step::DeleteTable(name) => {
                let got = answer(tables::delete(self.engine(), address(name)).await);
                assert_eq!(got, self.table(name).map(|_| ()));
                self.tables.remove(&name.to_lowercase());
            }
            Step::Write { table, partition, row, deed } => {
                let write = self.write_of((*partition, *row), deed);
                let got = answer(entities::write(self.engine(), address(table), write.clone()).await);
                let expected = self.table(table).and_then(|table| table.judge(&write));
                assert_eq!(got.map(|_| ()), expected.as_ref().map(|_| ()).map_err(|refusal| *refusal));
                if let (Ok(etag), Ok(becomes)) = (got, expected) {
                    self.table(table).unwrap().make(&write, becomes, etag);
                    self.given(&write.key, etag);
                }
            }
            Step::Group { table, partition, deeds } => self.group(table, *partition, deeds).await,
            Step::Get { table, partition, row, select } => {
                let (key, select) = (key(*partition, *row), select.map(|name| vec![NAMES[name].to_owned()]));
                let on = OnEntity { table: address(table), key: key.clone() };
                let got = answer(entities::get(self.engine(), on, select.clone()).await);
                let found = self
                    .table(table)
                    .and_then(|table| table.entities.get(&units(&key)).cloned().ok_or(Refusal::EntityNotFound));
                let expected = found.map(|mut view| {
                    view.properties.0.retain(|(name, _)| select.as_ref().is_none_or(|select| select.contains(name)));
                    view
                });
                assert_eq!(got, expected);
            }
            Step::Query { table, filter, limit } => self.query(table, *filter, *limit).await,
            Step::Settle => self.compare().await,
            Step::Restart => self.restart().await,
        }
    }

    async fn group(&mut self, name: Name, partition: usize, deeds: &[(usize, Deed)]) {
        let mut rows = HashSet::new();
        let fresh = deeds.iter().filter(|(row, _)| rows.insert(*row));
        let writes: Vec<_> = fresh.map(|(row, deed)| self.write_of((partition, *row), deed)).collect();
        let got = entities::apply(self.engine(), address(name), writes.clone()).await;
        let got = got.map_err(|Failed { index, error }| (index, answer(Err::<(), _>(error)).unwrap_err()));
        let expected = match self.table(name) {
            Err(refusal) => Err((0, refusal)),
            Ok(table) => {
                let judged = writes.iter().enumerate();
                judged.map(|(index, write)| table.judge(write).map_err(|refusal| (index, refusal))).collect()
            }
        };
        assert_eq!(got.as_ref().map(|_| ()), expected.as_ref().map(|_: &Vec<_>| ()));
        let (Ok(etags), Ok(becomes)) = (got, expected) else { return };
        assert_eq!(etags.iter().flatten().collect::<HashSet<_>>().len().max(1), 1, "one commit: {etags:?}");
        for ((write, becomes), etag) in writes.iter().zip(becomes).zip(etags) {
            self.table(name).unwrap().make(write, becomes, etag);
            self.given(&write.key, etag);
        }
    }

    /// Page by page.
    async fn query(&mut self, name: Name, filter: Filter, limit: usize) {
        let (mut got, mut start): (Vec<EntityView>, _) = (Vec::new(), None);
        loop {
            let filter = expression(filter);
            let allowed = (Bound::Unbounded, Bound::Unbounded);
            let query = Query { table: address(name), filter, allowed, start, select: None, limit };
            match answer(entities::query(self.engine(), query).await) {
                Err(refusal) => return assert_eq!(self.table(name).map(|_| ()), Err(refusal)),
                Ok(page) => {
                    assert!(page.entities.len() <= limit);
                    got.extend(page.entities);
                    start = page.next;
                }
            }
            if start.is_none() {
                break;
            }
        }
        let entities = self.table(name).unwrap().entities.values();
        let expected: Vec<_> = entities.filter(|entity| matches(filter, entity)).cloned().collect();
        assert_eq!(got, expected);
    }

    async fn restart(&mut self) {
        self.engine.take().unwrap().close().await;
        self.engine = Some(open(self.directory.path(), &self.clock).await);
        self.compare().await;
    }

    /// Compares everything that is stored, after the engine has tidied up.
    async fn compare(&mut self) {
        self.engine().settle().await.unwrap();
        for name in TABLES {
            self.query(name, Filter::Nothing, 5).await;
        }
        let request = ListTables { account: account(), start: None, filter: None, limit: 10 };
        let page = tables::list(self.engine(), request).await.unwrap();
        let listed: Vec<_> = page.tables.iter().map(TableName::as_str).collect();
        assert_eq!(listed, self.tables.values().map(|table| table.name).collect::<Vec<_>>());
    }

    /// Deletes all tables and lets the engine tidy up: nothing may be left.
    async fn leave_nothing(&mut self) {
        for name in TABLES {
            let _ = tables::delete(self.engine(), address(name)).await;
        }
        self.engine().settle().await.unwrap();
        assert_eq!(self.engine().census().unwrap(), [], "rows left over");
    }
}

fn expression(filter: Filter) -> Option<Expression> {
    let (field, operator, value) = match filter {
        Filter::Nothing => return None,
        Filter::Partition(at) => (Field::PartitionKey, Operator::Equal, Value::String(PARTITIONS[at].into())),
        Filter::RowsFrom(at) => (Field::RowKey, Operator::GreaterOrEqual, Value::String(ROWS[at].into())),
        Filter::Above(seed) => (Field::Property("a".into()), Operator::Greater, value(5, seed)),
    };
    Some(Expression::Compare { field, operator, value })
}

fn matches(filter: Filter, entity: &EntityView) -> bool {
    let property = entity.properties.0.iter().find(|(name, _)| name == "a").map(|(_, value)| value);
    match filter {
        Filter::Nothing => true,
        Filter::Partition(at) => entity.key.partition.as_str() == PARTITIONS[at],
        Filter::RowsFrom(at) => units(&entity.key).1 >= ROWS[at].encode_utf16().collect::<Vec<_>>(),
        Filter::Above(seed) => {
            let limit = f64::from(i32::from(seed) - 128);
            match property {
                Some(Value::Int32(number)) => f64::from(*number) > limit,
                // What the values above hold of it is either far below every limit or not a number of 64 bits.
                Some(Value::Double(number)) => *number > limit,
                _ => false,
            }
        }
    }
}

/// More of them in the long run of the tests.
fn config() -> ProptestConfig {
    let cases = if std::env::var_os("LAZULI_LONG").is_some() { 1000 } else { 32 };
    ProptestConfig { cases, max_shrink_time: 60_000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn tables_do_what_the_model_does(steps in proptest::collection::vec(any_step(), 1..150)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut pair = Pair::new().await;
            for table in &TABLES[..2] {
                pair.step(&Step::Create(table)).await;
            }
            for (number, step) in steps.iter().enumerate() {
                let happened = std::panic::AssertUnwindSafe(pair.step(step));
                if let Err(panic) = futures_util::FutureExt::catch_unwind(happened).await {
                    eprintln!("step {number}: {step:?}");
                    std::panic::resume_unwind(panic);
                }
            }
            pair.restart().await;
            pair.leave_nothing().await;
        });
    }
}
