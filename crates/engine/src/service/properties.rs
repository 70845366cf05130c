//! What an account's owner sets for a whole service of it.
//! <https://learn.microsoft.com/rest/api/storageservices/set-blob-service-properties>

use serde::{Deserialize, Serialize};

/// The properties of one service of an account. A service that nobody has set anything for has the default ones. The
/// Queue and Table services use only the first four.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceProperties {
    /// Which requests are logged. Kept, not acted upon.
    pub logging: Logging,
    /// Metrics by the hour. Kept, not acted upon.
    pub hour_metrics: Metrics,
    /// Metrics by the minute. Kept, not acted upon.
    pub minute_metrics: Metrics,
    /// Which pages of other origins may use the service; the first rule that fits decides.
    pub cors: Vec<CorsRule>,
    /// The protocol version of requests that name none and bring no credentials.
    pub default_version: Option<String>,
    /// What deleted blobs are kept for.
    pub delete_retention: DeleteRetention,
    /// Whether `$web` is served as a website, and how.
    pub website: StaticWebsite,
}

/// Which requests are logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logging {
    /// The form of the log, as the client named it; none for the usual one.
    pub version: Option<String>,
    /// Whether deletions are.
    pub delete: bool,
    /// Whether reads are.
    pub read: bool,
    /// Whether writes are.
    pub write: bool,
    /// Days that the log is kept; none for ever.
    pub retention_days: Option<u16>,
}

/// What is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// The form of the metrics, as the client named it; none for the usual one.
    pub version: Option<String>,
    /// None if nothing is counted; else whether each operation is counted by itself.
    pub enabled: Option<IncludeApis>,
    /// Days that the counts are kept; none for ever.
    pub retention_days: Option<u16>,
}

/// Whether each operation is counted by itself, beside their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncludeApis(pub bool);

/// Which requests of pages of other origins are answered so that a browser hands the answer to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorsRule {
    /// The origins, `*` for all.
    pub allowed_origins: Vec<String>,
    /// The methods.
    pub allowed_methods: Vec<String>,
    /// The request headers: names, beginnings of names with a star, or `*`.
    pub allowed_headers: Vec<String>,
    /// The response headers that pages may see, in the same form.
    pub exposed_headers: Vec<String>,
    /// How long a browser may remember a preflight's answer.
    pub max_age_seconds: u32,
}

/// What deleted blobs are kept for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteRetention {
    /// Days that deleted blobs can be restored; none if they are gone at once.
    pub days: Option<u16>,
    /// Whether deleted snapshots and versions may be deleted for good before that.
    pub allow_permanent: bool,
}

/// Whether and how `$web` is served as a website.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticWebsite {
    /// Whether it is.
    pub enabled: bool,
    /// The name of the page that stands for the directory it lies in.
    pub index_document: Option<String>,
    /// The path of the page that stands for every directory, if none lies in it.
    pub default_index_path: Option<String>,
    /// The path of the page that is answered for what does not exist.
    pub error_path: Option<String>,
}

/// New properties of a service; what is none stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// See [`ServiceProperties::logging`].
    pub logging: Option<Logging>,
    /// See [`ServiceProperties::hour_metrics`].
    pub hour_metrics: Option<Metrics>,
    /// See [`ServiceProperties::minute_metrics`].
    pub minute_metrics: Option<Metrics>,
    /// See [`ServiceProperties::cors`].
    pub cors: Option<Vec<CorsRule>>,
    /// See [`ServiceProperties::default_version`].
    pub default_version: Option<String>,
    /// See [`ServiceProperties::delete_retention`].
    pub delete_retention: Option<DeleteRetention>,
    /// See [`ServiceProperties::website`].
    pub website: Option<StaticWebsite>,
}

impl Change {
    /// `old` with what changes.
    pub(super) fn onto(&self, old: ServiceProperties) -> ServiceProperties {
        let new = self.clone();
        ServiceProperties {
            logging: new.logging.unwrap_or(old.logging),
            hour_metrics: new.hour_metrics.unwrap_or(old.hour_metrics),
            minute_metrics: new.minute_metrics.unwrap_or(old.minute_metrics),
            cors: new.cors.unwrap_or(old.cors),
            default_version: new.default_version.or(old.default_version),
            delete_retention: new.delete_retention.unwrap_or(old.delete_retention),
            website: new.website.unwrap_or(old.website),
        }
    }
}
