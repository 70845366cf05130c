//! Blocks and block lists. <https://learn.microsoft.com/rest/api/storageservices/put-block>

use crc_fast::{CrcAlgorithm, checksum};
use lazuli_engine::blob::OnBlob;
use lazuli_engine::blob::blocks;

use super::aside;
use super::object::{stored, to_write, written};
use crate::answer::Answer;
use crate::call::Call;
use crate::error::Problem;
use crate::operation::{Body, Operation, Permission};
use crate::route::Marker::NoHeader;
use crate::route::{Route, Verb};
use crate::version::Version;
use crate::wire::{block_list, condition, digest, encryption, etag, lease, part, properties};

const PUT: &[Verb] = &[Verb::Put];
const MIB: u64 = 1024 * 1024;
/// Largest body of Put Block List: 50 000 entries of the longest ids, indented.
const LIST_BYTES_MAX: u64 = 8 * MIB;

/// The routes.
pub(super) const ROUTES: &[Route] = &[
    Route::blob(PUT, "block", &[NoHeader("x-ms-copy-source")], &PUT_BLOCK),
    Route::blob(PUT, "blocklist", &[], &PUT_BLOCK_LIST),
    Route::blob(&[Verb::Get], "blocklist", &[], &GET_BLOCK_LIST),
];

/// The blob that an operation is about, without its conditions.
pub(super) fn addressed(call: &Call) -> Result<OnBlob, Problem> {
    Ok(OnBlob {
        part: part::read(&call.fields)?,
        lease: lease::held(&call.fields)?,
        key: encryption::key(&call.fields)?,
        ..call.on()?
    })
}

/// The digest of the request's body: the MD5 that the client sent and that was found right, else the CRC-64.
pub(super) fn received(answer: Answer, call: &Call, crc64: u64) -> Result<Answer, Problem> {
    Ok(match call.fields.header_opt("content-md5")? {
        Some(md5) => answer.header("content-md5", md5),
        None => answer.header("x-ms-content-crc64", digest::crc64_text(crc64)),
    })
}

/// Put Block: <https://learn.microsoft.com/rest/api/storageservices/put-block>
static PUT_BLOCK: Operation = Operation {
    name: "BlockBlob_StageBlock",
    needs: Permission::Create,
    body: Body::Stream { bytes_max: block_bytes_max },
    run: |call| Box::pin(put_block(call)),
};

/// Largest block.
pub(super) fn block_bytes_max(version: Version) -> u64 {
    match version {
        version if version < Version::V2016_05_31 => 4 * MIB,
        version if version < Version::V2019_12_12 => 100 * MIB,
        _ => 4000 * MIB,
    }
}

async fn put_block(mut call: Call) -> Result<Answer, Problem> {
    part::base(&call.fields)?;
    let on = OnBlob { conditions: condition::none(&call.fields)?, ..addressed(&call)? };
    let id = block_list::parse_id(call.fields.query("blockid")?)?;
    blocks::check_block(&call.engine, &on, &id)?;
    let content = call.stage_body(false).await?;
    if content.length() == 0 {
        return Err(Problem::header("Content-Length", "0"));
    }
    let crc64 = content.crc64();
    blocks::put_block(&call.engine, on, id, content).await?;
    received(Answer::created().header("x-ms-request-server-encrypted", "true"), &call, crc64)
}

/// Put Block List: <https://learn.microsoft.com/rest/api/storageservices/put-block-list>
static PUT_BLOCK_LIST: Operation = Operation {
    name: "BlockBlob_CommitBlockList",
    needs: Permission::Create,
    body: Body::Document { bytes_max: LIST_BYTES_MAX },
    run: |call| Box::pin(put_block_list(call)),
};

async fn put_block_list(mut call: Call) -> Result<Answer, Problem> {
    let on = to_write(&call)?;
    let stored = stored(&call, properties::of_blob(&call.fields)?)?;
    let body = call.document().await?;
    // Tens of thousands of entries take milliseconds to read.
    let (list, crc64) = aside(move || (block_list::parse(&body), checksum(CrcAlgorithm::Crc64Nvme, &body))).await?;
    let list = list?;
    let put = blocks::put_block_list(&call.engine, on, list, stored).await?;
    received(written(Answer::created(), put), &call, crc64)
}

/// Get Block List: <https://learn.microsoft.com/rest/api/storageservices/get-block-list>
static GET_BLOCK_LIST: Operation = Operation {
    name: "BlockBlob_GetBlockList",
    needs: Permission::Read,
    body: Body::None,
    run: |call| Box::pin(get_block_list(call)),
};

async fn get_block_list(call: Call) -> Result<Answer, Problem> {
    let on = OnBlob { conditions: condition::tags_only(&call.fields)?, ..addressed(&call)? };
    let wanted = block_list::Wanted::parse(call.fields.query_opt("blocklisttype"))?;
    let lists = blocks::get_block_list(&call.engine, on, wanted.committed, wanted.uncommitted).await?;
    let blob = lists.blob;
    let length = blob.map_or(0, |blob| blob.length);
    let xml = aside(move || block_list::document(&lists, wanted)).await?;
    let answer = Answer::ok().xml(xml).header("x-ms-blob-content-length", length.to_string());
    Ok(match blob {
        Some(blob) => etag::onto(answer, blob.written.etag),
        None => answer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_may_grow_with_the_version() {
        let cases = [
            (Version::V2015_02_21, 4 * MIB),
            (Version::V2016_05_31, 100 * MIB),
            (Version::V2019_02_02, 100 * MIB),
            (Version::V2019_12_12, 4000 * MIB),
            (Version::NEWEST, 4000 * MIB),
        ];
        for (version, limit) in cases {
            assert_eq!(block_bytes_max(version), limit, "{version}");
        }
    }
}
