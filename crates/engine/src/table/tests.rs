use crate::engine::Engine;
use crate::names::{AccountName, KeyText, TableAddress, TableName};
use crate::payload::tests::support::World;
use crate::rows::refs;
use crate::store::{Purpose, Space};
use crate::table::expression::{Expression, Field, Operator};
use crate::table::tables::{LOOKS_MAX, ListTables};
use crate::table::value::Value;
use crate::table::{Action, EntityKey, Properties, Write, entities, erase, tables};

fn at(table: &str) -> TableAddress {
    TableAddress { account: AccountName::parse("dev").unwrap(), table: TableName::parse(table).unwrap() }
}

/// Inserts entities of so many bytes each.
async fn fill(engine: &Engine, table: &str, count: usize, bytes: usize) {
    for number in 0..count {
        let key = EntityKey {
            partition: KeyText::parse("p").unwrap(),
            row: KeyText::parse(&format!("{number:04}")).unwrap(),
        };
        let properties = Properties(vec![("b".into(), Value::Binary(vec![7; bytes]))]);
        entities::write(engine, at(table), Write { key, action: Action::Insert(properties) }).await.unwrap();
    }
}

#[tokio::test]
async fn deleting_a_table_leaves_its_entities_to_the_background() {
    for count in [0, 1, 300] {
        let world = World::new();
        let engine = world.open().await;
        tables::create(&engine, at("things")).await.unwrap();
        fill(&engine, "things", count, 3).await;
        let before = engine.census().unwrap().iter().map(|(_, rows)| rows).sum::<usize>();
        tables::delete(&engine, at("things")).await.unwrap();
        assert_eq!((world.rows.count(Space::Tables), world.rows.count(Space::Dead)), (0, 1));
        assert_eq!(engine.census().unwrap().iter().map(|(_, rows)| rows).sum::<usize>(), before);
        engine.settle().await.unwrap();
        assert_eq!(engine.census().unwrap(), []);
    }
}

#[tokio::test]
async fn a_deleted_table_is_erased_in_small_steps_that_a_restart_does_not_lose() {
    // Many small rows, and few that are large: a step ends by number and by bytes.
    for (count, bytes, steps) in [(1300, 3, 3), (40, 65_000, 3)] {
        let world = World::new();
        let engine = world.open().await;
        for table in ["things", "others"] {
            tables::create(&engine, at(table)).await.unwrap();
        }
        fill(&engine, "others", 2, 65_000).await;
        let rows = || world.rows.count(Space::Entities) + world.rows.count(Space::EntityParts);
        let kept = rows();
        fill(&engine, "things", count, bytes).await;
        tables::delete(&engine, at("things")).await.unwrap();
        engine.close().await;
        let engine = world.open().await;
        let (_, dead) = refs::parse_dead(&world.rows.all(Space::Dead)[0].0).unwrap();
        for step in 1..=steps {
            let before = rows();
            let more = engine.write(Purpose::Free, move |tx| Ok(erase::entities(tx, dead.id)?)).await.unwrap();
            let erased = before - rows();
            assert!(erased <= 512 && erased * bytes.min(16_384) <= 1_100_000, "{erased} rows at once");
            assert_eq!(more, step < steps);
        }
        assert_eq!(rows(), kept);
    }
}

#[tokio::test]
async fn a_page_of_tables_ends_after_so_many_looks_though_none_matched() {
    let world = World::new();
    let engine = world.open().await;
    for number in 0..=LOOKS_MAX {
        tables::create(&engine, at(&format!("t{number:04}"))).await.unwrap();
    }
    let filter = |name: &str| Expression::Compare {
        field: Field::Property("TableName".into()),
        operator: Operator::Equal,
        value: Value::String(name.into()),
    };
    let list = |start| {
        let request = ListTables { account: at("any").account, start, filter: Some(filter("t2000")), limit: 1000 };
        tables::list(&engine, request)
    };
    let last = at("t2000").table;
    let page = list(None).await.unwrap();
    assert_eq!((page.tables, page.next.as_ref()), (vec![], Some(&last)));
    let page = list(page.next).await.unwrap();
    assert_eq!((page.tables, page.next), (vec![last], None));
}
