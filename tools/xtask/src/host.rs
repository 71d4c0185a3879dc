//! Determines which commands this machine can run.
//!
//! The project also builds on Windows, but the stand-in kernel runs a driver's machine code with
//! Linux signals and memory mappings, and some commands use Linux tools. On other systems, such
//! commands fail with the reason before they start.

use anyhow::{Result, bail};

/// A command's requirement for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// The command runs on every system.
    Nothing,
    /// The command needs the stand-in kernel to run a driver.
    StandInKernel,
    /// The command needs these Linux programs.
    Programs(&'static str),
}

/// All commands and their requirements.
const CHORES: [(&str, Need); 19] = [
    ("bench", Need::Programs("a CPU emulator for Linux")),
    ("build", Need::Nothing),
    ("client", Need::Programs("a cross compiler for Windows")),
    ("demo", Need::StandInKernel),
    ("doctor", Need::Nothing),
    ("fresh-machine", Need::Programs("debootstrap and chroot")),
    ("fuzz", Need::StandInKernel),
    ("goldens", Need::Programs("a Python environment for Linux")),
    ("inf", Need::StandInKernel),
    ("kit", Need::Nothing),
    ("modules", Need::Nothing),
    ("mutants", Need::Programs("a library with the kernel's routines")),
    ("package", Need::StandInKernel),
    ("probes", Need::StandInKernel),
    ("renew", Need::Nothing),
    ("reproducible", Need::Programs("symbolic links")),
    ("test", Need::StandInKernel),
    ("vm", Need::StandInKernel),
    ("help", Need::Nothing),
];

/// Fails if a command cannot run on this machine; the error suggests commands that can run.
pub fn check(chore: &str) -> Result<()> {
    let is_linux = cfg!(target_os = "linux");
    let need = CHORES.iter().find(|(name, _)| *name == chore);
    let need = need.map_or(Need::Nothing, |(_, need)| *need);
    check_on(is_linux, cfg!(target_arch = "x86_64"), chore, need)
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

    #[test]
    fn every_command_has_its_requirement() {
        let mut known: Vec<&str> = CHORES.iter().map(|(name, _)| *name).collect();
        let command = crate::command_line();
        let mut chores: Vec<&str> =
            command.get_subcommands().map(clap::Command::get_name).collect();
        chores.push("help");
        known.sort_unstable();
        chores.sort_unstable();
        assert_eq!(known, chores);
    }
}
