//! Times the benchmark's loops on this machine.
//!
//! `bench-timing IMAGE` maps the benchmark's image into this process, binds its imports to ETW
//! routines that do nothing, and calls the loops that the image exports. The measured code is the
//! code compiled for Windows. The output is JSON with one figure per round; `cargo xtask bench`
//! computes medians. With `--check`, the program only checks that each loop writes the expected
//! events.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod image;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod measure;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod ntoskrnl;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod processors;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod threads;

use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn run() -> anyhow::Result<()> {
    use std::path::PathBuf;

    use anyhow::Context as _;
    use clap::{Arg, ArgAction, Command, value_parser};

    let matches = Command::new("bench-timing")
        .about("Time the benchmark's loops on this machine's processors")
        .arg(
            Arg::new("image")
                .help("The benchmark's image, built with the feature `timing`")
                .value_name("IMAGE")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("check")
                .long("check")
                .help("Only check that each loop writes the expected events")
                .action(ArgAction::SetTrue),
        )
        .get_matches();
    let path = matches.get_one::<PathBuf>("image").context("no image is named")?;
    measure::check(path)?;
    if !matches.get_flag("check") {
        println!("{:#}", measure::measure(path)?);
    }
    Ok(())
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn run() -> anyhow::Result<()> {
    anyhow::bail!(
        "cannot time the loops on this system: the stand-in kernel maps images on x86-64 Linux only"
    )
}
