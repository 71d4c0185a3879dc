//! Separate Python environments in the target folder.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};
use driver_build::files;

use crate::{
    packages,
    process::{output_of, root, run_quietly, target},
};

/// A Python environment and its requirements.
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    /// The folder's name.
    pub name: &'static str,
    /// The requirements file, relative to the workspace's root.
    pub requirements: &'static str,
}

/// The decoders and emulators that tests compare with.
pub const ORACLES: Environment =
    Environment { name: "oracles", requirements: "tests/oracles/requirements.txt" };

/// The emulator that the benchmark uses.
pub const BENCH: Environment =
    Environment { name: "bench", requirements: "tools/bench/requirements.txt" };

/// Linters for workflows and scripts.
pub const LINT: Environment =
    Environment { name: "lint", requirements: "tools/xtask/lint/requirements.txt" };

impl Environment {
    fn requirements(self) -> PathBuf {
        root().join(self.requirements)
    }

    fn folder(self) -> PathBuf {
        target().join(self.name)
    }

    /// Returns the path of a copy of the requirements with which the environment was created.
    fn stamp(self) -> PathBuf {
        self.folder().join("requirements.installed")
    }

    /// Returns the path of the environment's interpreter.
    pub fn python(self) -> PathBuf {
        self.folder().join("bin/python")
    }

    /// Returns whether the environment exists and was created with the current requirements.
    pub fn is_ready(self) -> bool {
        let wanted = fs::read(self.requirements()).ok();
        wanted.is_some() && fs::read(self.stamp()).ok() == wanted && self.python().exists()
    }

    /// Returns the missing packages that are needed to create the environment.
    pub fn missing_packages(self) -> &'static [&'static str] {
        let can_make = || output_of(Command::new("python3").args(["-c", "import ensurepip, venv"]));
        if self.is_ready() || can_make().is_some() { &[] } else { &["python3-venv"] }
    }

    /// Creates the environment, unless it is ready.
    pub fn install(self) -> Result<()> {
        if self.is_ready() {
            return Ok(());
        }
        packages::install(self.missing_packages())?;
        run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(self.folder()))?;
        run_quietly(
            Command::new(self.python())
                .args(["-m", "pip", "install", "--quiet", "--no-compile", "--requirement"])
                .arg(self.requirements()),
        )
        .with_context(|| format!("cannot install {} from PyPI", self.requirements))?;
        files::copy(self.requirements(), self.stamp())
    }
}
