//! The benchmark's command line. `scripts/bench` builds the release binaries, finds the others and calls it.

use std::ffi::OsString;
use std::io::{stderr, stdout};
use std::process::ExitCode;

use lazuli_tests::bench::{self, Settings};
use lazuli_tests::client::Failure;

const USAGE: &str = "bench --lazuli BINARY [--azurite MAIN_JS] [--nginx BINARY] [--directory FOLDER] [--quick] \
                     [--restart-blobs NUMBER] [--only azurite|nginx|disk|commit|append|memory|restart|queues|pages|share|tables]…";

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let settings = settings(std::env::args_os().skip(1))?;
    let met = bench::run(&settings, &mut stdout(), &mut stderr()).await?;
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn settings(mut arguments: impl Iterator<Item = OsString>) -> Result<Settings, Failure> {
    let mut settings = Settings {
        lazuli: "target/release/lazuli".into(),
        azurite: None,
        nginx: None,
        directory: "target/bench".into(),
        quick: false,
        restart_blobs: None,
        only: Vec::new(),
    };
    while let Some(flag) = arguments.next() {
        if flag == "--quick" {
            settings.quick = true;
            continue;
        }
        let value = arguments.next().ok_or(USAGE)?;
        match flag.to_str() {
            Some("--lazuli") => settings.lazuli = value.into(),
            Some("--azurite") => settings.azurite = Some(value.into()),
            Some("--nginx") => settings.nginx = Some(value.into()),
            Some("--directory") => settings.directory = value.into(),
            Some("--restart-blobs") => settings.restart_blobs = Some(value.to_str().ok_or(USAGE)?.parse()?),
            Some("--only") => settings.only.push(value.to_str().ok_or(USAGE)?.to_owned()),
            _ => return Err(USAGE.into()),
        }
    }
    Ok(settings)
}
