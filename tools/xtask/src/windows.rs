//! Whether what a bare cargo command builds compiles on Windows.

use anyhow::Result;

use crate::{
    process::{root, run_quietly, target},
    progress::step,
    toolchain::Rust,
};

/// Windows' targets. The code of tests is left to the workflow on Windows, which checks it too.
const TARGETS: [&str; 2] = ["x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu"];

/// Checks every default member for each of Windows' targets.
pub fn check() -> Result<()> {
    for name in TARGETS {
        let (rust, is_installed) = Rust::for_target(name)?;
        let libraries = if is_installed {
            "the target's libraries"
        } else {
            "libraries from source"
        };
        step(
            &format!("Checking the default members for {name} with {libraries}"),
            || {
                let mut command = rust.cargo();
                command
                    .current_dir(root())
                    .args(["check", "--locked", "--target", name]);
                if is_installed {
                    // What runs on this machine is the same as for its own tests: build scripts
                    // of dependencies look at this, and would run anew.
                    command.env_remove("RUSTC_BOOTSTRAP");
                } else {
                    command
                        .args(["-Zbuild-std=std,panic_abort,test", "-Zpanic-abort-tests"])
                        .arg("--target-dir")
                        .arg(target().join("windows-check"));
                }
                run_quietly(&mut command)
            },
        )?;
    }
    Ok(())
}
