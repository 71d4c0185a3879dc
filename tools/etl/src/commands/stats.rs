//! `etl stats`: counts the events of a trace.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use etl::stats::Stats;

use crate::failure::Failure;
use crate::input::Input;
use crate::options::{file, functions, names, schemas, threads, tmf};

/// Returns the command's definition.
pub fn command() -> Command {
    Command::new("stats")
        .about("Count the events of a file by provider, event and level")
        .arg(file())
        .args(schemas())
        .arg(tmf())
        .arg(threads())
        .arg(names())
        .args(functions())
}

/// Runs the command.
pub fn run(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut input = Input::open(arguments)?;
    let Input { path, file, catalog, additions, completes, threads, .. } = &mut input;
    let failed = |source| Failure::Read { file: path.clone(), source };
    let (mut stats, damages) = Stats::read(file, catalog, *threads).map_err(failed)?;
    if *completes {
        stats.complete(file, catalog, additions, *threads).map_err(failed)?;
    }
    let mut out = io::stdout().lock();
    write!(out, "{}", stats.render())?;
    out.flush()?;
    Ok(input.finish(&damages))
}
