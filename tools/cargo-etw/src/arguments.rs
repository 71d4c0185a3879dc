//! The command line.
//!
//! Functions build the command line, since clap's derive macros allow lints that this workspace
//! forbids.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

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
                .about("Build and run drivers that use wdk-etw, and write their manifests, INF files, tracing instructions and packages")
                .version(env!("CARGO_PKG_VERSION"))
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(new())
                .subcommand(build())
                .subcommand(run())
                .subcommand(manifest())
                .subcommand(inf())
                .subcommand(recipes())
                .subcommand(package()),
        )
}

/// Returns the command line of `cargo etw new`.
fn new() -> Command {
    let version = |name: &'static str, help: &'static str| {
        text(name, "NAME", help)
            .requires("git")
            .group("version")
            .value_name(match name {
                "rev" => "COMMIT",
                _ => "NAME",
            })
    };
    Command::new("new")
        .about("Make the folder of a new KMDF driver with an ETW provider and a test")
        .arg(
            Arg::new("folder")
                .help("The folder to make; its name is the package's")
                .value_name("PATH")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(text(
            "name",
            "NAME",
            "The package's name [default: the folder's name]",
        ))
        .arg(text(
            "provider",
            "NAME",
            "The ETW provider's name, of which its GUID is the hash [default: made of the package's \
             name, such as Contoso.Sensor of contoso-sensor]",
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
            text("machine", "MACHINE", "The processor that the driver is for")
                .default_value("x64")
                .value_parser(["x64", "arm64"]),
        )
        .arg(
            text(
                "message-format",
                "FORMAT",
                "The form of the messages: for people, or cargo's JSON with a message for the image",
            )
            .default_value("human")
            .value_parser(["human", "json"]),
        );
    what_to_build(command)
}

/// Returns the command line of `cargo etw run`.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn run() -> Command {
    let command = Command::new("run")
        .about("Build a driver, run it in the stand-in kernel, and show and write its events")
        .long_about(
            "Build a driver, run it in the stand-in kernel, and show and write its events.\n\n\
             Every provider that the driver registers is enabled. The exit code is 1 if anything was \
             found but notes.",
        )
        .arg(
            path("image", "FILE", "Run this image (.sys) and build nothing")
                .conflicts_with_all(["package", "manifest-path", "release"]),
        );
    etw_testkernel::run::arguments(what_to_build(command))
}

/// Returns the command line of `cargo etw run` where it cannot run anything.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn run() -> Command {
    Command::new("run").about("Run a driver in the stand-in kernel; needs x86-64 Linux")
}

/// Adds the arguments that name the driver to build and its profile.
fn what_to_build(command: Command) -> Command {
    command
        .arg(flag("release", "Build with optimizations, as for a release").short('r'))
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
}

/// Returns the command line of `cargo etw manifest`.
fn manifest() -> Command {
    Command::new("manifest")
        .about("Write, check, compile and import instrumentation manifests")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("write")
                .about("Write a declaration's manifest")
                .arg(file("declaration", "The source file with the declaration"))
                .arg(path("out", "FILE", "The manifest to write").required(true))
                .arg(
                    text(
                        "image",
                        "PATH",
                        "The path of the driver's image on the machine that it is installed on",
                    )
                    .required(true),
                )
                .arg(written_by("cargo etw manifest write"))
                .arg(flag(
                    "check",
                    "Report whether the file is up to date, without writing it",
                )),
        )
        .subcommand(
            Command::new("check")
                .about(
                    "Check that a declaration or manifest still decodes the events of an older one",
                )
                .arg(
                    path(
                        "base",
                        "FILE",
                        "The older manifest (.man) or declaration (.rs)",
                    )
                    .required(true),
                )
                .arg(file(
                    "now",
                    "The newer manifest (.man) or declaration (.rs)",
                )),
        )
        .subcommand(
            Command::new("compile")
                .about("Compile a manifest (.man) or a declaration (.rs) to resources")
                .arg(file(
                    "file",
                    "The manifest, or the source file with the declaration",
                ))
                .arg(
                    path("out", "FOLDER", "The folder to write the resources to")
                        .default_value("target/manifest"),
                )
                .arg(
                    text(
                        "format",
                        "N",
                        "The version of the WEVT_TEMPLATE format; mc.exe of old SDKs writes version 3",
                    )
                    .default_value("5")
                    .value_parser(["3", "5"]),
                ),
        )
        .subcommand(
            Command::new("import")
                .about("Write a Rust declaration of a manifest's providers")
                .arg(file("file", "The manifest"))
                .arg(path(
                    "out",
                    "FILE",
                    "The source file to write [default: standard output]",
                )),
        )
}

