//! The workspaces' lock files. Builds are locked, so each file must match its manifests.
//!
//! Each workspace in the repository has one. The drivers have a second one for builds with the
//! stand-ins, because the patched packages resolve differently.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{
    build::patch_standin,
    process::{root, run_quietly},
    tree,
};

/// The drivers' lock file for builds with the stand-ins.
const PATCHED_DRIVERS: &str = "tools/wdk-standin/patched-drivers/Cargo.lock";

/// The command that updates all lock files; `cargo xtask` itself cannot be built with a stale one.
const RENEW: &str = "cargo run --package xtask -- renew lock";

/// Lists the lock files' paths, relative to the repository's root.
fn lock_files() -> Result<Vec<String>> {
    let mut files = tree::files(&root())?;
    files.retain(|file| file.rsplit('/').next() == Some("Cargo.lock"));
    ensure!(
        files.iter().any(|file| file == "Cargo.lock"),
        "the repository's root has no Cargo.lock"
    );
    Ok(files)
}

/// Returns a cargo command that resolves a lock file's packages like the builds that use it.
fn resolve(lock_file: &str) -> Result<Command> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--quiet"]);
    // Builds for other hosts use the same lock file; the platform only limits the downloads.
    cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    if lock_file == PATCHED_DRIVERS {
        patch_standin(&mut cargo).env("RUSTC_BOOTSTRAP", "1");
        return Ok(cargo);
    }
    let mut folder = root().join(lock_file);
    folder.pop();
    ensure!(
        folder.join("Cargo.toml").exists(),
        "{lock_file} has no Cargo.toml beside it; if a build names it by `lockfile-path`, \
         extend lock_files.rs"
    );
    cargo.current_dir(folder);
    Ok(cargo)
}

/// Fails if a lock file does not match its manifests.
pub fn check() -> Result<()> {
    for file in lock_files()? {
        run_quietly(resolve(&file)?.arg("--locked")).with_context(|| {
            format!("{file} does not match its manifests; update the lock files with `{RENEW}`")
        })?;
    }
    Ok(())
}

/// Updates every lock file for changed manifests, without changing locked versions.
pub fn update() -> Result<()> {
    for file in lock_files()? {
        run_quietly(&mut resolve(&file)?).with_context(|| format!("cannot update {file}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patched_drivers_lock_file_is_among_the_listed() {
        let files = lock_files().unwrap();
        for file in [PATCHED_DRIVERS, "tools/wdk-standin/Cargo.lock"] {
            assert!(files.iter().any(|listed| listed == file), "{file}: {files:?}");
        }
    }

    #[test]
    fn a_lock_file_that_belongs_to_no_workspace_is_refused() {
        let error = resolve("docs/Cargo.lock").unwrap_err();
        assert!(error.to_string().contains("docs/Cargo.lock"), "{error}");
    }
}
