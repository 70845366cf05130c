//! The configuration: flags over environment over file over defaults.

mod account;
mod checks;
mod oauth;
mod print;
mod tls;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{BoolishValueParser, FalseyValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use lazuli_api::auth::accounts::Accounts;
use lazuli_api::target::{Front, Service};
use lazuli_engine::policy::Policies;
use serde::{Deserialize, Serialize};

use account::AccountTable;
use oauth::{OAuth, OAuthMode};
pub(crate) use print::print;
use tls::TlsTable;

use crate::start::StartError;
use crate::tls::CertificateFiles;

/// Where the file is looked for if none is named.
const DEFAULT_FILE: &str = "config/lazuli.toml";
/// Bytes of a MiB.
const MIB: u64 = 1024 * 1024;
/// How long a client may be waited for: up to a year.
const SECONDS: RangeInclusive<u64> = 1..=365 * 24 * 60 * 60;
/// How many rows may be kept in memory: up to a TiB.
const CACHE_MIB: RangeInclusive<u64> = 1..=1024 * 1024;
/// How many connections a service may have.
const CONNECTIONS: RangeInclusive<usize> = 1..=1_000_000;

/// Azure Storage on one durable node.
#[derive(Debug, Parser)]
#[command(
    name = "lazuli",
    version,
    about,
    disable_help_subcommand = true,
    disable_version_flag = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Arguments {
    /// Print the version
    #[arg(short = 'V', visible_short_alias = 'v', long = "version", action = ArgAction::Version)]
    _version: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What else than to serve the program does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Deal with the configuration
    #[command(subcommand, arg_required_else_help = false)]
    Config(ConfigCommand),
}

/// What is done with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the configuration that the same flags would start the server with. Keys are not shown
    Print(Box<Flags>),
}

