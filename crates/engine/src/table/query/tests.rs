use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::clock::{HeldClock, Timestamp};
use crate::engine::Engine;
use crate::etag::Etag;
use crate::names::{AccountName, KeyText, TableAddress, TableName};
use crate::rows::entity::{EntityRow, FIRST_BYTES_MAX};
use crate::store::{Direction, Pairs, Purpose, Visitor};
use crate::table::Properties;
use crate::table::expression::{Expression, Field, Operator};
use crate::table::value::Value;

const TABLE: u64 = 7;

fn at(partition: &str, row: &str) -> EntityKey {
    EntityKey { partition: KeyText::parse(partition).unwrap(), row: KeyText::parse(row).unwrap() }
}

fn shown(key: &EntityKey) -> String {
    format!("{}/{}", key.partition, key.row)
}

/// An engine with these entities, and one in the tables before and after.
async fn engine(entities: &[(EntityKey, Properties)]) -> Engine {
    let engine = Engine::memory(Arc::new(HeldClock::at(Timestamp::from_unix_seconds(1)))).await.unwrap();
    let mut rows =
        vec![(entity::key(TABLE - 1, &at("z", "z")), Vec::new()), (entity::key(TABLE + 1, &at("", "")), Vec::new())];
    rows.extend(entities.iter().map(|(key, properties)| (entity::key(TABLE, key), body::encode(properties).unwrap())));
    for rows in rows.chunks(500) {
        let rows = rows.to_vec();
        let write = move |tx: &mut dyn crate::store::Tx| {
            for (key, body) in &rows {
                let row = EntityRow { etag: Etag::at(Timestamp::from_ticks(9)), body: body.clone().into() };
                entity::write(tx, key.clone(), &row, 0)?;
            }
            Ok(())
        };
        engine.write(Purpose::Grow, write).await.unwrap();
    }
    engine
}

fn number(number: i32) -> Properties {
    Properties(vec![
        ("a".into(), Value::Boolean(true)),
        ("n".into(), Value::Int32(number)),
        ("z".into(), Value::Int64(1)),
    ])
}

fn query() -> Query {
    let (account, table) = (AccountName::parse("account").unwrap(), TableName::parse("table").unwrap());
    Query {
        table: TableAddress { account, table },
        filter: None,
        allowed: (Bound::Unbounded, Bound::Unbounded),
        start: None,
        select: None,
        limit: 1000,
    }
}

fn compare(field: Field, operator: Operator, value: Value) -> Expression {
    Expression::Compare { field, operator, value }
}

fn pk(operator: Operator, text: &str) -> Expression {
    compare(Field::PartitionKey, operator, Value::String(text.into()))
}

fn rk(operator: Operator, text: &str) -> Expression {
    compare(Field::RowKey, operator, Value::String(text.into()))
}

fn n(operator: Operator, number: i32) -> Expression {
    compare(Field::Property("n".into()), operator, Value::Int32(number))
}

/// All pages, each as the keys in it; within `work`, if that is said.
fn pages(engine: &Engine, mut query: Query, work: Option<Work>) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let mut plan = Plan::of(query.clone());
        plan.bounds = work.unwrap_or(plan.bounds);
        let page = engine.read(|view| plan.page(view, TABLE)).unwrap();
        pages.push(page.entities.iter().map(|entity| shown(&entity.key)).collect());
        match page.next {
            Some(next) => query.start = Some(next),
            None => return pages,
        }
    }
}

/// Two partitions of three rows, numbered.
fn six() -> Vec<(EntityKey, Properties)> {
    let keys = [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("b", "2"), ("b", "3")];
    keys.iter().zip(0..).map(|((partition, row), place)| (at(partition, row), number(place))).collect()
}

