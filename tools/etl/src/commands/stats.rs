//! `etl stats`: counts the events of a trace.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use etl::stats::Stats;
use etl_file::Selection;

use crate::failure::Failure;
use crate::input::{Input, finish};
use crate::options::{files, functions, names, schemas, threads, tmf};

/// Returns the command's definition.
pub fn command() -> Command {
    Command::new("stats")
        .about("Count the events of one or more files by provider, event and level")
        .arg(files())
        .args(schemas())
        .arg(tmf())
        .arg(threads())
        .arg(names())
        .args(functions())
}

/// Runs the command.
pub fn run(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut inputs = Input::open_all(arguments)?;
    let (mut stats, mut damages) = (Stats::default(), Vec::new());
    for input in &mut inputs {
        let (file, pipeline) = input.pipeline(Selection::ALL);
        let counted = Stats::read(file, &pipeline);
        let (counts, found) = counted.map_err(|error| input.named(error.into()))?;
        stats.absorb(counts);
        damages.push(found);
    }
    let mut out = io::stdout().lock();
    write!(out, "{}", stats.render())?;
    out.flush()?;
    Ok(finish(&inputs, &damages))
}
