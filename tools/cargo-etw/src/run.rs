//! `cargo etw run`: builds a driver, and runs it in the stand-in kernel.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::ArgMatches;
use driver_build::{driver::Messages, toolchain::Machine};
use standin_kernel::run::{Format, RunConfig, etl_here, started_for};

use crate::{build, options::optional};

/// Runs the driver. The exit code is 1 if the run reports a warning or an error.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let format = Format::from_arguments(matches)?;
    let (image, etl) = if let Some(image) = optional::<PathBuf>(matches, "image")? {
        let etl = etl_here(&image);
        (image, etl)
    } else {
        let image = started_for().map_or_else(|| build(matches, format), Ok)?;
        let etl = image.with_extension("etl");
        (image, etl)
    };
    let is_clean = RunConfig::from_arguments(matches, &image, etl)?.run_in_child(format)?;
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the driver, and returns its image.
fn build(matches: &ArgMatches, format: Format) -> Result<PathBuf> {
    let messages = match format {
        Format::Human => Messages::Human,
        Format::Json => Messages::Json,
    };
    Ok(build::build(matches, Machine::X64, messages)?.sys)
}
