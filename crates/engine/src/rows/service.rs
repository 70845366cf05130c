//! `services`: account, service -> [`ServiceRow`].

use serde::{Deserialize, Serialize};

use crate::names::AccountName;
use crate::rows::codec::{KeyWriter, Row};
use crate::service::ServiceKind;
use crate::service::properties::ServiceProperties;

/// What an account's owner has set for one service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRow(pub ServiceProperties);

impl Row for ServiceRow {
    const VERSION: u8 = 1;
}

/// The key of a service of `account`.
pub fn key(account: &AccountName, kind: ServiceKind) -> Vec<u8> {
    let number = match kind {
        ServiceKind::Blob => 1,
        ServiceKind::Queue => 2,
        ServiceKind::Table => 3,
    };
    KeyWriter::new().text(account.as_str()).u8(number).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::codec::{decode, encode};
    use crate::service::properties::{CorsRule, DeleteRetention, IncludeApis, Logging, Metrics, StaticWebsite};
    use crate::store::Space;

    #[test]
    fn a_key_on_disk_looks_like_this_for_ever() {
        let account = AccountName::parse("dev").unwrap();
        assert_eq!(key(&account, ServiceKind::Blob), b"dev\x00\x01\x01");
        assert_eq!(key(&account, ServiceKind::Queue), b"dev\x00\x01\x02");
        assert_eq!(key(&account, ServiceKind::Table), b"dev\x00\x01\x03");
    }

    #[test]
    fn a_value_on_disk_looks_like_this_for_ever() {
        let metrics = Metrics { version: None, enabled: Some(IncludeApis(true)), retention_days: Some(2) };
        let row = ServiceRow(ServiceProperties {
            logging: Logging {
                version: Some("v".into()),
                delete: true,
                read: false,
                write: true,
                retention_days: Some(1),
            },
            hour_metrics: metrics,
            minute_metrics: Metrics::default(),
            cors: vec![CorsRule {
                allowed_origins: vec!["*".into()],
                allowed_methods: vec!["G".into()],
                allowed_headers: vec!["a".into(), "b".into()],
                exposed_headers: vec![],
                max_age_seconds: 300,
            }],
            default_version: Some("d".into()),
            delete_retention: DeleteRetention { days: Some(365), allow_permanent: true },
            website: StaticWebsite {
                enabled: true,
                index_document: Some("i".into()),
                default_index_path: None,
                error_path: Some("e".into()),
            },
        });
        let bytes = encode(&row).unwrap();
        let mut expected = vec![1];
        expected.extend([1, 1, b'v', 1, 0, 1, 1, 1]);
        expected.extend([0, 1, 1, 1, 2]);
        expected.extend([0, 0, 0]);
        expected.extend([1, 1, 1, b'*', 1, 1, b'G', 2, 1, b'a', 1, b'b', 0, 251, 44, 1]);
        expected.extend([1, 1, b'd']);
        expected.extend([1, 251, 109, 1, 1]);
        expected.extend([1, 1, 1, b'i', 0, 1, 1, b'e']);
        assert_eq!(bytes, expected);
        assert_eq!(decode::<ServiceRow>(Space::Services, b"k", &bytes).unwrap(), row);
    }
}
