//! Block blobs as whole objects. <https://learn.microsoft.com/rest/api/storageservices/operations-on-blobs>

mod download;

use lazuli_engine::blob::kind::BlobKind;
use lazuli_engine::blob::object::{self, BlobView};
use lazuli_engine::blob::{OnBlob, Part, Stored, Written};
use lazuli_engine::condition::Conditions;
use lazuli_engine::properties::HttpProperties;

use super::expiring;
use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::{HeaderIs, NoHeader};
use crate::route::{Route, Verb};
use crate::version::Version;
use crate::wire::{
    condition, copy, date, digest, encryption, etag, kind, lease, metadata, page, part, properties, protection, tags,
    tier,
};

const GET_HEAD: &[Verb] = &[Verb::Get, Verb::Head];
const PUT: &[Verb] = &[Verb::Put];
const LEASE_ACTION: &str = "x-ms-lease-action";
const MIB: u64 = 1024 * 1024;

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::blob(PUT, "", &[HeaderIs("x-ms-blob-type", "BlockBlob"), NoHeader("x-ms-copy-source")], &PUT_BLOB),
    Route::blob(&[Verb::Get], "", &[], &download::GET_BLOB),
    Route::blob(&[Verb::Head], "", &[], &GET_PROPERTIES),
    Route::blob(GET_HEAD, "metadata", &[], &GET_METADATA),
    Route::blob(PUT, "metadata", &[], &SET_METADATA),
    Route::blob(
        PUT,
        "properties",
        &[NoHeader("x-ms-blob-content-length"), NoHeader("x-ms-sequence-number-action")],
        &SET_PROPERTIES,
    ),
    Route::blob(PUT, "lease", &[HeaderIs(LEASE_ACTION, "acquire")], &ACQUIRE_LEASE),
    Route::blob(PUT, "lease", &[HeaderIs(LEASE_ACTION, "renew")], &RENEW_LEASE),
    Route::blob(PUT, "lease", &[HeaderIs(LEASE_ACTION, "change")], &CHANGE_LEASE),
    Route::blob(PUT, "lease", &[HeaderIs(LEASE_ACTION, "release")], &RELEASE_LEASE),
    Route::blob(PUT, "lease", &[HeaderIs(LEASE_ACTION, "break")], &BREAK_LEASE),
];

/// The blob that a read is about, with its conditions and lease.
pub(super) fn to_read(call: &Call) -> Result<OnBlob, Problem> {
    Ok(OnBlob {
        part: part::read(&call.fields)?,
        conditions: condition::read(&call.fields, call.version)?,
        lease: lease::held(&call.fields)?,
        key: encryption::key(&call.fields)?,
        ..call.on()?
    })
}

/// The blob that a write is about, with its conditions and lease, and whether it may replace what is there.
pub(super) fn to_write(call: &Call) -> Result<OnBlob, Problem> {
    part::base(&call.fields)?;
    to_change(call)
}

/// The blob, snapshot or version that a write is about which does not change content, properties and metadata.
pub(super) fn to_change(call: &Call) -> Result<OnBlob, Problem> {
    Ok(OnBlob {
        part: part::read(&call.fields)?,
        conditions: Conditions { only_new: call.grant.creates_only(), ..condition::write(&call.fields)? },
        lease: lease::held(&call.fields)?,
        key: encryption::key(&call.fields)?,
        ..call.on()?
    })
}

/// What the request says about a new blob, beside its content.
pub(super) fn stored(call: &Call, http: HttpProperties) -> Result<Stored, Problem> {
    let policy = call.engine.policy(&call.target.account);
    let (metadata, tags) = (metadata::read(&call.fields)?, tags::of_header(&call.fields)?);
    let (tier, protection) = (tier::of_new(&call.fields, call.version)?, protection::of_new(&call.fields)?);
    Ok(Stored { http, metadata, tags, scope: encryption::scope(&call.fields, &policy)?, tier, protection })
}

/// The answer to a write, with what every one says.
pub(super) fn written(answer: Answer, written: Written) -> Answer {
    part::version_onto(etag::onto(answer, written.etag), written.version)
        .header("x-ms-request-server-encrypted", "true")
}

