//! What List Blobs and List Containers ask for and answer. <https://learn.microsoft.com/rest/api/storageservices/list-blobs>

mod request;

use lazuli_engine::blob::Deletion;
use lazuli_engine::blob::Part;
use lazuli_engine::blob::container::{ContainerPage, ContainerView};
use lazuli_engine::blob::kind::BlobKind;
use lazuli_engine::blob::listing::{BlobPage, Entry};
use lazuli_engine::blob::object::BlobView;
use lazuli_engine::blob::tags::FoundPage;
use lazuli_engine::clock::Timestamp;
use lazuli_engine::encryption::Encryption;
use lazuli_engine::queue::queues::QueuePage;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

pub use request::{
    BlobIncludes, ContainerIncludes, PAGE_MAX, Paging, blob_includes, container_includes, find_versions,
    queue_metadata, service_endpoint,
};

use crate::version::Version;
use crate::wire::xml::Writer;
use crate::wire::{
    acl, copy, date, deletion, digest, encryption, etag, kind, lease, properties, protection, tags, tier,
};

/// What stays as it is in a name that is escaped because XML cannot carry it.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// What a page of blobs is answered with, beside the page.
#[derive(Clone, Copy, Debug)]
pub struct BlobsHead<'a> {
    /// Of [`service_endpoint`].
    pub endpoint: &'a str,
    /// The container's name.
    pub container: &'a str,
    /// What the request asked for.
    pub paging: &'a Paging,
    /// The delimiter, of a listing by hierarchy.
    pub delimiter: Option<&'a str>,
    /// Whether metadata is shown.
    pub metadata: bool,
    /// Whether copies are shown.
    pub copy: bool,
    /// What is shown of protections.
    pub protection: protection::Shown,
    /// From 2021-02-12 on, names that XML cannot carry are escaped.
    pub version: Version,
}

/// The body of List Blobs.
pub fn blobs(head: &BlobsHead<'_>, page: &BlobPage) -> Vec<u8> {
    let mut xml = Writer::begin();
    let attributes = [("ServiceEndpoint", head.endpoint), ("ContainerName", head.container)];
    xml.open_with("EnumerationResults", &attributes);
    filters(&mut xml, head.paging, head.version);
    if let Some(delimiter) = head.delimiter {
        name(&mut xml, "Delimiter", delimiter, head.version);
    }
    let entry = |xml: &mut Writer, entry: &Entry| match entry {
        Entry::Blob(view) => blob(xml, view, head, false, page.now),
        Entry::VersionsOnly(view) => blob(xml, view, head, true, page.now),
        Entry::Uncommitted(blob) => uncommitted(xml, blob.as_str(), head.version),
        Entry::Prefix(prefix) => {
            xml.open("BlobPrefix");
            name(xml, "Name", prefix, head.version);
            xml.close("BlobPrefix");
        }
    };
    list(&mut xml, "Blobs", &page.entries, entry);
    xml.text("NextMarker", &request::marker_text(page.next.as_ref()));
    xml.close("EnumerationResults");
    xml.finish()
}

/// The body of List Containers.
///
/// `immutability`: whether blobs of the account can be protected.
pub fn containers(
    endpoint: &str,
    paging: &Paging,
    metadata: bool,
    immutability: bool,
    version: Version,
    page: &ContainerPage,
) -> Vec<u8> {
    let mut xml = Writer::begin();
    xml.open_with("EnumerationResults", &[("ServiceEndpoint", endpoint)]);
    filters(&mut xml, paging, version);
    list(&mut xml, "Containers", &page.containers, |xml, view| container(xml, view, metadata, immutability, page.now));
    xml.text("NextMarker", &request::marker_text(page.next.as_ref()));
    xml.close("EnumerationResults");
    xml.finish()
}

/// The body of Find Blobs by Tags.
pub fn found(endpoint: &str, text: &str, page: &FoundPage) -> Vec<u8> {
    let mut xml = Writer::begin();
    xml.open_with("EnumerationResults", &[("ServiceEndpoint", endpoint)]);
    xml.text("Where", text);
    list(&mut xml, "Blobs", &page.found, |xml, found| {
        xml.open("Blob");
        name(xml, "Name", found.blob.as_str(), Version::NEWEST);
        xml.text("ContainerName", found.container.as_str());
        if let Some(version) = found.version {
            xml.text("VersionId", &date::iso8601(version));
            xml.text("IsCurrentVersion", if found.current { "true" } else { "false" });
        }
        tags::element(xml, &found.tags);
        xml.close("Blob");
    });
    xml.text("NextMarker", &request::marker_text(page.next.as_ref()));
    xml.close("EnumerationResults");
    xml.finish()
}