/// What can be said on the command line, and in the environment.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Flags {
    /// Configuration file [default: config/lazuli.toml, if there is one]
    #[arg(long, env = "LAZULI_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory [default: .lazuli]
    #[arg(short, long, alias = "data-dir", env = "LAZULI_LOCATION", value_name = "DIR")]
    location: Option<PathBuf>,
    /// Keep everything in memory: nothing survives the process
    #[arg(long = "inMemoryPersistence", visible_alias = "in-memory-persistence", conflicts_with = "location")]
    in_memory: bool,
    /// What an acknowledged write survives: a power cut, or the death of the process [default: sync]
    #[arg(long, env = "LAZULI_DURABILITY")]
    durability: Option<Durability>,
    /// Address of the Blob service [default: 127.0.0.1]
    #[arg(long = "blobHost", visible_alias = "blob-host", env = "LAZULI_BLOB_HOST", value_name = "HOST")]
    blob_host: Option<String>,
    /// Port of the Blob service; 0 takes a free one [default: 10000]
    #[arg(long = "blobPort", visible_alias = "blob-port", env = "LAZULI_BLOB_PORT", value_name = "PORT")]
    blob_port: Option<u16>,
    /// Seconds that a connection to the Blob service may stay open between two requests [default: --idle-timeout]
    #[arg(long = "blobKeepAliveTimeout", visible_alias = "blob-keep-alive-timeout", value_name = "SECONDS")]
    blob_keep_alive: Option<u64>,
    /// Address of the Queue service [default: 127.0.0.1]
    #[arg(long = "queueHost", visible_alias = "queue-host", env = "LAZULI_QUEUE_HOST", value_name = "HOST")]
    queue_host: Option<String>,
    /// Port of the Queue service; 0 takes a free one [default: 10001]
    #[arg(long = "queuePort", visible_alias = "queue-port", env = "LAZULI_QUEUE_PORT", value_name = "PORT")]
    queue_port: Option<u16>,
    /// Seconds that a connection to the Queue service may stay open between two requests [default: --idle-timeout]
    #[arg(long = "queueKeepAliveTimeout", visible_alias = "queue-keep-alive-timeout", value_name = "SECONDS")]
    queue_keep_alive: Option<u64>,
    /// Address of the Table service [default: 127.0.0.1]
    #[arg(long = "tableHost", visible_alias = "table-host", env = "LAZULI_TABLE_HOST", value_name = "HOST")]
    table_host: Option<String>,
    /// Port of the Table service; 0 takes a free one [default: 10002]
    #[arg(long = "tablePort", visible_alias = "table-port", env = "LAZULI_TABLE_PORT", value_name = "PORT")]
    table_port: Option<u16>,
    /// Seconds that a connection to the Table service may stay open between two requests [default: --idle-timeout]
    #[arg(long = "tableKeepAliveTimeout", visible_alias = "table-keep-alive-timeout", value_name = "SECONDS")]
    table_keep_alive: Option<u64>,
    /// Address of static websites [default: 127.0.0.1]
    #[arg(long = "webHost", visible_alias = "web-host", env = "LAZULI_WEB_HOST", value_name = "HOST")]
    web_host: Option<String>,
    /// Port of static websites; 0 takes a free one. Without it they are served on the Blob service's port alone, to
    /// hosts such as account.web.localhost
    #[arg(long = "webPort", visible_alias = "web-port", env = "LAZULI_WEB_PORT", value_name = "PORT")]
    web_port: Option<u16>,
    /// Certificate for https, and those that vouch for it: a file in PEM, or in PFX with its key inside
    #[arg(long, env = "LAZULI_CERT", value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Key of the certificate, in PEM [default: the certificate's file has it]
    #[arg(long, env = "LAZULI_CERT_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
    /// Password of a certificate in PFX
    #[arg(long, env = "LAZULI_CERT_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    pwd: Option<String>,
    /// Whether what is not encrypted is refused; if not, http and https are taken at the same ports [default: true with
    /// a certificate]
    #[arg(
        long = "https-only",
        visible_alias = "httpsOnly",
        env = "LAZULI_HTTPS_ONLY",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    https_only: Option<bool>,
    /// MiB of rows kept in memory; the process uses up to four times as much [default: 64]
    #[arg(long = "cache-mib", env = "LAZULI_CACHE_MIB", value_name = "MIB")]
    cache_mib: Option<u64>,
    /// Free MiB of disk below which writes that add data are refused [default: 64]
    #[arg(long = "reserve-mib", env = "LAZULI_RESERVE_MIB", value_name = "MIB")]
    reserve_mib: Option<u64>,
    /// Transactions that share a sync, at most [default: 256]
    #[arg(long = "group-max", env = "LAZULI_GROUP_MAX", value_name = "COUNT", hide = true)]
    group_max: Option<usize>,
    /// Connections served at a time by each service; more wait [default: 4096]
    #[arg(long = "connections-max", env = "LAZULI_CONNECTIONS_MAX", value_name = "COUNT")]
    connections_max: Option<usize>,
    /// Seconds that a client may take for a request's head, or for the next bytes of its body [default: 120]
    #[arg(long = "idle-timeout", env = "LAZULI_IDLE_TIMEOUT", value_name = "SECONDS")]
    idle_timeout: Option<u64>,
    /// Form of the log lines on standard error [default: text]
    #[arg(long = "log-format", env = "LAZULI_LOG_FORMAT")]
    log_format: Option<LogFormat>,
    /// Which lines are logged, as a filter of `tracing` [default: info]
    #[arg(long = "log-level", env = "LAZULI_LOG_LEVEL", value_name = "FILTER")]
    log_level: Option<String>,
    /// Log warnings and errors only
    #[arg(short, long)]
    silent: bool,
    /// Log to a file, everything
    #[arg(short, long, value_name = "FILE")]
    debug: Option<PathBuf>,
    /// Refuse an x-ms-version that is newer than all known
    #[arg(long = "strict-versions")]
    strict_versions: bool,
    /// Accept an x-ms-version that is newer than all known: the default
    #[arg(
        long = "skipApiVersionCheck",
        visible_alias = "skip-api-version-check",
        env = "AZURITE_SKIP_API_VERSION_CHECK",
        value_parser = FalseyValueParser::new()
    )]
    skip_version_check: bool,
    /// Never take the account from the host name
    #[arg(long = "disableProductStyleUrl", visible_alias = "disable-product-style-url")]
    path_style_only: bool,
    /// Allow the development account, whose key everybody knows, and unchecked tokens on an address that others can reach
    #[arg(
        long = "allow-development-account",
        env = "LAZULI_ALLOW_DEVELOPMENT_ACCOUNT",
        value_parser = BoolishValueParser::new()
    )]
    allow_development_account: bool,
    /// Accounts and their keys: `name:key1[:key2];…`. Without any, the development account
    #[arg(long, env = "LAZULI_ACCOUNTS", hide_env_values = true, value_name = "ACCOUNTS")]
    accounts: Option<String>,
    /// How bearer tokens are checked: `basic` by form alone, which everybody can meet, for development; `full` by the
    /// issuer's keys, which the file names [default: full if the file names an issuer, else no token is accepted]
    #[arg(long, env = "LAZULI_OAUTH", value_name = "MODE")]
    oauth: Option<OAuthMode>,
    /// Pass over headers and parameters that the server does not know: it always does
    #[arg(short = 'L', long = "loose")]
    _loose: bool,
    /// There is no telemetry to disable
    #[arg(long = "disableTelemetry", visible_alias = "disable-telemetry", hide = true)]
    _disable_telemetry: bool,
}

