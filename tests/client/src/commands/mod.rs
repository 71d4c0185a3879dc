//! What the client does, a module for each family of commands.

mod control;
mod events;
mod install;
mod scenarios;
mod send;
mod status;

use clap::ArgMatches;

use crate::error::Failure;

/// Does what the command line says.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("scenarios", arguments)) => scenarios::run(arguments),
        Some(("trace", arguments)) => events::trace(arguments),
        Some(("record", arguments)) => events::record(arguments),
        Some(("send", arguments)) => send::run(arguments),
        Some(("status", _)) => status::run(),
        Some((command @ ("install" | "uninstall"), arguments)) => install::run(command, arguments),
        Some((command, arguments)) => control::run(command, arguments),
        // clap asks for a command.
        None => Ok(()),
    }
}
