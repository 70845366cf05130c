//! What may happen, drawn at random from few names so that things meet.

use lazuli_engine::blob::blocks::BlockSource;
use lazuli_engine::blob::listing::Shown;
use lazuli_engine::blob::removal::Snapshots;
use lazuli_engine::lease::{LeaseAction, LeaseDuration, LeaseId};
use proptest::prelude::*;
use uuid::Uuid;

pub(crate) type Name = &'static str;

pub(crate) const CONTAINERS: [Name; 2] = ["one", "two"];
pub(crate) const BLOBS: [Name; 7] = ["a", "a-", "a/b", "a/b/c", "a/d", "b/a", "\u{e9}/x"];
/// The last one is longer than the others, which is refused among them.
const BLOCKS: [Name; 4] = ["a", "b", "c", "dd"];
/// Around the bounds between inline bodies, pages, checksummed frames and more than one of them.
const LENGTHS: [usize; 7] = [1, 100, 4096, 4097, 65_536, 65_537, 200_000];

/// How far the clock moves before a step. Never not at all: no two steps happen at the same instant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Moment,
    Seconds(u64),
    /// Until just before the first lease ends.
    BeforeAnEnd,
    /// Until just after it.
    AfterAnEnd,
    Days(u64),
}

/// A single condition, relative to what is there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given {
    Nothing,
    MatchCurrent,
    MatchStale,
    MatchAny,
    NoneCurrent,
    NoneStale,
    NoneAny,
    /// Seconds after the last write.
    ModifiedSince(i8),
    UnmodifiedSince(i8),
}

/// A request on one blob.
#[derive(Clone, Copy, Debug)]
pub(crate) struct On {
    pub(crate) container: Name,
    pub(crate) blob: Name,
    pub(crate) given: Given,
    pub(crate) lease: Option<LeaseId>,
    /// One of its snapshots and versions, deleted or not, counted round and round; none for the blob itself.
    pub(crate) layer: Option<u8>,
}

/// Bytes that are told by their length and a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) length: usize,
    pub(crate) seed: u8,
}

impl Content {
    pub(crate) fn bytes(self) -> Vec<u8> {
        (0..self.length).map(|index| (index % 251) as u8 ^ (index / 4096) as u8 ^ self.seed).collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Create(Name, u8),
    DeleteContainer(Name, Option<LeaseId>),
    DescribeContainer(Name, Option<LeaseId>, u8),
    LeaseContainer(Name, LeaseAction),
    Put(On, u8, Content),
    PutBlock(On, Name, Content),
    Commit(On, u8, Vec<(BlockSource, Name)>),
    Describe(On, u8),
    SetHttp(On, Option<u8>),
    Delete(On, Snapshots),
    Snapshot(On, Option<u8>),
    Undelete(On),
    /// Switches versioning, and sets the days that deleted blobs and containers are kept.
    Keep(bool, Option<u16>, Option<u16>),
    /// One of the deleted containers, counted round and round.
    RestoreContainer(u8),
    Lease(On, LeaseAction),
    Get(On),
    Download(On, Option<(u64, Option<u64>)>),
    GetBlocks(On),
    List {
        container: Name,
        prefix: Name,
        delimiter: Option<Name>,
        limit: usize,
        shown: Shown,
    },
    Restart,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) wait: Wait,
    pub(crate) deed: Deed,
}

fn any_wait() -> impl Strategy<Value = Wait> {
    prop_oneof![
        12 => Just(Wait::Moment),
        2 => (1_u64..=61).prop_map(Wait::Seconds),
        1 => Just(Wait::BeforeAnEnd),
        1 => Just(Wait::AfterAnEnd),
        1 => (0_u64..=2).prop_map(Wait::Days),
    ]
}

/// Mostly one container, so that much happens in it.
fn any_container() -> impl Strategy<Value = Name> {
    prop_oneof![5 => Just(CONTAINERS[0]), 1 => Just(CONTAINERS[1])]
}

fn any_id() -> impl Strategy<Value = LeaseId> {
    prop_oneof![3 => Just(1_u128), 1 => Just(2), 1 => Just(3)].prop_map(|number| LeaseId(Uuid::from_u128(number)))
}

fn any_lease() -> impl Strategy<Value = Option<LeaseId>> {
    prop_oneof![3 => Just(None), 1 => any_id().prop_map(Some)]
}

fn any_given() -> impl Strategy<Value = Given> {
    prop_oneof![
        12 => Just(Given::Nothing),
        1 => Just(Given::MatchCurrent),
        1 => Just(Given::MatchStale),
        1 => Just(Given::MatchAny),
        1 => Just(Given::NoneCurrent),
        1 => Just(Given::NoneStale),
        1 => Just(Given::NoneAny),
        1 => (-1_i8..=1).prop_map(Given::ModifiedSince),
        1 => (-1_i8..=1).prop_map(Given::UnmodifiedSince),
    ]
}

/// Mostly one blob, for the same reason.
fn any_blob() -> impl Strategy<Value = Name> {
    prop_oneof![1 => Just(BLOBS[2]), 1 => proptest::sample::select(&BLOBS[..])]
}

fn any_on() -> impl Strategy<Value = On> {
    on_one_of(prop_oneof![12 => Just(None), 1 => any::<u8>().prop_map(Some)])
}

/// Mostly a snapshot or version.
fn any_layer() -> impl Strategy<Value = On> {
    on_one_of(prop_oneof![1 => Just(None), 4 => any::<u8>().prop_map(Some)])
}

fn on_one_of(layer: impl Strategy<Value = Option<u8>>) -> impl Strategy<Value = On> {
    (any_container(), any_blob(), any_given(), any_lease(), layer)
        .prop_map(|(container, blob, given, lease, layer)| On { container, blob, given, lease, layer })
}