/// Returns the command line of `cargo etw inf`.
fn inf() -> Command {
    let check = Command::new("check")
        .about("Check a stamped INF file against the driver that it installs")
        .arg(file("inf", "The INF file"));
    Command::new("inf")
        .about("Check INF files")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(driver(check))
}

/// Returns the command line of `cargo etw recipes`.
fn recipes() -> Command {
    Command::new("recipes")
        .about("Write instructions for tracing a driver with Windows tools from its declaration")
        .arg(file("declaration", "The source file with the declaration"))
        .arg(
            path(
                "text",
                "FILE",
                "The Markdown file to write the instructions to",
            )
            .required(true),
        )
        .arg(
            path(
                "profile",
                "FILE",
                "The .wprp file to write the Windows Performance Recorder profile to",
            )
            .required(true),
        )
        .arg(
            text(
                "image",
                "NAME",
                "The driver's file name, such as contoso.sys",
            )
            .required(true),
        )
        .arg(
            text(
                "session",
                "NAME",
                "The name of the sessions and trace files",
            )
            .default_value("trace"),
        )
        .arg(text(
            "title",
            "TEXT",
            "The title of the instructions [default: `Trace` and the provider's name]",
        ))
        .arg(text(
            "guide",
            "LINK",
            "A Markdown link to the installation instructions",
        ))
        .arg(text(
            "client",
            "PROGRAM",
            "A program with the commands `trace` and `record` to include in the instructions",
        ))
        .arg(text("reader", "COMMAND", "The command that reads .etl files").default_value("etl"))
        .arg(written_by("cargo etw recipes"))
        .arg(flag(
            "check",
            "Report whether the files are up to date, without writing them",
        ))
}

/// Returns the command line of `cargo etw package`.
fn package() -> Command {
    let command = Command::new("package")
        .about("Stamp, check and sign a driver package for a test machine, and write it as a .zip file")
        .arg(path("inx", "FILE", "The unstamped INF file (.inx)").required(true))
        .arg(
            text(
                "driver-version",
                "A.B.C.D",
                "The driver's version",
            )
            .required(true),
        )
        .arg(
            path(
                "certificate",
                "FOLDER",
                "The folder of the test certificate, which is created if it does not exist",
            )
            .required(true),
        )
        .arg(
            text(
                "certificate-name",
                "TEXT",
                "The name in a new certificate",
            )
            .default_value("wdk-etw test certificate"),
        )
        .arg(text("description", "TEXT", "The driver's description in the signatures").required(true))
        .arg(
            path(
                "text",
                "FILE",
                "An additional text file, packed with Windows line endings; may be given several times",
            )
            .action(ArgAction::Append),
        )
        .arg(
            path("file", "FILE", "An additional file; may be given several times")
                .action(ArgAction::Append),
        )
        .arg(path("out", "FILE", "The .zip file to write").required(true));
    driver(command)
}

/// Adds the arguments that name the driver of an INF file.
fn driver(command: Command) -> Command {
    command
        .arg(file("image", "The driver's image, a .sys file"))
        .arg(
            path(
                "declaration",
                "FILE",
                "The source file with the provider's declaration",
            )
            .required(true),
        )
        .arg(text("hardware-id", "ID", "The device's hardware id").required(true))
}

/// Returns a required file argument, by its position.
fn file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .help(help)
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
}

/// Returns a path argument, by its name.
fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    text(name, value, help).value_parser(value_parser!(PathBuf))
}

/// Returns a string argument, by its name.
fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).value_name(value)
}

/// Returns the argument for the command that a written file names as its generator.
fn written_by(usual: &'static str) -> Arg {
    text(
        "command",
        "COMMAND",
        "The command that the file's first comment names as its generator",
    )
    .default_value(usual)
}

/// Returns an argument without a value.
fn flag(name: &'static str, help: &'static str) -> Arg {
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
            .try_get_matches_from(["cargo-etw", "etw", "inf", "check", "a.inf", "a.sys"])
            .unwrap_err()
            .to_string();
        assert!(error.contains("--declaration <FILE>"), "{error}");
        assert!(error.contains("--hardware-id <ID>"), "{error}");
    }
}
