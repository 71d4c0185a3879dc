//! `cargo xtask demo`: builds the sample driver, traces it, and shows the decoded events.

use std::{path::Path, process::Command};

use anyhow::Result;

use driver_build::toolchain::{Machine, Toolchain};

use crate::{
    build::{self, Profile},
    process::{pass_on, program},
    progress::step,
    sample::DRIVER,
};

/// Runs the demo, and writes the sessions' files to folder `out`.
pub fn run(out: &Path) -> Result<()> {
    let toolchain =
        step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64))?;
    eprintln!("       {}", toolchain.describe());
    let title = format!("Building {}.sys for {}", DRIVER.1, toolchain.target());
    let sys = step(&title, || build::build(&toolchain, DRIVER, Profile::Release))?;
    let tour = step("Building the stand-in kernel", || program("etw-scenarios", "tour", false))?;
    let etl = step("Building etl", || program("etl", "etl", false))?;
    pass_on(Command::new(tour).arg(sys).arg(out).arg(etl))
}
