//! The commands for working on this repository, run as `cargo xtask …`.
//!
//! `demo` builds and traces the sample driver, `test` runs every check that can run on this
//! machine, `build` builds only a driver's .sys file, and `doctor` lists the required tools that
//! were found and those that are missing.

mod answers;
mod api;
mod bench;
mod build;
mod c_drivers;
mod cargo_etw;
mod changed;
mod citations;
mod client;
#[cfg(test)]
mod commands;
mod deep;
mod demo;
mod doctor;
mod environment;
mod fresh_machine;
mod fuzz;
mod goldens;
mod guest;
mod host;
mod kit;
mod lint;
mod lock_files;
mod miri;
mod modules;
mod mutants;
mod oldest_rust;
mod package;
mod packages;
mod probes;
mod process;
mod progress;
mod publish;
mod renew;
mod reproducible;
mod requirements;
mod sample;
#[cfg(test)]
mod selections;
mod standin;
mod test;
mod tree;
mod untested;
mod unused;
mod vm;
mod windows;
mod windows_host;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser as _},
    value_parser,
};

use driver_build::{link, toolchain::Machine};

use crate::{build::Profile, host::Need, process::Told};

/// The commands for working on this repository.
#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
struct Xtask {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Build the sample driver, trace it in the stand-in kernel and show the events.
    Demo {
        /// The folder to write the .etl files to.
        #[arg(long, value_name = "FOLDER", default_value = "target/demo")]
        out: PathBuf,
    },
    /// Run the probes of undocumented ETW behavior in the stand-in kernel, and write its answers.
    Probes {
        /// The file to write the answers to.
        #[arg(long, value_name = "FILE", default_value = probes::ANSWERS)]
        out: PathBuf,
    },
    /// Read the results of a run on Windows, write their page, keep its answers and compare them.
    Answers {
        /// The archive or the folder of the results.
        #[arg(value_name = "FILE")]
        results: PathBuf,
        /// A file to append the page to.
        #[arg(long, value_name = "FILE")]
        page: Option<PathBuf>,
    },
    /// Run every check that can run on this machine.
    Test {
        /// Also run the checks that take longer: sanitizers, Miri, more cases and interleavings.
        #[arg(long)]
        deep: bool,
        /// Run only the checks that the changes since a commit can affect [default: the commit at which
        /// the branch left its upstream].
        #[arg(long, value_name = "BASE", num_args = 0..=1, conflicts_with = "deep")]
        #[expect(clippy::option_option, reason = "an option whose value is optional")]
        changed: Option<Option<String>>,
        /// Run the checks even if all passed with the same files before.
        #[arg(long)]
        again: bool,
    },
    /// Count the cost of writing an event and compare it with the `tracelogging` crate.
    Bench {
        /// Show only the missed goals.
        #[arg(long)]
        quick: bool,
        /// Measure how fast cargo answers after an edit and after a change of the selected packages.
        #[arg(long = "loop", conflicts_with = "quick")]
        answers: bool,
        /// Write the result to docs/benchmark.md or, with `--loop`, to CONTRIBUTING.md.
        #[arg(long, conflicts_with = "quick")]
        write: bool,
    },
    /// Fetch published packages with resources that mc.exe compiled, for comparison.
    Goldens,
    /// Fuzz every reader of untrusted bytes.
    Fuzz {
        /// The total time for all targets, in minutes.
        #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u64).range(1..=10_000))]
        minutes: u64,
    },
    /// Make one change to the code at a time, and find the changes that no test detects.
    Mutants(mutants::Selection),
    /// Build only a driver's .sys file.
    Build {
        /// The driver's crate in this workspace, or etw-c-driver.
        #[arg(long, default_value = sample::DRIVER.0)]
        package: String,
        /// The architecture to build for.
        #[arg(long, default_value = Machine::X64.name(), value_parser = machines())]
        machine: Machine,
        /// Build with optimizations.
        #[arg(long)]
        release: bool,
    },
    /// Write the tracked files that are generated, and list those that changed.
    #[command(after_help = renew::help())]
    Renew {
        /// The parts to renew [default: all].
        #[arg(value_name = "part", hide_possible_values = true, value_parser = PossibleValuesParser::new(renew::names()))]
        parts: Vec<String>,
    },
    /// List which of the tools that the other commands need are found and which are missing.
    Doctor {
        /// Install the missing tools.
        #[arg(long)]
        install: bool,
    },
    /// Build the sample driver in two folders and compare the images.
    Reproducible,
    /// Run `demo` and `test` on new Debian systems and print a table of results (needs root).
    FreshMachine {
        /// A machine to run on; can be repeated [default: all].
        #[arg(long = "machine", value_name = "NAME", value_parser = PossibleValuesParser::new(fresh_machine::names()))]
        machines: Vec<String>,
        /// The number of machines that run at the same time.
        #[arg(long, value_name = "N", default_value_t = 1)]
        jobs: usize,
    },
    /// Build the sample driver's signed package for a test machine, as a .zip file.
    Package,
    /// Check a stamped INF file against the driver that it installs.
    Inf {
        /// The INF file.
        inf: PathBuf,
        /// The driver's image, a .sys file.
        image: PathBuf,
    },
    /// Create the folder from which a Windows machine runs the sample driver's stages.
    Kit(kit::Contents),
    /// Build the sample driver's client, a Windows program.
    Client,
    /// Run the stand-in kernel for Windows under Wine, and compare it with the one for Linux.
    WindowsHost {
        /// Compare only the demo.
        #[arg(long)]
        demo: bool,
    },
    /// Run the sample driver's stages on Windows in QEMU, as `cargo etw vm` does.
    Vm {
        /// The arguments of `cargo etw vm`; --iso is required.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// Parses the architecture of a driver.
fn machines() -> impl clap::builder::TypedValueParser<Value = Machine> {
    let machines = [Machine::X64, Machine::Arm64];
    PossibleValuesParser::new(machines.map(Machine::name)).map(move |name| {
        machines.into_iter().find(|machine| machine.name() == name).unwrap_or(Machine::X64)
    })
}

impl Chore {
    /// Returns what the command needs of this machine.
    const fn need(&self) -> Need {
        match self {
            Self::Demo { .. }
            | Self::Fuzz { .. }
            | Self::Inf { .. }
            | Self::Package
            | Self::Probes { .. }
            | Self::Test { .. }
            | Self::Vm { .. } => Need::StandInKernel,
            Self::Bench { .. } => Need::Programs("a CPU emulator for Linux"),
            Self::Client | Self::WindowsHost { .. } => {
                Need::Programs("a cross compiler for Windows")
            }
            Self::FreshMachine { .. } => Need::Programs("debootstrap and chroot"),
            Self::Goldens => Need::Programs("a Python environment for Linux"),
            Self::Mutants(_) => Need::Programs("a library with the kernel's routines"),
            Self::Reproducible => Need::Programs("symbolic links"),
            Self::Answers { .. }
            | Self::Build { .. }
            | Self::Doctor { .. }
            | Self::Kit(_)
            | Self::Renew { .. } => Need::Nothing,
        }
    }

    fn run(self) -> Result<()> {
        match self {
            Self::Demo { out } => demo::run(&out),
            Self::Probes { out } => probes::run(&out),
            Self::Answers { results, page } => answers::run(&results, page.as_deref()),
            Self::Test { changed: Some(base), .. } => test::run_changed(base.as_deref()),
            Self::Test { deep, again, .. } => test::run(deep, again),
            Self::Bench { answers: true, write, .. } => bench::run_loop(write),
            Self::Bench { quick, write, .. } => bench::run(match (quick, write) {
                (true, _) => bench::Mode::Quick,
                (_, true) => bench::Mode::Write,
                _ => bench::Mode::Print,
            }),
            Self::Goldens => goldens::run(),
            Self::Fuzz { minutes } => fuzz::run(minutes),
            Self::Mutants(selection) => mutants::run(&selection),
            Self::Build { package, .. } if package == c_drivers::PACKAGE => c_drivers::run(),
            Self::Build { package, machine, release } => {
                let profile = if release { Profile::Release } else { Profile::Debug };
                build::run(&package, profile, machine)
            }
            Self::Renew { parts } => renew::run(&parts),
            Self::Doctor { install } => doctor::run(install),
            Self::Reproducible => reproducible::run(),
            Self::FreshMachine { machines, jobs } => fresh_machine::run(&machines, jobs),
            Self::Package => package::run(),
            Self::Inf { inf, image } => cargo_etw::check_inf(&inf, &image),
            Self::Kit(contents) => kit::run(&contents),
            Self::Client => client::run(),
            Self::WindowsHost { demo } => windows_host::run(demo),
            Self::Vm { arguments } => vm::run(&arguments),
        }
    }
}

fn run() -> Result<()> {
    let matches = Xtask::command().get_matches();
    let Xtask { chore } = Xtask::from_arg_matches(&matches)?;
    host::check(matches.subcommand_name().unwrap_or_default(), chore.need())?;
    chore.run()
}

fn main() -> ExitCode {
    if let Some(code) = link::run_if_asked() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(Told(code)) = error.downcast_ref() {
                return ExitCode::from(*code);
            }
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Xtask::command().debug_assert();
    }
}