/// The body of List Queues.
pub fn queues(endpoint: &str, paging: &Paging, with_metadata: bool, version: Version, page: &QueuePage) -> Vec<u8> {
    let mut xml = Writer::begin();
    xml.open_with("EnumerationResults", &[("ServiceEndpoint", endpoint)]);
    filters(&mut xml, paging, version);
    list(&mut xml, "Queues", &page.queues, |xml, (name, pairs)| {
        xml.open("Queue");
        xml.text("Name", name.as_str());
        if with_metadata {
            metadata(xml, &pairs.0);
        }
        xml.close("Queue");
    });
    xml.text("NextMarker", &request::marker_text(page.next.as_ref()));
    xml.close("EnumerationResults");
    xml.finish()
}

fn filters(xml: &mut Writer, paging: &Paging, version: Version) {
    if !paging.prefix.is_empty() {
        name(xml, "Prefix", &paging.prefix, version);
    }
    xml.text_opt("Marker", paging.marker.as_deref());
    xml.text_opt("MaxResults", paging.asked.map(|asked| asked.to_string()).as_deref());
}

fn list<T>(xml: &mut Writer, element: &str, items: &[T], item: impl Fn(&mut Writer, &T)) {
    if items.is_empty() {
        return xml.empty(element);
    }
    xml.open(element);
    for each in items {
        item(xml, each);
    }
    xml.close(element);
}

/// A blob, snapshot or version; or the newest version, standing for a name that has `versions_only`.
fn blob(xml: &mut Writer, view: &BlobView, head: &BlobsHead<'_>, versions_only: bool, now: Timestamp) {
    xml.open("Blob");
    name(xml, "Name", view.name.as_str(), head.version);
    if versions_only {
        xml.text("HasVersionsOnly", "true");
    } else {
        state_elements(xml, view);
    }
    xml.open("Properties");
    xml.text("Creation-Time", &date::rfc1123(view.created));
    xml.text("Last-Modified", &date::rfc1123(view.etag.committed()));
    xml.text_opt("Expiry-Time", view.expires.map(date::rfc1123).as_deref());
    xml.text("Etag", &view.etag.to_string());
    xml.text("Content-Length", &view.length.to_string());
    let http = &view.http;
    xml.text("Content-Type", http.content_type.as_deref().unwrap_or(properties::DEFAULT_CONTENT_TYPE));
    xml.text("Content-Encoding", http.content_encoding.as_deref().unwrap_or_default());
    xml.text("Content-Language", http.content_language.as_deref().unwrap_or_default());
    xml.empty("Content-CRC64");
    xml.text("Content-MD5", &http.content_md5.map(digest::md5_text).unwrap_or_default());
    xml.text("Cache-Control", http.cache_control.as_deref().unwrap_or_default());
    xml.text("Content-Disposition", http.content_disposition.as_deref().unwrap_or_default());
    kind_elements(xml, view);
    if view.deleted.is_none() && (versions_only || view.part == Part::Base) {
        lease_elements(xml, &view.lease);
    }
    if head.copy {
        copy::elements(xml, view.copy.as_ref());
    }
    xml.text("ServerEncrypted", "true");
    xml.text_opt("CustomerProvidedKeySha256", encryption::key_text(&view.encryption).as_deref());
    if let Encryption::Scope(scope) = &view.encryption {
        xml.text("EncryptionScope", scope);
    }
    copy::incremental_elements(xml, view.copy.as_ref());
    deletion_elements(xml, view.deleted.as_ref(), now);
    xml.text_opt("TagCount", (view.tags > 0).then(|| view.tags.to_string()).as_deref());
    if matches!(view.kind, BlobKind::Append { sealed: true, .. }) {
        xml.text("Sealed", "true");
    }
    protection::elements(xml, &view.protection, head.protection);
    xml.close("Properties");
    if head.metadata {
        blob_metadata(xml, view);
    }
    if !view.tag_set.is_empty() {
        tags::element(xml, view.tag_set.pairs());
    }
    if view.kind == BlobKind::Block {
        xml.empty("OrMetadata");
    }
    xml.close("Blob");
}

