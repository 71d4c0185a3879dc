//! Whether what a bare cargo command builds compiles on Windows.

use anyhow::Result;

use crate::{
    process::{root, run_quietly, target},
    progress::step,
    toolchain::Rust,
};

/// The targets, and what of each package is checked for them. Tests differ in nothing that one
/// target has and the other does not, so they are checked for one.
const TARGETS: [(&str, &[&str]); 2] = [
    ("x86_64-pc-windows-msvc", &["--all-targets"]),
    ("x86_64-pc-windows-gnu", &[]),
];

/// Checks every default member for each of Windows' targets.
pub fn check() -> Result<()> {
    for (name, what) in TARGETS {
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
                    .args(["check", "--locked", "--target", name])
                    .args(what);
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
