//! `cargo xtask demo`: from nothing to decoded events.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::{
    build::{self, Profile},
    process::{pass_on, root, run_quietly},
    progress::step,
    toolchain::{Machine, Toolchain},
};

/// Runs the demo; the sessions' files go to the folder `out`.
pub fn run(out: &Path) -> Result<()> {
    let toolchain = step("Finding the cross toolchain", || {
        Toolchain::find_or_install(Machine::X64)
    })?;
    eprintln!("       {}", toolchain.describe());
    let sys = step(
        "Building etw_sample_driver.sys for x86_64-pc-windows-msvc",
        || build::build(&toolchain, build::SAMPLE, Profile::Release),
    )?;
    step("Building the stand-in kernel", || {
        run_quietly(&mut tour("build"))
    })?;
    pass_on(tour("run").arg("--quiet").arg("--").arg(sys).arg(out))
}

/// A cargo command on the program that drives the sample driver and shows what it recorded. It
/// runs in the user's folder, from which `--out` is.
fn tour(chore: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .args([chore, "--locked", "--package", "etw-scenarios"])
        .args(["--features", "stand-in", "--bin", "tour"])
        .arg("--manifest-path")
        .arg(root().join("Cargo.toml"));
    cargo
}
