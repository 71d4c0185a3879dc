//! Determines which commands this machine can run.
//!
//! The project also builds on Windows, but the stand-in kernel runs a driver's machine code with
//! Linux signals and memory mappings, and some commands use Linux tools. On other systems, such
//! commands fail with the reason before they start.

use anyhow::{Result, bail};

/// A command's requirement for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The command runs on every system.
    Nothing,
    /// The command needs the stand-in kernel to run a driver.
    StandInKernel,
    /// The command needs these Linux programs.
    Programs(&'static str),
}

/// Fails if a command cannot run on this machine; the error suggests commands that can run.
pub fn check(chore: &str, need: Need) -> Result<()> {
    check_on(cfg!(target_os = "linux"), cfg!(target_arch = "x86_64"), chore, need)
}

fn check_on(is_linux: bool, is_x64: bool, chore: &str, need: Need) -> Result<()> {
    let why = match need {
        Need::StandInKernel if !(is_linux && is_x64) => {
            "it needs the stand-in kernel, which runs on x86-64 Linux only".to_owned()
        }
        Need::Programs(programs) if !is_linux => {
            format!("it needs {programs}, and runs on Linux only")
        }
        _ => return Ok(()),
    };
    bail!(
        "cannot run `cargo xtask {chore}` here: {why}; on Windows, use WSL 2, or `cargo wdk build` in the \
         folder driver, which builds the driver package with the WDK; `cargo test` runs the tests that do not need the stand-in kernel"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chore_that_needs_linux_fails_with_one_sentence() {
        for need in [Need::StandInKernel, Need::Programs("chroot")] {
            let error = check_on(false, true, "demo", need).unwrap_err().to_string();
            assert!(error.starts_with("cannot run `cargo xtask demo` here: it needs "), "{error}");
            assert!(!error.contains('\n') && error.contains("WSL 2"), "{error}");
            check_on(true, true, "demo", need).unwrap();
        }
        check_on(true, false, "demo", Need::StandInKernel).unwrap_err();
    }
}
