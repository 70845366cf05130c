#![allow(clippy::cast_possible_truncation, reason = "the numbers are small, or only tell contents apart")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::blob::append::{self, APPENDED_BLOCKS_MAX, AppendConditions};
use crate::blob::kind::BlobKind;
use crate::blob::testing::*;
use crate::blob::{Stored, container};
use crate::condition::Conditions;
use crate::payload::tests::support::{World, body};

async fn appended(engine: &Engine, blob: &str, bytes: Vec<u8>) -> append::Appended {
    let content = staged(engine, bytes).await;
    append::append(engine, on(blob), AppendConditions::default(), content).await.unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize, usize),
    Fork(usize, usize),
    Delete(usize),
    Settle,
    Restart,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn any_step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![1_usize..200, 4090_usize..4100, 60_000_usize..140_000];
    prop_oneof![
        8 => (0..NAMES.len(), length).prop_map(|(name, length)| Step::Append(name, length)),
        2 => (0..NAMES.len(), 0..NAMES.len()).prop_map(|(from, to)| Step::Fork(from, to)),
        1 => (0..NAMES.len()).prop_map(Step::Delete),
        1 => Just(Step::Settle),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn blobs_that_share_a_list_grow_each_on_its_own(steps in proptest::collection::vec(any_step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let mut engine = world.open().await;
            create_container(&engine).await;
            let mut model: BTreeMap<&str, (u32, Vec<u8>)> = BTreeMap::new();
            for (seed, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Append(name, length) => {
                        let name = NAMES[name];
                        if !model.contains_key(name) {
                            append::create(&engine, on(name), Stored::default()).await.unwrap();
                        }
                        let (blocks, content) = model.entry(name).or_default();
                        let bytes = body(length, seed as u8);
                        let appended = appended(&engine, name, bytes.clone()).await;
                        *blocks += 1;
                        assert_eq!((appended.offset, appended.blocks), (content.len() as u64, *blocks));
                        content.extend(bytes);
                    }
                    Step::Fork(from, to) if from != to => {
                        let Some(forked) = model.get(NAMES[from]).cloned() else { continue };
                        fork(&engine, NAMES[from], NAMES[to]).await;
                        model.insert(NAMES[to], forked);
                    }
                    Step::Fork(..) => {}
                    Step::Delete(name) => {
                        if model.remove(NAMES[name]).is_some() {
                            delete(&engine, NAMES[name]).await;
                        }
                    }
                    Step::Settle => engine.settle().await.unwrap(),
                    Step::Restart => {
                        engine.close().await;
                        engine = world.open().await;
                    }
                }
            }
            engine.settle().await.unwrap();
            for (name, (_, content)) in &model {
                assert!(read(&engine, name, None).await.unwrap() == *content, "{name}");
                if let Some(last) = content.len().checked_sub(1) {
                    let part = read(&engine, name, Some((last as u64 / 2, last as u64))).await.unwrap();
                    assert!(part == content[last / 2..], "{name}");
                }
            }
            let whole = crate::blob::OnContainer {
                address: on("x").address.container,
                conditions: Conditions::default(),
                lease: None,
            };
            container::delete(&engine, whole).await.unwrap();
            engine.settle().await.unwrap();
            let left: Vec<_> =
                engine.census().unwrap().into_iter().filter(|(space, _)| *space != Space::Segments).collect();
            assert_eq!(left, []);
        });
    }
}

#[tokio::test]
async fn a_copy_of_many_blocks_is_rebuilt_in_several_steps_and_not_while_it_changes() {
    let world = World::new();
    let engine = world.open().await;
    create_container(&engine).await;
    append::create(&engine, on("a"), Stored::default()).await.unwrap();
    let many = CHUNKS_PER_TRANSACTION * CHUNK_ENTRIES_MAX + 1;
    for number in 0..many {
        appended(&engine, "a", vec![number as u8]).await;
    }
    fork(&engine, "a", "b").await;
    appended(&engine, "a", b"of a".to_vec()).await;
    let ours = appended(&engine, "b", b"of b".to_vec()).await;
    assert_eq!((ours.offset, ours.blocks), (many as u64, many as u32 + 1));
    let shared: Vec<u8> = (0..many).map(|number| number as u8).collect();
    assert_eq!(read(&engine, "a", None).await.unwrap(), [&shared[..], b"of a"].concat());
    assert_eq!(read(&engine, "b", None).await.unwrap(), [&shared[..], b"of b"].concat());
    assert_eq!(world.rows.count(Space::Due), 0, "no appointment is left");
}