#[tokio::test]
async fn a_query_answers_what_matches_in_the_order_of_keys() {
    let engine = engine(&six()).await;
    let cases = [
        (None, "a/1 a/2 a/3 b/1 b/2 b/3"),
        (Some(Expression::Constant(false)), ""),
        (Some(pk(Operator::Equal, "a")), "a/1 a/2 a/3"),
        (Some(rk(Operator::Equal, "2")), "a/2 b/2"),
        (Some(Expression::All(vec![pk(Operator::Equal, "b"), rk(Operator::Equal, "2")])), "b/2"),
        (Some(Expression::All(vec![pk(Operator::Equal, "b"), rk(Operator::Equal, "4")])), ""),
        (Some(Expression::All(vec![pk(Operator::Equal, "a"), rk(Operator::Greater, "1")])), "a/2 a/3"),
        (Some(Expression::All(vec![pk(Operator::GreaterOrEqual, "a"), rk(Operator::Less, "2")])), "a/1 b/1"),
        (Some(n(Operator::GreaterOrEqual, 4)), "b/2 b/3"),
        (Some(Expression::Any(vec![n(Operator::Equal, 5), pk(Operator::Equal, "a")])), "a/1 a/2 a/3 b/3"),
        (Some(Expression::Not(Box::new(n(Operator::NotEqual, 3)))), "b/1"),
        (Some(pk(Operator::Equal, "what no key has: /\\#?\0")), ""),
        (Some(Expression::All(vec![pk(Operator::Equal, &"x".repeat(20_000)), rk(Operator::Equal, "/")])), ""),
    ];
    for (filter, expected) in cases {
        let query = Query { filter, ..query() };
        assert_eq!(pages(&engine, query.clone(), None).concat().join(" "), expected, "{query:?}");
    }
}

#[tokio::test]
async fn a_signature_s_keys_bound_every_query() {
    use Bound::{Excluded, Included, Unbounded};
    let engine = engine(&six()).await;
    let cases = [
        ((Included(at("a", "3")), Unbounded), None, "a/3 b/1 b/2 b/3"),
        ((Excluded(at("a", "3")), Unbounded), None, "b/1 b/2 b/3"),
        ((Unbounded, Included(at("a", "2"))), None, "a/1 a/2"),
        ((Unbounded, Excluded(at("a", "2"))), None, "a/1"),
        ((Included(at("a", "2")), Included(at("b", "1"))), None, "a/2 a/3 b/1"),
        ((Included(at("b", "")), Unbounded), Some(pk(Operator::Equal, "a")), ""),
        ((Included(at("a", "2")), Unbounded), Some(rk(Operator::NotEqual, "3")), "a/2 b/1 b/2"),
        ((Included(at("b", "")), Excluded(at("a", ""))), None, ""),
        ((Included(at("a", "2")), Included(at("a", "2"))), None, "a/2"),
        ((Excluded(at("a", "2")), Excluded(at("a", "2"))), None, ""),
    ];
    for (allowed, filter, expected) in cases {
        let query = Query { allowed, filter, ..query() };
        assert_eq!(pages(&engine, query.clone(), None).concat().join(" "), expected, "{query:?}");
    }
}

#[tokio::test]
async fn a_page_ends_at_each_of_its_bounds_and_says_where_to_go_on() {
    let engine = engine(&six()).await;
    let free = Work { examined: 100, examined_bytes: 1 << 20, answered_bytes: 1 << 20 };
    let many = |count: i32| Expression::Any((0..count).map(|other| n(Operator::Equal, 100 + other)).collect());
    let row = entity::key(TABLE, &at("a", "1")).len() + body::encode(&number(0)).unwrap().len();
    let cases = [
        (1000, None, free, "a/1 a/2 a/3 b/1 b/2 b/3"),
        (6, None, free, "a/1 a/2 a/3 b/1 b/2 b/3"),
        (4, None, free, "a/1 a/2 a/3 b/1, b/2 b/3"),
        (2, Some(rk(Operator::NotEqual, "2")), free, "a/1 a/3, b/1 b/3"),
        (1, Some(pk(Operator::Equal, "b")), free, "b/1, b/2, b/3"),
        // Nothing found, and yet a next page.
        (1000, Some(n(Operator::Equal, 5)), Work { examined: 2, ..free }, ", , b/3"),
        (1000, Some(n(Operator::Equal, 5)), Work { examined_bytes: 1, ..free }, ", , , , , b/3"),
        (1000, Some(n(Operator::Equal, 5)), Work { examined_bytes: row + 1, ..free }, ", , b/3"),
        // Long filters end pages sooner.
        (1000, Some(many(7)), Work { examined: 3, ..free }, ", "),
        (1000, Some(many(8)), Work { examined: 4, ..free }, ", , "),
        (1000, Some(many(80)), Work { examined: 1, ..free }, ", , , , , "),
        // One entity is always answered.
        (1000, None, Work { answered_bytes: 0, ..free }, "a/1, a/2, a/3, b/1, b/2, b/3"),
        (1000, None, Work { answered_bytes: 2 * row, ..free }, "a/1 a/2, a/3 b/1, b/2 b/3"),
        (1000, None, Work { answered_bytes: 2 * row - 1, ..free }, "a/1, a/2, a/3, b/1, b/2, b/3"),
    ];
    for (limit, filter, work, expected) in cases {
        let query = Query { limit, filter, ..query() };
        let found: Vec<String> = pages(&engine, query.clone(), Some(work)).iter().map(|page| page.join(" ")).collect();
        assert_eq!(found.join(", "), expected, "{query:?} {work:?}");
    }
    // Points end a page as stretches do.
    let point = |row: &str| Expression::All(vec![pk(Operator::Equal, "a"), rk(Operator::Equal, row)]);
    let points = Expression::Any(["1", "1a", "2", "3", "4"].map(point).into());
    let found = pages(&engine, Query { limit: 2, filter: Some(points), ..query() }, None);
    assert_eq!(found, [vec!["a/1", "a/2"], vec!["a/3"]]);
}

