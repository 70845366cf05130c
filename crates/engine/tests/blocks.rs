//! Blocks and block lists, through the engine's public functions.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod support;

use lazuli_engine::Refusal;
use lazuli_engine::blob::blocks::{self, BlockSource, COMMITTED_BLOCKS_MAX};
use lazuli_engine::blob::{Stored, object};
use support::*;

const COMMITTED: BlockSource = BlockSource::Committed;
const UNCOMMITTED: BlockSource = BlockSource::Uncommitted;
const LATEST: BlockSource = BlockSource::Latest;

#[tokio::test]
async fn a_list_puts_blocks_in_its_own_order_and_may_repeat_them() {
    let (engine, _) = engine().await;
    for (id, bytes) in [("a", pattern(10, 1)), ("b", pattern(5000, 2)), ("c", pattern(300_000, 3))] {
        put_block(&engine, on("x"), id, bytes).await.unwrap();
    }
    commit(&engine, on("x"), &[(LATEST, "c"), (UNCOMMITTED, "a"), (LATEST, "b"), (LATEST, "a")]).await.unwrap();
    let expected = [pattern(300_000, 3), pattern(10, 1), pattern(5000, 2), pattern(10, 1)].concat();
    assert_eq!(read(&engine, on("x")).await.unwrap(), expected);
    for (first, last) in [(0, 0), (299_999, 300_000), (300_005, 300_020), (305_009, 305_019), (65_535, 131_073)] {
        let part = read_range(&engine, on("x"), Some((first as u64, last as u64))).await.unwrap();
        assert_eq!(part, expected[first..=last], "{first}-{last}");
    }
}

#[tokio::test]
async fn each_source_is_looked_up_where_it_says() {
    let (engine, _) = engine().await;
    put_block(&engine, on("x"), "a", "old").await.unwrap();
    put_block(&engine, on("x"), "b", "keep").await.unwrap();
    commit(&engine, on("x"), &[(LATEST, "a"), (LATEST, "b")]).await.unwrap();
    put_block(&engine, on("x"), "a", "new").await.unwrap();
    assert_eq!(refusal(commit(&engine, on("x"), &[(UNCOMMITTED, "b")]).await), Refusal::BlockUnknown);
    assert_eq!(refusal(commit(&engine, on("x"), &[(LATEST, "z")]).await), Refusal::BlockUnknown);
    let list = [(COMMITTED, "a"), (UNCOMMITTED, "a"), (LATEST, "a"), (LATEST, "b")];
    commit(&engine, on("x"), &list).await.unwrap();
    assert_eq!(read(&engine, on("x")).await.unwrap(), b"oldnewnewkeep");
    assert_eq!(refusal(commit(&engine, on("x"), &[(UNCOMMITTED, "a")]).await), Refusal::BlockUnknown);
}

#[tokio::test]
async fn unnamed_blocks_are_dropped_by_a_list_and_all_by_a_put() {
    let (engine, _) = engine().await;
    put_block(&engine, on("x"), "a", "1").await.unwrap();
    put_block(&engine, on("x"), "b", "2").await.unwrap();
    commit(&engine, on("x"), &[(LATEST, "a")]).await.unwrap();
    let lists = blocks::get_block_list(&engine, on("x"), true, true).await.unwrap();
    assert_eq!(lists.committed.iter().map(|block| block.id.clone()).collect::<Vec<_>>(), [block("a")]);
    assert!(lists.uncommitted.is_empty());
    put_block(&engine, on("x"), "cc", "3").await.unwrap();
    put(&engine, on("x"), "whole").await.unwrap();
    let lists = blocks::get_block_list(&engine, on("x"), true, true).await.unwrap();
    assert!(lists.committed.is_empty() && lists.uncommitted.is_empty());
    assert_eq!(lists.blob.unwrap().length, 5);
}

#[tokio::test]
async fn uncommitted_blocks_make_no_blob() {
    let (engine, _) = engine().await;
    assert_eq!(refusal(blocks::get_block_list(&engine, on("x"), true, true).await), Refusal::BlobNotFound);
    put_block(&engine, on("x"), "a", "1").await.unwrap();
    assert_eq!(refusal(object::get(&engine, on("x")).await), Refusal::BlobNotFound);
    let lists = blocks::get_block_list(&engine, on("x"), true, true).await.unwrap();
    assert_eq!((lists.blob, lists.uncommitted.len()), (None, 1));
}

#[tokio::test]
async fn block_ids_of_a_blob_are_equally_long() {
    let (engine, _) = engine().await;
    put_block(&engine, on("x"), "aa", "1").await.unwrap();
    assert_eq!(refusal(put_block(&engine, on("x"), "a", "1").await), Refusal::BlockIdLengthDiffers);
    put_block(&engine, on("y"), "a", "1").await.unwrap();
}

#[tokio::test]
async fn a_block_put_again_replaces_the_uncommitted_one() {
    let (engine, _) = engine().await;
    put_block(&engine, on("x"), "a", pattern(9000, 1)).await.unwrap();
    put_block(&engine, on("x"), "a", pattern(7000, 2)).await.unwrap();
    let lists = blocks::get_block_list(&engine, on("x"), false, true).await.unwrap();
    assert_eq!(lists.uncommitted.iter().map(|block| block.length).collect::<Vec<_>>(), [7000]);
    commit(&engine, on("x"), &[(LATEST, "a")]).await.unwrap();
    assert_eq!(read(&engine, on("x")).await.unwrap(), pattern(7000, 2));
}

