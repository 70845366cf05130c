//! The body of Set Service Properties: refused, or properties that fit a row and come back as they were written.
#![no_main]

use lazuli_api::target::Service;
use lazuli_api::version::Version;
use lazuli_api::wire::service::{document, parse};
use lazuli_engine::rows::codec::encode;
use lazuli_engine::rows::service::ServiceRow;
use lazuli_engine::service::properties::ServiceProperties;
use lazuli_engine::store::VALUE_BYTES_MAX;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(change) = parse(data, Service::Blob) else { return };
    let properties = ServiceProperties {
        logging: change.logging.unwrap_or_default(),
        hour_metrics: change.hour_metrics.unwrap_or_default(),
        minute_metrics: change.minute_metrics.unwrap_or_default(),
        cors: change.cors.unwrap_or_default(),
        default_version: change.default_version,
        delete_retention: change.delete_retention.unwrap_or_default(),
        website: change.website.unwrap_or_default(),
    };
    let again =
        parse(&document(&properties, Service::Blob, Version::NEWEST), Service::Blob).expect("it was written here");
    assert_eq!(again.cors.as_ref(), Some(&properties.cors));
    assert_eq!(again.default_version, properties.default_version);
    assert_eq!(again.delete_retention, Some(properties.delete_retention));
    assert_eq!(again.website.as_ref(), Some(&properties.website));
    assert!(encode(&ServiceRow(properties)).expect("it fits a row").len() <= VALUE_BYTES_MAX);
});
