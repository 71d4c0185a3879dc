//! The command line.
//!
//! Functions build the command line, since clap's derive macros allow lints that this workspace
//! forbids.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::{completions, doctor, inf, manifest, package, recipes};

/// Returns an argument that is required or has a default.
pub fn required<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Result<T> {
    optional(matches, name)?.with_context(|| format!("the argument {name} is missing"))
}

/// Returns an argument, or `None` if the command line does not have it.
pub fn optional<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    name: &str,
) -> Result<Option<T>> {
    let value = matches.try_get_one::<T>(name).with_context(|| {
        format!("cannot read the argument {name}: its type is not the declared one")
    })?;
    Ok(value.cloned())
}

/// Returns the values of an argument that may be given several times.
pub fn several<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Vec<T> {
    let values = matches.get_many(name);
    values.into_iter().flatten().cloned().collect()
}

/// Returns the command line, as cargo starts it: `cargo-etw etw …`.
pub fn command() -> Command {
    Command::new("cargo")
        .bin_name("cargo")
        .subcommand_required(true)
        .subcommand(
            Command::new("etw")
                .about("Build drivers that use wdk-etw, and write their manifests, INF files, tracing instructions and packages")
                .version(env!("CARGO_PKG_VERSION"))
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(build())
                .subcommand(manifest::command())
                .subcommand(inf::command())
                .subcommand(recipes::command())
                .subcommand(package::command())
                .subcommand(doctor::command())
                .subcommand(completions::command()),
        )
}

/// Returns the command line of `cargo etw build`.
fn build() -> Command {
    Command::new("build")
        .about("Build a driver's image (.sys) and symbols (.pdb) without the WDK")
        .arg(flag("release", "Build with optimizations, as for a release").short('r'))
        .arg(
            text("machine", "MACHINE", "The processor that the driver is for")
                .default_value("x64")
                .value_parser(["x64", "arm64"]),
        )
        .arg(
            text(
                "package",
                "NAME",
                "The driver's package; needed where the workspace has several drivers",
            )
            .short('p'),
        )
        .arg(path(
            "manifest-path",
            "FILE",
            "The Cargo.toml of the driver or of its workspace",
        ))
        .arg(
            text(
                "message-format",
                "FORMAT",
                "The form of the messages: for people, or cargo's JSON with a message for the image",
            )
            .default_value("human")
            .value_parser(["human", "json"]),
        )
}

/// Returns a required file argument, by its position.
pub fn file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .help(help)
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
}

/// Returns an optional file argument, by its position.
pub fn optional_file(name: &'static str, help: &'static str) -> Arg {
    file(name, help).required(false)
}

/// Returns a path argument, by its name.
pub fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    text(name, value, help).value_parser(value_parser!(PathBuf))
}

/// Returns a string argument, by its name.
pub fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).value_name(value)
}

/// Returns the argument for the command that a written file names as its generator.
pub fn written_by(usual: &'static str) -> Arg {
    text(
        "command",
        "COMMAND",
        "The command that the file's first comment names as its generator",
    )
    .default_value(usual)
}

/// Returns the argument for the form of a command's result.
pub fn message_format() -> Arg {
    text(
        "message-format",
        "FORMAT",
        "The form of the result: for people, or a JSON message on standard output",
    )
    .default_value("human")
    .value_parser(["human", "json"])
}

/// Returns an argument without a value.
pub fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .help(help)
        .action(ArgAction::SetTrue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn an_argument_that_is_missing_is_named() {
        let error = command()
            .try_get_matches_from(["cargo-etw", "etw", "manifest", "import"])
            .unwrap_err()
            .to_string();
        assert!(error.contains("<FILE>"), "{error}");
    }
}
