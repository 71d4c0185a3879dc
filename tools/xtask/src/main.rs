//! The project's chores, run as `cargo xtask …`.
//!
//! `demo` shows everything from nothing, `test` runs every check that can run
//! here, `build` makes the driver's .sys alone, and `doctor` says what of all
//! this machine has.

mod build;
mod demo;
mod doctor;
mod oracles;
mod packages;
mod process;
mod progress;
mod test;
mod toolchain;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::build::Profile;

/// The project's chores.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build the driver, load it in the stand-in kernel, trace it, and show the events.
    Demo {
        /// Where the .etl files go.
        #[arg(long, default_value = "target/demo")]
        out: PathBuf,
    },
    /// Run every check that can run on this machine.
    Test,
    /// Build the sample driver's .sys alone.
    Build {
        /// Optimized, as it would be shipped.
        #[arg(long)]
        release: bool,
    },
    /// Say what is there of what the other chores need, and what is missing.
    Doctor {
        /// Install what is missing.
        #[arg(long)]
        install: bool,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Demo { out } => demo::run(&out),
        Chore::Test => test::run(),
        Chore::Build { release } => build::run(if release {
            Profile::Release
        } else {
            Profile::Debug
        }),
        Chore::Doctor { install } => doctor::run(install),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
