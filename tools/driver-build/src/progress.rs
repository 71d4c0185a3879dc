//! Shows progress on standard error.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Instant,
};

use anyhow::Result;

/// Erases the terminal line and returns to its start.
const ERASE: &str = "\r\x1b[2K";

/// Runs one step of a command.
///
/// A terminal shows the step's title while the step runs. Afterwards, a line with the result and
/// the time is printed, with or without a terminal.
///
/// # Errors
///
/// Fails with the step's error.
pub fn step<T>(title: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut terminal = io::stderr();
    let erase = if terminal.is_terminal() { ERASE } else { "" };
    if !erase.is_empty() {
        // Write errors are ignored, because the step does not depend on its title.
        let _ = write!(terminal, "{erase}       {title} …").and_then(|()| terminal.flush());
    }
    let start = Instant::now();
    let result = body();
    let mark = if result.is_ok() { "done  " } else { "FAILED" };
    eprintln!("{erase}{mark} {title} ({:.1} s)", start.elapsed().as_secs_f32());
    result
}

/// Runs one step that writes its own output.
///
/// # Errors
///
/// Fails with the step's error.
pub fn step_with_output<T>(title: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("------ {title}");
    let start = Instant::now();
    let result = body();
    let mark = if result.is_ok() { "done  " } else { "FAILED" };
    eprintln!("{mark} {title} ({:.1} s)", start.elapsed().as_secs_f32());
    result
}
