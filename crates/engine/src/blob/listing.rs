//! List Blobs, flat and by hierarchy. <https://learn.microsoft.com/rest/api/storageservices/list-blobs>
//!
//! A page is the merge of one scan per kind of row that is asked for: a plain listing reads `blobs` alone.

mod merge;

use crate::blob::object::BlobView;
use crate::blob::{Marker, Part, layers, state, tags};
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Error;
use crate::names::{BlobName, ContainerAddress};
use crate::rows::blob::{self as row, BlobRow};
use crate::rows::codec;
use crate::rows::layer::{self, DeletedRow, Deletion, LayerKind};
use crate::store::{Space, View};
use merge::{Item, Merge};

/// Rows that a page passes over before it ends short: of layers that are not to be shown.
const HIDDEN_PER_PAGE: usize = 5000;

/// What List Blobs asks for.
#[derive(Clone, Debug)]
pub struct ListBlobs {
    /// The container.
    pub container: ContainerAddress,
    /// Only names that begin so.
    pub prefix: String,
    /// Names that contain this after the prefix are answered as one prefix; none lists flat.
    pub delimiter: Option<String>,
    /// Only names from this one on.
    pub from: Option<String>,
    /// Only names before this one.
    pub before: Option<String>,
    /// Where to go on.
    pub start: Option<Marker>,
    /// Most entries to answer, at least 1; blobs and prefixes count together.
    pub limit: usize,
    /// What is listed beside the blobs.
    pub shown: Shown,
    /// Whether the tags of blobs are answered with them.
    pub tags: bool,
}

/// What a listing shows beside the blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of the request")]
pub struct Shown {
    /// Blobs that have only uncommitted blocks.
    pub uncommitted: bool,
    /// Snapshots.
    pub snapshots: bool,
    /// Previous versions.
    pub versions: bool,
    /// What is soft-deleted: blobs, and of what else is shown.
    pub deleted: bool,
    /// A line for each name that has previous versions and no blob.
    pub versions_only: bool,
    /// Nothing but what is soft-deleted.
    pub only_deleted: bool,
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A committed blob, a snapshot or a version, deleted or not.
    Blob(Box<BlobView>),
    /// The newest version of a name that has versions and no blob.
    VersionsOnly(Box<BlobView>),
    /// A name that has only uncommitted blocks.
    Uncommitted(BlobName),
    /// All names that begin so, up to and with the delimiter.
    Prefix(String),
}

/// One page, in byte order of the names, as of one moment. Within a name its layers come first, oldest first, then what
/// there is of the blob itself. It may end short and still have a next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPage {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Where the next page begins, if there is one.
    pub next: Option<Marker>,
    /// The moment.
    pub now: Timestamp,
}

/// Lists the blobs of a container. The time grows with what is answered, not with what lies under a prefix.
///
/// Refuses `ContainerNotFound`.
pub async fn list(engine: &Engine, request: ListBlobs) -> Result<BlobPage, Error> {
    engine.scan(move |view| page(view, &request)).await
}

fn page(view: &dyn View, request: &ListBlobs) -> Result<BlobPage, Error> {
    let container = state::container(view, &request.container)?;
    let mut merge = Merge::begin(view, container.incarnation, request)?;
    let (mut entries, mut hidden, now) = (Vec::new(), 0, view.now());
    while let Some(item) = merge.next()? {
        let full = entries.len() == request.limit;
        if hidden == HIDDEN_PER_PAGE || (full && item.shown) {
            return Ok(BlobPage { entries, next: Some(item.marker()), now });
        }
        if !item.shown {
            hidden += 1;
            continue;
        }
        let (_, name) = row::owner(item.space, &item.key)?;
        match common_prefix(request, name.as_str()) {
            Some(common) => {
                let common = common.to_owned();
                merge.skip(common.as_bytes())?;
                entries.push(Entry::Prefix(common));
            }
            None => entries.push(entry(view, request, item, name)?),
        }
    }
    Ok(BlobPage { entries, next: None, now })
}

/// The line of a row.
fn entry(view: &dyn View, request: &ListBlobs, item: Item, name: BlobName) -> Result<Entry, Error> {
    let (part, row, deleted, tags_key) = match item.space {
        Space::Stagings => return Ok(Entry::Uncommitted(name)),
        Space::Removed => {
            let row: DeletedRow = codec::decode(item.space, &item.key, &item.value)?;
            (Part::Base, row.blob, Some(row.deletion), item.key.to_vec())
        }
        Space::Deleted => {
            let (part, _) = part(&item)?;
            let row: DeletedRow = codec::decode(item.space, &item.key, &item.value)?;
            (part, row.blob, Some(row.deletion), item.key.to_vec())
        }
        Space::Snapshots | Space::Versions => {
            let (part, tags_key) = part(&item)?;
            let deleted = item.swept.map(|(at, until)| Deletion { at, until, id: 0 });
            (part, codec::decode(item.space, &item.key, &item.value)?, deleted, tags_key)
        }
        _ => {
            let blob = match item.blob {
                Some(blob) => *blob,
                None => codec::decode::<BlobRow>(item.space, &item.key, &item.value)?,
            };
            (Part::Base, blob, None, item.key.to_vec())
        }
    };
    let mut blob = Box::new(BlobView { deleted, ..BlobView::of(name, part, row, view.now()) });
    if request.tags && blob.tags > 0 {
        blob.tag_set = tags::read(view, &tags_key)?;
    }
    Ok(if item.newest { Entry::VersionsOnly(blob) } else { Entry::Blob(blob) })
}

/// Which layer an item is, and the key of its tags.
fn part(item: &Item) -> Result<(Part, Vec<u8>), Error> {
    let at = layer::parse(item.space, &item.key)?;
    let part = match at.kind {
        LayerKind::Snapshot => Part::Snapshot(at.instant),
        LayerKind::Version => Part::Version(at.instant),
    };
    Ok((part, layers::tags(&at.base, at.instant, at.kind).0))
}

/// The part of `name` up to and with the first delimiter after the prefix.
fn common_prefix<'a>(request: &ListBlobs, name: &'a str) -> Option<&'a str> {
    let delimiter = request.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())?;
    let rest = name.get(request.prefix.len()..)?;
    let end = request.prefix.len() + rest.find(delimiter)? + delimiter.len();
    name.get(..end)
}