/// The file, key by key as the flags.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    location: Option<PathBuf>,
    durability: Option<Durability>,
    blob: Endpoint,
    queue: Endpoint,
    table: Endpoint,
    web: Endpoint,
    tls: TlsTable,
    cache_mib: Option<u64>,
    reserve_mib: Option<u64>,
    connections_max: Option<usize>,
    idle_timeout: Option<u64>,
    log_format: Option<LogFormat>,
    log_level: Option<String>,
    strict_versions: bool,
    path_style_only: bool,
    allow_development_account: bool,
    accounts: BTreeMap<String, AccountTable>,
    oauth: OAuth,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Endpoint {
    host: Option<String>,
    port: Option<u16>,
    keep_alive: Option<u64>,
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// A power cut.
    Sync,
    /// The death of the process, not of the machine.
    Process,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs: one object a line.
    Json,
}

/// Where a service listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(crate) front: Front,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// How long a connection may stay open between two requests.
    pub(crate) keep_alive: Duration,
}

/// The configuration in effect.
pub(crate) struct Config {
    /// The data directory; none keeps everything in memory.
    pub(crate) location: Option<PathBuf>,
    pub(crate) durability: Durability,
    pub(crate) listen: Vec<Listen>,
    pub(crate) cache_bytes: u64,
    pub(crate) reserve_bytes: u64,
    pub(crate) group_jobs_max: usize,
    pub(crate) connections_max: usize,
    pub(crate) idle_timeout: Duration,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: String,
    pub(crate) log_file: Option<PathBuf>,
    pub(crate) strict_versions: bool,
    pub(crate) path_style_only: bool,
    allow_development_account: bool,
    /// The certificate; without one nothing is encrypted.
    pub(crate) certificate: Option<CertificateFiles>,
    pub(crate) accounts: Accounts,
    pub(crate) policies: Policies,
    /// What the file says of accounts, to be shown.
    account_tables: BTreeMap<String, AccountTable>,
    /// How tokens are checked, to be shown.
    oauth: OAuth,
    /// What the certificate's files are, to be shown.
    tls: TlsTable,
    /// The files that say who may come in, and how.
    pub(crate) watched: Vec<PathBuf>,
    /// Whether the first of them, the configuration, is there.
    pub(crate) has_file: bool,
}

/// What may be another while the server runs.
pub(crate) struct Reloaded {
    pub(crate) accounts: Accounts,
    pub(crate) policies: Policies,
    pub(crate) certificate: Option<CertificateFiles>,
    /// The files that say so.
    pub(crate) watched: Vec<PathBuf>,
    /// Whether the first of them, the configuration, is there.
    pub(crate) has_file: bool,
}

