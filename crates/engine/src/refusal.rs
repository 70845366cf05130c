//! Everything that the engine may decline, in its own words. What a protocol says about it is decided elsewhere.

use crate::etag::Etag;

/// A refusal: nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The container does not exist.
    ContainerNotFound,
    /// A container of that name exists.
    ContainerExists,
    /// The blob does not exist (or has only uncommitted blocks).
    BlobNotFound,
    /// The blob exists and the condition demanded that it does not.
    BlobExists,
    /// The blob exists and the caller may create, but not replace.
    BlobKept,
    /// A snapshot or version is read-only.
    PartReadOnly,
    /// The blob has snapshots, and the request does not say that they go as well.
    SnapshotsPresent,
    /// The current version cannot be deleted by its id.
    VersionIsCurrent,
    /// What is to be deleted for good was not deleted before.
    NotDeletedBefore,
    /// The account does not let anything be deleted for good before its time.
    PermanentDeletionOff,
    /// The blob is of another kind than the operation works on.
    BlobKindMismatch,
    /// The blob is archived: it cannot be read or changed before it is rehydrated.
    BlobArchived,
    /// The blob is being rehydrated, to another tier or in more haste.
    Rehydrating,
    /// The blob is of another kind than the tier is for.
    TierNotForKind,
    /// The blob has more bytes than the tier allows.
    TierTooSmall,
    /// The tier is lower than the one that the blob has, and of its kind only raised.
    TierLower,
    /// An immutability policy keeps the blob as it is.
    BlobImmutable,
    /// A legal hold keeps the blob as it is.
    BlobHeld,
    /// The container holds blobs that an immutability policy or a legal hold protects.
    ContainerProtected,
    /// The immutability policy is locked and cannot be deleted.
    PolicyLocked,
    /// The immutability policy would end in the past.
    PolicyOver,
    /// The account has no immutability policies and legal holds.
    ProtectionOff,
    /// The blob would expire in the past.
    ExpiryOver,
    /// A condition of a read says that the caller's copy is still good.
    NotModified {
        /// The version that the caller has.
        etag: Etag,
    },
    /// A condition failed.
    ConditionFailed,
    /// A condition that no state can meet, such as a read that demands absence.
    ConditionUnsatisfiable,
    /// The resource is leased and the request names no lease.
    LeaseIdMissing,
    /// The request names another lease than the one held, on a blob operation.
    LeaseMismatchOnBlob,
    /// The request names a lease, the blob has never had one or it was released.
    LeaseAbsentOnBlob,
    /// The request names another lease than the one held, on a container operation.
    LeaseMismatchOnContainer,
    /// The request names a lease, the container has never had one or it was released.
    LeaseAbsentOnContainer,
    /// The request names a lease that has expired or was broken.
    LeaseLost,
    /// A lease operation found a lease held by somebody else.
    LeasePresent,
    /// A lease operation named another lease than the one recorded.
    LeaseMismatch,
    /// A lease operation found no lease.
    LeaseAbsent,
    /// The lease is breaking and cannot be acquired.
    LeaseBreakingNoAcquire,
    /// The lease is breaking and cannot be changed.
    LeaseBreakingNoChange,
    /// The lease is breaking or broken and cannot be renewed.
    LeaseBrokenNoRenew,
    /// A block list names a block that does not exist where it was looked for.
    BlockUnknown,
    /// The block id is not as long as those of the blob's other uncommitted blocks.
    BlockIdLengthDiffers,
    /// The blob has as many uncommitted blocks as it may have.
    BlocksTooMany,
    /// The queue does not exist.
    QueueNotFound,
    /// A queue of that name exists, with other metadata.
    QueueExists,
    /// The message does not exist, or no more: it was deleted or has expired.
    MessageNotFound,
    /// The message has been handed out or updated since the receipt was given.
    ReceiptMismatch,
    /// The message would become visible only after it has expired.
    VisibleAfterExpiry,
    /// The table does not exist.
    TableNotFound,
    /// A table of that name exists, whatever the letter case.
    TableExists,
    /// The entity does not exist.
    EntityNotFound,
    /// An entity of those keys exists.
    EntityExists,
    /// The entity is of another version than the caller expects.
    EntityChanged,
    /// The entity would have more bytes than an entity may have.
    EntityTooLarge,
    /// The entity would have more properties than an entity may have.
    PropertiesTooMany,
    /// The entities of a group would together have more bytes than one transaction writes.
    GroupTooLarge,
    /// The container's blobs are all stored under its encryption scope.
    ScopeFixed,
    /// The blob is stored under a key that the request does not bring.
    KeyNeeded,
    /// The request brings a key and the blob is stored under none of a customer.
    KeyNotUsed,
    /// The append blob has as many blocks as it may have.
    AppendsTooMany,
    /// The append blob is not as long as the condition demanded.
    AppendPositionDiffers,
    /// The append blob would be longer than the condition allows.
    LengthOverMax,
    /// The append blob is sealed.
    BlobSealed,
    /// Pages that lie beyond the end of the blob.
    PagesOutside,
    /// A condition on the sequence number failed.
    SequenceConditionFailed,
    /// The sequence number cannot become larger.
    SequenceTooLarge,
    /// The state to compare with does not exist.
    PreviousNotFound,
    /// The blob was put as a whole after the state to compare with.
    PreviousReplaced,
    /// There are more page ranges than one answer takes.
    PageListTooLong,
    /// The range begins at or after the end of the content.
    RangeOutside {
        /// The content's length in bytes.
        length: u64,
    },
    /// The container of a copy's source does not exist.
    SourceContainerNotFound,
    /// The source of a copy does not exist.
    SourceBlobNotFound,
    /// A condition on the source of a copy failed.
    SourceConditionFailed,
    /// The source of a copy is of another kind than the operation copies.
    SourceKindMismatch,
    /// The source of a copy is larger than the operation copies.
    SourceTooLarge,
    /// The source of an incremental copy is not a snapshot.
    SourceNotSnapshot,
    /// The target of an incremental copy follows another blob, or none.
    SourceDiffers,
    /// The source of an incremental copy is not newer than the last one.
    SourceEarlier,
    /// Only incremental copies write the blob, and only its snapshots are read.
    IncrementalTarget,
    /// A copy into the blob is under way.
    CopyPending,
    /// No copy into the blob is under way.
    NoCopyPending,
    /// Another copy into the blob is under way than the one named.
    CopyIdMismatch,
    /// The lease on the target of a copy has an end.
    LeaseNotInfinite,
}
