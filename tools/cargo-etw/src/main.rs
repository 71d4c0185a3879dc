//! `cargo etw`: commands for authors of drivers that use `wdk-etw`.
//!
//! Commands work on the current driver and need neither Windows nor the WDK. The exception is
//! `trace`, which traces an installed driver on Windows.

mod arguments;
mod build;
mod completions;
mod configuration;
#[cfg(unix)]
mod decoded;
mod doctor;
mod inf;
mod manifest;
mod new;
mod options;
mod package;
mod recipes;
mod requirement;
#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
mod run;
mod selected_driver;
mod source;
mod trace;
#[cfg(unix)]
mod tracer;
#[cfg(unix)]
mod vm;
mod windows_requirements;
mod wpp;

use std::{env, ffi::OsString, process::ExitCode};

use anyhow::{Result, bail};
use clap::ArgMatches;
use driver_build::link;

use crate::options::{optional, required};

fn main() -> ExitCode {
    // rustc runs this program as the linker when it builds a driver.
    if let Some(code) = link::run_if_asked() {
        return code;
    }
    let matches = arguments::command().get_matches_from(words());
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
        // The commands whose exit code reflects their result.
        ("run", matches) => run_driver(matches),
        ("vm", matches) => run_vm(matches),
        (name, matches) => run_other(name, matches).map(|()| ExitCode::SUCCESS),
    }
}

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
fn run_driver(matches: &ArgMatches) -> Result<ExitCode> {
    run::run(matches)
}

#[cfg(not(all(target_arch = "x86_64", any(target_os = "linux", windows))))]
fn run_driver(_: &ArgMatches) -> Result<ExitCode> {
    bail!(
        "cannot run a driver on this system: the stand-in kernel requires x86-64 Linux or Windows"
    )
}

#[cfg(unix)]
fn run_vm(matches: &ArgMatches) -> Result<ExitCode> {
    vm::run(matches)
}

#[cfg(not(unix))]
fn run_vm(_: &ArgMatches) -> Result<ExitCode> {
    bail!(
        "cannot run a virtual machine on this system: QEMU is controlled through Unix sockets; on Windows, use WSL 2"
    )
}

fn run_other(name: &str, matches: &ArgMatches) -> Result<()> {
    match (name, matches) {
        ("new", matches) => new::run(&new::New {
            folder: required(matches, "folder")?,
            name: optional(matches, "name")?,
            provider: optional(matches, "provider")?,
            source: wdk_etw(matches)?,
        }),
        ("build", matches) => build::run(matches),
        ("manifest", matches) => {
            let (name, matches) = subcommand(matches)?;
            manifest::run(name, matches)
        }
        ("import-wpp", matches) => wpp::run(matches),
        ("inf", matches) => {
            let (name, matches) = subcommand(matches)?;
            inf::run(name, matches)
        }
        ("recipes", matches) => recipes::run(matches),
        ("package", matches) => package::run(matches),
        ("trace", matches) => trace::run(matches),
        ("doctor", matches) => doctor::run(matches),
        ("completions", matches) => completions::run(matches, &arguments::command()),
        (other, _) => bail!("`cargo etw` has no command {other}"),
    }
}

/// Returns the command line as cargo passes it, with `etw` after the program name. Users can also
/// run the program without cargo.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = env::args_os().collect();
    if words.get(1).is_none_or(|first| first != "etw") {
        words.insert(words.len().min(1), "etw".into());
    }
    words
}

/// Reads the arguments that specify the source of wdk-etw for a new driver.
fn wdk_etw(matches: &ArgMatches) -> Result<new::Wanted> {
    let rev = optional(matches, "rev")?.map(new::Version::Rev);
    let tag = optional(matches, "tag")?.map(new::Version::Tag);
    let branch = optional(matches, "branch")?.map(new::Version::Branch);
    Ok(new::Wanted {
        path: optional(matches, "path")?,
        git: optional(matches, "git")?,
        version: rev.or(tag).or(branch),
    })
}

/// Returns the subcommand, which clap requires.
fn subcommand(matches: &ArgMatches) -> Result<(&str, &ArgMatches)> {
    match matches.subcommand() {
        Some(found) => Ok(found),
        None => bail!("`cargo etw` needs a command; `cargo etw --help` lists the commands"),
    }
}
