//! The one table of error codes. <https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes>

use http::StatusCode;
use lazuli_engine::Refusal;

macro_rules! codes {
    ($($code:ident $status:literal $message:literal;)*) => {
        /// An error code of the service, verbatim.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each code is described by its message")]
        pub enum Code { $($code,)* }

        impl Code {
            /// Every code, sorted by name.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];

            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$code => stringify!($code),)* }
            }

            /// The HTTP status that goes with it.
            pub fn status(self) -> StatusCode {
                let status = match self { $(Code::$code => $status,)* };
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }

            /// What it says.
            pub const fn message(self) -> &'static str {
                match self { $(Code::$code => $message,)* }
            }
        }
    };
}

codes! {
    AccessTierNotSupportedForBlobType 400 "The access tier is not supported for this blob type.";
    AccountRequiresHttps 400 "The account being accessed does not support http.";
    AppendPositionConditionNotMet 412 "The append position condition specified was not met.";
    AtomFormatNotSupported 415 "Atom format is not supported.";
    AuthenticationFailed 403 "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly, including the signature.";
    AuthorizationFailure 403 "This request is not authorized to perform this operation.";
    AuthorizationPermissionMismatch 403 "This request is not authorized to perform this operation using this permission.";
    AuthorizationProtocolMismatch 403 "This request is not authorized to perform this operation using this protocol.";
    AuthorizationResourceTypeMismatch 403 "This request is not authorized to perform this operation using this resource type.";
    AuthorizationServiceMismatch 403 "This request is not authorized to perform this operation using this service.";
    AuthorizationSourceIPMismatch 403 "This request is not authorized to perform this operation using this source IP.";
    BlobAlreadyExists 409 "The specified blob already exists.";
    BlobArchived 409 "This operation is not permitted on an archived blob.";
    BlobBeingRehydrated 409 "This operation is not permitted because the blob is being rehydrated.";
    BlobDoesNotUseCustomerSpecifiedEncryption 409 "The blob is not encrypted with a customer specified key; the request may not bring one.";
    BlobImmutableDueToLegalHold 409 "This operation is not permitted as the blob is immutable due to a legal hold.";
    BlobImmutableDueToPolicy 409 "This operation is not permitted as the blob is immutable due to a policy.";
    BlobIsSealed 409 "The specified blob is sealed and its contents can't be modified unless the blob is re-created after a delete.";
    BlobNotFound 404 "The specified blob does not exist.";
    BlobOverwritten 409 "The blob has been recreated since the previous snapshot was taken.";
    BlobSnapshotNotSoftDeleted 409 "The specified snapshot or version is not soft-deleted.";
    BlobTierInadequateForContentLength 409 "The tier is inadequate for the length of the blob's content.";
    BlobUsesCustomerSpecifiedEncryption 409 "The blob is encrypted with customer specified encryption, but it was not provided in the request.";
    BlockCountExceedsLimit 409 "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.";
    BlockListTooLong 400 "The block list may not contain more than 50,000 blocks.";
    BothCrc64AndMd5HeaderPresent 400 "Both x-ms-content-crc64 and Content-MD5 are present; send one.";
    BothUserTagsAndSourceTagsCopyPresentException 400 "x-ms-tags and the tag option COPY are both present; send one.";
    CannotChangeToLowerTier 409 "A higher access tier has already been set for the blob.";
    CannotVerifyCopySource 404 "Could not verify the copy source. See the source's error code.";
    CommandsInBatchActOnDifferentPartitions 400 "All commands in a batch must operate on same entity group.";
    ConditionHeadersNotSupported 400 "Condition headers are not supported.";
    ConditionNotMet 412 "The condition specified using HTTP conditional header(s) is not met.";
    ContainerAlreadyExists 409 "The specified container already exists.";
    ContainerImmutableStorageWithVersioningEnabled 409 "The requested operation is not allowed as the container holds blobs that are protected by immutable storage with versioning.";
    ContainerNotFound 404 "The specified container does not exist.";
    CopyIdMismatch 409 "The specified copy ID did not match the copy ID for the pending copy operation.";
    CorsPreflightFailure 403 "CORS is not enabled for the service, or no rule of it matches the request.";
    Crc64Mismatch 400 "The CRC64 value specified in the request did not match the CRC64 value calculated by the server.";
    DuplicatePropertiesSpecified 400 "A property is specified more than one time.";
    EmptyMetadataKey 400 "The key for one of the metadata key-value pairs is empty.";
    EntityAlreadyExists 409 "The specified entity already exists.";
    EntityTooLarge 400 "The entity is larger than the maximum size permitted.";
    ErrorProcessingQueryExpression 400 "The query expression cannot be processed.";
    FeatureVersionMismatch 409 "The operation cannot be performed because something on the resource is newer than the version of the request.";
    IncrementalCopyBlobMismatch 409 "The specified source blob is different than the copy source of the existing incremental copy blob.";
    IncrementalCopyOfEarlierVersionSnapshotNotAllowed 409 "The specified snapshot is earlier than the last snapshot copied into the incremental copy blob.";
    IncrementalCopySourceMustBeSnapshot 409 "The source for incremental copy request must be a snapshot.";
    InfiniteLeaseDurationRequired 412 "The lease ID matched, but the specified lease must be an infinite-duration lease.";
    ImmutabilityPolicyDeleteOnLockedPolicy 409 "A locked immutability policy cannot be deleted.";
    InsufficientAccountPermissions 403 "The account being accessed does not have sufficient permissions to execute this operation.";
    InsufficientStorage 507 "The server has too little disk space left to store more data. Reads and deletes still work.";
    InternalError 500 "The server encountered an internal error. Please retry the request.";
    InvalidAuthenticationInfo 400 "Authentication information is not given in the correct format. Check the value of the Authorization header.";
    InvalidBlobOrBlock 400 "The specified blob or block content is invalid.";
    InvalidBlobType 409 "The blob type is invalid for this operation.";
    InvalidBlockId 400 "The specified block ID is invalid. The block ID must be Base64-encoded.";
    InvalidBlockList 400 "The specified block list is invalid.";
    InvalidCrc64 400 "The CRC64 value specified in the request is invalid. It must be 64 bits and Base64-encoded.";
    InvalidDuplicateRow 400 "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.";
    InvalidHeaderValue 400 "The value for one of the HTTP headers is not in the correct format.";
    InvalidHttpVerb 400 "The HTTP verb specified was not recognized by the server.";
    InvalidInput 400 "One of the request inputs is not valid.";
    InvalidMarker 400 "The specified marker is invalid.";
    InvalidMd5 400 "The MD5 value specified in the request is invalid. It must be 128 bits and Base64-encoded.";
    InvalidMetadata 400 "The metadata specified is invalid. It has characters that are not permitted.";
    InvalidOperation 400 "The operation is invalid for the resource.";
    InvalidPageRange 416 "The page range specified is invalid.";
    InvalidQueryParameterValue 400 "Value for one of the query parameters specified in the request URI is invalid.";
    InvalidRange 416 "The range specified is invalid for the current size of the resource.";
    InvalidResourceName 400 "The specified resource name contains invalid characters.";
    InvalidSourceBlobType 409 "The copy source blob type is invalid for this operation.";
    InvalidSourceBlobUrl 409 "The source URL for incremental copy or the copy operation is invalid.";
    InvalidTag 400 "The tags specified are invalid.";
    InvalidUri 400 "The requested URI does not represent any resource on the server.";
    InvalidValueType 400 "The value specified is invalid.";
    InvalidXmlDocument 400 "XML specified is not syntactically valid.";
    InvalidXmlNodeValue 400 "The value for one of the XML nodes is not in the correct format.";
    JsonFormatNotSupported 415 "JSON format is not supported.";
    KeyBasedAuthenticationNotPermitted 403 "Key based authentication is not permitted on this storage account.";
    KeyValueTooLarge 400 "The property value exceeds the maximum allowed size (1KB).";
    LeaseAlreadyPresent 409 "There is already a lease present.";
    LeaseIdMismatchWithBlobOperation 412 "The lease ID specified did not match the lease ID for the blob.";
    LeaseIdMismatchWithContainerOperation 412 "The lease ID specified did not match the lease ID for the container.";
    LeaseIdMismatchWithLeaseOperation 409 "The lease ID specified did not match the lease ID for the resource with the specified lease operation.";
    LeaseIdMissing 412 "There is currently a lease on the resource and no lease ID was specified in the request.";
    LeaseIsBreakingAndCannotBeAcquired 409 "The lease is already in breaking state and cannot be acquired until it is broken.";
    LeaseIsBreakingAndCannotBeChanged 409 "The lease is breaking and cannot be changed.";
    LeaseIsBrokenAndCannotBeRenewed 409 "The lease has been broken explicitly and cannot be renewed.";
    LeaseLost 412 "A lease ID was specified, but the lease for the resource has expired.";
    LeaseNotPresentWithBlobOperation 412 "There is currently no lease on the blob.";
    LeaseNotPresentWithContainerOperation 412 "There is currently no lease on the container.";
    LeaseNotPresentWithLeaseOperation 409 "There is currently no lease on the resource.";
    MaxBlobSizeConditionNotMet 412 "The max blob size condition specified was not met.";
    Md5Mismatch 400 "The MD5 value specified in the request did not match the MD5 value calculated by the server.";
    MediaTypeNotSupported 415 "None of the provided media types are supported.";
    MessageNotFound 404 "The specified message does not exist.";
    MessageTooLarge 400 "The message exceeds the maximum allowed size.";
    MetadataTooLarge 400 "The size of the specified metadata exceeds the maximum size permitted.";
    MissingContentLengthHeader 411 "Content-Length HTTP header is missing.";
    MissingRequiredHeader 400 "An HTTP header that's mandatory for this request is not specified.";
    MissingRequiredQueryParameter 400 "A query parameter that's mandatory for this request is not specified.";
    MissingRequiredXmlNode 400 "A required XML node is not specified in the request body.";
    MultipleConditionHeadersNotSupported 400 "Multiple condition headers are not supported.";
    NoAuthenticationInformation 401 "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    NoPendingCopyOperation 409 "There is currently no pending copy operation.";
    NotImplemented 501 "The requested operation is not implemented on the specified resource.";
    OperationNotAllowedOnIncrementalCopyBlob 409 "The specified operation is not allowed on an incremental copy blob.";
    OperationNotAllowedOnRootBlob 403 "The specified operation is not allowed on root blob.";
    OperationTimedOut 500 "The operation could not be completed within the permitted time.";
    OutOfRangeInput 400 "One of the request inputs is out of range.";
    OutOfRangeQueryParameterValue 400 "One of the query parameters specified in the request URI is outside the permissible range.";
    PendingCopyOperation 409 "There is currently a pending copy operation.";
    PermanentDeleteNotEnabled 409 "Permanent delete is not enabled for the storage account.";
    PopReceiptMismatch 400 "The specified pop receipt did not match the pop receipt for a dequeued message.";
    PreviousSnapshotCannotBeNewer 400 "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.";
    PreviousSnapshotNotFound 409 "The previous snapshot is not found.";
    PropertiesNeedValue 400 "The values are not specified for all properties in the entity.";
    PropertyNameInvalid 400 "The property name is invalid.";
    PropertyNameTooLong 400 "The property name exceeds the maximum allowed length.";
    PropertyValueTooLarge 400 "The property value exceeds the maximum allowed size (64KB).";
    PublicAccessNotPermitted 409 "Public access is not permitted on this storage account.";
    QueueAlreadyExists 409 "The specified queue already exists.";
    QueueNotFound 404 "The specified queue does not exist.";
    RequestBodyTooLarge 413 "The request body is too large and exceeds the maximum permissible limit.";
    RequestForbiddenByContainerEncryptionPolicy 403 "The request is forbidden by the container encryption policy.";
    ResourceNotFound 404 "The specified resource does not exist.";
    SequenceNumberConditionNotMet 412 "The sequence number condition specified was not met.";
    SequenceNumberIncrementTooLarge 409 "The sequence number increment cannot be performed because it would result in overflow of the sequence number.";
    ServerBusy 503 "The server is currently unable to receive requests. Please retry your request.";
    SnapshotsPresent 409 "This operation is not permitted because the blob has snapshots.";
    SourceConditionNotMet 412 "The source condition specified using HTTP conditional header(s) is not met.";
    SystemInUse 409 "This blob is in use by the system.";
    TableAlreadyExists 409 "The table specified already exists.";
    TableNotFound 404 "The table specified does not exist.";
    TargetConditionNotMet 412 "The target condition specified using HTTP conditional header(s) is not met.";
    TooManyProperties 400 "The entity contains more properties than allowed.";
    UnauthorizedBlobOverwrite 403 "This request is not authorized to perform blob overwrites.";
    UnsatisfiableCondition 400 "The request includes an unsatisfiable condition for this operation.";
    UnsupportedHeader 400 "One of the HTTP headers specified in the request is not supported.";
    UnsupportedHttpVerb 405 "The resource doesn't support specified Http Verb.";
    UpdateConditionNotSatisfied 412 "The update condition specified in the request was not satisfied.";
    WebContentNotFound 404 "The requested content does not exist.";
    XMethodIncorrectCount 400 "More than one X-HTTP-Method is specified.";
    XMethodIncorrectValue 400 "The specified X-HTTP-Method is invalid.";
    XMethodNotUsingPost 400 "The request uses X-HTTP-Method with an HTTP verb other than POST.";
}

