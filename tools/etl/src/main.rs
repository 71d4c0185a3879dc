//! `etl`: shows and converts .etl files.

mod commands;
mod failure;
mod input;
mod messages;
mod options;
mod output;

use std::io;
use std::process::ExitCode;

use clap::Command;
use clap::error::ErrorKind;

use commands::{compare, dump, durations, merge, read_symbols, report, stats, times};
use failure::Failure;
use input::READ_SYMBOLS;
use messages::complain;

/// Returns the definition of the command line.
fn command() -> Command {
    Command::new("etl")
        .about("Show .etl (Event Trace Log) files")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(compare::command())
        .subcommand(dump::command())
        .subcommand(durations::command())
        .subcommand(times::command())
        .subcommand(merge::command())
        .subcommand(report::command())
        .subcommand(stats::command())
        .subcommand(Command::new(READ_SYMBOLS).hide(true))
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = match matches.subcommand() {
        // As in other comparison commands, exit code 1 means a difference and 2 an error.
        Some(("compare", arguments)) => compare::run(arguments).or_else(|failure| {
            complain(&failure);
            Ok(ExitCode::from(2))
        }),
        Some(("dump", arguments)) => dump::run(arguments),
        Some(("durations", arguments)) => durations::run(arguments),
        Some(("times", arguments)) => times::run(arguments),
        Some(("merge", arguments)) => merge::run(arguments),
        Some(("report", arguments)) => report::run(arguments),
        Some(("stats", arguments)) => stats::run(arguments),
        Some((READ_SYMBOLS, _)) => read_symbols::run(),
        _ => clap::Error::raw(ErrorKind::MissingSubcommand, "a command is missing\n").exit(),
    };
    match result {
        Ok(code) => code,
        // The program that reads the output has closed the pipe.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            complain(&failure);
            ExitCode::FAILURE
        }
    }
}
