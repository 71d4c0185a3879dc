//! Runs a driver as the command lines do: loads it, enables its providers, plays a script, shows what
//! happens, and reports what was found.
//!
//! `testkernel run` and `cargo etw run` are [`arguments`] and [`execute`]. [`Run::play`] does the
//! same for a program that has a [`Report`] of its own.

mod arguments;
mod enable;
mod finding;
mod human;
mod json;
mod play;
mod progress;

use std::path::PathBuf;

pub use self::{
    arguments::{arguments, etl_here, format, run},
    enable::Enabled,
    finding::{Finding, Kind},
    human::Human,
    json::Json,
    play::{Report, Summary},
};
use crate::harness::script::{Clients, Script};

/// A driver to run, and how to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate option of the command lines"
)]
pub struct Run {
    /// The driver's image. A .pdb file beside it provides function names and lines.
    pub image: PathBuf,
    /// The driver's service name.
    pub service: String,
    /// The script to play, or `None` for the life of a device.
    pub script: Option<Script>,
    /// The trace file to write.
    pub etl: PathBuf,
    /// The session's name.
    pub session: String,
    /// The providers and groups to enable with parameters of their own.
    pub enabled: Vec<Enabled>,
    /// True to enable every provider that the driver registers.
    pub every_provider: bool,
    /// The clients that play the part of the script on an open device.
    pub clients: Clients,
    /// True to guard every pool block.
    pub special_pool: bool,
    /// True to report notes about style.
    pub notes: bool,
}

/// The form of a command line's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people: steps and events on standard output, findings on standard error.
    Human,
    /// One JSON object for each line, on standard output.
    Json,
}

/// Runs a driver and writes what happens to standard output. Returns true if nothing was found but
/// notes.
///
/// # Errors
///
/// Returns an error if the driver cannot be run at all: if the trace file cannot be created, or a
/// provider cannot be enabled.
pub fn execute(run: &Run, format: Format) -> anyhow::Result<bool> {
    let stdout = std::io::stdout().lock();
    match format {
        Format::Human => {
            let mut report = Human::new(stdout, std::io::stderr());
            let summary = run.play(&mut report)?;
            report.finish()?;
            Ok(summary.is_clean())
        }
        Format::Json => {
            let mut report = Json::new(stdout);
            let summary = run.play(&mut report)?;
            report.finish()?;
            Ok(summary.is_clean())
        }
    }
}
