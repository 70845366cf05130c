//! The configuration in effect, as the file would have it; what only flags can say, in comments.

use std::collections::BTreeMap;
use std::path::Path;

use lazuli_api::target::{Front, Service};
use serde::Serialize;

use super::oauth::OAuth;
use super::tls::TlsTable;
use super::{Config, Durability, LogFormat, MIB};
use crate::start::StartError;

/// What is shown in place of a key or a password.
const HIDDEN: &str = "(not shown)";

#[derive(Serialize)]
struct Printed<'a, A> {
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a Path>,
    durability: Durability,
    cache_mib: u64,
    reserve_mib: u64,
    connections_max: usize,
    idle_timeout: u64,
    log_format: LogFormat,
    log_level: &'a str,
    strict_versions: bool,
    path_style_only: bool,
    allow_development_account: bool,
    #[serde(flatten)]
    services: BTreeMap<&'static str, Endpoint<'a>>,
    tls: TlsTable,
    accounts: BTreeMap<String, A>,
    oauth: &'a OAuth,
}

#[derive(Serialize)]
struct Endpoint<'a> {
    host: &'a str,
    port: u16,
    keep_alive: u64,
}

/// The configuration as text. Of accounts it shows how many keys they have, not which.
pub(crate) fn print(config: &Config) -> Result<String, StartError> {
    let services = config.listen.iter().map(|listen| {
        (key(listen.front), Endpoint { host: &listen.host, port: listen.port, keep_alive: listen.keep_alive.as_secs() })
    });
    let accounts = config.accounts.names().into_iter().filter_map(|account| {
        let keys = config.accounts.get(&account)?.keys().len();
        let table = config.account_tables.get(account.as_str()).cloned().unwrap_or_default();
        Some((account.to_string(), table.with_keys(vec![HIDDEN.to_owned(); keys])))
    });
    let printed = Printed {
        location: config.location.as_deref(),
        durability: config.durability,
        cache_mib: config.cache_bytes / MIB,
        reserve_mib: config.reserve_bytes / MIB,
        connections_max: config.connections_max,
        idle_timeout: config.idle_timeout.as_secs(),
        log_format: config.log_format,
        log_level: &config.log_level,
        strict_versions: config.strict_versions,
        path_style_only: config.path_style_only,
        allow_development_account: config.allow_development_account,
        services: services.collect(),
        tls: config.tls.clone().with_password(HIDDEN),
        accounts: accounts.collect(),
        oauth: &config.oauth,
    };
    let text = toml::to_string(&printed);
    let text = text.map_err(|error| StartError::new(format!("the configuration cannot be shown: {error}")))?;
    let in_memory = config.location.is_none().then(|| "# --inMemoryPersistence: nothing survives the process\n".into());
    let log_file = config.log_file.as_ref().map(|path| format!("# --debug: log lines go to {}\n", path.display()));
    Ok([in_memory, log_file, Some(text)].into_iter().flatten().collect())
}

const fn key(front: Front) -> &'static str {
    match front {
        Front::Service(Service::Blob) => "blob",
        Front::Service(Service::Queue) => "queue",
        Front::Service(Service::Table) => "table",
        Front::Web => "web",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arguments, File};
    use super::*;
    use clap::Parser as _;

    fn printed(arguments: &[&str]) -> String {
        let arguments = Arguments::try_parse_from(std::iter::once(&"lazuli").chain(arguments)).unwrap();
        print(&Config::load(&arguments.flags).unwrap()).unwrap()
    }

    #[test]
    fn what_is_printed_is_a_file_without_keys() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("lazuli.toml");
        let text = "cache_mib = 7\n[blob]\nport = 9\nkeep_alive = 5\n[accounts.mine]\n\
                    keys = [\"c2VjcmV0\", \"c2VjcmV1\"]\nversioning = true\n\
                    [oauth]\nmode = \"basic\"\n[[oauth.roles]]\nrole = \"reader\"\nqueue = \"jobs\"\n\
                    [tls]\ncert = \"a.pfx\"\npassword = \"c2VjcmV2\"\nhttps_only = false\n";
        std::fs::write(&path, text).unwrap();
        let config = ["--config", path.to_str().unwrap(), "--webPort", "8", "--tableKeepAliveTimeout", "6"];
        let shown = printed(&config);
        assert!(!shown.contains("c2VjcmV"), "{shown}");
        let file: File = toml::from_str(&shown).unwrap();
        assert_eq!((file.cache_mib, file.reserve_mib), (Some(7), Some(64)));
        assert_eq!((file.blob.port, file.blob.keep_alive), (Some(9), Some(5)));
        assert_eq!((file.queue.port, file.queue.keep_alive), (Some(10_001), Some(120)));
        assert_eq!((file.table.keep_alive, file.web.port), (Some(6), Some(8)));
        let tls = format!("cert = \"a.pfx\"\npassword = \"{HIDDEN}\"\nhttps_only = false");
        assert_eq!(file.tls, toml::from_str(&tls).unwrap());
        let table = format!("keys = [\"{HIDDEN}\", \"{HIDDEN}\"]\nversioning = true");
        assert_eq!(file.oauth, toml::from_str::<File>(text).unwrap().oauth);
        assert_eq!(file.accounts["mine"], toml::from_str(&table).unwrap());
    }

    #[test]
    fn what_only_flags_can_say_is_a_comment() {
        let empty = tempfile::NamedTempFile::new().unwrap();
        let path = empty.path().to_str().unwrap();
        let shown = printed(&["--config", path, "--inMemoryPersistence", "--debug", "log.txt"]);
        assert!(
            shown.starts_with("# --inMemoryPersistence") && shown.contains("\n# --debug: log lines go to log.txt\n")
        );
        let file: File = toml::from_str(&shown).unwrap();
        assert!(file.location.is_none() && file.accounts.contains_key("devstoreaccount1"));
        let shown = printed(&["--config", path, "--blobHost", "::", "--allow-development-account"]);
        assert!(toml::from_str::<File>(&shown).unwrap().allow_development_account);
    }
}
