//! Third-party programs that the repository's checks use.

use std::process::Command;

use anyhow::{Context, Result};
pub use driver_build::packages::{Program, candidate, install, may_install};

use crate::process::{output_of, run_quietly};

/// Returns the version of cargo-make, which runs `Makefile.toml`, if it is installed.
pub fn cargo_make() -> Option<String> {
    output_of(Command::new("cargo").args(["make", "--version"]))
}

/// Installs cargo-make, unless it is installed.
pub fn install_cargo_make() -> Result<()> {
    if cargo_make().is_none() {
        run_quietly(
            Command::new("cargo")
                // Without TLS, which the project's tasks do not use, and without optimization, for a
                // fast build.
                .args(["install", "--locked", "--debug", "--no-default-features"])
                .args(["--config", "profile.dev.debug=false"])
                .args(["--bin", "cargo-make", "cargo-make"]),
        )
        .context("cannot install cargo-make")?;
    }
    Ok(())
}

/// Installs cargo-mutants, unless it is installed.
pub fn install_cargo_mutants() -> Result<()> {
    if output_of(Command::new("cargo").args(["mutants", "--version"])).is_none() {
        run_quietly(
            Command::new("cargo")
                .args(["install", "--locked", "--version", "^27.1"])
                .arg("cargo-mutants"),
        )
        .context("cannot install cargo-mutants")?;
    }
    Ok(())
}

/// The browser for testing pages.
pub const BROWSER: Program =
    Program { names: &["chromium", "chromium-browser", "google-chrome"], package: "chromium" };

/// Returns the browser's version, if it is installed.
pub fn browser() -> Option<String> {
    output_of(Command::new(BROWSER.path()?).arg("--version"))
}
