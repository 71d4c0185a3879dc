//! `cargo xtask package`: builds the sample driver's package for a test machine with `cargo etw
//! package`.

use std::{path::PathBuf, process::Command};

use anyhow::{Result, bail};

use driver_build::{
    files,
    toolchain::{Machine, Toolchain},
};

use crate::{
    build::{self, PACKAGED, PROBES, Profile},
    cargo_etw, client,
    packages::{self, Program},
    process::{output_of, pass_on, root, target},
    progress::step,
    sample::{DESCRIPTION, DRIVER, HARDWARE_ID, PACKAGE_FILES},
};

/// The signing tools.
const TOOLS: [Program; 2] = [
    Program { names: &["openssl"], package: "openssl" },
    Program { names: &["osslsigncode"], package: "osslsigncode" },
];

/// Returns the signing tool's version, if it is installed.
pub fn signer() -> Option<String> {
    let said = output_of(Command::new("osslsigncode").arg("--version"))?;
    let first = said.lines().next()?;
    Some(first.trim_end_matches(", using:").to_owned())
}

/// Returns the packages of missing signing tools.
pub fn missing_packages() -> Vec<&'static str> {
    TOOLS.iter().filter_map(Program::missing).collect()
}

/// The hardware ID of the probe driver's device.
pub const PROBES_HARDWARE_ID: &str = r"Root\EtwProbesDriver";

/// Runs `cargo xtask package`: builds the package, the same package with a version 2 catalog, and
/// the probe driver's package.
pub fn run() -> Result<()> {
    let toolchain =
        step("Finding the cross toolchain", || Toolchain::find_or_install(Machine::X64))?;
    step("Installing the signing tools", || packages::install(&missing_packages()))?;
    let rust = step("Finding the client's compiler", client::find_or_install_compiler)?;
    let images = step("Building the driver and the probes' driver", || {
        build::build_together(&toolchain, &PACKAGED, Profile::Release)
    })?;
    let [image, probes] = images.as_slice() else { bail!("cargo built {images:?}") };
    let client = step("Building the client", || client::build(rust))?;
    let folder = target().join("package");
    files::create_dir_all(&folder)?;
    let (package, _) = PROBES;
    let mut command = cargo_etw::for_package(package, ["package"])?;
    command.args(["--hardware-id", PROBES_HARDWARE_ID]);
    command.args(["--description", "wdk-etw probes device"]);
    command.arg("--image").arg(probes);
    command.arg("--out").arg(archive_of_probes());
    pass_on(command.arg("--certificate").arg(&folder))?;
    // The first package is printed last, because users should use it.
    for (catalog, archive) in [("2", archive_with_catalog_2()), ("1", archive())] {
        let texts = root().join(PACKAGE_FILES);
        let mut command = cargo_etw::for_sample(["package", "--hardware-id", HARDWARE_ID])?;
        command.args(["--description", DESCRIPTION, "--catalog", catalog]);
        command.arg("--image").arg(image);
        // The client installs the driver and shows its state.
        command.arg("--text").arg(texts.join("install.cmd"));
        command.arg("--notes").arg(texts.join("notes.txt"));
        command.arg("--file").arg(&client);
        command.arg("--out").arg(archive);
        pass_on(command.arg("--certificate").arg(&folder))?;
    }
    Ok(())
}

/// Returns the path of the package.
pub fn archive() -> PathBuf {
    archive_named("x64")
}

/// Returns the path of the package whose catalog also identifies files by their SHA-256.
pub fn archive_with_catalog_2() -> PathBuf {
    archive_named("x64-catalog-2")
}

/// Returns the path of the probe driver's package.
pub fn archive_of_probes() -> PathBuf {
    archive_of(PROBES.1, "x64")
}

fn archive_named(suffix: &str) -> PathBuf {
    archive_of(DRIVER.1, suffix)
}

fn archive_of(service: &str, suffix: &str) -> PathBuf {
    let version = env!("CARGO_PKG_VERSION");
    target().join("package").join(format!("{service}-{version}-{suffix}.zip"))
}
