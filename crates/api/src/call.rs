//! An authorized request, as an operation gets it.

use std::sync::Arc;

use lazuli_engine::Engine;
use lazuli_engine::blob::{OnBlob, Requested};
use lazuli_engine::payload::Staged;
use uuid::Uuid;

use crate::auth::{Arrival, Grant};
use crate::body::Incoming;
use crate::error::Problem;
use crate::fields::Fields;
use crate::integrity::Integrity;
use crate::operation::Operation;
use crate::serve::App;
use crate::target::{Service, Target};
use crate::version::Version;
use crate::wire::encryption;

/// How a client names its request.
const CLIENT_ID: &str = "x-ms-client-request-id";
/// Longest such name, in characters.
const CLIENT_ID_CHARS_MAX: usize = 1024;

/// An authorized request. Only the way of a request makes one, out of a [`Grant`].
pub struct Call {
    /// The storage.
    pub engine: Engine,
    /// Which service is asked.
    pub service: Service,
    /// What is addressed.
    pub target: Target,
    /// Headers and query parameters.
    pub fields: Fields,
    /// The version of the protocol that is spoken.
    pub version: Version,
    /// Who asks.
    pub grant: Grant,
    /// The number of the request.
    pub request_id: Uuid,
    /// What is asked for.
    pub operation: &'static Operation,
    /// How it came: for authorizing what it refers to.
    pub(crate) arrival: Arrival,
    /// What requests within this one go their way with.
    pub(crate) app: Arc<App>,
    /// Its body, not read yet.
    pub(crate) body: Incoming,
}

impl Call {
    /// The blob that is addressed, and which request is about it.
    ///
    /// Refuses as [`Target::blob`].
    pub fn on(&self) -> Result<OnBlob, Problem> {
        let client = self.fields.headers().get(CLIENT_ID).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let client = client.chars().take(CLIENT_ID_CHARS_MAX).collect();
        let request = Some(Requested { id: self.request_id, client });
        Ok(OnBlob { request, ..OnBlob::at(self.target.blob()?) })
    }

    /// Stores the body, byte by byte as it comes, and checks it against the digests that the client sent; of a
    /// structured body, the content. Dropped unused, what was stored is given back. `md5`: whether the MD5 is wanted
    /// though the client sent none. Under the customer's key, if the request brings one.
    ///
    /// Refuses `InvalidMd5`, `InvalidCrc64`, `BothCrc64AndMd5HeaderPresent` before the body is read; `Md5Mismatch`,
    /// `Crc64Mismatch`, `RequestBodyTooLarge`, `InvalidInput` for a body shorter than announced or a malformed
    /// structured one, `OperationTimedOut`.
    pub async fn stage_body(&mut self, md5: bool) -> Result<Staged, Problem> {
        let integrity = Integrity::given(&self.fields)?;
        let stage = self.engine.payloads().stage(md5 || integrity.wants_md5(), self.body.announced());
        let mut stage = stage.seal(encryption::key(&self.fields)?);
        while let Some(chunk) = self.body.next().await? {
            stage.write(chunk).await?;
        }
        let staged = stage.finish().await?;
        integrity.verify(staged.md5(), staged.crc64())?;
        Ok(staged)
    }

    /// The body as a whole, checked against the digests that the client sent.
    ///
    /// Refuses as [`Self::stage_body`].
    pub async fn document(&mut self) -> Result<Vec<u8>, Problem> {
        let integrity = Integrity::given(&self.fields)?;
        let mut document = Vec::new();
        while let Some(chunk) = self.body.next().await? {
            document.extend_from_slice(&chunk);
        }
        integrity.verify_whole(&document)?;
        Ok(document)
    }
}
