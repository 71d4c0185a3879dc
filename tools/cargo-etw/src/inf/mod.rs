//! `cargo etw inf`: writes INF files, and checks them against the driver.

mod check;
mod driver;
mod examine;
mod new;
pub mod source;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{ArgMatches, Command};

use crate::{
    options::{file, flag, message_format, optional_file, path, required, text},
    selected_driver,
};

pub use self::{
    check::{check_text, expected, mode, mode_argument},
    driver::{description, driver_version, framework},
};

/// Returns the command line.
pub fn command() -> Command {
    let new = Command::new("new")
        .about("Write the driver's unstamped INF file (.inx)")
        .arg(text(
            "hardware-id",
            "ID",
            "The device's hardware ID [default: Root\\ followed by the driver's name]",
        ))
        .arg(
            flag(
                "primitive",
                "Write the file of a driver without a device, a primitive driver [default: for a WDM driver \
                 without an AddDevice routine in its last built image, or without such an image]",
            )
            .conflicts_with("hardware-id"),
        )
        .arg(text("class", "NAME", "The device's setup class").default_value(new::CLASS))
        .arg(text(
            "company",
            "NAME",
            "The provider and manufacturer [default: the package's first author, or its name]",
        ))
        .arg(path(
            "out",
            "FILE",
            "The file to write [default: NAME.inx beside the driver's Cargo.toml]",
        ))
        .arg(flag("force", "Replace an existing file"));
    let check = Command::new("check")
        .about("Check the driver's INF file against the rules of infverif and against the driver")
        .arg(optional_file(
            "inf",
            "The INF file, stamped (.inf) or not (.inx) [default: the driver's]",
        ))
        .arg(path(
            "image",
            "FILE",
            "The driver's image [default: the last one that `cargo etw build` built, if any]",
        ))
        .arg(text("hardware-id", "ID", "The hardware ID that the file must list"))
        .arg(mode_argument())
        .arg(message_format());
    let examine = Command::new("examine")
        .about("Load an image in the stand-in kernel, and print the values that an INF file must match")
        .hide(true)
        .arg(file("image", "The driver's image"));
    Command::new("inf")
        .about("Write and check INF files")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(selected_driver::arguments(new))
        .subcommand(selected_driver::arguments(check))
        .subcommand(examine)
}

/// Runs the command.
pub fn run(name: &str, matches: &ArgMatches) -> Result<()> {
    match name {
        "new" => new::run(matches),
        "check" => check::run(matches),
        "examine" => {
            println!("{}", examine::examine(&required::<PathBuf>(matches, "image")?)?);
            Ok(())
        }
        other => bail!("`cargo etw inf` has no command {other}"),
    }
}
