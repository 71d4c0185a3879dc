//! The workspaces' lock files: every build takes them as they are, so each must match its manifests.
//!
//! There is one for each workspace of the repository, and one more for the drivers with the
//! stand-ins patched in, since the packages resolve otherwise then.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{
    build::patch_standin,
    process::{root, run_quietly},
    tree,
};

/// The lock file of the drivers with the stand-ins patched in.
const PATCHED_DRIVERS: &str = "tools/wdk-standin/patched-drivers/Cargo.lock";

/// What renews every lock file; `cargo xtask` itself refuses to build with a stale one.
const RENEW: &str = "cargo run --package xtask -- lock";

/// Lists the lock files by their paths from the repository's root.
fn lock_files() -> Result<Vec<String>> {
    let mut files = tree::files(&root())?;
    files.retain(|file| file.rsplit('/').next() == Some("Cargo.lock"));
    ensure!(
        files.iter().any(|file| file == "Cargo.lock"),
        "there is no Cargo.lock in the repository's root"
    );
    Ok(files)
}

/// A cargo command that resolves the packages of a lock file, as the builds that use it do.
fn resolve(lock_file: &str) -> Result<Command> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--quiet"]);
    // Builds for other hosts use the same lock file: this only limits what is downloaded.
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
         lock_files.rs must know how"
    );
    cargo.current_dir(folder);
    Ok(cargo)
}

/// Fails if a lock file does not match its manifests.
pub fn check() -> Result<()> {
    for file in lock_files()? {
        run_quietly(resolve(&file)?.arg("--locked")).with_context(|| {
            format!("{file} does not match its manifests; renew the lock files with `{RENEW}`")
        })?;
    }
    Ok(())
}

/// `cargo xtask lock`: renews every lock file as far as its manifests ask for it, or only
/// checks; versions that are locked stay.
pub fn run(check_only: bool) -> Result<()> {
    if check_only {
        return check();
    }
    for file in lock_files()? {
        run_quietly(&mut resolve(&file)?).with_context(|| format!("cannot renew {file}"))?;
        println!("{file}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patched_drivers_lock_file_is_among_the_listed() {
        let files = lock_files().unwrap();
        for file in [
            PATCHED_DRIVERS,
            "fuzz/Cargo.lock",
            "tools/wdk-standin/Cargo.lock",
        ] {
            assert!(
                files.iter().any(|listed| listed == file),
                "{file}: {files:?}"
            );
        }
    }

    #[test]
    fn a_lock_file_that_belongs_to_no_workspace_is_refused() {
        let error = resolve("docs/Cargo.lock").unwrap_err();
        assert!(error.to_string().contains("docs/Cargo.lock"), "{error}");
    }
}
