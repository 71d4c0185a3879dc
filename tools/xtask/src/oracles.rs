//! The Python decoders and emulators that tests compare with, in an environment
//! of their own under the target folder.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::{
    packages,
    process::{output_of, root, run_quietly, target},
};

fn requirements() -> PathBuf {
    root().join("tests/oracles/requirements.txt")
}

fn environment() -> PathBuf {
    target().join("oracles")
}

/// A copy of the requirements that the environment was made from.
fn stamp() -> PathBuf {
    environment().join("requirements.installed")
}

/// The environment's interpreter.
pub fn python() -> PathBuf {
    environment().join("bin/python")
}

/// Whether the environment is there, and made from today's requirements.
pub fn is_ready() -> bool {
    let wanted = fs::read(requirements()).ok();
    wanted.is_some() && fs::read(stamp()).ok() == wanted && python().exists()
}

/// Makes the environment, if it is not there.
pub fn install() -> Result<()> {
    if is_ready() {
        return Ok(());
    }
    let can_make = || output_of(Command::new("python3").args(["-c", "import ensurepip, venv"]));
    if can_make().is_none() {
        packages::install(&["python3-venv"])?;
    }
    run_quietly(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(environment()),
    )?;
    run_quietly(
        Command::new(python())
            .args(["-m", "pip", "install", "--quiet", "--requirement"])
            .arg(requirements()),
    )
    .context("the decoders could not be installed from PyPI")?;
    fs::copy(requirements(), stamp()).context("the environment is not writable")?;
    Ok(())
}