/// Metadata under a customer's key is not shown to who does not bring it, and a listing takes no keys.
fn blob_metadata(xml: &mut Writer, view: &BlobView) {
    match view.encryption {
        Encryption::Customer(_) if !view.metadata.0.is_empty() => {
            xml.open_with("Metadata", &[("Encrypted", "true")]);
            xml.close("Metadata");
        }
        _ => metadata(xml, &view.metadata.0),
    }
}

/// Which of its blob's states it is.
fn state_elements(xml: &mut Writer, view: &BlobView) {
    if let Part::Snapshot(at) = view.part {
        xml.text("Snapshot", &date::iso8601(at));
    }
    if let Some(version) = view.version {
        xml.text("VersionId", &date::iso8601(version));
    }
    if view.deleted.is_some() {
        xml.text("Deleted", "true");
    } else if view.version.is_some() && view.part == Part::Base {
        xml.text("IsCurrentVersion", "true");
    }
}

fn kind_elements(xml: &mut Writer, view: &BlobView) {
    if let BlobKind::Page { sequence } = view.kind {
        xml.text("x-ms-blob-sequence-number", &sequence.to_string());
    }
    xml.text("BlobType", kind::name(view.kind));
    tier::elements(xml, view);
}

/// A blob that has no version yet has neither dates nor properties.
fn uncommitted(xml: &mut Writer, blob: &str, version: Version) {
    xml.open("Blob");
    name(xml, "Name", blob, version);
    xml.open("Properties");
    xml.text("Content-Length", "0");
    xml.text("BlobType", "BlockBlob");
    xml.text("LeaseStatus", "unlocked");
    xml.text("LeaseState", "available");
    xml.text("ServerEncrypted", "true");
    xml.close("Properties");
    xml.empty("OrMetadata");
    xml.close("Blob");
}

fn container(xml: &mut Writer, view: &ContainerView, with_metadata: bool, immutability: bool, now: Timestamp) {
    xml.open("Container");
    xml.text("Name", view.name.as_str());
    if let Some(deletion) = &view.deleted {
        xml.text("Deleted", "true");
        xml.text("Version", &deletion::version_text(deletion.at));
    }
    xml.open("Properties");
    xml.text("Last-Modified", &date::rfc1123(view.etag.committed()));
    xml.text("Etag", &etag::quoted(view.etag));
    lease_elements(xml, &view.lease);
    xml.text_opt("PublicAccess", acl::public_access_text(view.access.public));
    xml.text("DefaultEncryptionScope", encryption::scope_text(&view.scope));
    xml.text("DenyEncryptionScopeOverride", if view.scope.fixed { "true" } else { "false" });
    // Of the container as a whole, which only a management plane sets.
    xml.text("HasImmutabilityPolicy", "false");
    xml.text("HasLegalHold", "false");
    xml.text("ImmutableStorageWithVersioningEnabled", if immutability { "true" } else { "false" });
    deletion_elements(xml, view.deleted.as_ref(), now);
    xml.close("Properties");
    if with_metadata {
        metadata(xml, &view.metadata.0);
    }
    xml.close("Container");
}

fn lease_elements(xml: &mut Writer, view: &lazuli_engine::blob::LeaseView) {
    xml.text("LeaseStatus", lease::status_text(view.state));
    xml.text("LeaseState", lease::state_text(view.state));
    xml.text_opt("LeaseDuration", view.duration.map(lease::duration_text));
}

fn deletion_elements(xml: &mut Writer, deletion: Option<&Deletion>, now: Timestamp) {
    if let Some(deletion) = deletion {
        xml.text("DeletedTime", &date::rfc1123(deletion.at));
        xml.text("RemainingRetentionDays", &deletion.days_left(now).to_string());
    }
}

/// The names are identifiers, so each is an element's name.
fn metadata(xml: &mut Writer, pairs: &[(String, String)]) {
    list(xml, "Metadata", pairs, |xml, (name, value)| xml.text(name, value));
}

fn name(xml: &mut Writer, element: &str, text: &str, version: Version) {
    let illegal = |character: char| character < ' ' || matches!(character, '\u{fffe}' | '\u{ffff}');
    if version < Version::V2021_02_12 || !text.contains(illegal) {
        return xml.text(element, text);
    }
    xml.open_with(element, &[("Encoded", "true")]);
    xml.content(&utf8_percent_encode(text, UNESCAPED).to_string());
    xml.close(element);
}

#[cfg(test)]
mod tests;
