//! `cargo xtask demo`: builds the sample driver, traces it and shows the decoded events.

use std::{path::Path, process::Command};

use anyhow::Result;

use driver_build::toolchain::{Machine, Toolchain};

use crate::{
    build::{self, Profile},
    process::{pass_on, root, run_quietly},
    progress::step,
    sample::DRIVER,
};

/// Runs the demo, and writes the sessions' files to the folder `out`.
pub fn run(out: &Path) -> Result<()> {
    let toolchain =
        step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64))?;
    eprintln!("       {}", toolchain.describe());
    let title = format!("Building {}.sys for {}", DRIVER.1, toolchain.target());
    let sys = step(&title, || build::build(&toolchain, DRIVER, Profile::Release))?;
    step("Building the stand-in kernel", || run_quietly(&mut tour("build")))?;
    pass_on(tour("run").arg("--quiet").arg("--").arg(sys).arg(out))
}

/// Returns a cargo command for the program that runs the sample driver and shows its events. It
/// runs in the user's folder, to which `--out` is relative.
fn tour(chore: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .args([chore, "--locked", "--package", "etw-scenarios"])
        .args(["--features", "stand-in", "--bin", "tour"])
        .arg("--manifest-path")
        .arg(root().join("Cargo.toml"));
    cargo
}
