//! A run whose output goes to standard output and standard error.

use super::{
    human::Human,
    json::Json,
    options::{Format, Run},
};

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