#[tokio::test]
async fn an_empty_list_makes_an_empty_blob() {
    let (engine, _) = engine().await;
    commit(&engine, on("x"), &[]).await.unwrap();
    assert_eq!(read(&engine, on("x")).await.unwrap(), b"");
    assert_eq!(view(&engine, "x").await.length, 0);
}

#[tokio::test]
async fn as_many_blocks_as_the_service_takes_are_committed_and_committed_again() {
    let (engine, _) = engine().await;
    for id in 0..200 {
        put_block(&engine, on("x"), &format!("{id:05}"), format!("<{id:05}>")).await.unwrap();
    }
    let ids: Vec<_> = (0..COMMITTED_BLOCKS_MAX).map(|index| format!("{:05}", index * 7 % 200)).collect();
    let expected: String = ids.iter().map(|id| format!("<{id}>")).collect();
    for source in [UNCOMMITTED, COMMITTED] {
        let list = ids.iter().map(|id| (source, block(id))).collect();
        let written = blocks::put_block_list(&engine, on("x"), list, Stored::default()).await;
        written.unwrap();
        assert_eq!(view(&engine, "x").await.length, expected.len() as u64);
        let part = read_range(&engine, on("x"), Some((7 * 49_998 + 3, 7 * 49_999 + 2))).await.unwrap();
        assert_eq!(part, expected.as_bytes()[7 * 49_998 + 3..=7 * 49_999 + 2]);
        let lists = blocks::get_block_list(&engine, on("x"), true, false).await.unwrap();
        assert_eq!(lists.committed.len(), COMMITTED_BLOCKS_MAX);
    }
}

#[tokio::test]
async fn a_stale_commit_is_refused_and_leaves_the_uncommitted_blocks() {
    let (engine, _) = engine().await;
    let first = put(&engine, on("x"), "1").await.unwrap();
    put(&engine, on("x"), "2").await.unwrap();
    put_block(&engine, on("x"), "a", "3").await.unwrap();
    let stale = commit(&engine, if_match(on("x"), first), &[(LATEST, "a")]).await;
    assert_eq!(refusal(stale), Refusal::ConditionFailed);
    assert_eq!(read(&engine, on("x")).await.unwrap(), b"2");
    commit(&engine, on("x"), &[(LATEST, "a")]).await.unwrap();
    assert_eq!(read(&engine, on("x")).await.unwrap(), b"3");
}

#[tokio::test]
async fn a_reader_keeps_the_blocks_it_began_with() {
    let (engine, _) = engine().await;
    put_block(&engine, on("x"), "a", pattern(400_000, 1)).await.unwrap();
    put_block(&engine, on("x"), "b", pattern(400_000, 2)).await.unwrap();
    commit(&engine, on("x"), &[(LATEST, "a"), (LATEST, "b")]).await.unwrap();
    let mut download = object::download(&engine, on("x"), None).await.unwrap();
    let mut bytes = download.reader.next().await.unwrap().unwrap().to_vec();
    delete(&engine, on("x")).await.unwrap();
    engine.settle().await.unwrap();
    while let Some(part) = download.reader.next().await.unwrap() {
        bytes.extend_from_slice(&part);
    }
    assert_eq!(bytes, [pattern(400_000, 1), pattern(400_000, 2)].concat());
}

#[tokio::test]
async fn uncommitted_blocks_are_dropped_a_week_after_the_last_put() {
    let (engine, clock) = engine().await;
    let day = 24 * 60 * 60;
    put_block(&engine, on("x"), "a", "1").await.unwrap();
    clock.advance(seconds(5 * day));
    put_block(&engine, on("x"), "b", "2").await.unwrap();
    clock.advance(seconds(5 * day));
    engine.settle().await.unwrap();
    let lists = blocks::get_block_list(&engine, on("x"), true, true).await.unwrap();
    assert_eq!(lists.uncommitted.len(), 2, "the second put was five days ago");
    clock.advance(seconds(2 * day));
    engine.settle().await.unwrap();
    assert_eq!(refusal(blocks::get_block_list(&engine, on("x"), true, true).await), Refusal::BlobNotFound);
}

#[tokio::test]
async fn a_put_block_under_a_lease_needs_its_id_until_the_lease_ends() {
    let (engine, clock) = engine().await;
    put(&engine, on("x"), "1").await.unwrap();
    let action = lazuli_engine::lease::LeaseAction::Acquire {
        id: lease_id(1),
        duration: lazuli_engine::lease::LeaseDuration::Seconds(15),
    };
    object::lease(&engine, on("x"), action).await.unwrap();
    assert_eq!(refusal(put_block(&engine, on("x"), "a", "2").await), Refusal::LeaseIdMissing);
    let other = put_block(&engine, with_lease(on("x"), lease_id(2)), "a", "2").await;
    assert_eq!(refusal(other), Refusal::LeaseMismatchOnBlob);
    put_block(&engine, with_lease(on("x"), lease_id(1)), "a", "2").await.unwrap();
    clock.advance(seconds(16));
    put_block(&engine, on("x"), "a", "3").await.unwrap();
}
