//! Lints, documents and tests the workspace of the wdk-sys and wdk-build stand-ins.

use std::process::Command;

use anyhow::Result;

use crate::{
    build::built_in,
    process::{self, root, run_quietly},
};

/// The workspace's manifest, relative to the repository's root.
pub const MANIFEST: &str = "tools/wdk-standin/Cargo.toml";

fn cargo(chore: &str) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(root())
        .args([chore, "--locked", "--workspace"])
        .args(["--manifest-path", MANIFEST, "--target-dir"])
        // In this folder, the checks share packages with the drivers.
        .arg(built_in());
    command
}

/// Lints the stand-ins and their tests. `--all-targets` would check wdk-sys, which has no tests of its
/// own, a second time as a test.
pub fn lint() -> Result<()> {
    run_quietly(cargo("clippy").args(["--lib", "--tests", "--", "-D", "warnings"]))
}

/// Builds the stand-ins' documentation.
pub fn document() -> Result<()> {
    run_quietly(
        cargo("doc")
            .args(["--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Tests the stand-ins, comparing every definition with data from the WDK headers.
pub fn test() -> Result<()> {
    process::run_for_results(&mut cargo("test"))
}
