//! Shows progress on standard error, like `cargo etw`, and counts the processor time of steps.

use std::{
    cell::Cell,
    fs, mem,
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Result, anyhow};
use driver_build::progress;

/// The processor time of ended programs that steps have been charged with, in seconds.
static CHARGED: Mutex<f64> = Mutex::new(0.0);
/// The ended steps, with their processor time.
static STEPS: Mutex<Vec<(f64, String)>> = Mutex::new(Vec::new());

thread_local! {
    /// The processor time of this thread's current step.
    static CURRENT: Cell<f64> = const { Cell::new(0.0) };
}

/// Runs one step of a command, like [`progress::step`].
pub fn step<T>(title: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    counted(title, || progress::step(title, body))
}

/// Runs one step that writes its own output, like [`progress::step_with_output`].
pub fn step_with_output<T>(title: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    counted(title, || progress::step_with_output(title, body))
}

fn counted<T>(title: &str, step: impl FnOnce() -> T) -> T {
    let result = step();
    charge();
    let used = (CURRENT.take(), title.to_owned());
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).push(used);
    result
}

/// Runs two groups of steps at the same time. The groups mostly build in different folders, and each
/// usually uses one processor.
pub fn at_once<A, B: Send>(
    here: impl FnOnce() -> Result<A>,
    beside: impl FnOnce() -> Result<B> + Send,
) -> Result<(A, B)> {
    thread::scope(|scope| {
        let beside = scope.spawn(beside);
        let here = here();
        let beside = beside.join().map_err(|_| anyhow!("a check's thread panicked"))?;
        match (here, beside) {
            (Err(here), Err(beside)) => Err(anyhow!("{here:#}\nerror: {beside:#}")),
            (here, beside) => Ok((here?, beside?)),
        }
    })
}

/// Charges the current step with the programs that have ended since the last call, by any thread. So that
/// steps that run at the same time are charged with their own programs, this is called when a program ends.
pub fn charge() {
    let mut charged = CHARGED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(now) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(used) {
        CURRENT.set(CURRENT.get() + now - mem::replace(&mut *charged, now));
    }
}

/// Reads the processor time of ended child processes and of theirs, in seconds, from Linux's description of
/// a process.
fn used(stat: &str) -> Option<f64> {
    /// The unit, in which programs see all times.
    const TICKS: f64 = 100.0;
    // A program's name can contain spaces and parentheses.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut times = after_name.split(' ').skip(13).map(str::parse::<f64>);
    let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
    Some((user + system) / TICKS)
}

/// Returns the ended steps that took at least a second of processor time, with the longest first, and the
/// processor time of all steps.
pub fn steps() -> (Vec<(f64, String)>, f64) {
    let mut steps = STEPS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let total = steps.iter().map(|(seconds, _)| seconds).sum();
    steps.retain(|(seconds, _)| *seconds >= 1.0);
    steps.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    (steps, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_ended_programs_is_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 9 8 0 0 11 12 250 50 20 0 1 0 99 0 0";
        assert_eq!(used(stat), Some(3.0));
        assert_eq!(used("7 (a"), None);
    }
}