#[tokio::test]
async fn only_what_is_selected_is_answered() {
    let engine = engine(&six()[..1]).await;
    let cases: [(Option<&[&str]>, &[&str]); 5] = [
        (None, &["a", "n", "z"]),
        (Some(&[]), &[]),
        (Some(&["z", "a", "none"]), &["a", "z"]),
        (Some(&["N"]), &[]),
        (Some(&["n", "n"]), &["n"]),
    ];
    for (select, expected) in cases {
        let select: Option<Vec<String>> = select.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        // What the filter looks at need not be selected.
        let query = Query { select: select.clone(), filter: Some(n(Operator::Equal, 0)), ..query() };
        let page = engine.read(|view| Plan::of(query.clone()).page(view, TABLE)).unwrap();
        let [entity] = &page.entities[..] else { panic!("{page:?}") };
        assert_eq!((shown(&entity.key).as_str(), entity.etag), ("a/1", Etag::at(Timestamp::from_ticks(9))));
        let names: Vec<&str> = entity.properties.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected, "{select:?}");
    }
}

#[tokio::test]
async fn a_large_entity_is_looked_at_and_answered_whole() {
    let text = |length: usize| Value::String("x".repeat(length));
    let large = Properties(vec![
        ("first".into(), text(FIRST_BYTES_MAX - 100)),
        ("across".into(), text(3000)),
        ("last".into(), Value::Int32(3)),
    ]);
    let engine = engine(&[(at("p", "large"), large.clone()), (at("p", "small"), number(3))]).await;
    let last = compare(Field::Property("last".into()), Operator::Equal, Value::Int64(3));
    let query = Query { filter: Some(last), ..query() };
    let page = engine.read(|view| Plan::of(query.clone()).page(view, TABLE)).unwrap();
    assert_eq!(page.entities.iter().map(|entity| &entity.properties).collect::<Vec<_>>(), [&large]);
    let work = Work { examined: 100, examined_bytes: FIRST_BYTES_MAX + 100, answered_bytes: 1 << 20 };
    assert_eq!(pages(&engine, query, Some(work)), [vec!["p/large".to_owned()], vec![]], "parts count as work");
}

#[tokio::test]
async fn a_damaged_row_fails_the_query_that_looks_at_it() {
    let engine = engine(&six()).await;
    let key = entity::key(TABLE, &at("b", "2"));
    let damage = move |tx: &mut dyn crate::store::Tx| {
        let row = EntityRow { etag: Etag::at(Timestamp::from_ticks(9)), body: vec![99, 0].into() };
        Ok(entity::write(tx, key.clone(), &row, 0)?)
    };
    engine.write(Purpose::Grow, damage).await.unwrap();
    for (filter, fails) in
        [(pk(Operator::Equal, "a"), false), (pk(Operator::Equal, "b"), true), (n(Operator::Equal, 0), true)]
    {
        let plan = Plan::of(Query { filter: Some(filter.clone()), ..query() });
        let answer = engine.read(|view| plan.page(view, TABLE));
        assert_eq!(matches!(answer, Err(Error::Storage(StoreError::Corrupt { .. }))), fails, "{filter:?} {answer:?}");
    }
}

