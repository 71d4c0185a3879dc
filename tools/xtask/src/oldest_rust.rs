//! Checks that the crates that drivers use compile with the oldest supported version of Rust.

use std::process::Command;

use anyhow::{Context, Result};
use driver_build::files;

use crate::{
    process::{find_program, output_of, root, run_quietly, target},
    progress::step,
};

/// The crates that drivers and their build scripts use.
const PACKAGES: [&str; 7] = [
    "etw-manifest", "wdk-etw", "wdk-etw-build", "wdk-etw-log", "wdk-etw-macros", "wdk-etw-schema",
    "wdk-etw-tracing",
];

/// Reads `rust-version` from `[workspace.package]`.
fn oldest() -> Result<String> {
    let path = root().join("Cargo.toml");
    let text = files::read_to_string(&path)?;
    parse(&text)
        .map(str::to_owned)
        .with_context(|| format!("{} has no rust-version", path.display()))
}

fn parse(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'))
}

/// Checks the crates with that version of Rust, if rustup has it or can install it. Otherwise,
/// returns the name of the skipped check and the reason.
pub fn check() -> Result<Option<String>> {
    let version = oldest()?;
    let not_run =
        |why: &str| Some(format!("building the driver-facing crates with Rust {version}: {why}"));
    if find_program("rustup").is_none() {
        return Ok(not_run("rustup is not installed"));
    }
    let is_installed = || {
        output_of(Command::new("rustup").args(["run", &version, "rustc", "--version"])).is_some()
    };
    if !is_installed() {
        let arguments = ["toolchain", "install", &version, "--profile", "minimal"];
        if let Err(error) = run_quietly(Command::new("rustup").args(arguments)) {
            return Ok(not_run(&format!("{error:#}")));
        }
    }
    step(&format!("Checking the driver-facing crates with Rust {version}"), || {
        let mut command = Command::new("rustup");
        command
            .current_dir(root())
            .args(["run", &version, "cargo", "check", "--locked", "--target-dir"])
            .arg(target().join("oldest-rust"));
        for package in PACKAGES {
            command.args(["--package", package]);
        }
        run_quietly(&mut command)
    })?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_that_drivers_use_inherit_the_workspaces_rust_version() {
        let oldest = oldest().unwrap();
        assert!(oldest.starts_with("1."), "{oldest}");
        for folder in [
            "provider-lib", "provider-lib/log", "provider-lib/macros", "provider-lib/build",
            "provider-lib/schema", "provider-lib/tracing", "formats/etw-manifest",
        ] {
            let path = root().join(folder).join("Cargo.toml");
            let manifest = files::read_to_string(&path).unwrap();
            assert!(manifest.contains("rust-version.workspace = true"), "{}", path.display());
        }
    }
}
