//! The client's commands, one module for each family.

mod control;
mod events;
mod install;
mod probes;
mod scenarios;
mod send;
mod status;

use crate::{arguments::Action, error::Failure};

/// Runs a command.
pub fn run(action: &Action) -> Result<(), Failure> {
    match action {
        Action::Scenarios(options) => scenarios::run(options),
        Action::Probes(options) => probes::run(options),
        Action::Install { inf } => install::install(inf),
        Action::Uninstall { inf } => install::uninstall(inf),
        Action::Trace(options) => events::trace(options),
        Action::Record(options) => events::record(options),
        Action::Send(request) => send::run(request),
        Action::Status => status::run(),
        Action::Enable(options) => control::enable(options),
        Action::Disable(options) => control::disable(options),
        Action::CaptureState(options) => control::capture_state(options),
        Action::Group(options) => control::group(options),
        Action::Disallow(options) => control::disallow(options),
    }
}
