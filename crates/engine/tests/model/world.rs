//! The model: what the engine should hold, in the plainest maps.

use std::collections::BTreeMap;
use std::time::Duration;

use lazuli_engine::Refusal;
use lazuli_engine::blob::blocks::{BlockId, BlockLists, BlockSource, BlockView, CommittedBlob};
use lazuli_engine::blob::object::BlobView;
use lazuli_engine::blob::{LeaseAnswer, Part, Stored, Written};
use lazuli_engine::clock::Timestamp;
use lazuli_engine::condition::{Conditions, EtagSet};
use lazuli_engine::etag::Etag;
use lazuli_engine::lease::{LeaseAction, LeaseId, Leased};
use lazuli_engine::names::BlobName;
use lazuli_engine::properties::{HttpProperties, Metadata};

use crate::layers::{Grave, Keep, Layer};
use crate::rules::{Hold, Verb, judge};
use crate::steps::{Given, Name, On};

pub(crate) type Blocks = Vec<(BlockId, Vec<u8>)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) containers: BTreeMap<Name, Room>,
    /// Deleted containers that can be restored.
    pub(crate) graves: Vec<Grave>,
    pub(crate) keep: Keep,
}

/// A container.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) etag: Etag,
    pub(crate) metadata: Metadata,
    pub(crate) hold: Hold,
    pub(crate) blobs: BTreeMap<Name, Thing>,
    pub(crate) staged: BTreeMap<Name, BTreeMap<BlockId, Vec<u8>>>,
    pub(crate) layers: BTreeMap<Name, Vec<Layer>>,
}

/// A committed blob.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) etag: Etag,
    pub(crate) created: Timestamp,
    pub(crate) version: Option<Timestamp>,
    pub(crate) http: HttpProperties,
    pub(crate) metadata: Metadata,
    pub(crate) hold: Hold,
    pub(crate) content: Vec<u8>,
    /// In content order; empty for a blob that was put whole.
    pub(crate) blocks: Blocks,
}

impl Thing {
    pub(crate) fn view(&self, name: Name, part: Part, now: Timestamp) -> BlobView {
        BlobView {
            part,
            created: self.created,
            version: self.version,
            length: self.content.len() as u64,
            http: self.http.clone(),
            metadata: self.metadata.clone(),
            lease: self.hold.view(now),
            ..BlobView::new(BlobName::parse(name).unwrap(), self.etag)
        }
    }
}

pub(crate) fn stored(mark: u8) -> Stored {
    Stored { http: http(mark), metadata: metadata(mark), ..Stored::default() }
}

pub(crate) fn metadata(mark: u8) -> Metadata {
    Metadata(vec![("Mark".into(), mark.to_string())])
}

pub(crate) fn http(mark: u8) -> HttpProperties {
    HttpProperties { content_type: Some(format!("test/{mark}")), ..HttpProperties::default() }
}

impl World {
    pub(crate) fn room(&mut self, name: Name) -> Result<&mut Room, Refusal> {
        self.containers.get_mut(name).ok_or(Refusal::ContainerNotFound)
    }

    fn thing(&self, on: On) -> Option<&Thing> {
        self.containers.get(on.container).and_then(|room| Some(room.find(on.blob, self.part(on))?.0))
    }

    /// The conditions that a step means, by what is there now.
    pub(crate) fn conditions(&self, on: On) -> Conditions {
        let current = self.thing(on).map_or(Etag::at(Timestamp::from_ticks(2)), |thing| thing.etag);
        let stale = Etag::at(Timestamp::from_ticks(current.committed().ticks() - 1));
        let set = |etag: Etag| Some(EtagSet::OneOf(vec![etag.to_string()]));
        let second = |offset: i8| {
            let seconds = current.committed().unix_seconds().saturating_add_signed(offset.into());
            Some(Timestamp::from_unix_seconds(seconds))
        };
        let mut conditions = Conditions::default();
        match on.given {
            Given::Nothing => {}
            Given::MatchCurrent => conditions.if_match = set(current),
            Given::MatchStale => conditions.if_match = set(stale),
            Given::MatchAny => conditions.if_match = Some(EtagSet::Any),
            Given::NoneCurrent => conditions.if_none_match = set(current),
            Given::NoneStale => conditions.if_none_match = set(stale),
            Given::NoneAny => conditions.if_none_match = Some(EtagSet::Any),
            Given::ModifiedSince(offset) => conditions.if_modified_since = second(offset),
            Given::UnmodifiedSince(offset) => conditions.if_unmodified_since = second(offset),
        }
        conditions
    }

