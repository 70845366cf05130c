//! The properties of a service and its statistics.
//! <https://learn.microsoft.com/rest/api/storageservices/set-blob-service-properties>

mod cors;
mod request;

use lazuli_engine::clock::Timestamp;
use lazuli_engine::service::properties::{DeleteRetention, Logging, Metrics, ServiceProperties, StaticWebsite};

pub use request::parse;

use crate::target::Service;
use crate::version::Version;
use crate::wire::date;
use crate::wire::xml::Writer;

const ROOT: &str = "StorageServiceProperties";
/// The form of logs and metrics that is answered where none was named.
const USUAL_FORM: &str = "1.0";

/// The body of Get Service Properties, in the order of the service. Queues and tables have the first half of it, and
/// older versions don't show what they don't know.
pub fn document(properties: &ServiceProperties, service: Service, version: Version) -> Vec<u8> {
    let mut xml = Writer::begin();
    xml.open(ROOT);
    logging(&mut xml, &properties.logging);
    metrics(&mut xml, "HourMetrics", &properties.hour_metrics);
    if version >= Version::V2013_08_15 {
        metrics(&mut xml, "MinuteMetrics", &properties.minute_metrics);
        cors::write(&mut xml, &properties.cors);
    }
    if service == Service::Blob {
        xml.text_opt("DefaultServiceVersion", properties.default_version.as_deref());
        if version >= Version::V2017_07_29 {
            delete_retention(&mut xml, properties.delete_retention);
        }
        if version >= Version::V2018_03_28 {
            website(&mut xml, &properties.website);
        }
    }
    xml.close(ROOT);
    xml.finish()
}

fn logging(xml: &mut Writer, logging: &Logging) {
    xml.open("Logging");
    xml.text("Version", logging.version.as_deref().unwrap_or(USUAL_FORM));
    xml.text("Delete", flag(logging.delete));
    xml.text("Read", flag(logging.read));
    xml.text("Write", flag(logging.write));
    xml.open("RetentionPolicy");
    retention(xml, logging.retention_days);
    xml.close("RetentionPolicy");
    xml.close("Logging");
}

fn metrics(xml: &mut Writer, element: &'static str, metrics: &Metrics) {
    xml.open(element);
    xml.text("Version", metrics.version.as_deref().unwrap_or(USUAL_FORM));
    xml.text("Enabled", flag(metrics.enabled.is_some()));
    xml.text_opt("IncludeAPIs", metrics.enabled.map(|include| flag(include.0)));
    xml.open("RetentionPolicy");
    retention(xml, metrics.retention_days);
    xml.close("RetentionPolicy");
    xml.close(element);
}

fn retention(xml: &mut Writer, days: Option<u16>) {
    xml.text("Enabled", flag(days.is_some()));
    xml.text_opt("Days", days.map(|days| days.to_string()).as_deref());
}

fn delete_retention(xml: &mut Writer, policy: DeleteRetention) {
    xml.open("DeleteRetentionPolicy");
    retention(xml, policy.days);
    if policy.days.is_some() || policy.allow_permanent {
        xml.text("AllowPermanentDelete", flag(policy.allow_permanent));
    }
    xml.close("DeleteRetentionPolicy");
}

fn website(xml: &mut Writer, website: &StaticWebsite) {
    xml.open("StaticWebsite");
    xml.text("Enabled", flag(website.enabled));
    xml.text_opt("IndexDocument", website.index_document.as_deref());
    xml.text_opt("DefaultIndexDocumentPath", website.default_index_path.as_deref());
    xml.text_opt("ErrorDocument404Path", website.error_path.as_deref());
    xml.close("StaticWebsite");
}

const fn flag(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// The body of Get Service Stats: the secondary endpoint shows all that was committed up to `synced`.
/// <https://learn.microsoft.com/rest/api/storageservices/get-blob-service-stats>
pub fn statistics(synced: Timestamp) -> Vec<u8> {
    let mut xml = Writer::begin();
    xml.open("StorageServiceStats");
    xml.open("GeoReplication");
    xml.text("Status", "live");
    xml.text("LastSyncTime", &date::rfc1123(synced));
    xml.close("GeoReplication");
    xml.close("StorageServiceStats");
    xml.finish()
}

#[cfg(test)]
mod tests;
