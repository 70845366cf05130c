//! The model of what a blob has beside itself: snapshots, versions, and what is deleted and can be restored.

use std::time::Duration;

use lazuli_engine::Refusal;
use lazuli_engine::blob::Deletion;
use lazuli_engine::blob::Part;
use lazuli_engine::blob::listing::{Entry, Shown};
use lazuli_engine::blob::removal::{Deleted, Snapshots};
use lazuli_engine::blob::snapshot::Taken;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::condition::Conditions;
use lazuli_engine::etag::Etag;
use lazuli_engine::lease::Leased;
use lazuli_engine::names::BlobName;

use crate::rules::{Hold, Verb, judge};
use crate::steps::{Name, On};
use crate::world::{Room, Thing, World, metadata};

/// What the account keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keep {
    pub(crate) versioning: bool,
    pub(crate) blob_days: Option<u16>,
    pub(crate) container_days: Option<u16>,
}

/// A snapshot, a previous version, or a deleted blob.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// The base, if it is a deleted blob.
    pub(crate) part: Part,
    pub(crate) thing: Thing,
    pub(crate) deleted: Option<Deletion>,
}

/// A deleted container.
#[derive(Clone, Debug)]
pub(crate) struct Grave {
    pub(crate) name: Name,
    pub(crate) room: Room,
    pub(crate) deletion: Deletion,
}

/// A deletion at about `now`: the engine's may be some ticks later.
fn deletion(now: Timestamp, days: u16) -> Deletion {
    Deletion { at: now, until: now.after(Duration::from_secs(u64::from(days) * 86_400)), id: 0 }
}

/// Without a lease, which only blobs themselves have.
fn unleased(thing: &Thing) -> Thing {
    Thing { hold: Hold::default(), ..thing.clone() }
}

impl Layer {
    /// Where it stands among the lines of its name.
    fn place(&self) -> (u64, u8) {
        match self.part {
            Part::Snapshot(at) => (at.ticks(), 0),
            Part::Version(id) => (id.ticks(), 1),
            Part::Base => (u64::MAX, 2),
        }
    }
}

impl Room {
    /// A state of a blob that is not deleted. The current version is the blob itself.
    pub(crate) fn find(&self, name: Name, part: Part) -> Option<(&Thing, Part)> {
        let base = self.blobs.get(name);
        match part {
            Part::Base => base.map(|thing| (thing, part)),
            Part::Version(id) if base.is_some_and(|base| base.version == Some(id)) => {
                base.map(|thing| (thing, Part::Base))
            }
            _ => {
                let layer =
                    self.layers.get(name)?.iter().find(|layer| layer.part == part && layer.deleted.is_none())?;
                Some((&layer.thing, part))
            }
        }
    }

    fn push(&mut self, name: Name, layer: Layer) {
        let layers = self.layers.entry(name).or_default();
        layers.push(layer);
        layers.sort_by_key(Layer::place);
    }

    fn push_version(&mut self, name: Name, old: &Thing) {
        let id = old.version.unwrap_or(old.etag.committed());
        let thing = Thing { version: Some(id), ..unleased(old) };
        self.push(name, Layer { part: Part::Version(id), thing, deleted: None });
    }

    /// Makes way for a new blob at the instant `at`.
    pub(crate) fn make_way(&mut self, name: Name, at: Timestamp, keep: Keep, now: Timestamp) {
        let Some(old) = self.blobs.remove(name) else {
            for layer in self.layers.get_mut(name).into_iter().flatten().filter(|layer| layer.part == Part::Base) {
                layer.part = Part::Snapshot(at);
            }
            return self.layers.get_mut(name).into_iter().for_each(|layers| layers.sort_by_key(Layer::place));
        };
        if keep.versioning || old.version.is_some() {
            self.push_version(name, &old);
        } else if let Some(days) = keep.blob_days {
            let deleted = Some(deletion(now, days));
            self.push(name, Layer { part: Part::Snapshot(at), thing: unleased(&old), deleted });
        }
    }

    /// Keeps the state of a blob that is about to change, where versions are kept.
    pub(crate) fn keep_version(&mut self, name: Name, keep: Keep) {
        let Some(old) = self.blobs.get(name).cloned() else { return };
        if keep.versioning || old.version.is_some() {
            self.push_version(name, &old);
        }
    }

    /// Whether a snapshot is there that is not deleted.
    fn has_snapshots(&self, name: Name) -> bool {
        let live = |layer: &Layer| matches!(layer.part, Part::Snapshot(_)) && layer.deleted.is_none();
        self.layers.get(name).is_some_and(|layers| layers.iter().any(live))
    }

    /// Deletes the layers that are `wanted` and not deleted.
    fn delete_layers(&mut self, name: Name, keep: Keep, now: Timestamp, wanted: impl Fn(Part) -> bool) {
        let Some(layers) = self.layers.get_mut(name) else { return };
        let going = |layer: &Layer| wanted(layer.part) && layer.deleted.is_none();
        match keep.blob_days {
            None => layers.retain(|layer| !going(layer)),
            Some(days) => {
                for layer in layers.iter_mut().filter(|layer| going(layer)) {
                    layer.deleted = Some(deletion(now, days));
                }
            }
        }
    }