#[tokio::test]
async fn what_was_put_whole_or_in_blocks_by_a_copy_is_appended_to() {
    let world = World::new();
    let engine = world.open().await;
    create_container(&engine).await;
    append::create(&engine, on("a"), Stored::default()).await.unwrap();
    appended(&engine, "a", b"one ".to_vec()).await;
    let as_content = |from: fn(PayloadIds) -> Content| {
        let engine = engine.clone();
        async move {
            let content = staged(&engine, b"whole ".to_vec()).await;
            let write = move |tx: &mut dyn Tx, content: &Staged| {
                let state::Place { key, blob, .. } = state::place(tx, &on("a"))?;
                let mut blob = blob.ok_or(Refusal::BlobNotFound)?;
                state::release_content(tx, blob.content)?;
                let payload = content.keep(tx)?;
                let list = ListId(tx.id());
                let entry = ListEntry { id: BlockId(Vec::new()), length: content.length(), payload };
                let content = from(PayloadIds { payload, list });
                if let Content::Blocks(list) = content {
                    rows::put(tx, Space::Lists, list::key(list, 0), &ListChunk { entries: vec![entry] })?;
                }
                blob.length = 6;
                blob.content = content;
                Ok(rows::put(tx, Space::Blobs, key, &blob)?)
            };
            engine.write_content(content, write).await.unwrap();
        }
    };
    for from in [|ids: PayloadIds| Content::Whole(ids.payload), |ids: PayloadIds| Content::Blocks(ids.list)] {
        as_content(from).await;
        fork(&engine, "a", "b").await;
        assert_eq!(appended(&engine, "a", b"and more".to_vec()).await.offset, 6);
        assert_eq!(appended(&engine, "b", b"and others".to_vec()).await.offset, 6);
        assert_eq!(read(&engine, "a", None).await.unwrap(), b"whole and more");
        assert_eq!(read(&engine, "b", None).await.unwrap(), b"whole and others");
    }
    for name in ["a", "b"] {
        delete(&engine, name).await;
    }
    engine.settle().await.unwrap();
    assert_eq!((world.rows.count(Space::Lists), world.rows.count(Space::Small)), (0, 0));
}

#[derive(Clone, Copy)]
struct PayloadIds {
    payload: crate::payload::PayloadId,
    list: ListId,
}

#[tokio::test]
async fn conditions_and_limits_are_judged_in_order() {
    let world = World::new();
    let engine = world.open().await;
    create_container(&engine).await;
    let try_append = async |conditions| {
        let content = staged(&engine, b"1234".to_vec()).await;
        append::append(&engine, on("a"), conditions, content).await
    };
    let none = AppendConditions::default();
    assert_eq!(refusal(try_append(none).await), Refusal::BlobNotFound);
    append::create(&engine, on("a"), Stored::default()).await.unwrap();
    let at = |position| AppendConditions { position: Some(position), ..none };
    let below = |length_max| AppendConditions { length_max: Some(length_max), ..none };
    assert_eq!(refusal(try_append(at(1)).await), Refusal::AppendPositionDiffers);
    assert_eq!(refusal(try_append(below(3)).await), Refusal::LengthOverMax);
    assert_eq!(try_append(AppendConditions { position: Some(0), length_max: Some(4) }).await.unwrap().offset, 0);
    assert_eq!(
        refusal(try_append(AppendConditions { position: Some(0), length_max: Some(4) }).await),
        Refusal::AppendPositionDiffers
    );
    set_kind(&engine, BlobKind::Append { blocks: APPENDED_BLOCKS_MAX, sealed: false }).await;
    assert_eq!(refusal(try_append(none).await), Refusal::AppendsTooMany);
    assert_eq!(refusal(append::seal(&engine, on("a"), Some(3)).await), Refusal::AppendPositionDiffers);
    let sealed = append::seal(&engine, on("a"), Some(4)).await.unwrap();
    assert_eq!(append::seal(&engine, on("a"), None).await.unwrap(), sealed, "a second seal changes nothing");
    assert_eq!(refusal(try_append(none).await), Refusal::BlobSealed);
    assert_eq!(refusal(try_append(at(9)).await), Refusal::AppendPositionDiffers);
    set_kind(&engine, BlobKind::Block).await;
    assert_eq!(refusal(try_append(at(9)).await), Refusal::BlobKindMismatch);
    assert_eq!(refusal(append::create(&engine, on("a"), Stored::default()).await), Refusal::BlobKindMismatch);
    engine.settle().await.unwrap();
    assert_eq!(world.rows.count(Space::Small), 1, "what was refused is not kept");
}

async fn set_kind(engine: &Engine, kind: BlobKind) {
    let set = engine.write(Purpose::Grow, move |tx| {
        let state::Place { key, blob, .. } = state::place(tx, &on("a"))?;
        let blob = BlobRow { kind, ..blob.ok_or(Refusal::BlobNotFound)? };
        Ok(rows::put(tx, Space::Blobs, key, &blob)?)
    });
    set.await.unwrap();
}
