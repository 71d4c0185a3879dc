//! `cargo xtask probes`: runs the probes of undocumented ETW behavior in the stand-in kernel.

use std::{path::Path, process::Command};

use anyhow::Result;

use driver_build::toolchain::{Machine, Toolchain};

use crate::{
    build::{self, PROBES, Profile},
    process::{pass_on, program},
    progress::step,
};

/// The file with the stand-in kernel's answers.
pub const ANSWERS: &str = "standin-kernel/answers/stand-in.json";

/// Builds the probe driver, runs all probes, and writes the answers to file `out`.
pub fn run(out: &Path) -> Result<()> {
    let toolchain =
        step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64))?;
    let sys = step(&format!("Building {}.sys", PROBES.1), || {
        build::build(&toolchain, PROBES, Profile::Release)
    })?;
    let program = step("Building the stand-in kernel", || program("etw-probes", "probes", false))?;
    pass_on(Command::new(program).arg(sys).arg(out))
}