impl Config {
    /// Puts together what flags, environment and file say.
    pub(crate) fn load(flags: &Flags) -> Result<Self, StartError> {
        let (file, has_file) = read_file(flags.config.as_deref(), false)?;
        let Admitted { accounts, development, oauth, tls } = admitted(flags, &file)?;
        let certificate = tls.files()?;
        let policies = account::policies(&file.accounts, &accounts)?;
        let allow_development_account = flags.allow_development_account || file.allow_development_account;
        let idle = checks::within("idle_timeout", flags.idle_timeout.or(file.idle_timeout).unwrap_or(120), SECONDS)?;
        let listen = endpoints(flags, [file.blob, file.queue, file.table, file.web], idle);
        for Listen { keep_alive, .. } in &listen {
            checks::within("keep_alive", keep_alive.as_secs(), SECONDS)?;
        }
        let cache_mib = checks::within("cache_mib", flags.cache_mib.or(file.cache_mib).unwrap_or(64), CACHE_MIB)?;
        let connections_max = flags.connections_max.or(file.connections_max).unwrap_or(4096);
        let connections_max = checks::within("connections_max", connections_max, CONNECTIONS)?;
        if !allow_development_account {
            checks::private(&listen, development, oauth.is_unchecked())?;
        }
        let location = flags.location.clone().or(file.location).unwrap_or_else(|| PathBuf::from(".lazuli"));
        let level = match (flags.silent, &flags.debug) {
            (_, Some(_)) => "debug".to_owned(),
            (true, None) => "warn".to_owned(),
            _ => flags.log_level.clone().or(file.log_level).unwrap_or_else(|| "info".to_owned()),
        };
        checks::log_level(&level)?;
        Ok(Self {
            location: (!flags.in_memory).then_some(location),
            durability: flags.durability.or(file.durability).unwrap_or(Durability::Sync),
            listen,
            cache_bytes: cache_mib.saturating_mul(MIB),
            reserve_bytes: flags.reserve_mib.or(file.reserve_mib).unwrap_or(64).saturating_mul(MIB),
            group_jobs_max: flags.group_max.unwrap_or(lazuli_engine::store::embedded::GROUP_JOBS_MAX).max(1),
            connections_max,
            idle_timeout: Duration::from_secs(idle),
            log_format: flags.log_format.or(file.log_format).unwrap_or(LogFormat::Text),
            log_level: level,
            log_file: flags.debug.clone(),
            strict_versions: !flags.skip_version_check && (flags.strict_versions || file.strict_versions),
            path_style_only: flags.path_style_only || file.path_style_only,
            allow_development_account,
            accounts,
            policies,
            account_tables: file.accounts,
            watched: watched(flags, &oauth, certificate.as_ref()),
            has_file,
            oauth,
            tls,
            certificate,
        })
    }

    /// Reads again who may come in, with what certificate, and what is set for accounts: what the files say now. Nothing
    /// else changes while the server runs; not either where it listens, which `listen` says, and whether it has a
    /// certificate at all, which `encrypted` says. If it `had_file`, it is to be there still.
    pub(crate) fn reload(
        flags: &Flags,
        listen: &[Listen],
        encrypted: bool,
        had_file: bool,
    ) -> Result<Reloaded, StartError> {
        let (file, has_file) = read_file(flags.config.as_deref(), had_file)?;
        let Admitted { accounts, development, oauth, tls } = admitted(flags, &file)?;
        let certificate = tls.files()?;
        if certificate.is_some() != encrypted {
            return Err(StartError::new("only a restart begins or ends to encrypt"));
        }
        let policies = account::policies(&file.accounts, &accounts)?;
        // What a start would refuse to show, a running server does not show either.
        if !flags.allow_development_account && !file.allow_development_account {
            checks::private(listen, development, oauth.is_unchecked())?;
        }
        let watched = watched(flags, &oauth, certificate.as_ref());
        Ok(Reloaded { accounts, policies, watched, certificate, has_file })
    }
}

/// Who may come in.
struct Admitted {
    accounts: Accounts,
    /// Whether one of them has the key that everybody knows.
    development: bool,
    oauth: OAuth,
    tls: TlsTable,
}

