//! `etl stats`: counts the events of a trace.

use std::io::{self, Write};
use std::process::ExitCode;
use std::slice;

use clap::{ArgMatches, Command};
use etl::stats::Stats;
use etl_file::Selection;

use crate::failure::Failure;
use crate::input::{Input, finish};
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
    let (file, pipeline) = input.pipeline(Selection::ALL);
    let counted = Stats::read(file, &pipeline);
    let (stats, damages) = counted.map_err(|error| input.named(error.into()))?;
    let mut out = io::stdout().lock();
    write!(out, "{}", stats.render())?;
    out.flush()?;
    Ok(finish(slice::from_ref(&input), slice::from_ref(&damages)))
}
