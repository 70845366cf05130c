//! Incremental copies of page blobs.

use http::{HeaderMap, Uri};
use lazuli_engine::Refusal;
use lazuli_engine::blob::Part;
use lazuli_engine::blob::copying::CopyStatus;
use lazuli_engine::blob::incremental::{self, Followed, IncrementalCopy};
use uuid::Uuid;

use super::copy_answer;
use super::origin::{Origin, Place, SOURCE, describe, origin, refused};
use crate::answer::Answer;
use crate::blob::object::to_write;
use crate::call::Call;
use crate::error::Problem;
use crate::fields::{self, Fields};
use crate::head::HeaderCase;
use crate::operation::{Body, Operation, Permission};
use crate::wire::{encryption, part};

/// Incremental Copy Blob: <https://learn.microsoft.com/rest/api/storageservices/incremental-copy-blob>
pub(super) static COPY: Operation = Operation {
    name: "PageBlob_CopyIncremental",
    needs: Permission::Create,
    body: Body::None,
    run: |call| Box::pin(copy(call)),
};

async fn copy(call: Call) -> Result<Answer, Problem> {
    encryption::none(&call.fields)?;
    let target = to_write(&call)?;
    let Origin { url, place, .. } = origin(&call).await?;
    let id = Uuid::new_v4();
    match place {
        Place::Own(source) if !matches!(source.part, Part::Snapshot(_)) => {
            Err(refused(Refusal::SourceNotSnapshot.into()))
        }
        Place::Own(source) => {
            let copied = incremental::copy(&call.engine, source, target, IncrementalCopy { id, url }).await;
            Ok(copy_answer(copied.map_err(refused)?, id, CopyStatus::Success))
        }
        Place::Remote(ask) => {
            let followed = followed(&ask.uri)?;
            incremental::check(&call.engine, &target, followed).map_err(refused)?;
            let source = describe(&call, ask).await?;
            let begun = incremental::begin(&call.engine, target, IncrementalCopy { id, url }, followed, source).await;
            let begun = begun.map_err(refused)?;
            Ok(copy_answer(begun.written, id, begun.status))
        }
    }
}

/// The snapshot on another server that an address names. However its blob's address is spelt, it is the same blob.
///
/// Refuses `InvalidHeaderValue`, `InvalidQueryParameterValue`, and what is no snapshot.
fn followed(uri: &Uri) -> Result<Followed, Problem> {
    let query = Fields::parse(HeaderMap::new(), uri.query(), HeaderCase::default())?;
    let Part::Snapshot(of) = part::read(&query)? else { return Err(refused(Refusal::SourceNotSnapshot.into())) };
    let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    let path = fields::decode(uri.path()).map_err(|_| Problem::header(SOURCE, uri.path()))?;
    Ok(Followed::elsewhere(&format!("{scheme}://{host}:{port}{path}"), of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;

    #[test]
    fn a_blob_is_the_same_however_its_address_is_spelt() {
        const AT: &str = "snapshot=2026-08-01T00:00:00.0000000Z";
        let followed = |address: &str| followed(&address.parse().unwrap()).map_err(|problem| problem.code);
        let same = |address: &str| followed(&format!("{address}?{AT}")).unwrap();
        let one = same("http://host/dev/photos/a%20b");
        for address in ["HTTP://Host:80/dev/photos/a%20b", "http://host/dev/photos/%61%20b"] {
            assert_eq!(same(address), one, "{address}");
        }
        assert_eq!(followed(&format!("http://host/dev/photos/a%20b?sig=x&{AT}&sv=y")), Ok(one));
        assert_eq!(same("https://host:443/c/a"), same("https://host/c/a"));
        for address in ["https://host/dev/photos/a%20b", "http://host:81/dev/photos/a%20b", "http://host/dev/photos/A"]
        {
            assert_ne!(same(address), one, "{address}");
        }
        assert_ne!(followed("http://host/dev/photos/a%20b?snapshot=2026-08-01T00:00:00.0000001Z"), Ok(one));
        let cases = [
            ("http://host/c/a", Code::IncrementalCopySourceMustBeSnapshot),
            ("http://host/c/a?versionid=2026-08-01T00:00:00.0000000Z", Code::IncrementalCopySourceMustBeSnapshot),
            ("http://host/c/a?snapshot=yesterday", Code::InvalidQueryParameterValue),
            ("http://host/c/%zz?snapshot=2026-08-01T00:00:00.0000000Z", Code::InvalidHeaderValue),
        ];
        for (address, code) in cases {
            assert_eq!(followed(address), Err(code), "{address}");
        }
    }
}
