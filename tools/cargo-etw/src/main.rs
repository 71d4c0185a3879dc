//! `cargo etw`: the commands for driver authors who use `wdk-etw`.
//!
//! Every command is about the driver at hand, and needs neither Windows nor the WDK.

mod arguments;
mod at_hand;
mod build;
mod completions;
mod doctor;
mod inf;
mod manifest;
mod options;
mod package;
mod progress;
mod recipes;
mod source;

use std::{env, ffi::OsString, process::ExitCode};

use anyhow::{Result, bail};
use clap::ArgMatches;
use driver_build::link;

use crate::options::{optional, required};

fn main() -> ExitCode {
    // rustc runs this program as the linker while it builds a driver.
    if let Some(code) = link::run_if_asked() {
        return code;
    }
    let matches = arguments::command().get_matches_from(words());
    match run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(matches: &ArgMatches) -> Result<()> {
    let (_, matches) = subcommand(matches)?;
    match subcommand(matches)? {
        ("build", matches) => build::run(&build::Build {
            package: optional(matches, "package")?,
            manifest: optional(matches, "manifest-path")?,
            machine: required(matches, "machine")?,
            is_release: matches.get_flag("release"),
            message_format: required(matches, "message-format")?,
        }),
        ("manifest", matches) => {
            let (name, matches) = subcommand(matches)?;
            manifest::run(name, matches)
        }
        ("inf", matches) => {
            let (name, matches) = subcommand(matches)?;
            inf::run(name, matches)
        }
        ("recipes", matches) => recipes::run(matches),
        ("package", matches) => package::run(matches),
        ("doctor", matches) => doctor::run(matches),
        ("completions", matches) => completions::run(matches, &arguments::command()),
        (other, _) => bail!("`cargo etw` has no command {other}"),
    }
}

/// Returns the words of the command line as cargo passes them, with `etw` after the program. A user
/// can also run the program itself, without cargo.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = env::args_os().collect();
    if words.get(1).is_none_or(|first| first != "etw") {
        words.insert(words.len().min(1), "etw".into());
    }
    words
}

/// Returns the subcommand, which clap requires.
fn subcommand(matches: &ArgMatches) -> Result<(&str, &ArgMatches)> {
    match matches.subcommand() {
        Some(found) => Ok(found),
        None => bail!("`cargo etw` needs a command; `cargo etw --help` lists the commands"),
    }
}
