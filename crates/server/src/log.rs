//! Log lines: on standard error, or in a file.

use std::fs::OpenOptions;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::config::{Config, LogFormat};
use crate::start::StartError;

/// Starts logging as configured.
pub(crate) fn start(config: &Config) -> Result<(), StartError> {
    let filter = EnvFilter::try_new(&config.log_level)
        .map_err(|error| StartError::new(format!("log level {:?}: {error}", config.log_level)))?;
    let writer = match &config.log_file {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|error| StartError::new(format!("log file {}: {error}", path.display())))?;
            BoxMakeWriter::new(Mutex::new(file))
        }
        None => BoxMakeWriter::new(std::io::stderr),
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_target(false);
    match config.log_format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}
