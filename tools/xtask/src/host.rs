//! Which chores this machine can do.
//!
//! The project builds on Windows too, but the stand-in kernel runs a driver's machine code with
//! Linux's signals and memory: what needs it says so before it begins.

use anyhow::{Result, ensure};

/// Whether the stand-in kernel runs on this machine.
const RUNS_DRIVERS: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

/// The chores that need the stand-in kernel, or tools of Linux.
const ON_LINUX: [&str; 8] = [
    "bench",
    "demo",
    "fresh-machine",
    "fuzz",
    "inf",
    "package",
    "reproducible",
    "test",
];

/// Fails if a chore cannot be done on this machine, and says what can be.
pub fn check(chore: &str) -> Result<()> {
    check_on(RUNS_DRIVERS, chore)
}

fn check_on(runs_drivers: bool, chore: &str) -> Result<()> {
    ensure!(
        runs_drivers || !ON_LINUX.contains(&chore),
        "cannot run `cargo xtask {chore}` here: it needs the stand-in kernel, which runs on x86-64 \
         Linux only; on Windows, `cargo make` makes the driver's package with the WDK, and \
         `cargo test` runs the tests that do without the kernel"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chore_that_needs_linux_says_so_in_one_sentence() {
        let error = check_on(false, "demo").unwrap_err().to_string();
        assert!(
            error.starts_with("cannot run `cargo xtask demo` here:"),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
        check_on(true, "demo").unwrap();
    }

    #[test]
    fn what_reads_and_writes_files_only_runs_everywhere() {
        for chore in ["doctor", "lock", "manifest", "recipes"] {
            check_on(false, chore).unwrap();
        }
    }
}
