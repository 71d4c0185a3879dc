//! Runs other programs.

use std::{
    env,
    error::Error,
    fmt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context, Result, bail};
pub use driver_build::process::{find_program, json, output_of, symlink};
use driver_build::{
    process::{self, line},
    toolchain::Rust,
};

use crate::progress::charge;

/// Returns the workspace's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Returns the folder for all build output.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The folder of programs that `cargo xtask test` has built with a single command. Building a
/// single package would select other dependency features and so recompile most dependencies.
static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
/// The environment variable with that folder, for commands that `cargo xtask test` runs.
const PROGRAMS_VARIABLE: &str = "WDK_ETW_PROGRAMS";

/// Makes [`program`] return programs in the target folder without building them.
pub fn use_built_programs() {
    PROGRAMS.get_or_init(|| target().join("debug"));
}

/// Passes the folder of the built programs to a command that runs this program.
pub fn with_built_programs(command: &mut Command) -> &mut Command {
    command.envs(PROGRAMS.get().map(|folder| (PROGRAMS_VARIABLE, folder)))
}

/// Returns a program in the workspace, building it if necessary. cargo shows the build's progress
/// if `is_shown` is true.
pub fn program(package: &str, name: &str, is_shown: bool) -> Result<PathBuf> {
    let folder =
        PROGRAMS.get().cloned().or_else(|| env::var_os(PROGRAMS_VARIABLE).map(PathBuf::from));
    if let Some(folder) = folder {
        return Ok(folder.join(name));
    }
    let mut build = cargo(&["build", "--locked", "--package", package, "--bin", name]);
    if is_shown { run(&mut build) } else { run_quietly(&mut build) }?;
    Ok(target().join("debug").join(name))
}

/// Returns a cargo command in the main workspace.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).args(arguments);
    command
}

/// Makes a `cargo doc` command use the checks of the workspace's libraries that `cargo clippy -- -D warnings`
/// has made with these variables. Otherwise, cargo would check the libraries again.
pub fn with_lints(command: &mut Command) -> &mut Command {
    let driver = Rust::Current.sysroot().map(|folder| folder.join("bin/clippy-driver"));
    if let Some(driver) = driver.filter(|driver| driver.exists()) {
        command.env("RUSTC_WORKSPACE_WRAPPER", driver);
        command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    }
    command
}

/// Runs a command, and shows its output only if it fails.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    printed(command).map(drop)
}

/// Runs a command, and returns its standard output.
pub fn printed(command: &mut Command) -> Result<Vec<u8>> {
    let printed = process::printed(command);
    charge();
    printed
}

/// Runs a command that shares this program's output.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status();
    charge();
    let status = status.with_context(|| format!("cannot start: {}", line(command)))?;
    if !status.success() {
        bail!("failed ({status}): {}", line(command));
    }
    Ok(())
}

/// The error of a command that has already reported its failure to the user, with the exit code.
#[derive(Debug)]
pub struct Told(pub u8);

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the command failed")
    }
}

impl Error for Told {}

/// Runs a command that prints its own result and errors.
///
/// # Errors
///
/// Fails with [`Told`] and the command's exit code if the command fails, or with a message if it
/// cannot be started.
pub fn pass_on(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start: {}", line(command)))?;
    if !status.success() {
        // A command terminated by a signal has no exit code.
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        bail!(Told(code.unwrap_or(1)));
    }
    Ok(())
}

/// Runs tests, and shows their result lines, or their whole output if they fail.
pub fn run_for_results(command: &mut Command) -> Result<()> {
    let printed = printed(command)?;
    // Skips the lines of programs whose tests were all filtered out.
    let is_result = |line: &&str| line.starts_with("test result: ") && !line.contains(" 0 passed");
    for result in String::from_utf8_lossy(&printed).lines().filter(is_result) {
        println!("{result}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_command_that_is_passed_on_keeps_its_exit_code() {
        let run = |script: &str| pass_on(Command::new("sh").args(["-c", script]));
        run("exit 0").unwrap();
        for (script, expected) in [("exit 3", 3), ("exit 1", 1), ("kill -KILL $$", 1)] {
            let error = run(script).unwrap_err();
            let Some(Told(code)) = error.downcast_ref() else { panic!("{script}: {error:#}") };
            assert_eq!(*code, expected, "{script}");
        }
    }
}
