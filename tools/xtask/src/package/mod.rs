//! `cargo xtask package`: builds the sample driver's package for a test machine with `cargo etw
//! package`.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use driver_build::toolchain::{Machine, Toolchain};

use crate::{
    build::{self, Profile},
    cargo_etw, client,
    packages::{self, Program},
    process::{output_of, root, target},
    progress::step,
    sample::{DESCRIPTION, DRIVER, HARDWARE_ID, PACKAGE_FILES},
};

/// The signing tools.
const TOOLS: [Program; 2] = [
    Program {
        names: &["openssl"],
        package: "openssl",
    },
    Program {
        names: &["osslsigncode"],
        package: "osslsigncode",
    },
];

/// Returns the signing tool's version, if it is installed.
pub fn signer() -> Option<String> {
    let said = output_of(Command::new("osslsigncode").arg("--version"))?;
    let first = said.lines().next()?;
    Some(first.trim_end_matches(", using:").to_owned())
}

/// Returns the packages of the signing tools that are not installed.
pub fn missing_packages() -> Vec<&'static str> {
    TOOLS.iter().filter_map(Program::missing).collect()
}

/// Runs `cargo xtask package`.
pub fn run() -> Result<()> {
    let toolchain = step("Finding the cross toolchain", || {
        Toolchain::find_or_install(Machine::X64)
    })?;
    step("Installing the signing tools", || {
        packages::install(&missing_packages())
    })?;
    let rust = step(
        "Finding the client's compiler",
        client::find_or_install_compiler,
    )?;
    let image = step("Building the driver", || {
        build::build(&toolchain, DRIVER, Profile::Release)
    })?;
    let client = step("Building the client", || client::build(rust))?;
    let folder = target().join("package");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let texts = root().join(PACKAGE_FILES);
    let mut command = cargo_etw::for_sample(["package", "--hardware-id", HARDWARE_ID]);
    command.args(["--description", DESCRIPTION]);
    command.arg("--image").arg(image);
    // The client installs the driver, and shows its state.
    command.arg("--text").arg(texts.join("install.cmd"));
    command.arg("--notes").arg(texts.join("notes.txt"));
    command.arg("--file").arg(client);
    command.arg("--out").arg(path());
    cargo_etw::run(command.arg("--certificate").arg(folder))
}

/// Returns the path of the sample driver's package.
pub fn path() -> PathBuf {
    let (_, service) = DRIVER;
    archive(service, env!("CARGO_PKG_VERSION"))
}

/// Returns the path of a package.
fn archive(service: &str, version: &str) -> PathBuf {
    target()
        .join("package")
        .join(format!("{service}-{version}-x64.zip"))
}
