//! The key spaces. What lies in each is drawn in [`crate::rows`].

macro_rules! spaces {
    ($($(#[$doc:meta])* $space:ident = $name:literal;)*) => {
        /// A separate ordered key space of the store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Space { $($(#[$doc])* $space,)* }

        impl Space {
            /// Every space, in order.
            pub const ALL: &'static [Space] = &[$(Space::$space,)*];

            /// The name on disk; never reused for another meaning.
            pub const fn name(self) -> &'static str {
                match self { $(Space::$space => $name,)* }
            }

            /// Position in [`Self::ALL`].
            pub const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

spaces! {
    /// The store's own state: format, sequence, last commit time, last id.
    Meta = "meta";
    /// Properties of whole services by account and service.
    Services = "services";
    /// Identities that got a key to sign for others, by tenant and object.
    Identities = "identities";
    /// Containers by account and name.
    Containers = "containers";
    /// Soft-deleted containers by account, name and instant.
    DeletedContainers = "deleted-containers";
    /// Committed blobs by container incarnation and name.
    Blobs = "blobs";
    /// Snapshots by blob and instant.
    Snapshots = "snapshots";
    /// Previous versions by blob and instant.
    Versions = "versions";
    /// Soft-deleted snapshots and versions by blob and instant.
    Deleted = "deleted";
    /// Soft-deleted blobs, while there is no other of the name.
    Removed = "removed";
    /// Blobs of which many snapshots were deleted by one write.
    Sweeps = "sweeps";
    /// Blobs that have uncommitted blocks, by container incarnation and name.
    Stagings = "stagings";
    /// Uncommitted blocks by staging and block id.
    Blocks = "blocks";
    /// Committed block lists: chunks by list and first byte.
    Lists = "lists";
    /// Written pages of page blobs: cells by map, cell and epoch.
    Pages = "pages";
    /// The epochs of the maps of pages.
    Epochs = "epochs";
    /// Stored bodies over the inline bound: pieces by payload and first byte.
    Payloads = "payloads";
    /// Stored bodies up to the inline bound.
    Small = "small";
    /// Reference counts above one, of payloads and lists.
    Refs = "refs";
    /// Which payload owns which bytes of which segment.
    Extents = "extents";
    /// Payload segments and their state.
    Segments = "segments";
    /// Tags of blobs and of their layers, by the keys of those.
    Tags = "tags";
    /// Tagged blobs by account, tag and value.
    Tagged = "tagged";
    /// Copies from other servers that are under way, by their ids.
    Copies = "copies";
    /// Changes of blobs that are not in the change feed yet, by account, instant and id.
    Changes = "changes";
    /// How far the change feeds have come, by account.
    Feeds = "feeds";
    /// What is dead and waits to be erased, in the order of its death.
    Dead = "dead";
    /// What the clockwork looks at when its instant has come.
    Due = "due";
    /// Queues by account and name.
    Queues = "queues";
    /// Messages by their queue's incarnation and their number.
    Messages = "messages";
    /// What of a text does not fit its message's row, by incarnation, number and part.
    Texts = "texts";
    /// Messages in the order in which they can be had, by incarnation, visibility instant and number.
    Places = "places";
    /// Stretches of a queue's places, by incarnation and time.
    Spans = "spans";
    /// How many messages there are, by incarnation and shard.
    Tallies = "tallies";
    /// Tables by account and name in small letters.
    Tables = "tables";
    /// Entities by their table's incarnation and their keys.
    Entities = "entities";
    /// What of an entity does not fit its row, by the key of the row and part.
    EntityParts = "entity-parts";
}

#[cfg(test)]
mod tests {
    use super::Space;

    #[test]
    fn names_are_unique_and_indexes_are_positions() {
        let names: std::collections::BTreeSet<_> = Space::ALL.iter().map(|space| space.name()).collect();
        assert_eq!(names.len(), Space::ALL.len());
        for (position, space) in Space::ALL.iter().enumerate() {
            assert_eq!(space.index(), position);
        }
    }
}
