//! Showing what is being done, on standard error.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Instant,
};

use anyhow::Result;

/// Erases the terminal's line and returns to its start.
const ERASE: &str = "\r\x1b[2K";

/// Does one step of a chore: on a terminal its title stands there while it takes, and a line with
/// the time it took stays. Without a terminal only the lines appear.
pub fn step<T>(title: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut terminal = io::stderr();
    let erase = if terminal.is_terminal() { ERASE } else { "" };
    if !erase.is_empty() {
        // Nobody misses a title that cannot be shown.
        let _ = write!(terminal, "{erase}       {title} …").and_then(|()| terminal.flush());
    }
    let start = Instant::now();
    let result = body();
    let mark = if result.is_ok() { "done  " } else { "FAILED" };
    eprintln!(
        "{erase}{mark} {title} ({:.1} s)",
        start.elapsed().as_secs_f32()
    );
    result
}

/// Does one step whose own output goes to the terminal.
pub fn loud_step<T>(title: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("------ {title}");
    let start = Instant::now();
    let result = body();
    let mark = if result.is_ok() { "done  " } else { "FAILED" };
    eprintln!("{mark} {title} ({:.1} s)", start.elapsed().as_secs_f32());
    result
}