/// Put Blob: <https://learn.microsoft.com/rest/api/storageservices/put-blob>
static PUT_BLOB: Operation = Operation {
    name: "BlockBlob_Upload",
    needs: Permission::Create,
    body: Body::Stream { bytes_max: blob_bytes_max },
    run: |call| Box::pin(put_blob(call)),
};

/// Largest body of Put Blob.
fn blob_bytes_max(version: Version) -> u64 {
    match version {
        version if version < Version::V2016_05_31 => 64 * MIB,
        version if version < Version::V2019_12_12 => 256 * MIB,
        _ => 5000 * MIB,
    }
}

async fn put_blob(mut call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    page::no_sequence(&call.fields)?;
    let mut stored = stored(&call, properties::of_content(&call.fields)?)?;
    object::check_put(&call.engine, &on)?;
    let content = call.stage_body(true).await?;
    let (md5, crc64) = (content.md5(), content.crc64());
    if let (Some(stored), Some(computed)) = (stored.http.content_md5, md5) {
        digest::check_md5(stored, computed)?;
    }
    stored.http.content_md5 = md5;
    let put = object::put(&call.engine, on, stored, content).await?;
    Ok(written(Answer::created(), put)
        .header_opt("content-md5", md5.map(digest::md5_text))
        .header("x-ms-content-crc64", digest::crc64_text(crc64)))
}

/// Get Blob Properties: <https://learn.microsoft.com/rest/api/storageservices/get-blob-properties>
static GET_PROPERTIES: Operation = Operation {
    name: "Blob_GetProperties",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get_properties(call)),
};

async fn get_properties(call: Call) -> Result<Answer, Problem> {
    let on = to_read(&call)?;
    let blob = object::get(&call.engine, on).await?;
    Ok(described(Answer::ok(), &blob)
        .header("content-length", blob.length.to_string())
        .header_opt("content-md5", blob.http.content_md5.map(digest::md5_text)))
}

/// The answer with all that a read says about the blob, but for the length and digests of what it carries.
pub(super) fn described(answer: Answer, blob: &BlobView) -> Answer {
    let answer = etag::onto(answer, blob.etag)
        .header("accept-ranges", "bytes")
        .header("x-ms-creation-time", date::rfc1123(blob.created))
        .header("x-ms-server-encrypted", "true")
        .header_opt("x-ms-tag-count", (blob.tags > 0).then(|| blob.tags.to_string()));
    let answer = encryption::onto(tier::onto(kind::onto(answer, blob.kind), blob), &blob.encryption);
    let answer = protection::onto(answer, &blob.protection).header_opt(expiring::TIME, blob.expires.map(date::rfc1123));
    let answer = metadata::onto(properties::onto(answer, &blob.http), &blob.metadata);
    let answer = copy::onto(answer, blob.copy.as_ref());
    let answer = part::version_onto(answer, blob.version);
    if blob.part != Part::Base {
        return answer;
    }
    // Only the blob itself is leased, and is a current version if it is one.
    lease::onto(answer, &blob.lease).header_opt("x-ms-is-current-version", blob.version.map(|_| "true"))
}

/// Get Blob Metadata: <https://learn.microsoft.com/rest/api/storageservices/get-blob-metadata>
static GET_METADATA: Operation = Operation {
    name: "Blob_GetMetadata",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get_metadata(call)),
};

async fn get_metadata(call: Call) -> Result<Answer, Problem> {
    let on = to_read(&call)?;
    let blob = object::get_metadata(&call.engine, on).await?;
    Ok(metadata::onto(etag::onto(Answer::ok(), blob.etag), &blob.metadata))
}

/// Set Blob Metadata: <https://learn.microsoft.com/rest/api/storageservices/set-blob-metadata>
static SET_METADATA: Operation = Operation {
    name: "Blob_SetMetadata",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(set_metadata(call)),
};

async fn set_metadata(call: Call) -> Result<Answer, Problem> {
    let (on, metadata) = (to_write(&call)?, metadata::read(&call.fields)?);
    let set = object::set_metadata(&call.engine, on, metadata).await?;
    Ok(written(Answer::ok(), set))
}

/// Set Blob Properties: <https://learn.microsoft.com/rest/api/storageservices/set-blob-properties>
static SET_PROPERTIES: Operation = Operation {
    name: "Blob_SetHTTPHeaders",
    needs: Permission::Write,
    body: Body::None,
    run: |call| Box::pin(set_properties(call)),
};