impl From<Refusal> for Code {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ContainerNotFound => Self::ContainerNotFound,
            Refusal::ContainerExists => Self::ContainerAlreadyExists,
            Refusal::BlobNotFound => Self::BlobNotFound,
            Refusal::BlobExists => Self::BlobAlreadyExists,
            Refusal::BlobKept => Self::UnauthorizedBlobOverwrite,
            Refusal::PartReadOnly => Self::InvalidQueryParameterValue,
            Refusal::SnapshotsPresent => Self::SnapshotsPresent,
            Refusal::VersionIsCurrent => Self::OperationNotAllowedOnRootBlob,
            Refusal::NotDeletedBefore => Self::BlobSnapshotNotSoftDeleted,
            Refusal::PermanentDeletionOff => Self::PermanentDeleteNotEnabled,
            Refusal::BlobKindMismatch => Self::InvalidBlobType,
            Refusal::NotModified { .. } | Refusal::ConditionFailed => Self::ConditionNotMet,
            Refusal::ConditionUnsatisfiable => Self::UnsatisfiableCondition,
            Refusal::LeaseIdMissing => Self::LeaseIdMissing,
            Refusal::LeaseMismatchOnBlob => Self::LeaseIdMismatchWithBlobOperation,
            Refusal::LeaseAbsentOnBlob => Self::LeaseNotPresentWithBlobOperation,
            Refusal::LeaseMismatchOnContainer => Self::LeaseIdMismatchWithContainerOperation,
            Refusal::LeaseAbsentOnContainer => Self::LeaseNotPresentWithContainerOperation,
            Refusal::LeaseLost => Self::LeaseLost,
            Refusal::LeasePresent => Self::LeaseAlreadyPresent,
            Refusal::LeaseMismatch => Self::LeaseIdMismatchWithLeaseOperation,
            Refusal::LeaseAbsent => Self::LeaseNotPresentWithLeaseOperation,
            Refusal::LeaseBreakingNoAcquire => Self::LeaseIsBreakingAndCannotBeAcquired,
            Refusal::LeaseBreakingNoChange => Self::LeaseIsBreakingAndCannotBeChanged,
            Refusal::LeaseBrokenNoRenew => Self::LeaseIsBrokenAndCannotBeRenewed,
            Refusal::BlockUnknown => Self::InvalidBlockList,
            Refusal::BlockIdLengthDiffers => Self::InvalidBlobOrBlock,
            Refusal::BlobArchived => Self::BlobArchived,
            Refusal::Rehydrating => Self::BlobBeingRehydrated,
            Refusal::TierNotForKind => Self::AccessTierNotSupportedForBlobType,
            Refusal::TierTooSmall => Self::BlobTierInadequateForContentLength,
            Refusal::TierLower => Self::CannotChangeToLowerTier,
            Refusal::BlobImmutable => Self::BlobImmutableDueToPolicy,
            Refusal::BlobHeld => Self::BlobImmutableDueToLegalHold,
            Refusal::ContainerProtected => Self::ContainerImmutableStorageWithVersioningEnabled,
            Refusal::PolicyLocked => Self::ImmutabilityPolicyDeleteOnLockedPolicy,
            Refusal::PolicyOver | Refusal::ExpiryOver => Self::InvalidHeaderValue,
            Refusal::ProtectionOff => Self::InvalidOperation,
            Refusal::ScopeFixed => Self::RequestForbiddenByContainerEncryptionPolicy,
            Refusal::KeyNeeded => Self::BlobUsesCustomerSpecifiedEncryption,
            Refusal::KeyNotUsed => Self::BlobDoesNotUseCustomerSpecifiedEncryption,
            Refusal::BlocksTooMany | Refusal::AppendsTooMany => Self::BlockCountExceedsLimit,
            Refusal::AppendPositionDiffers => Self::AppendPositionConditionNotMet,
            Refusal::LengthOverMax => Self::MaxBlobSizeConditionNotMet,
            Refusal::BlobSealed => Self::BlobIsSealed,
            Refusal::PagesOutside => Self::InvalidPageRange,
            Refusal::SequenceConditionFailed => Self::SequenceNumberConditionNotMet,
            Refusal::SequenceTooLarge => Self::SequenceNumberIncrementTooLarge,
            Refusal::PreviousNotFound => Self::PreviousSnapshotNotFound,
            Refusal::PreviousReplaced => Self::BlobOverwritten,
            Refusal::PageListTooLong => Self::OutOfRangeInput,
            Refusal::RangeOutside { .. } => Self::InvalidRange,
            Refusal::QueueNotFound => Self::QueueNotFound,
            Refusal::QueueExists => Self::QueueAlreadyExists,
            Refusal::MessageNotFound => Self::MessageNotFound,
            Refusal::ReceiptMismatch => Self::PopReceiptMismatch,
            Refusal::TableNotFound => Self::TableNotFound,
            Refusal::TableExists => Self::TableAlreadyExists,
            Refusal::EntityNotFound => Self::ResourceNotFound,
            Refusal::EntityExists => Self::EntityAlreadyExists,
            Refusal::EntityChanged => Self::UpdateConditionNotSatisfied,
            Refusal::EntityTooLarge => Self::EntityTooLarge,
            Refusal::PropertiesTooMany => Self::TooManyProperties,
            Refusal::GroupTooLarge => Self::RequestBodyTooLarge,
            Refusal::VisibleAfterExpiry => Self::OutOfRangeQueryParameterValue,
            Refusal::SourceContainerNotFound | Refusal::SourceBlobNotFound | Refusal::SourceTooLarge => {
                Self::CannotVerifyCopySource
            }
            Refusal::SourceConditionFailed => Self::SourceConditionNotMet,
            Refusal::SourceKindMismatch => Self::InvalidSourceBlobType,
            Refusal::SourceNotSnapshot => Self::IncrementalCopySourceMustBeSnapshot,
            Refusal::SourceDiffers => Self::IncrementalCopyBlobMismatch,
            Refusal::SourceEarlier => Self::IncrementalCopyOfEarlierVersionSnapshotNotAllowed,
            Refusal::IncrementalTarget => Self::OperationNotAllowedOnIncrementalCopyBlob,
            Refusal::CopyPending => Self::PendingCopyOperation,
            Refusal::NoCopyPending => Self::NoPendingCopyOperation,
            Refusal::CopyIdMismatch => Self::CopyIdMismatch,
            Refusal::LeaseNotInfinite => Self::InfiniteLeaseDurationRequired,
        }
    }
}
