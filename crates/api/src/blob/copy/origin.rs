//! The source of a copy: a blob of this server or of another one.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use http::{HeaderMap, HeaderName, StatusCode, Uri};
use lazuli_engine::blob::content::Reader;
use lazuli_engine::blob::kind::BlobKind;
use lazuli_engine::blob::pages::{PAGE_BLOB_BYTES_MAX, PAGE_BYTES};
use lazuli_engine::blob::{self, OnBlob};
use lazuli_engine::blob::{copy, pending};
use lazuli_engine::condition::{Conditions, EtagSet};
use lazuli_engine::payload::Staged;
use lazuli_engine::properties::{HttpProperties, Metadata};
use lazuli_engine::range::RangeRequest;
use lazuli_engine::tags::Tags;
use lazuli_engine::{Error, Refusal};
use md5::{Digest as _, Md5};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::auth::{Grant, Source, authorize_url};
use crate::call::Call;
use crate::code::Code;
use crate::error::Problem;
use crate::fields::Fields;
use crate::integrity::Integrity;
use crate::remote::{self, Ask, Reading, explained};
use crate::target::Level;
use crate::wire::{self, condition, encryption, kind, lease, metadata, part, properties, range};

/// Names the source.
pub(super) const SOURCE: &str = "x-ms-copy-source";
pub(super) const RANGE: &str = "x-ms-source-range";
const AUTHORIZATION: &str = "x-ms-copy-source-authorization";
const SOURCE_KEY: &str = "x-ms-source-encryption-key";
/// Longest address that is kept with a copy; it lies in the blob's row.
const KEPT_BYTES_MAX: usize = 3 * 1024;
/// Longest address.
const ADDRESS_BYTES_MAX: usize = 8 * 1024;
/// What a URL may not hold as it is, though some clients send it.
const UNSAFE: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');
/// Where a copy comes from, and that its caller may read it.
#[derive(Debug)]
pub(super) struct Origin {
    /// The address without its signature.
    pub(super) url: String,
    pub(super) place: Place,
    /// Whether its caller may read its tags too; another server judges that itself.
    pub(super) reads_tags: bool,
}

/// Which server has it.
#[derive(Debug)]
pub(super) enum Place {
    /// This one.
    Own(OnBlob),
    /// Another one.
    Remote(Ask),
}

/// The source that the call names, with its conditions.
///
/// Refuses `InvalidHeaderValue` for what is no URL, `InvalidSourceBlobUrl` for what is no blob, `CannotVerifyCopySource`
/// for what the caller may not read, and the refusals of conditions.
pub(super) async fn origin(call: &Call) -> Result<Origin, Problem> {
    let fields = &call.fields;
    let text = address(fields)?;
    let url = without_signature(&text);
    if url.len() > KEPT_BYTES_MAX {
        return Err(Problem::header(SOURCE, &url).saying(format!("The header {SOURCE} is longer than 3 KiB.")));
    }
    if text.len() > ADDRESS_BYTES_MAX {
        return Err(Problem::header(SOURCE, &url).saying(format!("The header {SOURCE} is longer than 8 KiB.")));
    }
    let conditions = condition::source(fields)?;
    encryption::source_key(fields)?;
    let (place, reads_tags) = match Source::parse(call, SOURCE, &text)? {
        Some(source) => {
            let (on, grant) = own(call, &source, conditions).await?;
            (Place::Own(on), grant.reads_tags())
        }
        None => (
            Place::Remote(Ask {
                uri: text.parse::<Uri>().map_err(|_| Problem::header(SOURCE, &url))?,
                authorization: fields.headers().get(AUTHORIZATION).cloned(),
                conditions: headers_of(fields),
                key: encryption::source_headers(fields),
            }),
            true,
        ),
    };
    Ok(Origin { url, place, reads_tags })
}

/// The value of x-ms-copy-source; what a URL has to escape and some clients do not is escaped.
fn address(fields: &Fields) -> Result<String, Problem> {
    let value = fields.headers().get(SOURCE).ok_or_else(|| Problem::missing_header(SOURCE))?;
    let text = std::str::from_utf8(value.as_bytes());
    let text = text.map_err(|_| Problem::header(SOURCE, &String::from_utf8_lossy(value.as_bytes())))?;
    Ok(utf8_percent_encode(text.trim(), UNSAFE).to_string())
}

