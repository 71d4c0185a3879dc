//! `cargo xtask questions`: asks the stand-in kernel what no document says about ETW.

use std::{path::Path, process::Command};

use anyhow::Result;

use driver_build::toolchain::{Machine, Toolchain};

use crate::{
    build::{self, Profile, QUESTIONS},
    process::{pass_on, root, run_quietly},
    progress::step,
};

/// Builds the driver that asks, asks all questions, and writes the answers to the file `out`.
pub fn run(out: &Path) -> Result<()> {
    let toolchain =
        step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64))?;
    let sys = step(&format!("Building {}.sys", QUESTIONS.1), || {
        build::build(&toolchain, QUESTIONS, Profile::Release)
    })?;
    step("Building the stand-in kernel", || run_quietly(&mut cargo("build")))?;
    pass_on(cargo("run").arg("--quiet").arg("--").arg(sys).arg(out))
}

/// Returns a cargo command for the program that asks the stand-in kernel. It runs in the user's
/// folder, to which `--out` is relative.
fn cargo(chore: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .args([chore, "--locked", "--package", "etw-questions"])
        .args(["--features", "stand-in", "--bin", "questions"])
        .arg("--manifest-path")
        .arg(root().join("Cargo.toml"));
    cargo
}
