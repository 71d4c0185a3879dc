//! Lints, documents and tests the workspace of the wdk-sys and wdk-build stand-ins.

use std::process::Command;

use anyhow::Result;

use crate::process::{self, root, run_quietly, target};

/// The workspace's manifest, relative to the repository's root.
pub const MANIFEST: &str = "tools/wdk-standin/Cargo.toml";

fn cargo(chore: &str) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(root())
        .args([chore, "--locked", "--workspace"])
        .args(["--manifest-path", MANIFEST, "--target-dir"])
        // Most dependencies are the same as in the main workspace.
        .arg(target());
    command
}

/// Lints the stand-ins.
pub fn lint() -> Result<()> {
    run_quietly(cargo("clippy").args(["--all-targets", "--", "-D", "warnings"]))
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
