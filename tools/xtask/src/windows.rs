//! Checks that the default members compile for Windows, and lints them.

use std::process::Command;

use anyhow::Result;

use driver_build::toolchain::Rust;

use crate::{
    client,
    process::{root, run_quietly, target},
    progress::step,
};

/// The target that driver authors use.
const MSVC: &str = "x86_64-pc-windows-msvc";

/// Lints all default members for the target that driver authors use.
pub fn check() -> Result<()> {
    check_for(MSVC, "clippy", &[], &["--", "-D", "warnings"])
}

/// Checks every default member with its tests. The target makes no difference to the tests, but the
/// C code in dependencies needs the tools of the client's target.
pub fn check_tests() -> Result<()> {
    check_for(client::TARGET, "check", &["--all-targets"], &[])
}

/// Checks some default members for a target; `what` holds the arguments that select them, and `last`
/// those at the end.
fn check_for(name: &str, chore: &str, what: &[&str], last: &[&str]) -> Result<()> {
    let (rust, is_installed) = Rust::for_target(name)?;
    let libraries = if is_installed { "the target's libraries" } else { "libraries from source" };
    let title = if chore == "clippy" { "Linting" } else { "Checking" };
    step(&format!("{title} the default members for {name} with {libraries}"), || {
        let mut command = command(rust, chore, name);
        command.args(what);
        if is_installed {
            without_bootstrap(&mut command);
        } else {
            command
                .args(["-Zbuild-std=std,panic_abort,test", "-Zpanic-abort-tests"])
                .arg("--target-dir")
                .arg(target().join("windows-check"));
        }
        run_quietly(command.args(last))
    })
}

/// Lints the client and the session control library. If the libraries for [`MSVC`] are installed,
/// lints for that target, because [`check`] has checked its dependencies; the result is the same.
pub fn lint_client(client: Rust) -> Result<()> {
    step("Linting the client", || match Rust::for_target(MSVC)? {
        (rust, true) => {
            let mut command = command(rust, "clippy", MSVC);
            command.args(["--package", client::PACKAGE, "--package", client::SESSION]);
            run_quietly(
                without_bootstrap(&mut command).args(["--all-targets", "--", "-D", "warnings"]),
            )
        }
        (_, false) => client::lint(client),
    })
}

/// Removes a variable that dependencies' build scripts read, so that they do not rerun after a
/// build for this machine.
fn without_bootstrap(command: &mut Command) -> &mut Command {
    command.env_remove("RUSTC_BOOTSTRAP")
}

/// Returns a command for a Windows target in the main workspace.
fn command(rust: Rust, chore: &str, name: &str) -> Command {
    let mut command = rust.cargo();
    command.current_dir(root()).args([chore, "--locked", "--target", name]);
    command
}
