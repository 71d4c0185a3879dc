//! Commands that run `cargo etw` for the sample driver: its manifest, tracing instructions, INF
//! file and package.
//!
//! This program runs `cargo etw` instead of linking its crates, so that the other commands work
//! even if those crates do not compile.

use std::{ffi::OsStr, path::Path, process::Command};

use anyhow::Result;
use driver_build::files;

use crate::{
    process::{self, pass_on, root},
    sample::{CLIENT, DRIVER, GUIDE, HARDWARE_ID, SESSION, TITLE},
};

/// Returns a `cargo etw` command with its first arguments. The command runs in the user's current
/// folder, so that relative paths on the command line work.
///
/// # Errors
///
/// Fails if the program cannot be built; cargo shows the progress of the build.
pub fn command<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Result<Command> {
    let mut command = Command::new(process::program("cargo-etw", "cargo-etw", true)?);
    command.arg("etw").args(words);
    Ok(command)
}

/// Returns a `cargo etw` command for the sample driver.
pub fn for_sample<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Result<Command> {
    for_package(DRIVER.0, words)
}

/// Returns a `cargo etw` command for a driver of this workspace.
pub fn for_package<S: AsRef<OsStr>>(
    package: &str,
    words: impl IntoIterator<Item = S>,
) -> Result<Command> {
    let mut command = command(words)?;
    command.args(["--package", package, "--manifest-path"]).arg(root().join("Cargo.toml"));
    Ok(command)
}

/// Writes the sample driver's manifest.
pub fn write_manifest() -> Result<()> {
    let mut command = for_sample(["manifest", "write"])?;
    command.args(["--command", "cargo xtask renew manifest"]);
    pass_on(&mut command)
}

/// Writes the sample driver's tracing instructions and profile.
pub fn write_recipes() -> Result<()> {
    let mut command = for_sample(["recipes", "--session", SESSION, "--title", TITLE])?;
    command
        .args(["--guide", GUIDE, "--client", CLIENT])
        .args(["--reader", "cargo run -q -p etl --"])
        .args(["--command", "cargo xtask renew recipes"]);
    pass_on(&mut command)
}

/// Writes the commands of the tracing instructions as data.
pub fn write_recipe_data(out: &Path) -> Result<()> {
    // This also writes the instructions and the profile, which are not used.
    let folder = out.with_extension("");
    files::create_dir_all(&folder)?;
    let mut command = for_sample(["recipes", "--session", SESSION])?;
    command.args(["--client", crate::client::PACKAGE]);
    command.arg("--data").arg(out);
    command.arg("--text").arg(folder.join("tracing.md"));
    let profile = format!("{}.wprp", DRIVER.1);
    command.arg("--profile").arg(folder.join(profile));
    pass_on(&mut command)
}

/// `inf`: checks a stamped INF file against an image.
pub fn check_inf(inf: &Path, image: &Path) -> Result<()> {
    let mut command = for_sample(["inf", "check", "--hardware-id", HARDWARE_ID])?;
    pass_on(command.arg(inf).arg("--image").arg(image))
}
