//! `cargo etw trace`: shows a driver's events on Windows while the driver writes them.
//!
//! The command line, the selection of providers and the output are the same on every system, so
//! that Linux can test them; `windows` controls the session.

#[cfg(any(windows, test))]
mod plan;
#[cfg(any(windows, test))]
mod printer;
#[cfg(windows)]
mod windows;

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::{
    options::{flag, path, text},
    selected_driver,
};

/// Returns the command line.
pub fn command() -> Command {
    let command = Command::new("trace")
        .about("Show a driver's events on Windows as it writes them")
        .long_about(
            "Show a driver's events on Windows as it writes them.\n\n\
             Starts a session for the current driver's providers, or for those that `--provider` \
             and `--group` name, and shows their events like `cargo etw run` until Ctrl+C is \
             pressed; then stops the session. Run it from an elevated prompt. Events are decoded \
             with the driver's declaration or image, or otherwise with the definitions that are \
             registered on this system.",
        );
    let command = sources(command)
        .arg(path("image", "FILE", "Decode events with the resources of this image"))
        .arg(path("man", "FILE", "Decode events with this manifest"))
        .arg(path("etl", "FILE", "Keep the events in this trace file as well"))
        .arg(
            path("file", "FILE", "Show the events of this trace file instead of a session's")
                .conflicts_with_all([
                    "etl", "capture-state", "seconds", "session", "at-boot", "level", "any", "all",
                ]),
        )
        .arg(text("session", "NAME", "The session's name [default: cargo-etw-DRIVER]"))
        .arg(
            text("seconds", "N", "Stop after this many seconds; without it, Ctrl+C stops")
                .value_parser(value_parser!(u64)),
        )
        .arg(flag("tdh", "Show every event as Windows formats it (TDH)"))
        .arg(flag("json", "Print each event as a JSON object on its own line"))
        .arg(
            text(
                "at-boot",
                "STATE",
                "on: have Windows start the session at every boot, before most drivers are \
                 loaded; off: stop that session, no longer start it at boot, and print its trace \
                 file's path",
            )
            .value_parser(["on", "off"])
            .conflicts_with_all(["capture-state", "seconds", "tdh", "json"]),
        );
    selected_driver::arguments(command)
}

/// Adds the arguments that select the providers to trace.
fn sources(command: Command) -> Command {
    let several = |name, help| text(name, "NAME|GUID", help).action(ArgAction::Append);
    let mask = |name, help, usual| {
        Arg::new(name)
            .long(name)
            .help(help)
            .value_name("MASK")
            .default_value(usual)
            .value_parser(number)
    };
    command
        .arg(several(
            "provider",
            "Trace this provider instead of the driver's: a GUID, the name of a provider that is \
             registered on this system, or a name from which the GUID is computed; can be \
             repeated",
        ))
        .arg(several(
            "group",
            "Trace this provider group: a GUID, or a name from which it is computed; can be \
             repeated",
        ))
        .arg(
            text(
                "level",
                "N",
                "The highest level to show: 1 critical, 2 error, 3 warning, 4 information, 5 verbose",
            )
            .default_value("255")
            .value_parser(value_parser!(u8)),
        )
        .arg(mask(
            "any",
            "Show events that have at least one of these keywords, or none at all",
            "0xffffffffffffffff",
        ))
        .arg(mask("all", "Show only events that have all of these keywords, or none at all", "0"))
        .arg(flag("capture-state", "Have the providers write their state first"))
}

/// Parses a decimal number, or a hexadecimal number after 0x.
fn number(text: &str) -> Result<u64, String> {
    text.strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
        .map_err(|error| format!("expected a number such as 3 or 0x3: {error}"))
}

/// Runs the command.
#[cfg(windows)]
pub fn run(matches: &ArgMatches) -> Result<()> {
    windows::run(matches)
}

/// Fails, because the command does not support this system.
#[cfg(not(windows))]
pub fn run(_: &ArgMatches) -> Result<()> {
    anyhow::bail!(
        "`cargo etw trace` needs Windows, where it traces an installed driver; on this system, \
         `cargo etw run` traces a driver in the stand-in kernel"
    )
}
