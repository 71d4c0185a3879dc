//! Showing what is being done, on standard error.

use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::ProgressBar;

/// Does one step of a chore: a spinner turns while it takes, and a line with
/// the time it took stays. Without a terminal only the lines appear.
pub fn step<T>(title: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    const TURN: Duration = Duration::from_millis(100);
    let spinner = ProgressBar::new_spinner().with_message(title.to_owned());
    spinner.enable_steady_tick(TURN);
    let start = Instant::now();
    let result = body();
    spinner.finish_and_clear();
    let mark = if result.is_ok() { "done  " } else { "FAILED" };
    eprintln!("{mark} {title} ({:.1} s)", start.elapsed().as_secs_f32());
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