fn admitted(flags: &Flags, file: &File) -> Result<Admitted, StartError> {
    let (accounts, development) = account::accounts(flags.accounts.as_deref(), &file.accounts)?;
    let oauth = file.oauth.clone().checked(flags.oauth);
    let accounts = match oauth.issuer()? {
        Some(issuer) => accounts.trusting(issuer),
        None => accounts,
    };
    let tls = file.tls.clone().overridden(flags);
    Ok(Admitted { accounts: tls.close(accounts)?, development, oauth, tls })
}

/// The files that say who may come in, and how.
fn watched(flags: &Flags, oauth: &OAuth, certificate: Option<&CertificateFiles>) -> Vec<PathBuf> {
    let own = flags.config.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    let certificate = certificate.into_iter().flat_map(CertificateFiles::paths);
    std::iter::once(own).chain(oauth.file()).chain(certificate.cloned()).collect()
}

/// What the configuration file says, and whether it is there: one that nobody `named` and that need not be, may be absent.
fn read_file(named: Option<&std::path::Path>, needed: bool) -> Result<(File, bool), StartError> {
    let path = named.unwrap_or(std::path::Path::new(DEFAULT_FILE));
    let absent = named.is_none() && !needed;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if absent && error.kind() == std::io::ErrorKind::NotFound => return Ok((File::default(), false)),
        Err(error) => return Err(StartError::new(format!("cannot read {}: {error}", path.display()))),
    };
    let file = toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        StartError::new(format!("{}, line {line}: {}", path.display(), checks::without_value(error.message())))
    })?;
    Ok((file, true))
}

/// Where the services listen, and the websites if they are to have a port.
fn endpoints(flags: &Flags, file: [Endpoint; 4], idle: u64) -> Vec<Listen> {
    let flag = |host: &Option<String>, port, keep_alive| Endpoint { host: host.clone(), port, keep_alive };
    let given = [
        (Service::Blob.into(), flag(&flags.blob_host, flags.blob_port, flags.blob_keep_alive), Some(10_000)),
        (Service::Queue.into(), flag(&flags.queue_host, flags.queue_port, flags.queue_keep_alive), Some(10_001)),
        (Service::Table.into(), flag(&flags.table_host, flags.table_port, flags.table_keep_alive), Some(10_002)),
        (Front::Web, flag(&flags.web_host, flags.web_port, None), None),
    ];
    let listen = |((front, flag, default), file): ((_, Endpoint, _), Endpoint)| {
        Some(Listen {
            front,
            host: flag.host.or(file.host).unwrap_or_else(|| "127.0.0.1".to_owned()),
            port: flag.port.or(file.port).or(default)?,
            keep_alive: Duration::from_secs(flag.keep_alive.or(file.keep_alive).unwrap_or(idle)),
        })
    };
    given.into_iter().zip(file).filter_map(listen).collect()
}

#[cfg(test)]
mod tests {
    use lazuli_api::auth::accounts::DEVELOPMENT_ACCOUNT;
    use lazuli_engine::names::AccountName;

    use super::*;

    /// What these arguments configure.
    pub(super) fn load(arguments: &[&str]) -> Result<Config, StartError> {
        let arguments = Arguments::try_parse_from(std::iter::once(&"lazuli").chain(arguments)).unwrap();
        Config::load(&arguments.flags)
    }

