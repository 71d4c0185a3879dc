//! The command line and its commands.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgMatches, Command, value_parser};
use standin_kernel::{
    ProvidedRoutine,
    run::{Format, RunConfig, add_arguments, etl_here},
};

fn command() -> Command {
    let run = Command::new("run")
        .about("Load a driver, run a script, unload it, and show and write its events")
        .arg(
            Arg::new("driver")
                .value_name("DRIVER.sys")
                .help("The driver to run; a .pdb file beside it provides function names and lines")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        );
    Command::new("standin-kernel")
        .about("Run Windows drivers (.sys) in the stand-in kernel")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(add_arguments(run))
        .subcommand(
            Command::new("routines")
                .about("List the routines that a driver can call")
                .long_about(
                    "Lists the routines that a driver can call: the module, the name, the highest IRQL, \
                     and the parameters in the WDK's headers.",
                ),
        )
}

/// Returns the list of the routines that a driver can call.
fn routines() -> String {
    let mut all = ProvidedRoutine::all();
    all.sort_by_key(|one| (one.module, one.name));
    let line = |one: &ProvidedRoutine| {
        let parameters = one.parameters().collect::<Vec<_>>().join(", ");
        format!("{} {} {} ({parameters})\n", one.module, one.name, one.limit)
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    lines.concat() + "Called by compiled code: " + &ProvidedRoutine::implicit().join(", ") + "\n"
}

/// Prints the routines that a driver can call.
fn list_routines() -> Result<bool> {
    match io::stdout().write_all(routines().as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot print the routines")
        }
        _ => Ok(true),
    }
}

/// Runs a driver. Returns `true` if the run reported nothing except notes.
fn run_driver(matches: &ArgMatches) -> Result<bool> {
    let sys = matches.get_one::<PathBuf>("driver");
    let sys = sys.context("the driver's path is missing")?;
    let run = RunConfig::from_arguments(matches, sys, etl_here(sys))?;
    run.run_in_child(Format::from_arguments(matches)?)
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = match matches.subcommand() {
        Some(("run", matches)) => run_driver(matches),
        Some(("routines", _)) => list_routines(),
        // clap rejects every other command.
        _ => Err(anyhow!("unknown command")),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
