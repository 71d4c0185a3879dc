//! The public API of the published crates, which the program `api-text` writes to `docs/api`.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{pass_on, program, with_lints};

/// Returns the command that writes the text files.
fn writer() -> Result<Command> {
    Ok(Command::new(program("api-text", "api-text", true)?))
}

/// `cargo xtask api`: writes the text files, or compares them with the sources.
pub fn run(check_only: bool) -> Result<()> {
    pass_on(writer()?.args(check_only.then_some("--check")))
}

/// Fails if a text file differs from the sources' API. If the compiler describes the API in a
/// format that `api-text` cannot read, returns a note that the files were not compared.
pub fn check() -> Result<Option<String>> {
    /// The exit code for an unreadable format.
    const UNKNOWN_FORMAT: i32 = 3;
    let output = with_lints(writer()?.arg("--check")).output().context("cannot run api-text")?;
    let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(0) => Ok(None),
        Some(UNKNOWN_FORMAT) => {
            Ok(Some(format!("comparing the public API with docs/api: {errors}")))
        }
        _ => bail!("{errors}"),
    }
}