    fn delete_base(&mut self, name: Name, keep: Keep, now: Timestamp) -> bool {
        let Some(old) = self.blobs.remove(name) else { return true };
        if keep.versioning || old.version.is_some() {
            self.push_version(name, &old);
            return false;
        }
        if let Some(days) = keep.blob_days {
            let deleted = Some(deletion(now, days));
            self.push(name, Layer { part: Part::Base, thing: unleased(&old), deleted });
        }
        keep.blob_days.is_none()
    }

    /// Deletes a blob that was never committed.
    fn delete_uncommitted(
        &mut self,
        on: On,
        part: Part,
        conditions: &Conditions,
        now: Timestamp,
    ) -> Result<Deleted, Refusal> {
        let uncommitted = part == Part::Base && self.staged.contains_key(on.blob);
        if !uncommitted || *conditions != Conditions::default() {
            return Err(Refusal::BlobNotFound);
        }
        Hold::default().admits_write(on.lease, now, Leased::Blob)?;
        self.staged.remove(on.blob);
        Ok(Deleted { permanent: true })
    }

    fn prune(&mut self, now: Timestamp) {
        for layers in self.layers.values_mut() {
            layers.retain(|layer| layer.deleted.is_none_or(|deletion| deletion.until > now));
        }
        self.layers.retain(|_, layers| !layers.is_empty());
    }
}

impl World {
    /// The state of a blob that a step means.
    pub(crate) fn part(&self, on: On) -> Part {
        let Some((pick, room)) = on.layer.zip(self.containers.get(on.container)) else { return Part::Base };
        let layers = room.layers.get(on.blob).into_iter().flatten().map(|layer| layer.part);
        let current = room.blobs.get(on.blob).and_then(|thing| thing.version).map(Part::Version);
        let parts: Vec<_> = layers.chain(current).collect();
        parts.get(usize::from(pick) % parts.len().max(1)).copied().unwrap_or(Part::Base)
    }

    /// Refuses what would change a snapshot or version.
    pub(crate) fn itself(&self, on: On) -> Result<(), Refusal> {
        if self.part(on) == Part::Base { Ok(()) } else { Err(Refusal::PartReadOnly) }
    }

    /// Forgets what can no longer be restored.
    pub(crate) fn prune(&mut self, now: Timestamp) {
        self.graves.retain(|grave| grave.deletion.until > now);
        let graves = self.graves.iter_mut().map(|grave| &mut grave.room);
        self.containers.values_mut().chain(graves).for_each(|room| room.prune(now));
    }

    pub(crate) fn describe(&mut self, on: On, mark: u8, now: Timestamp, etag: Etag) -> Result<(), Refusal> {
        let keep = self.keep;
        self.writable(on, now)?;
        let room = self.room(on.container)?;
        room.keep_version(on.blob, keep);
        let thing = room.blobs.get_mut(on.blob).unwrap();
        thing.version = keep.versioning.then_some(etag.committed());
        thing.created = thing.version.unwrap_or(thing.created);
        (thing.metadata, thing.etag) = (metadata(mark), etag);
        Ok(())
    }

    /// `taken` is what the engine answered.
    pub(crate) fn snapshot(
        &mut self,
        on: On,
        mark: Option<u8>,
        now: Timestamp,
        taken: Option<&Taken>,
    ) -> Result<(), Refusal> {
        self.itself(on)?;
        let (conditions, keep) = (self.conditions(on), self.keep);
        let room = self.room(on.container)?;
        let base = room.blobs.get(on.blob).cloned().ok_or(Refusal::BlobNotFound)?;
        judge(&conditions, Verb::Write, Some(base.etag))?;
        base.hold.admits_read(on.lease, now, Leased::Blob)?;
        let at = taken.unwrap().at;
        let mut thing = Thing { version: None, ..unleased(&base) };
        if let Some(mark) = mark {
            (thing.metadata, thing.etag) = (metadata(mark), Etag::at(at));
        }
        assert_eq!(taken.unwrap().written.etag, thing.etag);
        if keep.versioning {
            room.keep_version(on.blob, keep);
            room.blobs.get_mut(on.blob).unwrap().version = Some(at);
        }
        assert_eq!(taken.unwrap().written.version, room.blobs[on.blob].version);
        room.push(on.blob, Layer { part: Part::Snapshot(at), thing, deleted: None });
        Ok(())
    }

