//! Installing packages of the operating system.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::process::{output_of, run_quietly};

/// Whether Debian's package manager is there.
pub fn available() -> bool {
    Path::new("/usr/bin/apt-get").exists()
}

/// Installs Debian packages, by way of sudo where needed.
pub fn install(names: &[&str]) -> Result<()> {
    if !available() {
        bail!(
            "this system has no apt-get; install the equivalents of {} yourself",
            names.join(", ")
        );
    }
    let apt = |arguments: &[&str]| {
        let is_root = output_of(Command::new("id").arg("-u")).is_some_and(|id| id == "0");
        let mut command = if is_root {
            Command::new("apt-get")
        } else {
            let mut command = Command::new("sudo");
            command.args(["--non-interactive", "apt-get"]);
            command
        };
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(arguments);
        run_quietly(&mut command)
    };
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend_from_slice(names);
    // The lists may be old or missing: fetch them only if it takes that.
    if apt(&arguments).is_err() {
        apt(&["update"]).context("the package lists could not be fetched")?;
        apt(&arguments).with_context(|| format!("could not install {}", names.join(", ")))?;
    }
    Ok(())
}

/// What runs `Makefile.toml`, if it is there.
pub fn cargo_make() -> Option<String> {
    output_of(Command::new("cargo").args(["make", "--version"]))
}

/// Installs cargo-make, if it is not there.
pub fn install_cargo_make() -> Result<()> {
    if cargo_make().is_none() {
        run_quietly(
            Command::new("cargo")
                // Without TLS, which tasks of ours do not use.
                .args(["install", "--locked", "--no-default-features", "cargo-make"]),
        )
        .context("cargo-make could not be installed")?;
    }
    Ok(())
}

/// The browser that pages are tested in.
const BROWSER: &str = "chromium";

/// The browser's version, if it is there.
pub fn browser() -> Option<String> {
    output_of(Command::new(BROWSER).arg("--version"))
}

/// Installs the browser, if it is not there.
pub fn install_browser() -> Result<()> {
    if browser().is_none() {
        install(&[BROWSER])?;
    }
    Ok(())
}
