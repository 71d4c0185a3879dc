//! `cargo etw`: the commands for driver authors who use `wdk-etw`.
//!
//! Every command works on the paths that it is given, and needs neither Windows nor the WDK.

mod arguments;
mod build;
mod inf;
mod manifest;
mod new;
mod package;
mod recipes;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod run;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use clap::ArgMatches;
use driver_build::link;
use etw_manifest::resources::Version;

use crate::arguments::{optional, required, several};

fn main() -> ExitCode {
    // rustc runs this program as the linker while it builds a driver.
    if let Some(code) = link::run_if_asked() {
        return code;
    }
    let matches = arguments::command().get_matches();
    match run(&matches) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let (_, matches) = subcommand(matches)?;
    match subcommand(matches)? {
        // The one command that succeeds or fails by what it finds.
        ("run", matches) => run_driver(matches),
        (name, matches) => run_other(name, matches).map(|()| ExitCode::SUCCESS),
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn run_driver(matches: &ArgMatches) -> Result<ExitCode> {
    run::run(matches)
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn run_driver(_: &ArgMatches) -> Result<ExitCode> {
    bail!("cannot run a driver on this system: the stand-in kernel requires x86-64 Linux")
}

fn run_other(name: &str, matches: &ArgMatches) -> Result<()> {
    match (name, matches) {
        ("new", matches) => new::run(&new::New {
            folder: required(matches, "folder")?,
            name: optional(matches, "name")?,
            provider: optional(matches, "provider")?,
            source: source(matches)?,
        }),
        ("build", matches) => build::run(
            &build::Build {
                package: optional(matches, "package")?,
                manifest: optional(matches, "manifest-path")?,
                machine: required(matches, "machine")?,
                is_release: matches.get_flag("release"),
            },
            &required::<String>(matches, "message-format")?,
        ),
        ("manifest", matches) => run_manifest(matches),
        ("inf", matches) => {
            let (_, matches) = subcommand(matches)?;
            inf::check(&required::<PathBuf>(matches, "inf")?, &driver(matches)?)
        }
        ("recipes", matches) => recipes::run(
            &recipes::Recipes {
                declaration: required(matches, "declaration")?,
                text: required(matches, "text")?,
                profile: required(matches, "profile")?,
                image: required(matches, "image")?,
                session: required(matches, "session")?,
                title: optional(matches, "title")?,
                guide: optional(matches, "guide")?,
                client: optional(matches, "client")?,
                reader: required(matches, "reader")?,
                command: required(matches, "command")?,
            },
            matches.get_flag("check"),
        ),
        ("package", matches) => package::run(&package::Package {
            driver: driver(matches)?,
            inx: required(matches, "inx")?,
            version: required(matches, "driver-version")?,
            certificate: required(matches, "certificate")?,
            certificate_name: required(matches, "certificate-name")?,
            description: required(matches, "description")?,
            texts: several(matches, "text"),
            files: several(matches, "file"),
            out: required(matches, "out")?,
        }),
        (other, _) => bail!("`cargo etw` has no command {other}"),
    }
}

fn run_manifest(matches: &ArgMatches) -> Result<()> {
    match subcommand(matches)? {
        ("write", matches) => manifest::write(
            &manifest::Written {
                declaration: required(matches, "declaration")?,
                out: required(matches, "out")?,
                image: required(matches, "image")?,
                command: required(matches, "command")?,
            },
            matches.get_flag("check"),
        ),
        ("check", matches) => manifest::check(
            &required::<PathBuf>(matches, "base")?,
            &required::<PathBuf>(matches, "now")?,
        ),
        ("compile", matches) => {
            let version = match required::<String>(matches, "format")?.as_str() {
                "3" => Version::V3,
                "5" => Version::V5,
                other => bail!("WEVT_TEMPLATE has no version {other}; expected 3 or 5"),
            };
            manifest::compile(
                &required::<PathBuf>(matches, "file")?,
                &required::<PathBuf>(matches, "out")?,
                version,
            )
        }
        ("import", matches) => manifest::import(
            &required::<PathBuf>(matches, "file")?,
            optional::<PathBuf>(matches, "out")?.as_deref(),
        ),
        (other, _) => bail!("`cargo etw manifest` has no command {other}"),
    }
}

/// Reads the arguments that say where a new driver takes wdk-etw from.
fn source(matches: &ArgMatches) -> Result<new::Wanted> {
    let rev = optional(matches, "rev")?.map(new::Version::Rev);
    let tag = optional(matches, "tag")?.map(new::Version::Tag);
    let branch = optional(matches, "branch")?.map(new::Version::Branch);
    Ok(new::Wanted {
        path: optional(matches, "path")?,
        git: optional(matches, "git")?,
        version: rev.or(tag).or(branch),
    })
}

/// Reads the arguments that name the driver of an INF file.
fn driver(matches: &ArgMatches) -> Result<inf::Driver> {
    Ok(inf::Driver {
        image: required(matches, "image")?,
        declaration: required(matches, "declaration")?,
        hardware_id: required(matches, "hardware-id")?,
    })
}

/// Returns the subcommand, which clap requires.
fn subcommand(matches: &ArgMatches) -> Result<(&str, &ArgMatches)> {
    match matches.subcommand() {
        Some(found) => Ok(found),
        None => bail!("`cargo etw` needs a command; `cargo etw --help` lists the commands"),
    }
}
