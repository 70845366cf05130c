//! `lazuli`: Azure Storage on one durable node.

mod config;
mod connection;
mod head;
mod listen;
mod log;
mod patience;
mod reload;
mod start;
mod tls;
mod work;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use lazuli_api::serve;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};

use config::{Arguments, Command, Config, ConfigCommand, Flags};
use listen::Limits;
use reload::Followed;
use start::StartError;

/// How long requests under way may go on once the server was asked to stop.
const DRAIN: Duration = Duration::from_secs(15);

fn main() -> ExitCode {
    let Arguments { command, flags, .. } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return unparsed(&error),
    };
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| StartError::new(format!("no runtime: {error}")))
        .and_then(|runtime| match command {
            None => runtime.block_on(run(flags)),
            Some(Command::Config(ConfigCommand::Print(flags))) => {
                config::print(&Config::load(&flags)?).map(|text| say(text.trim_end()))
            }
        });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

/// Ends with one line on standard error.
fn fail(line: &str) -> ExitCode {
    // Nobody may be there to read it; the exit code says the same.
    let _ = writeln!(std::io::stderr(), "lazuli: {}", line.replace('\n', " "));
    ExitCode::FAILURE
}

/// Ends with what was asked for, help or the version, or with what is wrong with an argument or a variable.
fn unparsed(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    if !error.use_stderr() {
        say(text.trim_end());
        return ExitCode::SUCCESS;
    }
    let about_usage = |line: &&str| line.starts_with("Usage:") || line.starts_with("For more information");
    let lines = text.lines().map(str::trim).take_while(|line| !about_usage(line)).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    fail(&format!("{} (--help tells all)", line.trim_start_matches("error: ")))
}

async fn run(flags: Flags) -> Result<(), StartError> {
    let config = Config::load(&flags)?;
    let (seen, has_file) = (reload::states(&config.watched), config.has_file);
    log::start(&config)?;
    let limits = Limits { head: config.idle_timeout, idle: config.idle_timeout, drain: DRAIN };
    let connections_max = config.connections_max;
    let handlers = |error| StartError::new(format!("no signal handlers: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(handlers)?;
    let hangup = signal(SignalKind::hangup()).map_err(handlers)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(handlers)?;
    let (watched, files, listen) = (config.watched.clone(), config.certificate.clone(), config.listen.clone());
    let started = start::start(config).await?;
    let tls = started.tls;
    let scheme = if tls.is_some() { "https" } else { "http" };
    // Clients that have no token do not wait for that.
    tokio::spawn(reload::fetch_keys(started.app.accounts.clone()));
    let (accounts, certificate) = (started.app.accounts.clone(), tls.clone().zip(files));
    let engine = started.app.engine.clone();
    let followed = Followed { flags, watched, seen, has_file, accounts, engine, listen, certificate };
    tokio::spawn(followed.follow(hangup));

    let (stop, stopped) = watch::channel(false);
    let mut ready = Vec::new();
    let mut services = Vec::new();
    for bound in started.bound {
        ready.push((bound.front.name(), bound.host, bound.door.address().port()));
        let filter = serve::filter(started.app.clone(), bound.front);
        let places = Arc::new(Semaphore::new(connections_max));
        let limits = Limits { head: bound.keep_alive, ..limits };
        services.push(bound.door.serve(filter, limits, tls.clone(), places, stopped.clone()));
    }
    // Tools of the field wait for exactly these lines, in this order, also when nothing else is to be said.
    for (name, host, port) in &ready {
        say(&format!("Azurite {name} service is starting at {scheme}://{host}:{port}"));
    }
    for (name, host, port) in &ready {
        say(&format!("Azurite {name} service is successfully listening at {scheme}://{host}:{port}"));
    }

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // Each service listens for this until it ends; one that has ended already needs no telling.
    let _ = stop.send(true);
    for service in services {
        if let Err(error) = service.await {
            tracing::error!(%error, "a service died");
        }
    }
    for (name, ..) in &ready {
        say(&format!("Azurite {name} service successfully closed"));
    }
    Ok(())
}

/// A line on standard output. Whoever started the server may have closed it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