async fn set_properties(call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    page::no_sequence(&call.fields)?;
    // Who sets nothing, and does not resize either, clears all.
    let http = properties::to_set(&call.fields)?.unwrap_or_else(properties::cleared);
    let set = object::set_http(&call.engine, on, Some(http)).await?;
    let sequence = match set.kind {
        BlobKind::Page { sequence } => Some(sequence.to_string()),
        BlobKind::Block | BlobKind::Append { .. } => None,
    };
    Ok(etag::onto(Answer::ok(), set.written.etag).header_opt("x-ms-blob-sequence-number", sequence))
}

static ACQUIRE_LEASE: Operation = lease_operation("Blob_AcquireLease", Permission::Write);
static RENEW_LEASE: Operation = lease_operation("Blob_RenewLease", Permission::Write);
static CHANGE_LEASE: Operation = lease_operation("Blob_ChangeLease", Permission::Write);
static RELEASE_LEASE: Operation = lease_operation("Blob_ReleaseLease", Permission::Write);
static BREAK_LEASE: Operation = lease_operation("Blob_BreakLease", Permission::BreakLease);

/// Lease Blob: <https://learn.microsoft.com/rest/api/storageservices/lease-blob>
const fn lease_operation(name: &'static str, needs: Permission) -> Operation {
    Operation { name, needs, body: Body::None, run: |call| Box::pin(lease_blob(call)) }
}

async fn lease_blob(call: Call) -> Result<Answer, Problem> {
    part::base(&call.fields)?;
    // Which lease is meant, the action says: a break means whichever there is, whatever id it comes with.
    let (conditions, action) = (condition::write(&call.fields)?, lease::action(&call.fields)?);
    let on = OnBlob { conditions, ..call.on()? };
    let leased = object::lease(&call.engine, on, action).await?;
    Ok(etag::onto(lease::answer(action, &leased), leased.etag))
}

#[cfg(test)]
mod tests {
    use lazuli_engine::blob::LeaseView;
    use lazuli_engine::clock::Timestamp;
    use lazuli_engine::etag::Etag;
    use lazuli_engine::lease::{LeaseDuration, LeaseState};
    use lazuli_engine::names::BlobName;
    use lazuli_engine::properties::{HttpProperties, Metadata};

    use super::*;

    #[test]
    fn a_read_describes_the_blob() {
        let august = Timestamp::from_unix_seconds(1_785_542_400);
        let blob = BlobView {
            length: 11,
            http: HttpProperties { cache_control: Some("no-cache".into()), ..HttpProperties::default() },
            metadata: Metadata(vec![("Owner".into(), "Ann".into())]),
            lease: LeaseView { state: LeaseState::Leased, duration: Some(LeaseDuration::Seconds(15)) },
            ..BlobView::new(BlobName::parse("a").unwrap(), Etag::at(august))
        };
        let answer = described(Answer::ok(), &blob);
        let expected = [
            ("accept-ranges", "bytes"),
            ("cache-control", "no-cache"),
            ("content-type", "application/octet-stream"),
            ("etag", "\"0x8DEEF5FD48B0000\""),
            ("last-modified", "Sat, 01 Aug 2026 00:00:00 GMT"),
            ("x-ms-access-tier", "Hot"),
            ("x-ms-access-tier-inferred", "true"),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-creation-time", "Sat, 01 Aug 2026 00:00:00 GMT"),
            ("x-ms-lease-duration", "fixed"),
            ("x-ms-lease-state", "leased"),
            ("x-ms-lease-status", "locked"),
            ("x-ms-meta-owner", "Ann"),
            ("x-ms-server-encrypted", "true"),
        ];
        let mut given: Vec<_> =
            answer.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        given.sort_unstable();
        assert_eq!(given, expected);
        assert_eq!(answer.case.0, ["x-ms-meta-Owner"]);
    }

    #[test]
    fn a_body_may_grow_with_the_version() {
        let cases = [
            (Version::V2015_02_21, 64 * MIB),
            (Version::V2016_05_31, 256 * MIB),
            (Version::V2019_02_02, 256 * MIB),
            (Version::V2019_12_12, 5000 * MIB),
            (Version::NEWEST, 5000 * MIB),
        ];
        for (version, limit) in cases {
            assert_eq!(blob_bytes_max(version), limit, "{version}");
        }
    }
}
