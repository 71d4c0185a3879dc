//! The command line.
//!
//! Functions build the command line, since clap's derive macros allow lints that this workspace
//! forbids.

use clap::Command;

use crate::{
    completions, doctor, inf, manifest,
    options::{flag, path, text},
    package, recipes,
};

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
