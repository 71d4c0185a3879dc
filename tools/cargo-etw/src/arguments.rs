//! The command line.
//!
//! It is built by functions, since clap's derive macros allow lints that this workspace forbids.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

/// Returns an argument that the command line requires or gives a default.
pub fn required<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Result<T> {
    optional(matches, name)?.with_context(|| format!("the argument {name} is missing"))
}

/// Returns an argument, if it is given.
pub fn optional<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    name: &str,
) -> Result<Option<T>> {
    let value = matches
        .try_get_one::<T>(name)
        .with_context(|| format!("the argument {name} has another type"))?;
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
                .about("Manifests, INF files, recipes and packages of drivers that use wdk-etw")
                .version(env!("CARGO_PKG_VERSION"))
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(manifest())
                .subcommand(inf())
                .subcommand(recipes())
                .subcommand(package()),
        )
}

/// `cargo etw manifest`.
fn manifest() -> Command {
    Command::new("manifest")
        .about("Write, check, compile and import instrumentation manifests")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("write")
                .about("Write the manifest of a declaration")
                .arg(file("declaration", "The source file with the declaration"))
                .arg(path("out", "FILE", "The manifest").required(true))
                .arg(
                    text("image", "PATH", "The driver's image where it is installed")
                        .required(true),
                )
                .arg(written_by("cargo etw manifest write"))
                .arg(flag("check", "Only say whether the file is up to date")),
        )
        .subcommand(
            Command::new("check")
                .about("Say whether a declaration or manifest decodes what an older one did")
                .arg(path("base", "FILE", "The older one: a .man or a .rs").required(true))
                .arg(file("now", "The newer one: a .man or a .rs")),
        )
        .subcommand(
            Command::new("compile")
                .about("Make the resources of a .man, or of a .rs with a declaration")
                .arg(file("file", "The manifest, or the source"))
                .arg(
                    path("out", "FOLDER", "The folder that the resources go to")
                        .default_value("target/manifest"),
                )
                .arg(
                    text(
                        "format",
                        "N",
                        "The version of WEVT_TEMPLATE; old SDKs made 3",
                    )
                    .default_value("5")
                    .value_parser(["3", "5"]),
                ),
        )
        .subcommand(
            Command::new("import")
                .about("Write the declaration of a manifest's providers in Rust")
                .arg(file("file", "The manifest"))
                .arg(path(
                    "out",
                    "FILE",
                    "The source file; without it, the standard output",
                )),
        )
}

/// `cargo etw inf`.
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

/// `cargo etw recipes`.
fn recipes() -> Command {
    Command::new("recipes")
        .about("Write how to trace a driver with the tools of Windows, from its declaration")
        .arg(file("declaration", "The source file with the declaration"))
        .arg(path("text", "FILE", "The recipes, a Markdown file").required(true))
        .arg(
            path(
                "profile",
                "FILE",
                "The profile for Windows Performance Recorder, a .wprp file",
            )
            .required(true),
        )
        .arg(
            text(
                "image",
                "NAME",
                "The image's file name, such as contoso.sys",
            )
            .required(true),
        )
        .arg(text("session", "NAME", "The name of sessions and trace files").default_value("trace"))
        .arg(text(
            "title",
            "TEXT",
            "The text's title; without it, the provider's name is in the title",
        ))
        .arg(text(
            "guide",
            "LINK",
            "A link to the text that says how the driver is installed",
        ))
        .arg(text(
            "client",
            "PROGRAM",
            "A program with the commands `trace` and `record`, to write recipes for",
        ))
        .arg(text("reader", "COMMAND", "The command that reads .etl files").default_value("etl"))
        .arg(written_by("cargo etw recipes"))
        .arg(flag("check", "Only say whether the files are up to date"))
}

/// `cargo etw package`.
fn package() -> Command {
    let command = Command::new("package")
        .about("Make a driver package for a test machine: stamped, checked, signed, as a zip")
        .arg(path("inx", "FILE", "The INF file before it is stamped").required(true))
        .arg(
            text(
                "driver-version",
                "A.B.C.D",
                "The driver's version, four numbers",
            )
            .required(true),
        )
        .arg(
            path(
                "certificate",
                "FOLDER",
                "The folder of the test certificate; it is made if there is none",
            )
            .required(true),
        )
        .arg(
            text(
                "certificate-name",
                "TEXT",
                "The name in a certificate that is made",
            )
            .default_value("wdk-etw test certificate"),
        )
        .arg(text("description", "TEXT", "What the signatures call the driver").required(true))
        .arg(
            path(
                "text",
                "FILE",
                "A further text, which gets the line ends of Windows; may be given several times",
            )
            .action(ArgAction::Append),
        )
        .arg(
            path("file", "FILE", "A further file; may be given several times")
                .action(ArgAction::Append),
        )
        .arg(path("out", "FILE", "The archive").required(true));
    driver(command)
}

/// Adds what says which driver an INF file is for.
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

/// A file that must be given, by its place.
fn file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .help(help)
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
}

/// A path, by its name.
fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    text(name, value, help).value_parser(value_parser!(PathBuf))
}

/// A text, by its name.
fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).value_name(value)
}

/// The command that a written file names as its origin.
fn written_by(usual: &'static str) -> Arg {
    text(
        "command",
        "COMMAND",
        "The command that the file names as the one that writes it",
    )
    .default_value(usual)
}

/// An argument without a value.
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
