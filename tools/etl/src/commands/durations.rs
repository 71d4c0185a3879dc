//! `etl durations`: shows the times between start and stop events.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use etl::durations::Durations;

use crate::failure::Failure;
use crate::input::{Input, finish};
use crate::options::{files, names, option, required, schemas, selecting, selection, threads};

/// Returns the command's definition.
pub fn command() -> Command {
    Command::new("durations")
        .about("Show how long operations took, from their start events to their stop events")
        .long_about(
            "Show how long operations took, from their start events to their stop events, with a row \
             for each provider and start event.\n\n\
             A stop event (opcode 2) ends the latest start event (opcode 1) of its file that has the \
             same provider, activity and task. Operations are selected by their start events.",
        )
        .arg(files())
        .arg(
            Arg::new("format")
                .long("format")
                .help("The output format: a table, or an object with times in nanoseconds")
                .default_value("table")
                .value_parser(["table", "json"]),
        )
        .arg(
            option(
                "slowest",
                "N",
                "Show this many of the slowest operations in each row, with their fields",
            )
            .default_value("3")
            .value_parser(value_parser!(u16)),
        )
        .args(schemas())
        .arg(threads())
        .arg(names())
        .args(selecting())
}

/// Runs the command.
pub fn run(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut inputs = Input::open_all(arguments)?;
    let mut durations = Durations::new(usize::from(*required::<u16>(arguments, "slowest")?));
    let mut damages = Vec::new();
    for input in &mut inputs {
        let selection = selection(arguments, input.start());
        // The process of an event can be selected by its name.
        input.completion.names |= !selection.processes.is_empty();
        let name = input.path.display().to_string();
        let (file, pipeline) = input.pipeline(&selection);
        let added = durations.add_file(file, &name, &pipeline);
        damages.push(added.map_err(|error| input.named(error.into()))?);
    }
    let mut out = io::stdout().lock();
    if required::<String>(arguments, "format")? == "json" {
        serde_json::to_writer_pretty(&mut out, &durations).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", durations.render())?;
    }
    out.flush()?;
    Ok(finish(&inputs, &damages))
}
