//! The command line.
//!
//! The command line is built without clap's derive macros, because their code allows lints that
//! this workspace forbids.

use clap::{ArgAction, Command};

use crate::{
    completions, doctor, inf, manifest,
    options::{file, flag, path, text},
    package, recipes, trace, wpp,
};

/// Returns the command line as cargo starts it: `cargo-etw etw …`.
pub fn command() -> Command {
    Command::new("cargo")
        .bin_name("cargo")
        .subcommand_required(true)
        .subcommand(
            Command::new("etw")
                .about("Build and run drivers that use wdk-etw, and write their manifests, INF files, tracing instructions and packages")
                .version(env!("CARGO_PKG_VERSION"))
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(new())
                .subcommand(build())
                .subcommand(run())
                .subcommand(manifest::command())
                .subcommand(wpp::command())
                .subcommand(inf::command())
                .subcommand(recipes::command())
                .subcommand(package::command())
                .subcommand(trace::command())
                .subcommand(vm())
                .subcommand(doctor::command())
                .subcommand(completions::command()),
        )
}

/// Returns the command line of `cargo etw new`.
fn new() -> Command {
    let version = |name: &'static str, help: &'static str| {
        text(name, "NAME", help).requires("git").group("version").value_name(match name {
            "rev" => "COMMIT",
            _ => "NAME",
        })
    };
    Command::new("new")
        .about("Create the folder of a new KMDF driver with an ETW provider and a test")
        .arg(
            file("folder", "The folder to create; its name becomes the package's")
                .value_name("PATH"),
        )
        .arg(text("name", "NAME", "The package's name [default: the folder's name]"))
        .arg(text(
            "provider",
            "NAME",
            "The ETW provider's name, which is hashed to its GUID [default: derived from the \
             package's name, such as Contoso.Sensor from contoso-sensor]",
        ))
        .arg(
            path(
                "path",
                "FOLDER",
                "Depend on wdk-etw in a checkout [default: the source that cargo-etw was installed \
                 from]",
            )
            .conflicts_with("git"),
        )
        .arg(text("git", "URL", "Depend on wdk-etw in a git repository"))
        .arg(version("rev", "The commit in the repository"))
        .arg(version("tag", "The tag in the repository"))
        .arg(version("branch", "The branch in the repository"))
}

/// Returns the command line of `cargo etw build`.
fn build() -> Command {
    let command = Command::new("build")
        .about("Build a driver's image (.sys) and symbols (.pdb) without the WDK")
        .arg(
            text("machine", "MACHINE", "The processor architecture to build for")
                .default_value("x64")
                .value_parser(["x64", "arm64"]),
        )
        .arg(
            text(
                "message-format",
                "FORMAT",
                "The message format: for people, or cargo's JSON with a message for the image",
            )
            .default_value("human")
            .value_parser(["human", "json"]),
        );
    what_to_build(command)
}

/// Returns the command line of `cargo etw run`.
#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
fn run() -> Command {
    let command = Command::new("run")
        .about("Build a driver, run it in the stand-in kernel, and show and write its events")
        .long_about(
            "Build a driver, run it in the stand-in kernel, and show and write its events.\n\n\
             Every provider that the driver registers is enabled. The exit code is 1 if the run \
             reports a warning or an error.",
        )
        .arg(
            path("image", "FILE", "Run this image (.sys) instead of building one")
                .conflicts_with_all(OF_BUILD),
        );
    standin_kernel::run::add_arguments(what_to_build(command))
}

/// Returns the command line of `cargo etw run` for systems that do not support it.
#[cfg(not(all(target_arch = "x86_64", any(target_os = "linux", windows))))]
fn run() -> Command {
    Command::new("run").about("Run a driver in the stand-in kernel; needs x86-64 Linux or Windows")
}

/// Returns the command line of `cargo etw vm`.
#[cfg(unix)]
fn vm() -> Command {
    crate::vm::command()
}

/// Returns the command line of `cargo etw vm` for systems that do not support it.
#[cfg(not(unix))]
fn vm() -> Command {
    Command::new("vm").about("Run a driver's test stages on Windows in QEMU; needs Linux")
}

/// The names of a build's arguments.
#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
const OF_BUILD: [&str; 14] = [
    "release", "profile", "package", "manifest-path", "target-dir", "features", "all-features",
    "no-default-features", "locked", "offline", "frozen", "verbose", "quiet", "install",
];

/// Adds the arguments that select the driver to build, and cargo's options.
fn what_to_build(command: Command) -> Command {
    command
        .arg(
            flag("release", "Build in release mode, with optimizations")
                .short('r')
                .conflicts_with("profile"),
        )
        .arg(text("profile", "NAME", "Build with this profile [default: dev]"))
        .arg(
            text(
                "package",
                "NAME",
                "The driver's package; needed if the workspace has several drivers",
            )
            .short('p'),
        )
        .arg(path("manifest-path", "FILE", "The Cargo.toml of the driver or of its workspace"))
        .arg(path("target-dir", "FOLDER", "The folder for build output [default: cargo's]"))
        .arg(
            text(
                "features",
                "FEATURES",
                "The features to build with, separated by commas or spaces",
            )
            .short('F')
            .action(ArgAction::Append),
        )
        .arg(flag("all-features", "Build with all features"))
        .arg(flag("no-default-features", "Build without the default features"))
        .arg(flag("locked", "Fail if Cargo.lock is not up to date"))
        .arg(flag("offline", "Do not use the network"))
        .arg(flag("frozen", "Same as --locked and --offline"))
        .arg(
            flag("verbose", "Show the commands that cargo runs; twice for more")
                .short('v')
                .action(ArgAction::Count),
        )
        .arg(
            flag("quiet", "Show only warnings and errors of the build")
                .short('q')
                .conflicts_with("verbose"),
        )
        .arg(flag(
            "install",
            "Install the packages of the operating system that building needs, without asking",
        ))
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
