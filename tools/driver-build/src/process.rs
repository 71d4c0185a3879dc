//! Runs other programs.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Finds a program like a shell, and returns its path.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    // A name that includes a folder is already a path.
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file())
}

/// Creates a symbolic link to a file or folder, on systems where every user can create links.
///
/// # Errors
///
/// Fails if the link cannot be created.
pub fn symlink(path: &Path, link: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(path, link);
    #[cfg(not(unix))]
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!("cannot link {} to {}", link.display(), path.display()),
    ))
}

/// Returns a command's program and arguments in one line, for messages.
#[must_use]
pub fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Runs a command, and shows its output only if it fails.
///
/// # Errors
///
/// Fails with the command line and the output if the command fails.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    printed(command).map(drop)
}

/// Runs a command, and returns its standard output.
///
/// # Errors
///
/// Fails with the command line and the output if the command fails.
pub fn printed(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start: {}", line(command)))?;
    if !output.status.success() {
        bail!(
            "failed ({}): {}\n{}{}",
            output.status,
            line(command),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output.stdout)
}

/// Runs a command, and returns the JSON in its standard output.
///
/// # Errors
///
/// Fails with the command line and the output if the command fails, or does not print JSON.
pub fn json(command: &mut Command) -> Result<Value> {
    serde_json::from_slice(&printed(command)?)
        .with_context(|| format!("cannot read the output of: {}", line(command)))
}

/// Runs a command, and shows its output on standard error while it runs.
///
/// # Errors
///
/// Fails with the command line if the command fails.
pub fn run_shown(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status()
        .with_context(|| format!("cannot start: {}", line(command)))?;
    if !status.success() {
        bail!("failed ({status}): {}", line(command));
    }
    Ok(())
}

/// Returns the errors that a command printed, without rustup's backtrace.
#[must_use]
pub fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let end = text.find("\nStack backtrace:").unwrap_or(text.len());
    text[..end].trim().to_owned()
}

/// Returns a command's output if the command succeeds.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
