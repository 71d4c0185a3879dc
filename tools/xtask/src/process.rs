//! Running other programs.

use std::{
    env,
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// The workspace's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The folder for everything that is built.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns a program's path, as the shell would find it.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    // A path with folders in it stays as it is.
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file())
}

/// Makes a symbolic link to a file or folder, on systems where every user may.
pub fn symlink(path: &Path, link: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(path, link);
    #[cfg(not(unix))]
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!("cannot link {} to {}", link.display(), path.display()),
    ))
}

/// A command with its words in one line, for messages.
fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Runs a command to its end, its output going where this program's goes.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("could not start: {}", line(command)))?;
    if !status.success() {
        bail!("failed ({status}): {}", line(command));
    }
    Ok(())
}

/// The error of a command that has told the user what went wrong.
#[derive(Debug)]
pub struct Told;

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the command that was run has failed")
    }
}

impl Error for Told {}

/// Runs a command in this program's place: it prints its own result and errors.
///
/// # Errors
///
/// [`Told`] if the command fails; a sentence if it cannot be started.
pub fn pass_on(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("could not start: {}", line(command)))?;
    if !status.success() {
        bail!(Told);
    }
    Ok(())
}

/// Runs a command quietly; its output shows only if it fails.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("could not start: {}", line(command)))?;
    if !output.status.success() {
        bail!(
            "failed ({}): {}\n{}{}",
            output.status,
            line(command),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// Runs tests quietly; the lines with their results show, and all of their output if they fail.
pub fn run_for_results(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("could not start: {}", line(command)))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!(
            "failed ({}): {}\n{printed}{}",
            output.status,
            line(command),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    for result in printed
        .lines()
        .filter(|line| line.starts_with("test result: "))
    {
        println!("{result}");
    }
    Ok(())
}

/// What a command prints, if it can be started and succeeds.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
