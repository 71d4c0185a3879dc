//! The public API of the published crates, which the program `api-text` writes to `docs/api`.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{program, with_lints};

/// Returns the command that writes the text files.
fn writer() -> Result<Command> {
    Ok(Command::new(program("api-text", "api-text", true)?))
}

/// Fails if a text file differs from the sources' API. If the compiler describes the API in a
/// format that `api-text` cannot read, returns the reason.
pub fn check() -> Result<Option<String>> {
    outcome(with_lints(writer()?.arg("--check")))
}

/// Writes the text files. If the compiler describes the API in a format that `api-text` cannot read,
/// returns the reason.
pub fn write() -> Result<Option<String>> {
    outcome(&mut writer()?)
}

fn outcome(command: &mut Command) -> Result<Option<String>> {
    /// The exit code for an unreadable format.
    const UNKNOWN_FORMAT: i32 = 3;
    let output = command.output().context("cannot run api-text")?;
    let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(0) => Ok(None),
        Some(UNKNOWN_FORMAT) => Ok(Some(errors)),
        _ => bail!("{errors}"),
    }
}
