//! `etl times`: shows where the time went.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use etl::times::{By, TimeTable};

use crate::failure::Failure;
use crate::input::{Input, finish};
use crate::options::{files, names, required, schemas, selecting, selection, threads};

/// Returns the command's definition.
pub fn command() -> Command {
    let choice = |name: &'static str, help: &'static str| Arg::new(name).long(name).help(help);
    Command::new("times")
        .about("Show the time on and off the processors, and in requests, by process or code")
        .long_about(
            "Show the time on the processors, ready and waiting (from context switches), samples of the \
             instruction pointer, and requests to disks and files, by process or thread; or the samples by \
             image or function.\n\n\
             Of the options that select events, those for times and processes apply.",
        )
        .arg(files())
        .arg(
            choice("by", "What the rows are for")
                .default_value("process")
                .value_parser(["process", "thread", "image", "function"]),
        )
        .arg(
            choice("format", "The output format: a table, or an object with times in nanoseconds")
                .default_value("table")
                .value_parser(["table", "json"]),
        )
        .args(schemas())
        .arg(threads())
        .arg(names())
        .args(selecting())
}

/// Runs the command.
pub fn run(arguments: &ArgMatches) -> Result<ExitCode, Failure> {
    let by = match required::<String>(arguments, "by")?.as_str() {
        "thread" => By::Thread,
        "image" => By::Image,
        "function" => By::Function,
        _ => By::Process,
    };
    let mut inputs = Input::open_all(arguments)?;
    let mut table = TimeTable::new(by);
    let mut damages = Vec::new();
    for input in &mut inputs {
        let selection = selection(arguments, input.start());
        // A sample's image has its name from the events about images.
        input.completion.names |= matches!(by, By::Image | By::Function);
        let (file, pipeline) = input.pipeline(&selection);
        let added = table.add_file(file, &pipeline);
        damages.push(added.map_err(|error| input.named(error.into()))?);
    }
    let mut out = io::stdout().lock();
    if required::<String>(arguments, "format")? == "json" {
        serde_json::to_writer_pretty(&mut out, &table).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", table.render())?;
    }
    out.flush()?;
    Ok(finish(&inputs, &damages))
}
