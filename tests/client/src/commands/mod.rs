//! The client's commands, one module for each family.

mod control;
mod events;
mod install;
mod scenarios;
mod send;
mod status;

use crate::{arguments::Command, error::Failure};

/// Runs a command.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Scenarios(options) => scenarios::run(options),
        Command::Install(options) => install::install(options),
        Command::Uninstall(options) => install::uninstall(options),
        Command::Trace(options) => events::trace(options),
        Command::Record(options) => events::record(options),
        Command::Send(options) => send::run(&options.request),
        Command::Status => status::run(),
        Command::Enable(options) => control::enable(options),
        Command::Disable(options) => control::disable(options),
        Command::CaptureState(options) => control::capture_state(options),
        Command::Group(options) => control::group(options),
        Command::Disallow(options) => control::disallow(options),
    }
}
