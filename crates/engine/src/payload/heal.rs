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
                SegmentRow::Active => ended.push((id, free_gaps(&*snapshot, segments, id)?)),
                // The last of its bytes were forgotten, and then it was not removed any more.
                SegmentRow::Sealed if !is_named(&*snapshot, id)? => ended.push((id, false)),
                SegmentRow::Sealed => {}
            }
        }
    }
    for (id, used) in ended {
        let sealed = transact(&**store, Purpose::Free, move |tx| {
            if used {
                rows::put(tx, Space::Segments, segment::key(id), &SegmentRow::Sealed)
            } else {
                tx.delete(Space::Segments, &segment::key(id))
            }
        });
        match sealed.await {
            // What could be read must be readable still. A start that finds more room does the rest.
            Err(Error::Storage(StoreError::Full)) => {
                tracing::warn!("the disk is nearly full: segments are sealed at a later start");
                break;
            }
            sealed => sealed?,
        }
        if !used {
            segments.unlink(id)?;
        }
    }
    Ok(remove_strangers(directory, &known)?)
}

/// Punches every gap between the named bytes of a segment; answers whether any are named.
fn free_gaps(view: &dyn View, segments: &Segments, id: u64) -> Result<bool, StoreError> {
    // The row is written before the file is created. A file that was lost has no gaps either, and others their bytes.
    let Some(segment) = segments.find(id)? else { return is_named(view, id) };
    let size = segment.file.metadata().map_err(|error| failed("a segment", error))?.len();
    let mut at = 0;
    let mut used = false;
    for pair in view.scan(Space::Extents, KeyRange::prefix(&payload::extent_prefix(id)), Direction::Forward) {
        let (key, value) = pair?;
        let offset = payload::extent_offset(&key)?;
        let extent: ExtentRow = codec::decode(Space::Extents, &key, &value)?;
        if offset > at {
            segments.punch(&segment, at, offset - at)?;
        }
        at = offset + u64::from(extent.length).next_multiple_of(super::segments::ALIGNMENT);
        used = true;
    }
    if size > at {
        segments.punch(&segment, at, size - at)?;
    }
    Ok(used)
}

/// Whether any bytes of the segment are named.
fn is_named(view: &dyn View, id: u64) -> Result<bool, StoreError> {
    view.any(Space::Extents, &KeyRange::prefix(&payload::extent_prefix(id)))
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
