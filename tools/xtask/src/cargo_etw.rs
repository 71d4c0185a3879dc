//! The commands that run `cargo etw` on the sample driver: its manifest, tracing instructions, INF
//! file and package.
//!
//! This program runs `cargo etw` and does not link its crates, so the other commands work while
//! those crates do not compile.

use std::{ffi::OsStr, path::Path, process::Command};

use anyhow::Result;

use crate::process::{self, pass_on, root};

/// The sample driver's declaration, from the workspace's root.
pub const DECLARATION: &str = "driver/src/trace.rs";
/// The manifest that is written from the declaration.
const MANIFEST: &str = "inf/etw_sample_driver.man";
/// The path of the installed sample driver.
const INSTALLED: &str = r"%SystemRoot%\System32\drivers\etw_sample_driver.sys";
/// The hardware id of the sample driver's device, as in `etw-sample-interface`.
pub const HARDWARE_ID: &str = r"Root\EtwSampleDriver";

/// Returns a `cargo etw` command with its first arguments. It runs in the user's folder, to which
/// paths on the command line are relative.
pub fn command<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(["run", "--quiet", "--locked", "--package", "cargo-etw"])
        .arg("--manifest-path")
        .arg(root().join("Cargo.toml"))
        .args(["--", "etw"])
        .args(words);
    command
}

/// Builds and runs the command; cargo shows the progress of the build.
pub fn run(command: &mut Command) -> Result<()> {
    let mut build = Command::new("cargo");
    build
        .current_dir(root())
        .args(["build", "--locked", "--package", "cargo-etw"]);
    process::run(&mut build)?;
    pass_on(command)
}

/// `manifest write`: writes the sample driver's manifest, or checks it.
pub fn write_manifest(only_check: bool) -> Result<()> {
    let mut command = command(["manifest", "write", DECLARATION, "--out", MANIFEST]);
    command
        .args(["--image", INSTALLED])
        .args(["--command", "cargo xtask manifest write"])
        .current_dir(root());
    check_if(only_check, &mut command)
}

/// `manifest check`: compares a declaration or manifest, or that of the sample driver, with an
/// older one.
pub fn check_manifest(base: &Path, now: Option<&Path>) -> Result<()> {
    let sample = root().join(DECLARATION);
    let mut command = command(["manifest", "check", "--base"]);
    run(command.arg(base).arg(now.unwrap_or(&sample)))
}

/// `manifest compile`: compiles a manifest or a declaration to resources.
pub fn compile_manifest(path: &Path, out: &Path, format: &str) -> Result<()> {
    let mut command = command(["manifest", "compile", "--format", format, "--out"]);
    run(command.arg(out).arg(path))
}

/// `manifest import`: writes a declaration with the events of a manifest.
pub fn import_manifest(path: &Path, out: Option<&Path>) -> Result<()> {
    let mut command = command(["manifest", "import"]);
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    run(command.arg(path))
}

/// `recipes`: writes the sample driver's tracing instructions and profile, or checks them.
pub fn write_recipes(only_check: bool) -> Result<()> {
    let mut command = command(["recipes", DECLARATION, "--text", "docs/tracing.md"]);
    command
        .args(["--profile", "inf/etw_sample_driver.wprp"])
        .args(["--image", "etw_sample_driver.sys", "--session", "sample"])
        .args(["--title", "Trace the sample driver"])
        .args(["--guide", "[the VM guide](vm-guide.md)"])
        .args(["--client", "etw-sample-client"])
        .args(["--reader", "cargo run -q -p etl-file --bin etl --"])
        .args(["--command", "cargo xtask recipes"])
        .current_dir(root());
    check_if(only_check, &mut command)
}

/// `inf`: checks a stamped INF file and the image that it is for.
pub fn check_inf(inf: &Path, image: &Path) -> Result<()> {
    let mut command = command(["inf", "check"]);
    command
        .arg(inf)
        .arg(image)
        .args(["--hardware-id", HARDWARE_ID, "--declaration"])
        .arg(root().join(DECLARATION));
    run(&mut command)
}

fn check_if(only_check: bool, command: &mut Command) -> Result<()> {
    run(command.args(only_check.then_some("--check")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_hardware_id_is_the_interfaces() {
        assert_eq!(super::HARDWARE_ID, etw_sample_interface::HARDWARE_ID);
    }
}
