//! What a crash may leave behind: bytes in active segments that no row names. Runs at open, again if interrupted.

use std::path::Path;
use std::sync::Arc;

use super::segments::{Segments, failed, parse_file_name};
use crate::error::Error;
use crate::rows::payload::{self, ExtentRow};
use crate::rows::segment::{self, SegmentRow};
use crate::rows::{self, codec};
use crate::store::kv::sled::sync_directory;
use crate::store::{Direction, KeyRange, Purpose, Space, Store, StoreError, View, transact};

/// Creates the directory, durably.
pub(super) fn create(directory: &Path) -> Result<(), StoreError> {
    if !directory.exists() {
        std::fs::create_dir_all(directory).map_err(|error| failed("the payload directory", error))?;
        sync_directory(directory.parent().unwrap_or(directory))?;
    }
    Ok(())
}

/// Frees what no row names, seals the segments that were active, and removes those of which nothing is named and files
/// that no row knows.
pub(super) async fn run(store: &Arc<dyn Store>, segments: &Segments, directory: &Path) -> Result<(), Error> {
    let mut known = Vec::new();
    let mut ended = Vec::new();
    {
        let snapshot = store.snapshot()?;
        for pair in snapshot.scan(Space::Segments, KeyRange::all(), Direction::Forward) {
            let (key, value) = pair?;
            let id = segment::id(&key)?;
            known.push(id);
            match codec::decode::<SegmentRow>(Space::Segments, &key, &value)? {
                SegmentRow::Active => ended.push((id, free_gaps(&*snapshot, segments, directory, id)?)),
                // The last of its bytes were forgotten, and then it was not removed any more.
                SegmentRow::Sealed if !is_named(&*snapshot, id)? => ended.push((id, false)),
                SegmentRow::Sealed => {}
            }
        }
    }
    for (id, used) in ended {
        transact(&**store, Purpose::Free, move |tx| {
            if used {
                rows::put(tx, Space::Segments, segment::key(id), &SegmentRow::Sealed)
            } else {
                tx.delete(Space::Segments, &segment::key(id))
            }
        })
        .await?;
        if !used {
            segments.unlink(id)?;
        }
    }
    Ok(remove_strangers(directory, &known)?)
}

/// Punches every gap between the named bytes of a segment; answers whether any are named.
fn free_gaps(view: &dyn View, segments: &Segments, directory: &Path, id: u64) -> Result<bool, StoreError> {
    let path = directory.join(super::segments::file_name(id));
    let size = match std::fs::metadata(&path) {
        Ok(file) => file.len(),
        // The row is written before the file is created.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => return Err(failed("a segment", error)),
    };
    let mut at = 0;
    let mut used = false;
    for pair in view.scan(Space::Extents, KeyRange::prefix(&payload::extent_prefix(id)), Direction::Forward) {
        let (key, value) = pair?;
        let offset = payload::extent_offset(&key)?;
        let extent: ExtentRow = codec::decode(Space::Extents, &key, &value)?;
        if offset > at {
            segments.punch(&*segments.get(id)?, at, offset - at)?;
        }
        at = offset + u64::from(extent.length).next_multiple_of(super::segments::ALIGNMENT);
        used = true;
    }
    if used && size > at {
        segments.punch(&*segments.get(id)?, at, size - at)?;
    }
    Ok(used)
}

/// Whether any bytes of the segment are named.
fn is_named(view: &dyn View, id: u64) -> Result<bool, StoreError> {
    let extents = KeyRange::prefix(&payload::extent_prefix(id));
    Ok(view.scan(Space::Extents, extents, Direction::Forward).next().transpose()?.is_some())
}

fn remove_strangers(directory: &Path, known: &[u64]) -> Result<(), StoreError> {
    let named = |error| failed("the payload directory", error);
    for entry in std::fs::read_dir(directory).map_err(named)? {
        let entry = entry.map_err(named)?;
        let id = entry.file_name().to_str().and_then(parse_file_name);
        if id.is_some_and(|id| known.binary_search(&id).is_err()) {
            std::fs::remove_file(entry.path()).map_err(named)?;
        }
    }
    Ok(())
}