    pub(crate) fn delete(&mut self, on: On, snapshots: Snapshots, now: Timestamp) -> Result<Deleted, Refusal> {
        let (part, keep) = (self.part(on), self.keep);
        let conditions = self.conditions(on);
        let room = self.room(on.container)?;
        let Some((thing, found)) = room.find(on.blob, part) else {
            return room.delete_uncommitted(on, part, &conditions, now);
        };
        judge(&conditions, Verb::Write, Some(thing.etag))?;
        thing.hold.admits_write(on.lease, now, Leased::Blob)?;
        if part != Part::Base {
            if found == Part::Base {
                return Err(Refusal::VersionIsCurrent);
            }
            room.delete_layers(on.blob, keep, now, |other| other == part);
            return Ok(Deleted { permanent: keep.blob_days.is_none() });
        }
        if snapshots == Snapshots::Refuse && room.has_snapshots(on.blob) {
            return Err(Refusal::SnapshotsPresent);
        }
        room.delete_layers(on.blob, keep, now, |part| matches!(part, Part::Snapshot(_)));
        let permanent = match snapshots {
            Snapshots::Only => keep.blob_days.is_none(),
            _ => {
                room.staged.remove(on.blob);
                room.delete_base(on.blob, keep, now)
            }
        };
        Ok(Deleted { permanent })
    }

    /// Whether the blob itself comes back; its new ETag is still to be set.
    pub(crate) fn undelete(&mut self, on: On) -> Result<bool, Refusal> {
        self.itself(on)?;
        let room = self.room(on.container)?;
        let deleted: Vec<_> = room.layers.get_mut(on.blob).into_iter().flatten().collect();
        let (mut any, is_there) = (false, room.blobs.contains_key(on.blob));
        let mut base = None;
        for layer in deleted.into_iter().filter(|layer| layer.deleted.is_some()) {
            (any, layer.deleted) = (true, None);
            if layer.part == Part::Base {
                base = Some(layer.thing.clone());
            }
        }
        if !any && !is_there {
            return Err(Refusal::BlobNotFound);
        }
        let comes_back = base.is_some();
        if let Some(base) = base {
            room.layers.get_mut(on.blob).unwrap().retain(|layer| layer.part != Part::Base);
            room.blobs.insert(on.blob, base);
        }
        Ok(comes_back)
    }

    pub(crate) fn bury(&mut self, name: Name, now: Timestamp) {
        let Some(mut room) = self.containers.remove(name) else { return };
        if let Some(days) = self.keep.container_days {
            room.hold = Hold::default();
            self.graves.push(Grave { name, room, deletion: deletion(now, days) });
        }
    }

    /// The deleted container that a step means.
    pub(crate) fn grave(&self, pick: u8) -> Option<usize> {
        (!self.graves.is_empty()).then(|| usize::from(pick) % self.graves.len())
    }

    pub(crate) fn restore(&mut self, grave: usize) -> Result<(), Refusal> {
        if self.containers.contains_key(self.graves[grave].name) {
            return Err(Refusal::ContainerExists);
        }
        let Grave { name, room, .. } = self.graves.remove(grave);
        self.containers.insert(name, room);
        Ok(())
    }

    /// All entries of a listing, as if it had no pages.
    pub(crate) fn listing(
        &mut self,
        container: Name,
        prefix: &str,
        delimiter: Option<&str>,
        shown: Shown,
        now: Timestamp,
    ) -> Result<Vec<Entry>, Refusal> {
        let room = self.room(container)?;
        let mut names: Vec<Name> =
            room.blobs.keys().chain(room.staged.keys()).chain(room.layers.keys()).copied().collect();
        names.retain(|name| name.starts_with(prefix));
        names.sort_unstable();
        names.dedup();
        let mut entries = Vec::new();
        for name in names {
            let cut =
                delimiter.and_then(|text| name[prefix.len()..].find(text).map(|at| prefix.len() + at + text.len()));
            for entry in room.lines(name, shown, now) {
                let entry = cut.map_or(entry, |end| Entry::Prefix(name[..end].to_owned()));
                if entries.last() != Some(&entry) {
                    entries.push(entry);
                }
            }
        }
        Ok(entries)
    }
}

impl Room {
    /// The lines of a name, all that are shown.
    fn lines(&self, name: Name, shown: Shown, now: Timestamp) -> Vec<Entry> {
        let mut lines = Vec::new();
        let line = |thing: &Thing, part, deleted| {
            let view = lazuli_engine::blob::object::BlobView { deleted, ..thing.view(name, part, now) };
            Box::new(view)
        };
        let layers = self.layers.get(name).map(Vec::as_slice).unwrap_or_default();
        for layer in layers {
            let wanted = match layer.part {
                Part::Snapshot(_) => shown.snapshots,
                Part::Version(_) => shown.versions,
                Part::Base => true,
            };
            if wanted && (layer.deleted.is_none() || shown.deleted) && (layer.deleted.is_some() || !shown.only_deleted)
            {
                lines.push(Entry::Blob(line(&layer.thing, layer.part, layer.deleted)));
            }
        }
        if shown.only_deleted {
            return lines;
        }
        if let Some(base) = self.blobs.get(name) {
            lines.push(Entry::Blob(line(base, Part::Base, None)));
            return lines;
        }
        let newest =
            layers.iter().rev().find(|layer| matches!(layer.part, Part::Version(_)) && layer.deleted.is_none());
        if let (true, Some(newest)) = (shown.versions_only, newest) {
            lines.push(Entry::VersionsOnly(line(&newest.thing, newest.part, None)));
        }
        if shown.uncommitted && self.staged.contains_key(name) {
            lines.push(Entry::Uncommitted(BlobName::parse(name).unwrap()));
        }
        lines
    }
}