/// The address as it is kept and shown: of the query only what names the blob. The rest may be a secret.
fn without_signature(text: &str) -> String {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let names = ["snapshot", "versionid", "sharesnapshot"];
    let named = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    let kept: Vec<_> = query.split('&').filter(named).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

async fn own(call: &Call, source: &Source, conditions: Conditions) -> Result<(OnBlob, Grant), Problem> {
    if source.target.level() != Level::Blob {
        return Err(Problem::new(Code::InvalidSourceBlobUrl));
    }
    let grant = authorize_url(call, source).await.map_err(|problem| unverified(&problem))?;
    // A condition tells what the tags are.
    if conditions.if_tags.is_some() && !grant.reads_tags() {
        return Err(unverified(&Problem::new(Code::AuthorizationPermissionMismatch)));
    }
    let on = OnBlob {
        part: part::read(&source.fields)?,
        conditions,
        lease: lease::of_source(&call.fields)?,
        key: encryption::source_key(&call.fields)?,
        ..OnBlob::at(source.target.blob()?)
    };
    Ok((on, grant))
}

/// The conditions on the source as its own server reads them.
fn headers_of(fields: &Fields) -> HeaderMap {
    let pairs: [(&str, HeaderName); 5] = [
        ("x-ms-source-if-match", IF_MATCH),
        ("x-ms-source-if-none-match", IF_NONE_MATCH),
        ("x-ms-source-if-modified-since", IF_MODIFIED_SINCE),
        ("x-ms-source-if-unmodified-since", IF_UNMODIFIED_SINCE),
        ("x-ms-source-if-tags", HeaderName::from_static("x-ms-if-tags")),
    ];
    let given = pairs.into_iter().filter_map(|(name, own)| Some((own, fields.headers().get(name)?.clone())));
    given.collect()
}

/// What is said of a source on this server that cannot be read.
pub(super) fn unverified(problem: &Problem) -> Problem {
    let message = problem.message.as_deref().unwrap_or(problem.code.message());
    explained(problem.status(), problem.status(), problem.code.name(), message)
}

/// What is said of a copy that the engine refuses.
pub(super) fn refused(error: Error) -> Problem {
    match error {
        Error::Refused(Refusal::SourceBlobNotFound) => unverified(&Problem::new(Code::BlobNotFound)),
        Error::Refused(Refusal::SourceContainerNotFound) => unverified(&Problem::new(Code::ContainerNotFound)),
        Error::Refused(Refusal::SourceTooLarge) => explained(
            StatusCode::CONFLICT,
            StatusCode::CONFLICT,
            "",
            "The source is larger than the operation copies: 256 MiB.",
        ),
        Error::Refused(Refusal::ConditionFailed) => Problem::new(Code::TargetConditionNotMet),
        other => other.into(),
    }
}

/// The tags of the source.
///
/// Refuses as [`open`].
pub(super) async fn tags(call: &Call, place: &Place) -> Result<Tags, Problem> {
    match place {
        Place::Own(on) => {
            let source = OnBlob { part: on.part, ..OnBlob::at(on.address.clone()) };
            Ok(blob::tags::get(&call.engine, source).await.map_err(refused)?)
        }
        Place::Remote(ask) => wire::tags::parse(&call.app.remote.tags(ask.clone()).await?),
    }
}

/// The part of the source that the call asks for; none for the whole.
///
/// Refuses `InvalidHeaderValue`.
pub(super) fn source_range(fields: &Fields) -> Result<Option<RangeRequest>, Problem> {
    let Some(text) = fields.header_opt(RANGE)? else { return Ok(None) };
    match range::parse(None, Some(text)) {
        Ok(Some(range)) => Ok(Some(range)),
        _ => Err(Problem::header(RANGE, text)),
    }
}

/// A source being read.
pub(super) struct Opened {
    /// The version being read: only of a source on this server.
    pub(super) own_version: Option<Conditions>,
    pub(super) http: HttpProperties,
    pub(super) metadata: Metadata,
    bytes: Stream,
}

enum Stream {
    Own(Box<Reader>),
    Remote(Box<Reading>),
}

/// Begins to read the source, or a part of it, of at most `bytes_max` bytes.
///
/// Refuses `CannotVerifyCopySource`, `SourceConditionNotMet`, `InvalidRange` and `RequestBodyTooLarge`.
pub(super) async fn open(
    call: &Call,
    place: &Place,
    range: Option<RangeRequest>,
    bytes_max: u64,
) -> Result<Opened, Problem> {
    let opened = match place {
        Place::Own(on) => {
            let download = copy::read(&call.engine, on.clone(), range).await.map_err(refused)?;
            let version = EtagSet::OneOf(vec![download.blob.etag.to_string()]);
            Opened {
                own_version: Some(Conditions { if_match: Some(version), ..Conditions::default() }),
                http: download.blob.http,
                metadata: download.blob.metadata,
                bytes: Stream::Own(Box::new(download.reader)),
            }
        }
        Place::Remote(ask) => {
            let reading = call.app.remote.read(ask.clone(), range).await?;
            let (http, metadata) = stored(&reading.described.headers);
            Opened { own_version: None, http, metadata, bytes: Stream::Remote(Box::new(reading)) }
        }
    };
    if opened.remaining() > bytes_max {
        return Err(Problem::new(Code::RequestBodyTooLarge).detail("MaxLimit", bytes_max.to_string()));
    }
    Ok(opened)
}

impl Opened {
    /// Bytes still to come.
    pub(super) fn remaining(&self) -> u64 {
        match &self.bytes {
            Stream::Own(reader) => reader.remaining(),
            Stream::Remote(reading) => reading.remaining(),
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        match &mut self.bytes {
            Stream::Own(reader) => Ok(reader.next().await?),
            Stream::Remote(reading) => reading.next().await,
        }
    }

    /// Stores the bytes, under the key that the call brings, and checks them against the digests that the call says the source has. `md5`: whether the MD5
    /// is wanted though the call gave none.
    ///
    /// Refuses `Md5Mismatch`, `Crc64Mismatch`, and as [`open`].
    pub(super) async fn stage(mut self, call: &Call, checks: &[Integrity], md5: bool) -> Result<Staged, Problem> {
        let expected = Some(self.remaining());
        let md5 = md5 || checks.iter().any(|check| check.wants_md5());
        let mut stage = call.engine.payloads().stage(md5, expected).seal(encryption::key(&call.fields)?);
        while let Some(bytes) = self.next().await? {
            stage.write(bytes).await?;
        }
        let staged = stage.finish().await?;
        for check in checks {
            check.verify(staged.md5(), staged.crc64())?;
        }
        Ok(staged)
    }

    /// Reads the bytes only to check them against the digests that the call says the source has.
    ///
    /// Refuses as [`Self::stage`].
    pub(super) async fn verify(mut self, checks: &[Integrity]) -> Result<(), Problem> {
        let (mut md5, mut crc64) = (Md5::new(), Digest::new(CrcAlgorithm::Crc64Nvme));
        while let Some(bytes) = self.next().await? {
            md5.update(&bytes);
            crc64.update(&bytes);
        }
        let (md5, crc64) = (md5.finalize().into(), crc64.finalize());
        checks.iter().try_for_each(|check| check.verify(Some(md5), crc64))
    }
}

/// The source on another server, as a copy that goes on behind this request begins with it.
///
/// Refuses as [`open`], and `UnsupportedHeader` for credentials and keys: what is read later is read by the address alone.
pub(super) async fn describe(call: &Call, ask: Ask) -> Result<pending::Source, Problem> {
    for (is_given, name) in [(ask.authorization.is_some(), AUTHORIZATION), (!ask.key.is_empty(), SOURCE_KEY)] {
        if is_given {
            return Err(Problem::new(Code::UnsupportedHeader).detail("HeaderName", name));
        }
    }
    let address = ask.uri.to_string();
    let described = call.app.remote.read(ask, None).await?.described;
    let (http, metadata) = stored(&described.headers);
    let version = described.version().unwrap_or_default().to_owned();
    let kind = kind::of_answer(&described.headers);
    let is_pages = kind.is_like(BlobKind::Page { sequence: 0 });
    if is_pages && (described.length % PAGE_BYTES != 0 || described.length > PAGE_BLOB_BYTES_MAX) {
        return Err(remote::unverified(StatusCode::CONFLICT, "The source is not as long as a page blob can be."));
    }
    Ok(pending::Source { address, version, kind, length: described.length, http, metadata })
}

/// What another server says that it stores beside the bytes.
fn stored(headers: &HeaderMap) -> (HttpProperties, Metadata) {
    (properties::of_answer(headers), metadata::of_answer(headers))
}