#[tokio::test]
async fn a_hundred_thousand_small_entities_fit_a_page_and_millions_do_not() {
    const { assert!(EXAMINED_MAX > 100_000 && EXAMINED_MAX < 1_000_000) };
    const { assert!(EXAMINED_BYTES_MAX > 100_000 * 400 && EXAMINED_BYTES_MAX < 1_000_000 * 100) };
}

/// A view that counts what is read.
struct Counting<'a> {
    view: &'a dyn View,
    pairs: std::cell::Cell<usize>,
}

impl View for Counting<'_> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<bytes::Bytes>, StoreError> {
        self.pairs.set(self.pairs.get() + 1);
        self.view.get(space, key)
    }

    fn scan(&self, _: Space, _: KeyRange, _: Direction) -> Pairs<'_> {
        panic!("a query visits")
    }

    fn visit(&self, space: Space, range: &KeyRange, each: &mut Visitor<'_>) -> Result<(), StoreError> {
        self.view.visit(space, range, &mut |key, value| {
            self.pairs.set(self.pairs.get() + 1);
            each(key, value)
        })
    }

    fn now(&self) -> Timestamp {
        self.view.now()
    }
}

#[tokio::test]
async fn only_the_keys_that_can_match_are_read() {
    let keys =
        (0..20).flat_map(|partition| (0..50).map(move |row| at(&format!("p{partition:02}"), &format!("r{row:02}"))));
    let entities: Vec<_> = keys.zip(0..).map(|(key, place)| (key, number(place))).collect();
    let engine = engine(&entities).await;
    let point =
        |partition: &str, row: &str| Expression::All(vec![pk(Operator::Equal, partition), rk(Operator::Equal, row)]);
    let cases = [
        (n(Operator::Equal, 3), 1000),
        (pk(Operator::Equal, "p03"), 50),
        (point("p03", "r03"), 1),
        (Expression::Any(vec![point("p03", "r03"), point("p17", "r40"), point("p17", "r99")]), 3),
        (
            Expression::All(vec![
                pk(Operator::Equal, "p19"),
                rk(Operator::GreaterOrEqual, "r1"),
                rk(Operator::Less, "r2"),
                n(Operator::Equal, 3),
            ]),
            10,
        ),
        (Expression::All(vec![pk(Operator::GreaterOrEqual, "p1"), pk(Operator::Less, "p12")]), 100),
        (Expression::Constant(false), 0),
    ];
    for (filter, expected) in cases {
        let plan = Plan::of(Query { filter: Some(filter.clone()), ..query() });
        let read = engine.read(|view| {
            let view = Counting { view, pairs: 0.into() };
            plan.page(&view, TABLE)?;
            Ok(view.pairs.get())
        });
        assert_eq!(read.unwrap(), expected, "{filter:?}");
        assert_eq!(plan.is_points(), expected < 10, "{filter:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the size of the pages, together they are what one page would be, in order and once.
    #[test]
    fn pages_add_up(
        keys in proptest::collection::btree_set(("[ab\u{E000}\u{1F980}]{0,2}", "[ab\u{E000}\u{1F980}]{0,2}"), 0..40),
        limit in 1_usize..9,
        examined in 1_usize..9,
        modulus in 1_i32..4,
    ) {
        let entities: Vec<_> =
            keys.iter().zip(0..).map(|((partition, row), place)| (at(partition, row), number(place % modulus))).collect();
        let mut expected: Vec<&EntityKey> =
            entities.iter().filter(|(_, properties)| *properties == number(0)).map(|(key, _)| key).collect();
        expected.sort_by_key(|key| {
            let units = |text: &KeyText| text.as_str().encode_utf16().collect::<Vec<_>>();
            (units(&key.partition), units(&key.row))
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(async {
            let engine = engine(&entities).await;
            let query = Query { filter: Some(n(Operator::Equal, 0)), limit, ..query() };
            let found = pages(&engine, query, Some(Work { examined, examined_bytes: 1 << 20, answered_bytes: 1 << 20 }));
            engine.close().await;
            found
        });
        prop_assert!(found.iter().all(|page| page.len() <= limit.min(examined)));
        prop_assert_eq!(found.concat(), expected.into_iter().map(shown).collect::<Vec<_>>());
    }
}