    /// The first instant after `now` at which a lease ends.
    pub(crate) fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let holds = self.containers.values().flat_map(|room| {
            room.blobs.values().map(|thing| thing.hold).chain([room.hold]).filter_map(|hold| hold.until)
        });
        holds.filter(|until| until.since(now) > Duration::from_millis(10)).min()
    }

    pub(crate) fn create(&mut self, name: Name, mark: u8, etag: Etag) -> Result<(), Refusal> {
        if self.containers.contains_key(name) {
            return Err(Refusal::ContainerExists);
        }
        let (blobs, staged, layers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let room = Room { etag, metadata: metadata(mark), hold: Hold::default(), blobs, staged, layers };
        self.containers.insert(name, room);
        Ok(())
    }

    pub(crate) fn delete_container(
        &mut self,
        name: Name,
        lease: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        self.room(name)?.hold.admits_write(lease, now, Leased::Container)?;
        self.bury(name, now);
        Ok(())
    }

    pub(crate) fn describe_container(
        &mut self,
        name: Name,
        lease: Option<LeaseId>,
        mark: u8,
        now: Timestamp,
        etag: Etag,
    ) -> Result<(), Refusal> {
        let room = self.room(name)?;
        room.hold.admits_read(lease, now, Leased::Container)?;
        (room.metadata, room.etag) = (metadata(mark), etag);
        Ok(())
    }

    /// The existing blob that a write may change; its lease is what it is from then on.
    pub(crate) fn writable(&mut self, on: On, now: Timestamp) -> Result<&mut Thing, Refusal> {
        self.itself(on)?;
        let conditions = self.conditions(on);
        let thing = self.room(on.container)?.blobs.get_mut(on.blob).ok_or(Refusal::BlobNotFound)?;
        judge(&conditions, Verb::Write, Some(thing.etag))?;
        thing.hold = thing.hold.admits_write(on.lease, now, Leased::Blob)?;
        Ok(thing)
    }

    pub(crate) fn readable(&self, on: On, now: Timestamp) -> Result<(&Thing, Part), Refusal> {
        let room = self.containers.get(on.container).ok_or(Refusal::ContainerNotFound)?;
        let (thing, part) = room.find(on.blob, self.part(on)).ok_or(Refusal::BlobNotFound)?;
        judge(&self.conditions(on), Verb::Read, Some(thing.etag))?;
        thing.hold.admits_read(on.lease, now, Leased::Blob)?;
        Ok((thing, part))
    }

    /// Whether a write may create or replace; answers the lease from then on.
    fn admit_create(&mut self, on: On, now: Timestamp) -> Result<Hold, Refusal> {
        self.itself(on)?;
        let conditions = self.conditions(on);
        let old = self.room(on.container)?.blobs.get(on.blob);
        judge(&conditions, Verb::Create, old.map(|thing| thing.etag))?;
        old.map(|thing| thing.hold).unwrap_or_default().admits_write(on.lease, now, Leased::Blob)
    }

    fn replace(
        &mut self,
        on: On,
        mark: u8,
        (hold, now): (Hold, Timestamp),
        etag: Etag,
        (content, blocks): (Vec<u8>, Blocks),
    ) {
        let (at, keep) = (etag.committed(), self.keep);
        let room = self.containers.get_mut(on.container).unwrap();
        room.staged.remove(on.blob);
        let old = room.blobs.get(on.blob).filter(|_| !keep.versioning);
        let created = old.map_or(at, |old| old.created);
        room.make_way(on.blob, at, keep, now);
        let (http, metadata, version) = (http(mark), metadata(mark), keep.versioning.then_some(at));
        room.blobs.insert(on.blob, Thing { etag, created, version, http, metadata, hold, content, blocks });
    }

    pub(crate) fn put(&mut self, on: On, mark: u8, bytes: Vec<u8>, now: Timestamp, etag: Etag) -> Result<(), Refusal> {
        let hold = self.admit_create(on, now)?;
        self.replace(on, mark, (hold, now), etag, (bytes, Vec::new()));
        Ok(())
    }

    pub(crate) fn put_block(&mut self, on: On, id: &BlockId, bytes: Vec<u8>, now: Timestamp) -> Result<(), Refusal> {
        self.itself(on)?;
        let room = self.room(on.container)?;
        let hold = room.blobs.get(on.blob).map(|thing| thing.hold).unwrap_or_default();
        hold.admits_write(on.lease, now, Leased::Blob)?;
        let staged = room.staged.entry(on.blob).or_default();
        if staged.keys().any(|other| other.0.len() != id.0.len()) {
            return Err(Refusal::BlockIdLengthDiffers);
        }
        staged.insert(id.clone(), bytes);
        Ok(())
    }

    pub(crate) fn commit(
        &mut self,
        on: On,
        mark: u8,
        list: &[(BlockSource, BlockId)],
        now: Timestamp,
        etag: Etag,
    ) -> Result<(), Refusal> {
        let hold = self.admit_create(on, now)?;
        let room = self.room(on.container)?;
        let staged = room.staged.get(on.blob).cloned().unwrap_or_default();
        let old = room.blobs.get(on.blob).map(|thing| thing.blocks.clone()).unwrap_or_default();
        let mut blocks = Blocks::new();
        for (source, id) in list {
            // Of an id that is committed twice, the later place counts.
            let committed = old.iter().rev().find(|(other, _)| other == id).map(|(_, bytes)| bytes);
            let found = match source {
                BlockSource::Committed => committed,
                BlockSource::Uncommitted => staged.get(id),
                BlockSource::Latest => staged.get(id).or(committed),
            };
            blocks.push((id.clone(), found.ok_or(Refusal::BlockUnknown)?.clone()));
        }
        let content = blocks.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        self.replace(on, mark, (hold, now), etag, (content, blocks));
        Ok(())
    }

    pub(crate) fn lease(&mut self, on: On, action: LeaseAction, now: Timestamp) -> Result<LeaseAnswer, Refusal> {
        self.itself(on)?;
        let conditions = self.conditions(on);
        let thing = self.room(on.container)?.blobs.get_mut(on.blob).ok_or(Refusal::BlobNotFound)?;
        judge(&conditions, Verb::Write, Some(thing.etag))?;
        thing.hold = thing.hold.act(action, now)?;
        Ok(LeaseAnswer { etag: thing.etag, id: thing.hold.id, break_seconds: thing.hold.left(now) })
    }

    pub(crate) fn lease_container(
        &mut self,
        name: Name,
        action: LeaseAction,
        now: Timestamp,
    ) -> Result<LeaseAnswer, Refusal> {
        let room = self.room(name)?;
        room.hold = room.hold.act(action, now)?;
        Ok(LeaseAnswer { etag: room.etag, id: room.hold.id, break_seconds: room.hold.left(now) })
    }

    pub(crate) fn block_lists(&mut self, on: On, now: Timestamp) -> Result<BlockLists, Refusal> {
        let part = self.part(on);
        let room = self.room(on.container)?;
        let found = room.find(on.blob, part);
        let itself = found.map_or(part, |(_, part)| part) == Part::Base;
        let (thing, staged) = (found.map(|(thing, _)| thing), room.staged.get(on.blob).filter(|_| itself));
        if thing.is_none() && staged.is_none() {
            return Err(Refusal::BlobNotFound);
        }
        thing.map(|thing| thing.hold).unwrap_or_default().admits_read(on.lease, now, Leased::Blob)?;
        let view = |(id, bytes): (&BlockId, &Vec<u8>)| BlockView { id: id.clone(), length: bytes.len() as u64 };
        Ok(BlockLists {
            blob: thing.map(|thing| CommittedBlob {
                written: Written { etag: thing.etag, version: thing.version },
                length: thing.content.len() as u64,
            }),
            committed: thing.into_iter().flat_map(|thing| &thing.blocks).map(|(id, bytes)| view((id, bytes))).collect(),
            uncommitted: staged.into_iter().flatten().map(view).collect(),
        })
    }
}
