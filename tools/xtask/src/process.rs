//! Runs other programs.

use std::{
    env,
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// Returns the workspace's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Returns the folder for all build output.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns a program's path, as the shell would find it.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    // A name with a folder in it is already a path.
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file())
}

/// Creates a symbolic link to a file or folder, on systems where every user may do so.
pub fn symlink(path: &Path, link: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(path, link);
    #[cfg(not(unix))]
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!("cannot link {} to {}", link.display(), path.display()),
    ))
}

/// Returns a command's program and arguments on one line, for messages.
fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Runs a command to its end; it shares this program's output.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start: {}", line(command)))?;
    if !status.success() {
        bail!("failed ({status}): {}", line(command));
    }
    Ok(())
}

/// The error of a command that has already reported its failure to the user.
#[derive(Debug)]
pub struct Told;

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
/// Fails with [`Told`] if the command fails, and with a message if it cannot be started.
pub fn pass_on(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start: {}", line(command)))?;
    if !status.success() {
        bail!(Told);
    }
    Ok(())
}

/// Runs a command, and shows its output only if it fails.
pub fn run_quietly(command: &mut Command) -> Result<()> {
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
    Ok(())
}

/// Runs tests, and shows their result lines, or all of their output if they fail.
pub fn run_for_results(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start: {}", line(command)))?;
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

/// Returns a command's output, if the command can be started and succeeds.
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
