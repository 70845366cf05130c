//! List Blobs, flat and by hierarchy. <https://learn.microsoft.com/rest/api/storageservices/list-blobs>

use std::iter::Peekable;
use std::ops::Bound;

use bytes::Bytes;

use crate::blob::object::BlobView;
use crate::blob::{Marker, Part, state, tags};
use crate::engine::Engine;
use crate::error::Error;
use crate::names::{BlobName, ContainerAddress};
use crate::rows::blob::{self as row, BlobRow};
use crate::rows::codec;
use crate::store::{Direction, KeyRange, Pair, Pairs, Space, StoreError, View, prefix_end};

/// What List Blobs asks for.
#[derive(Clone, Debug)]
pub struct ListBlobs {
    /// The container.
    pub container: ContainerAddress,
    /// Only names that begin so.
    pub prefix: String,
    /// Names that contain this after the prefix are answered as one prefix; none lists flat.
    pub delimiter: Option<String>,
    /// Where to go on.
    pub start: Option<Marker>,
    /// Most entries to answer, at least 1; blobs and prefixes count together.
    pub limit: usize,
    /// Whether blobs that have only uncommitted blocks are listed.
    pub uncommitted: bool,
    /// Whether the tags of blobs are answered with them.
    pub tags: bool,
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A committed blob.
    Blob(Box<BlobView>),
    /// A name that has only uncommitted blocks.
    Uncommitted(BlobName),
    /// All names that begin so, up to and with the delimiter.
    Prefix(String),
}

/// One page, in byte order of the names, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPage {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Where the next page begins, if there is one.
    pub next: Option<Marker>,
}

/// Lists the blobs of a container. The time grows with what is answered, not with what lies under a prefix.
///
/// Refuses `ContainerNotFound`.
pub async fn list(engine: &Engine, request: ListBlobs) -> Result<BlobPage, Error> {
    engine.scan(move |view| page(view, &request)).await
}

fn page(view: &dyn View, request: &ListBlobs) -> Result<BlobPage, Error> {
    let container = state::container(view, &request.container)?;
    let mut names = Names::from(view, container.incarnation, request);
    let mut entries = Vec::new();
    while let Some((space, pair)) = names.next()? {
        let (key, value) = pair;
        let name = row::name(space, &key)?;
        if entries.len() == request.limit {
            return Ok(BlobPage { entries, next: Some(Marker(name.as_str().into())) });
        }
        if let Some(common) = common_prefix(request, name.as_str()) {
            let common = common.to_owned();
            names.skip(common.as_bytes());
            entries.push(Entry::Prefix(common));
            continue;
        }
        entries.push(match space {
            Space::Stagings => Entry::Uncommitted(name),
            _ => {
                let blob: BlobRow = codec::decode(space, &key, &value)?;
                let mut blob = BlobView::of(name, Part::Base, blob, view.now());
                if request.tags && blob.tags > 0 {
                    blob.tag_set = tags::read(view, &key)?;
                }
                Entry::Blob(Box::new(blob))
            }
        });
    }
    Ok(BlobPage { entries, next: None })
}

/// The part of `name` up to and with the first delimiter after the prefix.
fn common_prefix<'a>(request: &ListBlobs, name: &'a str) -> Option<&'a str> {
    let delimiter = request.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())?;
    let rest = name.get(request.prefix.len()..)?;
    let end = request.prefix.len() + rest.find(delimiter)? + delimiter.len();
    name.get(..end)
}

/// The names of a container in order: committed blobs, and those that have only uncommitted blocks if asked for.
struct Names<'a> {
    view: &'a dyn View,
    incarnation: u64,
    prefix: Vec<u8>,
    blobs: Peekable<Pairs<'a>>,
    stagings: Option<Peekable<Pairs<'a>>>,
}

impl<'a> Names<'a> {
    fn from(view: &'a dyn View, incarnation: u64, request: &ListBlobs) -> Self {
        let prefix = row::prefix(incarnation, request.prefix.as_bytes());
        let start = request.start.as_ref().map_or_else(Vec::new, |Marker(start)| row::prefix(incarnation, start));
        let start = Bound::Included(start.max(prefix.clone()));
        let scan = |space| Self::scan(view, space, &prefix, start.clone());
        Self {
            blobs: scan(Space::Blobs),
            stagings: request.uncommitted.then(|| scan(Space::Stagings)),
            view,
            incarnation,
            prefix,
        }
    }

    fn scan(view: &'a dyn View, space: Space, prefix: &[u8], start: Bound<Vec<u8>>) -> Peekable<Pairs<'a>> {
        view.scan(space, KeyRange::prefix(prefix).starting(start), Direction::Forward).peekable()
    }

    /// The next name; of a blob that has both sides, the committed one.
    fn next(&mut self) -> Result<Option<(Space, Pair)>, StoreError> {
        let Some(stagings) = &mut self.stagings else { return take(Space::Blobs, &mut self.blobs) };
        let blob = peek(&mut self.blobs)?;
        let staging = peek(stagings)?;
        match (blob, staging) {
            (Some(blob), Some(staging)) if staging < blob => take(Space::Stagings, stagings),
            (Some(blob), Some(staging)) if staging == blob => {
                take(Space::Stagings, stagings)?;
                take(Space::Blobs, &mut self.blobs)
            }
            (None, Some(_)) => take(Space::Stagings, stagings),
            _ => take(Space::Blobs, &mut self.blobs),
        }
    }

    /// Goes on behind every name that begins with `common`, without looking at them.
    fn skip(&mut self, common: &[u8]) {
        let start = match prefix_end(common) {
            Bound::Excluded(end) => Bound::Included(row::prefix(self.incarnation, &end)),
            // No name is beyond a prefix of nothing but 0xFF; a valid name has none.
            Bound::Included(_) | Bound::Unbounded => prefix_end(&self.prefix),
        };
        self.blobs = Self::scan(self.view, Space::Blobs, &self.prefix, start.clone());
        if self.stagings.is_some() {
            self.stagings = Some(Self::scan(self.view, Space::Stagings, &self.prefix, start));
        }
    }
}

fn peek(pairs: &mut Peekable<Pairs<'_>>) -> Result<Option<Bytes>, StoreError> {
    match pairs.peek() {
        Some(Ok((key, _))) => Ok(Some(key.clone())),
        Some(Err(error)) => Err(error.clone()),
        None => Ok(None),
    }
}

fn take(space: Space, pairs: &mut Peekable<Pairs<'_>>) -> Result<Option<(Space, Pair)>, StoreError> {
    Ok(pairs.next().transpose()?.map(|pair| (space, pair)))
}