    #[test]
    fn flags_are_taken_in_both_spellings() {
        for arguments in [["--blobPort", "1", "--queueHost", "::1"], ["--blob-port", "1", "--queue-host", "::1"]] {
            let config = load(&arguments).unwrap();
            assert_eq!((config.listen[0].port, config.listen[1].host.as_str()), (1, "::1"), "{arguments:?}");
        }
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("lazuli.toml");
        std::fs::write(&path, "cache_mib = 7\nreserve_mib = 8\n[blob]\nport = 9\n").unwrap();
        let config = load(&["--config", path.to_str().unwrap(), "--reserve-mib", "1"]).unwrap();
        assert_eq!((config.cache_bytes, config.reserve_bytes), (7 * MIB, MIB));
        assert_eq!((config.listen[0].port, config.listen[1].port), (9, 10_001));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("lazuli.toml");
        std::fs::write(&path, "cache_mib = 7\ncolour = \"blue\"\n").unwrap();
        let error = load(&["--config", path.to_str().unwrap()]).err().unwrap().to_string();
        assert!(error.contains("line 2") && error.contains("colour") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn the_shipped_file_says_the_defaults() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/lazuli.toml");
        let shipped = load(&["--config", path]).unwrap();
        let scratch = tempfile::NamedTempFile::new().unwrap();
        let default = load(&["--config", scratch.path().to_str().unwrap()]).unwrap();
        assert_eq!(shipped.listen, default.listen);
        assert_eq!(shipped.location, default.location);
        assert_eq!((shipped.cache_bytes, shipped.reserve_bytes), (default.cache_bytes, default.reserve_bytes));
        assert_eq!((shipped.durability, shipped.log_format), (default.durability, default.log_format));
        assert_eq!((shipped.idle_timeout, shipped.connections_max), (default.idle_timeout, default.connections_max));
        assert_eq!(shipped.log_level, default.log_level);
    }

    #[test]
    fn connections_are_kept_as_long_as_their_service_says() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("lazuli.toml");
        std::fs::write(&path, "idle_timeout = 7\n[blob]\nkeep_alive = 8\n[queue]\nkeep_alive = 8\n").unwrap();
        let config = load(&["--config", path.to_str().unwrap(), "--blobKeepAliveTimeout", "9"]).unwrap();
        let kept: Vec<_> = config.listen.iter().map(|listen| listen.keep_alive.as_secs()).collect();
        assert_eq!(kept, [9, 8, 7]);
    }

    #[test]
    fn websites_have_a_port_only_if_one_is_given() {
        let empty = tempfile::NamedTempFile::new().unwrap();
        let ports = |more: &[&str]| {
            let arguments = [&["--config", empty.path().to_str().unwrap()], more].concat();
            let listen = load(&arguments).unwrap().listen;
            listen.iter().find(|listen| listen.front == Front::Web).map(|listen| listen.port)
        };
        assert_eq!(ports(&[]), None);
        assert_eq!(ports(&["--webHost", "::1"]), None);
        assert_eq!(ports(&["--web-port", "0"]), Some(0));
    }

    #[test]
    fn settings_of_an_account_are_its_policy() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("lazuli.toml");
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            load(&["--config", path.to_str().unwrap()])
        };
        assert!(load("[accounts.devstoreaccount1]\nversioning = true\n").is_ok());
        for (text, named) in [
            ("[accounts.other]\nversioning = true\n", "\"other\""),
            ("[accounts.devstoreaccount1]\nversions = true\n", "line 2"),
            ("[accounts.devstoreaccount1]\nsku = \"Free\"\n", "Standard_RAGRS"),
            ("[accounts.devstoreaccount1]\ncontainer_retention_days = 400\n", "400"),
        ] {
            let error = load(text).err().unwrap().to_string();
            assert!(error.contains(named) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn an_account_in_the_file_may_say_how_it_lets_clients_in() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "[accounts]\nmine = [\"c2VjcmV0\"]\nclosed = { keys = [\"c2VjcmV0\"], public_access = false }\n\
                    devstoreaccount1 = { shared_key = false }\n";
        std::fs::write(file.path(), text).unwrap();
        let config = load(&["--config", file.path().to_str().unwrap()]).unwrap();
        let rules = |name| {
            let rules = config.accounts.get(&AccountName::parse(name).unwrap()).unwrap().rules();
            (rules.public_access, rules.shared_key)
        };
        assert_eq!((rules("mine"), rules("closed")), ((true, true), (false, true)));
        assert_eq!(rules(DEVELOPMENT_ACCOUNT), (true, false));
        assert!(load(&["--config", file.path().to_str().unwrap(), "--blobHost", "0.0.0.0"]).is_err());
    }

    #[test]
    fn accounts_that_are_none_are_refused_with_their_name() {
        for accounts in ["UP:c2VjcmV0", "mine:%%%", "mine", "mine:a2V5:a2V5:a2V5"] {
            let error = load(&["--accounts", accounts]).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains(accounts.split(':').next().unwrap())), "{accounts}");
        }
    }
}