fn any_action() -> impl Strategy<Value = LeaseAction> {
    let duration = prop_oneof![1 => Just(LeaseDuration::Infinite), 2 => (15_u8..=60).prop_map(LeaseDuration::Seconds)];
    prop_oneof![
        4 => (any_id(), duration).prop_map(|(id, duration)| LeaseAction::Acquire { id, duration }),
        1 => any_id().prop_map(|id| LeaseAction::Renew { id }),
        1 => (any_id(), any_id()).prop_map(|(id, proposed)| LeaseAction::Change { id, proposed }),
        1 => any_id().prop_map(|id| LeaseAction::Release { id }),
        2 => proptest::option::of(0_u8..=60).prop_map(|period| LeaseAction::Break { period }),
    ]
}

fn any_content() -> impl Strategy<Value = Content> {
    (proptest::sample::select(&LENGTHS[..]), any::<u8>()).prop_map(|(length, seed)| Content { length, seed })
}

fn any_blocks() -> impl Strategy<Value = Vec<(BlockSource, Name)>> {
    let source = prop_oneof![
        1 => Just(BlockSource::Committed),
        1 => Just(BlockSource::Uncommitted),
        4 => Just(BlockSource::Latest),
    ];
    let id = prop_oneof![3 => Just(BLOCKS[0]), 3 => Just(BLOCKS[1]), 1 => Just(BLOCKS[2])];
    proptest::collection::vec((source, id), 0..4)
}

fn any_range() -> impl Strategy<Value = Option<(u64, Option<u64>)>> {
    let first = prop_oneof![0_u64..=3, 4090_u64..=4100, 65_530_u64..=65_540];
    proptest::option::of((first, proptest::option::of(0_u64..70_000)))
        .prop_map(|range| range.map(|(first, more)| (first, more.map(|more| first + more))))
}

fn any_list() -> impl Strategy<Value = Deed> {
    let prefix = proptest::sample::select(vec!["", "a", "a/", "a/b/", "b/a", "z", "\u{e9}"]);
    let delimiter = proptest::sample::select(vec![None, Some("/"), Some("/"), Some("a"), Some("/b")]);
    (any_container(), prefix, delimiter, 1_usize..=4, 0_u8..64).prop_map(
        |(container, prefix, delimiter, limit, flags)| {
            let bit = |bit: u8| flags & (1 << bit) != 0;
            let shown = Shown {
                uncommitted: bit(0),
                snapshots: bit(1),
                versions: bit(2),
                deleted: bit(3),
                versions_only: bit(4),
                only_deleted: bit(3) && bit(5),
            };
            Deed::List { container, prefix, delimiter, limit, shown }
        },
    )
}

fn any_snapshots() -> impl Strategy<Value = Snapshots> {
    prop_oneof![Just(Snapshots::Refuse), Just(Snapshots::Include), Just(Snapshots::Only)]
}

fn any_days() -> impl Strategy<Value = Option<u16>> {
    proptest::option::of(1_u16..=2)
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (any_container(), any::<u8>()).prop_map(|(name, mark)| Deed::Create(name, mark)),
        1 => (any_container(), any_lease()).prop_map(|(name, lease)| Deed::DeleteContainer(name, lease)),
        1 => (any_container(), any_lease(), any::<u8>())
            .prop_map(|(name, lease, mark)| Deed::DescribeContainer(name, lease, mark)),
        2 => (any_container(), any_action()).prop_map(|(name, action)| Deed::LeaseContainer(name, action)),
        8 => (any_on(), any::<u8>(), any_content(), any::<bool>()).prop_map(|(on, mark, content, empty)| {
            Deed::Put(on, mark, if empty && mark < 32 { Content { length: 0, seed: 0 } } else { content })
        }),
        8 => (any_on(), proptest::sample::select(&BLOCKS[..]), any_content())
            .prop_map(|(on, id, content)| Deed::PutBlock(on, id, content)),
        8 => (any_on(), any::<u8>(), any_blocks()).prop_map(|(on, mark, blocks)| Deed::Commit(on, mark, blocks)),
        3 => (any_on(), any::<u8>()).prop_map(|(on, mark)| Deed::Describe(on, mark)),
        2 => (any_on(), any::<Option<u8>>()).prop_map(|(on, mark)| Deed::SetHttp(on, mark)),
        4 => (any_on(), any_snapshots()).prop_map(|(on, snapshots)| Deed::Delete(on, snapshots)),
        3 => (any_layer(), any_snapshots()).prop_map(|(on, snapshots)| Deed::Delete(on, snapshots)),
        6 => (any_on(), any::<Option<u8>>()).prop_map(|(on, mark)| Deed::Snapshot(on, mark)),
        4 => any_on().prop_map(Deed::Undelete),
        2 => (any::<bool>(), any_days(), any_days())
            .prop_map(|(versioning, blobs, containers)| Deed::Keep(versioning, blobs, containers)),
        2 => any::<u8>().prop_map(Deed::RestoreContainer),
        6 => (any_on(), any_action()).prop_map(|(on, action)| Deed::Lease(on, action)),
        4 => any_on().prop_map(Deed::Get),
        2 => any_layer().prop_map(Deed::Get),
        4 => (any_on(), any_range()).prop_map(|(on, range)| Deed::Download(on, range)),
        3 => (any_layer(), any_range()).prop_map(|(on, range)| Deed::Download(on, range)),
        3 => any_on().prop_map(Deed::GetBlocks),
        1 => any_layer().prop_map(Deed::GetBlocks),
        4 => any_list(),
        2 => Just(Deed::Restart),
    ]
}

pub(crate) fn any_steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((any_wait(), any_deed()).prop_map(|(wait, deed)| Step { wait, deed }), most / 2..=most)
}
